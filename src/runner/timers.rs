//! All timers of a run, in one place, so that they can be paused together. There are two clocks. An attempt's times
//! stop while the machine sleeps, as the attempt does; the run's time and its waits continue. Neither clock can be set.

use super::idle::IdleWatch;
use crate::engine::Timer;
use crate::world::Uptime;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The armed timers, and how long the run has been running.
#[derive(Debug)]
pub(super) struct Timers {
    clock: Uptime,
    /// When timers expire, by the clock that stops while the machine sleeps.
    due: Vec<(Timer, Instant)>,
    /// When timers expire, by the clock that continues while the machine sleeps.
    due_by_uptime: Vec<(Timer, Duration)>,
    /// The watch for [`Timer::Idle`], which expires not at a fixed time but when it finds no sign of life.
    idle: Option<IdleWatch>,
    /// When the current pause began, by both clocks.
    paused: Option<(Instant, Duration)>,
    /// How long earlier processes were running, and since when this one is; later by the length of its pauses.
    worked_before: Duration,
    since: Duration,
}

/// Whether a timer continues while the machine sleeps.
fn counts_sleep(timer: Timer) -> bool {
    matches!(timer, Timer::Run | Timer::Wait)
}

impl Timers {
    pub(super) fn new(clock: Uptime) -> Self {
        let since = clock.now();
        Self {
            clock,
            due: Vec::new(),
            due_by_uptime: Vec::new(),
            idle: None,
            paused: None,
            worked_before: Duration::ZERO,
            since,
        }
    }

    /// Sets how long earlier processes have worked on the run.
    pub(super) fn after(&mut self, worked: Duration) {
        self.worked_before = worked;
    }

    /// Returns how long the run has been running. This includes the machine's sleep but not pauses.
    pub(super) fn worked(&self) -> Duration {
        let now = self.paused.map_or_else(|| self.clock.now(), |(_, since)| since);
        self.worked_before + now.saturating_sub(self.since)
    }

    /// Arms a timer to expire after `time`. An earlier timer of the same kind is discarded.
    pub(super) fn arm(&mut self, timer: Timer, time: Duration, now: Instant) {
        self.disarm(timer);
        match timer {
            Timer::Idle => self.idle = Some(IdleWatch::new(time, now, Duration::ZERO)),
            _ if counts_sleep(timer) => self.due_by_uptime.push((timer, self.clock.now().saturating_add(time))),
            // A time too long for the clock never expires.
            _ => self.due.extend(now.checked_add(time).map(|due| (timer, due))),
        }
    }

    pub(super) fn disarm(&mut self, timer: Timer) {
        self.due.retain(|(armed, _)| *armed != timer);
        self.due_by_uptime.retain(|(armed, _)| *armed != timer);
        if timer == Timer::Idle {
            self.idle = None;
        }
    }

    /// Disarms the timers that would stop the attempt's process, because it is gone.
    pub(super) fn process_exited(&mut self) {
        for timer in [Timer::Timeout, Timer::Idle, Timer::Start, Timer::Linger] {
            self.disarm(timer);
        }
    }

    /// Disarms all timers of the attempt, because it has ended.
    pub(super) fn attempt_over(&mut self) {
        self.process_exited();
        self.disarm(Timer::Grace);
    }

    /// Returns how much of a timer is left; none if it is not armed.
    pub(super) fn left(&self, timer: Timer, now: Instant) -> Option<Duration> {
        let by_uptime = self.due_by_uptime.iter().find(|(armed, _)| *armed == timer);
        if let Some((_, due)) = by_uptime {
            let now = self.paused.map_or_else(|| self.clock.now(), |(_, since)| since);
            return Some(due.saturating_sub(now));
        }
        let (_, due) = self.due.iter().find(|(armed, _)| *armed == timer)?;
        Some(due.saturating_duration_since(self.paused.map_or(now, |(since, _)| since)))
    }

    /// Returns the next timer that expires, and disarms it. [`Timer::Idle`] stays armed and only requests a look.
    /// Cancel-safe.
    pub(super) async fn over(&mut self) -> Timer {
        if self.paused.is_some() {
            return std::future::pending().await;
        }
        loop {
            let now = Instant::now();
            let by_uptime = self.due_by_uptime.iter().copied().min_by_key(|(_, due)| *due);
            let left = by_uptime.map(|(_, due)| due.saturating_sub(self.clock.now()));
            if let (Some((timer, _)), Some(Duration::ZERO)) = (by_uptime, left) {
                self.disarm(timer);
                return timer;
            }
            let look = self.idle.as_ref().map(|watch| (Timer::Idle, watch.next_look()));
            let next = self.due.iter().copied().chain(look).min_by_key(|(_, due)| *due);
            // No timer of the runtime advances while the machine sleeps, so the other clock is checked now and then.
            let glance = left.map(|left| now + left.min(self.clock.glance()));
            match (next, glance) {
                (None, None) => return std::future::pending().await,
                (Some((timer, due)), glance) if glance.is_none_or(|glance| due <= glance) => {
                    sleep_until(due).await;
                    self.due.retain(|armed| *armed != (timer, due));
                    return timer;
                }
                (_, glance) => sleep_until(glance.unwrap_or(now)).await,
            }
        }
    }

