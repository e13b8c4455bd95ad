//! The signals that a run handles. A signal that was ignored when forkhestra was started stays ignored (nohup).

use super::attempt::sleep;
use super::context::Failure;
use super::driver::{Driver, written};
use crate::engine::{At, Effect, Input, Sig, Timer, UsageLimit};
use crate::plan::Kind;
use crate::proc::{Interrupts, StopRequests};
use jiff::Timestamp;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How long writing the pending output before a stop may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedSignal {
    /// To end the run.
    End(Sig),
    /// To pause the run (Ctrl-Z).
    Pause,
    /// To continue after a pause.
    Continue,
}

impl ReceivedSignal {
    pub(super) fn input(self) -> Input {
        match self {
            Self::End(signal) => Input::Signal(signal),
            Self::Pause => Input::Pause,
            Self::Continue => Input::Continue,
        }
    }
}

/// A stream of the signals that this process receives.
#[derive(Debug)]
pub struct Signals {
    streams: Vec<(ReceivedSignal, Signal)>,
    stops: Option<AsyncFd<StopRequests>>,
    /// Signals that another listener passes on.
    passed_on: Option<UnboundedReceiver<ReceivedSignal>>,
}

impl Signals {
    /// Starts to listen, until the process ends: tokio never restores the disposition of a signal.
    ///
    /// # Errors
    /// When a signal cannot be listened to.
    pub fn listen(ignored: impl Fn(i32) -> bool) -> io::Result<Self> {
        // Must come first: from here on, a signal that arrives before the streams exist, or between two runs of a
        // queue, is remembered.
        Interrupts::end_questions(&ignored)?;
        let mut streams = Vec::new();
        for (heard, kind) in [
            (ReceivedSignal::End(Sig::Int), SignalKind::interrupt()),
            (ReceivedSignal::End(Sig::Term), SignalKind::terminate()),
            (ReceivedSignal::End(Sig::Hup), SignalKind::hangup()),
            (ReceivedSignal::Continue, SignalKind::from_raw(rustix::process::Signal::CONT.as_raw())),
        ] {
            if !ignored(kind.as_raw_value()) {
                streams.push((heard, signal(kind)?));
            }
        }
        let stops = (!ignored(rustix::process::Signal::TSTP.as_raw())).then(|| StopRequests::listen()?.watched());
        Ok(Self { streams, stops: stops.transpose()?, passed_on: None })
    }

    /// Receives the signals that another listener passes on.
    pub(super) fn passed_on(heard: UnboundedReceiver<ReceivedSignal>) -> Self {
        Self { streams: Vec::new(), stops: None, passed_on: Some(heard) }
    }

    /// Returns the next signal. Cancel-safe.
    pub async fn next(&mut self) -> ReceivedSignal {
        poll_fn(|context| {
            if let Some(signal) = self.next_end() {
                return Poll::Ready(ReceivedSignal::End(signal));
            }
            for (heard, stream) in &mut self.streams {
                while stream.poll_recv(context).is_ready() {
                    if *heard == ReceivedSignal::Continue {
                        return Poll::Ready(ReceivedSignal::Continue);
                    }
                }
            }
            // The streams only wake us: a signal that arrived before they existed is received as well.
            if let Some(signal) = self.next_end() {
                return Poll::Ready(ReceivedSignal::End(signal));
            }
            if self.asked_to_stop(context) {
                return Poll::Ready(ReceivedSignal::Pause);
            }
            if let Some(Poll::Ready(Some(heard))) = self.passed_on.as_mut().map(|heard| heard.poll_recv(context)) {
                return Poll::Ready(heard);
            }
            Poll::Pending
        })
        .await
    }

    fn next_end(&self) -> Option<Sig> {
        self.passed_on.is_none().then(Interrupts::take_signal)?.and_then(Sig::of_number)
    }

    /// Whether a stop was requested that has not been received yet, and that no SIGCONT has revoked.
    fn asked_to_stop(&self, context: &mut Context<'_>) -> bool {
        let Some(stops) = &self.stops else { return false };
        while let Poll::Ready(Ok(mut guard)) = stops.poll_read_ready(context) {
            guard.clear_ready();
            if stops.get_ref().is_pending() {
                return true;
            }
        }
        false
    }

    /// Stops this process if a stop is still requested. The SIGCONT that continues it is received afterwards.
    pub fn stop(&self) {
        if let Some(stops) = &self.stops {
            stops.get_ref().obey();
        }
    }

    /// Returns a signal that has already arrived, if there is one.
    pub(super) async fn pending(&mut self) -> Option<ReceivedSignal> {
        tokio::select! {
            biased;
            heard = self.next() => Some(heard),
            // Completes after the runtime has polled for outside events once.
            () = tokio::task::yield_now() => None,
        }
    }
}

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
        let until = self.context.world.parked(backend).and_then(|until| Timestamp::from_millisecond(until).ok());
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn a_signal_that_comes_before_we_listen_is_heard_once() {
        Interrupts::end_questions(|_| false).unwrap();
        kill_process(getpid(), Signal::HUP).unwrap();
        let mut signals = Signals::listen(|_| false).unwrap();
        assert_eq!(signals.next().await, ReceivedSignal::End(Sig::Hup));
        assert_eq!(signals.pending().await, None);
        kill_process(getpid(), Signal::HUP).unwrap();
        assert_eq!(signals.next().await, ReceivedSignal::End(Sig::Hup));
    }
}
