//! The driver turns everything that happens outside into inputs of the engine. It appends the engine's events to the
//! journal before it performs their effects.

use super::attempt::{AttemptOutput, Choices};
use super::context::{Failure, ResumePoint, RunContext, RunEnd, RunStart};
use super::evidence::Transcripts;
use super::flush::{PATIENCE, sleep, written};
use super::hooks::RunningHooks;
use super::lanes::lane::Lane;
use super::recorder::Recorder;
use super::signals::{ReceivedSignal, Signals};
use super::templates::TemplateWatch;
use super::timers::Timers;
use crate::chain::Limit;
use crate::checks::Deciding;
use crate::context::{GuardWatch, Snapshot, Snapshots, TreeWatch};
use crate::engine::{Effect, EventKind, HighestAttempt, Input, RunOutcome, State, Stopwatch, Timer, Transition};
use crate::journal::{JournalError, OwnFolder, UnexpectedFile};
use crate::proc::{LifelineHandle, adopt_orphans, containment};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How often the run's working time is saved, and messages from people are read.
pub(super) const BEAT: Duration = Duration::from_secs(1);

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
    let begin = RunStart::New(Box::default(), None);
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
    let clock = context.world.uptime_clock();
    let recorder = Recorder::new(context.run, 0, []);
    let mut driver = Driver {
        context,
        lane,
        lifeline: lifeline.take(),
        token,
        signals,
        timers: Timers::new(clock),
        state: State::default(),
        recorder,
        tree: TreeWatch::default(),
        begun: WorkBaseline::default(),
        resumed: matches!(begin, RunStart::Resumed(_)),
        deciding: None,
        guarding: GuardWatch::default(),
        weakened: Vec::new(),
        own: None,
        unrestored: BTreeSet::new(),
        judged: None,
        diagnosed: None,
        hooks: RunningHooks::default(),
        templates: TemplateWatch::default(),
        choices: Choices::default(),
        output_error: None,
        observer_error: None,
    };
    let outcome = driver.run(begin).await;
    let ended_well = !matches!(outcome, Err(_) | Ok(RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed));
    driver.flush(if ended_well { None } else { Some(PATIENCE) }).await;
    *lifeline = driver.lifeline;
    Ok(RunEnd { outcome: outcome?, output_error: driver.output_error })
}

/// Returns a random token, prefixed with the lease's fencing number, so that a token of an older run that turns up
/// later is recognized.
pub(super) fn new_token(context: &RunContext<'_>) -> Result<String, Failure> {
    Ok(format!("{}-{}", context.journal.fence(), context.world.token().map_err(Failure::Token)?))
}

/// The state that the work is compared with.
#[derive(Debug, Default)]
pub(super) struct WorkBaseline {
    pub(super) snapshots: Option<Snapshots>,
    /// The tree that the work began with; none if it is unknown.
    pub(super) tree: Option<String>,
    /// The snapshot of the tree as this process found it.
    pub(super) now: Option<String>,
    /// The commit that was checked out then, or that the user named.
    pub(super) commit: Option<String>,
    /// The user's own ignore rules when the work began.
    pub(super) rules: Option<String>,
    pub(super) sha256: bool,
    /// The last snapshot, with the fingerprint of the working tree right before it.
    pub(super) last: Option<(String, String)>,
    /// The working tree as this process found it.
    pub(super) found: Option<Snapshot>,
}

pub(super) struct Driver<'a> {
    pub(super) context: RunContext<'a>,
    /// The lane of this run, if it is one of several.
    pub(super) lane: Option<&'a Lane<'a>>,
    /// The lifeline under which the next attempt is started; none before the first attempt, and after one was lost.
    pub(super) lifeline: Option<LifelineHandle>,
    /// The token of the next attempt.
    pub(super) token: String,
    pub(super) signals: Signals,
    pub(super) timers: Timers,
    pub(super) state: State,
    recorder: Recorder,
    pub(super) tree: TreeWatch,
    /// The tree and the commit that the work is compared with, and the snapshots for that.
    pub(super) begun: WorkBaseline,
    /// Whether an earlier process began the run.
    pub(super) resumed: bool,
    /// What the work is judged by, as it was when the work began.
    pub(super) deciding: Option<Deciding>,
    pub(super) guarding: GuardWatch,
    /// Descriptions of changes to what the work is judged by, made since the work began.
    pub(super) weakened: Vec<String>,
    /// The content of `.forkhestra/` before an attempt whose agent could tamper with the judgment of its own work.
    pub(super) own: Option<OwnFolder>,
    /// Changes that attempts made in `.forkhestra/` and that were not undone.
    pub(super) unrestored: BTreeSet<UnexpectedFile>,
    /// The number of a judge's step, and the tree as that judge found it.
    pub(super) judged: Option<(u32, Snapshot)>,
    /// The tree that `diagnose` last ran on, and whether it passed. Kept only in memory, so that no agent can change
    /// it.
    pub(super) diagnosed: Option<(String, bool)>,
    /// Hooks that are running alongside the run.
    pub(super) hooks: RunningHooks,
    pub(super) templates: TemplateWatch,
    /// What the choice of the next attempt's backend, model and session depends on.
    pub(super) choices: Choices,
    pub(super) output_error: Option<io::Error>,
    /// The error of an observer that accepts no more events.
    observer_error: Option<io::Error>,
}

