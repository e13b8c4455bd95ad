//! The integrity of what decides: looked at before the first worker of a run, compared after every one.

use super::driver::Driver;
use super::event::At;
use crate::chain::Role;
use crate::checks::{Deciding, Profile, Tampering, tampering};
use crate::journal::JournalError;
use crate::plan::PlannedStep;

impl Driver<'_> {
    /// Whether anything but its agents decides about the work of this run.
    fn is_guarded(&self) -> bool {
        let plan = self.cast.plan;
        plan.steps.iter().any(|step| step.is_check() || step.role() == Some(Role::Judge))
    }

    /// Before a worker's attempt: what decides is remembered once, beside the transcripts of the run.
    pub(super) fn guard(&mut self, at: &At) -> Result<(), JournalError> {
        let worker = self.cast.plan.steps.get(at.step as usize - 1).and_then(PlannedStep::role) == Some(Role::Worker);
        if !worker || !self.is_guarded() || self.deciding.is_some() {
            return Ok(());
        }
        let kept = self.cast.journal.baseline(self.cast.run).and_then(|text| serde_json::from_str(&text).ok());
        let deciding: Deciding = if let Some(deciding) = kept {
            deciding
        } else {
            let deciding = self.look();
            let text = serde_json::to_string(&deciding).unwrap_or_default();
            self.cast.journal.keep_baseline(self.cast.run, &text)?;
            deciding
        };
        self.deciding = Some(deciding);
        Ok(())
    }

    /// After a worker's attempt.
    pub(super) fn tampering(&mut self) -> Tampering {
        let Some(before) = self.deciding.take() else { return Tampering::default() };
        let now = self.look();
        let mut found = tampering(&before, &now);
        self.deciding = Some(before);
        if !self.cast.journal.holds(self.cast.run, self.seq()) {
            found.voided.push(".forkhestra/state.db".into());
        }
        if self.cast.plan.profile == Profile::Strict {
            found.voided.extend(found.weakened.iter().cloned());
        }
        found
    }

    fn look(&mut self) -> Deciding {
        self.guarding.look(self.cast.root, &self.cast.plan.guarded)
    }
}
