//! A start that is put off: `--start-at`, and `--wait` for another run.

use super::attempt::sleep;
use super::cast::Failure;
use super::signals::{HeardSignal, Signals};
use crate::engine::Sig;
use crate::journal::{BusyLock, RunLock, Taken};
use crate::world::World;
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// How long the clock on the wall is left unread: it may be set, and no timer goes on while the machine sleeps.
const GLANCE: Duration = Duration::from_secs(30);

/// How often it is looked whether another run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until the other run in the folder is over; the signal that ended the waiting, if one did.
///
/// # Errors
/// When we cannot hear signals, or the file system has no locks.
pub async fn wait_for_lock(world: &World, mut busy: BusyLock) -> Result<Result<RunLock, Sig>, Failure> {
    let mut signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
    loop {
        busy = match busy.again()? {
            Taken::Held(lock) => {
                // One that came just now is heard: nobody listens to it later.
                return Ok(match signals.pending().await {
                    Some(HeardSignal::End(signal)) => Err(signal),
                    _ => Ok(lock),
                });
            }
            Taken::Busy(busy) => busy,
        };
        tokio::select! {
            heard = signals.next() => match heard {
                HeardSignal::End(signal) => return Ok(Err(signal)),
                HeardSignal::Pause => signals.stop(),
                HeardSignal::Continue => {}
            },
            () = sleep(Some(Instant::now() + LOOK)) => {}
        }
    }
}

/// Waits until the clock on the wall shows this; the signal that ended the waiting, if one did.
///
/// # Errors
/// When we cannot hear signals.
pub async fn wait_until(world: &World, start: Timestamp) -> Result<Option<Sig>, Failure> {
    let mut signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
    loop {
        let left = start.as_millisecond().saturating_sub(world.moment().as_millisecond());
        let Some(left) = u64::try_from(left).ok().filter(|left| *left > 0) else { return Ok(None) };
        let glance = Instant::now() + Duration::from_millis(left).min(GLANCE);
        tokio::select! {
            heard = signals.next() => match heard {
                HeardSignal::End(signal) => return Ok(Some(signal)),
                HeardSignal::Pause => signals.stop(),
                HeardSignal::Continue => {}
            },
            () = sleep(Some(glance)) => {}
        }
    }
}
