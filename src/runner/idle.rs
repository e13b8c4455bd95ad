//! Decides whether an attempt is silent and idle: no output, and no CPU time of its process tree beyond what an idle
//! runtime uses.

use std::time::Duration;
use tokio::time::Instant;

/// The number of looks within one idle time.
const LOOKS: u32 = 10;
/// CPU time below one part in this many of the elapsed time counts as idle. Runtimes that wait for an answer were seen
/// to use up to one in a hundred.
const IDLE_PART: u32 = 33;
/// CPU time is counted in hundredths of a second, and one such tick is noise.
const TICK: Duration = Duration::from_millis(10);
/// Less CPU time than this between two looks counts as none: runtimes were seen to collect garbage in bursts of up to
/// half a second. For a short time between looks, the threshold is half of that time.
const NOISE: Duration = Duration::from_millis(600);

/// Watches one attempt. Looks are rare, so that watching costs next to nothing.
#[derive(Debug)]
pub(super) struct IdleWatch {
    limit: Duration,
    active: Instant,
    looked: Instant,
    look: Instant,
    cpu: Duration,
}

impl IdleWatch {
    pub(super) fn new(limit: Duration, now: Instant, cpu: Duration) -> Self {
        // The longest idle time, ten years (chain::parse_duration), fits every clock.
        Self { limit, active: now, looked: now, look: now + limit / LOOKS, cpu }
    }

    /// Returns when to look next.
    pub(super) fn next_look(&self) -> Instant {
        self.look
    }

    /// Records a sign of life: something was printed, or our own reader is slow.
    pub(super) fn saw_life(&mut self, now: Instant) {
        self.active = now;
    }

    /// Shifts all times by a pause of the run.
    pub(super) fn skip(&mut self, pause: Duration) {
        self.active += pause;
        self.looked += pause;
        self.look += pause;
    }

    /// Looks, and returns whether the idle time has expired. A look that comes far too late means that forkhestra
    /// itself was stopped (Ctrl-Z): what the agent did in the meantime is unknown.
    pub(super) fn is_over(&mut self, now: Instant, cpu: Duration, waits: bool) -> bool {
        let pause = self.limit / LOOKS;
        let used = cpu.saturating_sub(self.cpu);
        let late = now > self.look + pause;
        let passed = now.duration_since(self.looked);
        let idles = used <= TICK.max(passed / IDLE_PART).max(NOISE.min(passed / 2));
        if !(idles || waits) || late {
            self.active = now;
        }
        (self.cpu, self.looked) = (cpu, now);
        // The last look comes when the time expires, not up to a fifth of it later.
        let over = self.active + self.limit;
        self.look = if over > now { over.min(now + pause) } else { now + pause };
        over <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at the watch's own times, with this much CPU time used before each look, in milliseconds. Returns the
    /// index of the look that finds the idle time expired.
    fn strikes(used: &[u64], life_before: Option<usize>) -> Option<usize> {
        let mut now = Instant::now();
        let mut watch = IdleWatch::new(Duration::from_mins(15), now, Duration::ZERO);
        let mut cpu = Duration::ZERO;
        for (index, used) in used.iter().enumerate() {
            if life_before == Some(index) {
                watch.saw_life(now);
            }
            cpu += Duration::from_millis(*used);
            now = watch.next_look();
            if watch.is_over(now, cpu, false) {
                return Some(index);
            }
        }
        None
    }

    #[test]
    fn silence_without_cpu_time_strikes_after_the_whole_time() {
        assert_eq!(strikes(&[0; 20], None), Some(9));
        assert_eq!(strikes(&[2_500; 20], None), Some(9), "an idle runtime ticks");
    }

    #[test]
    fn output_and_work_put_it_off() {
        assert_eq!(strikes(&[0; 20], Some(3)), Some(12));
        assert_eq!(strikes(&[&[0, 0, 6_000][..], &[0; 12]].concat(), None), Some(12));
        assert_eq!(strikes(&[6_000; 20], None), None);
    }

    #[test]
    fn a_look_that_comes_late_because_we_were_stopped_does_not_strike() {
        let begin = Instant::now();
        let mut watch = IdleWatch::new(Duration::from_mins(15), begin, Duration::ZERO);
        assert!(!watch.is_over(begin + Duration::from_hours(2), Duration::ZERO, false));
    }
}
