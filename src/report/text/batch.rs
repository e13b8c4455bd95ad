//! A batch in words: a line for each event that matters, and a table at the end.

use crate::engine::{
    BatchEvent, BatchFacts, BatchState, Event, EventKind, RunOutcome, RunRow, RunState, Sum, TaskPlace, TryOfTask,
    TryPlace, UnitOfBatch,
};
use crate::report::closing::{cost_cell, tokens_cell, used_words};
use crate::report::format::{first_line, fitted, local_time, padded, time_of_day, width};
use crate::report::paint::Paint;
use crate::report::text::history::{painted, state_label};
use crate::source::counted;
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::fmt::Write;

/// The maximum width of a title, in columns.
const TITLE: usize = 40;
/// The maximum width of a judge's reason, in columns.
const REASON: usize = 100;

/// The line with which a batch begins.
fn begins(run: i64, facts: &BatchFacts, is_resumed: bool, paint: Paint) -> String {
    let dot = paint.sign("●", "*");
    let (tasks, lanes) = (counted(facts.tasks.len(), "task"), counted(facts.jobs, "lane"));
    let again = if is_resumed { "continues" } else { "begins" };
    let verified = match &facts.verification {
        Some(checks) => format!("verified by {checks}"),
        None => "landed without being verified".into(),
    };
    let tries = match facts.tries.len() {
        0 => String::new(),
        count => format!(", {count} tries per task"),
    };
    let on = facts.engine.as_ref().map_or_else(String::new, |engine| format!(" on {engine}"));
    paint.bold(&format!("{dot} batch {run} {again}{on}")) + &format!(": {tasks}{tries}, {lanes}, {verified}\n")
}

