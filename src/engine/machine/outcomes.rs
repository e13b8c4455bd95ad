//! How an attempt ended.

use super::deliberation::Deliberation;
use super::waiting::login_has_worked;
use crate::agent::ErrorClass;
use crate::chain::{Limit, Role};
use crate::engine::event::Ending;
use crate::engine::finished::Finished;
use crate::engine::outcome::{AttemptOutcome, Cut, Exit, WaitReason};
use crate::verdict::{Decision as Decided, Unclear, VerdictReading};

/// Makes an approval or a skip unclear if the judge's program failed.
pub(super) fn held_against(
    run: &Deliberation<'_>,
    exit: Exit,
    finished: &Finished,
    said: Option<VerdictReading>,
) -> Option<VerdictReading> {
    let step = run.state.at.as_ref().map_or(0, |at| at.step);
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    match said {
        Some(VerdictReading::Clear(verdict))
            if verdict.decision.passes()
                && run.is_judge(step)
                && code != 0
                && finished.error.is_none()
                && finished.agent.usage_limit.is_none() =>
        {
            Some(VerdictReading::Unclear(Unclear::ExitCode { decision: verdict.decision, code }))
        }
        said => said,
    }
}

/// Returns how an attempt ended. The marker takes precedence over limits.
pub(super) fn attempt_outcome(
    run: &Deliberation<'_>,
    exit: Exit,
    finished: &Finished,
    said: Option<&VerdictReading>,
) -> AttemptOutcome {
    let step = run.state.at.as_ref().map_or(0, |at| at.step);
    let judge = run.is_judge(step);
    // Outside of groups, a judge with a count is also completed by its marker if it gives no verdict at all.
    let marked = judge && run.state.marker && counts_alone(run, step) && is_silent(said);
    let unclear = judge && !marked && !matches!(said, Some(VerdictReading::Clear(_))) || is_not_done(run, step, said);
    // In a loop, a worker's `done` or `submit` has the same effect as the marker.
    let decided = matches!(said, Some(VerdictReading::Clear(_)));
    let done = (run.state.marker || decided) && run.in_loop();
    if !finished.agent.voided.is_empty() && run.state.ending.is_none() && !run.is_judge(step) {
        return AttemptOutcome::Voided;
    }
    // A reject or a dispute counts, however the program ended.
    let objects = matches!(said, Some(VerdictReading::Clear(verdict)) if is_objection(run, step, verdict.decision));
    let futile = finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0) && run.state.waits.is_futile();
    let failed_verdict = matches!(said, Some(VerdictReading::Unclear(Unclear::ExitCode { .. })));
    match (run.state.ending, run.state.cut, exit) {
        (None, ..) if objects => AttemptOutcome::Completed,
        (None, None, _) if failed_verdict => AttemptOutcome::Unfinished,
        (Some(Ending::Limit { .. }), ..) | (None, Some(_), _) if done => AttemptOutcome::Completed,
        (Some(_), ..) => AttemptOutcome::Interrupted,
        (None, Some(Cut::Timeout | Cut::Lingering), _) => AttemptOutcome::TimedOut,
        (None, Some(Cut::Start), _) if run.state.waits.may_start_again() => {
            AttemptOutcome::Unavailable { reason: WaitReason::Start }
        }
        // It reported an outage of its service, so it was probably waiting for that.
        (None, Some(Cut::Idle), _) if !futile && finished.agent.error_class.is_some_and(ErrorClass::is_outage) => {
            AttemptOutcome::Unavailable { reason: WaitReason::Service }
        }
        (None, Some(Cut::Idle | Cut::Start), _) => AttemptOutcome::Idle,
        (None, None, Exit::Code(0)) if finished.error.is_none() && unclear => AttemptOutcome::Unfinished,
        (None, None, Exit::Code(0)) if finished.error.is_none() && (done || !run.in_loop()) => {
            AttemptOutcome::Completed
        }
        _ if finished.agent.usage_limit.as_ref().is_some_and(|limit| limit.resets_at.is_some() || !futile) => {
            AttemptOutcome::Limited
        }
        _ if finished.agent.error_class == Some(ErrorClass::Credentials) && login_has_worked(run, step) => {
            AttemptOutcome::Unavailable { reason: WaitReason::Login }
        }
        _ if finished.agent.error_class.is_some_and(ErrorClass::is_outage) && !futile => {
            AttemptOutcome::Unavailable { reason: WaitReason::Service }
        }
        // It was to continue a session, and has not said a word to its service.
        (None, None, Exit::Code(_)) if run.state.continues(step) && finished.agent.lost_session.is_some() => {
            AttemptOutcome::Unavailable { reason: WaitReason::Session }
        }
        (None, None, Exit::Signal(signal)) => AttemptOutcome::Crashed { signal },
        (None, None, Exit::Code(0)) if finished.error.is_some() => AttemptOutcome::Errored,
        (None, None, Exit::Code(0)) => AttemptOutcome::Unfinished,
        (None, None, Exit::Code(code)) => AttemptOutcome::Failed { code },
    }
}

/// Returns whether a verdict objects to the work: a reject by a judge, or a dispute by any agent.
fn is_objection(run: &Deliberation<'_>, step: u32, decision: Decided) -> bool {
    decision == Decided::Dispute || decision == Decided::Reject && run.is_judge(step)
}

/// Returns whether a step has a count and is outside of groups.
fn counts_alone(run: &Deliberation<'_>, step: u32) -> bool {
    run.plan.group_of(step).is_none() && run.plan.step(step).is_some_and(|step| step.limit != Limit::Once)
}

/// Returns whether the step is a worker that runs once and that reported itself that it is not done.
fn is_not_done(run: &Deliberation<'_>, step: u32, said: Option<&VerdictReading>) -> bool {
    let once = run.plan.step(step).is_some_and(|step| step.limit == Limit::Once && step.role() == Some(Role::Worker));
    once && matches!(said, Some(VerdictReading::Unclear(Unclear::NotDone { .. } | Unclear::Stopped { .. })))
}

fn is_silent(said: Option<&VerdictReading>) -> bool {
    matches!(said, None | Some(VerdictReading::Unclear(Unclear::Nothing)))
}
