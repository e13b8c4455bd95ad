//! What the commands about earlier runs say about a batch.

use super::log::{Cut, show};
use crate::cli::args::Common;
use crate::cli::run::execute::{command_line, resume_line};
use crate::cli::runs::broken;
use crate::engine::{BatchEvent, BatchState, Event, EventKind, RunRow, RunState, RunTrees, Sum, Totals};
use crate::hub::Hub;
use crate::journal::Journal;
use crate::report::{BatchLines, Paint, batch_table, batch_text};
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
    for (id, task) in &state.tasks {
        let mut totals = Totals::default().all;
        for run in &task.runs {
            totals.join(&journal.summary(*run).map_err(broken)?.totals.all);
        }
        sums.insert(id.clone(), totals);
    }
    let resume = resume_line(world, common, journal.root(), run);
    let land = command_line(world, common, journal.root(), "task land");
    Ok(batch_table(state, &sums, &resume, &land, paint))
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
) -> Result<(), Cut> {
    let paint = Paint::for_stdout(world).still();
    let (mut lines, mut seq) = (BatchLines::new(run, paint), 0);
    loop {
        // Checked before the last read, so that nothing written before the end is missed.
        let continues = is_at_work()?;
        for event in journal.events_after(run, seq).map_err(broken)? {
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
/// removed, the hub still has the first and the last one.
pub(in crate::cli) fn trees_of(
    journal: &Journal,
    row: &RunRow,
    trees: RunTrees,
) -> Result<(TreeStore, RunTrees), Diagnostic> {
    let own = TreeStore::of(journal.root());
    let (Some(batch), Some(name)) = (row.batch, &row.unit) else { return Ok((own, trees)) };
    let (mut began, mut work, mut workspace) = (None, None, None);
    for event in journal.events(batch).map_err(broken)? {
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
            let tree = |commit: &str| hub.tree_of(commit).ok();
            Ok((TreeStore::at(journal.root(), hub.path()), trees.with_ends(tree(&began), tree(&work))))
        }
        _ => Ok((own, trees)),
    }
}
