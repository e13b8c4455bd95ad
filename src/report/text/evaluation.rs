//! An evaluation for people: a line for each case as it is judged, and at the end a table of all cases and generations.

use crate::engine::{
    AttemptOutcome, CaseResult, EvalEvent, EvalFacts, EvalLedger, Event, EventKind, JudgedBy, RunOutcome, Score,
};
use crate::plan::Outline;
use crate::report::format::{amount, first_line, outcome_words, padded, seconds, waiting_words, width};
use crate::report::paint::{Paint, printable};
use crate::source::counted;
use crate::verdict::issue_words;
use serde_json::{Value, json};
use similar::TextDiff;
use std::fmt::Write;

/// With more cases than this, the table leaves out those that passed in every generation.
const MANY: usize = 40;
/// The maximum length of an id that is shown, in characters.
const LONGEST: usize = 32;

/// Returns the name of a generation.
fn name_of(generation: u32) -> String {
    if generation == 0 { "original".into() } else { format!("gen {generation}") }
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

/// Returns the lines about an event as it happens. `ledger` includes the event already.
#[must_use]
pub(in crate::report) fn evaluation_line(event: &Event, ledger: &EvalLedger, paint: Paint, verbose: bool) -> String {
    let warning = |words: &str| format!("{}\n", paint.warn(&format!("  ! {words}")));
    match &event.event {
        EventKind::Evaluation { event: what } => event_lines(what, ledger, paint, verbose),
        EventKind::WaitStarted { at, reason, wait_ms, .. } => {
            warning(&format!("{}: {}, {}", at.name, waiting_words(*reason), seconds(*wait_ms)))
        }
        EventKind::AttemptFinished { at, outcome, finished, .. } => match outcome {
            // An event of its own reports what is wrong with an evaluation.
            AttemptOutcome::Completed | AttemptOutcome::Limited | AttemptOutcome::Unfinished => String::new(),
            outcome => {
                let error = finished.error.as_deref().map(|error| format!(": {}", first_line(error)));
                let words = outcome_words(outcome, false, false);
                warning(&format!("{} {words}{} (attempt {})", at.name, error.unwrap_or_default(), at.attempt))
            }
        },
        EventKind::VerdictUnclear { at, reason: why, .. } => warning(&format!("{}: {}", at.name, why.words())),
        _ => String::new(),
    }
}

fn event_lines(what: &EvalEvent, ledger: &EvalLedger, paint: Paint, verbose: bool) -> String {
    match what {
        EvalEvent::Started { facts } => {
            let held = facts.cases.iter().filter(|case| case.held_out).count();
            let count = facts.cases.len();
            let held = if held > 0 { format!(", {held} of them held out") } else { String::new() };
            let cases = if count == 1 { "1 case".into() } else { format!("{count} cases{held}") };
            let mut agents = format!("executor {}", facts.executor);
            for (role, name) in [("evaluator", &facts.evaluator), ("improver", &facts.improver)] {
                if let Some(name) = name {
                    let _ = write!(agents, ", {role} {name}");
                }
            }
            format!("{} {}\n", paint.bold(&format!("{}: {cases}", facts.suite)), paint.dim(&format!("({agents})")))
        }
        EvalEvent::CaseJudged { result } => {
            let Some(facts) = &ledger.facts else { return String::new() };
            let done = ledger
                .results
                .range((result.generation, String::new())..(result.generation + 1, String::new()))
                .count();
            let place = format!("[{done}/{}]", facts.cases.len());
            let generation =
                if facts.options.improves { format!("{:9}", name_of(result.generation)) } else { String::new() };
            let id = shortened(&result.case);
            let words = painted(result, &format!("{:10}", score_words(result)), paint);
            let mut notes = Vec::new();
            notes.extend(result.held_out.then(|| "held out".to_string()));
            notes.extend(result.cached.then(|| "answer reused".to_string()));
            if result.pass && !result.issues.is_empty() {
                notes.push("passes despite issues".into());
            }
            if result.dropped > 0 {
                notes.push(format!("dropped {} that quoted the expected output", counted(result.dropped, "remark")));
            }
            let notes = if notes.is_empty() { String::new() } else { paint.dim(&format!(" ({})", notes.join(", "))) };
            let mut text = format!("  {place:9}{generation}{words} {id}{notes}\n");
            if let Some(error) = &result.error {
                let _ =
                    writeln!(text, "{}", paint.warn(&format!("    {}", printable(&first_line(&issue_words(error))))));
            }
            if verbose {
                for issue in &result.issues {
                    let _ = writeln!(text, "    {}", paint.dim(&printable(&first_line(&issue_words(issue)))));
                }
            }
            text
        }
        EvalEvent::PromptProposed { generation, tokens, refused, .. } => {
            let words = match refused {
                Some(why) => paint.warn(&format!("{} was not tried: {}", name_of(*generation), refusal(why))),
                None => paint.bold(&format!("{}: {}", name_of(*generation), counted(*tokens, "token"))),
            };
            format!("{words}\n")
        }
        EvalEvent::PromptChosen { .. } => String::new(),
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

fn stopped(why: &str) -> String {
    match why {
        "pass" => "all training cases pass".into(),
        "no_improvement" => "the last candidates were no better".into(),
        "max_iterations" => "all generations have been tried".into(),
        "leakage" => "the last candidate revealed a case".into(),
        other => match other.strip_prefix("sanity_check:") {
            Some(_) => format!("the last candidate was refused: {}", refusal(other)),
            None => printable(&first_line(other)),
        },
    }
}

fn shortened(id: &str) -> String {
    match id.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", printable(&id[..cut])),
        None => printable(id),
    }
}

/// Returns which agents would be asked what, and how often at most.
#[must_use]
pub fn evaluation_preview(facts: &EvalFacts, outline: &Outline, case: &str, prompt: &str, paint: Paint) -> String {
    let held: Vec<&str> = facts.cases.iter().filter(|case| case.held_out).map(|case| case.id.as_str()).collect();
    let (cases, options) = (facts.cases.len(), &facts.options);
    let mut text = format!("{}\n", paint.bold(&outline.chain));
    let mut line = |name: &str, words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<10}")));
    };
    let parts = [("executor", true), ("evaluator", facts.evaluator.is_some()), ("improver", true)];
    for (step, (name, _)) in outline.steps.iter().zip(parts).filter(|(_, (_, there))| *there) {
        let level = step.permissions.map_or_else(String::new, |level| format!(", permissions {}", level.name()));
        line(name, &format!("{} ({}{level})", step.name, step.program));
    }
    line("prompt", &counted(facts.tokens, "token"));
    line("cases", &format!("{cases} (up to {} at a time)", options.jobs));
    if !held.is_empty() {
        line("held out", &held.join(", "));
    }
    let agents = u64::from(facts.evaluator.is_some()) + 1;
    let asked = cases as u64 * agents;
    if options.improves {
        let whole = asked * (u64::from(options.generations) + 1) + u64::from(options.generations);
        line(
            "at most",
            &format!(
                "{} in {} after the original, not counting retries",
                counted(whole, "attempt"),
                counted(options.generations, "generation")
            ),
        );
    } else {
        line("at most", &format!("{}, not counting retries", counted(asked, "attempt")));
    }
    line("limits", &outline.limits.words());
    let _ = write!(
        text,
        "\n{}\n{}\n",
        paint.dim(&format!("the prompt of the executor for `{case}`:")),
        printable(prompt.trim_end())
    );
    let _ = writeln!(text, "\n{}", paint.dim("Nothing was run and nothing was written."));
    text
}

