//! Commands for people only: refused to every process that an attempt here has started, even in a cleared environment.

use crate::chain::Role;
use crate::cli::task::errors::only_a_human;
use crate::cli::verdict::in_an_iteration;
use crate::journal::caller;
use crate::proc::{inherited, is_below_agent};
use crate::source::{Diagnostic, Env};
use crate::world::World;
use std::path::{Path, PathBuf};

/// Refuses calls by an agent of a run in this root. An agent that has cleared its environment is recognized by the
/// processes that it descends from, even if its own are gone.
pub(super) fn only_people(world: &World, root: &Path) -> Result<(), Diagnostic> {
    let ours = root.join(".forkhestra");
    let descends = inherited("FORKHESTRA_RESULT").into_iter().any(|result| PathBuf::from(result).starts_with(&ours));
    if in_an_iteration(world) || descends || is_below_agent(root) { Err(only_a_human()) } else { Ok(()) }
}

/// Refuses a run that a judge starts: its agents could do what the judge itself may not.
pub(super) fn no_run_by_a_judge(world: &World) -> Result<(), Diagnostic> {
    let token =
        world.var("FORKHESTRA_TOKEN").and_then(|token| token.into_string().ok()).filter(|token| !token.is_empty());
    let result = world.var("FORKHESTRA_RESULT").map(PathBuf::from);
    let caller = token.zip(result).and_then(|(token, result)| caller(&result, &token));
    match caller.map(|caller| caller.role) {
        Some(Role::Judge) => Err(Diagnostic::error("verdict/judge-run", "a judge may not start runs")
            .help("judge the work as it is: approve, reject, dispute or skip")),
        _ => Ok(()),
    }
}
