//! Detects changes to the files that the work is judged by. Their state is recorded when a run begins, and compared
//! after every attempt. Changes made while no agent was running are the user's.

use crate::chain::Role;
use crate::checks::{Deciding, Profile, Tampering, tampering};
use crate::context::{GuardWatch, Guarded};
use crate::engine::{At, State};
use crate::journal::{AttemptFolder, JournalError, OwnFolder, UnexpectedFile, remember_config, remember_tampering};
use crate::runner::context::RunContext;
use std::collections::BTreeSet;

/// How many of the changed files in `.forkhestra/` are named.
const NAMED: usize = 10;

/// What the work of a run is judged by, and what its agents have changed of it.
#[derive(Debug, Default)]
pub(in crate::runner) struct WorkGuard {
    /// Whether a check or a judge decides about the work of this run. In a lane, nothing does.
    is_needed: bool,
    /// The files as they were when the work began.
    deciding: Option<Deciding>,
    files: GuardWatch,
    /// Descriptions of changes to them, made since the work began.
    weakened: Vec<String>,
    /// The content of `.forkhestra/` before an attempt whose agent could tamper with the judgment of its own work.
    own: Option<OwnFolder>,
    /// Changes that attempts made in `.forkhestra/` and that were not undone.
    unrestored: BTreeSet<UnexpectedFile>,
}

impl WorkGuard {
    /// A guard of the work of this run.
    pub(in crate::runner) fn new(context: &RunContext<'_>, in_lane: bool) -> Self {
        let mut steps = context.plan.steps.iter();
        let is_needed = !in_lane && steps.any(|step| step.is_check() || step.role() == Some(Role::Judge));
        Self { is_needed, ..Self::default() }
    }

    /// Whether a check or a judge decides about the work of this run.
    pub(in crate::runner) fn is_needed(&self) -> bool {
        self.is_needed
    }

    /// Descriptions of changes to what the work is judged by, made since the work began.
    pub(in crate::runner) fn weakened(&self) -> &[String] {
        &self.weakened
    }

    /// Called before an agent's attempt: remembers what the work is judged by. Tests are remembered as they were when
    /// the run began, and config as it is now, unless an agent has changed it.
    pub(in crate::runner) fn remember(
        &mut self,
        context: &mut RunContext<'_>,
        state: &State,
        at: &At,
    ) -> Result<(), JournalError> {
        if !self.is_needed || context.role(at).is_none() {
            return Ok(());
        }
        let now = self.look(context);
        let kept = match self.deciding.take() {
            Some(deciding) => Some(deciding),
            None => {
                context.journal.runs().baseline(began_in(context)?)?.map(|text| parse(context, &text)).transpose()?
            }
        };
        let mut deciding: Deciding = if let Some(deciding) = kept {
            deciding
        } else {
            let text = serde_json::to_string(&now).unwrap_or_default();
            context.journal.keep_baseline(context.run, &text)?;
            now.clone()
        };
        // A later run of a task may begin with its judge.
        let since = tampering(&deciding, &now);
        self.weakened = since.weakened.into_iter().chain(since.touched).collect();
        if state.voided().is_empty() {
            deciding.config = now.config;
        }
        let config: Vec<(String, String)> = deciding.config.clone().into_iter().collect();
        remember_config(context.journal.files(), context.run, &at.name, &config)?;
        self.deciding = Some(deciding);
        Ok(())
    }

    /// Called right before an agent is started: records the sizes and times of the files in `.forkhestra/`.
    pub(in crate::runner) fn watch_own(&mut self, context: &RunContext<'_>, at: &At, folder: &AttemptFolder) {
        let guarded = self.is_needed && context.role(at).is_some();
        self.own = guarded.then(|| OwnFolder::look(context.journal.files(), context.run, folder));
    }

    /// Returns what an attempt has changed in `.forkhestra/`, except in its own directory and what our commands write.
    pub(in crate::runner) fn planted(&mut self, context: &RunContext<'_>, folder: &AttemptFolder) -> Vec<String> {
        let Some(before) = self.own.take() else { return Vec::new() };
        // What an earlier attempt has left there counts until it is restored.
        let known = std::mem::take(&mut self.unrestored).into_iter();
        let (back, left): (BTreeSet<UnexpectedFile>, BTreeSet<UnexpectedFile>) =
            known.partition(UnexpectedFile::is_put_back);
        self.unrestored = left;
        let journal = &context.journal;
        let known = |run| journal.runs().exists(run).unwrap_or(true);
        let found = before.changes(journal.files(), context.run, folder, known);
        self.unrestored.extend(found.into_iter().filter(|found| !back.iter().any(|back| back.is_at(found))));
        self.unrestored.iter().map(|planted| planted.shown(context.root)).collect()
    }

    /// Called after an agent's attempt: returns what the agent tampered with. Config that it changed is remembered
    /// beyond the run, so that no later run accepts it unnoticed.
    ///
    /// # Errors
    /// When the journal cannot be read, or is not what we wrote: nothing in it can be trusted then.
    pub(in crate::runner) fn tampering(
        &mut self,
        context: &mut RunContext<'_>,
        at: &At,
        planted: Vec<String>,
    ) -> Result<Tampering, JournalError> {
        let Some(before) = self.deciding.take() else { return Ok(Tampering::default()) };
        if !context.journal.is_intact()? {
            let path = context.journal.path().to_path_buf();
            return Err(JournalError::Tampered { path, agent: Some(at.name.clone()) });
        }
        let now = self.look(context);
        let mut found = tampering(&before, &now);
        self.deciding = Some(before);
        found.voided.retain(|path| !context.may_be_edited(path));
        let changed: Vec<(String, String)> =
            found.voided.iter().map(|path| (path.clone(), now.config.get(path).cloned().unwrap_or_default())).collect();
        remember_tampering(context.journal.files(), context.run, &at.name, &changed)?;
        found.voided.extend(planted.into_iter().take(NAMED));
        if context.plan.profile == Profile::Strict && context.role(at) == Some(Role::Worker) {
            found.voided.extend(found.weakened.iter().chain(&found.touched).cloned());
        }
        Ok(found)
    }

    fn look(&mut self, context: &RunContext<'_>) -> Deciding {
        let plan = context.plan;
        self.files.look(context.root, Guarded { config: &plan.guarded, lines: &plan.lines })
    }
}

/// Returns the run in which the work began. For a task that is its first run, so that every later run compares with the
/// same state.
fn began_in(context: &RunContext<'_>) -> Result<i64, JournalError> {
    let task = context.plan.task.as_ref();
    let first = task.map(|task| context.journal.tasks().first_run_of(&task.id)).transpose()?.flatten();
    Ok(first.unwrap_or(context.run))
}

fn parse(context: &RunContext<'_>, text: &str) -> Result<Deciding, JournalError> {
    let path = context.journal.path().to_path_buf();
    serde_json::from_str(text).map_err(|cause| JournalError::Event { path, cause })
}
