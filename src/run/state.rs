//! What is remembered of a run: a fold of its events, and nothing else.

use super::event::{At, Ending, EventKind, Feedback, FeedbackCause};
use super::finished::{Finished, Tokens};
use super::outcome::{AttemptOutcome, Cut, HumanNeeded, RunOutcome, Sig};
use super::waits::Waits;
use crate::verdict::{Decision, Finding, Ledger, ReadFrom, Unclear, Verdict};

/// A failure within this time is quick; quick failures in a row make a loop hopeless (V-25).
const QUICK_MS: u64 = 5_000;
/// How many failures of a check are compared.
const TRAIL: usize = 3;
/// More steps or groups than any chain has: a number beyond it comes from a damaged journal.
const MOST: u32 = 1 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing runs.
    #[default]
    Idle,
    /// A process is being started.
    Starting,
    /// It runs.
    Running,
    /// A usage limit is waited out.
    Waiting,
    /// The run is over.
    Over,
}

/// What is remembered of a run; a fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of a run, in any combination")]
pub struct State {
    pub(super) phase: Phase,
    /// The current attempt.
    pub(super) at: Option<At>,
    pub(super) retry: u32,
    pub(super) marker: bool,
    /// Why the attempt is being ended while the run goes on.
    pub(super) cut: Option<Cut>,
    /// Why the run ends, once it does, and the last signal that was sent for it.
    pub(super) ending: Option<Ending>,
    pub(super) rung: Option<Sig>,
    pub(super) paused: bool,
    outcome: Option<RunOutcome>,
    /// Iterations that count for `limits.iterations`.
    pub(super) iterations: u32,
    /// What all finished attempts have used, and what the current one has used so far.
    spent: Tokens,
    spending: Tokens,
    /// What was waited for in a row.
    pub(super) waits: Waits,
    steps: Vec<OfStep>,
    groups: Vec<OfGroup>,
    /// Every finding of its judges, and what became of it.
    ledger: Ledger,
    rejections: u32,
    /// The last verdict of a judge.
    verdict: Option<(At, Verdict)>,
    /// The step of a worker that rejected the work, unless a judge approved it after that, or the worker was asked again.
    objection: Option<u32>,
    /// Whether the last person who was asked accepted the work.
    accepted: bool,
    /// What the last worker did to what decides about its work.
    weakened: Vec<String>,
    voided: Vec<String>,
    /// Rejects in a row of work that changed nothing.
    idle_rejects: u32,
    /// Whether a worker has changed anything since the last reject, and whether one has not.
    moved: bool,
    stood_still: bool,
    /// What the last reject named.
    last_findings: Option<Vec<Finding>>,
}

/// What is remembered of a step.
#[derive(Debug, Clone, Default, PartialEq)]
struct OfStep {
    attempts: u32,
    /// Whether the last one failed.
    failed: bool,
    /// The last quick failure, and how often it came in a row.
    failure: Option<(AttemptOutcome, u32)>,
    /// The last fingerprint, and how often it came in a row.
    fingerprint: Option<(String, u32)>,
    /// What the last failures of a check were, as digests of the tree and the errors.
    trail: Vec<String>,
    /// How often a judge was not understood, in a row, and why the last time.
    unclear: Option<(Unclear, u32)>,
    /// Whether its last attempt changed nothing.
    idle: bool,
    /// How many tests a check ran the last time, and how many at the most.
    tests: Option<(u32, u32)>,
}

/// What is remembered of a group.
#[derive(Debug, Clone, Default, PartialEq)]
struct OfGroup {
    round: u32,
    feedback: Option<Feedback>,
    /// How many rounds in a row were ended by something else than a judge.
    unjudged: u32,
}

/// The element of this number, from 1, of a list that grows as needed.
fn of<T: Clone + Default>(list: &mut Vec<T>, number: u32) -> Option<&mut T> {
    let index = number.checked_sub(1).filter(|_| number <= MOST)? as usize;
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    list.get_mut(index)
}

