//! A run as a document: its timeline, findings and transcripts, as data for the HTML and the Markdown report.

pub(super) mod html;

use crate::engine::{At, AttemptOutcome, EvalLedger, Event, EventKind, RunSummary, State, Sum, Totals};
use crate::plan::Outline;
use crate::report::closing::{cost_cell, tokens_cell, used_words};
use crate::report::format::{first_line, local_time, outcome_words, round_words, seconds, waiting_words};
use crate::report::paint::{Paint, printable};
use crate::report::text::evaluation::{evaluation_text, prompt_diff};
use crate::report::verdicts::unclear_words;
use crate::source::counted;
use crate::verdict::{Decision, FindingRow, ReadFrom};
use jiff::Timestamp;
use std::fmt::Write;

/// A run, with everything that the report shows of it.
#[derive(Debug)]
pub struct Document<'a> {
    /// The summary of the run.
    pub summary: &'a RunSummary,
    /// The outline of its plan.
    pub outline: &'a Outline,
    /// Its events, in order.
    pub events: &'a [Event],
    /// Why it ended, as one line.
    pub reason: &'a str,
    /// Whether its process is alive.
    pub at_work: bool,
    /// The prompts and the output of its attempts.
    pub papers: Vec<AttemptTexts>,
}

/// The prompt and the output of an attempt.
#[derive(Debug, Default)]
pub struct AttemptTexts {
    /// Its prompt; empty if it had none.
    pub prompt: String,
    /// Its output, decoded.
    pub output: String,
    /// Its standard error, decoded.
    pub errors: String,
    /// The directory that has the full texts.
    pub folder: String,
    /// The attempt: the number of its step, and its number within the step.
    pub of: (u32, u32),
    /// Whether a text was truncated because it is too long.
    pub cut: bool,
    /// What has been lost of the texts: `stdout.log holds 0 of 12 bytes`.
    pub missing: Option<String>,
}

/// A line of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) enum TimelineRow {
    /// The start of a round.
    Round(String),
    /// An attempt.
    Attempt(Box<TimelineAttempt>),
    /// Another event, and whether it is bad.
    Note(String, bool),
}

/// An attempt on the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct TimelineAttempt {
    pub(in crate::report) at: At,
    pub(in crate::report) label: String,
    pub(in crate::report) how: String,
    pub(in crate::report) good: Option<bool>,
    pub(in crate::report) took_ms: u64,
    /// When it was planned, in milliseconds from the start of the run.
    pub(in crate::report) from_ms: i64,
    /// When it ended, in milliseconds from the start of the run.
    pub(in crate::report) to_ms: i64,
    pub(in crate::report) tokens: Option<u64>,
    pub(in crate::report) cost: Option<f64>,
    /// The number of errors that a check found; `None` for an agent.
    pub(in crate::report) errors: Option<usize>,
}

