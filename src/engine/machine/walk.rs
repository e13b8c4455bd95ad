//! Moves through the program of the chain: to the next step, the next round, or the end of the run.

use super::deliberation::Deliberation;
use crate::chain::{Op, Role};
use crate::engine::event::{At, Ending, EventKind, Feedback, FeedbackCause};
use crate::engine::input::Effect;
use crate::engine::outcome::{HumanNeeded, RunOutcome};
use crate::plan::Kind;

/// How many rounds in a row may end before a judge is reached.
const UNJUDGED: u32 = 5;

/// Continues with what follows a step that has succeeded.
pub(super) fn step_succeeded(run: &mut Deliberation<'_>, at: At) {
    let after = run.plan.op_of(at.step);
    run.emit(EventKind::StepSucceeded { at });
    go_from(run, after.map_or(usize::MAX, |op| op + 1));
}

/// Ends the round of the innermost group. If it was the group's last round, the round of the outer group ends too.
pub(super) fn round_over(run: &mut Deliberation<'_>, feedback: &Feedback) {
    let mut group = run.plan.group_of(feedback.from.step);
    while let Some(index) = group {
        let (span, rounds) = (run.plan.program.groups[index], run.rounds(index));
        let round = run.state.round_of(index);
        let number = number(index);
        run.emit(EventKind::RoundFinished { group: number, round, ended_by: Some(feedback.clone()) });
        if may_go_again(run, index) {
            run.emit(EventKind::RoundStarted { group: number, round: round + 1, rounds });
            return go_from(run, span.enter + 1);
        }
        group = span.parent;
    }
    run.finish(no_round_left(run, feedback));
}

/// Walks the program from `op` to the next step, or to the end.
pub(super) fn go_from(run: &mut Deliberation<'_>, mut op: usize) {
    loop {
        match run.plan.program.ops.get(op).copied() {
            None => return all_succeeded(run),
            Some(Op::Step(index)) => match run.plan.steps.get(index).map(|step| (&step.name, &step.kind)) {
                Some((name, _)) if run.state.at.is_none() && number(index) <= run.plan.begins_after() => {
                    let why = "its work already exists and is judged first".into();
                    let (step, name) = (number(index), name.clone());
                    run.emit(EventKind::StepSkipped { step, name, reason: why, absent: false });
                }
                Some((name, Kind::Check { skipped: Some(why), absence, .. })) => {
                    let (step, name, why) = (number(index), name.clone(), why.clone());
                    run.emit(EventKind::StepSkipped { step, name, reason: why, absent: absence.is_some() });
                }
                _ => return plan_attempt(run, number(index), 1, 0),
            },
            Some(Op::Enter(index)) => {
                let rounds = run.rounds(index);
                run.emit(EventKind::RoundStarted { group: number(index), round: 1, rounds });
            }
            Some(Op::Leave(index)) => {
                let round = run.state.round_of(index);
                run.emit(EventKind::RoundFinished { group: number(index), round, ended_by: None });
            }
        }
        op += 1;
    }
}

/// Handles the success of all steps. A rejection by an agent that is not a judge still prevents success. So does a
/// rejection in an earlier run if this chain has no judge.
fn all_succeeded(run: &mut Deliberation<'_>) {
    let last = number(run.plan.steps.len().saturating_sub(1));
    let waits = run.plan.task.as_ref().is_some_and(|task| task.rejections > task.sent_back || task.status == "review");
    let judged = run.plan.steps.iter().any(|step| step.role() == Some(Role::Judge));
    match run.state.objection() {
        Some(step) => run.finish(RunOutcome::NeedsHuman { step, reason: HumanNeeded::NotAJudge }),
        None if waits && !judged && !run.state.is_accepted() => {
            run.finish(RunOutcome::NeedsHuman { step: last, reason: HumanNeeded::NoJudge });
        }
        None => run.finish(RunOutcome::Succeeded),
    }
}

/// Plans the next attempt, unless the run is stopping or a limit has been reached.
pub(super) fn plan_attempt(run: &mut Deliberation<'_>, step: u32, iteration: u32, retry: u32) {
    let Some(planned) = run.plan.step(step) else { return };
    let more = run.state.more_iterations(step);
    let (name, iterations) = (planned.name.clone(), planned.is_loop().then(|| planned.iterations() + more));
    let group = run.plan.group_of(step);
    let round = group.map_or(1, |group| run.state.round_of(group));
    let at = At { step, name, round, iteration, attempt: run.state.attempts(step).saturating_add(1), lane: 1 };
    let held = run.limit_reached().map(|limit| Ending::Limit { limit });
    if let Some(why) = run.state.ending.or(held) {
        run.emit(EventKind::AttemptDeferred { at, retry });
        return run.end(why);
    }
    let feedback = feedback_for(run, group);
    run.emit(EventKind::AttemptPlanned { at: at.clone(), iterations, retry, feedback: feedback.clone() });
    run.effects.push(Effect::Spawn { at, feedback });
}

/// Returns the feedback of the innermost group that has any.
fn feedback_for(run: &Deliberation<'_>, mut group: Option<usize>) -> Option<Feedback> {
    while let Some(index) = group {
        if let Some(feedback) = run.state.feedback_of(index) {
            return Some(feedback.clone());
        }
        group = run.plan.program.groups[index].parent;
    }
    None
}

/// Returns whether another round of a group may follow this one. The group's count limits all rounds, whatever ends
/// them. In a group with a judge, [`UNJUDGED`] also limits the rounds in a row that end before the judge is
/// reached.
fn may_go_again(run: &Deliberation<'_>, group: usize) -> bool {
    let hopeless = run.plan.is_judged(group) && run.state.unjudged_rounds(group) >= UNJUDGED;
    run.state.round_of(group) < run.rounds(group) && !hopeless
}

/// Returns whether another round would follow if a check ended this one.
pub(super) fn would_go_again(run: &Deliberation<'_>, step: u32) -> bool {
    let Some(group) = run.plan.group_of(step) else { return false };
    may_go_again(run, group) && (!run.plan.is_judged(group) || run.state.unjudged_rounds(group) + 1 < UNJUDGED)
}

/// Returns the outcome of a run whose last round was ended by this feedback, with no round left.
fn no_round_left(run: &Deliberation<'_>, feedback: &Feedback) -> RunOutcome {
    let step = feedback.from.step;
    let grouped = run.plan.group_of(step).is_some();
    match feedback.cause {
        FeedbackCause::CheckFailed { .. } if !grouped => RunOutcome::Failed { step },
        FeedbackCause::Rejected { .. } if grouped => RunOutcome::NeedsHuman { step, reason: HumanNeeded::Rejections },
        FeedbackCause::Rejected { .. } => RunOutcome::Rejected { step },
        _ => RunOutcome::IterationsExhausted { step },
    }
}

/// Returns the number of an index. Numbers that people see count from 1.
#[expect(clippy::cast_possible_truncation, reason = "a chain of 1 MiB cannot have four billion steps")]
pub(super) fn number(index: usize) -> u32 {
    index as u32 + 1
}
