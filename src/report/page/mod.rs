//! A run as a document: its timeline, its findings and its papers, as data that the HTML and the Markdown report are written from.

pub(super) mod html;

use crate::engine::{At, AttemptOutcome, EvalLedger, Event, EventKind, RunSummary, State, Sum, Totals};
use crate::plan::Outline;
use crate::report::closing::{cost_cell, tokens_cell, used_words};
use crate::report::paint::{Paint, printable};
use crate::report::phrases::{attempts_words, first_line, outcome_words, round_words, seconds, waiting_words};
use crate::report::text::evaluation::{evaluation_text, prompt_diff};
use crate::report::text::history::whole_seconds;
use crate::report::verdicts::unclear_words;
use crate::verdict::{Decision, FindingRow, ReadFrom};
use jiff::Timestamp;
use std::fmt::Write;

/// A run with everything that is told of it.
#[derive(Debug)]
pub struct Document<'a> {
    /// What it came to.
    pub summary: &'a RunSummary,
    /// What was planned.
    pub outline: &'a Outline,
    /// What happened.
    pub events: &'a [Event],
    /// Why it ended, in a line.
    pub reason: &'a str,
    /// Whether its process is alive.
    pub at_work: bool,
    /// The words of its attempts.
    pub papers: Vec<Paper>,
}

/// What an attempt was told and what it said.
#[derive(Debug, Default)]
pub struct Paper {
    /// The prompt; empty without one.
    pub prompt: String,
    /// What it printed, decoded.
    pub output: String,
    /// What it said on standard error.
    pub errors: String,
    /// Where all of it is.
    pub folder: String,
    /// Which attempt: its step, and its number in it.
    pub of: (u32, u32),
    /// Whether something was left out, being too long.
    pub cut: bool,
    /// What is missing of it although it was there: `stdout.log holds 0 of 12 bytes`.
    pub missing: Option<String>,
}

/// A line of the timeline.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) enum TimelineRow {
    /// A round begins.
    Round(String),
    /// An attempt.
    Attempt(Box<TimelineAttempt>),
    /// Something else that happened, and whether it is bad.
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
    /// When it was planned and when it ended, in milliseconds from the run's start.
    pub(in crate::report) from_ms: i64,
    pub(in crate::report) to_ms: i64,
    pub(in crate::report) tokens: Option<u64>,
    pub(in crate::report) cost: Option<f64>,
    /// How many errors a check found; none for an agent, and for a check that passed.
    pub(in crate::report) errors: Option<usize>,
}