/// Counts equal ones in a row.
fn in_a_row<T: PartialEq>(before: &mut Option<(T, u32)>, now: Option<T>) {
    *before = match (before.take(), now) {
        (Some((last, count)), Some(now)) if last == now => Some((now, count.saturating_add(1))),
        (_, now) => now.map(|now| (now, 1)),
    };
}

impl State {
    /// Whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether it may go on: it was ended before it came to a conclusion of its own.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        match self.outcome {
            None => true,
            Some(outcome) => matches!(
                outcome,
                RunOutcome::Interrupted { .. }
                    | RunOutcome::OutputClosed
                    | RunOutcome::OutOfResources { .. }
                    | RunOutcome::LimitReached { .. }
                    | RunOutcome::NeedsHuman {
                        why: HumanNeeded::Unclear | HumanNeeded::NoCommand | HumanNeeded::Login,
                        ..
                    }
            ),
        }
    }

    /// Why a person is waited for, if one is.
    #[must_use]
    pub fn waits_for(&self) -> Option<HumanNeeded> {
        match self.outcome {
            Some(RunOutcome::NeedsHuman { why, .. }) if why.is_a_decision() => Some(why),
            _ => None,
        }
    }

    /// The attempt that is under way, or that would be repeated or begun by a resume.
    #[must_use]
    pub fn at(&self) -> Option<&At> {
        self.at.as_ref()
    }

    /// Iterations so far, as `limits.iterations` counts them.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Remembers. Total, infallible, and the only place where state changes.
    pub fn evolve(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted { .. }
            | EventKind::Evaluation { .. }
            | EventKind::StepSkipped { .. }
            | EventKind::NothingSubmitted { .. }
            | EventKind::TasksProposed { .. }
            | EventKind::StepSucceeded { .. }
            | EventKind::AttemptStopped { .. }
            | EventKind::AttemptContinued { .. } => {}
            EventKind::RoundStarted { group, round, .. } => {
                if let Some(group) = of(&mut self.groups, *group) {
                    group.round = *round;
                    if *round == 1 {
                        *group = OfGroup { round: 1, ..OfGroup::default() };
                    }
                }
            }
            EventKind::AttemptPlanned { at, retry, .. } => self.attempt_planned(at, *retry),
            EventKind::AttemptHeld { at, retry } => {
                self.phase = Phase::Idle;
                self.at = Some(at.clone());
                self.retry = *retry;
            }
            EventKind::RunResumed { attempts, .. } => {
                for highest in attempts {
                    if let Some(step) = of(&mut self.steps, highest.step) {
                        step.attempts = step.attempts.max(highest.attempt);
                    }
                }
                if !self.has_process() {
                    self.phase = Phase::Idle;
                }
                if matches!(self.outcome, Some(RunOutcome::NeedsHuman { .. })) {
                    self.steps.iter_mut().for_each(|step| step.unclear = None);
                }
                (self.ending, self.rung, self.outcome, self.paused) = (None, None, None, false);
                self.waits = Waits::default();
                // What was changed before was put back, or accepted, before it could go on.
                self.voided.clear();
            }
            EventKind::VerdictGiven { at, verdict, converged } => self.verdict_given(at, verdict, *converged),
            EventKind::VerdictUnclear { at, why, asked } => {
                if matches!(why, Unclear::NotItsRight { decision: Decision::Reject, minor: false }) && *asked == 0 {
                    self.objection = Some(at.step);
                }
                if let Some(step) = of(&mut self.steps, at.step).filter(|_| *asked > 0) {
                    step.unclear = Some((why.clone(), *asked));
                }
            }
            EventKind::AttemptStarted { .. } => {
                self.phase = Phase::Running;
                self.waits.process_started();
            }
            EventKind::MarkerSeen { .. } => self.marker = true,
            EventKind::MarkerWithdrawn { .. } => self.marker = false,
            EventKind::UsageReported { tokens, .. } => self.spending = *tokens,
            EventKind::Terminating { why, with } => {
                self.ending.get_or_insert(*why);
                self.rung = with.or(self.rung);
            }
            EventKind::AttemptTimedOut { why, with, .. } => {
                self.cut = Some(*why);
                self.rung = Some(*with);
            }
            EventKind::AttemptFinished { at, outcome, finished, .. } => self.attempt_finished(at, outcome, finished),
            EventKind::WaitStarted { wait_ms, reason, .. } => {
                self.phase = Phase::Waiting;
                self.waits.started(*reason, *wait_ms);
            }
            EventKind::RunPaused => self.paused = true,
            EventKind::RunContinued => self.paused = false,
            EventKind::RoundFinished { group, ended_by, .. } => {
                if let Some(group) = of(&mut self.groups, *group) {
                    group.feedback.clone_from(ended_by);
                    match ended_by.as_ref().map(|feedback| &feedback.cause) {
                        Some(FeedbackCause::Rejected { .. }) => group.unjudged = 0,
                        Some(_) => group.unjudged = group.unjudged.saturating_add(1),
                        None => {}
                    }
                }
            }
            EventKind::RunFinished { outcome } => {
                self.phase = Phase::Over;
                self.outcome = Some(*outcome);
            }
        }
    }

    fn attempt_planned(&mut self, at: &At, retry: u32) {
        self.phase = Phase::Starting;
        self.objection = self.objection.filter(|step| *step != at.step);
        self.at = Some(at.clone());
        self.retry = retry;
        self.marker = false;
        self.cut = None;
        self.rung = None;
        self.iterations = self.iterations.saturating_add(1);
        if let Some(step) = of(&mut self.steps, at.step) {
            step.attempts = at.attempt;
        }
    }

    fn attempt_finished(&mut self, at: &At, outcome: &AttemptOutcome, finished: &Finished) {
        self.phase = Phase::Idle;
        // The last word of a program on what it used is the whole of it.
        self.spent = self.spent.plus(&finished.tokens.unwrap_or(self.spending));
        self.spending = Tokens::default();
        if !outcome.counts() {
            // No iteration is charged for it: it will be made again.
            self.iterations = self.iterations.saturating_sub(1);
            return;
        }
        self.waits = Waits::default();
        self.ledger.answered(&finished.answers);
        if finished.guarded {
            self.weakened = finished.weakened.iter().chain(&finished.touched).cloned().collect();
            self.voided.clone_from(&finished.voided);
        }
        self.moved |= finished.unchanged == Some(false);
        self.stood_still |= finished.unchanged == Some(true);
        let Some(step) = of(&mut self.steps, at.step) else { return };
        step.idle = finished.unchanged == Some(true);
        if let Some(tests) = finished.tests_run {
            step.tests = Some((tests, step.tests.map_or(tests, |(_, most)| most.max(tests))));
        }
        match &finished.trouble {
            Some(trouble) => {
                step.trail.push(trouble.clone());
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

    fn verdict_given(&mut self, at: &At, verdict: &Verdict, converged: bool) {
        let judges = matches!(verdict.decision, Decision::Approve | Decision::Reject);
        if let Some(step) = of(&mut self.steps, at.step) {
            step.unclear = None;
        }
        if matches!(verdict.decision, Decision::Approve | Decision::Skip) || converged {
            self.objection = None;
        }
        if verdict.from == ReadFrom::Person {
            self.accepted = verdict.decision == Decision::Approve;
        }
        if judges {
            self.ledger.judged(at.step, &verdict.weighed());
            self.verdict = Some((at.clone(), verdict.clone()));
        }
        if verdict.decision == Decision::Reject && verdict.from == ReadFrom::Person {
            // A person's reject begins the work anew; it counts for no limit of the judges.
            (self.idle_rejects, self.moved, self.stood_still) = (0, false, false);
        } else if verdict.decision == Decision::Reject && !converged {
            self.rejections = self.rejections.saturating_add(1);
            let again = self.last_findings.replace(verdict.weighed()) == Some(verdict.weighed());
            let idle = self.stood_still && !self.moved && (again || self.idle_rejects == 0);
            self.idle_rejects = if idle { self.idle_rejects.saturating_add(1) } else { 0 };
            (self.moved, self.stood_still) = (false, false);
        }
    }

    /// Every finding of the run's judges.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How often a judge has rejected.
    #[must_use]
    pub fn rejections(&self) -> u32 {
        self.rejections
    }

    /// What the last worker did to tests and to files that decide, in words.
    pub(super) fn weakened(&self) -> &[String] {
        &self.weakened
    }

    /// Why the last worker's attempt does not count.
    pub(super) fn voided(&self) -> &[String] {
        &self.voided
    }

    /// How many rejects in a row found that nothing was changed since the one before.
    pub(super) fn idle_rejects(&self) -> u32 {
        self.idle_rejects
    }

    /// How many tests a check ran the last time, and how many at the most; none where its output never said.
    pub(super) fn tests_of(&self, step: u32) -> Option<(u32, u32)> {
        self.step(step)?.tests
    }

    /// The step of a worker whose reject is the last word about the work.
    pub(super) fn objection(&self) -> Option<u32> {
        self.objection
    }

    /// Whether the last person who was asked accepted the work.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// The last verdict of a judge.
    pub(super) fn verdict(&self) -> Option<&(At, Verdict)> {
        self.verdict.as_ref()
    }

    /// How often a judge was not understood, in a row.
    pub(super) fn unclear(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.unclear.as_ref()).map_or(0, |(_, asked)| *asked)
    }

    /// Why a judge was not understood the last time.
    pub(super) fn last_unclear(&self, step: u32) -> Option<&Unclear> {
        self.step(step)?.unclear.as_ref().map(|(why, _)| why)
    }

    /// Whether the last attempt of a step changed nothing.
    pub(super) fn was_idle(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.idle)
    }

    /// How many rounds of a group in a row were ended by something else than a judge.
    pub(super) fn unjudged_rounds(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(0, |group| group.unjudged)
    }

    /// Whether a check fails on a tree and with errors that it has failed with before: the last time, or the time before that.
    pub(super) fn moves_in_a_circle(&self, step: u32) -> bool {
        let Some((now, before)) = self.step(step).and_then(|step| step.trail.split_last()) else { return false };
        before.contains(now)
    }

    /// The attempt whose process runs, or is being started.
    #[must_use]
    pub fn under_way(&self) -> Option<&At> {
        self.at.as_ref().filter(|_| self.has_process())
    }

    /// Whether an attempt's process runs, or is being started.
    pub(super) fn has_process(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running)
    }

    /// Whether the current attempt is one that is tried again.
    pub(super) fn is_retry(&self) -> bool {
        self.retry > 0
    }

    /// Whether a usage limit is waited out.
    pub(super) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// What all attempts have used so far, the current one included.
    #[must_use]
    pub fn used(&self) -> Tokens {
        self.spent.plus(&self.spending)
    }

    /// What the current attempt has used so far.
    pub(super) fn spending(&self) -> Tokens {
        self.spending
    }

    fn step(&self, number: u32) -> Option<&OfStep> {
        self.steps.get(number.checked_sub(1)? as usize)
    }

    /// How many attempts a step has had.
    pub(super) fn attempts(&self, step: u32) -> u32 {
        self.step(step).map_or(0, |step| step.attempts)
    }

    /// Whether the last attempt of a step failed.
    pub(super) fn last_failed(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.failed)
    }

    /// How often a step has failed in the same quick way, in a row.
    pub(super) fn same_failures(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.failure.as_ref()).map_or(0, |(_, count)| *count)
    }

    /// How often a step has left the same behind, in a row.
    pub(super) fn same_fingerprints(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.fingerprint.as_ref()).map_or(0, |(_, count)| *count)
    }

    /// The round a group is in; groups count from 0 here.
    pub(super) fn round_of(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(1, |group| group.round)
    }

    /// What the last round of a group has to tell the next.
    pub(super) fn feedback_of(&self, group: usize) -> Option<&Feedback> {
        self.groups.get(group)?.feedback.as_ref()
    }
}
