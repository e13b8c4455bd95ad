//! `validate`: all errors of a config, also in entries that no chain uses.

use crate::chain::{Chain, Item, LayerKind, PromptSource, Step, StepTarget};
use crate::cli::args::ValidateArgs;
use crate::cli::config::{Project, project, single};
use crate::cli::options::Common;
use crate::cli::parse::argv::is_verb;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::task::batch::{WorkspacePlan, engine_of, landing_checks};
use crate::context::Repository;
use crate::exit::Exit;
use crate::plan::{Overrides, Request, RunSettings, build};
use crate::report::{Paint, diagnostic_json, print_error, render};
use crate::source::{Diagnostic, Files, Place, Text};
use crate::world::World;
use indexmap::IndexMap;
use serde_json::{Value, json};

/// Checks the project's config, or one file.
pub(super) fn validate(world: &World, common: &Common, args: &ValidateArgs) -> Answered {
    let project = project(world, common);
    let config = match &args.file {
        Some(file) => single(world, &project.shell, file),
        None => project.config.clone(),
    };
    let project = Project { config, ..project };
    let faults = faults(world, &project);
    let config = &project.config;
    if args.json {
        let valid = !faults.iter().any(Diagnostic::is_error);
        let told = json!({ "valid": valid, "errors": faults.iter().map(diagnostic_json).collect::<Value>() });
        let prompt = answer(&json_line(told));
        return Ok(if valid { prompt } else { Exit::Refused });
    }
    if faults.iter().any(Diagnostic::is_error) {
        return Err(faults.into());
    }
    print_error(&render(&faults, Paint::for_stderr(world)));
    let files: Vec<&str> = config
        .files
        .iter()
        .filter(|file| file.kind != LayerKind::BuiltIn)
        .map(|file| file.source.name.as_str())
        .collect();
    let own = config.chains.values().filter(|entry| entry.layer != LayerKind::BuiltIn).count();
    let elsewhere = ELSEWHERE.iter().find(|name| world.kind(&project.root.join(name)).is_ok());
    if let (Some(name), true) = (elsewhere, files.is_empty()) {
        return Err(not_read(name).into());
    }
    Ok(answer(&match files.as_slice() {
        [] => "No config here; `forkhestra init` writes one. Until then, only the built-in chains are known.\n"
            .to_string(),
        files => format!("{} is valid ({own} {}).\n", files.join(", "), if own == 1 { "chain" } else { "chains" }),
    }))
}

/// Places where people may put a config, and where forkhestra does not read one.
const ELSEWHERE: [&str; 9] = [
    "forge/chains.yaml",
    "forge/chains.yml",
    "forge/chains.toml",
    "forkhestra.yaml",
    "forkhestra.yml",
    "forkhestra.toml",
    "forkhestra.json",
    "chains.json",
    "chains.json5",
];

fn not_read(name: &str) -> Diagnostic {
    Diagnostic::error("config/elsewhere", format!("{name} is not read"))
        .help("the config of a project is forge/chains.json, in JSON or JSON5; `forkhestra init` writes one")
}

