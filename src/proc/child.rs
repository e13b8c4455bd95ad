//! The host's side of a lifeline: start it, hear its reports, give it orders.

use super::line::{Line, send_to_hold};
use super::table::descendants;
use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;

/// What the pipe of an agent's stdout may hold, in bytes.
const PIPE: usize = 512 << 10;

/// Everything that a program is started with.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Our own program, which becomes the lifeline.
    pub lifeline: &'a Path,
    /// The program, an absolute path.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub folder: &'a Path,
    /// The file on its standard input; none for nothing at all.
    pub stdin: Option<&'a Path>,
    /// What the lifeline holds as long as it lives, also when we are gone: the run's lock.
    pub hold: Option<BorrowedFd<'a>>,
}

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

/// A running attempt.
#[derive(Debug)]
pub struct Child {
    lifeline: std::process::Child,
    /// What its lifeline says and is told.
    pub line: Line,
    /// What the agent prints.
    pub stdout: Receiver,
    /// What it prints on the side.
    pub stderr: Receiver,
}

impl Child {
    /// Starts a program under a lifeline. Must be called in a runtime.
    ///
    /// # Errors
    /// When the lifeline cannot be started; a program that cannot is reported as [`super::LifelineReport::Failed`].
    #[expect(clippy::disallowed_methods, reason = "the spawner")]
    pub fn start(launch: &Launch<'_>) -> Result<Self, SpawnError> {
        let (control, theirs) = StdStream::pair().map_err(SpawnError::Pipes)?;
        control.set_nonblocking(true).map_err(SpawnError::Pipes)?;
        if let Some(file) = launch.hold {
            send_to_hold(&control, file).map_err(SpawnError::Pipes)?;
        }
        let (stdout, their_stdout) = io::pipe().map_err(SpawnError::Pipes)?;
        let (stderr, their_stderr) = io::pipe().map_err(SpawnError::Pipes)?;
        let stdin = launch.stdin.map_or_else(|| "-".into(), |path| path.as_os_str().to_os_string());
        widen(&stdout);
        // The lifeline itself goes to the folder: a change of it here would make a spawn a fork, which copies our memory's map.
        let lifeline = Command::new(launch.lifeline)
            .arg0("forkhestra")
            .arg("__lifeline")
            .arg(launch.folder)
            .arg(stdin)
            .arg(launch.program)
            .args(&launch.arguments)
            .env_clear()
            .envs(launch.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(their_stdout))
            .stderr(Stdio::from(their_stderr))
            .spawn()
            .map_err(SpawnError::Lifeline)?;
        let line = Line::new(control, lifeline.id(), launch.hold.is_some()).map_err(SpawnError::Pipes)?;
        Ok(Self {
            lifeline,
            line,
            stdout: Receiver::from_owned_fd(stdout.into()).map_err(SpawnError::Pipes)?,
            stderr: Receiver::from_owned_fd(stderr.into()).map_err(SpawnError::Pipes)?,
        })
    }

    /// The lifeline's process id.
    #[must_use]
    pub fn lifeline(&self) -> u32 {
        self.lifeline.id()
    }

    /// The CPU time that the agent's tree has used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let tree = i32::try_from(self.lifeline.id()).map(descendants).unwrap_or_default();
        Duration::from_millis(tree.iter().map(|process| process.cpu_ticks).sum::<u64>() * 10)
    }

    /// Reaps the lifeline. To be called after [`super::LifelineReport::Swept`] or [`super::LifelineReport::Gone`], when it is about to exit; a lifeline that
    /// still lives ends its tree and itself, because its socket is closed first.
    pub fn reap(mut self) {
        let given_up = self.line.given_up().is_some();
        drop(self.line);
        // One that not even SIGKILL ends is left to init.
        if given_up {
            let _ = self.lifeline.try_wait();
        } else {
            let _ = self.lifeline.wait();
        }
    }
}

/// Makes a pipe hold more, so that a busy agent and we take turns less often. Best effort: the system may grant less.
fn widen(pipe: &io::PipeReader) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}
