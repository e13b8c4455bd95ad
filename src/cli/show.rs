//! `show`: one chain of the config.

use crate::agent::{Found, find_all_on_path, lookup};
use crate::chain::{Config, LayerKind, Role, Step};
use crate::cli::args::ShowArgs;
use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::run::chain::named;
use crate::cli::run::earlier_runs;
use crate::exit::Exit;
use crate::report::{Paint, show_chain, show_chain_json};
use crate::source::Place;
use crate::world::World;

/// Shows a chain as text and in the chain language.
pub(super) fn show(world: &World, common: &Common, args: &ShowArgs) -> Answered {
    let project = project(world, common);
    let config = &project.config;
    named(&args.name, config)?;
    if !config.faults.is_empty() {
        return Err(config.faults.clone().into());
    }
    let Some(entry) = config.chains.get(&args.name) else { return Ok(Exit::Refused) };
    if !entry.faults.is_empty() {
        return Err(entry.faults.clone().into());
    }
    let earlier = earlier_runs(&project, Some(&args.name), "");
    Ok(answer(&if args.json {
        let mut json = show_chain_json(&args.name, entry, &|step| {
            matches!(lookup(step, config, world, world), Ok(Found::Check(_) | Found::BuiltInCheck))
        });
        json["earlier"] = serde_json::to_value(earlier).unwrap_or_default();
        json_line(json)
    } else {
        let paint = Paint::for_stdout(world);
        let text = show_chain(&args.name, entry, &|step| (found(world, config, step), judges(config, step)), paint);
        let earlier = earlier.map(|earlier| format!("\n  {} {}\n", paint.dim("earlier"), earlier.words()));
        text + &earlier.unwrap_or_default()
    }))
}

/// Whether a step is an agent with the role judge.
fn judges(config: &Config, step: &Step) -> bool {
    config.agents.get(&step.name.value).is_some_and(|entry| entry.value.role == Some(Role::Judge))
}

/// Where a step's name is found, and which program on PATH it hides.
fn found(world: &World, config: &Config, step: &Step) -> String {
    let layer = |layer: LayerKind, at: &Place| {
        if layer == LayerKind::BuiltIn { "built-in".into() } else { format!("{at} ({layer})") }
    };
    let place = match lookup(step, config, world, world) {
        Ok(Found::Program(path)) => return format!("the program {}", path.display()),
        Ok(Found::Agent(entry)) => layer(entry.layer, &entry.at),
        Ok(Found::BuiltInCheck) => return "a built-in check".into(),
        Ok(Found::Check(entry)) => format!("{}, a check", layer(entry.layer, &entry.at)),
        Err(fault) => return fault.message,
    };
    match find_all_on_path(&step.name.value, world, world).first() {
        Some(hidden) => format!("{place}; there is also the program {}", hidden.display()),
        None => place,
    }
}
