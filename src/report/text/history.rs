//! Past runs: a table of all of them, and the details of one with all its attempts.

use crate::engine::{At, AttemptRow, RunOutcome, RunRow, RunState, RunSummary, State};
use crate::plan::Outline;
use crate::report::closing::{closing_table, used_words};
use crate::report::format::{first_line, fitted, outcome_words, padded, seconds, thousands, width};
use crate::report::paint::Paint;
use crate::report::reasons::reason;
use crate::source::counted;
use std::fmt::Write;

fn state_label(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Crashed => "crashed",
        RunState::Interrupted => "interrupted",
        RunState::LimitReached => "limit reached",
        RunState::Unclear => "unclear",
        RunState::NeedsHuman => "needs a human",
        RunState::NoCommand => "no command",
        RunState::Complete => "complete",
        RunState::Incomplete => "incomplete",
        RunState::IterationsExhausted => "exhausted",
        RunState::CasesFailed => "cases failed",
        RunState::NeverBegan => "never began",
    }
}

fn painted(state: RunState, paint: Paint, words: &str) -> String {
    match state {
        RunState::Complete => paint.good(words),
        RunState::Incomplete | RunState::IterationsExhausted | RunState::CasesFailed => paint.bad(words),
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
    let title = |row: &RunRow| shortened(row.name.as_ref().unwrap_or(&row.chain));
    let widest = rows.iter().map(|(row, _)| width(&title(row))).max().unwrap_or(0).max(5);
    let heading = format!(
        "{:>4}  {}  {:20}  {:13}  {:>10}  {:>10}  {}",
        "run",
        padded("chain", widest),
        "started",
        "state",
        "iterations",
        "time",
        "cost"
    );
    let mut text = format!("{}\n", paint.dim(&heading));
    for (row, state) in rows {
        let state = painted(*state, paint, &format!("{:13}", state_label(*state)));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:>4}  {}  {:20}  {state}  {:>10}  {:>10}  {}",
            row.id,
            padded(&title(row), widest),
            whole_seconds(&row.started),
            row.iterations,
            seconds(row.took_ms),
            cost(row.cost_usd, row.tokens)
        );
    }
    text
}

/// Returns one run with all its attempts.
#[must_use]
pub fn run(
    row: &RunRow,
    state: RunState,
    summary: &RunSummary,
    attempts: &[AttemptRow],
    outline: Option<&Outline>,
    resume: &str,
    paint: Paint,
) -> String {
    let title = row.name.as_ref().unwrap_or(&row.chain);
    let mut text = format!("{} {}\n", paint.bold(&format!("run {}", row.id)), paint.bold(title));
    let mut line = |name: &str, words: &str| {
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<9}")));
    };
    line("chain", &row.chain);
    line("started", &whole_seconds(&row.started));
    line("ended", &row.ended.as_deref().map_or_else(|| "not yet".into(), whole_seconds));
    let why = summary
        .totals
        .outcome
        .zip(outline)
        .filter(|(outcome, _)| *outcome != RunOutcome::Succeeded || !summary.totals.unverified.is_empty());
    let why =
        why.map_or_else(String::new, |(outcome, outline)| format!(": {}", reason(outcome, &summary.totals, outline)));
    line("state", &painted(state, paint, &(state_label(state).to_string() + &why)));
    line("time", &seconds(summary.totals.all.took_ms));
    let used = used_words(&summary.totals.all);
    line("cost", &if used.is_empty() { "-".into() } else { used.join(", ") });
    text.push('\n');
    let steps = outline.map_or(0, |outline| outline.steps.len());
    for attempt in attempts {
        let looped = outline.and_then(|outline| outline.step(attempt.step)?.iterations);
        let of = if steps > 0 { format!("/{steps}") } else { String::new() };
        let mut place = format!("{}{of} {}", attempt.step, attempt.name);
        if attempt.round > 1 {
            let _ = write!(place, ", round {}", attempt.round);
        }
        if let Some(most) = looped {
            let _ = write!(place, ", iteration {} of {most}", attempt.iteration);
        }
        let how = match &attempt.outcome {
            Some(outcome) => outcome_words(outcome, attempt.marker, looped.is_some()),
            None if state == RunState::Running => "running".into(),
            None => "interrupted".into(),
        };
        let took = attempt.took_ms.map_or_else(String::new, |took| format!(", {}", seconds(took)));
        let used = match (attempt.cost_usd, attempt.tokens) {
            (None, None) => String::new(),
            (dollars, tokens) => format!(", {}", cost(dollars, tokens)),
        };
        let _ = writeln!(text, "{place}: {how}{took}{used}\n  {}", paint.dim(&attempt.folder));
        if let Some(session) = &attempt.session {
            let _ = writeln!(text, "  {}", paint.dim(&format!("its session: {}", first_line(session))));
        }
    }
    let table = closing_table(summary, paint);
    if !table.is_empty() {
        let _ = write!(text, "\n{table}");
    }
    if state.may_resume() {
        let more = if state == RunState::IterationsExhausted { " --more N" } else { "" };
        let _ = writeln!(text, "\n{}", paint.dim(&format!("{resume}{more} continues it")));
    }
    text
}

/// Returns what a resume would do.
#[must_use]
pub fn resume_plan(
    (run, outline): (i64, &Outline),
    (state, next): (&State, Option<&At>),
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
        Some(at) => {
            let step = outline.step(at.step);
            let of = step.and_then(|step| step.iterations).map_or_else(String::new, |most| format!(" of {most}"));
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
        counted(state.iterations(), "iteration"),
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

/// Formats a time in UTC, without fractions of a second.
pub(in crate::report) fn whole_seconds(time: &str) -> String {
    let (date, clock) = time.split_once('T').unwrap_or((time, ""));
    format!("{date} {}Z", clock.split(['.', 'Z']).next().unwrap_or_default())
}

fn shortened(chain: &str) -> String {
    fitted(chain, CHAIN)
}

fn cost(usd: Option<f64>, tokens: Option<u64>) -> String {
    match (usd, tokens) {
        (Some(usd), _) => format!("${usd:.2}"),
        (None, Some(tokens)) => format!("{} tokens", thousands(tokens)),
        (None, None) => "-".into(),
    }
}
