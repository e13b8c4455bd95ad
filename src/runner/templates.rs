//! Templates that are edited during a run. The next attempt uses the new text if the user wants that, and the old text
//! otherwise. Each edit is reported once, either way.

use super::context::RunContext;
use crate::context::config_digest;
use crate::engine::Input;
use crate::plan::PlannedStep;
use indexmap::{IndexMap, IndexSet};
use std::borrow::Cow;

/// The templates of a run, as they were last seen.
#[derive(Debug, Default)]
pub(super) struct TemplateWatch {
    /// The digest of each template file, by its path relative to the root.
    seen: IndexMap<String, String>,
    /// The template files of the latest plan, once they were looked up.
    files: Option<Vec<String>>,
    /// The steps of the latest plan, if the run was planned again.
    now: Option<Vec<PlannedStep>>,
}

impl TemplateWatch {
    /// Called before an attempt: returns the templates that were edited since the previous one, if there are any.
    pub(super) fn look(&mut self, context: &RunContext<'_>) -> Option<Input> {
        let steps = self.now.as_ref().unwrap_or(&context.plan.steps);
        let known = self.files.get_or_insert_with(|| files(steps));
        let digest = |file: &String| (file.clone(), config_digest(&context.root.join(file)));
        let now: IndexMap<String, String> = known.iter().map(digest).collect();
        let seen = &self.seen;
        let is_edited = |(file, digest): &(&String, &String)| seen.get(*file).is_some_and(|before| before != *digest);
        let files: Vec<String> = now.iter().filter(is_edited).map(|(file, _)| file.clone()).collect();
        self.seen.extend(now);
        if files.is_empty() {
            return None;
        }
        let (taken, why) = match context.replan.map(|replan| (replan.0)()) {
            Some(Ok(plan)) => {
                self.now = Some(plan.steps);
                self.files = None;
                (true, None)
            }
            Some(Err(faults)) => (false, faults.first().map(|fault| fault.message.clone())),
            None => (false, None),
        };
        Some(Input::TemplatesEdited { files, accepted: taken, error: why })
    }

    /// Returns a step with its template as it was last read.
    pub(super) fn with_its_template<'p>(&self, step: &'p PlannedStep) -> Cow<'p, PlannedStep> {
        let now = self.now.as_ref().and_then(|steps| steps.get(step.number.checked_sub(1)?));
        let now = now.filter(|now| now.name == step.name).and_then(|now| now.prompt.as_ref()?.around.as_ref());
        let mut step = Cow::Borrowed(step);
        if let Some(around) = now
            && let Some(prompt) = &mut step.to_mut().prompt
        {
            prompt.around = Some(around.clone());
        }
        step
    }
}

/// Returns the template files of these steps, each once.
fn files(steps: &[PlannedStep]) -> Vec<String> {
    let arounds = steps.iter().filter_map(|step| step.prompt.as_ref()?.around.as_ref());
    let files: IndexSet<&str> = arounds.flat_map(|around| around.template.origins()).collect();
    files.into_iter().map(str::to_string).collect()
}
