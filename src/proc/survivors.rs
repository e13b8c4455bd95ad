//! Processes of an attempt whose lifeline is gone: found by the token in their environment.

use super::table::{all, has_environment, pid};
use crate::run::Leftover;
use rustix::process::{Signal, kill_process};

/// Kills every process that was given `NAME=value` in its environment, until none is left; says which they were.
/// A fork bomb is outrun only as far as the scheduler lets us: after a hundred sweeps it is left to the user.
#[must_use]
pub fn end_survivors(entry: &str) -> Vec<Leftover> {
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let mut ended: Vec<Leftover> = Vec::new();
    for _ in 0..100 {
        let alive: Vec<_> = all()
            .into_values()
            .filter(|process| process.pid != me && !process.zombie && has_environment(process.pid, entry.as_bytes()))
            .collect();
        if alive.is_empty() {
            break;
        }
        for process in alive {
            if let Some(pid) = pid(process.pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
            if ended.iter().all(|known| known.pid != process.pid) {
                ended.push(Leftover { pid: process.pid, name: process.name });
            }
        }
        std::thread::yield_now();
    }
    ended
}
