//! A decision in progress: what every rule of the machine reads, and how it says what follows.

use crate::chain::Role;
use crate::engine::event::{At, Ending, EventKind};
use crate::engine::evolve::evolve;
use crate::engine::input::{Effect, Timer};
use crate::engine::outcome::{LimitKind, RunOutcome, Sig};
use crate::engine::state::State;
use crate::plan::{Plan, PlannedStep};

/// A decision in progress. Each event is applied to the state as soon as it is emitted, so that later conclusions take
/// it into account.
pub(super) struct Deliberation<'a> {
    pub(super) state: State,
    pub(super) plan: &'a Plan,
    pub(super) events: Vec<EventKind>,
    pub(super) effects: Vec<Effect>,
}

impl Deliberation<'_> {
    /// Applies an event to the state, and adds it to what has happened.
    pub(super) fn emit(&mut self, event: EventKind) {
        evolve(&mut self.state, &event);
        self.events.push(event);
    }

    /// Emits an event about the current attempt.
    pub(super) fn about_attempt(&mut self, event: impl FnOnce(At) -> EventKind) {
        if let Some(at) = self.state.at.clone() {
            self.emit(event(at));
        }
    }

    /// Returns a step as its current attempt is run.
    pub(super) fn step_as_run(&self, number: u32) -> Option<&PlannedStep> {
        self.plan.step(number).map(|step| step.variant(self.state.variant(number)))
    }

    /// Returns whether the current attempt belongs to a loop, which ends when its agent prints the marker.
    pub(super) fn in_loop(&self) -> bool {
        self.state.at.as_ref().and_then(|at| self.plan.step(at.step)).is_some_and(PlannedStep::is_loop)
    }

    pub(super) fn is_judge(&self, step: u32) -> bool {
        self.plan.step(step).is_some_and(|step| step.role() == Some(Role::Judge))
    }

    /// Returns the maximum number of rounds of a group.
    pub(super) fn rounds(&self, group: usize) -> u32 {
        self.plan.program.groups[group].rounds.saturating_add(self.state.more_rounds(group))
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

    /// Ends the run.
    pub(super) fn finish(&mut self, outcome: RunOutcome) {
        self.emit(EventKind::RunFinished { outcome });
        self.effects.push(Effect::Finish(outcome));
    }

    /// Ends the run for a reason from outside, unless it is already ending for another one.
    pub(super) fn end(&mut self, why: Ending) {
        if self.state.ending.is_none() {
            self.emit(EventKind::RunStopping { reason: why, signal: None });
        }
        self.finish_ended();
    }

    /// Ends a run that is stopping.
    pub(super) fn finish_ended(&mut self) {
        match self.state.ending {
            Some(Ending::Signal { signal }) => self.finish(RunOutcome::Interrupted { signal }),
            Some(Ending::Limit { limit }) => self.finish(RunOutcome::LimitReached { limit }),
            Some(Ending::OutputClosed) | None => self.finish(RunOutcome::OutputClosed),
        }
    }

    /// Sends a signal to the attempt, and starts the time after which a stronger one follows.
    pub(super) fn send(&mut self, signal: Sig) {
        self.effects.push(Effect::Signal(signal));
        if signal != Sig::Kill {
            self.effects.push(Effect::Arm(Timer::Grace, self.plan.limits.grace));
        }
    }
}
