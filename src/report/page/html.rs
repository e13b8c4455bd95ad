//! The report as one HTML page that needs neither a network nor scripts. Transcripts are folded and are laid out only
//! where they are visible, so that megabytes of them stay usable.

use crate::engine::RunState;
use crate::report::closing::{cost_cell, tokens_cell};
use crate::report::format::{amount, seconds};
use crate::report::page::lanes::BatchPage;
use crate::report::page::overview::{overview, overview_rows, sum_line};
use crate::report::page::patch::by_file;
use crate::report::page::plots::plotted;
use crate::report::page::section::section;
use crate::report::page::timeline::{TimelineAttempt, TimelineRow, timeline};
use crate::report::page::{AttemptTexts, Document, cases, findings, generations, heading, origin, title};
use crate::report::paint::printable;
use crate::report::text::history::state_label;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::time::Duration;

const STYLE: &str = include_str!("report.css");
/// The number of lines that are laid out at once.
const LINES: usize = 200;
/// The number of attempts that are laid out at once.
const TOGETHER: usize = 100;

/// Makes control characters and changes of the reading direction visible. HTML is escaped later, where the text is
/// inserted.
fn shown(text: &str) -> String {
    printable(text)
}

/// Whether the browser loads the page again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refresh {
    /// It does not.
    Never,
    /// It does, at this interval, without a script.
    Every(Duration),
}

