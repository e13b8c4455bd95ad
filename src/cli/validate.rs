//! `validate`: everything that is wrong with a config, used or not.

use super::args::{Common, ValidateArgs};
use super::config::{project, single};
use super::{answer, refuse};
use crate::agent::lookup;
use crate::chain::{Config, LayerKind, lower};
use crate::exit::Exit;
use crate::source::Diagnostic;
use crate::world::World;

/// Checks the project's config, or one file.
pub(super) fn validate(world: &World, common: &Common, args: &ValidateArgs) -> Exit {
    let project = project(world, common);
    let config = match &args.file {
        Some(file) => single(world, &project.shell, file),
        None => project.config,
    };
    let faults = faults(world, &config);
    if faults.iter().any(Diagnostic::is_error) {
        return refuse(world, &faults);
    }
    let files: Vec<&str> = config
        .files
        .iter()
        .filter(|file| file.kind != LayerKind::BuiltIn)
        .map(|file| file.source.name.as_str())
        .collect();
    let own = config.chains.values().filter(|entry| entry.layer != LayerKind::BuiltIn).count();
    answer(&match files.as_slice() {
        [] => "No config here: only the built-in chains are known. `forkhestra init` writes one.\n".to_string(),
        files => format!("{} is valid ({own} {}).\n", files.join(", "), if own == 1 { "chain" } else { "chains" }),
    })
}

/// Faults of the files, of every entry, and of every name that no step can mean.
fn faults(world: &World, config: &Config) -> Vec<Diagnostic> {
    let mut faults = config.faults.clone();
    faults.extend(config.agents.values().flat_map(|entry| entry.faults.clone()));
    faults.extend(config.checks.values().flat_map(|entry| entry.faults.clone()));
    for entry in config.chains.values() {
        faults.extend(entry.faults.clone());
        if entry.layer == LayerKind::BuiltIn {
            continue;
        }
        let (_, steps) = lower(&entry.value.items);
        faults.extend(steps.into_iter().filter_map(|step| lookup(step, config, world, world).err()));
    }
    faults
}
