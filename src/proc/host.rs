//! The host's side of a lifeline: start it, give it programs to start, hear its reports, give it orders.

use super::launch::Launch;
use super::line::Line;
use super::table::{descendants, process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// What the pipe of an agent's stdout may hold, in bytes.
const PIPE: usize = 512 << 10;

/// How often it is looked whether a lifeline that is to go is stopped.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Why not even the lifeline could be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No pipes or sockets.
    #[error("cannot make the pipes of an agent: {0}")]
    Pipes(#[source] io::Error),
    /// No process.
    #[error("cannot start an agent: {0}")]
    Lifeline(#[source] io::Error),
}

impl SpawnError {
    /// Whether the machine had no room for it, which time may change.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let (Self::Pipes(error) | Self::Lifeline(error)) = self;
        error.raw_os_error().is_some_and(is_busy)
    }
}

/// Whether an error says that the machine has no processes, descriptors or memory left just now (fork(2), execve(2), pipe(2)).
#[must_use]
pub fn is_busy(errno: i32) -> bool {
    use rustix::io::Errno;
    [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE].iter().any(|busy| busy.raw_os_error() == errno)
}

/// A lifeline that we have started. It starts one program after another, and ends all that each has left before the next.
#[derive(Debug)]
pub struct LifelineHandle {
    process: Child,
    /// What it says and is told.
    pub line: Line,
    launches: u32,
}

/// What a program writes to.
#[derive(Debug)]
pub struct AgentPipes {
    /// What it prints.
    pub stdout: Receiver,
    /// What it prints on the side.
    pub stderr: Receiver,
}

impl LifelineHandle {
    /// Starts one: `program` is our own, which becomes the lifeline. It holds a file as long as it lives, also when we are gone: the
    /// run's lock. Must be called in a runtime.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(program: &Path, hold: Option<BorrowedFd<'_>>) -> Result<Self, SpawnError> {
        let (process, control) = spawn_lifeline(program, hold)?;
        let line = Line::new(control, process.id()).map_err(SpawnError::Pipes)?;
        Ok(Self { process, line, launches: 0 })
    }

    /// Starts a program, the earlier one being over and swept. One that cannot be started is reported as
    /// [`super::LifelineReport::Failed`]. Must be called in a runtime.
    ///
    /// # Errors
    /// When there are no pipes. A lifeline that is gone is reported as such.
    pub fn launch(&mut self, launch: &Launch<'_>) -> Result<AgentPipes, SpawnError> {
        let file = launch.file().map_err(SpawnError::Pipes)?;
        let (stdout, their_stdout) = io::pipe().map_err(SpawnError::Pipes)?;
        let (stderr, their_stderr) = io::pipe().map_err(SpawnError::Pipes)?;
        widen(&stdout);
        self.line.launch([file.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()]);
        self.launches = self.launches.saturating_add(1);
        Ok(AgentPipes {
            stdout: Receiver::from_owned_fd(stdout.into()).map_err(SpawnError::Pipes)?,
            stderr: Receiver::from_owned_fd(stderr.into()).map_err(SpawnError::Pipes)?,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Whether it has started more than one program.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.launches > 1
    }

    /// The CPU time that the agent's tree has used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let tree = i32::try_from(self.process.id()).map(descendants).unwrap_or_default();
        Duration::from_millis(tree.iter().map(|process| process.cpu_ticks).sum::<u64>() * 10)
    }

    /// Whether it can be given another program: it holds nothing, lives, and nobody has stopped it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let changed = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.line.is_free() && matches!(waitid(WaitId::Pid(Pid::from_child(&self.process)), changed), Ok(None))
    }

    /// Ends it, with all that it holds: its socket is closed. One that is stopped does nothing about that, and is killed.
    pub fn end(mut self) {
        let given_up = self.line.given_up().is_some();
        drop(self.line);
        // One that not even SIGKILL ends is left to init.
        if given_up {
            let _ = self.process.try_wait();
            return;
        }
        if let Ok(held) = pidfd_open(Pid::from_child(&self.process), PidfdFlags::empty()) {
            while !matches!(poll(&mut [PollFd::new(&held, PollFlags::IN)], Some(&LOOK)), Ok(1..)) {
                let pid = i32::try_from(self.process.id()).unwrap_or(0);
                if process(pid).is_some_and(|lifeline| lifeline.stopped) {
                    let _ = self.process.kill();
                }
            }
        }
        let _ = self.process.wait();
    }
}

/// Starts a lifeline; with our end of its socket. It is not in the folder of its programs: a change of it here would make a spawn a fork,
/// which copies our memory's map.
#[expect(clippy::disallowed_methods, reason = "the spawner")]
pub(super) fn spawn_lifeline(program: &Path, hold: Option<BorrowedFd<'_>>) -> Result<(Child, UnixStream), SpawnError> {
    let (control, theirs) = UnixStream::pair().map_err(SpawnError::Pipes)?;
    control.set_nonblocking(true).map_err(SpawnError::Pipes)?;
    let mut command = Command::new(program);
    command.arg0("forkhestra").arg("__lifeline").stdin(Stdio::from(OwnedFd::from(theirs)));
    // As its standard output, so that it holds it from its first moment on: a file that is sent is nobody's until it is read.
    let output = hold.map(|file| file.try_clone_to_owned()).transpose().map_err(SpawnError::Pipes)?;
    command.stdout(output.map_or_else(Stdio::null, Stdio::from));
    let process = command.stderr(Stdio::null()).spawn().map_err(SpawnError::Lifeline)?;
    Ok((process, control))
}

/// Makes a pipe hold more, so that a busy agent and we take turns less often. Best effort: the system may grant less.
pub(super) fn widen(pipe: &io::PipeReader) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}
