//! What the verbs about earlier runs share: the journal that is there, and the run that is meant.

use super::args::Common;
use super::config::{Project, project};
use super::stage::broken_journal;
use crate::journal::{Journal, Lease};
use crate::proc::start_time;
use crate::run::{RunRow, RunState};
use crate::source::Diagnostic;
use crate::world::World;
use std::path::Path;

/// How many runs an error names.
const NAMED: usize = 5;

/// The project and its journal.
///
/// # Errors
/// When there is none, or it cannot be read.
pub(super) fn journal(world: &World, common: &Common) -> Result<(Project, Journal), Diagnostic> {
    let project = project(world, common);
    match Journal::existing(&project.root) {
        Ok(Some(journal)) => Ok((project, journal)),
        Ok(None) => Err(no_journal(&project.root)),
        Err(error) => Err(broken_journal(&error)),
    }
}

/// Whether the process that took a lease lives.
pub(super) fn is_alive(lease: Lease) -> bool {
    start_time(lease.pid) == Some(lease.start_time)
}

/// How a run is now.
///
/// # Errors
/// When the journal cannot be read.
pub(super) fn state(journal: &Journal, row: &RunRow) -> Result<RunState, Diagnostic> {
    let lease = journal.lease().map_err(|error| broken_journal(&error))?;
    let alive = lease.is_some_and(|lease| lease.run == row.id && is_alive(lease));
    Ok(RunState::of_run(row, alive))
}

/// The run of this number; without one the last that `fits`.
///
/// # Errors
/// When there is none; the last ones are named.
pub(super) fn meant(
    journal: &Journal,
    id: Option<i64>,
    fits: impl Fn(RunState) -> bool,
    wanted: &str,
) -> Result<(RunRow, RunState), Diagnostic> {
    let rows = journal.runs().map_err(|error| broken_journal(&error))?;
    let last: Vec<String> = rows.iter().take(NAMED).map(|row| row.id.to_string()).collect();
    for row in rows {
        if id.is_none_or(|id| id == row.id) {
            let state = state(journal, &row)?;
            if id.is_some() || fits(state) {
                return Ok((row, state));
            }
        }
    }
    Err(match id {
        Some(id) => unknown_run(id, &last),
        None => no_such_run(wanted, &last),
    })
}

fn no_journal(root: &Path) -> Diagnostic {
    Diagnostic::error("journal/none", format!("no run was ever begun in {}", root.display()))
        .help("go to the folder of the run, or name it with --cwd")
}

fn unknown_run(id: i64, last: &[String]) -> Diagnostic {
    Diagnostic::error("journal/unknown-run", format!("there is no run {id}"))
        .help(format!("the last ones are {}; `forkhestra runs` lists them all", last.join(", ")))
}

fn no_such_run(wanted: &str, last: &[String]) -> Diagnostic {
    let help = match last {
        [] => "no run was begun here".into(),
        last => format!("the last runs are {}; `forkhestra runs` shows how they ended", last.join(", ")),
    };
    Diagnostic::error("journal/no-run", format!("there is no run {wanted}")).help(help)
}
