//! The units at work: their runs in the journal of the root, which are copies of what their workers report.

use super::driver::{BatchDriver, BatchError};
use super::lane::{News, NewsKind};
use super::parking::parked_by;
use super::planned::{PlannedUnit, UnitPurpose, UnitToStart};
use crate::engine::{BatchEvent, EventKind, TaskPlace};
use crate::journal::{Journal, JournalError, NewRun};
use crate::runner::Transcripts;

impl BatchDriver<'_> {
    /// Saves to the hub the work of a task whose process was lost. Returns the commit.
    pub(super) fn rescue_work(&self, task: &str) -> Option<String> {
        self.state.tasks.get(task).filter(|known| known.place == TaskPlace::Interrupted)?;
        let bundle = self.context.hub.bundle(&self.unit_of(task)?).ok()?;
        let workspace = crate::hub::Workspace::of(&bundle, &self.context.workspaces);
        self.context.hub.commit_workspace(&bundle, &workspace).ok()
    }

    /// Begins the run of a unit in the journal, if it has not begun. Returns the journal with which its events are
    /// copied, and its number.
    pub(super) fn begin_run(
        &self,
        known: Option<i64>,
        unit: &UnitToStart<'_>,
        planned: &PlannedUnit,
    ) -> Result<(Journal, i64), JournalError> {
        let mut journal = self.context.journal.sibling()?;
        let worker = crate::journal::Worker::NONE;
        let (started, digest) = (self.context.world.timestamp(), planned.digest.as_str());
        let new = NewRun { worker, started: &started, digest, outline: &planned.outline };
        let run = match known {
            Some(run) => run,
            None => journal.begin_child(self.context.run, unit.name, new)?,
        };
        match unit.purpose {
            UnitPurpose::Task { task, .. } if !self.is_trying(task) => journal.follow(run, task, &planned.outline)?,
            // The task changes when one of its tries is chosen.
            UnitPurpose::Task { task, .. } => {
                journal.assign(run, task)?;
                self.context.planner.tried(task)?;
            }
            UnitPurpose::Choice { task, .. } => journal.assign(run, task)?,
            UnitPurpose::Verification => {}
        }
        Ok((journal, run))
    }

    /// Whether one of several tries at a task has still to be chosen.
    pub(super) fn is_trying(&self, task: &str) -> bool {
        self.state.tasks.get(task).is_some_and(|task| task.chosen.is_none() && !task.tries.is_empty())
    }

    /// Records what a worker has reported. An event that the journal already has is only added to the totals and the
    /// outcome.
    pub(super) fn take(&mut self, News { unit: name, kind }: News) -> Result<(), BatchError> {
        let Some(unit) = self.units.get_mut(&name) else { return Ok(()) };
        let mut event = match kind {
            NewsKind::Event(event) => *event,
            NewsKind::Offered => {
                unit.outcome = None;
                return Ok(());
            }
            NewsKind::Claimed { machine } => return self.say(BatchEvent::UnitClaimed { unit: name, machine }),
        };
        let their_run = event.run;
        (event.run, event.unit) = (unit.run, Some(name.clone()));
        unit.totals.evolve(&event.event);
        if let EventKind::RunFinished { outcome } = &event.event {
            unit.outcome = Some(*outcome);
        } else if let EventKind::RunResumed { .. } = &event.event {
            unit.outcome = None;
        }
        if event.seq <= unit.seq {
            return Ok(());
        }
        if let EventKind::AttemptFinished { at, .. } = &event.event {
            unit.journal.adopt_attempt(unit.run, at, &unit.root, their_run)?;
        }
        unit.journal.append(std::slice::from_ref(&event), None, self.context.world.now())?;
        unit.seq = event.seq;
        let parked = parked_by(&event, &unit.backends);
        let evidence = Transcripts { journal: &unit.journal, world: self.context.world, run: unit.run };
        let _ = self.context.observer.event(&event, &evidence);
        self.context.budget.spent(&name, &unit.totals);
        match parked {
            Some((backend, until)) if self.state.parked.get(&backend).is_none_or(|known| *known < until) => {
                self.say(BatchEvent::Parked { backend, until })?;
                self.park();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
