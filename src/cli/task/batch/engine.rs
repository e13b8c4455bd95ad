//! The engine of `--on`, from its entry in the config.

use super::errors;
use crate::batch::RemoteEngine;
use crate::cli::config::Project;
use crate::hub::is_hub_url;
use crate::prompt::{Vars, expand_config};
use crate::report::quoted;
use crate::source::{Diagnostic, Text, nearest, sha256};
use crate::task::Task;
use crate::world::World;
use std::cell::RefCell;
use std::time::Duration;

/// How often the jobs of an engine are listed, by default.
const POLL: Duration = Duration::from_secs(10);
/// What the commands of an engine may contain.
const PLACEHOLDERS: [&str; 5] = ["JOB", "UNIT", "HUB", "WORK", "LABELS"];
/// Parts of the names of variables that hold secrets.
const SECRET: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
/// The shortest value that is taken for a secret, in bytes.
const SHORTEST: usize = 8;

/// Returns the engine with this name. `needed` are the ignored files that workspaces need.
///
/// # Errors
/// All errors in its entry.
pub(in crate::cli) fn engine_of(
    world: &World,
    project: &Project,
    name: &str,
    needed: &[&str],
) -> Result<RemoteEngine, Vec<Diagnostic>> {
    let engines = &project.config.engines;
    let Some(entry) = engines.get(name) else {
        let names: Vec<&str> = engines.keys().map(String::as_str).collect();
        return Err(vec![errors::unknown_engine(name, nearest(name, names.iter().copied()), &names)]);
    };
    if !entry.faults.is_empty() {
        return Err(entry.faults.clone());
    }
    let settings = &entry.value;
    let mut faults = Vec::new();
    let submit = words(world, settings.submit.as_deref(), &mut faults);
    let list = words(world, settings.list.as_deref(), &mut faults);
    let cancel = words(world, settings.cancel.as_deref(), &mut faults);
    let mut value = |text: &Option<Text>| one(world, text.as_ref(), &mut faults);
    let path = project.root.join(".forkhestra/hub.git").display().to_string();
    let hub = value(&settings.hub).unwrap_or_else(|| path.clone());
    let (program, files, workspaces) = (value(&settings.program), value(&settings.files), value(&settings.workspaces));
    if let Some(given) = settings.submit.as_ref()
        && let Some(first) = given.first()
        // Otherwise a word that is wrong may be the one that is missed.
        && given.len() == submit.len()
        && !submit.iter().any(|word| word.contains("${WORK}") || word.contains("${UNIT}"))
    {
        faults.push(errors::engine_without_work(first));
    }
    faults.extend(
        settings.hub.as_ref().filter(|_| !is_hub_url(&hub) && !hub.starts_with('/')).map(errors::hub_is_relative),
    );
    if files.is_none() && is_hub_url(&hub) && !needed.is_empty() {
        faults.push(errors::engine_without_files(name, &hub, needed));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let digest = sha256(path.as_bytes());
    let needs = project.config.workspace.needs.iter();
    let labels: Vec<&str> = needs.flat_map(|needs| &needs.labels).map(|label| label.value.as_str()).collect();
    Ok(RemoteEngine {
        name: name.to_string(),
        submit,
        list,
        cancel,
        work: work(
            &program.unwrap_or_else(|| "forkhestra".into()),
            &hub,
            [("--files", files), ("--workspaces", workspaces)],
        ),
        hub,
        labels: labels.join(","),
        id: digest.get(..8).unwrap_or(&digest).to_string(),
        poll: settings.poll.unwrap_or(POLL),
        folder: project.root.clone(),
        listing: RefCell::default(),
    })
}

/// The command line of a worker, for a shell.
fn work(program: &str, hub: &str, options: [(&str, Option<String>); 2]) -> String {
    let mut words = vec![program.to_string(), "work".into(), "--hub".into(), hub.to_string()];
    for (option, value) in options {
        words.extend(value.into_iter().flat_map(|value| [option.to_string(), value]));
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The words of a command, with all but the engine's own placeholders substituted.
fn words(world: &World, given: Option<&[Text]>, faults: &mut Vec<Diagnostic>) -> Vec<String> {
    given.into_iter().flatten().filter_map(|text| one(world, Some(text), faults)).collect()
}

fn one(world: &World, text: Option<&Text>, faults: &mut Vec<Diagnostic>) -> Option<String> {
    let own = PLACEHOLDERS.iter().map(|name| ((*name).to_string(), format!("${{{name}}}")));
    expand_config(text?, &Vars::placeholders(own.collect()), world).map_err(|found| faults.extend(found)).ok()
}

/// Returns an error for each text of the batch that contains a secret of the environment: what is in a unit of work is
/// stored on other machines.
pub(super) fn secrets_in(world: &World, vars: &[String], tasks: &[&Task]) -> Vec<Diagnostic> {
    let environment = world.environment().iter();
    let texts = environment.filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let is_secret = |name: &str| SECRET.iter().any(|part| name.to_uppercase().contains(part));
    let secrets: Vec<(&str, &str)> = texts.filter(|(name, value)| is_secret(name) && value.len() >= SHORTEST).collect();
    let of_task = |task: &&Task| {
        let parts = [Some(task.title.clone()), task.tests.clone(), task.spec.clone()];
        (format!("task {}", task.id), parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
    };
    let of_var = |var: &String| (format!("the variable {}", var.split('=').next().unwrap_or(var)), var.clone());
    let all = tasks.iter().map(of_task).chain(vars.iter().map(of_var));
    all.filter_map(|(what, text)| {
        let (name, _) = secrets.iter().find(|(_, value)| text.contains(value))?;
        Some(errors::secret_would_travel(&what, name))
    })
    .collect()
}
