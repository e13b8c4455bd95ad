//! The state of a run: a fold of its events, and nothing else.

use super::event::{At, Ending, EventKind, ExtraRounds, Feedback, FeedbackCause, HighestAttempt};
use super::finished::{Finished, Tokens};
use super::outcome::{AttemptOutcome, Cut, HumanNeeded, RunOutcome, Sig, WaitReason};
use super::totals::Totals;
use super::waits::Waits;
use crate::verdict::{Decision, Finding, Ledger, ReadFrom, Unclear, Verdict};

/// A failure within this time is quick. Several equal, quick failures in a row are a crash loop.
const QUICK_MS: u64 = 5_000;
/// How many failures of a check are compared.
const TRAIL: usize = 3;
/// More steps or groups than any chain has. A higher number comes from a damaged journal.
const MOST: u32 = 1 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is running.
    #[default]
    Idle,
    /// A process is being started.
    Starting,
    /// The process is running.
    Running,
    /// The run is waiting before it repeats an attempt.
    Waiting,
    /// The run has ended.
    Over,
}

/// The assumed cost of a token in US dollars, while no cost has been reported. It is somewhat more than in a session
/// that reads most of its input from the cache.
const USUAL_RATE: f64 = 3e-6;

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn f64_of(tokens: u64) -> f64 {
    tokens as f64
}

/// The state of a run: a fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts about a run")]
pub struct State {
    pub(super) phase: Phase,
    /// The current attempt.
    pub(super) at: Option<At>,
    pub(super) retry: u32,
    pub(super) marker: bool,
    /// Why the attempt is being stopped while the run continues.
    pub(super) cut: Option<Cut>,
    /// Why the run is stopping, if it is.
    pub(super) ending: Option<Ending>,
    /// The last signal that was sent to end the attempt or the run.
    pub(super) last_signal: Option<Sig>,
    pub(super) paused: bool,
    /// Attempts that count for `limits.attempts`.
    pub(super) charged: u32,
    /// The totals of the attempts that have ended.
    pub(super) totals: Totals,
    /// What the current attempt has used so far.
    pub(super) spending: Tokens,
    /// The estimated cost, in US dollars, of attempts that were stopped before they reported it.
    pub(super) estimated: f64,
    /// In a queue of tasks, the backends whose login worked earlier in the queue.
    pub(super) logins: Option<Vec<String>>,
    /// The waits since the last attempt that counted.
    pub(super) waits: Waits,
    pub(super) steps: Vec<StepState>,
    pub(super) groups: Vec<GroupState>,
    /// Every finding of the run's judges, with its state.
    pub(super) ledger: Ledger,
    /// The last verdict of a judge.
    pub(super) verdict: Option<(At, Verdict)>,
    /// The step of a worker that rejected the work, unless a judge has approved it since, or the worker was asked
    /// again.
    pub(super) objection: Option<u32>,
    /// Whether the last decision by a person accepted the work.
    pub(super) accepted: bool,
    /// How the last worker changed protected files, as descriptions.
    pub(super) weakened: Vec<String>,
    /// Those of its changes that void its attempt.
    pub(super) voided: Vec<String>,
    /// How many rejections in a row were of work that had not changed.
    pub(super) idle_rejects: u32,
    /// Whether a worker has changed something since the last rejection.
    pub(super) moved: bool,
    /// Whether a worker has changed nothing since the last rejection.
    pub(super) stood_still: bool,
    /// The messages from people, with their numbers.
    pub(super) messages: Vec<(i64, String)>,
    /// The findings of the last rejection.
    pub(super) last_findings: Option<Vec<Finding>>,
}

/// The state of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct StepState {
    pub(super) attempts: u32,
    /// Whether its last attempt failed.
    pub(super) failed: bool,
    /// The last quick failure, and how many times in a row it has occurred.
    pub(super) failure: Option<(AttemptOutcome, u32)>,
    /// The last fingerprint, and how many times in a row it has occurred.
    pub(super) fingerprint: Option<(String, u32)>,
    /// The last failures of a check, as digests of the tree and the errors.
    pub(super) trail: Vec<String>,
    /// Why a judge's last verdict was unclear, and how many times in a row that has happened.
    pub(super) unclear: Option<(Unclear, u32)>,
    /// Whether its last attempt changed nothing.
    pub(super) idle: bool,
    /// How many tests a check ran the last time, and the most that it ever ran.
    pub(super) tests: Option<(u32, u32)>,
    /// The iterations of its loop in addition to its count.
    pub(super) more: u32,
    /// Whether its service has answered.
    pub(super) worked: bool,
    /// The way in which it is run: 0 for the first one.
    pub(super) variant: u32,
    /// What became of the session that it was to continue.
    pub(super) session: SessionState,
}

