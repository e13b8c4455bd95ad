//! A delayed start: `--start-at`, and `--wait` for another run.

use super::context::Failure;
use super::flush::sleep;
use super::signals::{ReceivedSignal, Signals};
use crate::engine::Sig;
use crate::journal::{BusyLock, LockAttempt, RunLock};
use crate::world::World;
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// The longest time between two reads of the wall clock: it may be set, and no timer advances while the machine sleeps.
const GLANCE: Duration = Duration::from_secs(30);

/// How often to check whether the other run has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until the other run in the directory has ended. Returns its lock, or the signal that ended the wait.
///
/// # Errors
/// When signals cannot be received, or the file system has no locks.
pub async fn wait_for_lock(world: &World, mut busy: BusyLock) -> Result<Result<RunLock, Sig>, Failure> {
    let mut signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
    loop {
        busy = match busy.again()? {
            LockAttempt::Held(lock) => {
                // A signal that has just arrived is handled here, since nothing listens for it later.
                return Ok(match signals.pending().await {
                    Some(ReceivedSignal::End(signal)) => Err(signal),
                    _ => Ok(lock),
                });
            }
            LockAttempt::Busy(busy) => busy,
        };
        tokio::select! {
            heard = signals.next() => match heard {
                ReceivedSignal::End(signal) => return Ok(Err(signal)),
                ReceivedSignal::Pause => signals.stop(),
                ReceivedSignal::Continue => {}
            },
            () = sleep(Some(Instant::now() + LOOK)) => {}
        }
    }
}

/// Waits until the wall clock shows this time. Returns the signal that ended the wait, if one did.
///
/// # Errors
/// When signals cannot be received.
pub async fn wait_until(world: &World, start: Timestamp) -> Result<Option<Sig>, Failure> {
    let mut signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
    loop {
        let left = start.as_millisecond().saturating_sub(world.moment().as_millisecond());
        let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) else { return Ok(None) };
        let glance = Instant::now() + Duration::from_millis(left).min(GLANCE);
        tokio::select! {
            heard = signals.next() => match heard {
                ReceivedSignal::End(signal) => return Ok(Some(signal)),
                ReceivedSignal::Pause => signals.stop(),
                ReceivedSignal::Continue => {}
            },
            () = sleep(Some(glance)) => {}
        }
    }
}
