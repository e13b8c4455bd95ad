//! Queries on the state, for the machine and the driver.

use super::event::{At, Feedback};
use super::finished::Tokens;
use super::state::{Phase, SessionState, State, StepState};
use super::totals::Totals;
use crate::verdict::{Ledger, Unclear, Verdict};

impl State {
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
