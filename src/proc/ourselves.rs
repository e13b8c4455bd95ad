//! What we do to our own process.

use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, Rlimit, getpid, getrlimit, set_child_subreaper, setrlimit};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::process::{Child, Command};
use std::sync::Arc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How many files we may have open at once; raised as far as the system lets us where that is less than so many (setrlimit(2)).
#[must_use]
pub fn open_files(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let Some(soft) = limit.current.filter(|soft| *soft < wanted) else { return u64::MAX };
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    let new = Rlimit { current: Some(raised), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, new).is_ok() { raised } else { soft }
}

/// A file that may grow no more is an error that is said, and not our death (`SIGXFSZ`, setrlimit(2)).
///
/// # Errors
/// When the operating system does not let us listen.
pub fn survive_full_files() -> io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).map(drop)
}

/// From now on orphans of our tree come to us, should their lifeline be killed; a living lifeline keeps its own.
pub fn adopt_orphans() {
    // Best effort: without it the token in the environment is what finds them.
    let _ = set_child_subreaper(Some(getpid()));
}

/// What was open when we were started, beside the three standard streams, is not handed to the programs that we start: a folder outside
/// of a sandbox among it would be a way out.
pub(super) fn keep_open_files_to_ourselves() {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: the number was open a moment ago; of one that is not the call says EBADF, and does nothing.
        #[expect(unsafe_code, reason = "descriptors that nobody here owns")]
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
    }
}

/// SIGTSTP (Ctrl-Z) is held back while this lives, so that our agents can be stopped first. The signal stays pending, and is never
/// read: a SIGCONT that comes before we stop takes it back in the kernel (signal(7)), so that none is lost, however fast it follows.
#[derive(Debug)]
pub struct StopRequests(SignalFd);

impl StopRequests {
    /// Listens from now on, in this thread and those that it starts later.
    ///
    /// # Errors
    /// When the operating system does not let us.
    pub fn listen() -> io::Result<Self> {
        stop_signal().thread_block()?;
        Ok(Self(SignalFd::with_flags(&stop_signal(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// The same for the runtime: readable while a stop is pending.
    ///
    /// # Errors
    /// When the operating system does not let us.
    #[expect(unsafe_code, reason = "no safe call of tokio takes a descriptor that is none of its own kinds")]
    pub fn watched(self) -> io::Result<AsyncFd<Self>> {
        // SAFETY: the descriptor is valid, and it is neither closed nor replaced before this value is dropped.
        Ok(unsafe { AsyncFd::register_with_interest(self, Interest::READABLE) }?)
    }

    /// Whether we are to stop, and no SIGCONT has taken that back.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)), Ok(1..))
    }

    /// Lets a pending stop happen; returns at once when there is none, or when we are in an orphaned process group, which nobody
    /// could wake (the default action of SIGTSTP in POSIX). To be called in the thread that listens.
    pub fn obey(&self) {
        // Neither fails with a mask that is valid.
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
    /// From here on Ctrl-Z does what it does to everybody.
    fn drop(&mut self) {
        let _ = stop_signal().thread_unblock();
    }
}

/// Leaves Ctrl-Z to the thread that listens to it; for threads that help.
pub(super) fn leave_stops_to_others() {
    // A mask that is valid does not fail.
    let _ = stop_signal().thread_block();
}

/// Starts a program that can be stopped: it would inherit what we hold back.
pub(super) fn spawn_stoppable(command: &mut Command) -> io::Result<Child> {
    let mask = SigSet::thread_get_mask()?;
    stop_signal().thread_unblock()?;
    let child = command.spawn();
    mask.thread_set_mask()?;
    child
}

/// Lets this process be stopped, whatever its parent held back.
pub(super) fn be_stoppable() -> io::Result<()> {
    Ok(stop_signal().thread_unblock()?)
}

fn stop_signal() -> SigSet {
    SigSet::from(Number::SIGTSTP)
}
