//! How a run handles the signals that it receives.

use super::context::Failure;
use super::driver::Driver;
use super::flush::{sleep, written};
use super::signals::ReceivedSignal;
use crate::engine::{At, Effect, Input, Timer, UsageLimit};
use crate::plan::Kind;
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// How long writing the pending output before a stop may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

impl Driver<'_> {
    /// Handles a signal.
    pub(super) fn hear(&mut self, heard: ReceivedSignal) -> Result<Vec<Effect>, Failure> {
        if heard == ReceivedSignal::Continue {
            self.timers.resume(Instant::now());
        }
        Ok(self.take(heard.input())?)
    }

    /// Stops every timer and this process, once the pending output is written. The signal to continue is received
    /// afterwards, even if it arrived earlier.
    pub(super) async fn stand_still(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        while !self.context.observer.is_idle() && Instant::now() < until {
            tokio::select! {
                written = written(self.context.observer) => if let Err(error) = written {
                    self.output_error.get_or_insert(error);
                },
                () = sleep(Some(until)) => {}
            }
        }
        self.timers.pause(Instant::now());
        // In a lane this does nothing: the listener that passes signals on stops the whole process.
        self.signals.stop();
    }

    /// Returns why an attempt cannot start: a signal or the end of the time, or a usage limit that another run of the
    /// batch has reached.
    pub(super) async fn obstacle(&mut self, at: &At) -> Result<Option<Input>, Failure> {
        if !self.may_start().await? {
            return Ok(Some(Input::NotStarted { error: "interrupted".into(), busy: false }));
        }
        // A step with several backends continues with another one.
        let Some(step) = self.context.plan.step(at.step).filter(|step| step.variants.is_empty()) else {
            return Ok(None);
        };
        let Kind::Agent { backend: Some(backend), .. } = &step.kind else { return Ok(None) };
        let now = self.context.world.moment();
        let until = crate::world::parked_until(self.context.world, backend)
            .and_then(|until| Timestamp::from_millisecond(until).ok());
        Ok(until.filter(|until| *until > now).map(|until| {
            let left = until.as_millisecond().saturating_sub(now.as_millisecond());
            let limit = UsageLimit {
                resets_at: Some(format!("{until:.0}")),
                resets_in_ms: u64::try_from(left).ok(),
                ..UsageLimit::default()
            };
            Input::Parked { limit }
        }))
    }

    /// Handles the signals that arrived while nothing ran, pauses included. Returns whether an attempt may start.
    async fn may_start(&mut self) -> Result<bool, Failure> {
        let mut next = self.signals.pending().await;
        while let Some(heard) = next {
            let effects = self.hear(heard)?;
            if let ReceivedSignal::End(_) = heard {
                self.context.observer.stop_pacing();
                return Ok(false);
            }
            if effects.contains(&Effect::StandStill) {
                self.stand_still().await;
            }
            next = if self.timers.is_paused() { Some(self.signals.next().await) } else { self.signals.pending().await };
        }
        if self.timers.left(Timer::Run, Instant::now()).is_some_and(|left| left.is_zero()) {
            self.timers.disarm(Timer::Run);
            self.take(Input::TimeOver(Timer::Run))?;
            return Ok(false);
        }
        // An observer that accepts no more events has ended the run.
        Ok(self.output_error.is_none())
    }
}
