//! Stops processes of a run that was killed together with its lifelines, before anything else works in its directory.

use crate::cli::options::Common;
use crate::cli::respond::broken_journal;
use crate::cli::runs::history::is_alive;
use crate::engine::{At, Event, EventKind, Leftover};
use crate::journal::{Journal, token_digest};
use crate::proc::end_old;
use crate::report::{Paint, print_error};
use crate::source::Diagnostic;
use crate::world::World;

/// Stops and reports what the last run in a root has left running, if it was interrupted: two agents in one directory
/// would undo each other's work.
pub(in crate::cli) fn end_last(world: &World, common: &Common, journal: &Journal) -> Result<(), Diagnostic> {
    let last = journal.runs().last().map_err(|error| broken_journal(&error))?;
    let lease = journal.lease().map_err(|error| broken_journal(&error))?;
    // A run whose lock was removed continues, and notices this process by itself.
    let is_at_work = |run: i64| lease.is_some_and(|lease| lease.run == run && is_alive(lease));
    let Some(last) = last.filter(|last| last.began && last.outcome.is_none() && !is_at_work(last.id)) else {
        return Ok(());
    };
    let events = journal.events().of(last.id).map_err(|error| broken_journal(&error))?;
    let ended = survivors(journal, last.id, &events)?;
    if !ended.is_empty() && !common.quiet {
        let words = format!(
            "! run {} was killed and had left these processes running, now stopped: {}",
            last.id,
            names(&ended)
        );
        print_error(&format!("{}\n", Paint::for_stderr(world).warn(&words)));
    }
    Ok(())
}

fn names(processes: &[Leftover]) -> String {
    processes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Stops the processes of attempts that were running, if even their lifelines were killed.
pub(in crate::cli) fn survivors(journal: &Journal, run: i64, events: &[Event]) -> Result<Vec<Leftover>, Diagnostic> {
    let mut open: Vec<&At> = Vec::new();
    let mut agents: Vec<(&At, (i32, u64))> = Vec::new();
    for event in events {
        match &event.event {
            EventKind::AttemptPlanned { at, .. } => open.push(at),
            EventKind::AttemptStarted { at, pid, start_time } => agents.push((at, (*pid, *start_time))),
            EventKind::AttemptFinished { at, .. } => open.retain(|planned| *planned != at),
            _ => {}
        }
    }
    let mut ended = Vec::new();
    for at in open {
        let agent = agents.iter().rev().find_map(|(started, agent)| (*started == at).then_some(*agent));
        let token = journal.runs().token_of(run, at.step, at.attempt).map_err(|error| broken_journal(&error))?;
        let is_ours = |variable: &[u8]| match (variable.strip_prefix(b"FORKHESTRA_TOKEN="), &token) {
            (Some(value), Some(token)) => token_digest(value) == *token,
            _ => false,
        };
        ended.extend(end_old(&is_ours, agent).map_err(|alive| survived(run, &alive))?);
    }
    Ok(ended)
}

fn survived(run: i64, alive: &[Leftover]) -> Diagnostic {
    Diagnostic::error(
        "resume/survivors",
        format!("processes that run {run} left running cannot be stopped: {}", names(alive)),
    )
    .help("stop them yourself, then try again; two agents in one directory would undo each other's work")
}
