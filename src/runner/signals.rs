//! The signals that a run listens to. One that was ignored when we were started stays ignored (nohup).

use super::attempt::sleep;
use super::cast::Failure;
use super::driver::{Driver, written};
use crate::engine::{Effect, Input, Sig, Timer};
use crate::proc::{Interrupts, StopRequests};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How long our last words before a stop may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What we are told by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeardSignal {
    /// To end.
    End(Sig),
    /// To stand still (Ctrl-Z).
    Pause,
    /// To go on.
    Continue,
}

impl HeardSignal {
    pub(super) fn input(self) -> Input {
        match self {
            Self::End(signal) => Input::Signal(signal),
            Self::Pause => Input::Pause,
            Self::Continue => Input::Continue,
        }
    }
}

/// A stream of the signals we are sent.
#[derive(Debug)]
pub(super) struct Signals {
    streams: Vec<(HeardSignal, Signal)>,
    stops: Option<AsyncFd<StopRequests>>,
    /// What somebody else hears for us.
    passed_on: Option<UnboundedReceiver<HeardSignal>>,
}

impl Signals {
    /// Listens, from now to the end of the process: tokio never gives a disposition back.
    pub(super) fn listen(ignored: impl Fn(i32) -> bool) -> io::Result<Self> {
        // First of all: whatever comes before the streams are there, or between two runs of a queue, is remembered.
        Interrupts::end_questions(&ignored)?;
        let mut streams = Vec::new();
        for (heard, kind) in [
            (HeardSignal::End(Sig::Int), SignalKind::interrupt()),
            (HeardSignal::End(Sig::Term), SignalKind::terminate()),
            (HeardSignal::End(Sig::Hup), SignalKind::hangup()),
            (HeardSignal::Continue, SignalKind::from_raw(rustix::process::Signal::CONT.as_raw())),
        ] {
            if !ignored(kind.as_raw_value()) {
                streams.push((heard, signal(kind)?));
            }
        }
        let stops = (!ignored(rustix::process::Signal::TSTP.as_raw())).then(|| StopRequests::listen()?.watched());
        Ok(Self { streams, stops: stops.transpose()?, passed_on: None })
    }

    /// Hears what is passed on by somebody who listens.
    pub(super) fn passed_on(heard: UnboundedReceiver<HeardSignal>) -> Self {
        Self { streams: Vec::new(), stops: None, passed_on: Some(heard) }
    }

    /// The next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> HeardSignal {
        poll_fn(|context| {
            if let Some(signal) = self.next_end() {
                return Poll::Ready(HeardSignal::End(signal));
            }
            for (heard, stream) in &mut self.streams {
                while stream.poll_recv(context).is_ready() {
                    if *heard == HeardSignal::Continue {
                        return Poll::Ready(HeardSignal::Continue);
                    }
                }
            }
            // Their streams only wake us: one that came before there were any is heard as well.
            if let Some(signal) = self.next_end() {
                return Poll::Ready(HeardSignal::End(signal));
            }
            if self.asked_to_stop(context) {
                return Poll::Ready(HeardSignal::Pause);
            }
            if let Some(Poll::Ready(Some(heard))) = self.passed_on.as_mut().map(|heard| heard.poll_recv(context)) {
                return Poll::Ready(heard);
            }
            Poll::Pending
        })
        .await
    }

    fn next_end(&self) -> Option<Sig> {
        self.passed_on.is_none().then(Interrupts::heard)?.and_then(Sig::of_number)
    }

    /// Whether a stop is asked for that was not heard yet, and that no SIGCONT has taken back.
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

    /// Stops us if that is still asked for. Whoever stopped us sends SIGCONT, which is heard afterwards.
    pub(super) fn stop(&self) {
        if let Some(stops) = &self.stops {
            stops.get_ref().obey();
        }
    }

    /// One that has already come.
    pub(super) async fn pending(&mut self) -> Option<HeardSignal> {
        tokio::select! {
            biased;
            heard = self.next() => Some(heard),
            // Comes back after the runtime has looked at the outside world once.
            () = tokio::task::yield_now() => None,
        }
    }
}

impl Driver<'_> {
    /// A signal came.
    pub(super) fn hear(&mut self, heard: HeardSignal) -> Result<Vec<Effect>, Failure> {
        if heard == HeardSignal::Continue {
            self.timers.go_on(Instant::now());
        }
        Ok(self.take(heard.input())?)
    }

    /// Stops us and every timer, once our words about it are out. The signal to go on is heard afterwards, also one that came first.
    pub(super) async fn stand_still(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        while !self.cast.observer.is_idle() && Instant::now() < until {
            tokio::select! {
                written = written(self.cast.observer) => if let Err(error) = written {
                    self.output_error.get_or_insert(error);
                },
                () = sleep(Some(until)) => {}
            }
        }
        self.timers.pause(Instant::now());
        // Who passes signals on to us stops us all.
        self.signals.stop();
    }

    /// Hears the signals that came while nothing ran, and stands still as long as they want.
    pub(super) async fn may_start(&mut self) -> Result<bool, Failure> {
        let mut next = self.signals.pending().await;
        while let Some(heard) = next {
            let effects = self.hear(heard)?;
            if let HeardSignal::End(_) = heard {
                self.cast.observer.hurry();
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
        Ok(true)
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
        assert_eq!(signals.next().await, HeardSignal::End(Sig::Hup));
        assert_eq!(signals.pending().await, None);
        kill_process(getpid(), Signal::HUP).unwrap();
        assert_eq!(signals.next().await, HeardSignal::End(Sig::Hup));
    }
}
