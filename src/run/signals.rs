//! The signals that a run listens to. One that was ignored when we were started stays ignored (nohup).

use super::outcome::Sig;
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A stream of the signals we are sent.
#[derive(Debug)]
pub(super) struct Signals {
    streams: Vec<(Sig, Signal)>,
}

impl Signals {
    /// Listens, from now to the end of the process: tokio never gives a disposition back.
    pub(super) fn listen(ignored: impl Fn(i32) -> bool) -> io::Result<Self> {
        let mut streams = Vec::new();
        for (sig, kind) in [
            (Sig::Int, SignalKind::interrupt()),
            (Sig::Term, SignalKind::terminate()),
            (Sig::Hup, SignalKind::hangup()),
        ] {
            if !ignored(sig.number()) {
                streams.push((sig, signal(kind)?));
            }
        }
        Ok(Self { streams })
    }

    /// The next one. Cancel-safe.
    pub(super) async fn next(&mut self) -> Sig {
        poll_fn(|context| {
            for (sig, stream) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*sig);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// One that has already come.
    pub(super) async fn pending(&mut self) -> Option<Sig> {
        tokio::select! {
            biased;
            sig = self.next() => Some(sig),
            // Comes back after the runtime has looked at the outside world once.
            () = tokio::task::yield_now() => None,
        }
    }
}
