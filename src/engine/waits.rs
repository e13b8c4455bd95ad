//! Waits: how long, how often and for what an attempt that could not work is waited with before it is made again.

use super::outcome::WaitReason;
use std::time::Duration;

/// The first wait for a service, and the longest; each is twice the one before.
const SERVICE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// The same for the machine, and how long it is waited for in all.
const MACHINE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
const MACHINE_IN_ALL: Duration = Duration::from_secs(10);
/// Between two looks whether somebody has logged in again.
const LOGIN: Duration = Duration::from_mins(5);
/// After so many attempts in a row that used tokens and did not count, the next one counts.
const PAID: u32 = 3;
/// Before a program that said nothing at its start is started again, and how often that is done.
const START: Duration = Duration::from_secs(1);
pub(super) const STARTS: u32 = 3;

/// The waits since the last attempt that counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Waits {
    /// What the last one was for, and how many there were in a row for it.
    last: Option<(WaitReason, u32)>,
    /// How long those for the service were together, in milliseconds.
    service_ms: u64,
    /// How long those for the machine were together, since a process was started.
    machine_ms: u64,
    /// How often a program said nothing at its start.
    starts: u32,
    /// How many attempts in a row did not count, and used tokens all the same.
    paid: u32,
}

impl Waits {
    pub(super) fn started(&mut self, reason: WaitReason, wait_ms: u64) {
        self.last = Some((reason, self.in_a_row(reason).saturating_add(1)));
        match reason {
            WaitReason::Machine => self.machine_ms = self.machine_ms.saturating_add(wait_ms),
            WaitReason::Start => self.starts = self.starts.saturating_add(1),
            WaitReason::UsageLimit | WaitReason::Service | WaitReason::Login => {
                self.service_ms = self.service_ms.saturating_add(wait_ms);
            }
        }
    }

    /// The machine had room for a process.
    pub(super) fn process_started(&mut self) {
        self.machine_ms = 0;
    }

    fn in_a_row(&self, reason: WaitReason) -> u32 {
        self.last.filter(|(last, _)| *last == reason).map_or(0, |(_, count)| count)
    }

    /// Whether a program that says nothing at its start is started once more.
    pub(super) fn may_start_again(&self) -> bool {
        self.starts < STARTS
    }

    /// An attempt that does not count has ended; whether it used tokens.
    pub(super) fn not_counted(&mut self, paid: bool) {
        self.paid = if paid { self.paid.saturating_add(1) } else { 0 };
    }

    /// Whether attempts are paid again and again, and end in the same way: that is no weather, whatever their words say.
    pub(super) fn is_futile(&self) -> bool {
        self.paid >= PAID
    }

    /// How long the next wait is, in milliseconds: until it is said to be over, where that is known.
    pub(super) fn next(&self, reason: WaitReason, over_in_ms: Option<u64>) -> u64 {
        // A limit that is said to be over, and is met again, is not believed at once.
        over_in_ms.unwrap_or(0).max(millis(self.back_off(reason)))
    }

    /// Whether that is longer than anybody wants; `most` is the limit `wait`.
    pub(super) fn is_too_long(&self, reason: WaitReason, wait_ms: u64, most: Duration) -> bool {
        match reason {
            WaitReason::Start => false,
            WaitReason::Machine => self.machine_ms.saturating_add(wait_ms) > millis(MACHINE_IN_ALL),
            _ => self.service_ms.saturating_add(wait_ms) > millis(most),
        }
    }

    /// The next wait, without what is known of its end.
    fn back_off(&self, reason: WaitReason) -> Duration {
        let (first, longest) = match reason {
            WaitReason::UsageLimit | WaitReason::Service => SERVICE,
            WaitReason::Machine => MACHINE,
            WaitReason::Login => (LOGIN, LOGIN),
            WaitReason::Start => (START, START),
        };
        let doubled = first.saturating_mul(1_u32.checked_shl(self.in_a_row(reason)).unwrap_or(u32::MAX));
        doubled.min(longest)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
