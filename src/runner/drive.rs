//! A run from its beginning to its end: what the engine wants is done, and what happens outside is told to the engine.

use super::attempt::attempt;
use super::context::{Failure, ResumePoint, RunContext, RunEnd, RunStart, StartPoint};
use super::driver::{BEAT, Driver, new_token};
use super::flush::{PATIENCE, sleep, written};
use super::lanes::lane::Lane;
use super::signals::{ReceivedSignal, Signals};
use crate::engine::{Effect, EventKind, HighestAttempt, Input, RunOutcome, Stopwatch, Timer, evolve};
use crate::journal::JournalError;
use crate::plan::Overrides;
use crate::proc::{LifelineHandle, adopt_orphans, containment};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// Runs a plan to its end.
///
/// # Errors
/// When the run cannot continue; it is ended gracefully first.
pub async fn drive(context: RunContext<'_>, begin: RunStart) -> Result<RunEnd, Failure> {
    let signals = Signals::listen(|signal| context.world.ignores(signal)).map_err(Failure::Signals)?;
    let mut lifeline = None;
    let ended = drive_with_lifeline(context, begin, signals, None, &mut lifeline).await;
    // The lifeline also holds the lock of the directory.
    if let Some(lifeline) = lifeline {
        lifeline.end();
    }
    ended
}

/// Runs a plan of one agent alongside others.
pub(super) async fn drive_in_lane<'a>(
    context: RunContext<'a>,
    lane: &'a Lane<'a>,
    heard: UnboundedReceiver<ReceivedSignal>,
    lifeline: &mut Option<LifelineHandle>,
) -> Result<RunEnd, Failure> {
    // The start of a lane is not recorded: it is part of a run that has started.
    let start = StartPoint { digest: String::new(), overrides: Overrides::default(), logins: None };
    let begin = RunStart::New(Box::new(start));
    drive_with_lifeline(context, begin, Signals::passed_on(heard), Some(lane), lifeline).await
}

/// Runs a plan under this lifeline, and leaves the lifeline for the next one.
async fn drive_with_lifeline<'a>(
    context: RunContext<'a>,
    begin: RunStart,
    signals: Signals,
    lane: Option<&'a Lane<'a>>,
    lifeline: &mut Option<LifelineHandle>,
) -> Result<RunEnd, Failure> {
    adopt_orphans();
    let token = new_token(&context)?;
    let resumed = matches!(begin, RunStart::Resumed(_));
    let mut driver = Driver::new(context, (lane, lifeline.take()), token, signals, resumed);
    let outcome = run(&mut driver, begin).await;
    let ended_well = !matches!(outcome, Err(_) | Ok(RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed));
    flush(&mut driver, if ended_well { None } else { Some(PATIENCE) }).await;
    *lifeline = driver.lifeline;
    Ok(RunEnd { outcome: outcome?, output_error: driver.output_error })
}

/// Begins a run, and returns its first effects.
fn begin(driver: &mut Driver<'_>, start: RunStart) -> Result<Vec<Effect>, JournalError> {
    let plan = driver.context.plan;
    let StartPoint { digest, overrides, logins } = match start {
        RunStart::New(start) => *start,
        RunStart::Resumed(again) => return begin_again(driver, *again),
    };
    driver.work.begin(&mut driver.context, &overrides)?;
    if driver.guard.is_needed() {
        driver.context.journal.remember()?;
    }
    let started = EventKind::RunStarted {
        chain: plan.chain.clone(),
        name: plan.name.clone(),
        prompt: plan.prompt.clone(),
        vars: plan.vars.clone(),
        digest,
        root: driver.context.root.display().to_string(),
        forkhestra: env!("CARGO_PKG_VERSION").into(),
        steps: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
        overrides,
        base: driver.work.begun().commit.clone(),
        tree: driver.work.begun().tree.clone(),
        rules: driver.work.begun().rules.clone(),
        task: plan.task.clone(),
        queue: logins,
        found: driver.work.begun().now.clone(),
        containment: containment(),
    };
    evolve(&mut driver.state, &started);
    driver.record(vec![started])?;
    driver.take(Input::Begin)
}

