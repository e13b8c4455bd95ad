//! Past runs: a table of all of them, and the details of one with all its attempts.

use crate::engine::{At, FileChange, RunOutcome, RunRow, RunState, RunSummary, State, UnitPart};
use crate::plan::Outline;
use crate::report::closing::{closing_table, used_words};
use crate::report::format::{amount, first_line, fitted, local_time, padded, seconds, width};
use crate::report::paint::Paint;
use crate::report::reasons::{go_on, reason};
use crate::report::text::changes::changes_line;
use crate::source::counted;
use std::fmt::Write;

/// Returns the word for the state of a run (docs/glossary.md). Why it is in that state is in its reason.
pub(in crate::report) fn state_label(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Crashed => "crashed",
        RunState::Interrupted => "interrupted",
        RunState::LimitReached => "limit reached",
        RunState::NeedsHuman | RunState::Unclear | RunState::NoCommand => "needs a human",
        RunState::Complete => "complete",
        RunState::Incomplete | RunState::IterationsExhausted => "failed",
        RunState::CasesFailed => "cases failed",
        RunState::TasksLeft => "tasks left",
        RunState::NeverBegan => "not started",
    }
}

pub(in crate::report) fn painted(state: RunState, paint: Paint, words: &str) -> String {
    match state {
        RunState::Complete => paint.good(words),
        RunState::Incomplete | RunState::IterationsExhausted | RunState::CasesFailed | RunState::TasksLeft => {
            paint.bad(words)
        }
        RunState::Running => paint.bold(words),
        _ => paint.warn(words),
    }
}

/// The maximum width of a chain in the table, in columns.
const CHAIN: usize = 41;

/// Returns a table of all runs, newest first.
#[must_use]
pub fn runs(rows: &[(RunRow, RunState)], paint: Paint) -> String {
    if rows.is_empty() {
        return "no runs yet\n".into();
    }
    // The runs of a batch are below it.
    let mut rows: Vec<&(RunRow, RunState)> = rows.iter().collect();
    rows.sort_by_key(|(row, _)| std::cmp::Reverse((row.batch.unwrap_or(row.id), row.batch.is_none(), row.id)));
    let part = |row: &RunRow| row.unit.as_deref().map_or(UnitPart::Whole, UnitPart::of);
    let title = |row: &RunRow| match (row.batch, &row.task, part(row)) {
        (Some(_), _, UnitPart::Choice(task)) => shortened(&format!("  {task}, choice")),
        (Some(_), Some(task), UnitPart::Try(number)) => {
            let (id, title) = task.split_once(": ").unwrap_or((task, ""));
            shortened(&format!("  {id}, try {number}: {}", first_line(title)))
        }
        (Some(_), Some(task), UnitPart::Whole) => shortened(&format!("  {}", first_line(task))),
        (Some(_), None, _) => shortened(&match row.unit.as_deref().and_then(UnitPart::task_of) {
            // Without events, a run does not know its task.
            Some(task) if !row.began => format!("  {task}"),
            _ => format!("  verify: {}", row.chain),
        }),
        (None, ..) => shortened(row.name.as_ref().unwrap_or(&row.chain)),
    };
    let widest = rows.iter().map(|(row, _)| width(&title(row))).max().unwrap_or(0).max(5);
    let heading = format!(
        "{:>4}  {}  {:19}  {:14}  {:>8}  {:>10}  {}",
        "run",
        padded("chain", widest),
        "started",
        "state",
        "attempts",
        "time",
        "cost"
    );
    let mut text = format!("{}\n", paint.dim(&heading));
    for (row, state) in &rows {
        let state = painted(*state, paint, &format!("{:14}", state_label(*state)));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>4}  {}  {:19}  {state}  {:>8}  {:>10}  {}",
            row.id,
            padded(&title(row), widest),
            local_time(&row.started),
            row.attempts,
            seconds(row.took_ms),
            cost(row.cost_usd, row.tokens)
        );
    }
    text
}

