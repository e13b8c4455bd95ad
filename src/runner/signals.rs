//! The signals that a run handles. A signal that was ignored when forkhestra was started stays ignored (nohup).

use crate::engine::{Input, Sig};
use crate::proc::{Interrupts, StopRequests};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;

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
