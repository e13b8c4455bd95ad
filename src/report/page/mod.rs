//! A run as a document: its timeline, findings and transcripts, as data for the HTML, Markdown and JUnit reports.

mod backends;
mod document;
mod generations;
pub(super) mod html;
pub(super) mod junit;
mod lanes;
mod overview;
mod patch;
mod plots;
mod section;
mod timeline;

pub use document::{AttemptTexts, Document};
pub use lanes::BatchPage;

use crate::engine::{CaseResult, EvalLedger, Event, State, Sum, Totals, evolve};
use crate::report::closing::{cost_cell, tokens_cell};
use crate::report::format::{local_time, rework_label, seconds};
use crate::report::page::overview::{Fact, OverviewRow, overview, overview_rows, sum_line};
use crate::report::page::timeline::{TimelineRow, label, timeline};
use crate::report::paint::{Paint, printable};
use crate::report::text::evaluation::{CaseTexts, evaluation_text, prompt_diff};
use crate::source::counted;
use crate::verdict::FindingRow;
use std::collections::HashMap;
use std::fmt::Write;

/// Returns the table of the cases of an evaluation; `None` for other runs.
pub(in crate::report) fn cases(document: &Document<'_>) -> Option<String> {
    let ledger = EvalLedger::of_events(document.events);
    ledger.facts.is_some().then(|| {
        let paint = Paint::plain();
        let texts = outputs(document, &ledger);
        evaluation_text(&ledger, document.summary.run, paint, true, &texts) + &prompt_diff(&ledger, true, paint)
    })
}

/// Returns the outputs that the attempts of this run gave.
fn outputs(document: &Document<'_>, ledger: &EvalLedger) -> CaseTexts {
    let of_executor = document.papers.iter().filter(|paper| paper.at.step == 1);
    let papers: HashMap<u32, &AttemptTexts> = of_executor.map(|paper| (paper.at.attempt, paper)).collect();
    let output = |result: &CaseResult| {
        let answer = result.answer.filter(|answer| answer.run == document.summary.run)?;
        let key = (result.generation, result.case.clone(), result.repetition);
        Some((key, papers.get(&answer.attempt)?.output.clone()))
    };
    CaseTexts { outputs: ledger.results.values().filter_map(output).collect(), ..CaseTexts::default() }
}

/// Returns the findings of the judges, and their current states.
pub(in crate::report) fn findings(document: &Document<'_>) -> Vec<FindingRow> {
    findings_of(document.events)
}

/// Returns the findings of a run's judges from its events, and their current states.
#[must_use]
pub fn findings_of(events: &[Event]) -> Vec<FindingRow> {
    let mut state = State::default();
    for event in events {
        evolve(&mut state, &event.event);
    }
    state.ledger().rows()
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
        let _ = writeln!(text, "| {} | {} |", rework_label(totals), cells(&totals.rework).join(" | "));
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

/// Returns the report as Markdown: of one run, or of several with a table of all of them.
#[must_use]
pub fn markdown(documents: &[Document<'_>], several: bool) -> String {
    let mut text = String::new();
    if several {
        let _ =
            write!(text, "# {}\n\n{}\n\n{}\n", title(documents), cell(&sum_line(documents)), overview_table(documents));
    }
    for (index, document) in documents.iter().enumerate() {
        text.push_str(if index > 0 { "\n" } else { "" });
        text.push_str(&markdown_of_run(document));
    }
    text
}

/// Returns the title of a report of several runs.
pub(in crate::report) fn title(documents: &[Document<'_>]) -> String {
    let began = documents.iter().map(|document| document.summary.started.as_str()).min().unwrap_or_default();
    let ended = documents.iter().map(|document| document.summary.ended.as_str()).max().unwrap_or_default();
    format!("{}, {} to {}", counted(documents.len(), "run"), local_time(began), local_time(ended))
}

fn overview_table(documents: &[Document<'_>]) -> String {
    let mut text = String::from("| run | asked | outcome | changed | used | next |\n|---|---|---|---|---|---|\n");
    for row in overview_rows(documents) {
        let OverviewRow { run, asked, outcome, cause, changed, used, weakened, next, .. } = row;
        let outcome = std::iter::once(outcome).chain(cause).collect::<Vec<_>>().join("; ");
        let changed = std::iter::once(changed).chain(weakened).collect::<Vec<_>>().join("; ");
        let _ = writeln!(
            text,
            "| {run} | {} | {} | {} | {used} | {} |",
            cell(&asked),
            cell(&outcome),
            cell(&changed),
            cell(&next)
        );
    }
    text
}

/// Returns the first screen of a run, and its steps.
pub(in crate::report) fn markdown_overview(document: &Document<'_>) -> String {
    let mut text = String::new();
    for Fact { name, words, .. } in overview(document) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- **{name}**: {}", cell(&words));
    }
    text + "\n" + &steps_table(&document.summary.totals)
}

fn markdown_of_run(document: &Document<'_>) -> String {
    let summary = document.summary;
    let title = summary.name.as_ref().unwrap_or(&summary.chain);
    let mut text = format!("# Run {}: {}\n\n", summary.run, cell(title));
    // Writing to a String cannot fail.
    let _ = write!(text, "{}\n## What happened\n\n", markdown_overview(document));
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
    if !document.patch.is_empty() {
        let _ = write!(text, "\n## Changes\n\n{}", fenced(document.patch));
    }
    text.push_str("\n## Prompts and answers\n");
    for paper in document.papers {
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
    label(document.outline, &paper.at)
}

/// Returns where the prompt of an attempt comes from, if it was recorded.
pub(in crate::report) fn origin(document: &Document<'_>, paper: &AttemptTexts) -> Option<String> {
    document.outline.step(paper.at.step)?.origin.clone()
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
