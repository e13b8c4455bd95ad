//! The integrity of what decides: remembered when a run begins, compared after every attempt. What changed while no agent worked is
//! the user's.

use super::driver::Driver;
use super::event::At;
use crate::chain::Role;
use crate::checks::{Deciding, Profile, Tampering, tampering};
use crate::journal::JournalError;

impl Driver<'_> {
    /// Whether anything but its agents decides about the work of this run.
    fn is_guarded(&self) -> bool {
        let plan = self.cast.plan;
        plan.steps.iter().any(|step| step.is_check() || step.role() == Some(Role::Judge))
    }

    /// Before an agent's attempt: what decides is remembered, tests as they were when the run began, config as it is now, unless
    /// an agent has changed it.
    pub(super) fn guard(&mut self, at: &At) -> Result<(), JournalError> {
        if self.role(at).is_none() || !self.is_guarded() {
            return Ok(());
        }
        let now = self.look();
        let kept = match self.deciding.take() {
            Some(deciding) => Some(deciding),
            None => self.cast.journal.baseline(self.began_in()?).and_then(|text| serde_json::from_str(&text).ok()),
        };
        let mut deciding: Deciding = if let Some(deciding) = kept {
            deciding
        } else {
            let text = serde_json::to_string(&now).unwrap_or_default();
            self.cast.journal.keep_baseline(self.cast.run, &text)?;
            now.clone()
        };
        if self.state.voided().is_empty() {
            deciding.config = now.config;
        }
        let config: Vec<(String, String)> = deciding.config.clone().into_iter().collect();
        self.cast.journal.remember_config(self.cast.run, &at.name, &config)?;
        self.deciding = Some(deciding);
        Ok(())
    }

    /// The run that the work began in: for a task its first one, so that no later one forgets what it was.
    fn began_in(&self) -> Result<i64, JournalError> {
        let task = self.cast.plan.task.as_ref();
        let first = task.map(|task| self.cast.journal.first_run_of(&task.id)).transpose()?.flatten();
        Ok(first.unwrap_or(self.cast.run))
    }

    /// After an agent's attempt. Config that it changed is remembered beyond the run, so that no later one takes it for granted.
    pub(super) fn tampering(&mut self, at: &At) -> Result<Tampering, JournalError> {
        let Some(before) = self.deciding.take() else { return Ok(Tampering::default()) };
        let now = self.look();
        let mut found = tampering(&before, &now);
        self.deciding = Some(before);
        let changed: Vec<(String, String)> =
            found.voided.iter().map(|path| (path.clone(), now.config.get(path).cloned().unwrap_or_default())).collect();
        self.cast.journal.remember_tampering(self.cast.run, &at.name, &changed)?;
        if !self.cast.journal.holds(self.cast.run, self.seq()) {
            found.voided.push(".forkhestra/state.db".into());
        }
        if self.cast.plan.profile == Profile::Strict && self.role(at) == Some(Role::Worker) {
            found.voided.extend(found.weakened.iter().cloned());
        }
        Ok(found)
    }

    fn look(&mut self) -> Deciding {
        self.guarding.look(self.cast.root, &self.cast.plan.guarded, &self.cast.plan.scripts)
    }
}
