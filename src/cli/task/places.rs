//! Where the work on each task is, as far as batches have worked on it.

use crate::cli::respond::broken_journal;
use crate::cli::runs::history::is_alive;
use crate::engine::{BatchState, TaskPlace};
use crate::journal::Journal;
use crate::source::Diagnostic;
use std::path::Path;

/// Where the work on each task is, according to all batches.
#[derive(Debug, Default)]
pub(super) struct TaskPlaces {
    /// Each batch with its number, the newest first.
    batches: Vec<(i64, BatchState)>,
    /// The batch that is running.
    running: Option<i64>,
}

impl TaskPlaces {
    /// Reads all batches of a journal.
    pub(super) fn of(journal: &Journal) -> Result<Self, Diagnostic> {
        let broken = |error| broken_journal(&error);
        let mut found = Self::default();
        for run in journal.runs().batches().map_err(broken)? {
            let state = BatchState::of_events(&journal.events().of(run).map_err(broken)?);
            found.batches.extend(state.map(|state| (run, state)));
        }
        let lease = journal.lease().map_err(broken)?.filter(|lease| is_alive(*lease));
        found.running = lease.map(|lease| lease.run);
        Ok(found)
    }

    /// The newest batch that worked on a task.
    fn batch(&self, id: &str) -> Option<&(i64, BatchState)> {
        self.batches.iter().find(|(_, state)| state.tasks.contains_key(id))
    }

    /// Where the work on a task is; `None` if no batch has begun it.
    pub(super) fn place_of(&self, id: &str) -> Option<String> {
        let (run, state) = self.batch(id)?;
        let runs = self.running == Some(*run);
        let task = state.tasks.get(id)?;
        let lane = state.units.values().find(|unit| unit.at_work && unit.task.as_deref() == Some(id));
        Some(match &task.place {
            TaskPlace::Waiting if task.turn == 0 => return None,
            TaskPlace::Waiting | TaskPlace::Conflicted(_) | TaskPlace::Red if runs => "sent back".into(),
            TaskPlace::AtWork if runs => match lane {
                Some(unit) => format!("in lane {} of batch {run}", unit.lane),
                None => format!("in batch {run}"),
            },
            TaskPlace::Trying if runs => {
                let units = state.units.values().filter(|unit| unit.at_work && unit.task.as_deref() == Some(id));
                let lanes: Vec<String> = units.map(|unit| unit.lane.to_string()).collect();
                let tries = format!("{} of {} tries accepted", task.accepted().len(), task.tries.len());
                let word = if lanes.len() == 1 { "lane" } else { "lanes" };
                if lanes.is_empty() { tries } else { format!("{tries}, in {word} {}", lanes.join(", ")) }
            }
            TaskPlace::OnTrial if runs => "being verified".into(),
            TaskPlace::Ready if runs => "waiting to land".into(),
            TaskPlace::Landed(commit) => format!("landed as {}", commit.get(..8).unwrap_or(commit)),
            _ => format!("not landed by batch {run}"),
        })
    }

    /// The directory with the work on a task, if it is there.
    pub(super) fn workspace(&self, id: &str) -> Option<String> {
        let (_, state) = self.batch(id)?;
        let unit = state.units.values().rev().find(|unit| unit.task.as_deref() == Some(id))?;
        Path::new(&unit.workspace).is_dir().then(|| unit.workspace.clone())
    }
}
