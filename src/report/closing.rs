//! The outcome of a run: the closing table for people, and the summary for programs.

use crate::engine::{FileChange, RunState, RunSummary, StepSum, Sum};
use crate::report::format::{amount, first_line, padded, rework_label, seconds, thousands, width};
use crate::report::paint::Paint;
use crate::report::text::changes::changes_line;
use crate::source::counted;
use serde_json::{Value, json};
use std::fmt::Write;

/// The version of the summary's JSON format (docs/events.md).
const VERSION: u32 = 1;

fn sum_label(sum: &Sum) -> String {
    let used = used_words(sum).into_iter().fold(String::new(), |words, used| words + ", " + &used);
    format!("{}, {}{used}", counted(sum.attempts, "attempt"), seconds(sum.took_ms))
}

/// Returns the tokens and the cost as text. Leaves out what was not used, and says `at least` or `unknown` where a part
/// is unknown.
pub(super) fn used_words(sum: &Sum) -> Vec<String> {
    let least = |unknown: u32| if unknown > 0 { "at least " } else { "" };
    let tokens = match sum.tokens() {
        Some(tokens) => Some(format!("{}{}", least(sum.unknown_tokens), amount(tokens, "token"))),
        None => (sum.unknown_tokens > 0).then(|| "tokens unknown".into()),
    };
    let cost = match sum.cost_usd() {
        Some(cost) => Some(format!("{}${cost:.2}", least(sum.unknown_cost))),
        None => (sum.unknown_cost > 0).then(|| "cost unknown".into()),
    };
    tokens.into_iter().chain(cost).collect()
}

/// Returns the tokens as a table cell.
pub(super) fn tokens_cell(sum: &Sum) -> String {
    cell(sum.tokens().map(thousands), sum.unknown_tokens)
}

/// Returns the cost as a table cell.
pub(super) fn cost_cell(sum: &Sum) -> String {
    cell(sum.cost_usd().map(|cost| format!("${cost:.2}")), sum.unknown_cost)
}

fn cell(known: Option<String>, unknown: u32) -> String {
    match (known, unknown) {
        (Some(known), 0) => known,
        (Some(known), _) => format!("≥ {known}"),
        (None, 0) => "-".into(),
        (None, _) => "unknown".into(),
    }
}

/// Returns the table of steps; empty if there were fewer than two attempts.
#[must_use]
pub fn closing_table(summary: &RunSummary, paint: Paint) -> String {
    let totals = &summary.totals;
    if totals.all.attempts < 2 {
        return String::new();
    }
    let used = totals.all.tokens().is_some() || totals.all.unknown_tokens > 0;
    let priced = totals.all.cost_usd().is_some();
    let widest = totals.steps.iter().map(|step| width(&step.name)).max().unwrap_or(0).max(4);
    let mut heading = format!("  {:>4} {} {:>8} {:>12}", "", padded("step", widest), "attempts", "time");
    if used {
        let _ = write!(heading, " {:>14}", "tokens");
    }
    if priced {
        let _ = write!(heading, " {:>9}", "cost");
    }
    let mut text = format!("{}\n", paint.dim(&heading));
    for StepSum { step, name, sum, .. } in &totals.steps {
        // Writing to a String cannot fail.
        let _ = write!(text, "  {step:>4} {} {:>8} {:>12}", padded(name, widest), sum.attempts, seconds(sum.took_ms));
        if used {
            let _ = write!(text, " {:>14}", tokens_cell(sum));
        }
        if priced {
            let _ = write!(text, " {:>9}", cost_cell(sum));
        }
        text.push('\n');
    }
    if totals.rework.attempts > 0 {
        let _ = writeln!(text, "  {}", paint.dim(&format!("{}: {}", rework_label(totals), sum_label(&totals.rework))));
    }
    text
}

/// What a summary says in addition to the totals of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryFacts<'a> {
    /// The exit code; `None` if the run has not ended.
    pub exit: Option<u8>,
    /// Why the run ended; `None` if it has not.
    pub reason: Option<&'a str>,
    /// The directory of its transcripts.
    pub transcripts: &'a str,
    /// The command to type next.
    pub next: Option<&'a str>,
    /// The files that it changed; `None` if there were no snapshots.
    pub changes: Option<&'a [FileChange]>,
}

/// Returns lines about what a run changed: the files, and what was weakened. Empty if there were no snapshots.
#[must_use]
pub fn closing_changes(summary: &RunSummary, changes: Option<&[FileChange]>, diff: &str, paint: Paint) -> String {
    let mut text = String::new();
    if let Some(files) = changes {
        let see = if files.is_empty() { String::new() } else { format!("; to see it: {diff}") };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {}", paint.dim(&format!("{}{see}", changes_line(files))));
    }
    for words in &summary.weakened {
        let _ = writeln!(text, "  {}", paint.warn(&format!("since the work began: {}", first_line(words))));
    }
    text
}

/// Returns the summary as JSON, for `--output json`, hooks and `runs show --json`. A run that has not ended has neither
/// an exit code nor a reason.
#[must_use]
pub fn summary_json(summary: &RunSummary, facts: &SummaryFacts<'_>) -> Value {
    let SummaryFacts { exit, reason, transcripts, next, changes } = facts;
    let totals = &summary.totals;
    json!({
        "version": VERSION,
        "run": summary.run,
        "chain": summary.chain,
        "name": summary.name,
        "task": summary.task,
        "root": summary.root,
        "state": RunState::of(totals.outcome, false),
        "outcome": totals.outcome,
        "exitCode": exit,
        "reason": reason,
        "started": summary.started,
        "ended": summary.ended,
        "attempts": totals.all.attempts,
        "tookMs": totals.all.took_ms,
        "tokens": totals.all.tokens(),
        "costUsd": totals.all.cost_usd(),
        "unknownTokens": totals.all.unknown_tokens,
        "unknownCost": totals.all.unknown_cost,
        // Null: no check was skipped for lack of a command. Whether the checks passed is in `steps`.
        "verified": if totals.unverified.is_empty() { Value::Null } else { json!(false) },
        "unverified": totals.unverified,
        "rejections": totals.rejections,
        "rework": totals.rework,
        "steps": totals.steps,
        "changes": changes,
        "weakened": summary.weakened,
        "transcripts": transcripts,
        "next": next,
        "taskStatus": null,
        "commit": null,
    })
}
