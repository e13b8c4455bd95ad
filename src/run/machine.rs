//! The run as a decider: `decide` says what happens next, `evolve` remembers what happened. No clock, no I/O, no async:
//! everything from outside is an input, everything to be done is an effect.

use super::event::{At, Ending, EventKind, Feedback, FeedbackCause, Finished};
use super::outcome::{AttemptOutcome, Cut, Exit, RunOutcome, Sig};
use crate::chain::{Limit, Op};
use crate::plan::{Kind, Plan, PlannedStep};
use std::time::Duration;

/// How often an agent that fails in a group is tried again in place (DESIGN.md, "The language").
const RETRIES: u32 = 3;

/// Something from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Go.
    Begin,
    /// The process runs.
    Spawned {
        /// The agent's.
        pid: i32,
        /// Its start time.
        start_time: u64,
    },
    /// The process could not be started.
    NotStarted {
        /// What the operating system said.
        why: String,
    },
    /// The marker was seen.
    Marker,
    /// One of the attempt's times is over.
    TimeOver(Cut),
    /// The grace time is over.
    GraceOver,
    /// We were sent a signal.
    Signal(Sig),
    /// Our standard output is closed.
    OutputClosed,
    /// The process exited and its tree is gone.
    Exited {
        /// How.
        exit: Exit,
        /// What else is known.
        finished: Finished,
    },
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start this attempt.
    Spawn {
        /// Which.
        at: At,
        /// What its prompt is told about the last round.
        feedback: Option<Feedback>,
    },
    /// Send this to the agent's tree.
    Signal(Sig),
    /// Give the attempt these times, in all and silent, then say so.
    ArmTimers {
        /// In all.
        timeout: Option<Duration>,
        /// Silent and idle.
        idle: Option<Duration>,
    },
    /// Give the grace time, then say so.
    ArmGrace,
    /// The run is over.
    Finish(RunOutcome),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Starting,
    Running,
    Over,
}

/// What is remembered of a run; a fold of its events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    phase: Phase,
    /// The current attempt.
    at: Option<At>,
    retry: u32,
    marker: bool,
    /// Why the attempt is being ended while the run goes on.
    cut: Option<Cut>,
    /// Why the run ends, once it does, and the last signal that was sent for it.
    ending: Option<Ending>,
    rung: Option<Sig>,
    /// Attempts by step, rounds and feedback by group.
    attempts: Vec<u32>,
    rounds: Vec<u32>,
    feedback: Vec<Option<Feedback>>,
}

/// Sets an element of a list that grows as needed.
fn set<T: Clone + Default>(list: &mut Vec<T>, number: u32, value: T) {
    let index = number as usize - 1;
    if list.len() <= index {
        list.resize(index + 1, T::default());
    }
    list[index] = value;
}

impl State {
    /// Whether the run is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Remembers. Total, infallible, and the only place where state changes.
    pub fn evolve(&mut self, event: &EventKind) {
        match event {
            EventKind::RunStarted { .. } | EventKind::StepSucceeded { .. } => {}
            EventKind::RoundStarted { group, round, .. } => {
                set(&mut self.rounds, *group, *round);
                if *round == 1 {
                    set(&mut self.feedback, *group, None);
                }
            }
            EventKind::AttemptPlanned { at, retry, .. } => {
                self.phase = Phase::Starting;
                set(&mut self.attempts, at.step, at.attempt);
                self.at = Some(at.clone());
                self.retry = *retry;
                self.marker = false;
                self.cut = None;
                self.rung = None;
            }
            EventKind::AttemptStarted { .. } => self.phase = Phase::Running,
            EventKind::MarkerSeen { .. } => self.marker = true,
            EventKind::Terminating { why, with } => {
                self.ending.get_or_insert(*why);
                self.rung = with.or(self.rung);
            }
            EventKind::AttemptTimedOut { why, with, .. } => {
                self.cut = Some(*why);
                self.rung = Some(*with);
            }
            EventKind::AttemptFinished { .. } => self.phase = Phase::Idle,
            EventKind::RoundFinished { group, ended_by, .. } => set(&mut self.feedback, *group, ended_by.clone()),
            EventKind::RunFinished { .. } => self.phase = Phase::Over,
        }
    }