/// Folds the journaled events into the state from which the run continues, and returns its first effects.
fn begin_again(driver: &mut Driver<'_>, again: ResumePoint) -> Result<Vec<Effect>, JournalError> {
    let ResumePoint { events, leftovers, limits, decided, more } = again;
    let mut watch = Stopwatch::default();
    let tree = match events.first() {
        Some(began) => driver.work.begin_again(&driver.context, &began.event)?,
        None => None,
    };
    for event in &events {
        evolve(&mut driver.state, &event.event);
        watch.see(event);
        // Earlier events are not shown again; sums and times continue.
        driver.context.observer.earlier_event(event);
    }
    driver.recorder.continue_after(events.last().map_or(0, |event| event.seq));
    if let Some(at) = driver.state.under_way() {
        let folder = driver.context.journal.files().attempt_folder(driver.context.run, at.step, &at.name, at.attempt);
        watch.worked(folder.worked_ms().unwrap_or(0));
    }
    driver.timers.after(Duration::from_millis(watch.milliseconds()));
    if driver.guard.is_needed() {
        driver.context.journal.remember()?;
    }
    let attempts = driver.context.journal.files().highest_attempts(driver.context.run);
    let attempts = attempts.into_iter().map(|(step, attempt)| HighestAttempt { step, attempt }).collect();
    driver.take(Input::Resume { elapsed_ms: watch.milliseconds(), leftovers, attempts, limits, decided, more, tree })
}

async fn run(driver: &mut Driver<'_>, start: RunStart) -> Result<RunOutcome, Failure> {
    let mut effects: VecDeque<Effect> = begin(driver, start)?.into();
    loop {
        match effects.pop_front() {
            Some(Effect::Finish(outcome)) => return Ok(outcome),
            Some(Effect::Spawn { at, feedback }) => effects.extend(attempt(driver, &at, feedback.as_ref()).await?),
            Some(Effect::Arm(timer, time)) => driver.arm(timer, time),
            Some(Effect::StandStill) => driver.stand_still().await,
            // Only an attempt has a process to signal.
            Some(Effect::Signal(_) | Effect::PauseAgent | Effect::ContinueAgent) => {}
            None if driver.state.is_waiting() => effects.extend(wait(driver).await?),
            None => return Err(Failure::Lost),
        }
    }
}

/// Waits until something happens while no agent runs, for example until a usage limit is reset.
async fn wait(driver: &mut Driver<'_>) -> Result<Vec<Effect>, Failure> {
    loop {
        let now = Instant::now();
        let left = driver.timers.left(Timer::Wait, now).unwrap_or_default();
        let next = driver.context.observer.countdown(left);
        let tick = next.filter(|_| !driver.timers.is_paused()).map(|next| now + next);
        tokio::select! {
            biased;
            heard = driver.signals.next() => return driver.hear(heard),
            written = written(driver.context.observer), if !driver.context.observer.is_idle() => if let Err(error) = written {
                return Ok(driver.output_failed(error)?);
            },
            timer = driver.timers.over() => return Ok(driver.take(Input::TimeOver(timer))?),
            () = sleep(tick) => {}
            () = sleep(Some(now + BEAT)) => driver.take_messages()?,
        }
    }
}

/// Waits until all output has been written. Gives up when a signal ends the run, or if nothing is written for as
/// long as `patience`.
async fn flush(driver: &mut Driver<'_>, patience: Option<Duration>) {
    while !driver.context.observer.is_idle() {
        let deadline = patience.map(|patience| Instant::now() + patience);
        tokio::select! {
            biased;
            heard = driver.signals.next() => match heard {
                ReceivedSignal::End(_) => return,
                ReceivedSignal::Pause => driver.signals.stop(),
                ReceivedSignal::Continue => {}
            },
            written = written(driver.context.observer) => if let Err(error) = written {
                driver.output_error.get_or_insert(error);
            },
            () = sleep(deadline) => return,
        }
    }
}
