//! One attempt from its spawn to its sweep: the `select!` over everything that can happen meanwhile.

use super::driver::{Driver, Failure};
use super::event::{Finished, Leftover};
use super::idle::IdleWatch;
use super::machine::{Effect, Input};
use super::outcome::{Cut, Exit, Sig};
use super::stage::Stage;
use super::tape::Got;
use crate::journal::{AttemptFolder, JournalError};
use crate::proc::{Child, Report, end_survivors};
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long output may come after the agent's exit while somebody holds its pipe (V-04).
const DRAIN: Duration = Duration::from_millis(100);
/// How much may come after that time: what a pipe can hold and then some; whoever writes more is a daemon.
const DRAIN_BYTES: usize = 1 << 20;

/// What an attempt works with.
pub(super) struct Attempt<'a> {
    pub(super) child: &'a mut Child,
    pub(super) stage: Stage,
    pub(super) folder: &'a AttemptFolder,
    pub(super) token: &'a str,
}

impl Attempt<'_> {
    /// From the spawn to the sweep, in this order: exit, drain, sweep, reap.
    pub(super) async fn attend(mut self, driver: &mut Driver<'_>) -> Result<Vec<Effect>, Failure> {
        let began = driver.cast.world.now();
        let (mut grace, mut timeout) = (None::<Instant>, None::<Instant>);
        let mut idle: Option<IdleWatch> = None;
        let mut exited: Option<Exit> = None;
        let (mut marker_told, mut interrupted, mut spawned) = (false, false, false);
        // Set at the exit: until when and how much more may come.
        let (mut drain_until, mut drain_left) = (None::<Instant>, DRAIN_BYTES);
        let (mut drained, mut swept) = (false, None::<Vec<Leftover>>);
        loop {
            self.stage.catch_up(driver.cast.screen);
            let may_read = self.stage.may_read(driver.cast.screen);
            // Nothing is heard of an agent before it is known to run, so that the events have one order.
            let reads = may_read && spawned && !drained;
            drained |= exited.is_some() && self.stage.is_over();
            // A stopped terminal is waited for, unless we are asked to stop.
            if let Some(leftovers) = swept.take_if(|_| interrupted || !self.stage.lags()) {
                return self.over(driver, exited, began, marker_told, drain_left, leftovers);
            }
            if drained && drain_until.take().is_some() {
                self.child.line.sweep();
            }
            let mut effects = Vec::new();
            tokio::select! {
                biased;
                signal = driver.signals.next() => {
                    interrupted = true;
                    self.stage.hurry();
                    driver.cast.screen.hurry();
                    effects = driver.take(Input::Signal(signal))?;
                }
                report = self.child.line.report(), if swept.is_none() => match report {
                    Report::Spawned { pid, start_time } => {
                        spawned = true;
                        effects = driver.take(Input::Spawned { pid, start_time })?;
                    }
                    Report::Failed(errno) => {
                        let why = spawn_words(errno);
                        return Ok(driver.take(Input::NotStarted { why })?);
                    }
                    Report::Exited(exit) => {
                        exited = Some(exit);
                        (timeout, idle) = (None, None);
                        drain_until = Some(Instant::now() + DRAIN);
                    }
                    Report::Swept(leftovers) => swept = Some(leftovers),
                    Report::Gone => {
                        // Somebody killed the lifeline: what it held is found without it.
                        let leftovers = self.without_lifeline(driver)?;
                        if !spawned {
                            return Ok(driver.take(Input::NotStarted { why: "its lifeline was killed".into() })?);
                        }
                        exited.get_or_insert(Exit::Signal(Sig::Kill.number()));
                        swept = Some(leftovers);
                    }
                    Report::Stopped(_) | Report::Continued => {}
                },
                written = driver.cast.screen.progress(), if !driver.cast.screen.is_idle() => if let Err(error) = written {
                    effects = driver.output_failed(error)?;
                },
                _ = self.child.stdout.readable(), if reads && self.stage.stdout.open => {
                    let got = self.stage.read_stdout(&self.child.stdout, driver.cast.screen)?;
                    note_life(&mut idle);
                    drained |= flooded(got, drain_until, &mut drain_left);
                    if self.stage.marker_seen() && !marker_told {
                        marker_told = true;
                        effects = driver.take(Input::Marker)?;
                    }
                }
                _ = self.child.stderr.readable(), if reads && self.stage.stderr.open => {
                    let got = self.stage.read_stderr(&self.child.stderr, driver.cast.screen)?;
                    note_life(&mut idle);
                    drained |= flooded(got, drain_until, &mut drain_left);
                }
                () = sleep(timeout), if timeout.is_some() => {
                    timeout = None;
                    effects = driver.take(Input::TimeOver(Cut::Timeout))?;
                }
                () = sleep(idle.as_ref().map(IdleWatch::next_look)), if idle.is_some() => {
                    if looks_idle(&mut idle, self.child, may_read) {
                        idle = None;
                        effects = driver.take(Input::TimeOver(Cut::Idle))?;
                    }
                }
                () = sleep(grace), if grace.is_some() => {
                    grace = None;
                    effects = driver.take(Input::GraceOver)?;
                }
                // After the reads: what is in the pipe is never left there, a slow reader of ours costs no output.
                () = sleep(drain_until), if drain_until.is_some() && may_read => drained = true,
            }
            for effect in effects {
                match effect {
                    Effect::Signal(signal) => self.child.line.signal(signal),
                    // An exit that is known is no longer timed.
                    Effect::ArmTimers { timeout: time, idle: silent } if exited.is_none() => {
                        timeout = time.map(|time| Instant::now() + time);
                        idle = silent.map(|silent| IdleWatch::new(silent, Instant::now(), Duration::ZERO));
                    }
                    Effect::ArmGrace => grace = Some(Instant::now() + driver.cast.world.grace()),
                    Effect::Spawn { .. } | Effect::Finish(_) | Effect::ArmTimers { .. } => {}
                }
            }
        }
    }

    fn without_lifeline(&mut self, driver: &mut Driver<'_>) -> Result<Vec<Leftover>, JournalError> {
        let leftovers = end_survivors(&format!("FORKHESTRA_TOKEN={}", self.token), self.child.lifeline());
        self.stage.hurry();
        self.read_rest(driver)?;
        Ok(leftovers)
    }

    /// What is in the pipes when nobody is left to write to them.
    fn read_rest(&mut self, driver: &mut Driver<'_>) -> Result<(), JournalError> {
        // Bounded: a survivor that was not found may go on writing.
        let mut left = DRAIN_BYTES;
        while left > 0
            && let Got::Bytes(bytes) = self.stage.read_stdout(&self.child.stdout, driver.cast.screen)?
        {
            left = left.saturating_sub(bytes);
        }
        while left > 0
            && let Got::Bytes(bytes) = self.stage.read_stderr(&self.child.stderr, driver.cast.screen)?
        {
            left = left.saturating_sub(bytes);
        }
        Ok(())
    }

    fn over(
        mut self,
        driver: &mut Driver<'_>,
        exited: Option<Exit>,
        began: std::time::Instant,
        marker_told: bool,
        drain_left: usize,
        leftovers: Vec<Leftover>,
    ) -> Result<Vec<Effect>, Failure> {
        let held_open = !self.stage.is_over() || drain_left == 0;
        self.stage.finish(self.folder, driver.cast.screen)?;
        if self.stage.marker_seen() && !marker_told {
            driver.take(Input::Marker)?;
        }
        let finished: Finished = self.stage.finished(driver.cast.world.milliseconds_since(began), held_open, leftovers);
        let exit = exited.unwrap_or(Exit::Signal(Sig::Kill.number()));
        Ok(driver.take(Input::Exited { exit, finished })?)
    }
}