fn ms(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// `2/4 coder, round 2, iteration 1 of 3`.
fn label(outline: &Outline, at: &At) -> String {
    let step = outline.step(at.step);
    let mut label = format!("{}/{} {}", at.step, outline.steps.len(), at.name);
    // Writing to a String cannot fail.
    if at.round > 1 {
        let _ = write!(label, ", round {}", at.round);
    }
    if let Some(most) = step.and_then(|step| step.iterations) {
        let _ = write!(label, ", iteration {} of {most}", at.iteration);
    }
    label
}

/// The timeline of a run.
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
                        format!("{name} rejects, and names nothing that has to be mended")
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
            EventKind::VerdictUnclear { at, why, asked } => {
                rows.push(TimelineRow::Note(unclear_words(&at.name, why, *asked), true));
            }
            EventKind::StepSkipped { name, why, .. } => {
                rows.push(TimelineRow::Note(format!("{name}: skipped, {why}"), false));
            }
            EventKind::WaitStarted { at, reason, wait_ms, .. } => {
                let words = format!("{}: {}, {}", at.name, waiting_words(*reason), seconds(*wait_ms));
                rows.push(TimelineRow::Note(words, false));
            }
            EventKind::RunResumed { .. } => {
                rows.push(TimelineRow::Note("the run goes on after it was cut off".into(), false));
            }
            EventKind::RoundFinished { round, ended_by: Some(feedback), .. } => {
                let why = round_words(feedback);
                rows.push(TimelineRow::Note(format!("round {round} ends: {why}"), false));
            }
            _ => {}
        }
    }
    // What has begun and not ended: at work, or cut off.
    for (at, from_ms) in began {
        let ended = rows.iter().any(|row| matches!(row, TimelineRow::Attempt(tried) if tried.at == at));
        if !ended {
            rows.push(TimelineRow::Attempt(Box::new(TimelineAttempt {
                label: label(document.outline, &at),
                at,
                how: if document.at_work { "under way" } else { "cut off" }.into(),
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

/// The cases of an evaluation, as its own table; nothing for other runs.
pub(in crate::report) fn cases(document: &Document<'_>) -> Option<String> {
    let ledger = EvalLedger::of_events(document.events);
    ledger.facts.is_some().then(|| {
        let paint = Paint::plain();
        evaluation_text(&ledger, document.summary.run, paint, true) + &prompt_diff(&ledger, true, paint)
    })
}

/// The findings of its judges, and what became of them.
pub(in crate::report) fn findings(document: &Document<'_>) -> Vec<FindingRow> {
    let mut state = State::default();
    for event in document.events {
        state.evolve(&event.event);
    }
    state.ledger().rows()
}

/// What a run came to, as names and values.
pub(in crate::report) fn facts(document: &Document<'_>) -> Vec<(&'static str, String)> {
    let summary = document.summary;
    let totals = &summary.totals;
    let mut facts = vec![
        ("chain", summary.chain.clone()),
        ("ended because", document.reason.to_string()),
        ("begun", whole_seconds(&summary.started)),
        ("last event", whole_seconds(&summary.ended)),
        ("attempts", totals.all.attempts.to_string()),
        ("agents at work", seconds(totals.all.took_ms)),
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
            format!("{}, {}", attempts_words(totals.rework.attempts), seconds(totals.rework.took_ms)),
        ));
    }
    facts
}

fn cells(sum: &Sum) -> [String; 4] {
    [sum.attempts.to_string(), seconds(sum.took_ms), tokens_cell(sum), cost_cell(sum)]
}

/// The steps as a table in Markdown.
pub(in crate::report) fn steps_table(totals: &Totals) -> String {
    let mut text = String::from("| step | attempts | time | tokens | cost |\n|---|---|---|---|---|\n");
    for step in &totals.steps {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} {} | {} |", step.step, cell(&step.name), cells(&step.sum).join(" | "));
    }
    let _ = writeln!(text, "| **all** | {} |", cells(&totals.all).join(" | "));
    if totals.rework.attempts > 0 {
        let rejects = if totals.rejections == 1 { "1 reject".into() } else { format!("{} rejects", totals.rejections) };
        let _ = writeln!(text, "| rework after {rejects} | {} |", cells(&totals.rework).join(" | "));
    }
    text
}

/// A text within a table's cell or a line: no table, no HTML, no link and no picture comes of an agent's words.
fn cell(text: &str) -> String {
    let text = printable(&text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " "));
    text.replace('<', "&lt;").replace("](", "]\\(")
}

/// A fence that nothing in the text closes.
fn fenced(text: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", printable(text.trim_end()))
}

/// The report in Markdown.
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
        for (name, words) in
            [("told", &paper.prompt), ("said", &paper.output), ("said on standard error", &paper.errors)]
        {
            if !words.trim().is_empty() {
                let _ = write!(text, "{name}:\n\n{}\n", fenced(words));
            }
        }
        if let Some(missing) = &paper.missing {
            let _ = writeln!(text, "**The rest is lost: {}.**\n", cell(missing));
        }
        if paper.cut {
            text.push_str("What is longer than 5 MiB ends here; the whole is in the folder.\n");
        }
    }
    text
}

/// What an attempt's papers stand under.
pub(in crate::report) fn heading(document: &Document<'_>, paper: &Paper) -> String {
    let at = document.events.iter().find_map(|event| match &event.event {
        EventKind::AttemptPlanned { at, .. } if (at.step, at.attempt) == paper.of => Some(at),
        _ => None,
    });
    let label = at.map_or_else(|| format!("{}", paper.of.0), |at| label(document.outline, at));
    format!("{label} (attempt {})", paper.of.1)
}

/// Where the prompt of an attempt comes from, as far as that is kept.
pub(in crate::report) fn origin(document: &Document<'_>, paper: &Paper) -> Option<String> {
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
