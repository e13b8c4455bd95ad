//! The integrity of what decides: remembered when a run begins, compared after every attempt. What changed while no agent worked is
//! the user's.

use super::driver::Driver;
use crate::chain::Role;
use crate::checks::{Deciding, Profile, Tampering, tampering};
use crate::context::Guarded;
use crate::engine::At;
use crate::journal::{AttemptFolder, JournalError, Planted};
use std::collections::BTreeSet;

/// How many files of `.forkhestra/` that were changed are named.
const NAMED: usize = 10;

impl Driver<'_> {
    /// Whether anything but its agents decides about the work of this run.
    pub(super) fn is_guarded(&self) -> bool {
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
            None => self.cast.journal.baseline(self.began_in()?)?.map(|text| self.decided_then(&text)).transpose()?,
        };
        let mut deciding: Deciding = if let Some(deciding) = kept {
            deciding
        } else {
            let text = serde_json::to_string(&now).unwrap_or_default();
            self.cast.journal.keep_baseline(self.cast.run, &text)?;
            now.clone()
        };
        // A later run of a task may begin with its judge.
        let since = tampering(&deciding, &now);
        self.weakened = since.weakened.into_iter().chain(since.touched).collect();
        if self.state.voided().is_empty() {
            deciding.config = now.config;
        }
        let config: Vec<(String, String)> = deciding.config.clone().into_iter().collect();
        self.cast.journal.remember_config(self.cast.run, &at.name, &config)?;
        self.deciding = Some(deciding);
        Ok(())
    }

    fn decided_then(&self, text: &str) -> Result<Deciding, JournalError> {
        let path = self.cast.journal.path().to_path_buf();
        serde_json::from_str(text).map_err(|cause| JournalError::Event { path, cause })
    }

    /// Right before an agent is started: what lies in `.forkhestra/` is remembered.
    pub(super) fn watch_own(&mut self, at: &At, folder: &AttemptFolder) {
        let guarded = self.lane.is_none() && self.role(at).is_some() && self.is_guarded();
        self.own = guarded.then(|| self.cast.journal.look(self.cast.run, folder));
    }

    /// What an attempt has changed in `.forkhestra/`, but for its own folder and what our verbs write.
    pub(super) fn planted(&mut self, folder: &AttemptFolder) -> Vec<String> {
        let Some(before) = self.own.take() else { return Vec::new() };
        // What an earlier attempt has left there counts until it is put back.
        let known = std::mem::take(&mut self.left).into_iter();
        let (back, left): (BTreeSet<Planted>, BTreeSet<Planted>) = known.partition(Planted::is_put_back);
        self.left = left;
        let found = self.cast.journal.changed_since(&before, self.cast.run, folder).into_iter();
        self.left.extend(found.filter(|found| !back.iter().any(|back| back.is_at(found))));
        self.left.iter().map(|planted| planted.shown(self.cast.root)).collect()
    }

    /// The run that the work began in: for a task its first one, so that no later one forgets what it was.
    fn began_in(&self) -> Result<i64, JournalError> {
        let task = self.cast.plan.task.as_ref();
        let first = task.map(|task| self.cast.journal.first_run_of(&task.id)).transpose()?.flatten();
        Ok(first.unwrap_or(self.cast.run))
    }

    /// After an agent's attempt. Config that it changed is remembered beyond the run, so that no later one takes it for granted.
    ///
    /// # Errors
    /// Also when the journal is not what we wrote: nothing that it says can be believed.
    pub(super) fn tampering(&mut self, at: &At, planted: Vec<String>) -> Result<Tampering, JournalError> {
        let Some(before) = self.deciding.take() else { return Ok(Tampering::default()) };
        if !self.cast.journal.is_intact()? {
            let path = self.cast.journal.path().to_path_buf();
            return Err(JournalError::Tampered { path, agent: Some(at.name.clone()) });
        }
        let now = self.look();
        let mut found = tampering(&before, &now);
        self.deciding = Some(before);
        found.voided.retain(|path| !self.may_be_edited(path));
        let changed: Vec<(String, String)> =
            found.voided.iter().map(|path| (path.clone(), now.config.get(path).cloned().unwrap_or_default())).collect();
        self.cast.journal.remember_tampering(self.cast.run, &at.name, &changed)?;
        found.voided.extend(planted.into_iter().take(NAMED));
        if self.cast.plan.profile == Profile::Strict && self.role(at) == Some(Role::Worker) {
            found.voided.extend(found.weakened.iter().chain(&found.touched).cloned());
        }
        Ok(found)
    }

    fn look(&mut self) -> Deciding {
        let plan = self.cast.plan;
        self.guarding.look(self.cast.root, Guarded { config: &plan.guarded, lines: &plan.lines })
    }
}
