//! The command line, with one command per file: parse, one operation, render.

mod args;
mod changes;
mod checks;
mod complete;
mod config;
mod doctor;
mod eval;
mod explain;
mod init;
mod list;
mod mcp;
mod options;
mod owners;
mod parse;
mod people;
mod render;
mod report;
mod respond;
mod run;
mod runs;
mod shell;
mod show;
mod status;
mod task;
mod trust;
mod validate;
mod verdict;
mod work;

use crate::cli::respond::Stopped;
use crate::exit::Exit;
use crate::verdict::Decision;
use crate::world::World;
use args::{Cli, Verb};
use run::detach::{DetachRequest, detach};
use std::ffi::OsString;

/// Runs a command line, given without the program's name.
#[must_use]
pub fn main(world: &mut World, arguments: Vec<OsString>) -> Exit {
    carry_out(world, arguments, false)
}

/// Runs a command line with `--detach`, in the background.
#[must_use]
pub fn in_background(world: &mut World, arguments: Vec<OsString>) -> Exit {
    carry_out(world, arguments, true)
}

fn carry_out(world: &mut World, arguments: Vec<OsString>, detached: bool) -> Exit {
    let arguments = match parse::argv::normalise(arguments) {
        Ok(arguments) => arguments,
        Err(fault) => return Stopped::from(fault).exit(world),
    };
    let Cli { common, verb } = match parse::parse(world, &arguments) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    if let Some(choice) = &common.color {
        world.set_color(choice);
    }
    let world = &*world;
    // In a wrong directory, any other error would be misleading.
    if let Some(fault) = config::no_folder(world, &common) {
        return Stopped::from(fault).exit(world);
    }
    if let Some(request) = DetachRequest::of(&verb).filter(|_| !detached) {
        return detach(world, &common, &request, arguments).unwrap_or_else(|stopped| stopped.exit(world));
    }
    let answered = match verb {
        Verb::Run(args) => run::run(world, &common, &args),
        Verb::Resume(args) => run::resume::resume(world, &common, &args),
        Verb::Runs(args) => runs::runs(world, &common, &args),
        Verb::Diff(args) => changes::diff(world, &common, &args),
        Verb::Status(args) => status::status(world, &common, &args),
        Verb::Attach(args) => status::attach(world, &common, &args),
        Verb::Stop(args) => status::stop(world, &common, &args),
        Verb::Tell(args) => status::tell(world, &common, &args),
        Verb::List(args) => Ok(list::list(world, &common, &args)),
        Verb::Show(args) => show::show(world, &common, &args),
        Verb::Validate(args) => validate::validate(world, &common, &args),
        Verb::Doctor(args) => doctor::doctor(world, &common, &args),
        Verb::Detect(args) => Ok(checks::detected(world, &common, &args)),
        Verb::Verify(args) => checks::verify(world, &common, &args),
        Verb::Diagnose(args) => checks::diagnose(world, &common, &args),
        Verb::Init(args) => init::init(world, &common, &args),
        Verb::Task(args) => task::task(world, &common, &args),
        Verb::Dispute(args) => task::dispute(world, &common, &args),
        Verb::Submit(args) => verdict::record(world, Decision::Submit, args.notes.as_deref().unwrap_or_default()),
        Verb::Approve(args) => verdict::record(world, Decision::Approve, args.notes.as_deref().unwrap_or_default()),
        Verb::Reject(args) => verdict::record(world, Decision::Reject, &args.notes),
        Verb::Skip(args) => verdict::record(world, Decision::Skip, args.notes.as_deref().unwrap_or_default()),
        Verb::Mcp(args) => mcp::mcp(world, &common, &args),
        Verb::Report(args) => report::report(world, &common, &args),
        Verb::Completions(args) => shell::completions(world, &args),
        Verb::Man(args) => shell::man(world, &args),
        Verb::Explain(args) => explain::explain(world, &args),
        Verb::Eval(args) => eval::eval(world, &common, &args),
        Verb::Work(args) => Ok(work::work(world, &common, &args)),
        Verb::Render(args) => render::render(world, &common, &args),
    };
    answered.unwrap_or_else(|stopped| stopped.exit(world))
}

/// Runs the scripted agent of the built-in demo, given its arguments without the hidden command.
#[must_use]
pub fn demo(world: &World, arguments: &[OsString]) -> Exit {
    run::demo::act(world, arguments)
}

/// Works on the tree of a case of an evaluation, given the arguments without the hidden command.
#[must_use]
pub fn tree(world: &World, arguments: &[OsString]) -> Exit {
    eval::tree::tree(world, arguments)
}

/// Prints the completions of an argument, given the command line without the hidden command.
#[must_use]
pub fn candidates(world: &World, arguments: &[OsString]) -> Exit {
    complete::candidates(world, arguments)
}
