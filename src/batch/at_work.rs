//! The units at work: their runs in the journal of the root, which are copies of what their workers report.

use super::context::{BatchContext, BatchError};
use super::lane::NewsKind;
use super::parking::parked_by;
use super::planned::{PlannedUnit, UnitPurpose, UnitToStart};
use super::tries::unit_of;
use crate::engine::{BatchState, EventKind, RunOutcome, TaskPlace, Totals};
use crate::journal::{Commit, Journal, JournalError, NewRun};
use crate::runner::{ReceivedSignal, Transcripts};
use std::path::PathBuf;
use tokio::sync::mpsc::UnboundedSender;

/// A unit at work, as the batch sees it.
pub(super) struct UnitAtWork {
    pub(super) journal: Journal,
    pub(super) run: i64,
    /// The number of its last event.
    pub(super) seq: u64,
    pub(super) outcome: Option<RunOutcome>,
    pub(super) totals: Totals,
    /// The root whose attempts are copied: the workspace, or with an engine the staging directory.
    pub(super) root: PathBuf,
    /// The backend of each step, in order; `None` for a step without one.
    pub(super) backends: Vec<Option<String>>,
    pub(super) tell: UnboundedSender<ReceivedSignal>,
}

/// Saves to the hub the work of a task whose process was lost. Returns the commit.
pub(super) fn rescue_work(context: &BatchContext<'_>, state: &BatchState, task: &str) -> Option<String> {
    state.tasks.get(task).filter(|known| known.place == TaskPlace::Interrupted)?;
    let bundle = context.hub.units().bundle(&unit_of(context.run, state, task)?).ok()?;
    let workspace = crate::hub::Workspace::of(&bundle, &context.workspaces);
    context.hub.workspaces().commit(&bundle, &workspace).ok()
}

/// Begins the run of a unit in the journal, if it has not begun. Returns the journal with which its events are
/// copied, and its number.
pub(super) fn begin_run(
    (context, state): (&BatchContext<'_>, &BatchState),
    known: Option<i64>,
    unit: &UnitToStart<'_>,
    planned: &PlannedUnit,
) -> Result<(Journal, i64), JournalError> {
    let mut journal = context.journal.sibling();
    let worker = crate::journal::Worker::NONE;
    let (started, digest) = (context.world.timestamp(), planned.digest.as_str());
    let new = NewRun { worker, started: &started, digest, outline: &planned.outline };
    let run = match known {
        Some(run) => run,
        None => journal.begin_child(context.run, unit.name, new)?,
    };
    match unit.purpose {
        UnitPurpose::Task { task, .. } if !is_trying(state, task) => journal.follow(run, task, &planned.outline)?,
        // The task changes when one of its tries is chosen.
        UnitPurpose::Task { task, .. } => {
            journal.tasks().assign(run, task)?;
            context.planner.tried(task)?;
        }
        UnitPurpose::Choice { task, .. } => journal.tasks().assign(run, task)?,
        UnitPurpose::Verification => {}
    }
    Ok((journal, run))
}

/// Whether one of several tries at a task has still to be chosen.
fn is_trying(state: &BatchState, task: &str) -> bool {
    state.tasks.get(task).is_some_and(|task| task.chosen.is_none() && !task.tries.is_empty())
}

/// What a unit at work has reported.
pub(super) enum Reported {
    /// A worker on another machine, with this name, has claimed it.
    Claimed(String),
    /// A backend, by its name, has reached a usage limit; when that ends, in milliseconds since the epoch.
    Parked(String, i64),
    /// Nothing that the batch has to know.
    Nothing,
}

impl UnitAtWork {
    /// Records what the worker of this unit has reported. An event that the journal already has is only added to the
    /// totals and the outcome.
    pub(super) fn take(
        &mut self,
        context: &mut BatchContext<'_>,
        name: &str,
        kind: NewsKind,
    ) -> Result<Reported, BatchError> {
        let mut event = match kind {
            NewsKind::Event(event) => *event,
            NewsKind::Offered => {
                self.outcome = None;
                return Ok(Reported::Nothing);
            }
            NewsKind::Claimed { machine } => return Ok(Reported::Claimed(machine)),
        };
        let their_run = event.run;
        (event.run, event.unit) = (self.run, Some(name.to_string()));
        self.totals.evolve(&event.event);
        if let EventKind::RunFinished { outcome } = &event.event {
            self.outcome = Some(*outcome);
        } else if let EventKind::RunResumed { .. } = &event.event {
            self.outcome = None;
        }
        if event.seq <= self.seq {
            return Ok(Reported::Nothing);
        }
        if let EventKind::AttemptFinished { at, .. } = &event.event {
            self.journal.files().adopt_attempt(self.run, at, &self.root, (their_run, at.attempt))?;
        }
        self.journal.append(Commit::of(std::slice::from_ref(&event)), context.world.now())?;
        self.seq = event.seq;
        let evidence = Transcripts { journal: &self.journal, world: context.world, run: self.run };
        let _ = context.observer.event(&event, &evidence);
        context.budget.spent(name, &self.totals);
        let parked = parked_by(&event, &self.backends);
        Ok(parked.map_or(Reported::Nothing, |(backend, until)| Reported::Parked(backend, until)))
    }
}
