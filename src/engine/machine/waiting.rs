//! What follows an attempt that could not work: a wait, and the same attempt again.

use super::deliberation::Deliberation;
use super::walk::{number, plan_attempt};
use crate::engine::event::{At, Ending, EventKind};
use crate::engine::finished::UsageLimit;
use crate::engine::input::{Effect, Timer};
use crate::engine::outcome::{HumanNeeded, LimitKind, RunOutcome, WaitReason};
use crate::plan::Kind;
use std::time::Duration;

/// Starts a wait, or ends the run if the wait would be too long.
pub(super) fn wait(run: &mut Deliberation<'_>, at: At, reason: WaitReason, limit: Option<&UsageLimit>) {
    let waits = &run.state.waits;
    // Another backend can work meanwhile.
    let is_free = limit.is_some_and(|limit| limit.free.is_some());
    let wait_ms = if is_free { 0 } else { waits.next(reason, limit.and_then(|limit| limit.resets_in_ms)) };
    let too_long = waits.is_too_long(reason, wait_ms, run.plan.limits.wait);
    let step = at.step;
    match reason {
        _ if !too_long => {
            let until = limit.and_then(|limit| limit.resets_at.clone());
            run.emit(EventKind::WaitStarted { at, reason, wait_ms, until });
            run.effects.push(Effect::Arm(Timer::Wait, Duration::from_millis(wait_ms)));
        }
        WaitReason::Machine => run.finish(RunOutcome::OutOfResources { step }),
        WaitReason::Login => run.finish(RunOutcome::NeedsHuman { step, reason: HumanNeeded::Login }),
        _ => run.end(Ending::Limit { limit: LimitKind::Wait }),
    }
}

/// Returns whether, in a queue of tasks, a login that is refused now has worked before. The queue then waits until
/// a person logs in again.
pub(super) fn login_has_worked(run: &Deliberation<'_>, step: u32) -> bool {
    let backend = |number: u32| match run.plan.step(number).map(|step| &step.variant(run.state.variant(number)).kind) {
        Some(Kind::Agent { backend, .. }) => backend.as_deref(),
        _ => None,
    };
    let Some((logins, own)) = run.state.logins().zip(backend(step)) else { return false };
    let steps = 1..=number(run.plan.steps.len());
    logins.iter().any(|login| login == own)
        || steps.filter(|step| run.state.has_worked(*step)).any(|step| backend(step) == Some(own))
}

/// Tries the same iteration again after a wait.
pub(super) fn try_again(run: &mut Deliberation<'_>) {
    if let Some(at) = run.state.at.clone() {
        plan_attempt(run, at.step, at.iteration, run.state.retry);
    }
}
