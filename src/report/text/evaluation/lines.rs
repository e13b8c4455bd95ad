//! The lines about an evaluation while it is running.

use super::{name_of, painted, refusal, score_words, shortened, times_words};
use crate::engine::{AttemptOutcome, EvalEvent, EvalLedger, Event, EventKind};
use crate::report::format::{first_line, outcome_words, seconds, waiting_words};
use crate::report::paint::{Paint, printable};
use crate::source::counted;
use crate::verdict::issue_words;
use std::fmt::Write;

/// Returns the lines about an event as it happens. `ledger` includes the event already, but needs no results. `done` is
/// how many results the generation of the last one has.
#[must_use]
pub(in crate::report) fn evaluation_line(
    event: &Event,
    ledger: &EvalLedger,
    done: usize,
    paint: Paint,
    verbose: bool,
) -> String {
    let warning = |words: &str| format!("{}\n", paint.warn(&format!("  ! {words}")));
    match &event.event {
        EventKind::Evaluation { event: what } => event_lines(what, ledger, done, paint, verbose),
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

fn event_lines(what: &EvalEvent, ledger: &EvalLedger, done: usize, paint: Paint, verbose: bool) -> String {
    match what {
        EvalEvent::Started { facts } => {
            let held = facts.cases.iter().filter(|case| case.held_out).count();
            let count = facts.cases.len();
            let times = times_words(facts);
            let held = if held > 0 { format!(", {held} of them held out") } else { String::new() };
            let cases = if count == 1 { format!("1 case{times}") } else { format!("{count} cases{times}{held}") };
            let mut agents = match facts.columns.len() {
                0 => format!("executor {}", facts.executor),
                columns => format!("{columns} columns"),
            };
            for (role, name) in
                [("evaluator", &facts.evaluator), ("select best", &facts.selector), ("improver", &facts.improver)]
            {
                if let Some(name) = name {
                    let _ = write!(agents, ", {role} {name}");
                }
            }
            format!("{} {}\n", paint.bold(&format!("{}: {cases}", facts.suite)), paint.dim(&format!("({agents})")))
        }
        EvalEvent::OutputsCompared { comparison } => {
            let (first, second) = (name_of(ledger, comparison.first), name_of(ledger, comparison.second));
            let words = match (comparison.better, &comparison.error) {
                (_, Some(error)) => paint.warn(&printable(&first_line(&issue_words(error)))),
                (Some(better), _) => format!("{} is better", name_of(ledger, better)),
                (None, _) => "equally good".into(),
            };
            format!("  {}  {first} or {second}: {words}\n", shortened(&comparison.case))
        }
        EvalEvent::CaseJudged { result } => {
            let Some(facts) = &ledger.facts else { return String::new() };
            let all: u32 = facts.cases.iter().map(|case| case.repeat).sum();
            let place = format!("[{done}/{all}]");
            let generation = if ledger.prompts.len() > 1 || facts.options.improves {
                format!("{:9} ", name_of(ledger, result.generation))
            } else {
                String::new()
            };
            let id = shortened(&result.case);
            let words = painted(result, &format!("{:10}", score_words(result)), paint);
            let mut notes = Vec::new();
            notes.extend((result.repetition > 1).then(|| format!("repetition {}", result.repetition)));
            notes.extend(result.held_out.then(|| "held out".to_string()));
            notes.extend(result.cached.then(|| "answer reused".to_string()));
            if result.pass && !result.remarks.issues.is_empty() {
                notes.push("passes despite issues".into());
            }
            if result.remarks.dropped > 0 {
                notes.push(format!("dropped {} that quoted a case", counted(result.remarks.dropped, "remark")));
            }
            let notes = if notes.is_empty() { String::new() } else { paint.dim(&format!(" ({})", notes.join(", "))) };
            let mut text = format!("  {place:9}{generation}{words} {id}{notes}\n");
            if let Some(error) = &result.remarks.error {
                let _ =
                    writeln!(text, "{}", paint.warn(&format!("    {}", printable(&first_line(&issue_words(error))))));
            }
            if verbose {
                for issue in &result.remarks.issues {
                    let _ = writeln!(text, "    {}", paint.dim(&printable(&first_line(&issue_words(issue)))));
                }
            }
            text
        }
        EvalEvent::PromptProposed { generation, tokens, refused, .. } => {
            let words = match refused {
                Some(why) => paint.warn(&format!("{} was not tried: {}", name_of(ledger, *generation), refusal(why))),
                None => paint.bold(&format!("{}: {}", name_of(ledger, *generation), counted(*tokens, "token"))),
            };
            format!("{words}\n")
        }
        EvalEvent::PromptStopped { generation, saved } => {
            let name = name_of(ledger, *generation);
            let words = format!("{name} is no better so far: {} saved", counted(*saved, "result"));
            format!("{}\n", paint.dim(&words))
        }
        EvalEvent::PromptChosen { .. } | EvalEvent::BaselineCompared { .. } | EvalEvent::ColumnsCompared { .. } => {
            String::new()
        }
    }
}
