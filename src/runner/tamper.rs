//! Detects changes to the files that the work is judged by. Their state is recorded when a run begins, and compared
//! after every attempt. Changes made while no agent was running are the user's.

use super::driver::Driver;
use crate::chain::Role;
use crate::checks::{Deciding, Profile, Tampering, tampering};
use crate::context::Guarded;
use crate::engine::At;
use crate::journal::{AttemptFolder, JournalError, UnexpectedFile};
use std::collections::BTreeSet;

/// How many of the changed files in `.forkhestra/` are named.
const NAMED: usize = 10;

impl Driver<'_> {
    /// Whether a check or a judge decides about the work of this run.
    pub(super) fn is_guarded(&self) -> bool {
        let plan = self.context.plan;
        plan.steps.iter().any(|step| step.is_check() || step.role() == Some(Role::Judge))
    }

    /// Called before an agent's attempt: remembers what the work is judged by. Tests are remembered as they were when
    /// the run began, and config as it is now, unless an agent has changed it.
    pub(super) fn guard(&mut self, at: &At) -> Result<(), JournalError> {
        if self.role(at).is_none() || !self.is_guarded() {
            return Ok(());
        }
        let now = self.look();
        let kept = match self.deciding.take() {
            Some(deciding) => Some(deciding),
            None => {
                self.context.journal.baseline(self.began_in()?)?.map(|text| self.decided_then(&text)).transpose()?
            }
        };
        let mut deciding: Deciding = if let Some(deciding) = kept {
            deciding
        } else {
            let text = serde_json::to_string(&now).unwrap_or_default();
            self.context.journal.keep_baseline(self.context.run, &text)?;
            now.clone()
        };
        // A later run of a task may begin with its judge.
        let since = tampering(&deciding, &now);
        self.weakened = since.weakened.into_iter().chain(since.touched).collect();
        if self.state.voided().is_empty() {
            deciding.config = now.config;
        }
        let config: Vec<(String, String)> = deciding.config.clone().into_iter().collect();
        self.context.journal.remember_config(self.context.run, &at.name, &config)?;
        self.deciding = Some(deciding);
        Ok(())
    }

    fn decided_then(&self, text: &str) -> Result<Deciding, JournalError> {
        let path = self.context.journal.path().to_path_buf();
        serde_json::from_str(text).map_err(|cause| JournalError::Event { path, cause })
    }

    /// Called right before an agent is started: records the sizes and times of the files in `.forkhestra/`.
    pub(super) fn watch_own(&mut self, at: &At, folder: &AttemptFolder) {
        let guarded = self.lane.is_none() && self.role(at).is_some() && self.is_guarded();
        self.own = guarded.then(|| self.context.journal.look(self.context.run, folder));
    }

    /// Returns what an attempt has changed in `.forkhestra/`, except in its own directory and what our commands write.
    pub(super) fn planted(&mut self, folder: &AttemptFolder) -> Vec<String> {
        let Some(before) = self.own.take() else { return Vec::new() };
        // What an earlier attempt has left there counts until it is restored.
        let known = std::mem::take(&mut self.unrestored).into_iter();
        let (back, left): (BTreeSet<UnexpectedFile>, BTreeSet<UnexpectedFile>) =
            known.partition(UnexpectedFile::is_put_back);
        self.unrestored = left;
        let found = self.context.journal.changed_since(&before, self.context.run, folder).into_iter();
        self.unrestored.extend(found.filter(|found| !back.iter().any(|back| back.is_at(found))));
        self.unrestored.iter().map(|planted| planted.shown(self.context.root)).collect()
    }

    /// Returns the run in which the work began. For a task that is its first run, so that every later run compares with
    /// the same state.
    fn began_in(&self) -> Result<i64, JournalError> {
        let task = self.context.plan.task.as_ref();
        let first = task.map(|task| self.context.journal.first_run_of(&task.id)).transpose()?.flatten();
        Ok(first.unwrap_or(self.context.run))
    }

    /// Called after an agent's attempt: returns what the agent tampered with. Config that it changed is remembered
    /// beyond the run, so that no later run accepts it unnoticed.
    ///
    /// # Errors
    /// When the journal cannot be read, or is not what we wrote: nothing in it can be trusted then.
    pub(super) fn tampering(&mut self, at: &At, planted: Vec<String>) -> Result<Tampering, JournalError> {
        let Some(before) = self.deciding.take() else { return Ok(Tampering::default()) };
        if !self.context.journal.is_intact()? {
            let path = self.context.journal.path().to_path_buf();
            return Err(JournalError::Tampered { path, agent: Some(at.name.clone()) });
        }
        let now = self.look();
        let mut found = tampering(&before, &now);
        self.deciding = Some(before);
        found.voided.retain(|path| !self.context.may_be_edited(path));
        let changed: Vec<(String, String)> =
            found.voided.iter().map(|path| (path.clone(), now.config.get(path).cloned().unwrap_or_default())).collect();
        self.context.journal.remember_tampering(self.context.run, &at.name, &changed)?;
        found.voided.extend(planted.into_iter().take(NAMED));
        if self.context.plan.profile == Profile::Strict && self.role(at) == Some(Role::Worker) {
            found.voided.extend(found.weakened.iter().chain(&found.touched).cloned());
        }
        Ok(found)
    }

    fn look(&mut self) -> Deciding {
        let plan = self.context.plan;
        self.guarding.look(self.context.root, Guarded { config: &plan.guarded, lines: &plan.lines })
    }
}