/// Returns the lines about an event of a batch; empty for one that people need not see. `state` is the state before it.
#[must_use]
pub(in crate::report) fn batch_line(run: i64, event: &EventKind, state: &BatchState, paint: Paint) -> String {
    let EventKind::Batch { event } = event else { return String::new() };
    let title = |task: &str| {
        let title = state.tasks.get(task).map_or("", |known| known.facts.title.as_str());
        fitted(&first_line(title), TITLE)
    };
    match event {
        BatchEvent::Started { facts } => begins(run, facts, state.facts.is_some(), paint),
        BatchEvent::UnitStarted { task: Some(task), run, choice: true, .. } => {
            let tries = state.tasks.get(task).map_or(0, |known| known.accepted().len());
            let judge = state.facts.as_ref().and_then(|facts| facts.judge.as_deref()).unwrap_or("the judge");
            let words =
                format!("  {} {task}  {judge} chooses one of {tries} accepted tries (run {run})", paint.sign("▶", ">"));
            paint.dim(&words) + "\n"
        }
        BatchEvent::UnitStarted { task: Some(task), run, try_number, .. } => {
            let part =
                try_number.map_or_else(String::new, |number| format!(", try {number}{}", by(state, task, number)));
            paint.dim(&format!("  {} {task}  {}{part} (run {run})", paint.sign("▶", ">"), title(task))) + "\n"
        }
        BatchEvent::UnitClaimed { unit, machine } => {
            let label = state.units.get(unit).map(UnitOfBatch::label).unwrap_or_default();
            let machine = if machine.is_empty() { "another machine" } else { machine };
            paint.dim(&format!("  {} {label}  is at work on {machine}", paint.sign("→", "-"))) + "\n"
        }
        BatchEvent::Chosen { task, try_number, reason } => {
            let by = by(state, task, *try_number);
            let reason = fitted(&first_line(reason), REASON);
            paint.good(&format!("  {} {task}", paint.sign("→", ">")))
                + &format!("  try {try_number}{by} is taken: {reason}\n")
        }
        BatchEvent::Undecided { task, reason } => {
            paint.warn(&format!("  ! {task}")) + &format!("  no try is chosen: {reason}\n")
        }
        BatchEvent::UnitEnded { unit, exit: Some(0), work: Some(_), .. } if is_trying(state, unit) => {
            paint.dim(&format!("  {} {}", paint.sign("✓", "+"), try_of(state, unit, "is accepted"))) + "\n"
        }
        BatchEvent::UnitEnded { unit, outcome, work: Some(_), error, .. } if is_trying(state, unit) => {
            let reason = outcome.map_or("it was refused", RunOutcome::few_words);
            let error = error.as_ref().filter(|_| outcome.is_none());
            let error = error.map_or_else(String::new, |error| format!("{}\n", indented(error)));
            let words = try_of(state, unit, &format!("is out: {reason}"));
            paint.dim(&format!("  {} {words}", paint.sign("✗", "x"))) + "\n" + &error
        }
        BatchEvent::Landed { tasks, commit } => {
            let how = match commit.get(..8).unwrap_or(commit) {
                _ if *commit == state.line => "needed no change".to_string(),
                commit => format!("landed as {commit}"),
            };
            let lines = tasks.iter().map(|task| {
                paint.good(&format!("  {} {task}", paint.sign("✓", "+"))) + &format!("  {how}: {}\n", title(task))
            });
            lines.collect()
        }
        BatchEvent::Split { .. } => {
            let tasks = state.trial.as_ref().map(|trial| trial.tasks.join(", ")).unwrap_or_default();
            paint.dim(&format!("  {} {tasks}  fail together; half of them are verified next", paint.sign("↯", "!")))
                + "\n"
        }
        BatchEvent::SentBack { task, reason, .. } => {
            paint.warn(&format!("  {} {task}", paint.sign("↺", "<"))) + &format!("  goes back: {reason}\n")
        }
        BatchEvent::Stopped { task, reason, .. } => {
            let known = state.tasks.get(task);
            let run = known.and_then(|known| known.runs.last()).map_or_else(String::new, |run| format!(" (run {run})"));
            let error = refusal_of(state, task).map_or_else(String::new, |error| format!("{}\n", indented(error)));
            paint.bad(&format!("  {} {task}", paint.sign("✗", "x"))) + &format!("  stopped: {reason}{run}\n{error}")
        }
        BatchEvent::Parked { backend, .. } => {
            paint.warn(&format!("  {} {backend}", paint.sign("⏸", "=")))
                + "  usage limit: nothing that uses it is started until it ends\n"
        }
        BatchEvent::UnitEnded { unit, work: None, outcome: Some(RunOutcome::LimitReached { limit }), .. } => {
            let label = state.units.get(unit).map(UnitOfBatch::label).unwrap_or_default();
            paint.dim(&format!(
                "  {} {label}  has used up its share of the limit {}",
                paint.sign("⏸", "="),
                limit.key()
            )) + "\n"
        }
        BatchEvent::UnitEnded { unit, work: None, outcome, error, .. }
            if outcome.is_none_or(RunOutcome::is_a_conclusion) =>
        {
            let task = state.units.get(unit).and_then(|known| known.task.as_deref()).unwrap_or("a verification");
            // What an engine says about a job is all that is known.
            let (what, error) = match error {
                Some(error) if outcome.is_none() && error.starts_with("its job ") => (error.as_str(), None),
                error if outcome.is_none() => ("its process was lost", error.as_ref()),
                error => ("its work could not be kept", error.as_ref()),
            };
            let error = error.map_or_else(String::new, |error| format!("{}\n", indented(error)));
            paint.warn(&format!("  ! {task}")) + &format!("  {what}\n{error}")
        }
        BatchEvent::UnitStarted { .. }
        | BatchEvent::UnitEnded { .. }
        | BatchEvent::Merged { .. }
        | BatchEvent::Conflicted { .. } => String::new(),
    }
}

/// What the last worker of a task said when it was refused, or the one that had to verify its work.
fn refusal_of<'a>(state: &'a BatchState, task: &str) -> Option<&'a str> {
    let is_on_trial = state.tasks.get(task).is_some_and(|known| known.place == TaskPlace::OnTrial);
    let is_its = |unit: &&UnitOfBatch| match &unit.task {
        Some(of) => of == task,
        None => is_on_trial,
    };
    let unit = state.units.values().rev().find(is_its)?;
    unit.error.as_deref().filter(|_| unit.outcome.is_none())
}

