//! Applies events to the state of a run. Replaying the events of a run rebuilds its state.

use super::event::{At, EventKind, ExtraRounds, FeedbackCause, HighestAttempt};
use super::finished::{Finished, Tokens};
use super::outcome::{AttemptOutcome, RunOutcome, WaitReason};
use super::state::{GroupState, Phase, SessionState, State};
use super::waits::Waits;
use crate::verdict::{Decision, ReadFrom, Unclear, Verdict};

/// A failure within this time is quick. Several equal, quick failures in a row are a crash loop.
const QUICK_MS: u64 = 5_000;
/// How many failures of a check are compared.
const TRAIL: usize = 3;
/// More steps or groups than any chain has. A higher number comes from a damaged journal.
const MOST: u32 = 1 << 20;
/// The assumed cost of a token in US dollars, while no cost has been reported. It is somewhat more than in a session
/// that reads most of its input from the cache.
const USUAL_RATE: f64 = 3e-6;

/// Applies an event. Every event is accepted, and the state changes nowhere else.
pub fn evolve(state: &mut State, event: &EventKind) {
    match event {
        EventKind::RunStarted { queue, .. } => state.logins.clone_from(queue),
        EventKind::Evaluation { .. }
        | EventKind::Batch { .. }
        | EventKind::StepSkipped { .. }
        | EventKind::WorkUnchanged { .. }
        | EventKind::TasksProposed { .. }
        | EventKind::TemplatesEdited { .. }
        | EventKind::StepSucceeded { .. }
        | EventKind::AttemptPaused { .. }
        | EventKind::AttemptContinued { .. } => {}
        EventKind::RoundStarted { group, round, .. } => {
            if let Some(group) = nth(&mut state.groups, *group) {
                group.round = *round;
                if *round == 1 {
                    *group = GroupState { round: 1, more: group.more, ..GroupState::default() };
                }
            }
        }
        EventKind::AttemptPlanned { at, retry, .. } => attempt_planned(state, at, *retry),
        EventKind::AttemptDeferred { at, retry } => {
            state.phase = Phase::Idle;
            state.at = Some(at.clone());
            state.retry = *retry;
        }
        EventKind::RunResumed { attempts, more, .. } => resumed(state, attempts, *more),
        EventKind::VerdictGiven { at, verdict, converged } => verdict_given(state, at, verdict, *converged),
        EventKind::VerdictUnclear { at, reason: why, asked } => {
            if matches!(why, Unclear::NotItsRight { decision: Decision::Reject, minor: false }) && *asked == 0 {
                state.objection = Some(at.step);
            }
            if let Some(step) = nth(&mut state.steps, at.step).filter(|_| *asked > 0) {
                step.unclear = Some((why.clone(), *asked));
            }
        }
        EventKind::AttemptPrepared { at, how } => {
            if let Some(step) = nth(&mut state.steps, at.step) {
                step.variant = how.variant;
                if how.session.is_some() {
                    step.session = SessionState::Continued;
                }
            }
        }
        EventKind::AttemptStarted { .. } => {
            state.phase = Phase::Running;
            state.waits.process_started();
        }
        EventKind::MarkerSeen { .. } => state.marker = true,
        EventKind::MarkerWithdrawn { .. } => state.marker = false,
        EventKind::UsageReported { tokens, .. } => state.spending = *tokens,
        EventKind::RunStopping { reason: why, signal: with } => {
            state.ending.get_or_insert(*why);
            state.last_signal = with.or(state.last_signal);
        }
        EventKind::AttemptTimedOut { reason: why, signal: with, .. } => {
            state.cut = Some(*why);
            state.last_signal = Some(*with);
        }
        EventKind::AttemptFinished { at, outcome, finished, .. } => attempt_finished(state, at, outcome, finished),
        EventKind::WaitStarted { wait_ms, reason, .. } => {
            state.phase = Phase::Waiting;
            state.waits.started(*reason, *wait_ms);
        }
        EventKind::MessageReceived { id, text } => state.messages.push((*id, text.clone())),
        EventKind::RunPaused => state.paused = true,
        EventKind::RunContinued => state.paused = false,
        EventKind::RoundFinished { group, ended_by, .. } => {
            if let Some(group) = nth(&mut state.groups, *group) {
                group.feedback.clone_from(ended_by);
                match ended_by.as_ref().map(|feedback| &feedback.cause) {
                    Some(FeedbackCause::Rejected { .. }) => group.unjudged = 0,
                    Some(_) => group.unjudged = group.unjudged.saturating_add(1),
                    None => {}
                }
            }
        }
        EventKind::RunFinished { .. } => state.phase = Phase::Over,
    }
    state.totals.evolve(event);
}

fn resumed(state: &mut State, attempts: &[HighestAttempt], more: Option<ExtraRounds>) {
    for highest in attempts {
        if let Some(step) = nth(&mut state.steps, highest.step) {
            step.attempts = step.attempts.max(highest.attempt);
        }
    }
    if !state.has_process() {
        state.phase = Phase::Idle;
    }
    if state.totals.outcome.is_some_and(RunOutcome::is_a_conclusion) {
        // A person has looked at the run, so earlier failures in a row no longer count.
        for step in &mut state.steps {
            (step.unclear, step.failure, step.fingerprint) = (None, None, None);
            step.trail.clear();
        }
        state.groups.iter_mut().for_each(|group| group.unjudged = 0);
        (state.retry, state.idle_rejects, state.moved, state.stood_still) = (0, 0, false, false);
    }
    match more {
        Some(ExtraRounds { group: Some(group), count, .. }) => {
            if let Some(group) = nth(&mut state.groups, group) {
                group.more = group.more.saturating_add(count);
            }
        }
        Some(ExtraRounds { group: None, step, count }) => {
            if let Some(step) = nth(&mut state.steps, step) {
                step.more = step.more.saturating_add(count);
            }
        }
        None => {}
    }
    (state.ending, state.last_signal, state.paused) = (None, None, false);
    state.waits = Waits::default();
    // The person who resumes the run can log in.
    state.logins = None;
    // Changes to protected files had to be undone or accepted before the run could resume.
    state.voided.clear();
}