fn ms(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Returns the label of an attempt: `2/4 coder, round 2, iteration 1 of 3`.
fn label(outline: &Outline, at: &At) -> String {
    let step = outline.step(at.step);
    let mut label = format!("{}.{} {}", at.step, at.attempt, at.name);
    // Writing to a String cannot fail.
    if at.round > 1 {
        let _ = write!(label, ", round {}", at.round);
    }
    if let Some(most) = step.and_then(|step| step.iterations) {
        let _ = write!(label, ", iteration {} of {most}", at.iteration);
    }
    label
}

/// Returns the timeline of a run.
pub(in crate::report) fn timeline(document: &Document<'_>) -> Vec<TimelineRow> {
    let (mut rows, mut began) = (Vec::new(), Vec::<(At, i64)>::new());
    let start = document.events.first().and_then(|event| ms(&event.at)).unwrap_or(0);
    let mut totals = Totals::default();
    for event in document.events {
        totals.evolve(&event.event);
        let now = ms(&event.at).unwrap_or(start) - start;
        match &event.event {
            EventKind::RoundStarted { group, round, rounds, .. } if *rounds > 1 => {
                rows.push(TimelineRow::Round(format!("round {round} of group {group}")));
            }
            EventKind::AttemptPlanned { at, .. } => began.push((at.clone(), now)),
            EventKind::AttemptFinished { at, outcome, marker, finished } => {
                let from_ms = began.iter().rev().find(|(known, _)| known == at).map_or(now, |(_, from)| *from);
                let step = document.outline.step(at.step);
                let looped = step.is_some_and(|step| step.iterations.is_some());
                let good = match outcome {
                    AttemptOutcome::Completed => Some(true),
                    AttemptOutcome::Unfinished => None,
                    outcome if !outcome.counts() => None,
                    _ => Some(false),
                };
                let check = step.is_some_and(|step| step.check.is_some());
                rows.push(TimelineRow::Attempt(Box::new(TimelineAttempt {
                    at: at.clone(),
                    label: label(document.outline, at),
                    how: outcome_words(outcome, *marker, looped),
                    good,
                    took_ms: finished.took_ms,
                    from_ms,
                    to_ms: now.max(from_ms),
                    tokens: finished.tokens.map(|tokens| tokens.total()),
                    cost: finished.tokens.and_then(|tokens| tokens.cost_usd),
                    errors: check.then_some(finished.errors.len()),
                })));
                let error =
                    finished.error.as_deref().map(|error| format!("its program reports: {}", first_line(error)));
                rows.extend(error.map(|words| TimelineRow::Note(words, true)));
            }
            EventKind::VerdictGiven { at, verdict, converged } => {
                let name = &at.name;
                let words = match verdict.decision {
                    Decision::Approve => format!("{name} approves"),
                    Decision::Reject if *converged => {
                        format!("{name} rejects, but names nothing that has to be fixed")
                    }
                    Decision::Reject if verdict.from == ReadFrom::Person => {
                        format!("a person rejects: {}", first_line(verdict.notes.trim()))
                    }
                    Decision::Reject => {
                        let number = totals.rejections;
                        format!("{name} rejects (rejection {number}): {}", first_line(verdict.notes.trim()))
                    }
                    Decision::Dispute => format!("{name} disputes: {}", first_line(verdict.notes.trim())),
                    Decision::Skip => format!("{name} skips: {}", first_line(verdict.notes.trim())),
                    Decision::Submit | Decision::Done => continue,
                };
                let bad = matches!(verdict.decision, Decision::Reject | Decision::Dispute) && !converged;
                rows.push(TimelineRow::Note(words, bad));
            }
            EventKind::VerdictUnclear { at, reason: why, asked } => {
                rows.push(TimelineRow::Note(unclear_words(&at.name, why, *asked), true));
            }
            EventKind::StepSkipped { name, reason: why, .. } => {
                rows.push(TimelineRow::Note(format!("{name}: skipped, {why}"), false));
            }
            EventKind::WaitStarted { at, reason, wait_ms, .. } => {
                let words = format!("{}: {}, {}", at.name, waiting_words(*reason), seconds(*wait_ms));
                rows.push(TimelineRow::Note(words, false));
            }
            EventKind::RunResumed { .. } => {
                rows.push(TimelineRow::Note("the run resumed after an interruption".into(), false));
            }
            EventKind::RoundFinished { round, ended_by: Some(feedback), .. } => {
                let why = round_words(feedback);
                rows.push(TimelineRow::Note(format!("round {round} ends: {why}"), false));
            }
            _ => {}
        }
    }
    // Attempts that started and did not end are running, or were interrupted.
    for (at, from_ms) in began {
        let ended = rows.iter().any(|row| matches!(row, TimelineRow::Attempt(tried) if tried.at == at));
        if !ended {
            rows.push(TimelineRow::Attempt(Box::new(TimelineAttempt {
                label: label(document.outline, &at),
                at,
                how: if document.at_work { "running" } else { "interrupted" }.into(),
                good: None,
                took_ms: 0,
                from_ms,
                to_ms: from_ms,
                tokens: None,
                cost: None,
                errors: None,
            })));
        }
    }
    rows
}

/// Returns the table of the cases of an evaluation; `None` for other runs.
pub(in crate::report) fn cases(document: &Document<'_>) -> Option<String> {
    let ledger = EvalLedger::of_events(document.events);
    ledger.facts.is_some().then(|| {
        let paint = Paint::plain();
        evaluation_text(&ledger, document.summary.run, paint, true) + &prompt_diff(&ledger, true, paint)
    })
}

/// Returns the findings of the judges, and their current states.
pub(in crate::report) fn findings(document: &Document<'_>) -> Vec<FindingRow> {
    let mut state = State::default();
    for event in document.events {
        state.evolve(&event.event);
    }
    state.ledger().rows()
}

/// Returns the outcome of a run, as names and values.
pub(in crate::report) fn facts(document: &Document<'_>) -> Vec<(&'static str, String)> {
    let summary = document.summary;
    let totals = &summary.totals;
    let mut facts = vec![
        ("chain", summary.chain.clone()),
        ("outcome", document.reason.to_string()),
        ("started", local_time(&summary.started)),
        ("last event", local_time(&summary.ended)),
        ("attempts", totals.all.attempts.to_string()),
        ("time", seconds(totals.all.took_ms)),
    ];
    if let Some(task) = &summary.task {
        facts.push(("task", task.clone()));
    }
    if !used_words(&totals.all).is_empty() {
        facts.push(("tokens", tokens_cell(&totals.all)));
        facts.push(("cost", cost_cell(&totals.all)));
    }
    if totals.rejections > 0 {
        facts.push(("rejections", totals.rejections.to_string()));
        facts.push((
            "rework",
            format!("{}, {}", counted(totals.rework.attempts, "attempt"), seconds(totals.rework.took_ms)),
        ));
    }
    facts
}

fn cells(sum: &Sum) -> [String; 4] {
    [sum.attempts.to_string(), seconds(sum.took_ms), tokens_cell(sum), cost_cell(sum)]
}

/// Returns the steps as a Markdown table.
pub(in crate::report) fn steps_table(totals: &Totals) -> String {
    let mut text = String::from("| step | attempts | time | tokens | cost |\n|---|---|---|---|---|\n");
    for step in &totals.steps {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} {} | {} |", step.step, cell(&step.name), cells(&step.sum).join(" | "));
    }
    let _ = writeln!(text, "| **all** | {} |", cells(&totals.all).join(" | "));
    if totals.rework.attempts > 0 {
        let rejects = counted(totals.rejections, "rejection");
        let _ = writeln!(text, "| rework after {rejects} | {} |", cells(&totals.rework).join(" | "));
    }
    text
}

