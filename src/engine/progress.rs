//! What follows an attempt: the next iteration, step or round, a wait, or the end of the run.

use super::event::{At, Ending, EventKind, ExtraRounds, Feedback, FeedbackCause};
use super::finished::{Finished, FinishedAgent, Leftover, Tokens, Unknown};
use super::input::{Effect, Timer};
use super::machine::Deliberation;
use super::outcome::{AttemptOutcome, HumanNeeded, LimitKind, RunOutcome};
use crate::agent::ErrorClass;
use crate::chain::{Op, Role};
use crate::plan::{Kind, MissingCommand, PlannedStep};
use crate::verdict::{Unclear, VerdictReading};
use std::time::Duration;

/// How many times an agent that fails in a group is retried in place.
pub(super) const RETRIES: u32 = 3;
/// After this many equal, quick failures in a row a loop is a crash loop.
const HOPELESS: u32 = 3;

impl Deliberation<'_> {
    pub(super) fn attempt_over(
        &mut self,
        outcome: AttemptOutcome,
        mut finished: Finished,
        said: Option<VerdictReading>,
    ) {
        let Some(at) = self.state.at.clone() else { return };
        let accounting = self.step_as_run(at.step).and_then(PlannedStep::accounting);
        // If its end does not report what it used, its last usage report counts.
        let used = Some(self.state.spending()).filter(|tokens| *tokens != Tokens::default());
        finished.agent.tokens = finished.agent.tokens.or(used);
        finished.agent.unknown = Unknown::of(accounting, &outcome, &finished);
        let (marker, usage_limit) = (self.state.marker, finished.agent.usage_limit.clone());
        let permanent = finished.agent.error_class.is_some_and(ErrorClass::is_permanent);
        let kept = finished.clone();
        self.emit(EventKind::AttemptFinished { at: at.clone(), outcome: outcome.clone(), marker, finished });
        if outcome == AttemptOutcome::Completed {
            return self.completed(at, said, &kept);
        }
        if self.state.ending.is_some() {
            return self.finish_ended();
        }
        if let Some(reason) = outcome.waits_for() {
            return self.wait(at, reason, usage_limit.as_ref());
        }
        if let Some(VerdictReading::Unclear(why @ Unclear::Stopped { .. })) = &said {
            self.emit(EventKind::VerdictUnclear { at: at.clone(), reason: why.clone(), asked: 0 });
            return self.finish(RunOutcome::Failed { step: at.step });
        }
        if let Some(VerdictReading::Unclear(why @ Unclear::NotDone { .. })) = &said
            && !self.is_judge(at.step)
        {
            self.emit(EventKind::VerdictUnclear { at: at.clone(), reason: why.clone(), asked: 0 });
        }
        let Some(step) = self.step(at.step) else { return };
        match &step.kind {
            // The program is missing, or its credentials or model are refused. This stays so until a person acts.
            _ if permanent || matches!(outcome, AttemptOutcome::NotStarted { .. }) => {
                self.finish(RunOutcome::Failed { step: at.step });
            }
            Kind::Check { optional: true, .. } => self.step_succeeded(at),
            // Exit code 2 of our own command: there is still nothing to run.
            Kind::Check { absence: Some(MissingCommand::LookedForAgain), .. }
                if outcome == (AttemptOutcome::Failed { code: 2 }) =>
            {
                self.finish(RunOutcome::NeedsHuman { step: at.step, reason: HumanNeeded::NoCommand });
            }
            Kind::Check { .. } => {
                if self.would_go_again(at.step) && self.state.moves_in_a_circle(at.step) {
                    return self.finish(RunOutcome::Stalled { step: at.step });
                }
                let cause = FeedbackCause::CheckFailed { outcome };
                self.round_over(&Feedback { from: at, cause });
            }
            // It may undo its change in one more attempt. After that the run fails.
            Kind::Agent { .. } if outcome == AttemptOutcome::Voided && !self.is_judge(at.step) => {
                if self.group_of(at.step).is_some() && self.state.retry == 0 {
                    self.plan_attempt(at.step, at.iteration, 1);
                } else {
                    self.finish(RunOutcome::Failed { step: at.step });
                }
            }
            Kind::Agent { .. } if self.is_judge(at.step) && outcome == AttemptOutcome::Unfinished => {
                self.unclear(at, said);
            }
            Kind::Agent { .. } if step.is_loop() => {
                let iterations = step.iterations().saturating_add(self.state.more_iterations(at.step));
                self.iteration_over(at, iterations);
            }
            Kind::Agent { .. } if self.group_of(at.step).is_some() && self.state.retry < RETRIES => {
                self.plan_attempt(at.step, at.iteration, self.state.retry + 1);
            }
            Kind::Agent { .. } => self.finish(RunOutcome::Failed { step: at.step }),
        }
    }

    /// Handles an iteration that did not complete its loop.
    fn iteration_over(&mut self, at: At, iterations: u32) {
        let step = at.step;
        if self.state.same_failures(step) >= HOPELESS {
            self.finish(RunOutcome::CrashLoop { step });
        } else if at.iteration >= iterations {
            self.round_over(&Feedback { from: at, cause: FeedbackCause::IterationsExhausted { iterations } });
        } else if self.state.same_fingerprints(step) >= self.plan.limits.stalled_after {
            self.finish(RunOutcome::Stalled { step });
        } else {
            self.plan_attempt(step, at.iteration + 1, 0);
        }
    }

    /// After a resume: records that the attempt that was running was interrupted.
    pub(super) fn interrupt(&mut self, leftovers: Vec<Leftover>) {
        if let Some(at) = self.state.at.clone().filter(|_| self.state.has_process()) {
            let (marker, outcome) = (self.state.marker, AttemptOutcome::Interrupted);
            // What it had reported before our process died.
            let tokens = Some(self.state.spending()).filter(|tokens| *tokens != Tokens::default());
            let agent = FinishedAgent { tokens, ..FinishedAgent::default() };
            let mut finished = Finished { leftovers, agent, ..Finished::default() };
            finished.agent.unknown =
                Unknown::of(self.step(at.step).and_then(PlannedStep::accounting), &outcome, &finished);
            self.emit(EventKind::AttemptFinished { at, outcome, marker, finished });
        }
    }

    /// After a resume: repeats the last iteration.
    pub(super) fn go_on(&mut self) {
        match self.state.at.clone() {
            Some(at) => self.plan_attempt(at.step, at.iteration, self.state.retry),
            None => self.go_from(0),
        }
    }

    /// Returns what `count` is added to: the rounds of the group, or without a group the iterations of the loop.
    pub(super) fn more(&self, count: u32) -> Option<ExtraRounds> {
        let step = self.state.at.as_ref()?.step;
        Some(ExtraRounds { group: self.group_of(step).map(number), step, count })
    }

    /// After a resume with more: starts another round, or without a group another iteration.
    pub(super) fn go_on_with(&mut self, more: ExtraRounds) {
        let Some(at) = self.state.at.clone() else { return };
        match self.group_of(more.step) {
            Some(index) => {
                let (round, rounds) = (self.state.round_of(index) + 1, self.rounds(index));
                self.emit(EventKind::RoundStarted { group: number(index), round, rounds });
                self.go_from(self.plan.program.groups[index].enter + 1);
            }
            None => self.plan_attempt(at.step, at.iteration + 1, 0),
        }
    }

    /// Returns whether anything is left of the run's time limit, and starts its timer.
    pub(super) fn has_time(&mut self, elapsed: Duration) -> bool {
        let left = self.plan.limits.time.map(|time| time.saturating_sub(elapsed));
        if left == Some(Duration::ZERO) {
            self.end(Ending::Limit { limit: LimitKind::Time });
            return false;
        }
        self.effects.extend(left.map(|left| Effect::Arm(Timer::Run, left)));
        true
    }

    /// Returns the maximum number of rounds of a group.
    pub(super) fn rounds(&self, group: usize) -> u32 {
        self.plan.program.groups[group].rounds.saturating_add(self.state.more_rounds(group))
    }

    // Moving through the program of the chain.

    pub(super) fn step_succeeded(&mut self, at: At) {
        let after = self.plan.op_of(at.step);
        self.emit(EventKind::StepSucceeded { at });
        self.go_from(after.map_or(usize::MAX, |op| op + 1));
    }

    /// Ends the round of the innermost group. If it was the group's last round, the round of the outer group ends too.
    pub(super) fn round_over(&mut self, feedback: &Feedback) {
        let mut group = self.group_of(feedback.from.step);
        while let Some(index) = group {
            let (span, rounds) = (self.plan.program.groups[index], self.rounds(index));
            let round = self.state.round_of(index);
            let number = number(index);
            self.emit(EventKind::RoundFinished { group: number, round, ended_by: Some(feedback.clone()) });
            if self.may_go_again(index) {
                self.emit(EventKind::RoundStarted { group: number, round: round + 1, rounds });
                return self.go_from(span.enter + 1);
            }
            group = span.parent;
        }
        self.finish(self.no_round_left(feedback));
    }

    /// Walks the program from `op` to the next step, or to the end.
    pub(super) fn go_from(&mut self, mut op: usize) {
        loop {
            match self.plan.program.ops.get(op).copied() {
                None => return self.all_succeeded(),
                Some(Op::Step(index)) => match self.plan.steps.get(index).map(|step| (&step.name, &step.kind)) {
                    Some((name, _)) if self.state.at.is_none() && number(index) <= self.plan.begins_after() => {
                        let why = "its work already exists and is judged first".into();
                        let (step, name) = (number(index), name.clone());
                        self.emit(EventKind::StepSkipped { step, name, reason: why, absent: false });
                    }
                    Some((name, Kind::Check { skipped: Some(why), absence, .. })) => {
                        let (step, name, why) = (number(index), name.clone(), why.clone());
                        self.emit(EventKind::StepSkipped { step, name, reason: why, absent: absence.is_some() });
                    }
                    _ => return self.plan_attempt(number(index), 1, 0),
                },
                Some(Op::Enter(index)) => {
                    let rounds = self.rounds(index);
                    self.emit(EventKind::RoundStarted { group: number(index), round: 1, rounds });
                }
                Some(Op::Leave(index)) => {
                    let round = self.state.round_of(index);
                    self.emit(EventKind::RoundFinished { group: number(index), round, ended_by: None });
                }
            }
            op += 1;
        }
    }

    /// Handles the success of all steps. A rejection by an agent that is not a judge still prevents success. So does a
    /// rejection in an earlier run if this chain has no judge.
    fn all_succeeded(&mut self) {
        let last = number(self.plan.steps.len().saturating_sub(1));
        let waits =
            self.plan.task.as_ref().is_some_and(|task| task.rejections > task.sent_back || task.status == "review");
        let judged = self.plan.steps.iter().any(|step| step.role() == Some(Role::Judge));
        match self.state.objection() {
            Some(step) => self.finish(RunOutcome::NeedsHuman { step, reason: HumanNeeded::NotAJudge }),
            None if waits && !judged && !self.state.is_accepted() => {
                self.finish(RunOutcome::NeedsHuman { step: last, reason: HumanNeeded::NoJudge });
            }
            None => self.finish(RunOutcome::Succeeded),
        }
    }

    /// Plans the next attempt, unless the run is stopping or a limit has been reached.
    pub(super) fn plan_attempt(&mut self, step: u32, iteration: u32, retry: u32) {
        let Some(planned) = self.step(step) else { return };
        let more = self.state.more_iterations(step);
        let (name, iterations) = (planned.name.clone(), planned.is_loop().then(|| planned.iterations() + more));
        let group = self.group_of(step);
        let round = group.map_or(1, |group| self.state.round_of(group));
        let at = At { step, name, round, iteration, attempt: self.state.attempts(step).saturating_add(1), lane: 1 };
        let held = self.limit_reached().map(|limit| Ending::Limit { limit });
        if let Some(why) = self.state.ending.or(held) {
            self.emit(EventKind::AttemptDeferred { at, retry });
            return self.end(why);
        }
        let feedback = self.feedback_for(group);
        self.emit(EventKind::AttemptPlanned { at: at.clone(), iterations, retry, feedback: feedback.clone() });
        self.effects.push(Effect::Spawn { at, feedback });
    }

    pub(super) fn group_of(&self, step: u32) -> Option<usize> {
        self.plan.group_of(step)
    }

    /// Returns the feedback of the innermost group that has any.
    fn feedback_for(&self, mut group: Option<usize>) -> Option<Feedback> {
        while let Some(index) = group {
            if let Some(feedback) = self.state.feedback_of(index) {
                return Some(feedback.clone());
            }
            group = self.plan.program.groups[index].parent;
        }
        None
    }
}

/// Returns the number of an index. Numbers that people see count from 1.
#[expect(clippy::cast_possible_truncation, reason = "a chain of 1 MiB cannot have four billion steps")]
pub(super) fn number(index: usize) -> u32 {
    index as u32 + 1
}
