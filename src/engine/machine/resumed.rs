//! How a run continues after a resume.

use super::deliberation::Deliberation;
use super::walk::{go_from, number, plan_attempt};
use crate::engine::event::{Ending, EventKind, ExtraRounds};
use crate::engine::finished::{Finished, FinishedAgent, Leftover, Tokens, Unknown};
use crate::engine::input::{Effect, Timer};
use crate::engine::outcome::{AttemptOutcome, LimitKind};
use crate::plan::PlannedStep;
use std::time::Duration;

/// After a resume: records that the attempt that was running was interrupted.
pub(super) fn interrupt(run: &mut Deliberation<'_>, leftovers: Vec<Leftover>) {
    if let Some(at) = run.state.at.clone().filter(|_| run.state.has_process()) {
        let (marker, outcome) = (run.state.marker, AttemptOutcome::Interrupted);
        // What it had reported before our process died.
        let tokens = Some(run.state.spending()).filter(|tokens| *tokens != Tokens::default());
        let agent = FinishedAgent { tokens, ..FinishedAgent::default() };
        let mut finished = Finished { leftovers, agent, ..Finished::default() };
        finished.agent.unknown =
            Unknown::of(run.plan.step(at.step).and_then(PlannedStep::accounting), &outcome, &finished);
        run.emit(EventKind::AttemptFinished { at, outcome, marker, finished });
    }
}

/// After a resume: repeats the last iteration.
pub(super) fn go_on(run: &mut Deliberation<'_>) {
    match run.state.at.clone() {
        Some(at) => plan_attempt(run, at.step, at.iteration, run.state.retry),
        None => go_from(run, 0),
    }
}

/// Returns what `count` is added to: the rounds of the group, or without a group the iterations of the loop.
pub(super) fn extra_rounds(run: &Deliberation<'_>, count: u32) -> Option<ExtraRounds> {
    let step = run.state.at.as_ref()?.step;
    Some(ExtraRounds { group: run.plan.group_of(step).map(number), step, count })
}

/// After a resume with more: starts another round, or without a group another iteration.
pub(super) fn go_on_with(run: &mut Deliberation<'_>, more: ExtraRounds) {
    let Some(at) = run.state.at.clone() else { return };
    match run.plan.group_of(more.step) {
        Some(index) => {
            let (round, rounds) = (run.state.round_of(index) + 1, run.rounds(index));
            run.emit(EventKind::RoundStarted { group: number(index), round, rounds });
            go_from(run, run.plan.program.groups[index].enter + 1);
        }
        None => plan_attempt(run, at.step, at.iteration + 1, 0),
    }
}

/// Returns whether anything is left of the run's time limit, and starts its timer.
pub(super) fn has_time(run: &mut Deliberation<'_>, elapsed: Duration) -> bool {
    let left = run.plan.limits.time.map(|time| time.saturating_sub(elapsed));
    if left == Some(Duration::ZERO) {
        run.end(Ending::Limit { limit: LimitKind::Time });
        return false;
    }
    run.effects.extend(left.map(|left| Effect::Arm(Timer::Run, left)));
    true
}