    /// Decides. Reads what is remembered and what was planned; says what happened and what to do about it.
    #[must_use]
    pub fn decide(&self, plan: &Plan, input: Input) -> (Vec<EventKind>, Vec<Effect>) {
        let mut decision = Decision { state: self.clone(), plan, events: Vec::new(), effects: Vec::new() };
        decision.take(input);
        (decision.events, decision.effects)
    }

    fn round_of(&self, group: usize) -> u32 {
        self.rounds.get(group).copied().unwrap_or(1)
    }
}

/// A decision in the making: its own copy of the state evolves with every event, so that a later conclusion knows the
/// earlier ones.
struct Decision<'a> {
    state: State,
    plan: &'a Plan,
    events: Vec<EventKind>,
    effects: Vec<Effect>,
}

impl Decision<'_> {
    fn take(&mut self, input: Input) {
        match (self.state.phase, input) {
            (Phase::Idle, Input::Begin) if self.state.at.is_none() => self.go_from(0),
            (Phase::Starting, Input::Spawned { pid, start_time }) => self.spawned(pid, start_time),
            (Phase::Starting, Input::NotStarted { why }) => {
                let outcome = if self.state.ending.is_some() {
                    AttemptOutcome::Interrupted
                } else {
                    AttemptOutcome::NotStarted { why }
                };
                self.attempt_over(outcome, Finished::default());
            }
            // Its words may overtake the word that it runs.
            (Phase::Starting | Phase::Running, Input::Marker) if !self.state.marker => {
                if let Some(at) = self.state.at.clone() {
                    self.emit(EventKind::MarkerSeen { at });
                }
            }
            (Phase::Idle, Input::Signal(signal)) => self.end(Ending::Asked { signal }),
            (Phase::Idle, Input::OutputClosed) => self.end(Ending::OutputClosed),
            (Phase::Starting | Phase::Running, Input::Signal(signal)) => self.stop(Ending::Asked { signal }, signal),
            // A second reason changes nothing, a second signal does.
            (Phase::Starting | Phase::Running, Input::OutputClosed) if self.state.ending.is_none() => {
                self.stop(Ending::OutputClosed, Sig::Term);
            }
            (Phase::Running, Input::TimeOver(why)) if self.state.ending.is_none() && self.state.cut.is_none() => {
                self.cut(why, Sig::Term);
            }
            (Phase::Running, Input::GraceOver) => self.grace_over(),
            (Phase::Starting | Phase::Running, Input::Exited { exit, finished }) => {
                let outcome = self.outcome(exit, &finished);
                self.attempt_over(outcome, finished);
            }
            // Late timers, repeated markers, anything after the end.
            _ => {}
        }
    }

    fn emit(&mut self, event: EventKind) {
        self.state.evolve(&event);
        self.events.push(event);
    }

    fn finish(&mut self, outcome: RunOutcome) {
        self.emit(EventKind::RunFinished { outcome });
        self.effects.push(Effect::Finish(outcome));
    }

    // Ending.

    fn end(&mut self, why: Ending) {
        if self.state.ending.is_none() {
            self.emit(EventKind::Terminating { why, with: None });
        }
        self.finish_ended();
    }

    fn finish_ended(&mut self) {
        match self.state.ending {
            Some(Ending::Asked { signal }) => self.finish(RunOutcome::Interrupted { signal }),
            _ => self.finish(RunOutcome::OutputClosed),
        }
    }

    /// The first signal is passed on as it came; a second one means now (V-01, V-02).
    fn stop(&mut self, why: Ending, signal: Sig) {
        let with = if self.state.ending.is_some() { Sig::Kill } else { signal };
        self.emit(EventKind::Terminating { why, with: Some(with) });
        if self.state.phase == Phase::Running {
            self.send(with);
        }
    }

    fn send(&mut self, signal: Sig) {
        self.effects.push(Effect::Signal(signal));
        if signal != Sig::Kill {
            self.effects.push(Effect::ArmGrace);
        }
    }

    /// The ladder: what was asked, then TERM, then KILL.
    fn grace_over(&mut self) {
        let Some(rung) = self.state.rung else { return };
        let next = match rung {
            Sig::Hup | Sig::Int => Sig::Term,
            Sig::Term | Sig::Kill => Sig::Kill,
        };
        match (self.state.ending, self.state.cut) {
            (Some(why), _) => {
                self.emit(EventKind::Terminating { why, with: Some(next) });
                self.send(next);
            }
            (None, Some(why)) => self.cut(why, next),
            (None, None) => {}
        }
    }

    /// One of the attempt's times is over; the run goes on after it.
    fn cut(&mut self, why: Cut, with: Sig) {
        let Some(at) = self.state.at.clone() else { return };
        self.emit(EventKind::AttemptTimedOut { at, why, with });
        self.send(with);
    }

    fn spawned(&mut self, pid: i32, start_time: u64) {
        let Some(at) = self.state.at.clone() else { return };
        let timers =
            self.step(at.step).map(|step| Effect::ArmTimers { timeout: step.timeout, idle: step.idle_timeout });
        self.emit(EventKind::AttemptStarted { at, pid, start_time });
        self.effects.extend(timers);
        // Asked to stop while the process was being born.
        if let Some(rung) = self.state.rung {
            self.send(rung);
        }
    }

    // Attempts.

    fn step(&self, number: u32) -> Option<&PlannedStep> {
        self.plan.steps.get(number as usize - 1)
    }

    fn outcome(&self, exit: Exit, finished: &Finished) -> AttemptOutcome {
        if self.state.ending.is_some() {
            return AttemptOutcome::Interrupted;
        }
        let looped =
            self.state.at.as_ref().and_then(|at| self.step(at.step)).is_some_and(|step| step.limit != Limit::Once);
        match exit {
            // The marker counts, whatever came after it (V-22).
            _ if self.state.cut.is_some() && self.state.marker && looped => AttemptOutcome::Completed,
            _ if self.state.cut == Some(Cut::Timeout) => AttemptOutcome::TimedOut,
            _ if self.state.cut == Some(Cut::Idle) => AttemptOutcome::Idle,
            Exit::Signal(signal) => AttemptOutcome::Crashed { signal },
            Exit::Code(0) if finished.error.is_some() => AttemptOutcome::Errored,
            Exit::Code(0) if self.state.marker || !looped => AttemptOutcome::Completed,
            Exit::Code(0) => AttemptOutcome::Unfinished,
            Exit::Code(code) => AttemptOutcome::Failed { code },
        }
    }

    fn attempt_over(&mut self, outcome: AttemptOutcome, finished: Finished) {
        let Some(at) = self.state.at.clone() else { return };
        let marker = self.state.marker;
        self.emit(EventKind::AttemptFinished { at: at.clone(), outcome: outcome.clone(), marker, finished });
        if self.state.ending.is_some() {
            return self.finish_ended();
        }
        let Some(step) = self.step(at.step) else { return };
        let not_started = matches!(outcome, AttemptOutcome::NotStarted { .. });
        match &step.kind {
            _ if outcome == AttemptOutcome::Completed => self.step_succeeded(at),
            Kind::Check { optional: true, .. } if !not_started => self.step_succeeded(at),
            Kind::Check { .. } if !not_started => {
                let cause = FeedbackCause::CheckFailed { outcome };
                self.round_over(&Feedback { from: at, cause });
            }
            Kind::Agent { .. } if step.limit != Limit::Once && !not_started => {
                let iterations = step.iterations();
                if at.iteration < iterations {
                    let next = at.iteration + 1;
                    self.plan_attempt(at.step, next, 0);
                } else {
                    let cause = FeedbackCause::Exhausted { iterations };
                    self.round_over(&Feedback { from: at, cause });
                }
            }
            Kind::Agent { .. } if !not_started && self.group_of(at.step).is_some() && self.state.retry < RETRIES => {
                let retry = self.state.retry + 1;
                self.plan_attempt(at.step, at.iteration, retry);
            }
            _ => self.finish(RunOutcome::Failed { step: at.step }),
        }
    }

    fn step_succeeded(&mut self, at: At) {
        let after = self.plan.program.ops.iter().position(|op| *op == Op::Step(at.step as usize - 1));
        self.emit(EventKind::StepSucceeded { at });
        self.go_from(after.map_or(usize::MAX, |op| op + 1));
    }

    /// The round of the innermost group ends; a group at its last round ends the round around it.
    fn round_over(&mut self, feedback: &Feedback) {
        let mut group = self.group_of(feedback.from.step);
        while let Some(index) = group {
            let span = self.plan.program.groups[index];
            let round = self.state.round_of(index);
            let number = number(index);
            self.emit(EventKind::RoundFinished { group: number, round, ended_by: Some(feedback.clone()) });
            if round < span.rounds {
                self.emit(EventKind::RoundStarted { group: number, round: round + 1, rounds: span.rounds });
                return self.go_from(span.enter + 1);
            }
            group = span.parent;
        }
        let step = feedback.from.step;
        self.finish(match feedback.cause {
            FeedbackCause::CheckFailed { .. } if self.group_of(step).is_none() => RunOutcome::Failed { step },
            _ => RunOutcome::Exhausted { step },
        });
    }

    /// Walks the program from `op` to the next step, or to the end.
    fn go_from(&mut self, mut op: usize) {
        loop {
            match self.plan.program.ops.get(op).copied() {
                None => return self.finish(RunOutcome::Succeeded),
                Some(Op::Step(index)) => return self.plan_attempt(number(index), 1, 0),
                Some(Op::Enter(index)) => {
                    let rounds = self.plan.program.groups[index].rounds;
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

    fn plan_attempt(&mut self, step: u32, iteration: u32, retry: u32) {
        let Some(planned) = self.step(step) else { return };
        let (name, limit) = (planned.name.clone(), planned.limit);
        let attempts = self.state.attempts.get(step as usize - 1).copied().unwrap_or(0);
        let group = self.group_of(step);
        let round = group.map_or(1, |group| self.state.round_of(group));
        let at = At { step, name, round, iteration, attempt: attempts + 1, lane: 1 };
        let feedback = self.feedback_for(group);
        let iterations = match limit {
            Limit::Once => None,
            Limit::UpTo(count) => Some(count.get()),
        };
        self.emit(EventKind::AttemptPlanned { at: at.clone(), iterations, retry, feedback: feedback.clone() });
        self.effects.push(Effect::Spawn { at, feedback });
    }

    fn group_of(&self, step: u32) -> Option<usize> {
        self.plan.program.step_group.get(step as usize - 1).copied().flatten()
    }

    /// What the innermost group has to tell, else the one around it.
    fn feedback_for(&self, mut group: Option<usize>) -> Option<Feedback> {
        while let Some(index) = group {
            if let Some(Some(feedback)) = self.state.feedback.get(index) {
                return Some(feedback.clone());
            }
            group = self.plan.program.groups[index].parent;
        }
        None
    }
}

/// Numbers count from 1 where people see them.
#[expect(clippy::cast_possible_truncation, reason = "a chain of a mebibyte has no four billion steps")]
fn number(index: usize) -> u32 {
    index as u32 + 1
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
