//! The checks that verify what lands, if the config names them.

use super::errors;
use crate::agent::BUILT_IN_CHECKS;
use crate::chain::{PromptSource, parse};
use crate::cli::config::Project;
use crate::cli::run::chain::TypedVars;
use crate::cli::run::{Typed, planned};
use crate::plan::Overrides;
use crate::source::{Diagnostic, Source, Text, nearest};
use crate::world::World;

/// Returns the names of the checks in `landing.checks`.
///
/// # Errors
/// All errors in them, each at its place in the config.
pub(in crate::cli) fn landing_checks(
    world: &World,
    project: &Project,
    names: &[Text],
    overrides: &Overrides,
) -> Result<Vec<String>, Vec<Diagnostic>> {
    if names.is_empty() {
        return Err(vec![errors::no_landing_check()]);
    }
    let is_agent = |name: &&Text| project.config.agents.contains_key(&name.value);
    let mut faults: Vec<Diagnostic> = names.iter().filter(is_agent).map(errors::not_a_check).collect();
    for name in names.iter().filter(|name| !is_agent(name)) {
        let source = Source::new("landing.checks", name.value.as_str(), &project.shell);
        let typed = Typed { prompt: PromptSource::default(), overrides: overrides.clone(), task: None };
        let plan = parse(&source).and_then(|chain| planned(world, project, &chain, &TypedVars::default(), &typed));
        faults.extend(plan.err().into_iter().flatten().map(|fault| in_the_config(project, name, fault)));
    }
    if faults.is_empty() { Ok(names.iter().map(|name| name.value.clone()).collect()) } else { Err(faults) }
}

/// The error as it is shown: at its place in the config, and about checks.
fn in_the_config(project: &Project, name: &Text, fault: Diagnostic) -> Diagnostic {
    if fault.code == "agent/unknown" {
        let checks = project.config.checks.keys().map(String::as_str).chain(BUILT_IN_CHECKS);
        return errors::unknown_landing_check(name, nearest(&name.value, checks));
    }
    let places = fault.places.into_iter().map(|(place, label)| match place.source.name.as_str() {
        "landing.checks" => (name.at.clone(), label),
        _ => (place, label),
    });
    Diagnostic { places: places.collect(), ..fault }
}
