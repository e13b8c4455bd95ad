//! The state of a run: a fold of its events, and nothing else.

use super::event::{At, Ending, Feedback};
use super::finished::Tokens;
use super::outcome::{AttemptOutcome, Cut, HumanNeeded, RunOutcome, Sig};
use super::totals::Totals;
use super::waits::Waits;
use crate::verdict::{Finding, Ledger, Unclear, Verdict};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is running.
    #[default]
    Idle,
    /// A process is being started.
    Starting,
    /// The process is running.
    Running,
    /// The run is waiting before it repeats an attempt.
    Waiting,
    /// The run has ended.
    Over,
}

/// The state of a run: a fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a run")]
pub struct State {
    pub(super) phase: Phase,
    /// The current attempt.
    pub(super) at: Option<At>,
    pub(super) retry: u32,
    pub(super) marker: bool,
    /// Why the attempt is being stopped while the run continues.
    pub(super) cut: Option<Cut>,
    /// Why the run is stopping, if it is.
    pub(super) ending: Option<Ending>,
    /// The last signal that was sent to end the attempt or the run.
    pub(super) last_signal: Option<Sig>,
    pub(super) paused: bool,
    /// Attempts that count for `limits.attempts`.
    pub(super) charged: u32,
    /// The totals of the attempts that have ended.
    pub(super) totals: Totals,
    /// What the current attempt has used so far.
    pub(super) spending: Tokens,
    /// The estimated cost, in US dollars, of attempts that were stopped before they reported it.
    pub(super) estimated: f64,
    /// In a queue of tasks, the backends whose login worked earlier in the queue.
    pub(super) logins: Option<Vec<String>>,
    /// The waits since the last attempt that counted.
    pub(super) waits: Waits,
    pub(super) steps: Vec<StepState>,
    pub(super) groups: Vec<GroupState>,
    /// Every finding of the run's judges, with its state.
    pub(super) ledger: Ledger,
    /// The last verdict of a judge.
    pub(super) verdict: Option<(At, Verdict)>,
    /// The step of a worker that rejected the work, unless a judge has approved it since, or the worker was asked
    /// again.
    pub(super) objection: Option<u32>,
    /// Whether the last decision by a person accepted the work.
    pub(super) accepted: bool,
    /// How the last worker changed protected files, as descriptions.
    pub(super) weakened: Vec<String>,
    /// Those of its changes that void its attempt.
    pub(super) voided: Vec<String>,
    /// How many rejections in a row were of work that had not changed.
    pub(super) idle_rejects: u32,
    /// Whether a worker has changed something since the last rejection.
    pub(super) moved: bool,
    /// Whether a worker has changed nothing since the last rejection.
    pub(super) stood_still: bool,
    /// The messages from people, with their numbers.
    pub(super) messages: Vec<(i64, String)>,
    /// The findings of the last rejection.
    pub(super) last_findings: Option<Vec<Finding>>,
}

/// The state of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StepState {
    pub(super) attempts: u32,
    /// Whether its last attempt failed.
    pub(super) failed: bool,
    /// The last quick failure, and how many times in a row it has occurred.
    pub(super) failure: Option<(AttemptOutcome, u32)>,
    /// The last fingerprint, and how many times in a row it has occurred.
    pub(super) fingerprint: Option<(String, u32)>,
    /// The last failures of a check, as digests of the tree and the errors.
    pub(super) trail: Vec<String>,
    /// Why a judge's last verdict was unclear, and how many times in a row that has happened.
    pub(super) unclear: Option<(Unclear, u32)>,
    /// Whether its last attempt changed nothing.
    pub(super) idle: bool,
    /// How many tests a check ran the last time, and the most that it ever ran.
    pub(super) tests: Option<(u32, u32)>,
    /// The iterations of its loop in addition to its count.
    pub(super) more: u32,
    /// Whether its service has answered.
    pub(super) worked: bool,
    /// The way in which it is run: 0 for the first one.
    pub(super) variant: u32,
    /// What became of the session that it was to continue.
    pub(super) session: SessionState,
}

