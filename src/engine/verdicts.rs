//! What follows a verdict: the next step, the next round, the same judge again, or a human.

use super::event::{At, EventKind, Feedback, FeedbackCause};
use super::finished::Finished;
use super::machine::Deliberation;
use super::outcome::{HumanNeeded, RunOutcome};
use super::progress::number;
use crate::chain::{Limit, Role};
use crate::plan::PlannedStep;
use crate::verdict::{Decision as Decided, Unclear, Verdict, VerdictReading};

/// How many times a judge is asked in all.
pub(super) const ASKED: u32 = 3;
/// How many rounds in a row may end before a judge is reached.
pub(super) const UNJUDGED: u32 = 5;

impl Deliberation<'_> {
    /// Handles an attempt whose process succeeded: its verdict decides what follows.
    pub(super) fn completed(&mut self, at: At, said: Option<VerdictReading>, finished: &Finished) {
        if !finished.agent.tasks.is_empty() && self.plan.task.is_none() {
            let (tasks, unread) = (finished.agent.tasks.clone(), finished.agent.unread.clone());
            self.emit(EventKind::TasksProposed { at: at.clone(), tasks, unread });
        }
        match said {
            // A skip is treated as a submit if something was changed or is wrong.
            Some(VerdictReading::Clear(verdict))
                if verdict.decision == Decided::Skip
                    && !self.is_judge(at.step)
                    && !self.may_skip(at.step, finished) =>
            {
                let verdict = Verdict { decision: Decided::Submit, ..verdict };
                self.decided(at, verdict);
            }
            Some(VerdictReading::Clear(verdict)) => self.decided(at, verdict),
            // A planner has to propose at least one task.
            Some(VerdictReading::Unclear(Unclear::NoTasks { .. })) => self.unclear(at, said),
            // For a worker the exit code decides. A verdict that its role may not give is shown, but does not count.
            Some(VerdictReading::Unclear(why)) if why != Unclear::Nothing => {
                self.emit(EventKind::VerdictUnclear { at: at.clone(), reason: why, asked: 0 });
                self.step_succeeded(at);
            }
            _ if finished.agent.unchanged == Some(true) && self.plan.submits(at.step) && self.state.retry == 0 => {
                self.emit(EventKind::WorkUnchanged { at: at.clone() });
                self.plan_attempt(at.step, at.iteration, 1);
            }
            _ => self.step_succeeded(at),
        }
    }

    fn decided(&mut self, at: At, verdict: Verdict) {
        let decision = verdict.decision;
        // A rejection with only minor findings ends its round successfully. Outside of a group only an approval counts.
        let converged = decision == Decided::Reject && verdict.minor && self.group_of(at.step).is_some();
        self.emit(EventKind::VerdictGiven { at: at.clone(), verdict, converged });
        match decision {
            Decided::Approve | Decided::Submit | Decided::Done => self.step_succeeded(at),
            Decided::Reject if converged => self.step_succeeded(at),
            Decided::Reject => self.rejected(at),
            Decided::Dispute => self.finish(RunOutcome::NeedsHuman { step: at.step, reason: HumanNeeded::Disputed }),
            Decided::Skip => self.skip(at),
        }
    }

    /// Returns whether a worker's skip counts: nothing has changed since the work began, nothing was rejected, and no
    /// check fails. In a group, only the first worker can skip, because a later one knows nothing about the group as a
    /// whole.
    fn may_skip(&self, step: u32, finished: &Finished) -> bool {
        let plan = self.plan;
        let rejected = self.state.rejections() > 0
            || self.state.objection().is_some()
            || plan.task.as_ref().is_some_and(|task| task.rejections > 0);
        let numbers = || (1..=number(plan.steps.len())).take(plan.steps.len());
        let red =
            numbers().any(|step| self.step(step).is_some_and(PlannedStep::is_check) && self.state.last_failed(step));
        let is_worker = |step: &u32| self.step(*step).is_some_and(|step| step.role() == Some(Role::Worker));
        let first = match self.group_of(step) {
            Some(group) => numbers().filter(is_worker).find(|other| self.group_of(*other) == Some(group)) == Some(step),
            None => true,
        };
        finished.agent.untouched && !rejected && !red && first
    }

    fn rejected(&mut self, at: At) {
        let rejection = self.state.rejections();
        let before = self.plan.task.as_ref().map_or(0, |task| task.rejections);
        if self.plan.task.is_some() && before + rejection >= self.plan.limits.rejections {
            return self.finish(RunOutcome::NeedsHuman { step: at.step, reason: HumanNeeded::Rejections });
        }
        // Nothing was changed in two rounds in a row. The next one would be the same.
        if self.state.idle_rejects() >= 2 {
            return self.finish(RunOutcome::Stalled { step: at.step });
        }
        self.round_over(&Feedback { from: at, cause: FeedbackCause::Rejected { rejection } });
    }

    /// Applies the decision of a person that the run waited for: the work is accepted, or continues with the person's
    /// notes.
    pub(super) fn decided_by_a_person(&mut self, verdict: Verdict, why: HumanNeeded) {
        let Some(at) = self.state.at.clone() else { return self.go_from(0) };
        let approves = verdict.decision == Decided::Approve;
        self.emit(EventKind::VerdictGiven { at: at.clone(), verdict, converged: false });
        match (approves, why, self.group_of(at.step)) {
            // Every step had succeeded already.
            (true, HumanNeeded::NotAJudge | HumanNeeded::NoJudge, _) => self.go_from(usize::MAX),
            (true, ..) if self.is_judge(at.step) => self.step_succeeded(at),
            (true, ..) => self.skip(at),
            (false, _, None) => self.finish(RunOutcome::Rejected { step: at.step }),
            (false, _, Some(index)) => {
                // A person requests this round, so it may exceed the group's count.
                let (span, round) = (self.plan.program.groups[index], self.state.round_of(index));
                let cause = FeedbackCause::Rejected { rejection: self.state.rejections() };
                let ended_by = Some(Feedback { from: at, cause });
                self.emit(EventKind::RoundFinished { group: number(index), round, ended_by });
                let rounds = self.rounds(index).max(round + 1);
                self.emit(EventKind::RoundStarted { group: number(index), round: round + 1, rounds });
                self.go_from(span.enter + 1);
            }
        }
    }

    /// Handles that there is nothing to do: the group, or a step outside of groups, ends successfully.
    fn skip(&mut self, at: At) {
        let Some(index) = self.group_of(at.step) else { return self.step_succeeded(at) };
        let (span, round) = (self.plan.program.groups[index], self.state.round_of(index));
        self.emit(EventKind::RoundFinished { group: number(index), round, ended_by: None });
        self.go_from(span.leave + 1);
    }

    /// Handles an unclear verdict of a judge: the judge is asked again, up to [`ASKED`] times. Then a human is needed.
    pub(super) fn unclear(&mut self, at: At, said: Option<VerdictReading>) {
        let why = match said {
            Some(VerdictReading::Unclear(why)) => why,
            _ => Unclear::Nothing,
        };
        let asked = self.state.unclear(at.step).saturating_add(1);
        let step = at.step;
        let iteration = at.iteration.saturating_add(1);
        self.emit(EventKind::VerdictUnclear { at, reason: why, asked });
        if asked >= ASKED {
            self.finish(RunOutcome::NeedsHuman { step, reason: HumanNeeded::Unclear });
        } else {
            self.plan_attempt(step, iteration, 0);
        }
    }

    /// Returns whether another round of a group may follow this one. The group's count limits all rounds, whatever ends
    /// them. In a group with a judge, [`UNJUDGED`] also limits the rounds in a row that end before the judge is
    /// reached.
    pub(super) fn may_go_again(&self, group: usize) -> bool {
        let hopeless = self.plan.is_judged(group) && self.state.unjudged_rounds(group) >= UNJUDGED;
        self.state.round_of(group) < self.rounds(group) && !hopeless
    }

    /// Returns whether another round would follow if a check ended this one.
    pub(super) fn would_go_again(&self, step: u32) -> bool {
        let Some(group) = self.group_of(step) else { return false };
        self.may_go_again(group) && (!self.plan.is_judged(group) || self.state.unjudged_rounds(group) + 1 < UNJUDGED)
    }

    /// Returns the outcome of a run whose last round was ended by this feedback, with no round left.
    pub(super) fn no_round_left(&self, feedback: &Feedback) -> RunOutcome {
        let step = feedback.from.step;
        let grouped = self.group_of(step).is_some();
        match feedback.cause {
            FeedbackCause::CheckFailed { .. } if !grouped => RunOutcome::Failed { step },
            FeedbackCause::Rejected { .. } if grouped => {
                RunOutcome::NeedsHuman { step, reason: HumanNeeded::Rejections }
            }
            FeedbackCause::Rejected { .. } => RunOutcome::Rejected { step },
            _ => RunOutcome::IterationsExhausted { step },
        }
    }

    pub(super) fn is_judge(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.role() == Some(Role::Judge))
    }

    /// Returns whether the step is a worker that runs once and that reported itself that it is not done.
    pub(super) fn is_not_done(&self, step: u32, said: Option<&VerdictReading>) -> bool {
        let once = self.step(step).is_some_and(|step| step.limit == Limit::Once && step.role() == Some(Role::Worker));
        once && matches!(said, Some(VerdictReading::Unclear(Unclear::NotDone { .. } | Unclear::Stopped { .. })))
    }
}
