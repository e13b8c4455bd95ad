//! Templates that are edited during a run. The next attempt uses the new text if the user wants that, and the old text
//! otherwise. Each edit is reported once, either way.

use super::driver::Driver;
use crate::context::config_digest;
use crate::engine::Input;
use crate::journal::JournalError;
use crate::plan::{Plan, PlannedStep};
use crate::source::Diagnostic;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};

/// Plans the run again, as its command line would now. Given if edited templates are to be read (`--accept-changes`).
#[derive(Clone, Copy)]
pub struct Replan<'a>(pub &'a dyn Fn() -> Result<Plan, Vec<Diagnostic>>);

impl Debug for Replan<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Replan")
    }
}

/// The templates of a run, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct TemplateWatch {
    /// The digest of each template file, by its path relative to the root.
    seen: IndexMap<String, String>,
    /// The steps of the latest plan, if the run was planned again.
    now: Option<Vec<PlannedStep>>,
}

impl Driver<'_> {
    /// Called before an attempt: notices templates that were edited since the previous one.
    pub(super) fn look_at_templates(&mut self) -> Result<(), JournalError> {
        if self.lane.is_some() {
            return Ok(());
        }
        let steps = self.templates.now.as_ref().unwrap_or(&self.context.plan.steps);
        let digest = |file: String| (config_digest(&self.context.root.join(&file)), file);
        let now: IndexMap<String, String> = files(steps).map(digest).map(|(digest, file)| (file, digest)).collect();
        let seen = &self.templates.seen;
        let is_edited = |(file, digest): &(&String, &String)| seen.get(*file).is_some_and(|before| before != *digest);
        let files: Vec<String> = now.iter().filter(is_edited).map(|(file, _)| file.clone()).collect();
        self.templates.seen.extend(now);
        if files.is_empty() {
            return Ok(());
        }
        let (taken, why) = match self.context.replan.map(|replan| (replan.0)()) {
            Some(Ok(plan)) => {
                self.templates.now = Some(plan.steps);
                (true, None)
            }
            Some(Err(faults)) => (false, faults.first().map(|fault| fault.message.clone())),
            None => (false, None),
        };
        self.take(Input::TemplatesEdited { files, accepted: taken, error: why })?;
        Ok(())
    }

    /// Returns a step with its template as it was last read.
    pub(super) fn with_its_template<'p>(&self, step: &'p PlannedStep) -> Cow<'p, PlannedStep> {
        let now = self.templates.now.as_ref().and_then(|steps| steps.get(step.number.checked_sub(1)?));
        let now = now.filter(|now| now.name == step.name).and_then(|now| now.prompt.as_ref()?.around.as_ref());
        let mut step = Cow::Borrowed(step);
        if let Some(around) = now
            && let Some(prompt) = &mut step.to_mut().prompt
        {
            prompt.around = Some(around.clone());
        }
        step
    }

    /// Whether an attempt may change this file: only a template, and only if the user wants edited templates to be
    /// read.
    pub(super) fn may_be_edited(&self, path: &str) -> bool {
        let path = self.context.root.join(path);
        self.context.replan.is_some() && self.context.plan.templates.iter().any(|folder| path.starts_with(folder))
    }
}

fn files(steps: &[PlannedStep]) -> impl Iterator<Item = String> + '_ {
    let arounds = steps.iter().filter_map(|step| step.prompt.as_ref()?.around.as_ref());
    arounds.flat_map(|around| around.template.origins()).map(str::to_string)
}