/// Whether the idle time is over. While it is our reader who is slow, the agent's silence says nothing.
fn looks_idle(idle: &mut Option<IdleWatch>, child: &Child, may_read: bool) -> bool {
    let (now, cpu) = (Instant::now(), child.cpu_time());
    idle.as_mut().is_some_and(|watch| {
        if !may_read {
            watch.saw_life(now);
        }
        watch.is_over(now, cpu)
    })
}

fn note_life(idle: &mut Option<IdleWatch>) {
    if let Some(watch) = idle {
        watch.saw_life(Instant::now());
    }
}

/// Whether so much came after the drain's end that somebody is flooding.
fn flooded(got: Got, drain_until: Option<Instant>, left: &mut usize) -> bool {
    if let (Got::Bytes(bytes), Some(until)) = (got, drain_until)
        && Instant::now() > until
    {
        *left = left.saturating_sub(bytes);
    }
    *left == 0
}

/// Until then; for ever without a time.
pub(super) async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Why a program could not be started, in words.
fn spawn_words(errno: i32) -> String {
    const E2BIG: i32 = 7;
    const ENOEXEC: i32 = 8;
    let said = io::Error::from_raw_os_error(errno);
    match errno {
        E2BIG => format!("{said}; deliver the prompt on standard input: \"deliver\": \"stdin\""),
        ENOEXEC => format!("{said}; a script needs a first line such as #!/bin/sh"),
        _ => said.to_string(),
    }
}
