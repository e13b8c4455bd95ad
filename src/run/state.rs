//! What is remembered of a run: a fold of its events, and nothing else.

use super::event::{At, Ending, EventKind, Feedback, Finished, Tokens};
use super::outcome::{AttemptOutcome, Cut, RunOutcome, Sig};

/// A failure within this time is quick; quick failures in a row make a loop hopeless (V-25).
const QUICK_MS: u64 = 5_000;
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
    /// Waits for a usage limit in a row, and how long they took together.
    pub(super) waits: u32,
    pub(super) waited_ms: u64,
    steps: Vec<OfStep>,
    groups: Vec<OfGroup>,
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
}

/// What is remembered of a group.
#[derive(Debug, Clone, Default, PartialEq)]
struct OfGroup {
    round: u32,
    feedback: Option<Feedback>,
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
                RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed | RunOutcome::LimitReached { .. }
            ),
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
            | EventKind::StepSkipped { .. }
            | EventKind::StepSucceeded { .. }
            | EventKind::AttemptStopped { .. }
            | EventKind::AttemptContinued { .. } => {}
            EventKind::RoundStarted { group, round, .. } => {
                if let Some(group) = of(&mut self.groups, *group) {
                    group.round = *round;
                    if *round == 1 {
                        group.feedback = None;
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
                (self.ending, self.rung, self.outcome, self.paused) = (None, None, None, false);
                (self.waits, self.waited_ms) = (0, 0);
            }
            EventKind::AttemptStarted { .. } => self.phase = Phase::Running,
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
            EventKind::WaitStarted { wait_ms, .. } => {
                self.phase = Phase::Waiting;
                self.waits = self.waits.saturating_add(1);
                self.waited_ms = self.waited_ms.saturating_add(*wait_ms);
            }
            EventKind::RunPaused => self.paused = true,
            EventKind::RunContinued => self.paused = false,
            EventKind::RoundFinished { group, ended_by, .. } => {
                if let Some(group) = of(&mut self.groups, *group) {
                    group.feedback.clone_from(ended_by);
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
        if matches!(outcome, AttemptOutcome::Limited | AttemptOutcome::Interrupted) {
            // No iteration is charged for it (V-24): it will be tried again.
            self.iterations = self.iterations.saturating_sub(1);
            return;
        }
        (self.waits, self.waited_ms) = (0, 0);
        let Some(step) = of(&mut self.steps, at.step) else { return };
        let failed =
            matches!(outcome, AttemptOutcome::Failed { .. } | AttemptOutcome::Crashed { .. } | AttemptOutcome::Errored);
        step.failed = *outcome != AttemptOutcome::Completed;
        in_a_row(&mut step.failure, Some(outcome.clone()).filter(|_| failed && finished.took_ms < QUICK_MS));
        if at.iteration == 1 {
            step.fingerprint = None;
        }
        in_a_row(&mut step.fingerprint, finished.fingerprint.clone());
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
