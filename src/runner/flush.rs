//! Waits for output to be written, and for moments.

use crate::engine::Observer;
use std::future::poll_fn;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long to wait for a blocked screen when a run did not end by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until all output has been written, for a second at most.
pub async fn flushed(observer: &mut dyn Observer) {
    let until = Instant::now() + PATIENCE;
    while !observer.is_idle() {
        tokio::select! {
            _ = written(observer) => {}
            () = sleep(Some(until)) => return,
        }
    }
}

/// Waits until some output has been written. Cancel-safe.
///
/// # Errors
/// When standard output accepts no more.
pub async fn written(observer: &mut dyn Observer) -> io::Result<()> {
    poll_fn(|context| observer.poll_written(context)).await
}

/// Sleeps until the given time, or forever if there is none.
pub(super) async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
