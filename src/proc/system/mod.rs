//! What only the operating system can tell or do: the process table, signals to exactly one process, orphans. One file
//! for each system, with the same functions; everything else in this program is the same on all of them.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("forkhestra runs on Linux and on macOS; on Windows, build it in WSL2");

#[cfg(target_os = "linux")]
use linux as this;
#[cfg(target_os = "macos")]
use macos as this;

use crate::engine::Containment;
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

pub(super) use this::{
    InputFile, LISTEN_CLOEXEC, OwnChildren, SEND_QUIETLY, SHOWS_NAMES, StopSignal, adopt_orphans, all, children,
    cpu_ticks, has_pidfds, is_of_our_program, keep_awake, kill, lists_children, locks, name_ourselves, open_paths,
    own_files, pipe_end, process, spawn, wait_for_end, widen, write_ends,
};

/// The most values that are collected from ancestors.
const DEEPEST: usize = 1_000;

/// One process.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    pub(super) name: String,
    pub(super) zombie: bool,
    /// Whether it is stopped or traced.
    pub(super) stopped: bool,
    /// Distinguishes processes that had the same number: on Linux, when it started, in clock ticks since boot; on
    /// macOS, the same as `id`.
    pub(super) start_time: u64,
    /// Never given to another process while the machine is up.
    pub(super) id: u64,
    /// The `id` of the process that forked this one, as far as the system still knows it.
    pub(super) forked_by: Option<u64>,
}

/// Identifies the writing end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PipeEnd(pub(super) u64, pub(super) u64);

/// Returns how the processes of an agent are found again after they have left it.
#[must_use]
pub fn containment() -> Containment {
    // The weaker way can be tested where the stronger one is available.
    #[expect(clippy::disallowed_methods, reason = "a seam of the tests, also in a lifeline, which has no world")]
    let weaker = cfg!(feature = "test-fakes") && std::env::var_os("FORKHESTRA_TEST_NO_SUBREAPER").is_some();
    if weaker { Containment::Lineage } else { this::CONTAINMENT }
}

/// Returns what tells a living process from others that had its number (`start_time` of a process).
#[must_use]
pub fn start_time(pid: i32) -> Option<u64> {
    process(pid).filter(|process| !process.zombie).map(|process| process.start_time)
}

/// Returns the values that a variable has in the environments of our ancestor processes, the nearest first.
#[must_use]
pub fn inherited(name: &str) -> Vec<OsString> {
    let mut values = Vec::new();
    for at in ancestors() {
        let environment = this::environment(at);
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

/// Returns all descendants of a process, without the process itself.
pub(super) fn descendants(ancestor: i32) -> Vec<Process> {
    let (mut found, mut open) = (Vec::new(), children(ancestor));
    while let Some(pid) = open.pop() {
        open.extend(children(pid));
        found.extend(process(pid));
    }
    found
}

/// Returns whether a process has the argument `wanted`.
pub(super) fn has_argument(pid: i32, wanted: &[u8]) -> bool {
    this::arguments(pid).split(|byte| *byte == 0).any(|word| word == wanted)
}

/// Returns whether the environment that a process was started with has a variable `NAME=value` that `is_ours` accepts.
pub(super) fn has_variable(pid: i32, is_ours: &dyn Fn(&[u8]) -> bool) -> bool {
    this::environment(pid).split(|&byte| byte == 0).any(is_ours)
}

/// Converts a pid to the type that system calls take; `None` for 0.
pub(super) fn pid(raw: i32) -> Option<Pid> {
    Pid::from_raw(raw)
}

/// Sends a signal to each of these processes.
pub(super) fn signal_all<'a>(processes: impl IntoIterator<Item = &'a Process>, signal: Signal) {
    for process in processes {
        kill(process, signal);
    }
}

/// Creates a file without a name that contains these bytes.
pub(in crate::proc) fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = this::input_file()?;
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_stand_in_the_table_and_our_parent_lists_us() {
        let me = process(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(!me.zombie && me.start_time > 0);
        assert!(children(me.parent).contains(&me.pid));
        let table = all();
        assert_eq!(table[&me.pid].forked_by, table.get(&me.parent).map(|parent| parent.id));
        assert!(has_variable(me.pid, &|variable| variable == b"CARGO_PKG_NAME=forkhestra"));
    }

    #[test]
    fn the_writer_of_a_pipe_is_found() {
        let me = i32::try_from(std::process::id()).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let end = pipe_end(&writer).unwrap();
        assert!(write_ends(me).contains(&end));
        drop(writer);
        assert!(!write_ends(me).contains(&end), "the reader is not the writer");
        drop(reader);
    }
}