/// Returns the page: of one run, or of several, with a table of all of them first, or of a batch and its runs.
#[must_use]
pub fn html_page(documents: &[Document<'_>], batch: Option<&BatchPage<'_>>, several: bool, refresh: Refresh) -> String {
    let title = match documents {
        _ if batch.is_some() => batch.map(BatchPage::title).unwrap_or_default(),
        [document] if !several => run_title(document),
        documents => title(documents),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Refresh::Every(interval) = refresh { meta http-equiv="refresh" content=(interval.as_secs()); }
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @if several {
                    header { h1 { (title) } @if let Some(batch) = batch { (batch.state()) } }
                    main {
                        @if let Some(batch) = batch { (batch.parts()) }
                        p class="sum" { (shown(&sum_line(documents))) }
                        (all_runs(documents))
                        @for document in documents {
                            section class="run" aria-labelledby={ "run-" (document.summary.run) } {
                                h2 id={ "run-" (document.summary.run) } { (run_title(document)) }
                                (run_state(document))
                                (run_parts(document, &format!("r{}-", document.summary.run)))
                            }
                        }
                    }
                } @else {
                    @for document in documents {
                        header { h1 { (title) } (run_state(document)) }
                        main { (run_parts(document, "")) }
                    }
                }
                footer { "forkhestra " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string() + "\n"
}

fn run_title(document: &Document<'_>) -> String {
    let summary = document.summary;
    shown(&format!("Run {}: {}", summary.run, summary.name.as_ref().unwrap_or(&summary.chain)))
}

fn run_state(document: &Document<'_>) -> Markup {
    let totals = &document.summary.totals;
    let state = RunState::of(totals.outcome, document.at_work);
    let (class, state) = match (state, state_label(state)) {
        (RunState::Complete, _) if !totals.unverified.is_empty() => ("open", "complete, unverified"),
        (RunState::Complete, label) => ("good", label),
        (RunState::Running, label) => ("open", label),
        (_, label) => ("bad", label),
    };
    html! { p class={ "state " (class) } { (state) } }
}

/// Returns the table of all runs of a page.
fn all_runs(documents: &[Document<'_>]) -> Markup {
    let names = ["run", "asked", "outcome", "changed", "used", "next"];
    html! {
        div class="wide" role="region" aria-label="All runs" tabindex="0" {
            table class="runs" {
                thead { tr { @for name in names { th scope="col" { (name) } } } }
                tbody {
                    @for row in overview_rows(documents) {
                        tr {
                            th scope="row" { a href={ "#run-" (row.run) } { (row.run) } }
                            td data-name="asked" { (shown(&row.asked)) }
                            td data-name="outcome" { div {
                                span class=[row.bad.then_some("bad")] { (shown(&row.outcome)) }
                                @if let Some(cause) = &row.cause { div class="cause" { (shown(cause)) } }
                            } }
                            td data-name="changed" { div {
                                (shown(&row.changed))
                                @for words in &row.weakened { div class="bad" { (shown(words)) } }
                            } }
                            td data-name="used" { (row.used) }
                            td data-name="next" { div { (command_words(&row.next)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a text with command lines, in which no option is broken at its hyphens.
fn command_words(text: &str) -> Markup {
    html! {
        @for word in text.split(' ') {
            @if word.starts_with('-') { span class="whole" { (shown(word)) } } @else { (shown(word)) }
            " "
        }
    }
}

/// Returns the sections of one run. `prefix` begins every id, so that several runs fit on one page.
fn run_parts(document: &Document<'_>, prefix: &str) -> Markup {
    let rows = timeline(document);
    html! {
        (section(prefix, "facts", "Overview", &html! {
            dl {
                @for fact in overview(document) {
                    div class=[fact.bad.then_some("bad")] { dt { (fact.name) } dd { (shown(&fact.words)) } }
                }
            }
        }))
        (generations::plotted(document, prefix).unwrap_or_else(|| plotted(document, prefix)))
        (section(prefix, "timeline", "What happened", &happened(&rows, prefix)))
        (section(prefix, "steps", "Steps", &steps(document)))
        @if let Some(cases) = cases(document) {
            (section(prefix, "cases", "Cases", &html! { pre tabindex="0" { (shown(&cases)) } }))
        }
        (found(document, prefix))
        (changed(document, prefix))
        (section(prefix, "papers", "Prompts and answers", &html! {
            @for papers in document.papers.chunks(TOGETHER) {
                div class="papers" { @for paper in papers { (folded(document, paper, prefix)) } }
            }
        }))
    }
}

fn steps(document: &Document<'_>) -> Markup {
    html! {
        table {
            thead { tr { @for name in ["step", "attempts", "time", "tokens", "cost"] { th scope="col" { (name) } } } }
            tbody {
                @for step in &document.summary.totals.steps {
                    tr {
                        th scope="row" { (step.step) " " (shown(&step.name)) }
                        td { (step.sum.attempts) }
                        td { (seconds(step.sum.took_ms)) }
                        td { (tokens_cell(&step.sum)) }
                        td { (cost_cell(&step.sum)) }
                    }
                }
            }
        }
    }
}

fn class_of(good: Option<bool>) -> &'static str {
    match good {
        Some(true) => "good",
        Some(false) => "bad",
        None => "open",
    }
}

fn tried(rows: &[TimelineRow]) -> impl Iterator<Item = &TimelineAttempt> {
    rows.iter().filter_map(|row| match row {
        TimelineRow::Attempt(tried) => Some(tried.as_ref()),
        _ => None,
    })
}

fn happened(rows: &[TimelineRow], prefix: &str) -> Markup {
    let whole = tried(rows).map(|tried| tried.to_ms).max().unwrap_or(0).max(1);
    html! {
        @for rows in rows.chunks(TOGETHER) {
            ol class="timeline" {
                @for row in rows {
                    @match row {
                        TimelineRow::Round(words) => li class="round" { (shown(words)) },
                        TimelineRow::Note(words, bad) => li class={ "note" @if *bad { " bad" } } { (shown(words)) },
                        TimelineRow::Attempt(tried) => (bar(tried, whole, prefix)),
                    }
                }
            }
        }
    }
}

/// Returns an attempt, with a bar whose length is its duration.
fn bar(tried: &TimelineAttempt, whole: i64, prefix: &str) -> Markup {
    let (left, width) = (share(tried.from_ms, whole), share(tried.to_ms - tried.from_ms, whole));
    let used = tried.tokens.map_or_else(String::new, |tokens| format!(", {}", amount(tokens, "token")));
    let cost = tried.cost.map_or_else(String::new, |cost| format!(", ${cost:.2}"));
    html! {
        li class={ "attempt " (class_of(tried.good)) } {
            a href={ "#" (prefix) "a" (tried.at.step) "-" (tried.at.attempt) } { (shown(&tried.label)) }
            " " span { (shown(&tried.how)) ", " (seconds(tried.took_ms)) (used) (cost) }
            i class="bar" style=(format!("--from:{left:.1}%;--to:{:.1}%", left + width.max(0.2))) {}
        }
    }
}

/// Returns a part of a whole, in percent.
#[expect(clippy::cast_precision_loss, reason = "only for a drawing")]
fn share(part: i64, whole: i64) -> f64 {
    part.max(0) as f64 * 100.0 / whole.max(1) as f64
}

fn found(document: &Document<'_>, prefix: &str) -> Markup {
    let rows = findings(document);
    if rows.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            thead { tr { @for name in ["no.", "state", "place", "finding", "answer"] { th scope="col" { (name) } } } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { "F" (row.number) }
                        td { (row.state) }
                        td { (shown(&row.place())) }
                        td { (shown(&row.finding.title)) }
                        td { (shown(row.answer.as_deref().unwrap_or_default())) }
                    }
                }
            }
        }
    };
    section(prefix, "findings", "Findings", &table)
}

fn changed(document: &Document<'_>, prefix: &str) -> Markup {
    if document.patch.is_empty() {
        return html! {};
    }
    let files = html! {
        @for file in by_file(document.patch) {
            details {
                summary { (shown(&file.path)) " " span class="good" { "+" (file.added) } " " span class="bad" { "-" (file.removed) } }
                pre tabindex="0" {
                    @for block in file.lines.chunks(LINES) {
                        span class="block" { @for line in block { (diff_line(line)) } }
                    }
                }
            }
        }
    };
    section(prefix, "changes", "Changes", &files)
}

fn diff_line(line: &str) -> Markup {
    let class = match line.as_bytes().first() {
        Some(b'+') => "good",
        Some(b'-') => "bad",
        Some(b'@') => "hunk",
        _ => return html! { (shown(line)) "\n" },
    };
    html! { span class=(class) { (shown(line)) } "\n" }
}

fn folded(document: &Document<'_>, paper: &AttemptTexts, prefix: &str) -> Markup {
    let (step, attempt) = (paper.at.step, paper.at.attempt);
    let origin = origin(document, paper).map_or_else(String::new, |origin| format!(" (from {origin})"));
    let parts = [
        (format!("the prompt{origin}"), &paper.prompt),
        ("its output".to_string(), &paper.output),
        ("its standard error".to_string(), &paper.errors),
    ];
    html! {
        article id={ (prefix) "a" (step) "-" (attempt) } {
            (heading_of(prefix, &shown(&heading(document, paper))))
            p class="folder" { (shown(&paper.folder)) }
            @for (name, words) in parts.iter().filter(|(_, words)| !words.trim().is_empty()) {
                details {
                    summary { (shown(name)) ", " (amount(words.len() as u64, "byte")) }
                    pre tabindex="0" { (blocks(words)) }
                }
            }
            @if let Some(missing) = &paper.missing { p class="note" { "The rest is lost: " (shown(missing)) "." } }
            @if paper.cut { p class="note" { "Text beyond 5 MiB is left out. The full text is in this directory." } }
        }
    }
}

/// Returns the heading of an attempt, one level below that of its section.
fn heading_of(prefix: &str, words: &str) -> Markup {
    html! { @if prefix.is_empty() { h3 { (words) } } @else { h4 { (words) } } }
}

/// Returns lines in blocks, which the browser lays out only when they become visible.
fn blocks(words: &str) -> Markup {
    let lines: Vec<&str> = words.split_inclusive('\n').collect();
    html! {
        @for block in lines.chunks(LINES) { span class="block" { (shown(&block.concat())) } }
    }
}