/// Whether a unit is one of several tries at a task.
fn is_trying(state: &BatchState, unit: &str) -> bool {
    let task = state.units.get(unit).filter(|unit| unit.try_number.is_some()).and_then(|unit| unit.task.as_ref());
    task.and_then(|task| state.tasks.get(task)).is_some_and(|task| task.place == TaskPlace::Trying)
}

/// What became of one of several tries, with its run.
fn try_of(state: &BatchState, unit: &str, what: &str) -> String {
    let known = state.units.get(unit);
    known.map_or_else(String::new, |known| format!("{}  {what} (run {})", known.label(), known.run))
}

/// The backend of a try at a task, in words; empty if each agent has its own.
fn by(state: &BatchState, task: &str, number: u32) -> String {
    let backend = state.tasks.get(task).and_then(|known| known.backend_of(number));
    backend.map_or_else(String::new, |backend| format!(" by {backend}"))
}

/// The lines of a batch, event after event.
#[derive(Debug)]
pub struct BatchLines {
    run: i64,
    state: BatchState,
    paint: Paint,
}

impl BatchLines {
    /// Begins with the first event of this batch.
    #[must_use]
    pub fn new(run: i64, paint: Paint) -> Self {
        Self { run, state: BatchState::default(), paint }
    }

    /// Returns the lines about the next event; often empty.
    pub fn event(&mut self, event: &EventKind) -> String {
        let line = batch_line(self.run, event, &self.state, self.paint);
        self.state.evolve(event);
        line
    }

    /// The batch after the events so far.
    #[must_use]
    pub fn state(&self) -> &BatchState {
        &self.state
    }
}

/// Returns a batch: when it ran, what happened, and its table.
#[must_use]
pub fn batch_text(row: &RunRow, state: RunState, events: &[Event], table: &str, paint: Paint) -> String {
    let mut text = format!("{} {}\n", paint.bold(&format!("run {}", row.id)), paint.bold(&row.chain));
    let mut line = |name: &str, words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<7}")));
    };
    line("started", &local_time(&row.started));
    line("ended", &row.ended.as_deref().map_or_else(|| "not yet".into(), local_time));
    line("state", &painted(state, paint, state_label(state)));
    text.push('\n');
    let mut lines = BatchLines::new(row.id, paint);
    for event in events {
        for (index, line) in lines.event(&event.event).lines().enumerate() {
            let time = if index == 0 { paint.dim(&time_of_day(&event.at)) } else { " ".repeat(8) };
            let _ = writeln!(text, "{time}  {}", line.strip_prefix("  ").unwrap_or(line));
        }
    }
    text + table
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// What became of a task, in a word or two.
fn status_of(place: &TaskPlace, waits: bool) -> &'static str {
    match place {
        TaskPlace::Landed(_) => "landed",
        TaskPlace::Stopped(_) | TaskPlace::Unsuccessful(_) => "stopped",
        TaskPlace::Waiting if waits => "waits",
        TaskPlace::Waiting => "not begun",
        TaskPlace::Ready | TaskPlace::OnTrial | TaskPlace::Conflicted(_) | TaskPlace::Red => "not landed",
        TaskPlace::AtWork | TaskPlace::Trying | TaskPlace::Interrupted => "interrupted",
    }
}

/// Returns a batch that has ended as JSON.
#[must_use]
pub fn batch_json(run: i64, state: &BatchState, exit: u8) -> Value {
    let tasks = state.tasks.iter().map(|(id, task)| {
        let commit = match &task.place {
            TaskPlace::Landed(commit) => Some(commit),
            _ => None,
        };
        let reason = match &task.place {
            TaskPlace::Stopped(reason) => Some(reason),
            _ => None,
        };
        json!({
            "task": id,
            "title": task.facts.title,
            "status": status_of(&task.place, !task.facts.after.is_empty()),
            "commit": commit,
            "reason": reason,
            "sentBack": task.sent_back,
            "runs": task.runs,
            "tries": (1..).zip(&task.tries).map(|(number, one)| try_json(number, one)).collect::<Vec<_>>(),
            "chosen": task.chosen,
        })
    });
    json!({ "batch": run, "exit": exit, "line": state.line, "tasks": tasks.collect::<Vec<_>>() })
}