/// Returns the table of cases and generations, and the outcome.
#[must_use]
pub fn evaluation_text(ledger: &EvalLedger, run: i64, paint: Paint, verbose: bool) -> String {
    let Some(facts) = &ledger.facts else { return "the evaluation has not started\n".into() };
    let generations: Vec<u32> = ledger.prompts.keys().copied().collect();
    let shown = |id: &str| {
        verbose || facts.cases.len() <= MANY || {
            let results =
                generations.iter().filter_map(|generation| ledger.results.get(&(*generation, id.to_string())));
            results.clone().count() == 0 || results.clone().any(|result| !result.pass)
        }
    };
    let cases: Vec<_> = facts.cases.iter().filter(|case| shown(&case.id)).collect();
    let held_out = facts.cases.iter().any(|case| case.held_out);
    let widest = cases.iter().map(|case| width(&shortened(&case.id))).max().unwrap_or(0).max(8);
    let mut text = String::new();
    let headings: Vec<String> = generations.iter().map(|generation| format!("  {:>9}", name_of(*generation))).collect();
    let heading = headings.concat();
    // Writing to a String cannot fail.
    let part_of = |words: &str| if held_out { format!("  {words:8}") } else { String::new() };
    let _ = writeln!(text, "{}", paint.dim(&format!("{}{}{heading}", padded("case", widest), part_of("part"))));
    for case in &cases {
        let part = if case.held_out { "held out" } else { "" };
        let mut line = format!("{}{}", padded(&shortened(&case.id), widest), paint.dim(&part_of(part)));
        for generation in &generations {
            let cell = match ledger.results.get(&(*generation, case.id.clone())) {
                Some(result) => painted(result, &format!("{:>9}", score_words(result)), paint),
                None => format!("{:>9}", paint.sign("·", "-")),
            };
            let _ = write!(line, "  {cell}");
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
            let _ = write!(line, "  {cell:>9}");
        }
        let _ = writeln!(text, "{}", paint.bold(line.trim_end()));
    }
    text.push('\n');
    text.push_str(&came_out(ledger, run, paint));
    text
}

fn sum(score: Score) -> String {
    format!("{}/{} {:.2}", score.passed, score.cases, score.mean)
}

