//! `show`: one chain of the config.

use super::args::{Common, ShowArgs};
use super::chain::named;
use super::config::project;
use super::{answer, refuse};
use crate::exit::Exit;
use crate::report::{Paint, show_chain, show_chain_json};
use crate::world::World;

/// Shows a chain as text and in the chain language.
pub(super) fn show(world: &World, common: &Common, args: &ShowArgs) -> Exit {
    let config = project(world, common).config;
    if let Err(faults) = named(&args.name, &config) {
        return refuse(world, &faults);
    }
    let Some(entry) = config.chains.get(&args.name) else { return Exit::Refused };
    if !entry.faults.is_empty() {
        return refuse(world, &entry.faults);
    }
    answer(&if args.json {
        show_chain_json(&args.name, entry).to_string() + "\n"
    } else {
        show_chain(&args.name, entry, Paint::for_stdout(world))
    })
}
