//! The first step of a run in a workspace, which prepares the workspace.

use crate::chain::{
    Agent, Chain, Check, Config, Entry, Isolation, Item, LayerKind, PromptSource, Run, Step, StepTarget,
};
use crate::cli::config::Project;
use crate::source::{Diagnostic, Place, Source, Text};
use indexmap::IndexMap;
use std::borrow::Cow;

/// The name of the step that prepares a workspace.
pub(in crate::cli) const SETUP: &str = "workspace-setup";

/// The name of the agent that chooses one of several tries at a task: the chain's judge, with another question.
pub(in crate::cli) const CHOOSER: &str = "choose-try";

/// Adds the agent that chooses one of several tries to the config: the judge, without its role and its prompts.
pub(super) fn with_chooser(config: &mut Cow<'_, Config>, project: &Project) {
    let Some(judge) = project.chooser.as_ref().and_then(|judge| config.agents.get(judge).cloned()) else { return };
    let agent = Agent {
        prompt: PromptSource::default(),
        template: None,
        role: None,
        verdict: None,
        min_score: None,
        ..judge.value
    };
    config.to_mut().agents.insert(CHOOSER.into(), Entry { value: agent, ..judge });
}

/// Returns the chain with the step that prepares the workspace before all others; `None` if there is no such step.
///
/// # Errors
/// When the config has an agent or a check of this name.
pub(super) fn with_setup(
    chain: &Chain,
    config: &mut Cow<'_, Config>,
    project: &Project,
) -> Result<Option<Chain>, Vec<Diagnostic>> {
    if project.setup.is_empty() {
        return Ok(None);
    }
    let taken = config.checks.get(SETUP).map(|entry| &entry.at).or(config.agents.get(SETUP).map(|entry| &entry.at));
    if let Some(at) = taken {
        return Err(vec![
            Diagnostic::error("workspace/setup-name", format!("the name `{SETUP}` is that of `workspace.setup`"))
                .at(at, "is also defined here")
                .help("rename the agent or the check"),
        ]);
    }
    let text = |value: &String| {
        let source = Source::new("workspace.setup", value.as_str(), &project.root);
        Text { value: value.clone(), at: Place::whole(&source) }
    };
    let name = text(&SETUP.to_string());
    let at = name.at.clone();
    let check = Check {
        description: None,
        run: Run::Words(project.setup.iter().map(text).collect()),
        env: IndexMap::new(),
        optional: false,
        timeout: None,
        isolation: Isolation::default(),
    };
    let entry = Entry { value: Some(check), at, layer: LayerKind::Project, faults: Vec::new() };
    config.to_mut().checks.insert(SETUP.into(), entry);
    let mut chain = chain.clone();
    chain.items.insert(0, Item::Step(Step::once(name, StepTarget::Check)));
    Ok(Some(chain))
}
