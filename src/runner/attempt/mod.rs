//! One attempt, from its spawn to its sweep: the `select!` over everything that can happen in between.

mod launch;
mod output;
mod stream;

use crate::engine::{At, Effect, Exit, Finished, Input, Leftover, Sig, Timer};
use crate::journal::{AttemptCalls, AttemptFolder, JournalError, WorkFile};
use crate::proc::{AgentPipes, GivenUp, LifelineHandle, LifelineReport, end_survivors, is_busy};
use crate::runner::context::Failure;
use crate::runner::driver::{BEAT, Driver};
use crate::runner::flush::{sleep, written};
use crate::runner::inspect::{EndedAttempt, Inspector, Read};
use crate::runner::lanes::lane::LaneWords;
use crate::runner::signals::ReceivedSignal;
use crate::runner::work::AttemptBaseline;
pub(in crate::runner) use launch::attempt;
use output::AttemptOutput;
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use stream::Got;
use tokio::time::{Instant, sleep_until};

/// How long output is still read after the agent's exit while another process holds its pipe open.
const DRAIN: Duration = Duration::from_millis(100);
/// How many bytes are still read after that time: more than a pipe can hold. A process that writes more is a daemon.
const DRAIN_BYTES: usize = 1 << 20;

/// An attempt in progress.
pub(in crate::runner) struct Attempt<'a> {
    lifeline: &'a mut LifelineHandle,
    pipes: AgentPipes,
    output: AttemptOutput,
    folder: &'a AttemptFolder,
    token: &'a str,
    began: std::time::Instant,
    /// When the output was last read.
    heard: Instant,
    /// When the live status line is drawn next.
    draw: Option<Instant>,
    /// The file that holds the run's working time.
    work_file: Option<WorkFile>,
    /// When the working time is saved next.
    beat: Instant,
    before: AttemptBaseline,
    spawned: bool,
    exited: Option<Exit>,
    marker_told: bool,
    /// Whether a signal has asked the run to end.
    interrupted: bool,
    /// Why the lifeline was lost, if it was.
    lost: Option<&'static str>,
    drain: Drain,
    swept: Option<Vec<Leftover>>,
}

/// Why the agent could not be started.
struct NotStarted {
    why: String,
    /// Whether the machine had too few processes, descriptors or memory at that moment.
    busy: bool,
}

/// How much output is still read after the exit.
struct Drain {
    /// The deadline, which is set at the exit.
    until: Option<Instant>,
    /// How many bytes may still be read after the deadline.
    left: usize,
    over: bool,
}

