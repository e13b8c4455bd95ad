//! Why a run ended, and how to continue it.

use crate::chain::{Role, show_duration};
use crate::engine::{
    At, AttemptOutcome, HumanNeeded, LastAttempt, LimitKind, RunOutcome, RunState, Totals, unverified_words,
};
use crate::plan::{Limits, Outline};
use crate::report::format::{local_time, outcome_words, thousands};
use crate::report::verdicts::human_words;
use crate::source::counted;
use std::time::Duration;

/// Returns why a run ended, as one line without symbols.
#[must_use]
pub fn reason(outcome: RunOutcome, totals: &Totals, outline: &Outline) -> String {
    match outcome {
        RunOutcome::Succeeded if totals.unverified.is_empty() => "complete".into(),
        RunOutcome::Succeeded => format!("complete, {}", unverified_words(&totals.unverified)),
        RunOutcome::Failed { step }
        | RunOutcome::IterationsExhausted { step }
        | RunOutcome::CrashLoop { step }
        | RunOutcome::Rejected { step }
        | RunOutcome::NeedsHuman { step, .. }
        | RunOutcome::Stalled { step } => stopped(step, outcome, totals, outline),
        RunOutcome::LimitReached { limit } => limit_words(limit, totals, outline),
        RunOutcome::OutOfResources { step } => {
            let name = outline.step(step).map_or("?", |step| &step.name);
            format!("{name} could not be started: the machine lacks the resources for another process")
        }
        RunOutcome::Interrupted { signal } => format!("interrupted by {signal}"),
        RunOutcome::OutputClosed => "stopped because standard output was closed".into(),
        RunOutcome::TasksLeft => "not every task has landed".into(),
        RunOutcome::CasesFailed => "not every case passed".into(),
    }
}

/// Returns by how much a complete run exceeded a limit. Its last attempt counts nevertheless.
pub(super) fn excess(totals: &Totals, outline: &Outline) -> Option<String> {
    let (limits, used) = (&outline.limits, &totals.all);
    if let Some((most, cost)) = limits.cost.zip(used.cost_usd()).filter(|(most, cost)| cost > most) {
        return Some(format!("the limit `cost` of ${most} was exceeded by ${:.2}", cost - most));
    }
    let (most, tokens) = limits.tokens.zip(used.tokens()).filter(|(most, tokens)| tokens > most)?;
    Some(format!("the limit `tokens` of {} was exceeded by {}", thousands(most), thousands(tokens - most)))
}

/// Returns how to continue a run that did not complete, as the text after `next:`. `resume` is the command line that
/// resumes it.
#[must_use]
pub fn go_on(outcome: RunOutcome, totals: &Totals, outline: &Outline, resume: &str) -> Option<String> {
    let decide =
        || format!("{resume} --approve accepts the work, {resume} --reject \"what has to be fixed\" rejects it");
    match outcome {
        RunOutcome::LimitReached { limit } => Some(with_twice(limit, totals, &outline.limits, resume)),
        RunOutcome::Rejected { step } => {
            let name = outline.step(step).map_or("?", |step| &step.name);
            let has_worker = outline.steps.iter().any(|step| step.check.is_none() && step.role != Some(Role::Judge));
            let fixed = if has_worker {
                format!(", or forkhestra \"({}):5\", in which an agent fixes what was found", outline.chain)
            } else {
                String::new()
            };
            Some(format!("{resume}, which asks {name} again{fixed}"))
        }
        RunOutcome::Failed { .. }
            if totals.last.as_ref().is_some_and(|last| last.outcome == AttemptOutcome::Voided) =>
        {
            Some("restore the changed files (git checkout …), and start a new run".into())
        }
        // More rounds would end at once. Only a decision helps.
        RunOutcome::NeedsHuman { reason: HumanNeeded::Rejections, .. }
            if totals.rejections >= outline.limits.rejections =>
        {
            Some(decide())
        }
        RunOutcome::NeedsHuman {
            reason: HumanNeeded::Disputed | HumanNeeded::NotAJudge | HumanNeeded::NoJudge,
            ..
        } => Some(decide()),
        RunOutcome::NeedsHuman { reason: HumanNeeded::Unclear, .. } => {
            Some(format!("{resume}, or {resume} --approve, or --reject \"why\""))
        }
        RunOutcome::NeedsHuman { .. } if outcome.is_exhausted() => {
            Some(format!("{resume} --more 3, or decide with --approve or --reject \"why\""))
        }
        outcome if outcome.is_exhausted() => Some(format!("{resume} --more 3")),
        outcome => RunState::of(Some(outcome), false).may_resume().then(|| resume.to_string()),
    }
}

