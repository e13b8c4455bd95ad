//! How long a worker may be sure that its unit is its own. Pure: times are given by the caller, who reads a monotonic
//! clock.

use crate::args::BEATS;
use std::time::{Duration, Instant};

/// What a worker has to do about its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseState {
    /// The unit is its own.
    Held,
    /// The server has not answered for so long that it may soon give the unit to another worker: stop the agents.
    Expiring,
    /// Kill everything that is left of the unit now.
    Expired,
}

/// The lease of a unit. It counts from the sending of the last report that the server has acknowledged: an answer may
/// take long, and a report without an answer may not have arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease {
    length: Duration,
    acknowledged: Instant,
}

impl Lease {
    /// A lease of this length, which the server has given out no earlier than `now`.
    pub(crate) fn new(length: Duration, now: Instant) -> Self {
        Self { length, acknowledged: now }
    }

    /// Records that the server has acknowledged the report that was sent at this time.
    pub(crate) fn acknowledge(&mut self, sent: Instant) {
        self.acknowledged = self.acknowledged.max(sent);
    }

    /// Returns what has to be done. The last quarter of the lease is left for what a kill takes.
    pub(crate) fn state(&self, now: Instant) -> LeaseState {
        let passed = now.saturating_duration_since(self.acknowledged);
        match self.length / BEATS {
            quarter if passed >= quarter * (BEATS - 1) => LeaseState::Expired,
            quarter if passed >= quarter * (BEATS - 2) => LeaseState::Expiring,
            _ => LeaseState::Held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_ended_before_its_lease_is_over_however_late_answers_come() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut lease = Lease::new(Duration::from_secs(40), begin);
        assert_eq!([0, 19].map(|second| lease.state(at(second))), [LeaseState::Held; 2]);
        assert_eq!([20, 29].map(|second| lease.state(at(second))), [LeaseState::Expiring; 2]);
        assert_eq!([30, 99].map(|second| lease.state(at(second))), [LeaseState::Expired; 2]);
        // The answer to the report of second 10 arrives in second 25.
        lease.acknowledge(at(10));
        assert_eq!(
            [25, 30, 40].map(|second| lease.state(at(second))),
            [LeaseState::Held, LeaseState::Expiring, LeaseState::Expired]
        );
        // An older answer that arrives later changes nothing.
        lease.acknowledge(at(5));
        assert_eq!(lease.state(at(29)), LeaseState::Held);
    }
}
