//! Kills the processes of an attempt whose lifeline is gone. The token in their environment identifies them.

use super::lifeline::LIFELINE;
use super::system::{
    Process, SHOWS_NAMES, all, children, descendants, has_argument, has_variable, is_of_our_program, kill, locks, pid,
    process, start_time,
};
use crate::engine::Leftover;
use rustix::process::{Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid};
use std::fs::File;

/// Kills everything that an attempt without a lifeline left: our descendants, except `lifeline` and those of other
/// lifelines, every process of its session, and every process with a variable `NAME=value` that `is_ours` accepts.
/// Repeats until none is left, and returns the processes that it killed.
/// A fork bomb may fork faster than we kill: after a hundred sweeps, the rest is left to the user.
#[must_use]
pub fn end_survivors(is_ours: &dyn Fn(&[u8]) -> bool, lifeline: u32) -> Vec<Leftover> {
    let lifeline = i32::try_from(lifeline).unwrap_or(0);
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let mut ended: Vec<Leftover> = Vec::new();
    // A dying process closes its files before its children are reparented: they are ours only once it is dead.
    if let Some(dying) = pid(lifeline) {
        let _ = kill_process(dying, Signal::KILL);
        // A process in an uninterruptible system call does not react even to that.
        for _ in 0..ENDING_LOOKS {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            if !matches!(waitid(WaitId::Pid(dying), options), Ok(None)) {
                break;
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }
    let mut quiet_looks = 0;
    for _ in 0..100 {
        let mut alive = descendants(me);
        // Our other lifelines and their trees belong to other attempts.
        let others: Vec<i32> =
            children(me).into_iter().filter(|child| *child != lifeline && is_lifeline(*child)).collect();
        let theirs: Vec<i32> = others.iter().flat_map(|other| descendants(*other)).map(|process| process.pid).collect();
        alive.retain(|process| process.pid != lifeline && !process.zombie);
        alive.retain(|process| !others.contains(&process.pid) && !theirs.contains(&process.pid));
        let known = |pid: i32, alive: &[Process]| {
            pid == me || pid == lifeline || alive.iter().any(|process| process.pid == pid)
        };
        // Its agents were in the session that it led.
        let is_tagged =
            |process: &Process| lifeline > 0 && process.session == lifeline || has_variable(process.pid, is_ours);
        let tagged = all().into_values().filter(|process| !process.zombie && is_tagged(process));
        let tagged: Vec<_> = tagged.filter(|process| !known(process.pid, &alive)).collect();
        alive.extend(tagged);
        // The kernel's list may miss a child while another one exits: a single empty scan is not conclusive.
        quiet_looks = if alive.is_empty() { quiet_looks + 1 } else { 0 };
        for process in alive {
            kill(&process, Signal::KILL);
            if ended.iter().all(|known| known.pid != process.pid) {
                ended.push(Leftover { pid: process.pid, name: process.name, running: false });
            }
        }
        std::thread::yield_now();
        for orphan in
            children(me).into_iter().filter(|child| *child != lifeline && !others.contains(child)).filter_map(pid)
        {
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
        if quiet_looks == 2 {
            return ended;
        }
    }
    for left in &mut ended {
        left.running = start_time(left.pid).is_some();
    }
    ended
}

/// Returns whether a process is a lifeline. One that has just started does not have its name yet.
pub(super) fn is_lifeline(pid: i32) -> bool {
    let named = process(pid).is_some_and(|process| process.name == LIFELINE);
    named || has_argument(pid, b"__lifeline")
}

/// How often a lifeline that was killed is checked, until it is dead: for two seconds.
const ENDING_LOOKS: usize = 400;
/// How often the processes of a dead host are checked, until they are dead: for six seconds.
const LOOKS: usize = 1_200;
/// How long to wait between two checks.
const LOOK_PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// Kills what an earlier host, which is dead, left behind: the agent with this pid and start time, its descendants, and
/// every process with a variable that `is_ours` accepts. Its lifelines have normally killed most of them already.
/// Returns those that they had left.
///
/// # Errors
/// Returns the processes that are still alive after that.
pub fn end_old(is_ours: &dyn Fn(&[u8]) -> bool, agent: Option<(i32, u64)>) -> Result<Vec<Leftover>, Vec<Leftover>> {
    let mut ended: Vec<Leftover> = Vec::new();
    let leftover = |process: &Process| Leftover { pid: process.pid, name: process.name.clone(), running: false };
    for look in 0..LOOKS {
        let mut alive: Vec<Process> =
            all().into_values().filter(|process| has_variable(process.pid, is_ours)).collect();
        if let Some((pid, start_time)) = agent
            && let Some(agent) = process(pid).filter(|process| process.start_time == start_time)
        {
            alive.extend(descendants(pid));
            alive.push(agent);
        }
        alive.retain(|process| !process.zombie);
        if alive.is_empty() {
            return Ok(ended);
        }
        for process in &alive {
            kill(process, Signal::KILL);
            if ended.iter().all(|known| known.pid != process.pid) {
                ended.push(leftover(process));
            }
        }
        if look + 1 == LOOKS {
            return Err(alive.iter().map(leftover).collect());
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(ended)
}

/// Kills the processes that a dead host had forked to become lifelines. If they were stopped between fork and exec,
/// they hold its lock but have neither a lifeline's name nor its environment.
///
/// # Errors
/// When the file is no longer open.
pub fn end_forks(lock: &File) -> std::io::Result<()> {
    // Where lifelines have no names of their own, those that work could not be told apart.
    if !SHOWS_NAMES {
        return Ok(());
    }
    end_those_with(lock, |process| process.name != LIFELINE)
}

/// Kills all processes of our program that hold the lock of a dead host, including its lifelines: they were stopped, or
/// are unresponsive.
///
/// # Errors
/// When the file is no longer open.
pub fn end_holders(lock: &File) -> std::io::Result<()> {
    end_those_with(lock, |_| true)
}

fn end_those_with(lock: &File, is_meant: impl Fn(&Process) -> bool) -> std::io::Result<()> {
    let lock = lock.metadata()?;
    let ours = all().into_values().filter(|process| is_meant(process) && !process.zombie);
    for holder in ours.filter(|process| is_of_our_program(process.pid) && locks(process.pid, &lock)) {
        kill(&holder, Signal::KILL);
    }
    Ok(())
}