/// One of several tries at a task as JSON.
fn try_json(number: u32, one: &TryOfTask) -> Value {
    let (status, work) = match &one.place {
        TryPlace::Waiting => ("not begun", None),
        TryPlace::AtWork | TryPlace::Interrupted => ("interrupted", None),
        TryPlace::Unsuccessful(_) => ("not accepted", None),
        TryPlace::Accepted(work) => ("accepted", Some(work)),
    };
    json!({ "try": number, "backend": one.backend, "run": one.run, "status": status, "work": work })
}

/// Returns the table of a batch that has ended, with the totals of each task and of the verifications, and what to type
/// next.
#[must_use]
pub fn batch_table(
    state: &BatchState,
    sums: &IndexMap<String, Sum>,
    verifications: &Sum,
    next: &[String],
    paint: Paint,
) -> String {
    let titles: Vec<String> = state.tasks.values().map(|task| fitted(&first_line(&task.facts.title), TITLE)).collect();
    let names = state.tasks.keys().map(|id| width(id)).max().unwrap_or(0).max(5);
    let widest = titles.iter().map(|title| width(title)).max().unwrap_or(0).max(5);
    let heading = format!(
        "  {:names$}  {:widest$}  {:<11} {:>8} {:>14} {:>9} {:>9}",
        "task", "title", "status", "attempts", "tokens", "cost", "sent back"
    );
    let mut text = format!("\n{}\n", paint.dim(&heading));
    let mut all = verifications.clone();
    for ((id, task), title) in state.tasks.iter().zip(&titles) {
        let word = status_of(&task.place, !task.facts.after.is_empty());
        let status = format!("{word:<11}");
        let status = match &task.place {
            TaskPlace::Landed(_) => paint.good(&status),
            TaskPlace::Stopped(_) => paint.bad(&status),
            _ => paint.warn(&status),
        };
        let sum = sums.get(id).cloned().unwrap_or_default();
        let sent_back = if task.sent_back > 0 { task.sent_back.to_string() } else { "-".into() };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  {}  {}  {status} {:>8} {:>14} {:>9} {sent_back:>9}",
            padded(id, names),
            padded(title, widest),
            sum.attempts,
            tokens_cell(&sum),
            cost_cell(&sum)
        );
        all.join(&sum);
    }
    let (landed, tasks) = (state.landed(), counted(state.tasks.len(), "task"));
    let attempts = match verifications.attempts {
        0 => counted(all.attempts, "attempt"),
        some => format!("{}, {some} of them to verify", counted(all.attempts, "attempt")),
    };
    let used = used_words(&all).into_iter().fold(attempts, |words, used| words + ", " + &used);
    let _ = writeln!(text, "{}", paint.bold(&format!("{landed} of {tasks} landed ({used})")));
    if !next.is_empty() {
        let _ = writeln!(text, "{}", paint.dim(&format!("  next: {}", next.join(", or "))));
    }
    text
}

/// Returns the dry run of a batch: its tasks in order, what it works with, and the command that shows the plan of one.
#[must_use]
pub fn batch_plan(title: &str, facts: &BatchFacts, rows: &[(&str, String)], next: &str, paint: Paint) -> String {
    let names = facts.tasks.iter().map(|task| width(&task.id)).max().unwrap_or(0);
    let mut text = format!("{}\n\n", paint.bold(title));
    for task in &facts.tasks {
        let after = if task.after.is_empty() {
            String::new()
        } else {
            format!("  (after {} has landed)", task.after.join(", "))
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}  {}{}", padded(&task.id, names), first_line(&task.title), paint.dim(&after));
    }
    let widest = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    text.push('\n');
    for (name, value) in rows {
        let _ = writeln!(text, "  {}  {value}", paint.dim(&padded(name, widest)));
    }
    let _ = writeln!(text, "\nNothing was run. The plan of one task: {next}");
    text
}
