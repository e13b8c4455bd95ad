//! The host's side of a lifeline. The host, the forkhestra process that runs the chain, starts the lifeline, sends it
//! orders, such as which program to start, and receives its reports.

use super::launch::Launch;
use super::line::Line;
use super::system::{containment, cpu_ticks, descendants, in_memory, kill, process, wait_for_end, widen};
use super::wire::MOST_FILES;
use crate::engine::Containment;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// Why a lifeline, or the pipes of an agent, could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The pipes or sockets could not be created.
    #[error("cannot create the pipes of an agent: {0}")]
    Pipes(#[source] io::Error),
    /// The lifeline's process could not be started.
    #[error("cannot start the lifeline of an agent: {0}")]
    Lifeline(#[source] io::Error),
}

impl SpawnError {
    /// Returns whether the machine was short of resources. Trying again later may succeed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let (Self::Pipes(error) | Self::Lifeline(error)) = self;
        error.raw_os_error().is_some_and(is_busy)
    }
}

/// Returns whether an error says that the machine has no processes, descriptors or memory left at the moment (fork(2),
/// execve(2), pipe(2)).
#[must_use]
pub fn is_busy(errno: i32) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE].iter().any(|busy| busy.raw_os_error() == errno)
}

/// A lifeline that we have started. It starts one program after another. Before it starts the next, it kills everything
/// that the previous one left behind.
#[derive(Debug)]
pub struct LifelineHandle {
    process: Child,
    /// The connection for its orders and reports.
    pub line: Line,
    launches: u32,
}

/// The reading ends of a program's output pipes.
#[derive(Debug)]
pub struct AgentPipes {
    /// Its standard output.
    pub stdout: Receiver,
    /// Its standard error.
    pub stderr: Receiver,
}

impl LifelineHandle {
    /// Starts a lifeline. `program` is our own program, which becomes the lifeline. The lifeline holds the file `hold`,
    /// the run's lock, as long as it lives, even after we are gone. Must be called in a runtime.
    ///
    /// # Errors
    /// When the lifeline cannot be started.
    pub fn start(program: &Path, hold: Option<BorrowedFd<'_>>) -> Result<Self, SpawnError> {
        let (process, control) = spawn_lifeline(program, hold)?;
        let line = Line::new(control, process.id()).map_err(SpawnError::Pipes)?;
        Ok(Self { process, line, launches: 0 })
    }

    /// Starts a program. The previous one must have ended and been swept. A program that cannot be started is reported
    /// as [`super::LifelineReport::Failed`]. Must be called in a runtime.
    ///
    /// # Errors
    /// When the pipes cannot be created. A lifeline that is gone is not an error here: [`super::LifelineReport::Gone`]
    /// reports it.
    pub fn launch(&mut self, launch: &Launch<'_>) -> Result<AgentPipes, SpawnError> {
        let file = launch.bytes().and_then(|bytes| in_memory(&bytes)).map_err(SpawnError::Pipes)?;
        let (stdout, their_stdout) = io::pipe().map_err(SpawnError::Pipes)?;
        let (stderr, their_stderr) = io::pipe().map_err(SpawnError::Pipes)?;
        widen(&stdout);
        let files = [file.as_fd(), their_stdout.as_fd(), their_stderr.as_fd(), stdout.as_fd(), stderr.as_fd()];
        self.line.launch(&files[..launch_files()]);
        self.launches = self.launches.saturating_add(1);
        Ok(AgentPipes {
            stdout: Receiver::from_owned_fd(stdout.into()).map_err(SpawnError::Pipes)?,
            stderr: Receiver::from_owned_fd(stderr.into()).map_err(SpawnError::Pipes)?,
        })
    }

    /// Returns the lifeline's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns whether it has started more than one program.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.launches > 1
    }

    /// Returns the CPU time that the agent's tree has used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let tree = i32::try_from(self.process.id()).map(descendants).unwrap_or_default();
        Duration::from_millis(tree.iter().map(cpu_ticks).sum::<u64>() * 10)
    }

    /// Returns whether it can start another program: nothing that it started is left, it is alive, and it is not
    /// stopped.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let changed = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.line.is_free() && matches!(waitid(WaitId::Pid(Pid::from_child(&self.process)), changed), Ok(None))
    }

    /// Ends the lifeline, and every process under it, by closing its socket. A stopped lifeline cannot react, and is
    /// killed.
    pub fn end(mut self) {
        let given_up = self.line.given_up().is_some();
        drop(self.line);
        // A lifeline that not even SIGKILL ends is left to init.
        if given_up {
            let _ = self.process.try_wait();
            return;
        }
        let pid = i32::try_from(self.process.id()).unwrap_or(0);
        wait_for_end(&self.process, || {
            if let Some(lifeline) = process(pid).filter(|lifeline| lifeline.stopped) {
                kill(&lifeline, Signal::KILL);
            }
        });
        let _ = self.process.wait();
    }
}

/// Returns how many of these files a lifeline needs to start a program: the description, the writing ends of both
/// pipes, their reading ends.
pub(super) fn launch_files() -> usize {
    match containment() {
        Containment::Whole => 3,
        Containment::Lineage => MOST_FILES,
    }
}

/// Starts a lifeline, and returns it with our end of its socket. It does not run in the directory of its programs: in a
/// static binary, a change of directory here would make std use fork, which copies our memory map, instead of
/// `posix_spawn`.
#[expect(clippy::disallowed_methods, reason = "this module starts processes")]
pub(super) fn spawn_lifeline(program: &Path, hold: Option<BorrowedFd<'_>>) -> Result<(Child, UnixStream), SpawnError> {
    let (control, theirs) = UnixStream::pair().map_err(SpawnError::Pipes)?;
    control.set_nonblocking(true).map_err(SpawnError::Pipes)?;
    let mut command = Command::new(program);
    command
        .arg0("forkhestra")
        .arg("__lifeline")
        .arg(std::process::id().to_string())
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    // Passed as standard output, so that the lifeline holds it from the start. A file that is sent over the socket
    // would belong to no process until it is read.
    let output = hold.map(|file| file.try_clone_to_owned()).transpose().map_err(SpawnError::Pipes)?;
    command.stdout(output.map_or_else(Stdio::null, Stdio::from));
    let process = command.stderr(Stdio::null()).spawn().map_err(SpawnError::Lifeline)?;
    Ok((process, control))
}