/// Returns the errors of the files, of every entry, of the plan of each of the user's chains, agents and checks, and of
/// the settings of batches. A value that only a command line can set is not an error of a config, and neither is a
/// backend that is not installed.
fn faults(world: &World, project: &Project) -> Vec<Diagnostic> {
    const NOT_ITS_FAULT: [&str; 4] = ["vars/missing", "vars/environment", "agent/no-backend", "plan/template-variable"];
    let Project { root, config, .. } = project;
    let mut faults = config.faults.clone();
    faults.extend(config.unused.clone());
    faults.extend(config.backends.iter().flat_map(|(_, entry)| entry.faults.clone()));
    faults.extend(config.engines.values().flat_map(|entry| entry.faults.clone()));
    faults.extend(config.agents.values().flat_map(|entry| entry.faults.clone()));
    faults.extend(config.checks.values().flat_map(|entry| entry.faults.clone()));
    faults.extend(config.chains.values().flat_map(|entry| entry.faults.clone()));
    let own = |layer: &LayerKind| *layer != LayerKind::BuiltIn;
    let named = config.chains.iter().filter(|(_, entry)| own(&entry.layer));
    faults.extend(named.filter_map(|(name, entry)| named_as_verb(name, &entry.at)));
    for (name, chain) in config.chains.iter().filter(|(_, entry)| own(&entry.layer)) {
        let agent = config.agents.get(name).filter(|entry| own(&entry.layer)).map(|entry| ("agent", &entry.at));
        let check = config.checks.get(name).filter(|entry| own(&entry.layer)).map(|entry| ("check", &entry.at));
        faults.extend(agent.or(check).map(|step| named_as_step(name, &chain.at, step)));
    }
    let mut chains: Vec<Chain> = Vec::new();
    chains.extend(config.chains.values().filter(|entry| own(&entry.layer)).map(|entry| entry.value.clone()));
    chains.extend(
        config
            .agents
            .iter()
            .filter(|(_, entry)| own(&entry.layer))
            .map(|(name, entry)| alone(name, &entry.at, StepTarget::Agent)),
    );
    chains.extend(
        config
            .checks
            .iter()
            .filter(|(_, entry)| own(&entry.layer))
            .map(|(name, entry)| alone(name, &entry.at, StepTarget::Check)),
    );
    for chain in &chains {
        let request = Request {
            chain,
            config,
            root,
            prompt: &PromptSource::default(),
            given: &IndexMap::new(),
            settings: &RunSettings::default(),
            part: None,
            task: None,
            own_program: world.own_program(),
        };
        for fault in build(&request, world, world).err().into_iter().flatten() {
            if !NOT_ITS_FAULT.contains(&fault.code) && !faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
    for fault in of_batches(world, project) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

/// Returns the errors in `workspace`, `landing` and `engines`, as `task run --jobs` and `--on` report them. What only
/// git knows is checked in a repository.
fn of_batches(world: &World, project: &Project) -> Vec<Diagnostic> {
    // Of this machine, not of the config.
    const NOT_ITS_FAULT: [&str; 3] = ["vars/environment", "work/workspaces", "agent/no-backend"];
    let config = &project.config;
    let plan = WorkspacePlan::of(world, project, Repository::of(&project.root).as_ref());
    let needed: Vec<String> = plan.iter().flat_map(|plan| plan.copy.iter().chain(&plan.share)).cloned().collect();
    let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
    let mut faults = plan.err().unwrap_or_default();
    // Without the key, the reason is where this user's cache is.
    faults.retain(|fault| fault.code != "batch/workspace-root" || config.workspace.root.is_some());
    if let Some(checks) = &config.landing.checks {
        faults.extend(landing_checks(world, project, checks, &Overrides::default()).err().into_iter().flatten());
    }
    for (name, _) in config.engines.iter().filter(|(_, entry)| entry.layer != LayerKind::BuiltIn) {
        faults.extend(engine_of(world, project, name, &needed).err().into_iter().flatten());
    }
    faults.retain(|fault| !NOT_ITS_FAULT.contains(&fault.code));
    faults
}

/// Warns of a chain that its bare name does not run. The chain `task` is not meant for that: `task run` uses it.
fn named_as_verb(name: &str, at: &Place) -> Option<Diagnostic> {
    let help = format!("run it with --chain {name}, or give it another name");
    let warning =
        || Diagnostic::warning("chain/verb", format!("`forkhestra {name}` is a command, and does not run this chain"));
    (is_verb(name) && name != "task").then(|| warning().at(at, "this chain").help(help))
}

/// Warns of a chain that its bare name does not run, because that is a step.
fn named_as_step(name: &str, at: &Place, (kind, step): (&str, &Place)) -> Diagnostic {
    Diagnostic::warning("chain/step", format!("`forkhestra {name}` runs the {kind} `{name}`, not this chain"))
        .at(at, "this chain")
        .at(step, format!("the {kind}"))
        .help(format!("run it with --chain {name}, or give it another name"))
}

/// A chain of one step.
fn alone(name: &str, at: &Place, wants: StepTarget) -> Chain {
    let step = Step::once(Text { value: name.to_string(), at: at.clone() }, wants);
    Chain::unnamed(vec![Item::Step(step)], at.clone())
}
