//! `task run`: works on one task, or on one after the other, each in a run of its own.

use crate::cli::args::RunArgs;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, broken_journal};
use crate::cli::run as driven;
use crate::cli::run::chain::split;
use crate::cli::run::start_at::wait_for_start;
use crate::cli::task::args::TaskRunArgs;
use crate::cli::task::batch;
use crate::cli::task::errors;
use crate::cli::task::facts::{journal as journal_of, shared_ids};
use crate::cli::task::queue::{Queue, all, wait_for_others};
use crate::journal::Journal;
use crate::plan::limits;
use crate::source::Diagnostic;
use crate::task::next;
use crate::world::World;
use std::path::Path;

/// Works on one task, or on all of them.
pub(in crate::cli) fn run(world: &World, common: &Common, args: &TaskRunArgs) -> Answered {
    let (project, journal) = journal_of(world, common)?;
    let (vars, ids): (Vec<String>, Vec<String>) = args.words.iter().cloned().partition(|word| word.contains('='));
    split(&vars, &project.shell)?;
    if args.lanes().is_some() {
        return batch::begin(world, common, &project, args, (vars, ids));
    }
    let picked = match (ids.as_slice(), args.all) {
        ([], true) => {
            // Errors in the limits are reported now, not after the wait.
            limits("--limit", &args.options.bounds.limit, &project.shell)
                .and_then(|_| limits("--limit-each", &args.limit_each, &project.shell))?;
            if args.wait {
                wait_for_others(world, common, &project.root)?;
            }
            next_of(&journal, &project.root).and_then(|id| id.ok_or_else(errors::nothing_to_run))?;
            let keeps_awake = project.config.keep_awake != Some(false);
            if let Some(start) = &args.start_at {
                wait_for_start(world, common, start, keeps_awake)?;
            }
            let to_run = |id: String, limit: Vec<String>| {
                let mut run = run_args(args, &vars, id);
                run.options.bounds.limit = limit;
                run
            };
            return all(&Queue { world, common, project: &project, args, journal: &journal, to_run: &to_run });
        }
        ([], false) => {
            // The next task is chosen after the run that is waited for has ended.
            if args.wait {
                wait_for_others(world, common, &project.root)?;
            }
            next_of(&journal, &project.root).and_then(|id| id.ok_or_else(errors::nothing_to_run))
        }
        ([id], false) if shared_ids(&project.root)?.contains(id) => Err(errors::of_a_hub(&[id])),
        ([id], false) => Ok(id.clone()),
        _ => Err(errors::two_tasks()),
    };
    match picked {
        Ok(id) => driven::run(world, common, &run_args(args, &vars, id)),
        Err(fault) => Err(fault.into()),
    }
}

/// The next task of the project itself: another batch may work on those of a hub.
fn next_of(journal: &Journal, root: &Path) -> Result<Option<String>, Diagnostic> {
    let tasks = journal.tasks().all().map_err(|error| broken_journal(&error))?;
    Ok(next(&tasks, &shared_ids(root)?).map(|task| task.id.clone()))
}

fn run_args(args: &TaskRunArgs, vars: &[String], id: String) -> RunArgs {
    let mut options = args.options.clone();
    options.bounds.limit.extend(args.limit_each.iter().cloned());
    RunArgs {
        words: vars.to_vec(),
        chain: Some(args.chain.clone()),
        task: Some(id),
        options,
        dry_run: args.dry_run,
        wait: args.wait,
        start_at: args.start_at.clone().filter(|_| !args.all),
        json: args.json,
        told: args.told.clone(),
        ..RunArgs::default()
    }
}
