//! What follows a verdict: the next step, the next round, the same judge again, or a human.

use super::deliberation::Deliberation;
use super::walk::{go_from, number, plan_attempt, round_over, step_succeeded};
use crate::chain::Role;
use crate::engine::event::{At, EventKind, Feedback, FeedbackCause};
use crate::engine::finished::Finished;
use crate::engine::outcome::{HumanNeeded, RunOutcome};
use crate::plan::PlannedStep;
use crate::verdict::{Decision as Decided, Unclear, Verdict, VerdictReading};

/// How many times a judge is asked in all.
pub(super) const ASKED: u32 = 3;

/// Handles an attempt whose process succeeded: its verdict decides what follows.
pub(super) fn completed(run: &mut Deliberation<'_>, at: At, said: Option<VerdictReading>, finished: &Finished) {
    if !finished.agent.tasks.is_empty() && run.plan.task.is_none() {
        let (tasks, unread) = (finished.agent.tasks.clone(), finished.agent.unread.clone());
        run.emit(EventKind::TasksProposed { at: at.clone(), tasks, unread });
    }
    match said {
        // A skip is treated as a submit if something was changed or is wrong.
        Some(VerdictReading::Clear(verdict))
            if verdict.decision == Decided::Skip && !run.is_judge(at.step) && !may_skip(run, at.step, finished) =>
        {
            let verdict = Verdict { decision: Decided::Submit, ..verdict };
            decided(run, at, verdict);
        }
        Some(VerdictReading::Clear(verdict)) => decided(run, at, verdict),
        // A planner has to propose at least one task.
        Some(VerdictReading::Unclear(Unclear::NoTasks { .. })) => unclear(run, at, said),
        // For a worker the exit code decides. A verdict that its role may not give is shown, but does not count.
        Some(VerdictReading::Unclear(why)) if why != Unclear::Nothing => {
            run.emit(EventKind::VerdictUnclear { at: at.clone(), reason: why, asked: 0 });
            step_succeeded(run, at);
        }
        _ if finished.agent.unchanged == Some(true) && run.plan.submits(at.step) && run.state.retry == 0 => {
            run.emit(EventKind::WorkUnchanged { at: at.clone() });
            plan_attempt(run, at.step, at.iteration, 1);
        }
        _ => step_succeeded(run, at),
    }
}

fn decided(run: &mut Deliberation<'_>, at: At, verdict: Verdict) {
    let decision = verdict.decision;
    // A rejection with only minor findings ends its round successfully. Outside of a group only an approval counts.
    let converged = decision == Decided::Reject && verdict.minor && run.plan.group_of(at.step).is_some();
    run.emit(EventKind::VerdictGiven { at: at.clone(), verdict, converged });
    match decision {
        Decided::Approve | Decided::Submit | Decided::Done => step_succeeded(run, at),
        Decided::Reject if converged => step_succeeded(run, at),
        Decided::Reject => rejected(run, at),
        Decided::Dispute => run.finish(RunOutcome::NeedsHuman { step: at.step, reason: HumanNeeded::Disputed }),
        Decided::Skip => skip(run, at),
    }
}

/// Returns whether a worker's skip counts: nothing has changed since the work began, nothing was rejected, and no
/// check fails. In a group, only the first worker can skip, because a later one knows nothing about the group as a
/// whole.
fn may_skip(run: &Deliberation<'_>, step: u32, finished: &Finished) -> bool {
    let plan = run.plan;
    let rejected = run.state.rejections() > 0
        || run.state.objection().is_some()
        || plan.task.as_ref().is_some_and(|task| task.rejections > 0);
    let numbers = || (1..=number(plan.steps.len())).take(plan.steps.len());
    let red =
        numbers().any(|step| run.plan.step(step).is_some_and(PlannedStep::is_check) && run.state.last_failed(step));
    let is_worker = |step: &u32| run.plan.step(*step).is_some_and(|step| step.role() == Some(Role::Worker));
    let first = match run.plan.group_of(step) {
        Some(group) => numbers().filter(is_worker).find(|other| run.plan.group_of(*other) == Some(group)) == Some(step),
        None => true,
    };
    finished.agent.untouched && !rejected && !red && first
}

fn rejected(run: &mut Deliberation<'_>, at: At) {
    let rejection = run.state.rejections();
    let before = run.plan.task.as_ref().map_or(0, |task| task.rejections);
    if run.plan.task.is_some() && before + rejection >= run.plan.limits.rejections {
        return run.finish(RunOutcome::NeedsHuman { step: at.step, reason: HumanNeeded::Rejections });
    }
    // Nothing was changed in two rounds in a row. The next one would be the same.
    if run.state.idle_rejects() >= 2 {
        return run.finish(RunOutcome::Stalled { step: at.step });
    }
    round_over(run, &Feedback { from: at, cause: FeedbackCause::Rejected { rejection } });
}

/// Applies the decision of a person that the run waited for: the work is accepted, or continues with the person's
/// notes.
pub(super) fn decided_by_a_person(run: &mut Deliberation<'_>, verdict: Verdict, why: HumanNeeded) {
    let Some(at) = run.state.at.clone() else { return go_from(run, 0) };
    let approves = verdict.decision == Decided::Approve;
    run.emit(EventKind::VerdictGiven { at: at.clone(), verdict, converged: false });
    match (approves, why, run.plan.group_of(at.step)) {
        // Every step had succeeded already.
        (true, HumanNeeded::NotAJudge | HumanNeeded::NoJudge, _) => go_from(run, usize::MAX),
        (true, ..) if run.is_judge(at.step) => step_succeeded(run, at),
        (true, ..) => skip(run, at),
        (false, _, None) => run.finish(RunOutcome::Rejected { step: at.step }),
        (false, _, Some(index)) => {
            // A person requests this round, so it may exceed the group's count.
            let (span, round) = (run.plan.program.groups[index], run.state.round_of(index));
            let cause = FeedbackCause::Rejected { rejection: run.state.rejections() };
            let ended_by = Some(Feedback { from: at, cause });
            run.emit(EventKind::RoundFinished { group: number(index), round, ended_by });
            let rounds = run.rounds(index).max(round + 1);
            run.emit(EventKind::RoundStarted { group: number(index), round: round + 1, rounds });
            go_from(run, span.enter + 1);
        }
    }
}

/// Handles that there is nothing to do: the group, or a step outside of groups, ends successfully.
fn skip(run: &mut Deliberation<'_>, at: At) {
    let Some(index) = run.plan.group_of(at.step) else { return step_succeeded(run, at) };
    let (span, round) = (run.plan.program.groups[index], run.state.round_of(index));
    run.emit(EventKind::RoundFinished { group: number(index), round, ended_by: None });
    go_from(run, span.leave + 1);
}

/// Handles an unclear verdict of a judge: the judge is asked again, up to [`ASKED`] times. Then a human is needed.
pub(super) fn unclear(run: &mut Deliberation<'_>, at: At, said: Option<VerdictReading>) {
    let why = match said {
        Some(VerdictReading::Unclear(why)) => why,
        _ => Unclear::Nothing,
    };
    let asked = run.state.unclear(at.step).saturating_add(1);
    let step = at.step;
    let iteration = at.iteration.saturating_add(1);
    run.emit(EventKind::VerdictUnclear { at, reason: why, asked });
    if asked >= ASKED {
        run.finish(RunOutcome::NeedsHuman { step, reason: HumanNeeded::Unclear });
    } else {
        plan_attempt(run, step, iteration, 0);
    }
}
