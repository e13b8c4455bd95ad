//! Starts a program without copying our memory table: the child borrows our memory until it executes the program
//! (`CLONE_VM | CLONE_VFORK`, clone(2)). `posix_spawn(3)` does the same, but cannot set the parent death signal.

use crate::engine::Containment;
use crate::proc::launch::ReceivedLaunch;
use crate::proc::system::containment;
use libc::{c_char, c_int, c_void, pid_t, sigset_t};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::process::{Pid, WaitOptions, getpid, waitpid};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// The child's stack, in bytes, without what it may need for the arguments.
const STACK: usize = 64 << 10;
/// The highest number of a signal that is not a real-time signal.
const LAST_SIGNAL: c_int = 31;

/// What the child reads. Everything that it points to lives until the child has executed the program or exited.
struct Child {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    folder: *const c_char,
    /// Its standard input, output and error; none of them is one of these yet.
    files: [c_int; 3],
    parent: pid_t,
    /// Whether it is killed when its parent dies.
    dies_with_parent: bool,
    no_signals: sigset_t,
    /// The errno of the call that failed, written by the child.
    error: c_int,
}

/// Starts a program. It leads its own process group; signals have their default effect.
///
/// # Errors
/// When the process cannot be created, or one of the calls before the program's first instruction fails.
#[expect(unsafe_code, reason = "a process that shares our memory until it executes another program")]
pub(in crate::proc) fn spawn(launch: &ReceivedLaunch<'_>, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Result<Pid> {
    let list = |words: &[&CStr]| -> Vec<*const c_char> {
        words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect()
    };
    let arguments = list(&[&[launch.program][..], &launch.arguments].concat());
    let environment = list(&launch.environment);
    // A shell script without a `#!` line may be given to /bin/sh, with a copy of the arguments on the stack.
    let mut stack: Vec<MaybeUninit<u128>> = Vec::new();
    stack.try_reserve_exact(STACK / size_of::<u128>() + arguments.len())?;
    let mut child = Child {
        program: launch.program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        folder: launch.folder.as_ptr(),
        files: [stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()],
        parent: getpid().as_raw_nonzero().get(),
        dies_with_parent: containment() == Containment::Whole,
        no_signals: *SigSet::empty().as_ref(),
        error: 0,
    };
    // Otherwise one of our handlers could run in the child, and change our memory.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    // SAFETY: this process has one thread, which sleeps until the child has executed the program or exited. The child
    // has a stack of its own, and `run` only makes system calls, and writes to `error`.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(run, top.cast(), libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD, (&raw mut child).cast())
    };
    let failed = io::Error::last_os_error();
    before.thread_set_mask()?;
    let Some(pid) = Pid::from_raw(pid.max(0)) else { return Err(failed) };
    // SAFETY: the child no longer writes to it.
    match unsafe { (&raw const child.error).read_volatile() } {
        0 => Ok(pid),
        error => {
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// What the child does. It never returns.
#[expect(unsafe_code, reason = "only system calls, which allocate nothing")]
extern "C" fn run(child: *mut c_void) -> c_int {
    // SAFETY: the parent passes a valid pointer, and sleeps.
    unsafe {
        let child = child.cast::<Child>();
        (&raw mut (*child).error).write_volatile(execute(&*child));
        libc::_exit(127)
    }
}

/// Executes the program. Returns only if a call fails, with its errno.
#[expect(unsafe_code, reason = "only system calls, which allocate nothing")]
unsafe fn execute(child: &Child) -> c_int {
    // SAFETY: all pointers are valid, because the parent sleeps.
    unsafe {
        for (number, file) in (0..).zip(child.files) {
            if libc::dup2(file, number) < 0 {
                return errno();
            }
        }
        if libc::chdir(child.folder) < 0 || libc::setpgid(0, 0) < 0 {
            return errno();
        }
        // Before signals are let in again: a handler would run in our parent's memory.
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        for signal in 1..=LAST_SIGNAL {
            let mut now: libc::sigaction = std::mem::zeroed();
            let is_known = libc::sigaction(signal, ptr::null(), &raw mut now) == 0;
            let is_handled = now.sa_sigaction != libc::SIG_DFL && now.sa_sigaction != libc::SIG_IGN;
            // Rust programs ignore SIGPIPE, other programs expect it.
            if is_known && (is_handled || signal == libc::SIGPIPE) {
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const child.no_signals, ptr::null_mut()) < 0 {
            return errno();
        }
        // If the parent is killed together with its host, so are we.
        if child.dies_with_parent && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return errno();
        }
        if libc::getppid() != child.parent {
            return libc::ESRCH;
        }
        libc::execvpe(child.program, child.arguments, child.environment);
        errno()
    }
}

#[expect(unsafe_code, reason = "errno")]
unsafe fn errno() -> c_int {
    // SAFETY: the location is that of our parent's only thread, which sleeps.
    unsafe { *libc::__errno_location() }
}
