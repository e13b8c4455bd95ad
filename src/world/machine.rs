//! The machine that we run on.

/// The machine's name (uname(2), `nodename`), as far as it can be part of a line of text.
pub(super) fn name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.chars().filter(|next| next.is_ascii_graphic() && !matches!(next, '/' | '@')).take(64).collect()
}

/// The system: its name, its release and its machine type (uname(2)).
pub(super) fn system() -> String {
    let system = rustix::system::uname();
    let part = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    format!("{} {} {}", part(system.sysname()), part(system.release()), std::env::consts::ARCH)
}

/// The clock that includes the machine's sleep, and that nobody can set.
#[cfg(not(target_os = "macos"))]
pub(super) const UPTIME: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// On macOS, this clock includes sleep (`clock_gettime(3)`).
#[cfg(target_os = "macos")]
pub(super) const UPTIME: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Whether this process ignores a signal (proc(5), `SigIgn`).
#[cfg(not(target_os = "macos"))]
pub(super) fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Whether this process ignores a signal (sigaction(2)).
#[cfg(target_os = "macos")]
pub(super) fn ignores(signal: i32) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the current one, a structure of integers that was zeroed.
    #[expect(unsafe_code, reason = "sigaction")]
    unsafe {
        libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
