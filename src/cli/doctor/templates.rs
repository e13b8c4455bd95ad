//! The templates and skills that `doctor` checks: each is loaded, and rendered with placeholder values.

use crate::cli::config::Project;
use crate::plan::places;
use crate::prompt::{Template, Value, load, render_template};
use crate::report::{DoctorFinding, Health};
use crate::source::{Diagnostic, Files, Kind, counted};
use crate::world::World;
use std::collections::BTreeSet;

/// Templates that work as a pair: a repository that has one needs both.
const PAIR: [&str; 2] = ["carbon", "helium"];

/// Checks every template that an agent of the config names, or that exists.
pub(in crate::cli) fn templates(world: &World, project: &Project) -> Vec<DoctorFinding> {
    let places = places(&project.config, &project.root, world);
    let mut names: BTreeSet<String> = BTreeSet::new();
    let own = project.config.agents.values().filter(|entry| entry.layer != crate::chain::LayerKind::BuiltIn);
    names.extend(own.filter_map(|entry| entry.value.template.as_ref()).map(|name| name.value.clone()));
    let there = world.disk().files_below(&places.templates);
    let prompts = there.iter().filter(|path| path.file_name().is_some_and(|name| name == "prompt.md"));
    let folders = prompts.filter_map(|path| path.parent()?.strip_prefix(&places.templates).ok()?.to_str());
    names.extend(folders.filter(|name| !name.is_empty()).map(str::to_string));
    let pair = PAIR.iter().any(|name| matches!(world.kind(&places.templates.join(name)), Ok(Kind::Folder)));
    if pair || project.config.templates.is_some() {
        names.extend(PAIR.map(str::to_string));
    }
    let look = |name: String| {
        let found = load(&name, true, &places, true, world).and_then(|found| match found {
            Some(template) => rendered(&template).map(|()| template),
            None => Err(Vec::new()),
        });
        let (health, words) = match found {
            Ok(template) => {
                let skills = template.skills().count();
                let skills = counted(skills, "skill");
                (Health::Good, format!("{}, {skills}, renders", template.origin()))
            }
            Err(faults) => (Health::Bad, faults.iter().map(one_line).collect::<Vec<_>>().join("; ")),
        };
        DoctorFinding { name: format!("template {name}"), health, words }
    };
    names.into_iter().map(look).collect()
}

/// Renders a template with `1` for every variable, because sums need a number.
fn rendered(template: &Template) -> Result<(), Vec<Diagnostic>> {
    let rendered = render_template(template, &|_| Some(Value::new("1")));
    rendered.map(drop).map_err(|error| vec![Diagnostic::error("template/render", error.to_string())])
}

fn one_line(fault: &Diagnostic) -> String {
    let place = fault.places.first().map_or_else(String::new, |(place, _)| format!(" ({place})"));
    let help = fault.help.as_ref().map_or_else(String::new, |help| format!(": {help}"));
    format!("{}{place}{help}", fault.message)
}
