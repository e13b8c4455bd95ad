//! What follows an attempt that could not work: a wait, and the same attempt again.

use super::Deliberation;
use crate::engine::event::{At, Ending, EventKind};
use crate::engine::finished::UsageLimit;
use crate::engine::input::{Effect, Timer};
use crate::engine::outcome::{HumanNeeded, LimitKind, RunOutcome, WaitReason};
use crate::engine::progress::number;
use crate::plan::Kind;
use std::time::Duration;

impl Deliberation<'_> {
    /// Starts a wait, or ends the run if the wait would be too long.
    pub(in crate::engine) fn wait(&mut self, at: At, reason: WaitReason, limit: Option<&UsageLimit>) {
        let waits = &self.state.waits;
        // Another backend can work meanwhile.
        let is_free = limit.is_some_and(|limit| limit.free.is_some());
        let wait_ms = if is_free { 0 } else { waits.next(reason, limit.and_then(|limit| limit.resets_in_ms)) };
        let too_long = waits.is_too_long(reason, wait_ms, self.plan.limits.wait);
        let step = at.step;
        match reason {
            _ if !too_long => {
                let until = limit.and_then(|limit| limit.resets_at.clone());
                self.emit(EventKind::WaitStarted { at, reason, wait_ms, until });
                self.effects.push(Effect::Arm(Timer::Wait, Duration::from_millis(wait_ms)));
            }
            WaitReason::Machine => self.finish(RunOutcome::OutOfResources { step }),
            WaitReason::Login => self.finish(RunOutcome::NeedsHuman { step, reason: HumanNeeded::Login }),
            _ => self.end(Ending::Limit { limit: LimitKind::Wait }),
        }
    }

    /// Returns whether, in a queue of tasks, a login that is refused now has worked before. The queue then waits until
    /// a person logs in again.
    pub(in crate::engine) fn login_has_worked(&self, step: u32) -> bool {
        let backend = |number: u32| match self.step(number).map(|step| &step.variant(self.state.variant(number)).kind) {
            Some(Kind::Agent { backend, .. }) => backend.as_deref(),
            _ => None,
        };
        let Some((logins, own)) = self.state.logins().zip(backend(step)) else { return false };
        let steps = 1..=number(self.plan.steps.len());
        logins.iter().any(|login| login == own)
            || steps.filter(|step| self.state.has_worked(*step)).any(|step| backend(step) == Some(own))
    }

    /// Tries the same iteration again after a wait.
    pub(in crate::engine) fn try_again(&mut self) {
        if let Some(at) = self.state.at.clone() {
            self.plan_attempt(at.step, at.iteration, self.state.retry);
        }
    }
}
