//! `--baseline`: the results of an earlier evaluation.

use super::ledger_of;
use crate::cli::config::Project;
use crate::cli::respond::broken_journal;
use crate::engine::Baseline;
use crate::eval::Suite;
use crate::journal::Journal;
use crate::source::Diagnostic;
use crate::world::World;
use std::collections::HashSet;
use std::path::Path;

/// Returns the results of an earlier evaluation of this suite, which is at `path`.
///
/// # Errors
/// When there is no such run, it evaluated another suite, or none of the cases was judged in it.
pub(super) fn of_run(
    world: &World,
    project: &Project,
    run: i64,
    suite: &Suite,
    path: &Path,
) -> Result<Baseline, Vec<Diagnostic>> {
    let refused = |why: String| vec![Diagnostic::error("eval/baseline", why).help("`forkhestra runs` lists all runs")];
    let broken = |error| vec![broken_journal(&error)];
    let journal = Journal::existing(&project.root).map_err(broken)?;
    let events = journal.map(|journal| journal.events().of(run)).transpose().map_err(broken)?.unwrap_or_default();
    if events.is_empty() {
        return Err(refused(format!("there is no run {run} to compare with")));
    }
    let Some(ledger) = ledger_of(&events) else { return Err(refused(format!("run {run} is not an evaluation"))) };
    let facts = ledger.facts.clone().unwrap_or_default();
    let same_file = world.canonical(Path::new(&facts.options.suite)) == world.canonical(path);
    // A project that was moved still has the same suites.
    if facts.suite != suite.name && !same_file {
        return Err(refused(format!("run {run} evaluated another suite: {}", facts.suite)));
    }
    let mut cases = ledger.values(0);
    let ids: HashSet<&str> = suite.cases.iter().map(|case| &*case.id).collect();
    cases.retain(|id, _| ids.contains(id.as_str()));
    if cases.is_empty() {
        return Err(refused(format!("run {run} judged none of these cases")));
    }
    Ok(Baseline { run, cases })
}