/// Escapes a text for a table cell or a line, so that an agent's text cannot form a table, HTML, a link or an image.
fn cell(text: &str) -> String {
    let text = printable(&text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " "));
    text.replace('<', "&lt;").replace("](", "]\\(")
}

/// Puts a text into a code fence that nothing in the text can close.
fn fenced(text: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", printable(text.trim_end()))
}

/// Returns the report as Markdown.
#[must_use]
pub fn markdown(document: &Document<'_>) -> String {
    let summary = document.summary;
    let title = summary.name.as_ref().unwrap_or(&summary.chain);
    let mut text = format!("# Run {}: {}\n\n", summary.run, cell(title));
    for (name, value) in facts(document) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- **{name}**: {}", cell(&value));
    }
    let _ = write!(text, "\n{}\n## What happened\n\n", steps_table(&summary.totals));
    for row in timeline(document) {
        let _ = match row {
            TimelineRow::Round(words) => writeln!(text, "\n**{words}**\n"),
            TimelineRow::Attempt(tried) => {
                writeln!(text, "- {}: {}, {}", cell(&tried.label), cell(&tried.how), seconds(tried.took_ms))
            }
            TimelineRow::Note(words, _) => writeln!(text, "  - {}", cell(&words)),
        };
    }
    if let Some(cases) = cases(document) {
        let _ = write!(text, "\n## Cases\n\n{}", fenced(&cases));
    }
    let findings = findings(document);
    if !findings.is_empty() {
        text.push_str("\n## Findings\n\n| | state | place | finding | answer |\n|---|---|---|---|---|\n");
        for row in findings {
            let answer = row.answer.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "| F{} | {} | {} | {} | {} |",
                row.number,
                row.state,
                cell(&row.place()),
                cell(&row.finding.title),
                cell(answer)
            );
        }
    }
    text.push_str("\n## Prompts and answers\n");
    for paper in &document.papers {
        let _ = writeln!(text, "\n### {}\n", cell(&heading(document, paper)));
        let _ = writeln!(text, "{}\n", cell(&paper.folder));
        for (name, words) in [("Prompt", &paper.prompt), ("Output", &paper.output), ("Standard error", &paper.errors)] {
            if !words.trim().is_empty() {
                let _ = write!(text, "{name}:\n\n{}\n", fenced(words));
            }
        }
        if let Some(missing) = &paper.missing {
            let _ = writeln!(text, "**The rest is lost: {}.**\n", cell(missing));
        }
        if paper.cut {
            text.push_str("Text beyond 5 MiB is left out. The full text is in this directory.\n");
        }
    }
    text
}

/// Returns the heading above the prompt and the output of an attempt.
pub(in crate::report) fn heading(document: &Document<'_>, paper: &AttemptTexts) -> String {
    let at = document.events.iter().find_map(|event| match &event.event {
        EventKind::AttemptPlanned { at, .. } if (at.step, at.attempt) == paper.of => Some(at),
        _ => None,
    });
    at.map_or_else(|| format!("{}.{}", paper.of.0, paper.of.1), |at| label(document.outline, at))
}

/// Returns where the prompt of an attempt comes from, if it was recorded.
pub(in crate::report) fn origin(document: &Document<'_>, paper: &AttemptTexts) -> Option<String> {
    document.outline.step(paper.of.0)?.origin.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_agent_make_no_table_no_html_and_no_link_in_markdown() {
        for (words, expected) in [
            ("![x](https://a/?leak)", "![x]\\(https://a/?leak)"),
            ("[now](javascript:alert(1))", "[now]\\(javascript:alert(1))"),
            ("a | b\n# c", "a \\| b # c"),
            ("<img src=x>", "&lt;img src=x>"),
            ("\\](x)", "\\\\]\\(x)"),
        ] {
            assert_eq!(cell(words), expected);
        }
    }
}
