//! Settings of our own process: open files, orphans and signals.

use super::system::{self, StopSignal, containment};
use crate::engine::Containment;
use nix::sys::signal::{SigSet, Signal as Number};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::process::{Child, Command};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Returns how many files we may have open at once. If that is less than `wanted`, it is first raised to `wanted`, or
/// as far as the system allows (setrlimit(2)). Returns `u64::MAX` if nothing had to be raised.
#[must_use]
pub fn open_files(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current.filter(|soft| *soft < wanted) else { return u64::MAX };
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    let new = Rlimit { current: Some(raised), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, new).is_ok() { raised } else { soft }
}

/// Makes a write to a file that may not grow any further fail with an ordinary error. By default, `SIGXFSZ` would kill
/// us (setrlimit(2)).
///
/// # Errors
/// When the signal handler cannot be registered.
pub fn survive_full_files() -> io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).map(drop)
}

/// Asks ourselves to end in order, as a person does with kill(1).
pub fn end_ourselves() {
    // A process may always send itself a signal (kill(2)).
    let _ = kill_process(getpid(), Signal::TERM);
}

/// Makes us adopt the orphans of our tree if their lifeline is killed. A living lifeline keeps its own.
pub fn adopt_orphans() {
    if containment() == Containment::Whole {
        // Best effort: without it, orphans are found by the token in their environment.
        let _ = system::adopt_orphans();
    }
}

/// Keeps files that were open when we were started, except the three standard streams, from the programs that we start.
/// An inherited directory outside of a sandbox would be a way out of it.
pub(super) fn keep_open_files_to_ourselves() {
    for number in system::own_files().into_iter().filter(|number| *number > 2) {
        // SAFETY: the descriptor was open a moment ago. For a closed one, the call does nothing and returns EBADF.
        #[expect(unsafe_code, reason = "descriptors that no value here owns")]
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
    }
}

/// Holds SIGTSTP (Ctrl-Z) back while this value lives, so that our agents can be stopped first. The signal stays
/// pending and is never read: a SIGCONT that comes before we stop cancels it in the kernel (signal(7)). So no SIGCONT
/// is lost, however quickly it follows.
#[derive(Debug)]
pub struct StopRequests(StopSignal);

impl StopRequests {
    /// Holds the signal back from now on, in this thread and in those that it starts later.
    ///
    /// # Errors
    /// When the signal cannot be blocked or watched.
    pub fn listen() -> io::Result<Self> {
        stop_signal().thread_block()?;
        Ok(Self(StopSignal::watch(&stop_signal())?))
    }

    /// Registers this value with the async runtime: it is readable while a stop is pending.
    ///
    /// # Errors
    /// When the descriptor cannot be registered.
    #[expect(unsafe_code, reason = "tokio has no safe call for descriptors of other types")]
    pub fn watched(self) -> io::Result<AsyncFd<Self>> {
        // SAFETY: the descriptor is valid, and it is neither closed nor replaced before this value is dropped.
        Ok(unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) }?)
    }

    /// Returns whether a stop is pending that no SIGCONT has canceled.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.is_pending()
    }

    /// Lets a pending stop happen. Returns at once if there is none, or if we are in an orphaned process group, which
    /// no shell could continue (the default action of SIGTSTP in POSIX). Must be called in the thread that listens.
    pub fn obey(&self) {
        // Neither call fails with a valid mask.
        let _ = stop_signal().thread_unblock();
        let _ = stop_signal().thread_block();
    }
}

impl AsRawFd for StopRequests {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Drop for StopRequests {
    /// Restores the usual effect of Ctrl-Z.
    fn drop(&mut self) {
        let _ = stop_signal().thread_unblock();
    }
}

/// Leaves Ctrl-Z to the thread that listens to it. For helper threads.
pub(super) fn leave_stops_to_others() {
    // The call does not fail with a valid mask.
    let _ = stop_signal().thread_block();
}

/// Starts a program that can be stopped: otherwise it would inherit the signal that we hold back.
pub(super) fn spawn_stoppable(command: &mut Command) -> io::Result<Child> {
    let mask = SigSet::thread_get_mask()?;
    stop_signal().thread_unblock()?;
    let child = command.spawn();
    mask.thread_set_mask()?;
    child
}

/// Allows this process to be stopped, even if its parent held the signal back.
pub(super) fn be_stoppable() -> io::Result<()> {
    Ok(stop_signal().thread_unblock()?)
}

fn stop_signal() -> SigSet {
    SigSet::from(Number::SIGTSTP)
}
