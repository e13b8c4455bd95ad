//! What follows an attempt: the next iteration, the next step, the next round, a wait, or the end.

use super::event::{At, Ending, EventKind, Feedback, FeedbackCause, More};
use super::finished::{Finished, Leftover, Tokens, Unknown};
use super::input::{Effect, Timer};
use super::machine::Deliberation;
use super::outcome::{AttemptOutcome, HumanNeeded, LimitKind, RunOutcome};
use crate::agent::ErrorClass;
use crate::chain::{Op, Role};
use crate::plan::{Absence, Kind, PlannedStep};
use crate::verdict::{Said, Unclear};
use std::time::Duration;

/// How often an agent that fails in a group is tried again in place (DESIGN.md, "The language").
pub(super) const RETRIES: u32 = 3;
/// After so many equal quick failures in a row a loop is hopeless (V-25).
const HOPELESS: u32 = 3;

impl Deliberation<'_> {
    pub(super) fn attempt_over(&mut self, outcome: AttemptOutcome, mut finished: Finished, said: Option<Said>) {
        let Some(at) = self.state.at.clone() else { return };
        let accounting = self.step(at.step).and_then(PlannedStep::accounting);
        // The last that it has said of its use, where its end says nothing of it.
        let used = Some(self.state.spending()).filter(|tokens| *tokens != Tokens::default());
        finished.tokens = finished.tokens.or(used);
        finished.unknown = Unknown::of(accounting, &outcome, &finished);
        let (marker, usage_limit) = (self.state.marker, finished.usage_limit.clone());
        let permanent = finished.error_class.is_some_and(ErrorClass::is_permanent);
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
        if let Some(Said::Unclear(why @ Unclear::Stopped { .. })) = &said {
            self.emit(EventKind::VerdictUnclear { at: at.clone(), why: why.clone(), asked: 0 });
            return self.finish(RunOutcome::Failed { step: at.step });
        }
        if let Some(Said::Unclear(why @ Unclear::NotDone { .. })) = &said
            && !self.is_judge(at.step)
        {
            self.emit(EventKind::VerdictUnclear { at: at.clone(), why: why.clone(), asked: 0 });
        }
        let Some(step) = self.step(at.step) else { return };
        match &step.kind {
            // A program that is not there, credentials or a model that are refused: until somebody acts, it stays so.
            _ if permanent || matches!(outcome, AttemptOutcome::NotStarted { .. }) => {
                self.finish(RunOutcome::Failed { step: at.step });
            }
            Kind::Check { optional: true, .. } => self.step_succeeded(at),
            // Exit code 2 of our own verb: there is still nothing to run.
            Kind::Check { absence: Some(Absence::LookedForAgain), .. }
                if outcome == (AttemptOutcome::Failed { code: 2 }) =>
            {
                self.finish(RunOutcome::NeedsHuman { step: at.step, why: HumanNeeded::NoCommand });
            }
            Kind::Check { .. } => {
                if self.would_go_again(at.step) && self.state.moves_in_a_circle(at.step) {
                    return self.finish(RunOutcome::Stalled { step: at.step });
                }
                let cause = FeedbackCause::CheckFailed { outcome };
                self.round_over(&Feedback { from: at, cause });
            }
            // Once more, to put it back; then it stops.
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

    /// An iteration of a loop did not complete it.
    fn iteration_over(&mut self, at: At, iterations: u32) {
        let step = at.step;
        if self.state.same_failures(step) >= HOPELESS {
            self.finish(RunOutcome::Failing { step });
        } else if at.iteration >= iterations {
            self.round_over(&Feedback { from: at, cause: FeedbackCause::Exhausted { iterations } });
        } else if self.state.same_fingerprints(step) >= self.plan.limits.stalled_after {
            self.finish(RunOutcome::Stalled { step });
        } else {
            self.plan_attempt(step, at.iteration + 1, 0);
        }
    }

    /// After a resume: what was under way is interrupted.
    pub(super) fn interrupt(&mut self, leftovers: Vec<Leftover>) {
        if let Some(at) = self.state.at.clone().filter(|_| self.state.has_process()) {
            let (marker, outcome) = (self.state.marker, AttemptOutcome::Interrupted);
            // What it had said of its use before we were gone.
            let tokens = Some(self.state.spending()).filter(|tokens| *tokens != Tokens::default());
            let mut finished = Finished { leftovers, tokens, ..Finished::default() };
            finished.unknown = Unknown::of(self.step(at.step).and_then(PlannedStep::accounting), &outcome, &finished);
            self.emit(EventKind::AttemptFinished { at, outcome, marker, finished });
        }
    }

    /// After a resume: the iteration that was the last is begun anew.
    pub(super) fn go_on(&mut self) {
        match self.state.at.clone() {
            Some(at) => self.plan_attempt(at.step, at.iteration, self.state.retry),
            None => self.go_from(0),
        }
    }

    /// Of what there is more: of the group's rounds, else of the loop's iterations.
    pub(super) fn more(&self, count: u32) -> Option<More> {
        let step = self.state.at.as_ref()?.step;
        Some(More { group: self.group_of(step).map(number), step, count })
    }

    /// After a resume with more: another round, else another iteration.
    pub(super) fn go_on_with(&mut self, more: More) {
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

    /// Whether anything is left of the run's time, which passes from now on.
    pub(super) fn has_time(&mut self, elapsed: Duration) -> bool {
        let left = self.plan.limits.time.map(|time| time.saturating_sub(elapsed));
        if left == Some(Duration::ZERO) {
            self.end(Ending::Limit { limit: LimitKind::Time });
            return false;
        }
        self.effects.extend(left.map(|left| Effect::Arm(Timer::Run, left)));
        true
    }

    /// The most rounds of a group.
    pub(super) fn rounds(&self, group: usize) -> u32 {
        self.plan.program.groups[group].rounds.saturating_add(self.state.more_rounds(group))
    }

    // The program.

    pub(super) fn step_succeeded(&mut self, at: At) {
        let after = self.plan.op_of(at.step);
        self.emit(EventKind::StepSucceeded { at });
        self.go_from(after.map_or(usize::MAX, |op| op + 1));
    }

    /// The round of the innermost group ends; a group at its last round ends the round around it.
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
                        let why = "its work is there already, and is judged first".into();
                        let (step, name) = (number(index), name.clone());
                        self.emit(EventKind::StepSkipped { step, name, why, absent: false });
                    }
                    Some((name, Kind::Check { skipped: Some(why), absence, .. })) => {
                        let (step, name, why) = (number(index), name.clone(), why.clone());
                        self.emit(EventKind::StepSkipped { step, name, why, absent: absence.is_some() });
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

    /// All steps have succeeded. A reject that counts for nothing by its author's role is still the last word about the work, and so
    /// is one of an earlier run when nobody in this one may take it back.
    fn all_succeeded(&mut self) {
        let last = number(self.plan.steps.len().saturating_sub(1));
        let waits = self.plan.task.as_ref().is_some_and(|task| task.rejections > 0 || task.status == "review");
        let judged = self.plan.steps.iter().any(|step| step.role() == Some(Role::Judge));
        match self.state.objection() {
            Some(step) => self.finish(RunOutcome::NeedsHuman { step, why: HumanNeeded::NotAJudge }),
            None if waits && !judged && !self.state.is_accepted() => {
                self.finish(RunOutcome::NeedsHuman { step: last, why: HumanNeeded::NoJudge });
            }
            None => self.finish(RunOutcome::Succeeded),
        }
    }

    /// The next attempt, unless the run is to end or a limit forbids it.
    pub(super) fn plan_attempt(&mut self, step: u32, iteration: u32, retry: u32) {
        let Some(planned) = self.step(step) else { return };
        let more = self.state.more_iterations(step);
        let (name, iterations) = (planned.name.clone(), planned.is_loop().then(|| planned.iterations() + more));
        let group = self.group_of(step);
        let round = group.map_or(1, |group| self.state.round_of(group));
        let at = At { step, name, round, iteration, attempt: self.state.attempts(step).saturating_add(1), lane: 1 };
        let held = self.limit_reached().map(|limit| Ending::Limit { limit });
        if let Some(why) = self.state.ending.or(held) {
            self.emit(EventKind::AttemptHeld { at, retry });
            return self.end(why);
        }
        let feedback = self.feedback_for(group);
        self.emit(EventKind::AttemptPlanned { at: at.clone(), iterations, retry, feedback: feedback.clone() });
        self.effects.push(Effect::Spawn { at, feedback });
    }

    pub(super) fn group_of(&self, step: u32) -> Option<usize> {
        self.plan.group_of(step)
    }

    /// What the innermost group has to tell, else the one around it.
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

/// Numbers count from 1 where people see them.
#[expect(clippy::cast_possible_truncation, reason = "a chain of a mebibyte has no four billion steps")]
pub(super) fn number(index: usize) -> u32 {
    index as u32 + 1
}
