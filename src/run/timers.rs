//! Everything that is timed in a run, in one place, so that all of it can stand still at once (V-08).

use super::idle::IdleWatch;
use super::machine::Timer;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// What is armed.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: Vec<(Timer, Instant)>,
    /// Not due at a time but when it finds nothing alive.
    idle: Option<IdleWatch>,
    paused: Option<Instant>,
}

impl Timers {
    /// Gives so much time from now; an earlier one of the same kind is forgotten.
    pub(super) fn arm(&mut self, timer: Timer, time: Duration, now: Instant) {
        self.disarm(timer);
        match timer {
            Timer::Idle => self.idle = Some(IdleWatch::new(time, now, Duration::ZERO)),
            // A time too long for the clock never comes.
            _ => self.due.extend(now.checked_add(time).map(|due| (timer, due))),
        }
    }

    pub(super) fn disarm(&mut self, timer: Timer) {
        self.due.retain(|(armed, _)| *armed != timer);
        if timer == Timer::Idle {
            self.idle = None;
        }
    }

    /// The attempt's process is gone: what would end it has no more to say.
    pub(super) fn process_exited(&mut self) {
        for timer in [Timer::Timeout, Timer::Idle, Timer::Start, Timer::Linger] {
            self.disarm(timer);
        }
    }

    /// The attempt is over.
    pub(super) fn attempt_over(&mut self) {
        self.process_exited();
        self.disarm(Timer::Grace);
    }

    /// How much is left of a time; none if it is not armed.
    pub(super) fn left(&self, timer: Timer, now: Instant) -> Option<Duration> {
        let (_, due) = self.due.iter().find(|(armed, _)| *armed == timer)?;
        Some(due.saturating_duration_since(self.paused.unwrap_or(now)))
    }

    /// The next one that is over, which is disarmed; [`Timer::Idle`] only asks for a look. Cancel-safe.
    pub(super) async fn over(&mut self) -> Timer {
        let look = self.idle.as_ref().map(|watch| (Timer::Idle, watch.next_look()));
        let next = self.due.iter().copied().chain(look).min_by_key(|(_, due)| *due);
        match next.filter(|_| self.paused.is_none()) {
            Some((timer, due)) => {
                sleep_until(due).await;
                self.due.retain(|armed| *armed != (timer, due));
                timer
            }
            None => std::future::pending().await,
        }
    }

    /// Whether the attempt is silent and idle for too long by now; then its watch is over. What it does while it only `waits`
    /// for its service is no work.
    pub(super) fn look(&mut self, now: Instant, cpu: Duration, waits: bool) -> bool {
        let over = self.idle.as_mut().is_some_and(|watch| watch.is_over(now, cpu, waits));
        if over {
            self.idle = None;
        }
        over
    }

    /// Something was printed, or it is we who do not read.
    pub(super) fn saw_life(&mut self, now: Instant) {
        if let Some(watch) = &mut self.idle {
            watch.saw_life(now);
        }
    }

    /// From now on no time passes.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    /// Time passes again; what was left of each time is still left.
    pub(super) fn go_on(&mut self, now: Instant) {
        let Some(since) = self.paused.take() else { return };
        let pause = now.saturating_duration_since(since);
        for (_, due) in &mut self.due {
            *due += pause;
        }
        if let Some(watch) = &mut self.idle {
            watch.skip(pause);
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_time_is_the_same_after_a_pause() {
        let (mut timers, begin) = (Timers::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        timers.arm(Timer::Timeout, Duration::from_secs(10), begin);
        timers.arm(Timer::Idle, Duration::from_secs(10), begin);
        timers.pause(at(4));
        assert_eq!(timers.left(Timer::Timeout, at(99)), Some(Duration::from_secs(6)));
        timers.go_on(at(100));
        assert_eq!(timers.left(Timer::Timeout, at(100)), Some(Duration::from_secs(6)));
        let looks = [98, 100, 102, 104, 106].map(|seconds| timers.look(at(seconds), Duration::ZERO, false));
        assert_eq!(looks, [false, false, false, false, true], "the pause was no silence");
    }

    #[test]
    fn the_run_s_own_time_outlives_its_attempts() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        for timer in [Timer::Run, Timer::Grace, Timer::Timeout, Timer::Linger] {
            timers.arm(timer, Duration::from_secs(1), now);
        }
        timers.attempt_over();
        assert_eq!(timers.due.len(), 1);
        assert!(timers.left(Timer::Run, now).is_some());
    }
}
