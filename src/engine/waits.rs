//! The waits before an attempt that could not work is repeated: what for, how long, and how often.

use super::outcome::WaitReason;
use std::time::Duration;

/// The first wait for a service, and the longest. Each wait is twice as long as the one before.
const SERVICE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// The same for the machine. [`MACHINE_IN_ALL`] limits the total of these waits.
const MACHINE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
const MACHINE_IN_ALL: Duration = Duration::from_secs(10);
/// The time between two attempts while the run waits for a new login.
const LOGIN: Duration = Duration::from_mins(5);
/// After this many attempts in a row that used tokens but did not count, the next one counts.
const PAID: u32 = 3;
/// The wait before a program that printed nothing after its start is started again. [`STARTS`] limits how often.
const START: Duration = Duration::from_secs(1);
pub(super) const STARTS: u32 = 3;

/// The waits since the last attempt that counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Waits {
    /// The reason for the last wait, and how many waits in a row had this reason.
    last: Option<(WaitReason, u32)>,
    /// The total of the waits for the service, in milliseconds.
    service_ms: u64,
    /// The total of the waits for the machine since a process was last started, in milliseconds.
    machine_ms: u64,
    /// How many times a program printed nothing after its start.
    starts: u32,
    /// How many attempts in a row did not count although they used tokens.
    paid: u32,
}

impl Waits {
    pub(super) fn started(&mut self, reason: WaitReason, wait_ms: u64) {
        self.last = Some((reason, self.in_a_row(reason).saturating_add(1)));
        match reason {
            WaitReason::Machine => self.machine_ms = self.machine_ms.saturating_add(wait_ms),
            WaitReason::Start => self.starts = self.starts.saturating_add(1),
            WaitReason::Session => {}
            WaitReason::UsageLimit | WaitReason::Service | WaitReason::Login => {
                self.service_ms = self.service_ms.saturating_add(wait_ms);
            }
        }
    }

    /// Records that the machine had the resources for a process.
    pub(super) fn process_started(&mut self) {
        self.machine_ms = 0;
    }

    fn in_a_row(&self, reason: WaitReason) -> u32 {
        self.last.filter(|(last, _)| *last == reason).map_or(0, |(_, count)| count)
    }

    /// Returns whether a program that printed nothing after its start may be started again.
    pub(super) fn may_start_again(&self) -> bool {
        self.starts < STARTS
    }

    /// Records the end of an attempt that does not count. `paid` is whether it used tokens.
    pub(super) fn not_counted(&mut self, paid: bool) {
        self.paid = if paid { self.paid.saturating_add(1) } else { 0 };
    }

    /// Returns whether attempts repeatedly use tokens and still fail. The problem is then not temporary, whatever the
    /// error message says.
    pub(super) fn is_futile(&self) -> bool {
        self.paid >= PAID
    }

    /// Returns the length of the next wait in milliseconds. It lasts at least until the reported end of a usage limit.
    pub(super) fn next(&self, reason: WaitReason, over_in_ms: Option<u64>) -> u64 {
        // A limit may be hit again although it should have ended, so the wait grows in any case.
        over_in_ms.unwrap_or(0).max(millis(self.back_off(reason)))
    }

    /// Returns whether the waits would be too long in total. `most` is the limit `wait`.
    pub(super) fn is_too_long(&self, reason: WaitReason, wait_ms: u64, most: Duration) -> bool {
        match reason {
            WaitReason::Start | WaitReason::Session => false,
            WaitReason::Machine => self.machine_ms.saturating_add(wait_ms) > millis(MACHINE_IN_ALL),
            _ => self.service_ms.saturating_add(wait_ms) > millis(most),
        }
    }

    /// Returns the length of the next wait if no end is known.
    fn back_off(&self, reason: WaitReason) -> Duration {
        let (first, longest) = match reason {
            WaitReason::UsageLimit | WaitReason::Service => SERVICE,
            WaitReason::Machine => MACHINE,
            WaitReason::Login => (LOGIN, LOGIN),
            WaitReason::Start => (START, START),
            WaitReason::Session => (Duration::ZERO, Duration::ZERO),
        };
        let doubled = first.saturating_mul(1_u32.checked_shl(self.in_a_row(reason)).unwrap_or(u32::MAX));
        doubled.min(longest)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
