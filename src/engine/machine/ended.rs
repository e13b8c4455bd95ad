//! What follows an attempt: the next iteration, step or round, a wait, or the end of the run.

use super::deliberation::Deliberation;
use super::verdicts::{completed, unclear};
use super::waiting::wait;
use super::walk::{plan_attempt, round_over, step_succeeded, would_go_again};
use crate::agent::ErrorClass;
use crate::engine::event::{At, EventKind, Feedback, FeedbackCause};
use crate::engine::finished::{Finished, Tokens, Unknown};
use crate::engine::outcome::{AttemptOutcome, HumanNeeded, RunOutcome};
use crate::plan::{Kind, MissingCommand, PlannedStep};
use crate::verdict::{Unclear, VerdictReading};

/// How many times an agent that fails in a group is retried in place.
pub(super) const RETRIES: u32 = 3;
/// After this many equal, quick failures in a row a loop is a crash loop.
const HOPELESS: u32 = 3;

/// Records how an attempt ended, and determines what follows.
pub(super) fn attempt_over(
    run: &mut Deliberation<'_>,
    outcome: AttemptOutcome,
    mut finished: Finished,
    said: Option<VerdictReading>,
) {
    let Some(at) = run.state.at.clone() else { return };
    let accounting = run.step_as_run(at.step).and_then(PlannedStep::accounting);
    // If its end does not report what it used, its last usage report counts.
    let used = Some(run.state.spending()).filter(|tokens| *tokens != Tokens::default());
    finished.agent.tokens = finished.agent.tokens.or(used);
    finished.agent.unknown = Unknown::of(accounting, &outcome, &finished);
    let (marker, usage_limit) = (run.state.marker, finished.agent.usage_limit.clone());
    let permanent = finished.agent.error_class.is_some_and(ErrorClass::is_permanent);
    let kept = finished.clone();
    run.emit(EventKind::AttemptFinished { at: at.clone(), outcome: outcome.clone(), marker, finished });
    if outcome == AttemptOutcome::Completed {
        return completed(run, at, said, &kept);
    }
    if run.state.ending.is_some() {
        return run.finish_ended();
    }
    if let Some(reason) = outcome.waits_for() {
        return wait(run, at, reason, usage_limit.as_ref());
    }
    if let Some(VerdictReading::Unclear(why @ Unclear::Stopped { .. })) = &said {
        run.emit(EventKind::VerdictUnclear { at: at.clone(), reason: why.clone(), asked: 0 });
        return run.finish(RunOutcome::Failed { step: at.step });
    }
    if let Some(VerdictReading::Unclear(why @ Unclear::NotDone { .. })) = &said
        && !run.is_judge(at.step)
    {
        run.emit(EventKind::VerdictUnclear { at: at.clone(), reason: why.clone(), asked: 0 });
    }
    let Some(step) = run.plan.step(at.step) else { return };
    match &step.kind {
        // The program is missing, or its credentials or model are refused. This stays so until a person acts.
        _ if permanent || matches!(outcome, AttemptOutcome::NotStarted { .. }) => {
            run.finish(RunOutcome::Failed { step: at.step });
        }
        Kind::Check { optional: true, .. } => step_succeeded(run, at),
        // Exit code 2 of our own command: there is still nothing to run.
        Kind::Check { absence: Some(MissingCommand::LookedForAgain), .. }
            if outcome == (AttemptOutcome::Failed { code: 2 }) =>
        {
            run.finish(RunOutcome::NeedsHuman { step: at.step, reason: HumanNeeded::NoCommand });
        }
        Kind::Check { .. } => {
            if would_go_again(run, at.step) && run.state.moves_in_a_circle(at.step) {
                return run.finish(RunOutcome::Stalled { step: at.step });
            }
            let cause = FeedbackCause::CheckFailed { outcome };
            round_over(run, &Feedback { from: at, cause });
        }
        // It may undo its change in one more attempt. After that the run fails.
        Kind::Agent { .. } if outcome == AttemptOutcome::Voided && !run.is_judge(at.step) => {
            if run.plan.group_of(at.step).is_some() && run.state.retry == 0 {
                plan_attempt(run, at.step, at.iteration, 1);
            } else {
                run.finish(RunOutcome::Failed { step: at.step });
            }
        }
        Kind::Agent { .. } if run.is_judge(at.step) && outcome == AttemptOutcome::Unfinished => {
            unclear(run, at, said);
        }
        Kind::Agent { .. } if step.is_loop() => {
            let iterations = step.iterations().saturating_add(run.state.more_iterations(at.step));
            iteration_over(run, at, iterations);
        }
        Kind::Agent { .. } if run.plan.group_of(at.step).is_some() && run.state.retry < RETRIES => {
            plan_attempt(run, at.step, at.iteration, run.state.retry + 1);
        }
        Kind::Agent { .. } => run.finish(RunOutcome::Failed { step: at.step }),
    }
}

/// Handles an iteration that did not complete its loop.
fn iteration_over(run: &mut Deliberation<'_>, at: At, iterations: u32) {
    let step = at.step;
    if run.state.same_failures(step) >= HOPELESS {
        run.finish(RunOutcome::CrashLoop { step });
    } else if at.iteration >= iterations {
        round_over(run, &Feedback { from: at, cause: FeedbackCause::IterationsExhausted { iterations } });
    } else if run.state.same_fingerprints(step) >= run.plan.limits.stalled_after {
        run.finish(RunOutcome::Stalled { step });
    } else {
        plan_attempt(run, step, at.iteration + 1, 0);
    }
}
