//! What the machine and the driver ask a state for.

use super::event::{At, Feedback};
use super::finished::Tokens;
use super::state::{OfStep, Phase, State};
use super::totals::Totals;
use crate::verdict::{Ledger, Unclear, Verdict};

impl State {
    /// Every finding of the run's judges.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The sums of what is over.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// How often a judge has rejected.
    #[must_use]
    pub fn rejections(&self) -> u32 {
        self.totals.rejections
    }

    /// What the last worker did to tests and to files that decide, in words.
    #[must_use]
    pub fn weakened(&self) -> &[String] {
        &self.weakened
    }

    /// Why the last worker's attempt does not count.
    #[must_use]
    pub fn voided(&self) -> &[String] {
        &self.voided
    }

    /// How many rejects in a row found that nothing was changed since the one before.
    pub(super) fn idle_rejects(&self) -> u32 {
        self.idle_rejects
    }

    /// How many tests a check ran the last time, and how many at the most; none where its output never said.
    #[must_use]
    pub fn tests_of(&self, step: u32) -> Option<(u32, u32)> {
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
    #[must_use]
    pub fn verdict(&self) -> Option<&(At, Verdict)> {
        self.verdict.as_ref()
    }

    /// How often a judge was not understood, in a row.
    #[must_use]
    pub fn unclear(&self, step: u32) -> u32 {
        self.step(step).and_then(|step| step.unclear.as_ref()).map_or(0, |(_, asked)| *asked)
    }

    /// Why a judge was not understood the last time.
    #[must_use]
    pub fn last_unclear(&self, step: u32) -> Option<&Unclear> {
        self.step(step)?.unclear.as_ref().map(|(why, _)| why)
    }

    /// Whether the last attempt of a step changed nothing.
    #[must_use]
    pub fn was_idle(&self, step: u32) -> bool {
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
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.retry > 0
    }

    /// Whether a usage limit is waited out.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// What all attempts have used so far, the current one included.
    #[must_use]
    pub fn used(&self) -> Tokens {
        self.totals.all.spent.unwrap_or_default().plus(&self.spending)
    }

    /// The same as limits count it: what was not told of the cost is estimated.
    #[must_use]
    pub fn billed(&self) -> Tokens {
        let used = self.used();
        let cost = used.cost_usd.unwrap_or(0.0) + self.estimated;
        Tokens { cost_usd: used.cost_usd.or(Some(cost).filter(|cost| *cost > 0.0)).map(|_| cost), ..used }
    }

    /// What the current attempt has used so far.
    pub(super) fn spending(&self) -> Tokens {
        self.spending
    }

    fn step(&self, number: u32) -> Option<&OfStep> {
        self.steps.get(number.checked_sub(1)? as usize)
    }

    /// How many attempts a step has had.
    #[must_use]
    pub fn attempts(&self, step: u32) -> u32 {
        self.step(step).map_or(0, |step| step.attempts)
    }

    /// Whether the last attempt of a step failed.
    #[must_use]
    pub fn last_failed(&self, step: u32) -> bool {
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

    /// The backends whose login worked earlier in the queue; none outside of a queue.
    pub(super) fn logins(&self) -> Option<&[String]> {
        self.logins.as_deref()
    }

    /// Whether the service of a step has answered.
    pub(super) fn has_worked(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.worked)
    }

    /// Iterations of a step's loop beyond its count.
    pub(super) fn more_iterations(&self, step: u32) -> u32 {
        self.step(step).map_or(0, |step| step.more)
    }

    /// Rounds of a group beyond its count.
    pub(super) fn more_rounds(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(0, |group| group.more)
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
