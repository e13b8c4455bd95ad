//! A queue of tasks that has ended: a table of its tasks, and the totals.

use crate::engine::{Event, RunSummary, Sum};
use crate::report::closing::{cost_cell, tokens_cell, used_words};
use crate::report::format::{first_line, fitted, padded, width};
use crate::report::paint::Paint;
use crate::source::counted;
use std::fmt::Write;

/// The maximum width of a title, in columns.
const TITLE: usize = 40;

/// A task of a queue, and the totals of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueRow {
    /// The id of the task.
    pub task: String,
    title: String,
    status: &'static str,
    run: Option<i64>,
    sum: Sum,
}

impl QueueRow {
    /// Returns the row of a task. `events` are those of its run; empty if it had none.
    #[must_use]
    pub fn of(task: String, title: String, status: &'static str, run: Option<i64>, events: &[Event]) -> Self {
        Self { task, title, status, run, sum: RunSummary::of(events).totals.all }
    }

    /// Whether no run of the task has begun.
    #[must_use]
    pub fn has_no_run(&self) -> bool {
        self.run.is_none()
    }
}

/// Returns the table, why the queue stopped early if it did, and the totals.
#[must_use]
pub fn queue_table(rows: &[QueueRow], stopped: Option<&str>, paint: Paint) -> String {
    let widest = |cell: &dyn Fn(&QueueRow) -> usize| rows.iter().map(cell).max().unwrap_or(0).max(5);
    let title = |row: &QueueRow| fitted(&first_line(&row.title), TITLE);
    let (names, titles) = (widest(&|row| width(&row.task)), widest(&|row| width(&title(row))));
    let heading = format!(
        "  {:names$}  {:titles$}  {:<11} {:>8} {:>14} {:>9} {:>5}",
        "task", "title", "status", "attempts", "tokens", "cost", "run"
    );
    let mut text = format!("\n{}\n", paint.dim(&heading));
    let mut all = Sum::default();
    for row in rows {
        let status = format!("{:<11}", row.status);
        let status = match row.status {
            "completed" | "skipped" => paint.good(&status),
            "disputed" | "failed" => paint.bad(&status),
            _ => paint.warn(&status),
        };
        let run = row.run.map_or_else(|| "-".into(), |run| run.to_string());
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {}  {}  {status} {:>8} {:>14} {:>9} {run:>5}",
            padded(&row.task, names),
            padded(&title(row), titles),
            row.sum.attempts,
            tokens_cell(&row.sum),
            cost_cell(&row.sum)
        );
        all.join(&row.sum);
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for row in rows {
        match counts.iter_mut().find(|(status, _)| *status == row.status) {
            Some((_, count)) => *count += 1,
            None => counts.push((row.status, 1)),
        }
    }
    let counts = counts.iter().map(|(status, count)| format!("{count} {status}")).collect::<Vec<_>>().join(", ");
    let used = used_words(&all).into_iter().fold(counted(all.attempts, "attempt"), |words, used| words + ", " + &used);
    if let Some(why) = stopped {
        let _ = writeln!(text, "{}", paint.warn(&format!("! {why}")));
    }
    let tasks = counted(rows.len(), "task");
    let _ = writeln!(text, "{}", paint.bold(&format!("{tasks}: {counts} ({used})")));
    text
}
