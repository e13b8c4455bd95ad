//! What follows a verdict: the next step, the next round, another question, or a human.

use super::event::{At, EventKind, Feedback, FeedbackCause};
use super::finished::Finished;
use super::machine::Deliberation;
use super::outcome::{HumanNeeded, RunOutcome};
use super::progress::number;
use crate::chain::{Limit, Role};
use crate::plan::PlannedStep;
use crate::verdict::{Decision as Decided, Said, Unclear, Verdict};

/// How often a judge is asked in all (C22).
pub(super) const ASKED: u32 = 3;
/// How many rounds in a row may end before a judge is reached (C25).
pub(super) const UNJUDGED: u32 = 5;

impl Deliberation<'_> {
    /// An attempt has reached its aim as far as its process goes; what it decided is looked at.
    pub(super) fn completed(&mut self, at: At, said: Option<Said>, finished: &Finished) {
        if !finished.tasks.is_empty() && self.plan.task.is_none() {
            let (tasks, unread) = (finished.tasks.clone(), finished.unread.clone());
            self.emit(EventKind::TasksProposed { at: at.clone(), tasks, unread });
        }
        match said {
            // Who says that there is nothing to do where something was done, or is wrong, has submitted it.
            Some(Said::Clear(verdict))
                if verdict.decision == Decided::Skip
                    && !self.is_judge(at.step)
                    && !self.may_skip(at.step, finished) =>
            {
                let verdict = Verdict { decision: Decided::Submit, ..verdict };
                self.decided(at, verdict);
            }
            Some(Said::Clear(verdict)) => self.decided(at, verdict),
            // A plan without a task is none.
            Some(Said::Unclear(Unclear::NoTasks { .. })) => self.unclear(at, said),
            // The exit code rules for a worker; what was not its to say is shown and does not count.
            Some(Said::Unclear(why)) if why != Unclear::Nothing => {
                self.emit(EventKind::VerdictUnclear { at: at.clone(), why, asked: 0 });
                self.step_succeeded(at);
            }
            _ if finished.unchanged == Some(true) && self.plan.submits(at.step) && self.state.retry == 0 => {
                self.emit(EventKind::NothingSubmitted { at: at.clone() });
                self.plan_attempt(at.step, at.iteration, 1);
            }
            _ => self.step_succeeded(at),
        }
    }

    fn decided(&mut self, at: At, verdict: Verdict) {
        let decision = verdict.decision;
        // A reject beside which nothing but minor items stands ends its round well; outside of a group only an approval counts.
        let converged = decision == Decided::Reject && verdict.minor && self.group_of(at.step).is_some();
        self.emit(EventKind::VerdictGiven { at: at.clone(), verdict, converged });
        match decision {
            Decided::Approve | Decided::Submit | Decided::Done => self.step_succeeded(at),
            Decided::Reject if converged => self.step_succeeded(at),
            Decided::Reject => self.rejected(at),
            Decided::Dispute => self.finish(RunOutcome::NeedsHuman { step: at.step, why: HumanNeeded::Disputed }),
            Decided::Skip => self.skip(at),
        }
    }

    /// Whether a worker's word that there is nothing to do counts: nothing was changed since the work began, nothing was rejected, and
    /// no check is red. Of any but the first worker of a group it says nothing about the group.
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
        finished.untouched && !rejected && !red && first
    }

    fn rejected(&mut self, at: At) {
        let rejection = self.state.rejections();
        let before = self.plan.task.as_ref().map_or(0, |task| task.rejections);
        if self.plan.task.is_some() && before + rejection >= self.plan.limits.rejections {
            return self.finish(RunOutcome::NeedsHuman { step: at.step, why: HumanNeeded::Rejections });
        }
        // Two rounds in a row in which nobody changed anything: the next one would be the same.
        if self.state.idle_rejects() >= 2 {
            return self.finish(RunOutcome::Stalled { step: at.step });
        }
        self.round_over(&Feedback { from: at, cause: FeedbackCause::Rejected { rejection } });
    }

    /// A person decides where one was waited for: the work stands, or goes on with the person's words.
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
                // One more round than the count says, if need be: a person asks for it.
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

    /// There is nothing to do: the group ends well, outside of one the step does.
    fn skip(&mut self, at: At) {
        let Some(index) = self.group_of(at.step) else { return self.step_succeeded(at) };
        let (span, round) = (self.plan.program.groups[index], self.state.round_of(index));
        self.emit(EventKind::RoundFinished { group: number(index), round, ended_by: None });
        self.go_from(span.leave + 1);
    }

    /// A judge was not understood: it is asked again, a few times, then a human is.
    pub(super) fn unclear(&mut self, at: At, said: Option<Said>) {
        let why = match said {
            Some(Said::Unclear(why)) => why,
            _ => Unclear::Nothing,
        };
        let asked = self.state.unclear(at.step).saturating_add(1);
        let step = at.step;
        let iteration = at.iteration.saturating_add(1);
        self.emit(EventKind::VerdictUnclear { at, why, asked });
        if asked >= ASKED {
            self.finish(RunOutcome::NeedsHuman { step, why: HumanNeeded::Unclear });
        } else {
            self.plan_attempt(step, iteration, 0);
        }
    }

    /// Whether another round of a group may follow this one: its count is of all rounds, whatever ends them. Of those in a row that a
    /// check ends there are fewer where a judge stands in the group.
    pub(super) fn may_go_again(&self, group: usize) -> bool {
        let hopeless = self.plan.is_judged(group) && self.state.unjudged_rounds(group) >= UNJUDGED;
        self.state.round_of(group) < self.rounds(group) && !hopeless
    }

    /// Whether a round follows when a check ends this one.
    pub(super) fn would_go_again(&self, step: u32) -> bool {
        let Some(group) = self.group_of(step) else { return false };
        self.may_go_again(group) && (!self.plan.is_judged(group) || self.state.unjudged_rounds(group) + 1 < UNJUDGED)
    }

    /// How a run ends whose last round was ended by this, with no round left.
    pub(super) fn no_round_left(&self, feedback: &Feedback) -> RunOutcome {
        let step = feedback.from.step;
        let grouped = self.group_of(step).is_some();
        match feedback.cause {
            FeedbackCause::CheckFailed { .. } if !grouped => RunOutcome::Failed { step },
            FeedbackCause::Rejected { .. } if grouped => RunOutcome::NeedsHuman { step, why: HumanNeeded::Rejections },
            FeedbackCause::Rejected { .. } => RunOutcome::Rejected { step },
            _ => RunOutcome::Exhausted { step },
        }
    }

    pub(super) fn is_judge(&self, step: u32) -> bool {
        self.step(step).is_some_and(|step| step.role() == Some(Role::Judge))
    }

    /// A worker that runs once, and says itself that it is not done.
    pub(super) fn is_not_done(&self, step: u32, said: Option<&Said>) -> bool {
        let once = self.step(step).is_some_and(|step| step.limit == Limit::Once && step.role() == Some(Role::Worker));
        once && matches!(said, Some(Said::Unclear(Unclear::NotDone { .. } | Unclear::Stopped { .. })))
    }
}