/// What became of the session that a step was to continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SessionState {
    /// Its attempts begin sessions.
    #[default]
    New,
    /// Its current attempt continues one.
    Continued,
    /// Its last attempt was to continue one that its service does not know.
    Lost,
}

/// The state of a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct GroupState {
    pub(super) round: u32,
    pub(super) feedback: Option<Feedback>,
    /// How many rounds in a row were ended by something other than a judge.
    pub(super) unjudged: u32,
    /// The rounds in addition to its count.
    pub(super) more: u32,
}

/// Returns the element with this number, from 1. The list grows as needed.
fn nth<T: Clone + Default>(list: &mut Vec<T>, number: u32) -> Option<&mut T> {
    let index = number.checked_sub(1).filter(|_| number <= MOST)? as usize;
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    list.get_mut(index)
}

/// Counts equal values in a row.
fn in_a_row<T: PartialEq>(before: &mut Option<(T, u32)>, now: Option<T>) {
    *before = match (before.take(), now) {
        (Some((last, count)), Some(now)) if last == now => Some((now, count.saturating_add(1))),
        (_, now) => now.map(|now| (now, 1)),
    };
}

impl State {
    /// Returns whether the run has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Returns whether a loop or a group has used up its count. The run can then be resumed only with more of it.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.totals.outcome.is_some_and(RunOutcome::is_exhausted)
    }

    /// Returns whether the run can be resumed as it is. It cannot if it is complete, or needs a decision or more
    /// rounds.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        self.totals.outcome.is_none_or(RunOutcome::may_resume)
    }

    /// Returns why the run is waiting for a person's decision, if it is.
    #[must_use]
    pub fn waits_for(&self) -> Option<HumanNeeded> {
        match self.totals.outcome {
            Some(RunOutcome::NeedsHuman { reason: why, .. }) if why.is_a_decision() => Some(why),
            _ => None,
        }
    }

    /// Returns the current attempt, or the one that a resume would repeat or start.
    #[must_use]
    pub fn at(&self) -> Option<&At> {
        self.at.as_ref()
    }

    /// Returns the number of attempts so far, as `limits.attempts` counts them.
    #[must_use]
    pub fn charged(&self) -> u32 {
        self.charged
    }

    /// Returns what people told the run while it was running, in order.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().map(|(_, text)| text.as_str())
    }

    /// Returns the number of the last message; 0 if there was none.
    #[must_use]
    pub fn last_message(&self) -> i64 {
        self.messages.last().map_or(0, |(id, _)| *id)
    }

    /// Applies an event. Every event is accepted, and the state changes nowhere else.
    pub fn evolve(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted { queue, .. } => self.logins.clone_from(queue),
            EventKind::Evaluation { .. }
            | EventKind::Batch { .. }
            | EventKind::StepSkipped { .. }
            | EventKind::WorkUnchanged { .. }
            | EventKind::TasksProposed { .. }
            | EventKind::TemplatesEdited { .. }
            | EventKind::StepSucceeded { .. }
            | EventKind::AttemptPaused { .. }
            | EventKind::AttemptContinued { .. } => {}
            EventKind::RoundStarted { group, round, .. } => {
                if let Some(group) = nth(&mut self.groups, *group) {
                    group.round = *round;
                    if *round == 1 {
                        *group = GroupState { round: 1, more: group.more, ..GroupState::default() };
                    }
                }
            }
            EventKind::AttemptPlanned { at, retry, .. } => self.attempt_planned(at, *retry),
            EventKind::AttemptDeferred { at, retry } => {
                self.phase = Phase::Idle;
                self.at = Some(at.clone());
                self.retry = *retry;
            }
            EventKind::RunResumed { attempts, more, .. } => self.resumed(attempts, *more),
            EventKind::VerdictGiven { at, verdict, converged } => self.verdict_given(at, verdict, *converged),
            EventKind::VerdictUnclear { at, reason: why, asked } => {
                if matches!(why, Unclear::NotItsRight { decision: Decision::Reject, minor: false }) && *asked == 0 {
                    self.objection = Some(at.step);
                }
                if let Some(step) = nth(&mut self.steps, at.step).filter(|_| *asked > 0) {
                    step.unclear = Some((why.clone(), *asked));
                }
            }
            EventKind::AttemptPrepared { at, how } => {
                if let Some(step) = nth(&mut self.steps, at.step) {
                    step.variant = how.variant;
                    if how.session.is_some() {
                        step.session = SessionState::Continued;
                    }
                }
            }
            EventKind::AttemptStarted { .. } => {
                self.phase = Phase::Running;
                self.waits.process_started();
            }
            EventKind::MarkerSeen { .. } => self.marker = true,
            EventKind::MarkerWithdrawn { .. } => self.marker = false,
            EventKind::UsageReported { tokens, .. } => self.spending = *tokens,
            EventKind::RunStopping { reason: why, signal: with } => {
                self.ending.get_or_insert(*why);
                self.last_signal = with.or(self.last_signal);
            }
            EventKind::AttemptTimedOut { reason: why, signal: with, .. } => {
                self.cut = Some(*why);
                self.last_signal = Some(*with);
            }
            EventKind::AttemptFinished { at, outcome, finished, .. } => self.attempt_finished(at, outcome, finished),
            EventKind::WaitStarted { wait_ms, reason, .. } => {
                self.phase = Phase::Waiting;
                self.waits.started(*reason, *wait_ms);
            }
            EventKind::MessageReceived { id, text } => self.messages.push((*id, text.clone())),
            EventKind::RunPaused => self.paused = true,
            EventKind::RunContinued => self.paused = false,
            EventKind::RoundFinished { group, ended_by, .. } => {
                if let Some(group) = nth(&mut self.groups, *group) {
                    group.feedback.clone_from(ended_by);
                    match ended_by.as_ref().map(|feedback| &feedback.cause) {
                        Some(FeedbackCause::Rejected { .. }) => group.unjudged = 0,
                        Some(_) => group.unjudged = group.unjudged.saturating_add(1),
                        None => {}
                    }
                }
            }
            EventKind::RunFinished { .. } => self.phase = Phase::Over,
        }
        self.totals.evolve(event);
    }

    fn resumed(&mut self, attempts: &[HighestAttempt], more: Option<ExtraRounds>) {
        for highest in attempts {
            if let Some(step) = nth(&mut self.steps, highest.step) {
                step.attempts = step.attempts.max(highest.attempt);
            }
        }
        if !self.has_process() {
            self.phase = Phase::Idle;
        }
        if self.totals.outcome.is_some_and(RunOutcome::is_a_conclusion) {
            // A person has looked at the run, so earlier failures in a row no longer count.
            for step in &mut self.steps {
                (step.unclear, step.failure, step.fingerprint) = (None, None, None);
                step.trail.clear();
            }
            self.groups.iter_mut().for_each(|group| group.unjudged = 0);
            (self.retry, self.idle_rejects, self.moved, self.stood_still) = (0, 0, false, false);
        }
        match more {
            Some(ExtraRounds { group: Some(group), count, .. }) => {
                if let Some(group) = nth(&mut self.groups, group) {
                    group.more = group.more.saturating_add(count);
                }
            }
            Some(ExtraRounds { group: None, step, count }) => {
                if let Some(step) = nth(&mut self.steps, step) {
                    step.more = step.more.saturating_add(count);
                }
            }
            None => {}
        }
        (self.ending, self.last_signal, self.paused) = (None, None, false);
        self.waits = Waits::default();
        // The person who resumes the run can log in.
        self.logins = None;
        // Changes to protected files had to be undone or accepted before the run could resume.
        self.voided.clear();
    }

    fn attempt_planned(&mut self, at: &At, retry: u32) {
        self.phase = Phase::Starting;
        self.objection = self.objection.filter(|step| *step != at.step);
        self.at = Some(at.clone());
        self.retry = retry;
        self.marker = false;
        self.cut = None;
        self.last_signal = None;
        self.charged = self.charged.saturating_add(1);
        if let Some(step) = nth(&mut self.steps, at.step) {
            step.attempts = at.attempt;
            if step.session == SessionState::Continued {
                step.session = SessionState::New;
            }
        }
    }

    fn attempt_finished(&mut self, at: &At, outcome: &AttemptOutcome, finished: &Finished) {
        self.phase = Phase::Idle;
        if finished.agent.unknown.cost {
            self.estimated += f64_of(finished.agent.tokens.unwrap_or_default().total()) * self.rate();
        }
        self.spending = Tokens::default();
        if let Some(step) = nth(&mut self.steps, at.step) {
            let is_lost = *outcome == AttemptOutcome::Unavailable { reason: WaitReason::Session };
            step.session = if is_lost { SessionState::Lost } else { SessionState::New };
            step.worked |= finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0);
        }
        if !outcome.counts() {
            if outcome.waits_for().is_some() {
                self.waits.not_counted(finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0));
            }
            // It does not count as an iteration, because it will be repeated.
            self.charged = self.charged.saturating_sub(1);
            return;
        }
        self.waits = Waits::default();
        self.ledger.answered(&finished.agent.answers);
        if finished.agent.guarded {
            self.weakened = finished.agent.weakened.iter().chain(&finished.agent.touched).cloned().collect();
            self.voided.clone_from(&finished.agent.voided);
        }
        self.moved |= finished.agent.unchanged == Some(false);
        self.stood_still |= finished.agent.unchanged == Some(true);
        let Some(step) = nth(&mut self.steps, at.step) else { return };
        step.idle = finished.agent.unchanged == Some(true);
        if let Some(tests) = finished.check.tests_run {
            step.tests = Some((tests, step.tests.map_or(tests, |(_, most)| most.max(tests))));
        }
        match &finished.check.failure_digest {
            Some(failure_digest) => {
                step.trail.push(failure_digest.clone());
                let more = step.trail.len().saturating_sub(TRAIL);
                step.trail.drain(..more);
            }
            None => step.trail.clear(),
        }
        let failed =
            matches!(outcome, AttemptOutcome::Failed { .. } | AttemptOutcome::Crashed { .. } | AttemptOutcome::Errored);
        step.failed = *outcome != AttemptOutcome::Completed;
        in_a_row(&mut step.failure, Some(outcome.clone()).filter(|_| failed && finished.took_ms < QUICK_MS));
        if at.iteration == 1 {
            step.fingerprint = None;
        }
        in_a_row(&mut step.fingerprint, finished.fingerprint.clone());
    }

    /// Returns the average cost of a token so far, in US dollars.
    fn rate(&self) -> f64 {
        let spent = self.totals.all.spent.unwrap_or_default();
        let known = spent.cost_usd.filter(|cost| *cost > 0.0).filter(|_| spent.total() > 0);
        known.map_or(USUAL_RATE, |cost| cost / f64_of(spent.total()))
    }

    fn verdict_given(&mut self, at: &At, verdict: &Verdict, converged: bool) {
        let judges = matches!(verdict.decision, Decision::Approve | Decision::Reject);
        if let Some(step) = nth(&mut self.steps, at.step) {
            step.unclear = None;
        }
        if matches!(verdict.decision, Decision::Approve | Decision::Skip) || converged {
            self.objection = None;
        }
        if verdict.from == ReadFrom::Person {
            self.accepted = verdict.decision == Decision::Approve;
        }
        if judges {
            self.ledger.judged(at.step, &verdict.effective_findings());
            self.verdict = Some((at.clone(), verdict.clone()));
        }
        if verdict.decision == Decision::Reject && verdict.from == ReadFrom::Person {
            // A rejection by a person starts the work again. It does not count for the limits on rejections by judges.
            (self.idle_rejects, self.moved, self.stood_still) = (0, false, false);
        } else if verdict.is_a_rejection(converged) {
            let again = self.last_findings.replace(verdict.effective_findings()) == Some(verdict.effective_findings());
            let idle = self.stood_still && !self.moved && (again || self.idle_rejects == 0);
            self.idle_rejects = if idle { self.idle_rejects.saturating_add(1) } else { 0 };
            (self.moved, self.stood_still) = (false, false);
        }
    }
}