/// Returns one run: what was asked, how it ended and why, its timeline, and what to type next.
#[must_use]
pub fn run(
    row: &RunRow,
    state: RunState,
    summary: &RunSummary,
    outline: Option<&Outline>,
    changes: Option<&[FileChange]>,
    (timeline, folder, resume): (&str, &str, &str),
    paint: Paint,
) -> String {
    let title = row.name.as_ref().unwrap_or(&row.chain);
    let mut text = format!("{} {}\n", paint.bold(&format!("run {}", row.id)), paint.bold(title));
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<11}")));
    };
    line("chain", &row.chain);
    if let Some(task) = &row.task {
        line("task", task);
    }
    if let Some(prompt) = &summary.prompt {
        line("prompt", &first_line(prompt));
    }
    line("started", &local_time(&row.started));
    line("ended", &row.ended.as_deref().map_or_else(|| "not yet".into(), local_time));
    let ended = summary.totals.outcome.zip(outline);
    let why = ended.filter(|(outcome, _)| *outcome != RunOutcome::Succeeded || !summary.totals.unverified.is_empty());
    let why = why.map(|(outcome, outline)| reason(outcome, &summary.totals, outline));
    line("state", &painted(state, paint, state_label(state)));
    if let Some(why) = why {
        line("reason", &why);
    }
    line("time", &seconds(summary.watch.milliseconds()));
    let used = used_words(&summary.totals.all);
    line("cost", &if used.is_empty() { "-".into() } else { used.join(", ") });
    if let Some(files) = changes {
        line("changes", &changes_line(files));
    }
    for words in &summary.weakened {
        line("weakened", &paint.warn(&first_line(words)));
    }
    line("transcripts", folder);
    let _ = write!(text, "\n{timeline}");
    let table = closing_table(summary, paint);
    if !table.is_empty() {
        let _ = write!(text, "\n{table}");
    }
    let next = match ended {
        _ if row.batch.is_some() => next_of_part(row, state),
        Some((outcome, outline)) => go_on(outcome, &summary.totals, outline, resume),
        None => state.may_resume().then(|| resume.to_string()),
    };
    if let Some(next) = next {
        let _ = writeln!(text, "\n{}", paint.dim(&format!("next: {next}")));
    }
    text
}

/// What a person can do about a run of a batch, which is not resumed alone: decide about its task.
#[must_use]
pub fn next_of_part(row: &RunRow, state: RunState) -> Option<String> {
    let task = row.task.as_ref().filter(|_| state.waits())?.split(": ").next()?;
    Some(format!("forkhestra task approve {task}, or forkhestra task reject {task} --notes \"why\""))
}

/// Returns what a resume would do. `next` is the next attempt, and the iterations that its loop has in addition to its
/// count.
#[must_use]
pub fn resume_plan(
    (run, outline): (i64, &Outline),
    (state, next): (&State, Option<(&At, u32)>),
    at_work_ms: u64,
    changes: &[String],
    paint: Paint,
) -> String {
    let title = outline.name.as_ref().unwrap_or(&outline.chain);
    let mut text = format!("{} {}\n", paint.bold(&format!("Resume of run {run}:")), paint.bold(title));
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<9}")));
    };
    let next = match next {
        None => "nothing, the run would end".into(),
        Some((at, more)) => {
            let step = outline.step(at.step);
            let most = step.and_then(|step| step.iterations);
            let of = most.map_or_else(String::new, |most| format!(" of {}", most.saturating_add(more)));
            let round = if at.round > 1 { format!(", round {}", at.round) } else { String::new() };
            let steps = outline.steps.len();
            format!("step {} of {steps}, {}, iteration {}{of}{round}", at.step, at.name, at.iteration)
        }
    };
    line("next", &next);
    let used = state.used();
    let tokens = Some(used.total()).filter(|total| *total > 0);
    let so_far = format!(
        "{}, {}, cost {}",
        counted(state.totals().planned, "attempt"),
        seconds(at_work_ms),
        cost(used.cost_usd, tokens)
    );
    line("so far", &so_far);
    line("limits", &outline.limits.words());
    for change in changes {
        line("changed", &paint.warn(&first_line(change)));
    }
    let _ = writeln!(text, "\n{}", paint.dim("Nothing was run and nothing was written."));
    text
}

fn shortened(chain: &str) -> String {
    fitted(chain, CHAIN)
}

fn cost(usd: Option<f64>, tokens: Option<u64>) -> String {
    match (usd, tokens) {
        (Some(usd), _) => format!("${usd:.2}"),
        (None, Some(tokens)) => amount(tokens, "token"),
        (None, None) => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_of_a_run_is_in_the_glossary() {
        let glossary = include_str!("../../../docs/glossary.md");
        for state in [
            RunState::Running,
            RunState::Crashed,
            RunState::Interrupted,
            RunState::LimitReached,
            RunState::Unclear,
            RunState::NeedsHuman,
            RunState::NoCommand,
            RunState::Complete,
            RunState::Incomplete,
            RunState::IterationsExhausted,
            RunState::CasesFailed,
            RunState::TasksLeft,
            RunState::NeverBegan,
        ] {
            let label = state_label(state);
            assert!(glossary.contains(&format!("\n| {label} | ")), "{label}");
        }
    }
}
