//! The report as one HTML page that needs nothing else: no network, no script. Transcripts are folded, and laid out only where they
//! are looked at, so that megabytes of them stay usable.

use crate::engine::RunState;
use crate::report::closing::{cost_cell, tokens_cell};
use crate::report::page::{
    Document, Paper, TimelineAttempt, TimelineRow, cases, facts, findings, heading, origin, timeline,
};
use crate::report::paint::printable;
use crate::report::phrases::{seconds, thousands};
use std::fmt::Write;

const STYLE: &str = include_str!("report.css");
/// So many lines are laid out at once.
const LINES: usize = 200;

fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for next in printable(text).chars() {
        match next {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            _ => shown.push(next),
        }
    }
    shown
}

/// The page.
#[must_use]
pub fn html(document: &Document<'_>) -> String {
    let summary = document.summary;
    let title = format!("Run {}: {}", summary.run, summary.name.as_ref().unwrap_or(&summary.chain));
    let good = RunState::of(summary.totals.outcome, false) == RunState::Complete;
    let (class, state) = match (summary.totals.outcome.is_some(), good) {
        (true, true) if !summary.totals.unverified.is_empty() => ("open", "complete, unverified"),
        (true, true) => ("good", "complete"),
        (true, false) => ("bad", "not complete"),
        (false, _) => ("open", "not over"),
    };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>{0}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<header>\n<h1>{0}</h1>\n<p class=\"state {class}\">{state}</p>\n</header>\n<main>\n",
        escaped(&title)
    );
    page.push_str("<section aria-labelledby=\"facts\">\n<h2 id=\"facts\">What it came to</h2>\n<dl>\n");
    for (name, value) in facts(document) {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
    }
    page.push_str("</dl>\n");
    page.push_str(&steps(document));
    page.push_str("</section>\n");
    let rows = timeline(document);
    page.push_str(&happened(&rows));
    page.push_str(&charts(&rows));
    if let Some(cases) = cases(document) {
        let _ = write!(
            page,
            "<section aria-labelledby=\"cases\">\n<h2 id=\"cases\">Cases</h2>\n<pre tabindex=\"0\">{}</pre>\n</section>\n",
            escaped(&cases)
        );
    }
    page.push_str(&found(document));
    page.push_str("<section aria-labelledby=\"papers\">\n<h2 id=\"papers\">Prompts and answers</h2>\n");
    for paper in &document.papers {
        page.push_str(&folded(document, paper));
    }
    page.push_str("</section>\n</main>\n<footer>forkhestra ");
    page.push_str(env!("CARGO_PKG_VERSION"));
    page.push_str("</footer>\n</body>\n</html>\n");
    page
}

fn steps(document: &Document<'_>) -> String {
    let mut table = String::from(
        "<table>\n<caption>By step</caption>\n<thead><tr><th scope=\"col\">step</th><th scope=\"col\">attempts</th><th \
         scope=\"col\">time</th><th scope=\"col\">tokens</th><th scope=\"col\">cost</th></tr></thead>\n<tbody>\n",
    );
    for step in &document.summary.totals.steps {
        let sum = &step.sum;
        let _ = writeln!(
            table,
            "<tr><th scope=\"row\">{} {}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            step.step,
            escaped(&step.name),
            sum.attempts,
            seconds(sum.took_ms),
            tokens_cell(sum),
            cost_cell(sum)
        );
    }
    table + "</tbody>\n</table>\n"
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

fn happened(rows: &[TimelineRow]) -> String {
    let whole = tried(rows).map(|tried| tried.to_ms).max().unwrap_or(0).max(1);
    let mut text = String::from(
        "<section aria-labelledby=\"timeline\">\n<h2 id=\"timeline\">What happened</h2>\n<ol class=\"timeline\">\n",
    );
    for row in rows {
        let _ = match row {
            TimelineRow::Round(words) => writeln!(text, "<li class=\"round\">{}</li>", escaped(words)),
            TimelineRow::Note(words, bad) => {
                writeln!(text, "<li class=\"note{}\">{}</li>", if *bad { " bad" } else { "" }, escaped(words))
            }
            TimelineRow::Attempt(tried) => {
                let (left, width) = (share(tried.from_ms, whole), share(tried.to_ms - tried.from_ms, whole));
                let used = tried.tokens.map_or_else(String::new, |tokens| format!(", {} tokens", thousands(tokens)));
                let cost = tried.cost.map_or_else(String::new, |cost| format!(", ${cost:.2}"));
                writeln!(
                    text,
                    "<li class=\"attempt {}\"><a href=\"#a{}-{}\">{}</a> <span>{}, {}{used}{cost}</span>\n<svg class=\"bar\" viewBox=\"0 0 1000 \
                     8\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"track\" width=\"1000\" height=\"8\"/><rect x=\"{left:.1}\" \
                     width=\"{:.1}\" height=\"8\"/></svg></li>",
                    class_of(tried.good),
                    tried.at.step,
                    tried.at.attempt,
                    escaped(&tried.label),
                    escaped(&tried.how),
                    seconds(tried.took_ms),
                    width.max(2.0)
                )
            }
        };
    }
    text + "</ol>\n</section>\n"
}

/// A part of a whole, in thousandths.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn share(part: i64, whole: i64) -> f64 {
    part.max(0) as f64 * 1000.0 / whole.max(1) as f64
}

