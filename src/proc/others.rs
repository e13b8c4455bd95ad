//! Other processes of forkhestra on this machine.

use super::survivors::is_lifeline;
use super::system::{all, ancestors, kill, open_paths, process};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The lock that a running process holds, relative to its root.
const LOCK: &str = ".forkhestra/lock";

/// Returns the roots in which a process that we may inspect is running: one that has the lock of a root open.
#[must_use]
pub fn roots_at_work() -> Vec<PathBuf> {
    let roots: BTreeSet<PathBuf> = all().into_keys().filter_map(lock_of).collect();
    roots.into_iter().collect()
}

/// Returns the root whose lock a process has open.
pub(super) fn lock_of(pid: i32) -> Option<PathBuf> {
    let mut files = open_paths(pid).into_iter();
    files.find(|file| file.ends_with(LOCK))?.ancestors().nth(2).map(PathBuf::from)
}

/// Whether an agent of the run in progress in a root has started us, directly or not. An agent can clear the
/// environment of a process and let its parents exit, but it stays below the lifeline, which holds the lock of the
/// root. If the lifeline is gone, it is below the host, with no other lifeline between them.
#[must_use]
pub fn is_below_agent(root: &Path) -> bool {
    let Ok(root) = fs::canonicalize(root) else { return false };
    let mut below_any = false;
    for pid in ancestors() {
        let lifeline = is_lifeline(pid);
        // A person's script may hold the lock, too.
        let host = || process(pid).is_some_and(|process| process.name == "forkhestra");
        if (lifeline || !below_any && host()) && lock_of(pid).as_deref() == Some(&root) {
            return true;
        }
        below_any |= lifeline;
    }
    false
}

/// Asks a process to end (SIGTERM), if it is still the one that started at this time (in clock ticks since boot). A
/// process that is stopped, for example by Ctrl-Z, is continued, so that it can.
pub fn end_process(pid: i32, start_time: u64) {
    if let Some(target) = process(pid).filter(|found| found.start_time == start_time) {
        kill(&target, Signal::TERM);
        kill(&target, Signal::CONT);
    }
}
