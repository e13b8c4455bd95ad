//! The engines of `task run --on` and their hubs, as `doctor` finds them.

use crate::agent::find_command;
use crate::batch::RemoteEngine;
use crate::chain::LayerKind;
use crate::cli::config::Project;
use crate::cli::doctor::finding;
use crate::cli::run::execute::event_queue;
use crate::cli::task::batch::engine_of;
use crate::cli::work::open_hub;
use crate::hub::refuses_a_second_change;
use crate::report::{DoctorFinding, Health};
use crate::source::{Place, Source, counted};
use crate::world::World;

/// Checks the engines that the config names, and the built-in ones whose programs are installed. They are started only
/// with `tries`, and only to list jobs.
pub(super) fn engines(world: &World, project: &Project, tries: bool) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, entry) in &project.config.engines {
        if entry.value.submit.is_none() && entry.layer == LayerKind::BuiltIn {
            continue;
        }
        let (health, words) = match engine_of(world, project, name, &[]) {
            Ok(engine) => match engine_finding(world, project, &engine, tries) {
                (Health::Absent, _) if entry.layer == LayerKind::BuiltIn => continue,
                // Its programs are installed, but the project does not use it.
                (Health::Bad, words) if entry.layer == LayerKind::BuiltIn => (Health::Absent, words),
                found => found,
            },
            Err(faults) if entry.faults.is_empty() => {
                (Health::Bad, faults.first().map_or_else(String::new, |fault| fault.message.clone()))
            }
            Err(faults) => {
                (Health::Bad, format!("{}; `forkhestra validate` shows the details", counted(faults.len(), "error")))
            }
        };
        findings.push(DoctorFinding { name: name.clone(), health, words });
    }
    findings
}

fn engine_finding(world: &World, project: &Project, engine: &RemoteEngine, tries: bool) -> (Health, String) {
    let at = Place::whole(&Source::new("engines", "", &project.root));
    let commands = [&engine.submit, &engine.list, &engine.cancel];
    let mut programs: Vec<&str> = commands.iter().filter_map(|words| words.first()).map(String::as_str).collect();
    programs.dedup();
    let is_missing = |program: &&&str| find_command(program, &project.root, &at, world, world).is_err();
    let missing: Vec<&str> = programs.iter().filter(is_missing).copied().collect();
    if !missing.is_empty() {
        return (Health::Absent, format!("an engine; not on PATH: {}", missing.join(", ")));
    }
    if !tries {
        let found = match programs.split_last() {
            None => "no commands".into(),
            Some((program, [])) => format!("{program} is on PATH"),
            Some((last, others)) => format!("{} and {last} are on PATH", others.join(", ")),
        };
        return (Health::Good, format!("an engine; {found}; `doctor --try` lists its jobs, and tests its hub"));
    }
    let jobs = match event_queue().map(|runtime| runtime.block_on(engine.jobs())) {
        Ok(Ok(Some(jobs))) => format!("an engine; lists {}; ", counted(jobs, "job")),
        Ok(Ok(None)) => String::new(),
        Ok(Err(why)) => return (Health::Bad, format!("an engine; cannot list its jobs: {why}")),
        Err(_) => return (Health::Bad, "an engine; cannot list its jobs".into()),
    };
    let (health, words) = hub_words(world, &engine.hub);
    (health, format!("{jobs}{words}"))
}

/// Tests a hub, as `work --hub` takes it.
pub(super) fn hub(world: &World, hub: &str) -> DoctorFinding {
    if is_missing(world, hub) {
        let words = format!("there is no hub at {hub}; a project's hub is its .forkhestra/hub.git");
        return finding("hub", Health::Bad, words);
    }
    let (health, words) = hub_words(world, hub);
    finding("hub", health, words)
}

fn is_missing(world: &World, hub: &str) -> bool {
    !crate::hub::is_hub_url(hub) && !world.cwd().join(hub).join("HEAD").is_file()
}

fn hub_words(world: &World, hub: &str) -> (Health, String) {
    if is_missing(world, hub) {
        return (Health::Absent, format!("there is no hub at {hub} yet: the first batch creates it"));
    }
    let random = world.token().unwrap_or_default();
    let begun = world.now();
    match open_hub(world, hub).map(|opened| refuses_a_second_change(&opened, &random)) {
        Ok(Ok(true)) => {
            let time = begun.elapsed().as_millis();
            (
                Health::Good,
                format!("{hub} accepted one of two conflicting changes and refused the other, as it must ({time} ms)"),
            )
        }
        Ok(Ok(false)) => (
            Health::Bad,
            format!(
                "{hub} accepted two conflicting changes, of which it must refuse one: a unit of work could be done twice"
            ),
        ),
        Ok(Err(error)) => (Health::Bad, error.to_string()),
        Err(stopped) => (Health::Bad, stopped.words().unwrap_or_else(|| format!("{hub} cannot be opened"))),
    }
}