impl<'a> Attempt<'a> {
    pub(in crate::runner) fn new(
        (lifeline, pipes): (&'a mut LifelineHandle, AgentPipes),
        output: AttemptOutput,
        folder: &'a AttemptFolder,
        token: &'a str,
        began: std::time::Instant,
        before: AttemptBaseline,
    ) -> Self {
        Self {
            lifeline,
            pipes,
            output,
            folder,
            token,
            began,
            heard: Instant::now(),
            draw: None,
            work_file: None,
            beat: Instant::now() + BEAT,
            before,
            spawned: false,
            exited: None,
            marker_told: false,
            interrupted: false,
            lost: None,
            drain: Drain { until: None, left: DRAIN_BYTES, over: false },
            swept: None,
        }
    }

    /// Attends the attempt from the spawn to the sweep, in this order: exit, drain, sweep, reap.
    pub(in crate::runner) async fn attend(mut self, driver: &mut Driver<'_>) -> Result<Vec<Effect>, Failure> {
        loop {
            self.output.catch_up(driver.context.observer);
            let may_read = self.output.may_read(driver.context.observer);
            // No output is read before the agent is known to run, so that the events have one order.
            let reads = may_read && self.spawned && !self.drain.over;
            self.drain.over |= self.exited.is_some() && self.output.is_over();
            // A stopped terminal is waited for, unless the run was asked to end.
            let may_end = self.drain.over && (self.interrupted || !self.output.lags());
            if let Some(leftovers) = self.swept.take_if(|_| may_end) {
                return self.over(driver, leftovers);
            }
            if self.drain.over && self.drain.until.take().is_some() && self.swept.is_none() {
                self.lifeline.line.sweep();
            }
            let effects = tokio::select! {
                biased;
                heard = driver.signals.next() => self.on_signal(driver, heard)?,
                report = self.lifeline.line.report(), if self.swept.is_none() => match self.reported(driver, report)? {
                    Ok(effects) => effects,
                    Err(NotStarted { why, busy }) => return Ok(driver.take(Input::NotStarted { error: why, busy })?),
                },
                written = written(driver.context.observer), if !driver.context.observer.is_idle() => match written {
                    Err(error) => driver.output_failed(error)?,
                    Ok(()) => Vec::new(),
                },
                _ = self.pipes.stdout.readable(), if reads && self.output.stdout.open => self.read_stdout(driver)?,
                _ = self.pipes.stderr.readable(), if reads && self.output.stderr.open => {
                    let got = self.output.read_stderr(&self.pipes.stderr, driver.context.observer)?;
                    self.got(driver, got);
                    Vec::new()
                }
                timer = driver.timers.over() => self.time_over(driver, timer, may_read)?,
                () = sleep(self.draw), if self.draw.is_some() => {
                    self.draw(driver);
                    Vec::new()
                }
                () = sleep_until(self.beat) => {
                    self.beat(driver);
                    driver.take_messages()?;
                    Vec::new()
                }
                // Comes after the reads, so that the pipe is emptied first: our own slow reader costs no output.
                () = sleep(self.drain.until), if self.drain.until.is_some() && may_read => {
                    self.drain.over = true;
                    Vec::new()
                }
            };
            self.perform(driver, effects).await?;
        }
    }

    async fn perform(&mut self, driver: &mut Driver<'_>, effects: Vec<Effect>) -> Result<(), Failure> {
        for effect in effects {
            match effect {
                Effect::Signal(signal) => self.lifeline.line.signal(signal),
                Effect::PauseAgent => self.lifeline.line.stop(),
                Effect::ContinueAgent => self.lifeline.line.go_on(),
                Effect::StandStill => driver.stand_still().await,
                // These timers have nothing left to limit after the exit.
                Effect::Arm(Timer::Timeout | Timer::Idle | Timer::Start | Timer::Linger, _)
                    if self.exited.is_some() => {}
                Effect::Arm(timer, time) => driver.arm(timer, time),
                Effect::Spawn { .. } | Effect::Finish(_) => {}
            }
        }
        Ok(())
    }

    fn on_signal(&mut self, driver: &mut Driver<'_>, heard: ReceivedSignal) -> Result<Vec<Effect>, Failure> {
        if let ReceivedSignal::End(_) = heard {
            self.interrupted = true;
            self.output.stop_pacing();
            driver.context.observer.stop_pacing();
        }
        driver.hear(heard)
    }

    /// Handles a report of the lifeline.
    fn reported(
        &mut self,
        driver: &mut Driver<'_>,
        report: LifelineReport,
    ) -> Result<Result<Vec<Effect>, NotStarted>, JournalError> {
        match report {
            LifelineReport::Spawned { pid, start_time } => {
                self.spawned = true;
                self.draw = driver.context.observer.frame().map(|frame| Instant::now() + frame);
                return driver.take(Input::Spawned { pid, start_time }).map(Ok);
            }
            LifelineReport::Failed(errno) => {
                return Ok(Err(NotStarted { why: spawn_words(errno), busy: is_busy(errno) }));
            }
            // Concerns only the connection to the lifeline.
            LifelineReport::Answered => {}
            LifelineReport::Stopped(signal) => return driver.take(Input::AgentPaused(signal)).map(Ok),
            LifelineReport::Continued => return driver.take(Input::AgentContinued).map(Ok),
            LifelineReport::Exited(exit) => {
                self.exited = Some(exit);
                driver.timers.process_exited();
                self.drain.until = Some(Instant::now() + DRAIN);
            }
            LifelineReport::Swept(leftovers) => self.swept = Some(leftovers),
            LifelineReport::Gone => {
                // The lifeline is gone: the processes that it supervised are found without it.
                let leftovers = self.without_lifeline(driver)?;
                self.lost = Some(match self.lifeline.line.given_up() {
                    None => "its lifeline was killed",
                    Some(GivenUp::Silent) => "its lifeline did not answer and was killed",
                    Some(GivenUp::Deaf) => "its lifeline accepted no commands and was killed",
                });
                if !self.spawned {
                    // A lifeline that has worked before is replaced.
                    let busy = self.lifeline.line.given_up().is_none() || self.lifeline.is_used();
                    return Ok(Err(NotStarted { why: self.lost.unwrap_or_default().into(), busy }));
                }
                self.exited.get_or_insert(Exit::Signal(Sig::Kill.number()));
                self.swept = Some(leftovers);
                self.drain.over = true;
            }
        }
        Ok(Ok(Vec::new()))
    }

    fn read_stdout(&mut self, driver: &mut Driver<'_>) -> Result<Vec<Effect>, JournalError> {
        let got = self.output.read_stdout(&self.pipes.stdout, driver.context.observer)?;
        if let Got::Bytes(_) = got {
            driver.timers.disarm(Timer::Start);
        }
        self.got(driver, got);
        let mut effects = Vec::new();
        effects.extend(self.tell_marker(driver)?);
        if let Some(tokens) = self.output.used() {
            let said_all = self.output.has_said_all();
            effects.extend(driver.take(Input::Used { tokens, said_all })?);
        }
        Ok(effects)
    }

    /// Reports a change of the marker: a program may continue after it, and end without one.
    fn tell_marker(&mut self, driver: &mut Driver<'_>) -> Result<Vec<Effect>, JournalError> {
        let seen = self.output.marker_seen();
        if seen == self.marker_told {
            return Ok(Vec::new());
        }
        self.marker_told = seen;
        driver.take(if seen { Input::Marker } else { Input::MarkerGone })
    }

    /// Draws the live status line, except while the run is paused.
    fn draw(&mut self, driver: &mut Driver<'_>) {
        let elapsed = Duration::from_millis(driver.context.world.milliseconds_since(self.began));
        if !driver.timers.is_paused() {
            driver.context.observer.draw(elapsed, self.heard.elapsed());
        }
        self.draw = driver.context.observer.frame().map(|frame| Instant::now() + frame);
    }

    /// Saves how long the run has been running, so that it is known if forkhestra is killed.
    fn beat(&mut self, driver: &Driver<'_>) {
        // The file is created only now, so that a short attempt costs none.
        self.work_file = self.work_file.take().or_else(|| self.folder.work_file());
        if let Some(file) = &self.work_file {
            file.write(driver.worked_ms());
        }
        // If the agent has not started, or closed its output without a report of its exit, the lifeline may hang: it is
        // asked.
        if !self.spawned || self.output.is_over() && self.exited.is_none() {
            self.lifeline.line.ask();
        }
        self.beat = Instant::now() + BEAT;
    }

    /// Records the result of a read. Ends the drain once too many bytes have come after its deadline.
    fn got(&mut self, driver: &mut Driver<'_>, got: Got) {
        let now = Instant::now();
        self.heard = now;
        if !self.output.waits() {
            driver.timers.saw_life(now);
        }
        if let (Got::Bytes(bytes), Some(until)) = (got, self.drain.until)
            && now > until
        {
            self.drain.left = self.drain.left.saturating_sub(bytes);
        }
        self.drain.over |= self.drain.left == 0;
    }

    fn time_over(
        &mut self,
        driver: &mut Driver<'_>,
        timer: Timer,
        may_read: bool,
    ) -> Result<Vec<Effect>, JournalError> {
        if timer == Timer::Idle {
            let (now, cpu) = (Instant::now(), self.lifeline.cpu_time());
            // While our own reader is slow, the agent's silence means nothing.
            if !may_read {
                driver.timers.saw_life(now);
            }
            self.lifeline.line.ask();
            if !driver.timers.look(now, cpu, self.output.waits()) {
                return Ok(Vec::new());
            }
        }
        driver.take(Input::TimeOver(timer))
    }

    fn without_lifeline(&mut self, driver: &mut Driver<'_>) -> Result<Vec<Leftover>, JournalError> {
        let leftovers = {
            let entry = format!("FORKHESTRA_TOKEN={}", self.token);
            end_survivors(&|variable| variable == entry.as_bytes(), self.lifeline.pid())
        };
        self.output.stop_pacing();
        self.read_rest(driver)?;
        Ok(leftovers)
    }

    /// Reads what is left in the pipes after their writers are gone.
    fn read_rest(&mut self, driver: &mut Driver<'_>) -> Result<(), JournalError> {
        // Bounded: a survivor that was not found may continue to write.
        let mut left = DRAIN_BYTES;
        while left > 0
            && let Got::Bytes(bytes) = self.output.read_stdout(&self.pipes.stdout, driver.context.observer)?
        {
            left = left.saturating_sub(bytes);
        }
        while left > 0
            && let Got::Bytes(bytes) = self.output.read_stderr(&self.pipes.stderr, driver.context.observer)?
        {
            left = left.saturating_sub(bytes);
        }
        Ok(())
    }

    /// Reads what the attempt decided and did.
    fn read(&self, driver: &mut Driver<'_>, at: &At, exit: Exit) -> Result<Read, JournalError> {
        let role = driver.context.role(at);
        if let Some(lane) = driver.lane {
            let said = LaneWords {
                words: self.output.answer(),
                echoes: self.output.echoes(),
                is_final: self.output.has_final(),
            };
            let read = Read::in_lane(lane.answered(said, role, self.folder));
            let _ = AttemptCalls::of(self.folder, self.token).take();
            return Ok(read);
        }
        let attempt = EndedAttempt {
            at,
            message: if role.is_some() { self.output.message() } else { String::new() },
            echoes: self.output.echoes(),
            folder: self.folder,
            token: self.token,
            before: &self.before,
            exit,
        };
        let Driver { context, work, guard, .. } = driver;
        Inspector { context, work, guard }.read(attempt)
    }

    fn over(mut self, driver: &mut Driver<'_>, leftovers: Vec<Leftover>) -> Result<Vec<Effect>, Failure> {
        driver.timers.attempt_over();
        driver.context.journal.still_there()?;
        let held_open = !self.output.is_over() || self.drain.left == 0;
        self.output.finish(self.folder, driver.context.observer, driver.context.world)?;
        driver.context.observer.output_over();
        self.tell_marker(driver)?;
        let took_ms = driver.context.world.milliseconds_since(self.began);
        let loops = driver.loops();
        let seen = driver.work.look(driver.context.root, loops);
        let fingerprint = seen.as_ref().filter(|_| loops).map(|seen| seen.with(&self.output.last_words()));
        let exit = self.output.exit(self.exited.unwrap_or(Exit::Signal(Sig::Kill.number())));
        let at = driver.state.at().cloned();
        let read = at.as_ref().map(|at| self.read(driver, at, exit)).transpose()?.unwrap_or_default();
        let trace = self.output.trace();
        let mut finished: Finished = self.output.finished(took_ms, held_open, leftovers, fingerprint);
        let said = read.into_finished(&mut finished);
        finished.tree = seen.and_then(|seen| driver.work.tree_now(&driver.context, &seen));
        finished.lifeline = self.lost.map(str::to_string);
        if let (Exit::Code(code @ 1..), None) = (exit, &finished.error) {
            finished.error = driver.exit_words(code);
        }
        if let Some(at) = at {
            driver.choices.remember((&driver.context, &driver.state), &at, (&mut finished, exit), trace);
        }
        driver.context.journal.sync_before(self.folder, finished.stdout_bytes, finished.stderr_bytes)?;
        Ok(driver.take(Input::Exited { exit, finished: Box::new(finished), verdict: said })?)
    }
}

/// Describes why a program could not be started, with advice for some errors.
fn spawn_words(errno: i32) -> String {
    let said = io::Error::from_raw_os_error(errno);
    match Errno::from_raw_os_error(errno) {
        Errno::TOOBIG => format!("{said}; deliver the prompt on standard input: \"deliver\": \"stdin\""),
        Errno::NOEXEC => format!("{said}; a script needs a first line such as #!/bin/sh"),
        _ => said.to_string(),
    }
}
