//! The timeline of a run: its rounds and attempts, with verdicts, findings and first errors.

use super::{AttemptTexts, Document};
use crate::chain::Role;
use crate::checks::failures;
use crate::engine::{At, AttemptOutcome, EventKind, Totals};
use crate::plan::Outline;
use crate::report::format::{
    attempt_label, first_line, judge_words, message_words, outcome_words, round_words, seconds, waiting_words,
};
use crate::report::verdicts::{finding_line, unclear_words};
use crate::verdict::{Decision, ReadFrom, Verdict};
use jiff::Timestamp;
use std::collections::{HashMap, HashSet};

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
}

/// How many errors of a failed check the timeline shows.
const SHOWN: usize = 3;

fn ms(time: &str) -> Option<i64> {
    time.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Returns the label of an attempt: `2.4 coder, round 2, iteration 1 of 3`.
pub(super) fn label(outline: &Outline, at: &At) -> String {
    attempt_label(at, outline.step(at.step).and_then(|step| step.iterations))
}

/// Returns the first errors that a failed check printed, one line each.
pub(super) fn first_errors(paper: Option<&&AttemptTexts>) -> impl Iterator<Item = String> {
    let found = paper.map_or_else(Vec::new, |paper| failures(&(paper.output.clone() + "\n" + &paper.errors)));
    found.into_iter().take(SHOWN).map(|error| {
        let line = error.line.map_or_else(String::new, |line| format!(":{line}"));
        let place = error.file.as_ref().map_or_else(String::new, |file| format!("{file}{line}: "));
        first_line(&format!("{place}{}", error.message))
    })
}

/// Returns the timeline of a run.
pub(in crate::report) fn timeline(document: &Document<'_>) -> Vec<TimelineRow> {
    let (mut rows, mut began, mut ended) = (Vec::new(), Vec::<(At, i64)>::new(), HashSet::new());
    let start = document.events.first().and_then(|event| ms(&event.at)).unwrap_or(0);
    let papers: HashMap<(u32, u32), &AttemptTexts> =
        document.papers.iter().map(|paper| ((paper.at.step, paper.at.attempt), paper)).collect();
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
                ended.insert((at.step, at.attempt));
                let from_ms = began.iter().rev().find(|(known, _)| known == at).map_or(now, |(_, from)| *from);
                let step = document.outline.step(at.step);
                let looped = step.is_some_and(|step| step.iterations.is_some());
                let judge = step.is_some_and(|step| step.role == Some(Role::Judge));
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
                    how: if judge { judge_words(outcome) } else { outcome_words(outcome, *marker, looped) },
                    good,
                    took_ms: finished.took_ms,
                    from_ms,
                    to_ms: now.max(from_ms),
                    tokens: finished.agent.tokens.map(|tokens| tokens.total()),
                    cost: finished.agent.tokens.and_then(|tokens| tokens.cost_usd),
                })));
                if check && good == Some(false) {
                    rows.extend(
                        first_errors(papers.get(&(at.step, at.attempt))).map(|words| TimelineRow::Note(words, true)),
                    );
                }
                let error =
                    finished.error.as_deref().map(|error| format!("its program reports: {}", first_line(error)));
                rows.extend(error.map(|words| TimelineRow::Note(words, true)));
            }
            EventKind::VerdictGiven { at, verdict, converged } => {
                let Some(words) = verdict_words(&at.name, verdict, *converged, totals.rejections) else { continue };
                let bad = matches!(verdict.decision, Decision::Reject | Decision::Dispute) && !converged;
                rows.push(TimelineRow::Note(words, bad));
                let findings = verdict.effective_findings();
                rows.extend(findings.iter().map(|finding| TimelineRow::Note(finding_line(finding), bad)));
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
            EventKind::MessageReceived { text, .. } => rows.push(TimelineRow::Note(message_words(text), false)),
            EventKind::RunResumed { .. } => {
                rows.push(TimelineRow::Note("the run was resumed".into(), false));
            }
            EventKind::RoundFinished { round, ended_by: Some(feedback), .. } => {
                let why = round_words(feedback, &totals);
                rows.push(TimelineRow::Note(format!("round {round} ends: {why}"), false));
            }
            _ => {}
        }
    }
    // Attempts that started and did not end are running, or were interrupted.
    for (at, from_ms) in began {
        if !ended.contains(&(at.step, at.attempt)) {
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
            })));
        }
    }
    rows
}

/// Returns what a verdict says; `None` if there is nothing to tell.
fn verdict_words(name: &str, verdict: &Verdict, converged: bool, rejections: u32) -> Option<String> {
    let (person, notes) = (verdict.from == ReadFrom::Person, first_line(verdict.notes.trim()));
    let because = if notes.is_empty() { String::new() } else { format!(": {notes}") };
    Some(match verdict.decision {
        Decision::Approve if person => format!("a human approves{because}"),
        Decision::Approve => format!("{name} approves"),
        Decision::Reject if converged => {
            format!("{name} rejects, but names nothing that has to be fixed")
        }
        Decision::Reject if person => format!("a human rejects{because}"),
        Decision::Reject => {
            let number = rejections;
            let because = if verdict.effective_findings().is_empty() { because } else { String::new() };
            format!("{name} rejects (rejection {number}){because}")
        }
        Decision::Dispute => format!("{name} disputes: {}", first_line(verdict.notes.trim())),
        Decision::Skip => format!("{name} skips: {}", first_line(verdict.notes.trim())),
        Decision::Submit | Decision::Done => return None,
    })
}