fn came_out(ledger: &EvalLedger, run: i64, paint: Paint) -> String {
    let mut text = String::new();
    let good = |words: String| paint.good(&format!("{} {words}", paint.sign("✓", "+")));
    let bad = |words: String| paint.bad(&format!("{} {words}", paint.sign("✗", "x")));
    let improves = ledger.facts.as_ref().is_some_and(|facts| facts.options.improves);
    let halted = match ledger.totals.outcome {
        Some(RunOutcome::LimitReached { limit }) => Some(format!("the limit `{}` was reached", limit.key())),
        Some(RunOutcome::Interrupted { signal }) => Some(format!("interrupted by {signal}")),
        Some(RunOutcome::NeedsHuman { .. }) if improves => {
            Some("an agent failed, or its answer could not be read".into())
        }
        _ => None,
    };
    let all = ledger.facts.as_ref().map_or(0, |facts| facts.cases.len());
    let line = match &ledger.chosen {
        _ if halted.is_some() => {
            let judged = ledger.results.values().filter(|result| result.error.is_none()).count();
            let of = if improves { String::new() } else { format!(" of {all}") };
            bad(format!("{}; {judged}{of} results are available", halted.unwrap_or_default()))
        }
        Some((0, why)) => {
            let whole = [false, true].iter().all(|part| ledger.score(0, *part).is_none_or(|score| score.is_perfect()));
            let tried = ledger
                .prompts
                .keys()
                .rev()
                .find(|generation| **generation > 0 && ledger.score(**generation, true).is_some());
            let why = match tried {
                Some(generation) => {
                    format!("generation {generation} is better on the training cases, but not on the held-out cases")
                }
                None => stopped(why),
            };
            let words = format!("the original prompt is kept: {why}");
            if whole { good(words) } else { bad(words) }
        }
        Some((generation, why)) => good(format!("generation {generation} is the best: {}", stopped(why))),
        None if improves => bad("not finished yet".into()),
        None => match ledger.score(0, false) {
            Some(score) if score.is_perfect() && score.cases == 1 => good("the case passed".into()),
            Some(score) if score.is_perfect() => good(format!("all {} cases passed", score.cases)),
            Some(score) if score.unjudged > 0 => bad(format!(
                "{} of {} passed, {} could not be judged",
                score.passed,
                counted(score.cases, "case"),
                score.unjudged
            )),
            Some(score) => bad(format!("{} of {} passed", score.passed, counted(score.cases, "case"))),
            None => bad("no case was judged".into()),
        },
    };
    let mut facts = vec![counted(ledger.totals.planned, "attempt")];
    let spent = ledger.totals.all.tokens().unwrap_or(0);
    if spent > 0 {
        facts.push(amount(spent, "token"));
        facts.push(ledger.totals.all.cost_usd().map_or_else(|| "cost unknown".into(), |cost| format!("${cost:.2}")));
    }
    let _ = writeln!(text, "{line} {}", paint.dim(&format!("({})", facts.join(", "))));
    let unseen = ledger.prompts.iter().filter_map(|(generation, known)| Some((generation, known.refused.as_ref()?)));
    for (generation, why) in unseen {
        let _ = writeln!(text, "  {}", paint.dim(&format!("{} was not tried: {}", name_of(*generation), refusal(why))));
    }
    if ledger.chosen.as_ref().is_some_and(|(generation, _)| *generation > 0) {
        let _ = writeln!(text, "  {}", paint.dim(&format!("the prompt: forkhestra eval show {run} --prompt")));
    }
    let _ = writeln!(text, "  {}", paint.dim(&format!("transcripts: .forkhestra/runs/{run}")));
    text
}

/// Returns the diff of each generation's prompt against the original.
#[must_use]
pub fn prompt_diff(ledger: &EvalLedger, every: bool, paint: Paint) -> String {
    let Some(original) = ledger.prompts.get(&0) else { return String::new() };
    let chosen = ledger.chosen.as_ref().map_or(0, |(generation, _)| *generation);
    let mut text = String::new();
    for (generation, proposal) in ledger.prompts.iter().filter(|(generation, _)| **generation > 0) {
        if !every && *generation != chosen {
            continue;
        }
        let diff = TextDiff::from_lines(original.prompt.as_str(), proposal.prompt.as_str());
        let unified =
            diff.unified_diff().header("original", &name_of(*generation)).missing_newline_hint(false).to_string();
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
            "cases": ledger.of(*generation).collect::<Vec<_>>(),
        })
    });
    json!({
        "run": run,
        "suite": ledger.facts.as_ref().map(|facts| &facts.suite),
        "generations": generations.collect::<Vec<_>>(),
        "chosen": ledger.chosen.as_ref().map(|(generation, _)| generation),
        "stopped": ledger.chosen.as_ref().map(|(_, why)| why),
        "attempts": ledger.totals.planned,
        "tokens": ledger.totals.all.tokens().unwrap_or(0),
        "costUsd": ledger.totals.all.cost_usd(),
    })
}
