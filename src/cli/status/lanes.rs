//! The lanes of a batch that is running, read from the journals of their workspaces.

use super::{at_work, run_status};
use crate::cli::runs::broken;
use crate::engine::{BatchState, RunRow, TaskPlace};
use crate::journal::Journal;
use crate::report::LaneStatus;
use crate::source::{Diagnostic, counted};
use crate::world::World;
use std::path::Path;

/// A batch as it is now.
pub(super) fn batch_of(journal: &Journal, run: i64) -> Result<Option<BatchState>, Diagnostic> {
    Ok(BatchState::of_events(&journal.events().of(run).map_err(broken)?))
}

/// What each lane works on.
pub(super) fn lanes(world: &World, state: &BatchState) -> Result<Vec<LaneStatus>, Diagnostic> {
    let mut lanes = Vec::new();
    for unit in state.units.values().filter(|unit| unit.at_work) {
        // A worker that is just beginning has no journal yet.
        let theirs = Journal::existing(Path::new(&unit.workspace)).ok().flatten();
        let active = theirs.as_ref().map(at_work).transpose()?.flatten();
        let status = match (&theirs, &active) {
            (Some(theirs), Some(active)) => Some(run_status(world, theirs, active)?),
            _ => None,
        };
        let title = unit.task.as_ref().and_then(|task| state.tasks.get(task)).map(|task| task.facts.title.clone());
        let (attempt, waits) = status.map_or((None, None), |status| (status.attempt, status.waits));
        let (task, try_number, choice) = (unit.task.clone(), unit.try_number, unit.is_choice);
        lanes.push(LaneStatus { lane: unit.lane, task, title, try_number, choice, run: unit.run, attempt, waits });
    }
    lanes.sort_by_key(|lane| lane.lane);
    Ok(lanes)
}

/// How many tasks of a batch are where, in words.
pub(super) fn progress(state: &BatchState) -> String {
    let mut counts = [("landed", 0), ("waiting to land", 0), ("running", 0), ("stopped", 0), ("waiting", 0)];
    for task in state.tasks.values() {
        let place = match task.place {
            TaskPlace::Landed(_) => 0,
            TaskPlace::Ready | TaskPlace::OnTrial => 1,
            TaskPlace::AtWork | TaskPlace::Trying => 2,
            TaskPlace::Stopped(_) | TaskPlace::Unsuccessful(_) => 3,
            TaskPlace::Waiting | TaskPlace::Interrupted | TaskPlace::Conflicted(_) | TaskPlace::Red => 4,
        };
        counts[place].1 += 1;
    }
    let words = counts.iter().filter(|(_, count)| *count > 0).map(|(word, count)| format!("{count} {word}"));
    format!("{}: {}", counted(state.tasks.len(), "task"), words.collect::<Vec<_>>().join(", "))
}

/// The journal of the workspace in which a run of a batch is working; `None` if no lane works on it.
pub(super) fn journal_of(journal: &Journal, row: &RunRow) -> Result<Option<Journal>, Diagnostic> {
    let Some(batch) = row.batch else { return Ok(None) };
    let Some(state) = batch_of(journal, batch)? else { return Ok(None) };
    let Some(unit) = state.units.values().find(|unit| unit.run == row.id && unit.at_work) else { return Ok(None) };
    Journal::existing(Path::new(&unit.workspace)).map_err(broken)
}
