//! The table of cases and generations, and why cases failed.

use super::outcome::{came_out, side_by_side};
use super::{CaseTexts, name_of, painted, score_words, shortened};
use crate::engine::{CaseFacts, CaseResult, EvalFacts, EvalLedger, JudgedBy, Score};
use crate::report::format::{first_line, padded, width};
use crate::report::paint::{Paint, printable};
use crate::source::counted;
use crate::verdict::issue_words;
use std::fmt::Write;

/// With more cases than this, the table leaves out those that passed in every generation.
const MANY: usize = 40;
/// Why at most this many cases failed is shown, and at most this many issues of each.
const FAILED: usize = 10;
const ISSUES: usize = 3;

/// Returns the table of cases and generations, why cases failed, with their texts, and the outcome.
#[must_use]
pub fn evaluation_text(ledger: &EvalLedger, run: i64, paint: Paint, verbose: bool, texts: &CaseTexts) -> String {
    let Some(facts) = &ledger.facts else { return "the evaluation has not started\n".into() };
    let mut text = table(ledger, facts, paint, verbose);
    text.push_str(&failures(ledger, paint, verbose, texts));
    text.push('\n');
    text.push_str(&came_out(ledger, run, paint));
    text
}

fn table(ledger: &EvalLedger, facts: &EvalFacts, paint: Paint, verbose: bool) -> String {
    let generations: Vec<u32> = ledger.prompts.keys().copied().collect();
    let shown = |id: &str| {
        verbose || facts.cases.len() <= MANY || {
            let mut results = generations.iter().flat_map(|generation| ledger.of_case(*generation, id)).peekable();
            results.peek().is_none() || results.any(|result| !result.pass)
        }
    };
    let cases: Vec<_> = facts.cases.iter().filter(|case| shown(&case.id)).collect();
    let held_out = facts.cases.iter().any(|case| case.held_out);
    // Several prompts leave no room for it.
    let spread = generations.len() == 1 && !facts.options.improves && facts.cases.iter().any(|case| case.repeat > 1);
    let wide = |generation: &u32| width(&name_of(ledger, *generation)).max(9);
    let widest = cases.iter().map(|case| width(&shortened(&case.id))).max().unwrap_or(0).max(8);
    let mut text = String::new();
    let headings: Vec<String> =
        generations.iter().map(|one| format!("  {}", right(&name_of(ledger, *one), wide(one)))).collect();
    let more = if spread { format!("  {:>6}  {:>9}", "spread", "passes") } else { String::new() };
    let heading = headings.concat() + &more;
    // Writing to a String cannot fail.
    let part_of = |words: &str| if held_out { format!("  {words:8}") } else { String::new() };
    let _ = writeln!(text, "{}", paint.dim(&format!("{}{}{heading}", padded("case", widest), part_of("part"))));
    for case in &cases {
        let part = if case.held_out { "held out" } else { "" };
        let mut line = format!("{}{}", padded(&shortened(&case.id), widest), paint.dim(&part_of(part)));
        for generation in &generations {
            let space = " ".repeat(wide(generation) - 9);
            let _ = write!(line, "  {space}{}", cell(ledger, *generation, case, paint));
        }
        if let Some(score) = ledger.case_score(0, &case.id).filter(|_| spread) {
            let _ = write!(line, "{}", paint.dim(&spread_words(score)));
        }
        let _ = writeln!(text, "{line}");
    }
    if cases.len() < facts.cases.len() {
        let left = facts.cases.len() - cases.len();
        let words = if left == 1 {
            "1 case that passed everywhere is".into()
        } else {
            format!("{left} cases that passed everywhere are")
        };
        let _ = writeln!(text, "{}", paint.dim(&format!("{words} not shown; -v shows all")));
    }
    for part in [false, true].into_iter().filter(|part| !part || held_out) {
        let name = match (held_out, part) {
            (false, _) => "all",
            (true, false) => "training",
            (true, true) => "held out",
        };
        let mut line = format!("{}{}", padded(name, widest), part_of(""));
        for generation in &generations {
            let cell = ledger.score(*generation, part).map_or_else(|| paint.sign("·", "-").into(), sum);
            let _ = write!(line, "  {}", right(&cell, wide(generation)));
        }
        if let Some(score) = ledger.score(0, part).filter(|_| spread) {
            line.push_str(&spread_words(score));
        }
        let _ = writeln!(text, "{}", paint.bold(line.trim_end()));
    }
    if !facts.columns.is_empty() {
        let cost = |one: &u32| ledger.mean_cost(*one).map(|cost| format!("${cost:.4}"));
        let time = |one: &u32| ledger.mean_time(*one).map(|time| format!("{:.1} s", time / 1000.0));
        let costs: Vec<Option<String>> = generations.iter().map(cost).collect();
        let times: Vec<Option<String>> = generations.iter().map(time).collect();
        for (name, values) in [("cost", costs), ("time", times)] {
            if values.iter().all(Option::is_none) {
                continue;
            }
            let cells = generations.iter().zip(values).map(|(one, value)| {
                let words = value.unwrap_or_else(|| paint.sign("·", "-").into());
                format!("  {}", right(&words, wide(one)))
            });
            let line = format!("{}{}", padded(name, widest), cells.collect::<String>());
            let _ = writeln!(text, "{}", paint.dim(&line));
        }
    }
    if spread {
        let words = "passes: the true pass rate is in this interval with a probability of 95 %";
        let _ = writeln!(text, "{}", paint.dim(words));
    }
    text
}

