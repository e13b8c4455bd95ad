//! Cases that are trees: the check of their chain, and `__tree`, which works on one as an agent of an evaluation.

use crate::chain::{PromptSource, check_name, parse};
use crate::cli::config::Project;
use crate::cli::run::chain::{TypedVars, named};
use crate::cli::run::{Typed, planned};
use crate::eval::{Suite, work_on_tree};
use crate::exit::Exit;
use crate::plan::Overrides;
use crate::report::{print, print_error};
use crate::source::{Diagnostic, Source, Text};
use crate::world::World;
use std::ffi::OsString;

/// Reads a request from standard input, runs its chain in its tree, and prints the answer.
pub(in crate::cli) fn tree(world: &World, options: &[OsString]) -> Exit {
    let options: Vec<String> = options.iter().map(|option| option.to_string_lossy().into_owned()).collect();
    let request = match world.stdin().read_all() {
        Ok(request) => request,
        Err(error) => {
            print_error(&format!("forkhestra: {error}\n"));
            return Exit::Refused;
        }
    };
    let worked = work_on_tree(world, &request, &options);
    print_error(&worked.log);
    let answer = if worked.answer.is_empty() { String::new() } else { worked.answer + "\n" };
    match print(&answer) {
        Ok(()) if worked.has_run => Exit::Success,
        _ => Exit::Incomplete,
    }
}

/// Checks the chain that works in the trees.
///
/// # Errors
/// All its errors.
pub(super) fn check_chain(
    world: &World,
    project: &Project,
    suite: &Suite,
    overrides: &Overrides,
) -> Result<(), Vec<Diagnostic>> {
    let executors = suite.columns.iter().map(|column| &column.executor);
    let mut faults = Vec::new();
    for text in executors {
        let found = checked(world, project, text, overrides).err().into_iter().flatten();
        faults.extend(found.filter(|fault| !faults.contains(fault)).collect::<Vec<_>>());
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn checked(world: &World, project: &Project, text: &Text, overrides: &Overrides) -> Result<(), Vec<Diagnostic>> {
    let is_named = check_name(&text.value).is_ok() && project.config.chains.contains_key(&text.value);
    let chain = if is_named {
        named(&text.value, &project.config)?
    } else {
        parse(&Source::new("the executor", text.value.as_str(), &project.shell))?
    };
    let said = Text { value: "?".into(), at: text.at.clone() };
    let prompt = PromptSource { inline: Some(said), file: None };
    let typed = Typed { prompt, overrides: overrides.clone(), task: None };
    planned(world, project, &chain, &TypedVars::new(), &typed).map(drop)
}
