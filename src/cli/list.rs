//! `list`: the chains, agents and checks that can be run.

use crate::cli::args::ListArgs;
use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::{answer, json_line};
use crate::exit::Exit;
use crate::report::{Paint, list as list_text, list_json, print_error, render};
use crate::world::World;

/// Lists everything that could be read, and also reports errors in the files.
pub(super) fn list(world: &World, common: &Common, args: &ListArgs) -> Exit {
    let config = project(world, common).config;
    let text = if args.json { json_line(list_json(&config)) } else { list_text(&config, Paint::for_stdout(world)) };
    let printed = answer(&text);
    if config.faults.is_empty() {
        return printed;
    }
    print_error(&render(&config.faults, Paint::for_stderr(world)));
    Exit::Refused
}
