//! Our own program once more, in the background: it outlives the terminal and the process that started it.
#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

use super::others::lock_of;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process that we have started in the background.
#[derive(Debug)]
pub struct BackgroundProcess(Child);

impl BackgroundProcess {
    /// Starts a program with these arguments. Its standard error is the log, its standard output is thrown away, and
    /// its standard input is ours only with `reads_stdin`. It has to call [`leave_session`] itself.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn start(program: &Path, arguments: &[OsString], log: File, reads_stdin: bool) -> io::Result<Self> {
        let stdin = if reads_stdin { Stdio::inherit() } else { Stdio::null() };
        Command::new(program).args(arguments).stdin(stdin).stdout(Stdio::null()).stderr(log).spawn().map(Self)
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap_or(0)
    }

    /// Returns the exit code if the process has ended; a signal counts as 128 and its number.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn exit_code(&mut self) -> io::Result<Option<i32>> {
        use std::os::unix::process::ExitStatusExt;
        let ended = self.0.try_wait()?;
        Ok(ended.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))))
    }

    /// Asks the process to end (SIGTERM), and waits until it has.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn end(&mut self) -> io::Result<()> {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid()) {
            // A process that has just exited has nothing left to end.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        self.0.wait().map(drop)
    }

    /// Returns the root whose lock the process has open, once it has.
    #[must_use]
    pub fn root(&self) -> Option<PathBuf> {
        lock_of(self.pid())
    }
}

/// Makes us the leader of a new session without a terminal (setsid(2)): what happens to the old one no longer matters.
///
/// # Errors
/// When we already lead a process group.
pub fn leave_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}