fn charts(rows: &[TimelineRow]) -> String {
    let errors: Vec<(String, f64)> = tried(rows)
        .filter_map(|tried| Some((tried.label.clone(), f64::from(u32::try_from(tried.errors?).unwrap_or(u32::MAX)))))
        .collect();
    let mut sum = 0.0;
    let costs: Vec<(String, f64)> = tried(rows)
        .filter_map(|tried| {
            sum += tried.cost?;
            Some((tried.label.clone(), sum))
        })
        .collect();
    let mut text = String::new();
    if errors.iter().any(|(_, count)| *count > 0.0) {
        text.push_str(&chart("errors", "Errors that the checks found", &errors, &|value| format!("{value:.0}")));
    }
    if costs.len() > 1 {
        text.push_str(&chart("cost", "Cost so far, in US dollars", &costs, &|value| format!("{value:.2}")));
    }
    text
}

/// Bars over attempts.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
fn chart(id: &str, title: &str, values: &[(String, f64)], words: &dyn Fn(f64) -> String) -> String {
    let most = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let width = 760.0 / values.len() as f64;
    let mut text = format!(
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n<svg class=\"chart\" viewBox=\"0 0 800 180\" role=\"img\" \
         aria-labelledby=\"{id}-title\"><title id=\"{id}-title\">{title}: {}</title>\n<line x1=\"20\" x2=\"780\" y1=\"150\" y2=\"150\"/>\n",
        values.iter().map(|(_, value)| words(*value)).collect::<Vec<_>>().join(", ")
    );
    for (index, (label, value)) in values.iter().enumerate() {
        let (x, height) = (20.0 + width * index as f64, value / most * 120.0);
        let bar = (width * 0.7).clamp(1.0, 60.0);
        let middle = x + width / 2.0;
        let _ = writeln!(
            text,
            "<g><title>{}: {}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{bar:.1}\" height=\"{height:.1}\"/>",
            escaped(label),
            words(*value),
            middle - bar / 2.0,
            150.0 - height
        );
        if values.len() <= 30 {
            let _ = write!(text, "<text x=\"{middle:.1}\" y=\"{:.1}\">{}</text>", 144.0 - height, words(*value));
        }
        text.push_str("</g>\n");
    }
    text + "</svg>\n</section>\n"
}

fn found(document: &Document<'_>) -> String {
    let rows = findings(document);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<section aria-labelledby=\"findings\">\n<h2 id=\"findings\">Findings</h2>\n<table>\n<thead><tr><th scope=\"col\">no.</th><th \
         scope=\"col\">state</th><th scope=\"col\">place</th><th scope=\"col\">finding</th><th scope=\"col\">answer</th></tr></thead>\n<tbody>\n",
    );
    for row in rows {
        let _ = writeln!(
            text,
            "<tr><th scope=\"row\">F{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.number,
            row.state,
            escaped(&row.place()),
            escaped(&row.finding.title),
            escaped(row.answer.as_deref().unwrap_or_default())
        );
    }
    text + "</tbody>\n</table>\n</section>\n"
}

fn folded(document: &Document<'_>, paper: &Paper) -> String {
    let (step, attempt) = paper.of;
    let mut text = format!(
        "<article id=\"a{step}-{attempt}\">\n<h3>{}</h3>\n<p class=\"folder\">{}</p>\n",
        escaped(&heading(document, paper)),
        escaped(&paper.folder)
    );
    let origin = origin(document, paper).map_or_else(String::new, |origin| format!(" (from {origin})"));
    let parts = [
        (format!("the prompt{origin}"), &paper.prompt),
        ("what it said".to_string(), &paper.output),
        ("what it said on standard error".to_string(), &paper.errors),
    ];
    for (name, words) in parts.iter().filter(|(_, words)| !words.trim().is_empty()) {
        let _ = write!(
            text,
            "<details><summary>{}, {} bytes</summary>\n<pre tabindex=\"0\">",
            escaped(name),
            thousands(words.len() as u64)
        );
        let lines: Vec<&str> = words.split_inclusive('\n').collect();
        for block in lines.chunks(LINES) {
            let _ = write!(text, "<span class=\"block\">{}</span>", escaped(&block.concat()));
        }
        text.push_str("</pre></details>\n");
    }
    if let Some(missing) = &paper.missing {
        let _ = writeln!(text, "<p class=\"note\">The rest is lost: {}.</p>", escaped(missing));
    }
    if paper.cut {
        text.push_str("<p class=\"note\">What is longer than 5 MiB ends here; the whole is in the folder.</p>\n");
    }
    text + "</article>\n"
}
