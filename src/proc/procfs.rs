//! The process table, as Linux shows it in /proc (proc(5)).
#![expect(clippy::disallowed_methods, reason = "this module reads the process table")]

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The most values that are collected from ancestors.
const DEEPEST: usize = 1_000;

/// One process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) name: String,
    pub(super) zombie: bool,
    /// Whether it is stopped or traced.
    pub(super) stopped: bool,
    /// In clock ticks since boot.
    pub(super) start_time: u64,
    /// CPU time of the process and its reaped children, in clock ticks (hundredths of a second on Linux).
    pub(super) cpu_ticks: u64,
}

/// Returns what /proc shows of a process; `None` if it is gone.
pub(super) fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name is in parentheses, and may contain some itself.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat.get(close + 2..)?.split(' ').collect();
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        name: stat.get(open + 1..close)?.to_string(),
        zombie: matches!(*fields.first()?, "Z" | "X"),
        stopped: matches!(*fields.first()?, "T" | "t"),
        start_time: fields.get(19)?.parse().ok()?,
        cpu_ticks: fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum(),
    })
}

/// Returns when a living process started, in clock ticks since boot.
#[must_use]
pub fn start_time(pid: i32) -> Option<u64> {
    process(pid).filter(|process| !process.zombie).map(|process| process.start_time)
}

/// Returns the values that a variable has in the environments of our ancestor processes, the nearest first.
#[must_use]
pub fn inherited(name: &str) -> Vec<OsString> {
    let mut values = Vec::new();
    for at in ancestors() {
        let environment = fs::read(format!("/proc/{at}/environ")).unwrap_or_default();
        let entries = environment.split(|byte| *byte == 0);
        let mut found = entries.filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        values.extend(found.next().map(|value| OsStr::from_bytes(value).to_os_string()));
    }
    values
}

/// Returns our ancestor processes, the nearest first, with the first process of our PID namespace: in a sandbox, that
/// is the program that made the sandbox.
pub(super) fn ancestors() -> Vec<i32> {
    let mut found = Vec::new();
    let mut at = i32::try_from(std::os::unix::process::parent_id()).unwrap_or(0);
    while at >= 1 && found.len() < DEEPEST {
        found.push(at);
        at = process(at).map_or(0, |process| process.parent);
    }
    found
}

/// Returns the children of a process, from the kernel's own list if there is one, else by a walk over all processes.
pub(super) fn children(parent: i32) -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return children };
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // A kernel without CONFIG_PROC_CHILDREN.
            Err(_) => {
                return all().into_values().filter(|process| process.parent == parent).map(|child| child.pid).collect();
            }
        }
    }
    children
}

/// Returns all descendants of a process, without the process itself.
pub(super) fn descendants(ancestor: i32) -> Vec<Process> {
    let (mut found, mut open) = (Vec::new(), children(ancestor));
    while let Some(pid) = open.pop() {
        open.extend(children(pid));
        found.extend(process(pid));
    }
    found
}

/// Returns every process in the table.
pub(super) fn all() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

/// Returns whether a process has the argument `wanted`.
pub(super) fn has_argument(pid: i32, wanted: &[u8]) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|word| word == wanted)
}

/// Returns whether the environment that a process was started with has a variable `NAME=value` that `is_ours` accepts.
pub(super) fn has_variable(pid: i32, is_ours: &dyn Fn(&[u8]) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(is_ours)
}

/// Returns whether a process runs the same program as we do. One between fork and exec still does.
pub(super) fn is_of_our_program(pid: i32) -> bool {
    let program = |process: &str| fs::metadata(format!("/proc/{process}/exe")).map(|file| (file.dev(), file.ino()));
    matches!((program("self"), program(&pid.to_string())), (Ok(ours), Ok(theirs)) if ours == theirs)
}

/// Returns whether a process shares a lock on a file (`flock(2)`). /proc shows that for each of its open files
/// (`proc_pid_fdinfo(5)`).
pub(super) fn locks(pid: i32, file: &Metadata) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let is_it =
            fs::metadata(descriptor.path()).is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()));
        let number = descriptor.file_name();
        let said = || fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(number)).unwrap_or_default();
        is_it && said().lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
    })
}

/// Sends a signal to exactly this process: a pidfd refers to it, and its start time shows that the number was not
/// reused. A zombie is left alone.
pub(super) fn kill(target: &Process, signal: Signal) {
    let Some(number) = pid(target.pid).filter(|_| !target.zombie) else { return };
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(held) => {
            if process(target.pid).is_some_and(|now| now.start_time == target.start_time) {
                let _ = pidfd_send_signal(&held, signal);
            }
        }
        Err(rustix::io::Errno::SRCH) => {}
        // No descriptor is left, or the kernel has no pidfds: the number is better than nothing.
        Err(_) => {
            let _ = rustix::process::kill_process(number, signal);
        }
    }
}

/// Converts a pid to the type that system calls take; `None` for 0.
pub(super) fn pid(raw: i32) -> Option<Pid> {
    Pid::from_raw(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_stand_in_the_table_and_our_parent_lists_us() {
        let me = process(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(!me.zombie && me.start_time > 0);
        assert!(children(me.parent).contains(&me.pid));
        assert!(all().contains_key(&me.pid));
        assert!(has_variable(me.pid, &|variable| variable == b"CARGO_PKG_NAME=forkhestra"));
    }
}
