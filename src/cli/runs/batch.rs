//! What the commands about earlier runs say about a batch.

use super::print::{LogCut, show};
use crate::cli::options::Common;
use crate::cli::run::execute::command_line;
use crate::cli::runs::broken;
use crate::engine::{
    BatchEvent, BatchState, Event, EventKind, RunKind, RunOutcome, RunRow, RunState, RunTrees, Sum, TaskOfBatch,
    TaskPlace, Totals,
};
use crate::hub::Hub;
use crate::journal::Journal;
use crate::report::{BatchLines, Paint, batch_table, batch_text, with_twice};
use crate::runner::TreeStore;
use crate::source::Diagnostic;
use crate::world::World;
use indexmap::IndexMap;
use std::path::Path;
use std::time::Duration;

/// The interval at which a batch that is followed is read.
const LOOK: Duration = Duration::from_millis(100);

/// The last lines of a batch: its tasks with what they used, and what to type next.
pub(in crate::cli) fn closing(
    world: &World,
    common: &Common,
    journal: &Journal,
    (run, state): (i64, &BatchState),
    paint: Paint,
) -> Result<String, Diagnostic> {
    let mut sums: IndexMap<String, Sum> = IndexMap::new();
    let mut all = Totals::default();
    let mut verifications = Totals::default().all;
    for unit in state.units.values().filter(|unit| unit.task.is_none()) {
        verifications.join(&journal.events().summary(unit.run).map_err(broken)?.totals.all);
    }
    all.all.join(&verifications);
    for (id, task) in &state.tasks {
        let mut totals = Totals::default().all;
        for run in &task.runs {
            totals.join(&journal.events().summary(*run).map_err(broken)?.totals.all);
        }
        all.all.join(&totals);
        sums.insert(id.clone(), totals);
    }
    let line = |words: &str| command_line(world, common, journal.root(), words);
    let mut next = Vec::new();
    let resume = line(&format!("resume {run}"));
    match state.outcome {
        Some(RunOutcome::Succeeded | RunOutcome::TasksLeft) => {}
        Some(RunOutcome::LimitReached { limit }) => {
            let limits = journal.runs().outline(run).map_err(broken)?.map(|outline| outline.limits).unwrap_or_default();
            next.push(with_twice(limit, &all, &limits, &resume));
        }
        _ => next.push(resume),
    }
    // A run that never began has nothing to show, but the batch has its reason.
    let began = |run: i64| journal.runs().get(run).ok().flatten().is_some_and(|row| row.began);
    let shown = |of: i64| if began(of) { of } else { run };
    next.extend(
        state.tasks.iter().find_map(|(id, task)| after_stop(state, id, task, &shown)).map(|words| line(&words)),
    );
    if state.landed() > 0 {
        let branch = state.facts.as_ref().and_then(|facts| facts.branch.as_ref());
        let into = branch.map_or_else(String::new, |branch| format!(" --into {branch}"));
        next.push(line(&format!("task land{into}")));
    }
    Ok(batch_table(state, &sums, &verifications, &next, paint))
}

/// The command that helps with a task that has stopped. `shown` returns the run that says most about a run.
fn after_stop(state: &BatchState, id: &str, task: &TaskOfBatch, shown: &dyn Fn(i64) -> i64) -> Option<String> {
    let TaskPlace::Stopped(_) = task.place else { return None };
    let unit = state.units.values().rev().find(|unit| unit.task.as_deref() == Some(id));
    let waits = unit.is_some_and(|unit| matches!(unit.outcome, Some(RunOutcome::NeedsHuman { .. })));
    let is_undecided = task.chosen.is_none() && !task.accepted().is_empty();
    if waits || is_undecided {
        return Some(format!("task approve {id}"));
    }
    task.runs.last().map(|run| format!("runs show {}", shown(*run)))
}

/// A batch as `runs show` shows it.
pub(super) fn shown(
    world: &World,
    common: &Common,
    journal: &Journal,
    (row, state): (&RunRow, RunState),
    events: &[Event],
) -> Result<String, Diagnostic> {
    let paint = Paint::for_stdout(world).still();
    let batch = BatchState::of_events(events).unwrap_or_default();
    let table = closing(world, common, journal, (row.id, &batch), paint)?;
    Ok(batch_text(row, state, events, &table, paint))
}

/// Prints the lines of a batch; with `is_at_work`, until it returns false.
pub(super) fn play(
    world: &World,
    common: &Common,
    journal: &Journal,
    run: i64,
    is_at_work: &dyn Fn() -> Result<bool, Diagnostic>,
) -> Result<(), LogCut> {
    let paint = Paint::for_stdout(world).still();
    let (mut lines, mut seq) = (BatchLines::new(run, paint), 0);
    loop {
        // Checked before the last read, so that nothing written before the end is missed.
        let continues = is_at_work()?;
        for event in journal.events().after(run, seq).map_err(broken)? {
            seq = event.seq;
            show(lines.event(&event.event).as_bytes())?;
        }
        if !continues {
            break;
        }
        std::thread::sleep(LOOK);
    }
    if !common.quiet {
        show(closing(world, common, journal, (run, lines.state()), paint)?.as_bytes())?;
    }
    Ok(())
}

/// The trees of a run, and the repository that has them. Those of a run of a batch are in its workspace; when that is
/// removed, the hub still has the first and the last one. Those of a batch are the line before and after it.
pub(in crate::cli) fn trees_of(
    journal: &Journal,
    row: &RunRow,
    trees: RunTrees,
) -> Result<(TreeStore, RunTrees), Diagnostic> {
    let own = TreeStore::of(journal.root());
    if row.kind == RunKind::Batch {
        let events = journal.events().of(row.id).map_err(broken)?;
        let state = BatchState::of_events(&events).unwrap_or_default();
        let began = events.iter().find_map(|event| match &event.event {
            EventKind::Batch { event: BatchEvent::Started { facts } } => Some(facts.line.clone()),
            _ => None,
        });
        let Some((hub, began)) = Hub::existing(journal.root()).zip(began) else { return Ok((own, trees)) };
        let tree = |commit: &str| hub.commits().tree_of(commit).ok();
        return Ok((TreeStore::at(journal.root(), hub.path()), trees.with_ends(tree(&began), tree(&state.line))));
    }
    let (Some(batch), Some(name)) = (row.batch, &row.unit) else { return Ok((own, trees)) };
    let (mut began, mut work, mut workspace) = (None, None, None);
    for event in journal.events().of(batch).map_err(broken)? {
        match event.event {
            EventKind::Batch { event: BatchEvent::UnitStarted { unit, base, workspace: folder, .. } }
                if unit == *name =>
            {
                (began, workspace) = (Some(base), Some(folder));
            }
            EventKind::Batch { event: BatchEvent::UnitEnded { unit, work: found, .. } } if unit == *name => {
                work = found;
            }
            _ => {}
        }
    }
    let there = workspace.map(|folder| TreeStore::of(Path::new(&folder)));
    if let Some(store) = there.filter(|store| trees.last().is_some_and(|last| store.has(last))) {
        return Ok((store, trees));
    }
    match (Hub::existing(journal.root()), began, work) {
        (Some(hub), Some(began), Some(work)) => {
            let tree = |commit: &str| hub.commits().tree_of(commit).ok();
            Ok((TreeStore::at(journal.root(), hub.path()), trees.with_ends(tree(&began), tree(&work))))
        }
        _ => Ok((own, trees)),
    }
}