fn attempt_planned(state: &mut State, at: &At, retry: u32) {
    state.phase = Phase::Starting;
    state.objection = state.objection.filter(|step| *step != at.step);
    state.at = Some(at.clone());
    state.retry = retry;
    state.marker = false;
    state.cut = None;
    state.last_signal = None;
    state.charged = state.charged.saturating_add(1);
    if let Some(step) = nth(&mut state.steps, at.step) {
        step.attempts = at.attempt;
        if step.session == SessionState::Continued {
            step.session = SessionState::New;
        }
    }
}

fn attempt_finished(state: &mut State, at: &At, outcome: &AttemptOutcome, finished: &Finished) {
    state.phase = Phase::Idle;
    if finished.agent.unknown.cost {
        state.estimated += f64_of(finished.agent.tokens.unwrap_or_default().total()) * rate(state);
    }
    state.spending = Tokens::default();
    if let Some(step) = nth(&mut state.steps, at.step) {
        let is_lost = *outcome == AttemptOutcome::Unavailable { reason: WaitReason::Session };
        step.session = if is_lost { SessionState::Lost } else { SessionState::New };
        step.worked |= finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0);
    }
    if !outcome.counts() {
        if outcome.waits_for().is_some() {
            state.waits.not_counted(finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0));
        }
        // It does not count as an iteration, because it will be repeated.
        state.charged = state.charged.saturating_sub(1);
        return;
    }
    state.waits = Waits::default();
    state.ledger.answered(&finished.agent.answers);
    if finished.agent.guarded {
        state.weakened = finished.agent.weakened.iter().chain(&finished.agent.touched).cloned().collect();
        state.voided.clone_from(&finished.agent.voided);
    }
    state.moved |= finished.agent.unchanged == Some(false);
    state.stood_still |= finished.agent.unchanged == Some(true);
    let Some(step) = nth(&mut state.steps, at.step) else { return };
    step.idle = finished.agent.unchanged == Some(true);
    if let Some(tests) = finished.check.tests_run {
        step.tests = Some((tests, step.tests.map_or(tests, |(_, most)| most.max(tests))));
    }
    match &finished.check.failure_digest {
        Some(failure_digest) => {
            step.trail.push(failure_digest.clone());
            let more = step.trail.len().saturating_sub(TRAIL);
            step.trail.drain(..more);
        }
        None => step.trail.clear(),
    }
    let failed =
        matches!(outcome, AttemptOutcome::Failed { .. } | AttemptOutcome::Crashed { .. } | AttemptOutcome::Errored);
    step.failed = *outcome != AttemptOutcome::Completed;
    in_a_row(&mut step.failure, Some(outcome.clone()).filter(|_| failed && finished.took_ms < QUICK_MS));
    if at.iteration == 1 {
        step.fingerprint = None;
    }
    in_a_row(&mut step.fingerprint, finished.fingerprint.clone());
}

/// Returns the average cost of a token so far, in US dollars.
fn rate(state: &State) -> f64 {
    let spent = state.totals.all.spent.unwrap_or_default();
    let known = spent.cost_usd.filter(|cost| *cost > 0.0).filter(|_| spent.total() > 0);
    known.map_or(USUAL_RATE, |cost| cost / f64_of(spent.total()))
}

fn verdict_given(state: &mut State, at: &At, verdict: &Verdict, converged: bool) {
    let judges = matches!(verdict.decision, Decision::Approve | Decision::Reject);
    if let Some(step) = nth(&mut state.steps, at.step) {
        step.unclear = None;
    }
    if matches!(verdict.decision, Decision::Approve | Decision::Skip) || converged {
        state.objection = None;
    }
    if verdict.from == ReadFrom::Person {
        state.accepted = verdict.decision == Decision::Approve;
    }
    if judges {
        state.ledger.judged(at.step, &verdict.effective_findings());
        state.verdict = Some((at.clone(), verdict.clone()));
    }
    if verdict.decision == Decision::Reject && verdict.from == ReadFrom::Person {
        // A rejection by a person starts the work again. It does not count for the limits on rejections by judges.
        (state.idle_rejects, state.moved, state.stood_still) = (0, false, false);
    } else if verdict.is_a_rejection(converged) {
        let again = state.last_findings.replace(verdict.effective_findings()) == Some(verdict.effective_findings());
        let idle = state.stood_still && !state.moved && (again || state.idle_rejects == 0);
        state.idle_rejects = if idle { state.idle_rejects.saturating_add(1) } else { 0 };
        (state.moved, state.stood_still) = (false, false);
    }
}

/// Returns the element with this number, from 1. The list grows as needed.
fn nth<T: Clone + Default>(list: &mut Vec<T>, number: u32) -> Option<&mut T> {
    let index = number.checked_sub(1).filter(|_| number <= MOST)? as usize;
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    list.get_mut(index)
}

/// Counts equal values in a row.
fn in_a_row<T: PartialEq>(before: &mut Option<(T, u32)>, now: Option<T>) {
    *before = match (before.take(), now) {
        (Some((last, count)), Some(now)) if last == now => Some((now, count.saturating_add(1))),
        (_, now) => now.map(|now| (now, 1)),
    };
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn f64_of(tokens: u64) -> f64 {
    tokens as f64
}