/// Returns several evaluations side by side, and how the best one compares to the others.
#[must_use]
pub fn comparison_text(ledger: &EvalLedger, paint: Paint, verbose: bool) -> String {
    let Some(facts) = &ledger.facts else { return String::new() };
    let mut text = table(ledger, facts, paint, verbose) + "\n";
    for comparison in &ledger.columns {
        let _ = writeln!(text, "{}", side_by_side(ledger, comparison));
    }
    text
}

fn right(words: &str, columns: usize) -> String {
    " ".repeat(columns.saturating_sub(width(words))) + words
}

/// Returns the cell of a case: its result, or the number of repetitions that passed and the mean score.
fn cell(ledger: &EvalLedger, generation: u32, case: &CaseFacts, paint: Paint) -> String {
    let results: Vec<&CaseResult> = ledger.of_case(generation, &case.id).collect();
    match (results.as_slice(), Score::of(&results)) {
        ([], _) | (_, None) => format!("{:>9}", paint.sign("·", "-")),
        ([result], _) if case.repeat == 1 => painted(result, &format!("{:>9}", score_words(result)), paint),
        (_, Some(score)) => {
            let words = format!("{:>9}", sum(score));
            if score.is_perfect() {
                paint.good(&words)
            } else if score.passed == 0 {
                paint.bad(&words)
            } else {
                paint.warn(&words)
            }
        }
    }
}

fn spread_words(score: Score) -> String {
    let (low, high) = score.pass_interval;
    let interval = format!("{:.0}–{:.0} %", low * 100.0, high * 100.0);
    format!("  {:>6.2}  {interval:>9}", score.spread)
}

fn sum(score: Score) -> String {
    format!("{}/{} {:.2}", score.passed, score.cases, score.mean)
}

/// Returns why cases failed with the prompt that was chosen or the best column, or with the original.
fn failures(ledger: &EvalLedger, paint: Paint, verbose: bool, texts: &CaseTexts) -> String {
    let generation = ledger.columns.first().map_or_else(|| ledger.winner(), |comparison| comparison.best);
    let is_matrix = ledger.facts.as_ref().is_some_and(|facts| !facts.columns.is_empty());
    let facts = ledger.facts.iter().flat_map(|facts| &facts.cases);
    let failed = facts.filter_map(|case| {
        let mut issues: Vec<(String, usize)> = Vec::new();
        for result in ledger.of_case(generation, &case.id).filter(|result| !result.pass) {
            let error = result.remarks.error.iter().filter(|_| result.judged_by == JudgedBy::Nobody);
            for issue in error.chain(&result.remarks.issues) {
                let words = printable(&first_line(&issue_words(issue)));
                match issues.iter_mut().find(|(known, _)| *known == words) {
                    Some((_, count)) => *count += 1,
                    None => issues.push((words, 1)),
                }
            }
        }
        (!issues.is_empty()).then_some((case, issues))
    });
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() {
        return String::new();
    }
    let of = match generation {
        _ if is_matrix => format!(" with {}", name_of(ledger, generation)),
        0 => String::new(),
        _ => format!(" with generation {generation}"),
    };
    let mut text = format!("\n{}\n", paint.bold(&format!("Why cases failed{of}")));
    let most = |all: usize, most: usize| if verbose { all } else { all.min(most) };
    for (case, issues) in &failed[..most(failed.len(), FAILED)] {
        let _ = writeln!(text, "  {}", shortened(&case.id));
        for (words, count) in &issues[..most(issues.len(), ISSUES)] {
            let times = if case.repeat == 1 { String::new() } else { format!(" ({count} of {})", case.repeat) };
            let _ = writeln!(text, "    {words}{}", paint.dim(&times));
        }
        if let Some(first) = ledger.of_case(generation, &case.id).find(|result| !result.pass) {
            text.push_str(&texts.of(first, paint));
        }
        if issues.len() > most(issues.len(), ISSUES) {
            let left = counted(issues.len() - ISSUES, "more issue");
            let _ = writeln!(text, "    {}", paint.dim(&format!("and {left}; -v shows all")));
        }
    }
    if failed.len() > most(failed.len(), FAILED) {
        let left = counted(failed.len() - FAILED, "more case");
        let _ = writeln!(text, "  {}", paint.dim(&format!("and {left}; -v shows all")));
    }
    text
}
