//! An evaluation for people: a line for each case as it is judged, and at the end a table of all cases and generations.

mod lines;
mod outcome;
mod preview;
mod table;
mod texts;

use crate::engine::{Calibration, CaseResult, ColumnFacts, EvalFacts, EvalLedger, JudgedBy};
use crate::report::paint::{Paint, printable};
use serde_json::{Map, Value, json};
use similar::TextDiff;
use std::fmt::Write;

pub(in crate::report) use lines::evaluation_line;
pub use preview::evaluation_preview;
pub use table::{comparison_text, evaluation_text};
pub use texts::CaseTexts;

/// The maximum length of an id that is shown, in characters.
const LONGEST: usize = 32;

/// Returns the name of a generation, or of a column of a matrix.
pub(in crate::report) fn name_of(ledger: &EvalLedger, generation: u32) -> String {
    let column = ledger.facts.as_ref().and_then(|facts| facts.columns.get(generation as usize));
    match column {
        Some(column) => shortened(&column.name),
        None if generation == 0 => "original".into(),
        None => format!("gen {generation}"),
    }
}

fn score_words(result: &CaseResult) -> String {
    match (result.judged_by, result.pass) {
        (JudgedBy::Nobody, _) => "error".into(),
        (_, true) => format!("pass {:.2}", result.score),
        (_, false) => format!("fail {:.2}", result.score),
    }
}

fn painted(result: &CaseResult, words: &str, paint: Paint) -> String {
    match (result.judged_by, result.pass) {
        (JudgedBy::Nobody, _) => paint.warn(words),
        (_, true) => paint.good(words),
        (_, false) => paint.bad(words),
    }
}

fn refusal(why: &str) -> String {
    match why {
        "empty" => "it is empty".into(),
        "already_seen" => "it is the same as an earlier prompt".into(),
        "leakage_detected" => "it reveals a case or an example".into(),
        "sanity_check:too_short" => "it is too short".into(),
        "sanity_check:too_long" => "it is too long".into(),
        "sanity_check:too_large_increase" => "it has grown too much".into(),
        other => other.to_string(),
    }
}

/// Returns how often cases are run, if not once: `, 5 times each`.
fn times_words(facts: &EvalFacts) -> String {
    let times = facts.cases.iter().map(|case| case.repeat);
    match (times.clone().min(), times.max()) {
        (Some(1), Some(1)) | (None, _) | (_, None) => String::new(),
        (Some(least), Some(most)) if least == most => format!(", {most} times each"),
        (Some(least), Some(most)) => format!(", {least} to {most} times each"),
    }
}

fn shortened(id: &str) -> String {
    match id.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", printable(&id[..cut])),
        None => printable(id),
    }
}

/// Returns the diff of each generation's prompt against the original.
#[must_use]
pub fn prompt_diff(ledger: &EvalLedger, every: bool, paint: Paint) -> String {
    let Some(original) = ledger.prompts.get(&0) else { return String::new() };
    let chosen = ledger.winner();
    let mut text = String::new();
    for (generation, proposal) in ledger.prompts.iter().filter(|(generation, _)| **generation > 0) {
        if !every && *generation != chosen {
            continue;
        }
        let diff = TextDiff::from_lines(original.prompt.as_str(), proposal.prompt.as_str());
        let unified = diff
            .unified_diff()
            .header("original", &name_of(ledger, *generation))
            .missing_newline_hint(false)
            .to_string();
        text.push('\n');
        for line in unified.lines() {
            let line = printable(line);
            let painted = match line.chars().next() {
                Some('+') => paint.good(&line),
                Some('-') => paint.bad(&line),
                Some('@') => paint.dim(&line),
                _ => line,
            };
            let _ = writeln!(text, "{painted}");
        }
    }
    text
}

/// Returns the evaluation as JSON.
#[must_use]
pub fn evaluation_json(ledger: &EvalLedger, run: i64) -> Value {
    let generations = ledger.prompts.iter().map(|(generation, proposal)| {
        json!({
            "generation": generation,
            "prompt": proposal.prompt,
            "tokens": proposal.tokens,
            "refused": proposal.refused,
            "training": ledger.score(*generation, false),
            "heldOut": ledger.score(*generation, true),
            "saved": ledger.stopped.get(generation),
            "cases": ledger.of(*generation).collect::<Vec<_>>(),
            "perCase": per_case(ledger, *generation),
        })
    });
    json!({
        "run": run,
        "suite": ledger.facts.as_ref().map(|facts| &facts.suite),
        "generations": generations.collect::<Vec<_>>(),
        "chosen": ledger.chosen.as_ref().map(|chosen| chosen.generation),
        "stopped": ledger.chosen.as_ref().map(|chosen| &chosen.reason),
        "proof": ledger.chosen.as_ref().and_then(|chosen| chosen.proof),
        "sensitivity": ledger.chosen.as_ref().and_then(|chosen| chosen.sensitivity),
        "comparison": ledger.comparison,
        "calibration": Calibration::of(ledger),
        "columns": ledger.facts.as_ref().map(|facts| &facts.columns),
        "comparisons": ledger.columns,
        "preferences": ledger.preferences,
        "attempts": ledger.totals.planned,
        "tokens": ledger.totals.all.tokens().unwrap_or(0),
        "costUsd": ledger.totals.all.cost_usd(),
    })
}

/// Returns several evaluations side by side as JSON.
#[must_use]
pub fn comparison_json(ledger: &EvalLedger) -> Value {
    let columns = ledger.facts.iter().flat_map(|facts| &facts.columns);
    let column = |(number, column): (u32, &ColumnFacts)| {
        json!({
            "name": column.name,
            "executor": column.executor,
            "prompt": column.prompt,
            "score": ledger.score(number, false),
            "costUsd": ledger.mean_cost(number),
            "tookMs": ledger.mean_time(number),
            "cases": ledger.of(number).collect::<Vec<_>>(),
        })
    };
    json!({ "columns": (0..).zip(columns).map(column).collect::<Vec<_>>(), "comparisons": ledger.columns })
}

/// Returns the score of each case that is run several times.
fn per_case(ledger: &EvalLedger, generation: u32) -> Map<String, Value> {
    let cases = ledger.facts.iter().flat_map(|facts| &facts.cases).filter(|case| case.repeat > 1);
    cases.filter_map(|case| Some((case.id.to_string(), json!(ledger.case_score(generation, &case.id)?)))).collect()
}
