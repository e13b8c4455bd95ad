//! The clock that includes the machine's sleep.
#![expect(clippy::disallowed_methods, reason = "the owner of what is ambient")]

use super::machine;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A clock that shows the time since the machine started, including its sleep (`clock_gettime(2)`).
/// It cannot be set.
#[derive(Debug, Clone)]
pub struct Uptime(pub(super) UptimeOf);

#[derive(Debug, Clone)]
pub(super) enum UptimeOf {
    Machine,
    /// For tests: the machine has also slept for as many milliseconds as this file specifies.
    MachineAndFile(PathBuf),
    #[cfg(test)]
    Fake(FakeMachine),
}

impl Uptime {
    /// Returns the time that the clock shows.
    #[must_use]
    pub fn now(&self) -> Duration {
        let now = rustix::time::clock_gettime(machine::UPTIME);
        let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
        let uptime = Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0));
        match &self.0 {
            UptimeOf::Machine => uptime,
            UptimeOf::MachineAndFile(file) => {
                let slept = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
                uptime + Duration::from_millis(slept.unwrap_or(0))
            }
            #[cfg(test)]
            UptimeOf::Fake(machine) => machine.uptime(),
        }
    }

    /// The longest time that a wait may go without a look at this clock: the runtime's timers do not advance while the
    /// machine sleeps.
    #[must_use]
    pub fn glance(&self) -> Duration {
        match self.0 {
            UptimeOf::MachineAndFile(_) => Duration::from_millis(20),
            UptimeOf::Machine => Duration::from_secs(30),
            #[cfg(test)]
            UptimeOf::Fake(_) => Duration::from_secs(30),
        }
    }
}

/// A simulated machine whose uptime is a number.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct FakeMachine(std::sync::Arc<std::sync::Mutex<Duration>>);

#[cfg(test)]
impl FakeMachine {
    /// Simulates that the machine sleeps for this long.
    pub(crate) fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }

    fn uptime(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

#[cfg(test)]
impl Uptime {
    /// Returns the clock of a simulated machine, and the machine.
    pub(crate) fn fake() -> (Self, FakeMachine) {
        let machine = FakeMachine::default();
        (Self(UptimeOf::Fake(machine.clone())), machine)
    }
}
