//! What the commands about earlier runs share: the existing journal, and the selected run.

use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::respond::broken_journal;
use crate::engine::{RunOutcome, RunRow, RunState};
use crate::journal::{Journal, Lease};
use crate::proc::start_time;
use crate::source::Diagnostic;
use crate::world::World;
use std::path::Path;

/// The maximum number of runs that an error names.
const NAMED: usize = 5;

/// The project and its journal.
///
/// # Errors
/// When there is no journal, or it cannot be read.
pub(in crate::cli) fn journal(world: &World, common: &Common) -> Result<(Project, Journal), Diagnostic> {
    let project = project(world, common);
    match Journal::existing(&project.root) {
        Ok(Some(journal)) => Ok((project, journal)),
        Ok(None) => Err(no_journal(&project.root)),
        Err(error) => Err(broken_journal(&error)),
    }
}

/// Whether the process that took a lease is alive.
pub(in crate::cli) fn is_alive(lease: Lease) -> bool {
    start_time(lease.pid) == Some(lease.start_time)
}

/// The current state of a run.
///
/// # Errors
/// When the journal cannot be read.
pub(in crate::cli) fn state(journal: &Journal, row: &RunRow) -> Result<RunState, Diagnostic> {
    let lease = journal.lease().map_err(|error| broken_journal(&error))?;
    let alive = lease.is_some_and(|lease| (lease.run == row.id || row.batch == Some(lease.run)) && is_alive(lease));
    Ok(RunState::of_run(row, alive))
}

/// Returns the run with this number, or without one the last run that `fits` and that is not one of a batch.
///
/// # Errors
/// When there is no such run; the error names the last ones.
pub(in crate::cli) fn meant(
    journal: &Journal,
    id: Option<i64>,
    fits: impl Fn(&RunRow, RunState) -> bool,
    wanted: &str,
) -> Result<(RunRow, RunState), Diagnostic> {
    let rows = journal.runs().all().map_err(|error| broken_journal(&error))?;
    let last: Vec<String> =
        rows.iter().filter(|row| row.batch.is_none()).take(NAMED).map(|row| row.id.to_string()).collect();
    let mut others = Vec::new();
    for row in &rows {
        if id.map_or(row.batch.is_none(), |id| id == row.id) {
            let state = state(journal, row)?;
            if id.is_some() || fits(row, state) {
                return Ok((row.clone(), state));
            }
            let is_repeated = rows.iter().any(|later| later.id > row.id && later.chain == row.chain);
            others.push(format!("run {} {}", row.id, how(row, state, is_repeated)));
        }
    }
    others.truncate(NAMED);
    Err(match id {
        Some(id) => unknown_run(id, &last),
        None => no_such_run(wanted, &others),
    })
}

/// Describes the state of a run, and how to continue it. `is_repeated` says whether its chain was run again since.
fn how(row: &RunRow, state: RunState, is_repeated: bool) -> String {
    let id = row.id;
    match state {
        RunState::Running => "is still running".into(),
        RunState::Complete => "is complete".into(),
        RunState::TasksLeft => "has ended, and not every task has landed".into(),
        RunState::CasesFailed => "has ended, and not every case passed".into(),
        RunState::NeverBegan => "was interrupted before it started".into(),
        _ if row.outcome.is_some_and(RunOutcome::is_exhausted) => {
            format!("has used up its count: forkhestra resume {id} --more N")
        }
        RunState::Unclear => {
            format!(
                "is waiting for a human decision: forkhestra resume {id}, alone or with --approve, or --reject \"why\""
            )
        }
        RunState::NeedsHuman => {
            format!("is waiting for a human decision: forkhestra resume {id} --approve, or --reject \"why\"")
        }
        RunState::Incomplete if is_repeated => {
            format!("failed, and its chain was run again since: forkhestra resume {id}")
        }
        RunState::Incomplete => format!("failed: forkhestra resume {id}"),
        _ => format!("can be resumed: forkhestra resume {id}"),
    }
}

fn no_journal(root: &Path) -> Diagnostic {
    Diagnostic::error("journal/none", format!("there are no runs in {}", root.display()))
        .help("change to the directory of the run, or name that directory with --cwd")
}

fn unknown_run(id: i64, last: &[String]) -> Diagnostic {
    let help = match last {
        [] => "there are no runs yet".into(),
        last => format!("the last runs: {}; `forkhestra runs` lists all of them", last.join(", ")),
    };
    Diagnostic::error("journal/unknown-run", format!("there is no run {id}")).help(help)
}

fn no_such_run(wanted: &str, last: &[String]) -> Diagnostic {
    let help = match last {
        [] => "change to the directory of the run, or name that directory with --cwd".into(),
        last => last.join("\n"),
    };
    Diagnostic::error("journal/no-run", format!("there is no run {wanted}")).help(help)
}
