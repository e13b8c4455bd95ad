//! Usage limits: while one holds, no agent is started.

use super::context::BatchContext;
use crate::engine::{BatchState, Event, EventKind, WaitReason};
use crate::world::write_parked;

/// When the last usage limit ends that holds the batch, in milliseconds since the epoch; `None` if none does.
pub(super) fn parked_until(context: &BatchContext<'_>, state: &BatchState) -> Option<i64> {
    let now = context.world.moment().as_millisecond();
    state.parked.values().copied().filter(|until| *until > now).max()
}

/// Tells the runs of all lanes which usage limits were reached, so that none of them tries in vain. Best effort: a
/// run that is not told reaches the limit itself.
pub(super) fn park(context: &BatchContext<'_>, state: &BatchState) {
    let limits = state.parked.iter().map(|(backend, until)| (backend.as_str(), *until));
    let _ = write_parked(context.world, &context.workspaces, limits);
}

/// The backend that has reached a usage limit, and when the limit ends, in milliseconds since the epoch.
pub(super) fn parked_by(event: &Event, backends: &[Option<String>]) -> Option<(String, i64)> {
    let EventKind::WaitStarted { at, reason: WaitReason::UsageLimit, until, wait_ms } = &event.event else {
        return None;
    };
    // Another backend continues at once.
    if *wait_ms == 0 {
        return None;
    }
    let step = usize::try_from(at.step).ok()?.checked_sub(1)?;
    let backend = backends.get(step)?.clone()?;
    let moment = |text: &str| text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
    let until = match until {
        Some(until) => moment(until)?,
        None => moment(&event.at)?.saturating_add(i64::try_from(*wait_ms).unwrap_or(i64::MAX)),
    };
    Some((backend, until))
}