/// What became of the session that a step was to continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Its attempts begin sessions.
    #[default]
    New,
    /// Its current attempt continues one.
    Continued,
    /// Its last attempt was to continue one that its service does not know.
    Lost,
}

/// The state of a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GroupState {
    pub(super) round: u32,
    pub(super) feedback: Option<Feedback>,
    /// How many rounds in a row were ended by something other than a judge.
    pub(super) unjudged: u32,
    /// The rounds in addition to its count.
    pub(super) more: u32,
}

impl State {
    /// Returns whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Returns whether a loop or a group has used up its count. The run can then be resumed only with more of it.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.totals.outcome.is_some_and(RunOutcome::is_exhausted)
    }

    /// Returns whether the run can be resumed as it is. It cannot if it is complete, or needs a decision or more
    /// rounds.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        self.totals.outcome.is_none_or(RunOutcome::may_resume)
    }

    /// Returns why the run is waiting for a person's decision, if it is.
    #[must_use]
    pub fn waits_for(&self) -> Option<HumanNeeded> {
        match self.totals.outcome {
            Some(RunOutcome::NeedsHuman { reason: why, .. }) if why.is_a_decision() => Some(why),
            _ => None,
        }
    }

    /// Returns the current attempt, or the one that a resume would repeat or start.
    #[must_use]
    pub fn at(&self) -> Option<&At> {
        self.at.as_ref()
    }

    /// Returns the number of attempts so far, as `limits.attempts` counts them.
    #[must_use]
    pub fn charged(&self) -> u32 {
        self.charged
    }

    /// Returns what people told the run while it was running, in order.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|(_, text)| text.as_str())
    }

    /// Returns the number of the last message; 0 if there was none.
    #[must_use]
    pub fn last_message(&self) -> i64 {
        self.messages.last().map_or(0, |(id, _)| *id)
    }

    /// Returns the ledger with every finding of the run's judges.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the totals of the attempts that have ended.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns how many times a judge has rejected the work.
    #[must_use]
    pub fn rejections(&self) -> u32 {
        self.totals.rejections
    }

    /// Returns descriptions of how the last worker changed tests and other protected files.
    #[must_use]
    pub fn weakened(&self) -> &[String] {
        &self.weakened
    }

    /// Returns the protected files that the last worker changed. If there are any, its attempt does not count.
    #[must_use]
    pub fn voided(&self) -> &[String] {
        &self.voided
    }

    /// Returns how many rejections in a row were of work that had not changed since the previous one.
    pub(super) fn idle_rejects(&self) -> u32 {
        self.idle_rejects
    }

    /// Returns how many tests a check ran the last time, and the most that it ever ran. `None` if its output never
    /// showed a number.
    #[must_use]
    pub fn tests_of(&self, step: u32) -> Option<(u32, u32)> {
        self.step(step)?.tests
    }

    /// Returns the step of a worker whose rejection of the work still applies.
    pub(super) fn objection(&self) -> Option<u32> {
        self.objection
    }

    /// Returns whether the last decision by a person accepted the work.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// Returns the last verdict of a judge.
    #[must_use]
    pub fn verdict(&self) -> Option<&(At, Verdict)> {
        self.verdict.as_ref()
    }

    /// Returns how many times in a row a judge's verdict was unclear.
    #[must_use]
    pub fn unclear(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.unclear.as_ref()).map_or(0, |(_, asked)| *asked)
    }

    /// Returns why a judge's last verdict was unclear.
    #[must_use]
    pub fn last_unclear(&self, step: u32) -> Option<&Unclear> {
        self.step(step)?.unclear.as_ref().map(|(why, _)| why)
    }

    /// Returns whether the last attempt of a step changed nothing.
    #[must_use]
    pub fn was_idle(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.idle)
    }

    /// Returns how many rounds of a group in a row were ended by something other than a judge.
    pub(super) fn unjudged_rounds(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(0, |group| group.unjudged)
    }

    /// Returns whether a check failed on the same tree and with the same errors as in one of its two previous failures.
    pub(super) fn moves_in_a_circle(&self, step: u32) -> bool {
        let Some((now, before)) = self.step(step).and_then(|step| step.trail.split_last()) else { return false };
        before.contains(now)
    }

    /// Returns the attempt whose process is running or being started.
    #[must_use]
    pub fn under_way(&self) -> Option<&At> {
        self.at.as_ref().filter(|_| self.has_process())
    }

    /// Returns whether an attempt's process is running or being started.
    pub(super) fn has_process(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running)
    }

    /// Returns the way in which a step is run: 0 for the first one.
    #[must_use]
    pub fn variant(&self, step: u32) -> u32 {
        self.step(step).map_or(0, |step| step.variant)
    }

    /// Returns whether the current attempt of a step continues a session.
    #[must_use]
    pub fn continues(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.session == SessionState::Continued)
    }

    /// Returns whether the last attempt of a step was to continue a session that its service does not know.
    #[must_use]
    pub fn has_lost_its_session(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.session == SessionState::Lost)
    }

    /// Returns whether nothing has stopped the current attempt, or is about to.
    #[must_use]
    pub fn was_not_cut(&self) -> bool {
        self.cut.is_none() && self.ending.is_none()
    }

    /// Returns whether the current attempt is a retry.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.retry > 0
    }

    /// Returns whether the run is waiting before it repeats an attempt.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Returns what all attempts have used so far, including the current one.
    #[must_use]
    pub fn used(&self) -> Tokens {
        self.totals.all.spent.unwrap_or_default().plus(&self.spending)
    }

    /// Like [`Self::used`], but as limits count it: costs that were not reported are estimated.
    #[must_use]
    pub fn billed(&self) -> Tokens {
        let used = self.used();
        let cost = used.cost_usd.unwrap_or(0.0) + self.estimated;
        Tokens { cost_usd: used.cost_usd.or(Some(cost).filter(|cost| *cost > 0.0)).map(|_| cost), ..used }
    }

    /// Returns what the current attempt has used so far.
    pub(super) fn spending(&self) -> Tokens {
        self.spending
    }

    fn step(&self, number: u32) -> Option<&StepState> {
        self.steps.get(number.checked_sub(1)? as usize)
    }

    /// Returns how many attempts a step has had.
    #[must_use]
    pub fn attempts(&self, step: u32) -> u32 {
        self.step(step).map_or(0, |step| step.attempts)
    }

    /// Returns whether the last attempt of a step failed.
    #[must_use]
    pub fn last_failed(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.failed)
    }

    /// Returns how many times in a row a step has failed quickly and in the same way.
    pub(super) fn same_failures(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.failure.as_ref()).map_or(0, |(_, count)| *count)
    }

    /// Returns how many times in a row a step has ended with the same fingerprint.
    pub(super) fn same_fingerprints(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.fingerprint.as_ref()).map_or(0, |(_, count)| *count)
    }

    /// Returns the backends whose login worked earlier in the queue; `None` outside of a queue.
    pub(super) fn logins(&self) -> Option<&[String]> {
        self.logins.as_deref()
    }

    /// Returns whether the service of a step has answered in this run.
    pub(super) fn has_worked(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.worked)
    }

    /// Returns the iterations that a step's loop has in addition to its count.
    #[must_use]
    pub fn more_iterations(&self, step: u32) -> u32 {
        self.step(step).map_or(0, |step| step.more)
    }

    /// Returns the rounds that a group has in addition to its count.
    pub(super) fn more_rounds(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(0, |group| group.more)
    }

    /// Returns the current round of a group. `group` is an index, from 0.
    pub(super) fn round_of(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(1, |group| group.round)
    }

    /// Returns the feedback from the previous round of a group to the next one.
    pub(super) fn feedback_of(&self, group: usize) -> Option<&Feedback> {
        self.groups.get(group)?.feedback.as_ref()
    }
}
