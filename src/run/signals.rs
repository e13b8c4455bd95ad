//! The signals that a run listens to. One that was ignored when we were started stays ignored (nohup).

use super::machine::Input;
use super::outcome::Sig;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;

/// What we are told by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// To end.
    End(Sig),
    /// To stand still (Ctrl-Z).
    Pause,
    /// To go on.
    Continue,
}

impl Heard {
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
    streams: Vec<(Heard, Signal)>,
    /// What somebody else hears for us.
    passed_on: Option<UnboundedReceiver<Heard>>,
}

impl Signals {
    /// Listens, from now to the end of the process: tokio never gives a disposition back.
    pub(super) fn listen(ignored: impl Fn(i32) -> bool) -> io::Result<Self> {
        let raw = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        let mut streams = Vec::new();
        for (heard, kind) in [
            (Heard::End(Sig::Int), SignalKind::interrupt()),
            (Heard::End(Sig::Term), SignalKind::terminate()),
            (Heard::End(Sig::Hup), SignalKind::hangup()),
            (Heard::Pause, raw(rustix::process::Signal::TSTP)),
            (Heard::Continue, raw(rustix::process::Signal::CONT)),
        ] {
            if !ignored(kind.as_raw_value()) {
                streams.push((heard, signal(kind)?));
            }
        }
        Ok(Self { streams, passed_on: None })
    }

    /// Hears what is passed on by somebody who listens.
    pub(super) fn passed_on(heard: UnboundedReceiver<Heard>) -> Self {
        Self { streams: Vec::new(), passed_on: Some(heard) }
    }

    /// The next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> Heard {
        poll_fn(|context| {
            for (heard, stream) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*heard);
                }
            }
            if let Some(Poll::Ready(Some(heard))) = self.passed_on.as_mut().map(|heard| heard.poll_recv(context)) {
                return Poll::Ready(heard);
            }
            Poll::Pending
        })
        .await
    }

    /// One that has already come.
    pub(super) async fn pending(&mut self) -> Option<Heard> {
        tokio::select! {
            biased;
            heard = self.next() => Some(heard),
            // Comes back after the runtime has looked at the outside world once.
            () = tokio::task::yield_now() => None,
        }
    }
}
