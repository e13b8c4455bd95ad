//! A start that is put off: `--start-at`.

use super::attempt::sleep;
use super::cast::Failure;
use super::outcome::Sig;
use super::signals::{Heard, Signals};
use crate::proc::stop_ourselves;
use crate::world::World;
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// How long the clock on the wall is left unread: it may be set, and no timer goes on while the machine sleeps.
const GLANCE: Duration = Duration::from_secs(30);

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
                Heard::End(signal) => return Ok(Some(signal)),
                Heard::Pause => stop_ourselves(),
                Heard::Continue => {}
            },
            () = sleep(Some(glance)) => {}
        }
    }
}
