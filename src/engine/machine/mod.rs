//! The run as a state machine: `decide` determines what happens next, and `evolve` applies what happened. There is no
//! clock, no I/O and no async code here: everything from outside is an input, and everything to be done is an effect.
//! What follows an attempt is in `engine::progress`.

mod waiting;

use super::event::{At, Ending, EventKind};
use super::finished::{Finished, FinishedAgent, Tokens};
use super::input::{Effect, Input, Timer};
use super::outcome::{AttemptOutcome, Cut, Exit, LimitKind, RunOutcome, Sig, WaitReason};
use super::state::{Phase, State};
use crate::agent::ErrorClass;
use crate::chain::{Limit, UsageReport};
use crate::plan::{Plan, PlannedStep};
use crate::verdict::{Decision as Decided, Unclear, VerdictReading};
use std::time::Duration;

/// How long an agent may continue to run after its marker.
const LINGER: Duration = Duration::from_secs(30);

/// The result of an input.
#[derive(Debug)]
pub struct Transition {
    /// The new state: the previous one with the events applied.
    pub state: State,
    /// What happened.
    pub events: Vec<EventKind>,
    /// What has to be done.
    pub effects: Vec<Effect>,
}

impl State {
    /// Decides what follows from the state, the plan and an input. Takes the state by value to avoid a copy, because a
    /// chain may have thousands of steps.
    #[must_use]
    pub fn decide(self, plan: &Plan, input: Input) -> Transition {
        let before = cfg!(debug_assertions).then(|| self.clone());
        let mut decision = Deliberation { state: self, plan, events: Vec::new(), effects: Vec::new() };
        decision.take(input);
        let Deliberation { state, events, effects, .. } = decision;
        debug_assert!(
            before.is_none_or(|before| before.replayed(&events) == state),
            "replaying the events leads to a different state: {events:?}"
        );
        Transition { state, events, effects }
    }

    fn replayed(mut self, events: &[EventKind]) -> Self {
        for event in events {
            self.evolve(event);
        }
        self
    }
}

/// A decision in progress. Each event is applied to the state as soon as it is emitted, so that later conclusions take
/// it into account.
pub(super) struct Deliberation<'a> {
    pub(super) state: State,
    pub(super) plan: &'a Plan,
    pub(super) events: Vec<EventKind>,
    pub(super) effects: Vec<Effect>,
}

