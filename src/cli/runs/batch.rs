//! What the commands about earlier runs say about a batch.

use super::log::{Cut, show};
use crate::cli::args::Common;
use crate::cli::run::execute::{command_line, resume_line};
use crate::cli::runs::broken;
use crate::engine::{BatchState, Event, RunRow, RunState, Sum, Totals};
use crate::journal::Journal;
use crate::report::{BatchLines, Paint, batch_table, batch_text};
use crate::source::Diagnostic;
use crate::world::World;
use indexmap::IndexMap;
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