/// Returns the command line that resumes a run with twice the limit that it reached. It is more where that would not be
/// enough: where the run has exceeded its limit by far, or has to wait longer for a usage limit.
#[must_use]
pub fn with_twice(limit: LimitKind, totals: &Totals, limits: &Limits, resume: &str) -> String {
    let twice = match limit {
        LimitKind::Time => limits.time.map(|time| show_duration(time * 2)),
        LimitKind::Cost => limits.cost.map(|cost| {
            let cents = (cost + totals.all.cost_usd().unwrap_or(0.0).max(cost)) * 100.0;
            (cents.ceil() / 100.0).to_string()
        }),
        LimitKind::Tokens => {
            limits.tokens.map(|tokens| tokens.saturating_add(totals.all.tokens().unwrap_or(0).max(tokens)).to_string())
        }
        LimitKind::Attempts => limits.attempts.map(|attempts| attempts.saturating_mul(2).to_string()),
        LimitKind::Wait => {
            let left = totals.last.as_ref().and_then(|last| last.usage_limit.as_ref()?.resets_in_ms);
            let hours = left.map_or(0, |left| Duration::from_millis(left).as_secs() / 3600 + 1);
            Some(show_duration((limits.wait * 2).max(Duration::from_hours(hours))))
        }
    };
    format!("{resume} --limit {}={}", limit.key(), twice.unwrap_or_default())
}

/// Returns which limit was reached, with its value as it is written in `limits`.
pub(super) fn limit_words(limit: LimitKind, totals: &Totals, outline: &Outline) -> String {
    let limits = &outline.limits;
    let value = match limit {
        LimitKind::Time => limits.time.map(show_duration),
        LimitKind::Cost => limits.cost.map(|cost| format!("${cost}")),
        LimitKind::Tokens => limits.tokens.map(thousands),
        LimitKind::Attempts => limits.attempts.map(|attempts| thousands(attempts.into())),
        LimitKind::Wait => Some(show_duration(limits.wait)),
    };
    let until = totals.last.as_ref().and_then(|last| last.usage_limit.as_ref()?.resets_at.as_ref());
    let until = until.filter(|_| limit == LimitKind::Wait);
    let until = until.map_or_else(String::new, |until| format!("; the usage limit ends at {}", local_time(until)));
    // A run of a batch has a share of the batch's limit.
    let value = value.map_or_else(String::new, |value| format!(" of {value}"));
    format!("the limit `{}`{value} was reached{until}", limit.key())
}

fn stopped(step: u32, outcome: RunOutcome, totals: &Totals, outline: &Outline) -> String {
    let planned = outline.step(step);
    let name = planned.map_or("?", |step| step.name.as_str());
    let of = format!("stopped at step {step} of {}", outline.steps.len());
    let is_check = planned.is_some_and(|step| step.check.is_some());
    let why = match &totals.last {
        _ if matches!(outcome, RunOutcome::Rejected { .. }) && totals.rejected_by_a_person => {
            "a human rejected the work".into()
        }
        _ if matches!(outcome, RunOutcome::Rejected { .. }) => format!("{name} rejected"),
        _ if matches!(outcome, RunOutcome::NeedsHuman { .. }) => match outcome {
            RunOutcome::NeedsHuman { reason: why, .. } => human_words(name, why, totals.rejections),
            _ => String::new(),
        },
        _ if is_check && matches!(outcome, RunOutcome::Stalled { .. }) => {
            format!("{name} failed in the same way on the same files in an earlier round, so the group is cycling")
        }
        Some(LastAttempt { at, outcome: how, marker, .. })
            if matches!(outcome, RunOutcome::IterationsExhausted { .. }) =>
        {
            match (iterations(at, totals, outline), how) {
                (Some(count), AttemptOutcome::Unfinished) => {
                    format!("{name} did not print {} in {}", outline.marker, counted(count, "iteration"))
                }
                (Some(count), how) => {
                    let last = outcome_words(how, *marker, true);
                    format!("{name} did not complete in {}; the last one {last}", counted(count, "iteration"))
                }
                (None, _) => format!("{name} still fails in the last round"),
            }
        }
        Some(LastAttempt { outcome: how, marker, .. }) if matches!(outcome, RunOutcome::CrashLoop { .. }) => {
            format!("{name} is in a crash loop: {}", outcome_words(how, *marker, true))
        }
        Some(_)
            if matches!(outcome, RunOutcome::Stalled { .. })
                && planned.is_some_and(|step| step.role == Some(Role::Judge)) =>
        {
            format!("{name} rejected the work again, and nothing that git can see was changed in between")
        }
        Some(_) if matches!(outcome, RunOutcome::Stalled { .. }) => format!(
            "{name} changed nothing and said the same thing in {} in a row (`stalledAfter`)",
            counted(outline.limits.stalled_after, "iteration")
        ),
        Some(LastAttempt { at, outcome: how, marker, .. }) => {
            format!("{name} {}", outcome_words(how, *marker, iterations(at, totals, outline).is_some()))
        }
        None => name.to_string(),
    };
    format!("{of}: {why}")
}

/// Returns the maximum number of iterations of an attempt's loop, as it was planned. `resume --more` can make it higher
/// than the chain says. `None` outside of loops.
pub(super) fn iterations(at: &At, totals: &Totals, outline: &Outline) -> Option<u32> {
    let step = outline.step(at.step)?;
    step.iterations.map(|iterations| totals.iterations(at).unwrap_or(iterations))
}