impl Deliberation<'_> {
    fn take(&mut self, input: Input) {
        let going = self.state.ending.is_none();
        match (self.state.phase, input) {
            (Phase::Idle, Input::Begin) if self.state.at.is_none() => {
                self.effects.extend(self.plan.limits.time.map(|time| Effect::Arm(Timer::Run, time)));
                self.go_from(0);
            }
            (_, Input::Resume { elapsed_ms, leftovers, attempts, limits, decided, more, tree })
                if decided.is_some() && self.state.waits_for().is_some()
                    || more.is_some() && self.state.is_exhausted()
                    || decided.is_none() && more.is_none() && self.state.may_resume() =>
            {
                let waits_for = self.state.waits_for();
                let forkhestra = env!("CARGO_PKG_VERSION").into();
                let more = more.and_then(|count| self.more(count));
                self.emit(EventKind::RunResumed { forkhestra, attempts, limits, worked_ms: elapsed_ms, more, tree });
                self.interrupt(leftovers);
                match (decided.zip(waits_for), more) {
                    _ if !self.has_time(Duration::from_millis(elapsed_ms)) => {}
                    (Some((verdict, why)), _) => self.decided_by_a_person(verdict, why),
                    (None, Some(more)) => self.go_on_with(more),
                    (None, None) => self.go_on(),
                }
            }
            (Phase::Starting, Input::Prepared(how)) => {
                self.about_attempt(|at| EventKind::AttemptPrepared { at, how });
            }
            (Phase::Starting, Input::Spawned { pid, start_time }) => self.spawned(pid, start_time),
            (Phase::Starting, Input::NotStarted { error: why, busy }) => {
                let error = busy.then(|| why.clone());
                let outcome = match (going, busy) {
                    (false, _) => AttemptOutcome::Interrupted,
                    (true, true) => AttemptOutcome::Unavailable { reason: WaitReason::Machine },
                    (true, false) => AttemptOutcome::NotStarted { error: why },
                };
                self.attempt_over(outcome, Finished { error, ..Finished::default() }, None);
            }
            (Phase::Starting, Input::Parked { limit }) => {
                let outcome = if going { AttemptOutcome::Limited } else { AttemptOutcome::Interrupted };
                let error = Some("not started: another run has reached this usage limit".to_string());
                // Nothing was used, which is not the same as an unknown use.
                let tokens = Some(Tokens::default());
                let agent = FinishedAgent { tokens, usage_limit: Some(limit), ..FinishedAgent::default() };
                let finished = Finished { error, agent, ..Finished::default() };
                self.attempt_over(outcome, finished, None);
            }
            // The agent's output may arrive before the report that its process has started.
            (Phase::Starting | Phase::Running, Input::Marker) if !self.state.marker => self.marker_seen(),
            (Phase::Starting | Phase::Running, Input::MarkerGone) if self.state.marker => {
                self.about_attempt(|at| EventKind::MarkerWithdrawn { at });
            }
            (Phase::Starting | Phase::Running, Input::Used { tokens, said_all }) => self.used(tokens, said_all),
            (Phase::Running, Input::AgentPaused(signal)) => {
                self.about_attempt(|at| EventKind::AttemptPaused { at, signal });
            }
            (Phase::Running, Input::AgentContinued) => self.about_attempt(|at| EventKind::AttemptContinued { at }),
            (Phase::Idle | Phase::Waiting, Input::Signal(signal)) => self.end(Ending::Signal { signal }),
            (Phase::Idle | Phase::Waiting, Input::OutputClosed) => self.end(Ending::OutputClosed),
            (Phase::Starting | Phase::Running, Input::Signal(signal)) => self.stop(Ending::Signal { signal }, signal),
            // Unlike a second signal, this has no effect if the run is already stopping.
            (Phase::Starting | Phase::Running, Input::OutputClosed) if going => {
                self.stop(Ending::OutputClosed, Sig::Term);
            }
            (_, Input::TemplatesEdited { files, accepted: taken, error: why }) => {
                self.emit(EventKind::TemplatesEdited { files, accepted: taken, error: why });
            }
            (_, Input::Message { id, text }) if id > self.state.last_message() => {
                self.emit(EventKind::MessageReceived { id, text });
            }
            (phase, Input::TimeOver(timer)) => self.time_over(phase, timer),
            (phase, Input::Pause) if phase != Phase::Over && !self.state.paused => self.pause(),
            (phase, Input::Continue) if phase != Phase::Over && self.state.paused => {
                self.emit(EventKind::RunContinued);
                if self.state.has_process() {
                    self.effects.push(Effect::ContinueAgent);
                }
            }
            (Phase::Starting | Phase::Running, Input::Exited { exit, finished, verdict: said }) => {
                // The program was given what was left of the cost limit, and stopped when it had used that up.
                if finished.agent.error_class == Some(ErrorClass::Turns)
                    && let Some(limit @ LimitKind::Cost) = self.limit_reached()
                    && going
                {
                    self.emit(EventKind::RunStopping { reason: Ending::Limit { limit }, signal: None });
                }
                let said = self.held_against(exit, &finished, said);
                let outcome = self.outcome(exit, &finished, said.as_ref());
                self.attempt_over(outcome, *finished, said);
            }
            // Late timers, repeated markers, anything after the end.
            _ => {}
        }
    }

    pub(super) fn emit(&mut self, event: EventKind) {
        self.state.evolve(&event);
        self.events.push(event);
    }

    fn about_attempt(&mut self, event: impl FnOnce(At) -> EventKind) {
        if let Some(at) = self.state.at.clone() {
            self.emit(event(at));
        }
    }

    pub(super) fn step(&self, number: u32) -> Option<&PlannedStep> {
        self.plan.step(number)
    }

    /// Returns a step as its current attempt is run.
    pub(super) fn step_as_run(&self, number: u32) -> Option<&PlannedStep> {
        self.step(number).map(|step| step.variant(self.state.variant(number)))
    }

    /// Returns whether the current attempt belongs to a loop, which ends when its agent prints the marker.
    fn in_loop(&self) -> bool {
        self.state.at.as_ref().and_then(|at| self.step(at.step)).is_some_and(PlannedStep::is_loop)
    }

    pub(super) fn finish(&mut self, outcome: RunOutcome) {
        self.emit(EventKind::RunFinished { outcome });
        self.effects.push(Effect::Finish(outcome));
    }

    // While an attempt runs.

    fn spawned(&mut self, pid: i32, start_time: u64) {
        let Some(at) = self.state.at.clone() else { return };
        let times = self.step_as_run(at.step).map_or([(Timer::Timeout, None); 3], |step| {
            [(Timer::Timeout, step.timeout), (Timer::Idle, step.idle_timeout), (Timer::Start, step.start_timeout)]
        });
        self.emit(EventKind::AttemptStarted { at, pid, start_time });
        self.effects.extend(times.into_iter().filter_map(|(timer, time)| Some(Effect::Arm(timer, time?))));
        if self.state.marker && self.in_loop() {
            self.effects.push(Effect::Arm(Timer::Linger, LINGER));
        }
        // A signal arrived while the process was being started.
        if let Some(last_signal) = self.state.last_signal {
            self.send(last_signal);
        }
    }

    fn marker_seen(&mut self) {
        self.about_attempt(|at| EventKind::MarkerSeen { at });
        if self.in_loop() && self.state.phase == Phase::Running {
            self.effects.push(Effect::Arm(Timer::Linger, LINGER));
        }
    }

    fn used(&mut self, tokens: Tokens, said_all: bool) {
        if tokens != self.state.spending() {
            self.about_attempt(|at| EventKind::UsageReported { at, tokens });
        }
        if let Some(limit @ (LimitKind::Cost | LimitKind::Tokens)) = self.limit_reached()
            && self.state.ending.is_none()
            && !said_all
            && !self.is_told_at_the_end(limit)
        {
            self.stop(Ending::Limit { limit }, Sig::Term);
        }
    }

    /// Returns whether the current program reports what counts for this limit only when it ends. It is then not
    /// stopped, and the attempt counts.
    fn is_told_at_the_end(&self, limit: LimitKind) -> bool {
        let step = self.state.at.as_ref().and_then(|at| self.step_as_run(at.step));
        step.and_then(PlannedStep::accounting).is_some_and(|accounting| {
            UsageReport::AtTheEnd == if limit == LimitKind::Cost { accounting.cost } else { accounting.tokens }
        })
    }

    /// Returns the limit that prevents another attempt.
    pub(super) fn limit_reached(&self) -> Option<LimitKind> {
        let (limits, used) = (&self.plan.limits, self.state.billed());
        let cost = used.cost_usd.unwrap_or(0.0);
        [
            (limits.cost.is_some_and(|most| cost >= most), LimitKind::Cost),
            (limits.tokens.is_some_and(|most| used.total() >= most), LimitKind::Tokens),
            (limits.attempts.is_some_and(|most| self.state.charged >= most), LimitKind::Attempts),
        ]
        .into_iter()
        .find_map(|(reached, limit)| reached.then_some(limit))
    }

    /// Makes an approval or a skip unclear if the judge's program failed.
    fn held_against(&self, exit: Exit, finished: &Finished, said: Option<VerdictReading>) -> Option<VerdictReading> {
        let step = self.state.at.as_ref().map_or(0, |at| at.step);
        let code = match exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        };
        match said {
            Some(VerdictReading::Clear(verdict))
                if verdict.decision.passes()
                    && self.is_judge(step)
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
    fn outcome(&self, exit: Exit, finished: &Finished, said: Option<&VerdictReading>) -> AttemptOutcome {
        let step = self.state.at.as_ref().map_or(0, |at| at.step);
        let judge = self.is_judge(step);
        // Outside of groups, a judge with a count is also completed by its marker if it gives no verdict at all.
        let marked = judge && self.state.marker && self.counts_alone(step) && is_silent(said);
        let unclear =
            judge && !marked && !matches!(said, Some(VerdictReading::Clear(_))) || self.is_not_done(step, said);
        // In a loop, a worker's `done` or `submit` has the same effect as the marker.
        let decided = matches!(said, Some(VerdictReading::Clear(_)));
        let done = (self.state.marker || decided) && self.in_loop();
        if !finished.agent.voided.is_empty() && self.state.ending.is_none() && !self.is_judge(step) {
            return AttemptOutcome::Voided;
        }
        // A reject or a dispute counts, however the program ended.
        let objects = matches!(said, Some(VerdictReading::Clear(verdict)) if self.is_objection(step, verdict.decision));
        let futile = finished.agent.tokens.is_some_and(|tokens| tokens.total() > 0) && self.state.waits.is_futile();
        let failed_verdict = matches!(said, Some(VerdictReading::Unclear(Unclear::ExitCode { .. })));
        match (self.state.ending, self.state.cut, exit) {
            (None, ..) if objects => AttemptOutcome::Completed,
            (None, None, _) if failed_verdict => AttemptOutcome::Unfinished,
            (Some(Ending::Limit { .. }), ..) | (None, Some(_), _) if done => AttemptOutcome::Completed,
            (Some(_), ..) => AttemptOutcome::Interrupted,
            (None, Some(Cut::Timeout | Cut::Lingering), _) => AttemptOutcome::TimedOut,
            (None, Some(Cut::Start), _) if self.state.waits.may_start_again() => {
                AttemptOutcome::Unavailable { reason: WaitReason::Start }
            }
            // It reported an outage of its service, so it was probably waiting for that.
            (None, Some(Cut::Idle), _) if !futile && finished.agent.error_class.is_some_and(ErrorClass::is_outage) => {
                AttemptOutcome::Unavailable { reason: WaitReason::Service }
            }
            (None, Some(Cut::Idle | Cut::Start), _) => AttemptOutcome::Idle,
            (None, None, Exit::Code(0)) if finished.error.is_none() && unclear => AttemptOutcome::Unfinished,
            (None, None, Exit::Code(0)) if finished.error.is_none() && (done || !self.in_loop()) => {
                AttemptOutcome::Completed
            }
            _ if finished.agent.usage_limit.as_ref().is_some_and(|limit| limit.resets_at.is_some() || !futile) => {
                AttemptOutcome::Limited
            }
            _ if finished.agent.error_class == Some(ErrorClass::Credentials) && self.login_has_worked(step) => {
                AttemptOutcome::Unavailable { reason: WaitReason::Login }
            }
            _ if finished.agent.error_class.is_some_and(ErrorClass::is_outage) && !futile => {
                AttemptOutcome::Unavailable { reason: WaitReason::Service }
            }
            // It was to continue a session, and has not said a word to its service.
            (None, None, Exit::Code(_)) if self.state.continues(step) && finished.agent.lost_session.is_some() => {
                AttemptOutcome::Unavailable { reason: WaitReason::Session }
            }
            (None, None, Exit::Signal(signal)) => AttemptOutcome::Crashed { signal },
            (None, None, Exit::Code(0)) if finished.error.is_some() => AttemptOutcome::Errored,
            (None, None, Exit::Code(0)) => AttemptOutcome::Unfinished,
            (None, None, Exit::Code(code)) => AttemptOutcome::Failed { code },
        }
    }

    /// Returns whether a verdict objects to the work: a reject by a judge, or a dispute by any agent.
    fn is_objection(&self, step: u32, decision: Decided) -> bool {
        decision == Decided::Dispute || decision == Decided::Reject && self.is_judge(step)
    }

    /// Returns whether a step has a count and is outside of groups.
    fn counts_alone(&self, step: u32) -> bool {
        self.group_of(step).is_none() && self.step(step).is_some_and(|step| step.limit != Limit::Once)
    }

    fn pause(&mut self) {
        self.emit(EventKind::RunPaused);
        if self.state.has_process() {
            self.effects.push(Effect::PauseAgent);
        }
        self.effects.push(Effect::StandStill);
    }

    // Stopping.

    pub(super) fn end(&mut self, why: Ending) {
        if self.state.ending.is_none() {
            self.emit(EventKind::RunStopping { reason: why, signal: None });
        }
        self.finish_ended();
    }

    pub(super) fn finish_ended(&mut self) {
        match self.state.ending {
            Some(Ending::Signal { signal }) => self.finish(RunOutcome::Interrupted { signal }),
            Some(Ending::Limit { limit }) => self.finish(RunOutcome::LimitReached { limit }),
            Some(Ending::OutputClosed) | None => self.finish(RunOutcome::OutputClosed),
        }
    }

    /// Stops the running attempt. The first signal is passed on unchanged. If the run is already stopping, for whatever
    /// reason, a signal kills at once.
    fn stop(&mut self, why: Ending, signal: Sig) {
        let with = if self.state.ending.is_some() { Sig::Kill } else { signal };
        self.emit(EventKind::RunStopping { reason: why, signal: Some(with) });
        if self.state.phase == Phase::Running {
            self.send(with);
        }
    }

    fn send(&mut self, signal: Sig) {
        self.effects.push(Effect::Signal(signal));
        if signal != Sig::Kill {
            self.effects.push(Effect::Arm(Timer::Grace, self.plan.limits.grace));
        }
    }

    fn time_over(&mut self, phase: Phase, timer: Timer) {
        let going = self.state.ending.is_none();
        match (phase, timer) {
            (Phase::Running, Timer::Grace) => self.grace_over(),
            (Phase::Running, Timer::Timeout) if going && self.state.cut.is_none() => self.cut(Cut::Timeout, Sig::Term),
            (Phase::Running, Timer::Idle) if going && self.state.cut.is_none() => self.cut(Cut::Idle, Sig::Term),
            (Phase::Running, Timer::Start) if going && self.state.cut.is_none() => self.cut(Cut::Start, Sig::Term),
            (Phase::Running, Timer::Linger) if going && self.state.cut.is_none() && self.state.marker => {
                self.cut(Cut::Lingering, Sig::Term);
            }
            (Phase::Waiting, Timer::Wait) => self.try_again(),
            (Phase::Starting | Phase::Running, Timer::Run) if going => {
                self.stop(Ending::Limit { limit: LimitKind::Time }, Sig::Term);
            }
            (Phase::Idle | Phase::Waiting, Timer::Run) => self.end(Ending::Limit { limit: LimitKind::Time }),
            _ => {}
        }
    }

    /// Sends the next, stronger signal: TERM after HUP or INT, KILL after TERM.
    fn grace_over(&mut self) {
        let Some(last_signal) = self.state.last_signal else { return };
        let next = match last_signal {
            Sig::Hup | Sig::Int => Sig::Term,
            Sig::Term | Sig::Kill => Sig::Kill,
        };
        match (self.state.ending, self.state.cut) {
            (Some(why), _) => {
                self.emit(EventKind::RunStopping { reason: why, signal: Some(next) });
                self.send(next);
            }
            (None, Some(why)) => self.cut(why, next),
            (None, None) => {}
        }
    }

    /// Stops the attempt because one of its time limits has expired. The run continues after it.
    fn cut(&mut self, why: Cut, with: Sig) {
        let Some(at) = self.state.at.clone() else { return };
        self.emit(EventKind::AttemptTimedOut { at, reason: why, signal: with });
        self.send(with);
    }
}

fn is_silent(said: Option<&VerdictReading>) -> bool {
    matches!(said, None | Some(VerdictReading::Unclear(Unclear::Nothing)))
}

#[cfg(test)]
mod judgement_tests;
#[cfg(test)]
pub(crate) mod tests;
