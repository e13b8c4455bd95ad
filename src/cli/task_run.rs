//! `task run`: the task that is meant, or one after the other, each by a run of its own.

use super::args::{Common, RunArgs};
use super::chain::split;
use super::stage::broken_journal;
use super::task_args::TaskRunArgs;
use super::task_facts::journal as journal_of;
use super::{refuse, run as driven, task_errors as errors};
use crate::exit::Exit;
use crate::journal::Journal;
use crate::report::print_error;
use crate::source::Diagnostic;
use crate::task::next;
use crate::world::World;

/// Works on one task, or on all of them.
pub(super) fn run(world: &World, common: &Common, args: &TaskRunArgs) -> Exit {
    let (project, journal) = match journal_of(world, common) {
        Ok(found) => found,
        Err(fault) => return refuse(world, &[fault]),
    };
    let (vars, ids): (Vec<String>, Vec<String>) = args.words.iter().cloned().partition(|word| word.contains('='));
    if let Err(faults) = split(&vars, &project.shell) {
        return refuse(world, &faults);
    }
    let picked = match (ids.as_slice(), args.all) {
        ([], true) => return all(world, common, args, &vars, &journal),
        ([], false) => next_of(&journal, &[]).and_then(|id| id.ok_or_else(errors::nothing_to_run)),
        ([id], false) => Ok(id.clone()),
        _ => Err(errors::two_tasks()),
    };
    match picked {
        Ok(id) => driven::run(world, common, &run_args(args, &vars, id)),
        Err(fault) => refuse(world, &[fault]),
    }
}

/// The seed's cycle. A task that needs a human stops itself and what waits for it, not the others (C27, C28).
fn all(world: &World, common: &Common, args: &TaskRunArgs, vars: &[String], journal: &Journal) -> Exit {
    let (mut done, mut worst) = (Vec::new(), Exit::Success);
    loop {
        let id = match next_of(journal, &done) {
            Ok(Some(id)) => id,
            Ok(None) if done.is_empty() => return refuse(world, &[errors::nothing_to_run()]),
            Ok(None) => return worst,
            Err(fault) => return refuse(world, &[fault]),
        };
        if !common.quiet {
            print_error(&format!("task {id}\n"));
        }
        done.push(id.clone());
        match driven::run(world, common, &run_args(args, vars, id)) {
            // What one task is refused for, its specification for example, is no reason to leave out the others.
            Exit::Incomplete | Exit::Refused if worst == Exit::Success => worst = Exit::Incomplete,
            Exit::Success | Exit::Incomplete | Exit::Refused => {}
            Exit::HumanNeeded => worst = Exit::HumanNeeded,
            // Whoever ended this one, or a limit, meant all of them.
            other => return other,
        }
    }
}

fn next_of(journal: &Journal, but: &[String]) -> Result<Option<String>, Diagnostic> {
    let tasks = journal.tasks().map_err(|error| broken_journal(&error))?;
    Ok(next(&tasks, but).map(|task| task.id.clone()))
}

fn run_args(args: &TaskRunArgs, vars: &[String], id: String) -> RunArgs {
    RunArgs {
        words: vars.to_vec(),
        chain: Some(args.chain.clone()),
        task: Some(id),
        permissions: args.permissions.clone(),
        limit: args.limit.clone(),
        profile: args.profile.clone(),
        scope: args.scope.clone(),
        accept_changes: args.accept_changes,
        dry_run: args.dry_run,
        wait: args.wait,
        json: args.json,
        told: args.told.clone(),
        ..RunArgs::default()
    }
}