    /// Returns whether the attempt has been silent and idle for too long; then its watch ends. CPU time that it uses
    /// while it only `waits` for its service does not count.
    pub(super) fn look(&mut self, now: Instant, cpu: Duration, waits: bool) -> bool {
        let over = self.idle.as_mut().is_some_and(|watch| watch.is_over(now, cpu, waits));
        if over {
            self.idle = None;
        }
        over
    }

    /// Records a sign of life: something was printed, or our own reader is slow.
    pub(super) fn saw_life(&mut self, now: Instant) {
        if let Some(watch) = &mut self.idle {
            watch.saw_life(now);
        }
    }

    /// Pauses all timers.
    pub(super) fn pause(&mut self, now: Instant) {
        let uptime = self.clock.now();
        self.paused.get_or_insert((now, uptime));
    }

    /// Continues all timers; each has as much time left as when it was paused.
    pub(super) fn resume(&mut self, now: Instant) {
        let Some((since, uptime)) = self.paused.take() else { return };
        let pause = now.saturating_duration_since(since);
        for (_, due) in &mut self.due {
            *due += pause;
        }
        let pause_by_uptime = self.clock.now().saturating_sub(uptime);
        for (_, due) in &mut self.due_by_uptime {
            *due += pause_by_uptime;
        }
        self.since += pause_by_uptime;
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
        let (mut timers, begin) = (Timers::new(Uptime::fake().0), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        timers.arm(Timer::Timeout, Duration::from_secs(10), begin);
        timers.arm(Timer::Idle, Duration::from_secs(10), begin);
        timers.pause(at(4));
        assert_eq!(timers.left(Timer::Timeout, at(99)), Some(Duration::from_secs(6)));
        timers.resume(at(100));
        assert_eq!(timers.left(Timer::Timeout, at(100)), Some(Duration::from_secs(6)));
        let looks =
            [98, 99, 100, 101, 102, 103, 104, 105, 106].map(|seconds| timers.look(at(seconds), Duration::ZERO, false));
        assert_eq!(looks, [false, false, false, false, false, false, false, false, true], "the pause was no silence");
    }

    #[test]
    fn the_run_s_own_time_outlives_its_attempts() {
        let (mut timers, now) = (Timers::new(Uptime::fake().0), Instant::now());
        for timer in [Timer::Run, Timer::Grace, Timer::Timeout, Timer::Linger] {
            timers.arm(timer, Duration::from_secs(1), now);
        }
        timers.attempt_over();
        assert!(timers.due.is_empty());
        assert!(timers.left(Timer::Run, now).is_some());
    }

    /// The machine sleeps for 8 h, during which no clock of the runtime advances.
    #[tokio::test(start_paused = true)]
    async fn a_sleep_of_the_machine_counts_for_the_run_and_its_waits_and_for_no_attempt() {
        let (clock, machine) = Uptime::fake();
        let mut timers = Timers::new(clock);
        let begin = Instant::now();
        timers.arm(Timer::Timeout, Duration::from_hours(1), begin);
        timers.arm(Timer::Wait, Duration::from_hours(5), begin);
        timers.arm(Timer::Run, Duration::from_hours(7), begin);
        machine.sleep(Duration::from_hours(8));
        assert_eq!(timers.left(Timer::Wait, begin), Some(Duration::ZERO));
        assert_eq!(timers.left(Timer::Timeout, begin), Some(Duration::from_hours(1)));
        assert_eq!((timers.over().await, timers.over().await), (Timer::Wait, Timer::Run));
        assert_eq!(timers.worked(), Duration::from_hours(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_in_the_middle_of_a_wait_is_noticed_within_half_a_minute() {
        let (clock, machine) = Uptime::fake();
        let mut timers = Timers::new(clock);
        timers.arm(Timer::Wait, Duration::from_hours(5), Instant::now());
        let begin = Instant::now();
        let asleep = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            machine.sleep(Duration::from_hours(6));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            timer = timers.over() => assert_eq!(timer, Timer::Wait),
            () = asleep => {}
        }
        assert!(begin.elapsed() <= Duration::from_secs(31), "{:?}", begin.elapsed());
    }
}