impl Driver<'_> {
    /// Begins a run, and returns its first effects.
    fn begin(&mut self, begin: RunStart) -> Result<Vec<Effect>, JournalError> {
        let plan = self.context.plan;
        let (overrides, queue) = match begin {
            RunStart::New(overrides, queue) => (*overrides, queue),
            RunStart::Resumed(again) => return self.begin_again(*again),
        };
        self.begin_work(&overrides)?;
        if self.is_guarded() && self.lane.is_none() {
            self.context.journal.remember()?;
        }
        let started = EventKind::RunStarted {
            chain: plan.chain.clone(),
            name: plan.name.clone(),
            prompt: plan.prompt.clone(),
            vars: plan.vars.clone(),
            digest: plan.digest.clone(),
            root: self.context.root.display().to_string(),
            forkhestra: env!("CARGO_PKG_VERSION").into(),
            steps: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
            overrides,
            base: self.begun.commit.clone(),
            tree: self.begun.tree.clone(),
            rules: self.begun.rules.clone(),
            task: plan.task.clone(),
            queue,
            found: self.begun.now.clone(),
            containment: containment(),
        };
        self.state.evolve(&started);
        self.record(vec![started])?;
        self.take(Input::Begin)
    }

    /// Folds the journaled events into the state from which the run continues, and returns its first effects.
    fn begin_again(&mut self, again: ResumePoint) -> Result<Vec<Effect>, JournalError> {
        let ResumePoint { events, leftovers, limits, decided, more } = again;
        let mut watch = Stopwatch::default();
        let tree = match events.first() {
            Some(began) => self.begin_work_again(&began.event)?,
            None => None,
        };
        for event in &events {
            self.state.evolve(&event.event);
            watch.see(event);
            // Earlier events are not shown again; sums and times continue.
            self.context.observer.earlier_event(event);
        }
        self.recorder.continue_after(events.last().map_or(0, |event| event.seq));
        if let Some(at) = self.state.under_way() {
            let folder = self.context.journal.attempt_folder(self.context.run, at.step, &at.name, at.attempt);
            watch.worked(folder.worked_ms().unwrap_or(0));
        }
        self.timers.after(Duration::from_millis(watch.milliseconds()));
        if self.is_guarded() && self.lane.is_none() {
            self.context.journal.remember()?;
        }
        let attempts = self.context.journal.highest_attempts(self.context.run);
        let attempts = attempts.into_iter().map(|(step, attempt)| HighestAttempt { step, attempt }).collect();
        self.take(Input::Resume { elapsed_ms: watch.milliseconds(), leftovers, attempts, limits, decided, more, tree })
    }

    async fn run(&mut self, begin: RunStart) -> Result<RunOutcome, Failure> {
        let mut effects: VecDeque<Effect> = self.begin(begin)?.into();
        loop {
            match effects.pop_front() {
                Some(Effect::Finish(outcome)) => return Ok(outcome),
                Some(Effect::Spawn { at, feedback }) => effects.extend(self.attempt(&at, feedback.as_ref()).await?),
                Some(Effect::Arm(timer, time)) => self.arm(timer, time),
                Some(Effect::StandStill) => self.stand_still().await,
                // Only an attempt has a process to signal.
                Some(Effect::Signal(_) | Effect::PauseAgent | Effect::ContinueAgent) => {}
                None if self.state.is_waiting() => effects.extend(self.wait().await?),
                None => return Err(Failure::Lost),
            }
        }
    }

    /// Waits until something happens while no agent runs, for example until a usage limit is reset.
    async fn wait(&mut self) -> Result<Vec<Effect>, Failure> {
        loop {
            let now = Instant::now();
            let left = self.timers.left(Timer::Wait, now).unwrap_or_default();
            let next = self.context.observer.countdown(left);
            let tick = next.filter(|_| !self.timers.is_paused()).map(|next| now + next);
            tokio::select! {
                biased;
                heard = self.signals.next() => return self.hear(heard),
                written = written(self.context.observer), if !self.context.observer.is_idle() => if let Err(error) = written {
                    return Ok(self.output_failed(error)?);
                },
                timer = self.timers.over() => return Ok(self.take(Input::TimeOver(timer))?),
                () = sleep(tick) => {}
                () = sleep(Some(now + BEAT)) => self.take_messages()?,
            }
        }
    }

    pub(super) fn arm(&mut self, timer: Timer, time: Duration) {
        let time = match timer {
            Timer::Grace => self.context.world.shortened("GRACE", time),
            Timer::Linger => self.context.world.shortened("LINGER", time),
            // Jitter, so that many runs that wait for one service do not all return at the same moment.
            Timer::Wait => {
                let jitter = self.context.world.jitter(time.min(Duration::from_mins(1)) / 4);
                self.context.world.shortened("WAIT", time + jitter)
            }
            _ => time,
        };
        self.timers.arm(timer, time, Instant::now());
    }

    /// Returns how long the run has been running, in milliseconds; 0 while the tests' clock stands still.
    pub(super) fn worked_ms(&self) -> u64 {
        if self.context.world.is_still() {
            0
        } else {
            u64::try_from(self.timers.worked().as_millis()).unwrap_or(u64::MAX)
        }
    }

    /// Returns what an exit code of the current attempt's program means, if that is known.
    pub(super) fn exit_words(&self, code: i32) -> Option<String> {
        let step = self.context.plan.step(self.state.at()?.step)?;
        step.exit_words(code).map(str::to_string)
    }

    /// Returns a fingerprint of what an iteration of a loop leaves behind: the tree, and the end of its output. None
    /// for a step that does not loop.
    pub(super) fn fingerprint(&mut self, output: &AttemptOutput) -> Option<String> {
        let step = self.context.plan.step(self.state.at()?.step)?;
        let looped = step.limit != Limit::Once && !step.is_check();
        looped.then(|| self.tree.fingerprint(self.context.root, &output.last_words()))
    }

    /// Handles one input: decides, records the events and reports them. The caller has to perform the effects.
    pub(super) fn take(&mut self, input: Input) -> Result<Vec<Effect>, JournalError> {
        let Transition { state, events, mut effects } =
            std::mem::take(&mut self.state).decide(self.context.plan, input);
        self.state = state;
        self.record(events)?;
        if let Some(error) = self.observer_error.take()
            && self.output_error.is_none()
        {
            effects.extend(self.output_failed(error)?);
        }
        Ok(effects)
    }

    fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), JournalError> {
        let RunContext { journal, world, .. } = &mut self.context;
        if let Some(lane) = self.lane {
            let kinds = kinds.iter().filter_map(|kind| lane.retell(kind)).collect();
            let events = lane.recorder.record((journal, world), kinds, None, &self.token)?;
            lane.recorder.tell_later(events);
            return Ok(());
        }
        let worked_ms = Some(self.worked_ms());
        let RunContext { journal, world, .. } = &mut self.context;
        for event in &self.recorder.record((journal, world), kinds, worked_ms, &self.token)? {
            self.hooks.call(&self.context, event);
            let RunContext { journal, world, run, observer, .. } = &mut self.context;
            let evidence = Transcripts { journal, world, run: *run };
            if let Err(error) = observer.event(event, &evidence) {
                self.observer_error.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Handles a failed write to standard output.
    pub(super) fn output_failed(&mut self, error: io::Error) -> Result<Vec<Effect>, JournalError> {
        self.output_error.get_or_insert(error);
        self.take(Input::OutputClosed)
    }

    /// Waits until all output has been written. Gives up when a signal ends the run, or if nothing is written for as
    /// long as `patience`.
    async fn flush(&mut self, patience: Option<Duration>) {
        while !self.context.observer.is_idle() {
            let deadline = patience.map(|patience| Instant::now() + patience);
            tokio::select! {
                biased;
                heard = self.signals.next() => match heard {
                    ReceivedSignal::End(_) => return,
                    ReceivedSignal::Pause => self.signals.stop(),
                    ReceivedSignal::Continue => {}
                },
                written = written(self.context.observer) => if let Err(error) = written {
                    self.output_error.get_or_insert(error);
                },
                () = sleep(deadline) => return,
            }
        }
    }
}
