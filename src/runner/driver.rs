//! The driver turns everything that happens outside into inputs of the engine. It appends the engine's events to the
//! journal before it performs their effects.

use super::attempt::{Attempt, BEAT, sleep};
use super::context::{Failure, ResumePoint, RunContext, RunEnd, RunStart};
use super::evidence::Transcripts;
use super::hooks::RunningHooks;
use super::inspect::AttemptBaseline;
use super::lanes::lane::Lane;
use super::output::AttemptOutput;
use super::prompt::AttemptPrompt;
use super::recorder::Recorder;
use super::signals::{ReceivedSignal, Signals};
use super::templates::TemplateWatch;
use super::timers::Timers;
use super::work::WorkBaseline;
use crate::chain::Limit;
use crate::checks::Deciding;
use crate::context::{GuardWatch, Snapshot, TreeWatch};
use crate::engine::{
    At, Effect, EventKind, Feedback, HighestAttempt, Input, Notice, Observer, RunOutcome, State, Stopwatch, Timer,
    Transition,
};
use crate::journal::{Caller, JournalError, OwnFolder, UnexpectedFile};
use crate::marker::count_lines;
use crate::plan::{Kind, PlannedStep};
use crate::proc::{AgentPipes, Launch, LifelineHandle, SpawnError, adopt_orphans, containment};
use crate::prompt::{Late, render};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How long to wait for a blocked screen when a run did not end by itself.
const PATIENCE: Duration = Duration::from_secs(1);

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
        output_error: None,
        observer_error: None,
    };
    let outcome = driver.run(begin).await;
    let ended_well = !matches!(outcome, Err(_) | Ok(RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed));
    driver.flush(if ended_well { None } else { Some(PATIENCE) }).await;
    *lifeline = driver.lifeline;
    Ok(RunEnd { outcome: outcome?, output_error: driver.output_error })
}

/// Waits until all output has been written, for a second at most.
pub async fn flushed(observer: &mut dyn Observer) {
    let until = Instant::now() + PATIENCE;
    while !observer.is_idle() {
        tokio::select! {
            _ = written(observer) => {}
            () = sleep(Some(until)) => return,
        }
    }
}

/// Waits until some output has been written. Cancel-safe.
///
/// # Errors
/// When standard output accepts no more.
pub async fn written(observer: &mut dyn Observer) -> io::Result<()> {
    poll_fn(|context| observer.poll_written(context)).await
}

/// Returns a random token, prefixed with the lease's fencing number, so that a token of an older run that turns up
/// later is recognized.
fn new_token(context: &RunContext<'_>) -> Result<String, Failure> {
    Ok(format!("{}-{}", context.journal.fence(), context.world.token().map_err(Failure::Token)?))
}

/// The variable that tells `forkhestra diagnose`, if an agent calls it, on which tree we last ran it and whether it
/// passed.
const DIAGNOSIS: &str = "FORKHESTRA_DIAGNOSIS";

pub(super) struct Driver<'a> {
    pub(super) context: RunContext<'a>,
    /// The lane of this run, if it is one of several.
    pub(super) lane: Option<&'a Lane<'a>>,
    /// The lifeline under which the next attempt is started; none before the first attempt, and after one was lost.
    lifeline: Option<LifelineHandle>,
    /// The token of the next attempt.
    token: String,
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
            self.call_hooks(event);
            let RunContext { journal, world, run, observer, .. } = &mut self.context;
            let evidence = Transcripts { journal, world, run: *run };
            if let Err(error) = observer.event(event, &evidence) {
                self.observer_error.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Runs one attempt, from the creation of its directory until nothing is left of its process tree.
    async fn attempt(&mut self, at: &At, feedback: Option<&Feedback>) -> Result<Vec<Effect>, Failure> {
        // Signals that came in the meantime are handled before anything new is started.
        if let Some(obstacle) = self.obstacle(at).await? {
            return Ok(self.take(obstacle)?);
        }
        let began = self.context.world.now();
        let plan = self.context.plan;
        let Some(step) = plan.step(at.step) else { return Ok(Vec::new()) };
        let place = self.lane.map_or_else(|| at.clone(), |lane| lane.place(at));
        let (folder, found) = self.context.journal.attempt(self.context.run, place.step, &place.name, place.attempt)?;
        if let Some(found) = found {
            self.context.observer.notice(&Notice::PutAside { name: &at.name, aside: found.display().to_string() });
        }
        let fresh = new_token(&self.context)?;
        let token = std::mem::replace(&mut self.token, fresh);
        if self.lane.is_none() {
            self.guard(at)?;
        }
        self.look_at_templates()?;
        self.take_messages()?;
        let AttemptPrompt { words: told, prompt: whole, appended } =
            match self.attempt_prompt(&self.with_its_template(step), at, feedback, (&folder, &token))? {
                Ok(told) => told,
                Err(why) => return Ok(self.take(Input::NotStarted { error: why, busy: false })?),
            };
        let mut before = if self.lane.is_none() { self.before(at) } else { AttemptBaseline::default() };
        before.prompt.clone_from(&whole);
        // Rounded up, so that an agent that uses all of it has reached the limit.
        let budget = format!("{:.4}", (self.state.billed().cost_left(plan.limits.cost) * 10_000.0).ceil() / 10_000.0);
        let run = self.context.run;
        let value = |late: Late| match late {
            Late::Feedback => told.clone(),
            Late::Run => run.to_string(),
            Late::Iteration => place.iteration.to_string(),
            Late::Round => place.round.to_string(),
            Late::Step => step.number.to_string(),
            Late::MaxIterations => step.limit.most().to_string(),
            Late::PromptFile => folder.prompt_path().display().to_string(),
            Late::Prompt => whole.clone(),
            Late::Folder => folder.path().display().to_string(),
            Late::Token => token.clone(),
            Late::Secret(number) => plan.secrets.value(number).to_string(),
            Late::Budget => budget.clone(),
            Late::OwnProgram => serde_json::Value::from(self.context.world.own_program().to_string_lossy()).to_string(),
            Late::Result => folder.result_path(&token).display().to_string(),
        };
        let (format, discount) = match &step.kind {
            // An agent may echo its prompt, so marker lines in it do not count. The part that is known in advance has
            // none; what was filled in may.
            Kind::Agent { format, .. } => (Some(*format), count_lines(whole.as_bytes(), &plan.marker)),
            Kind::Check { .. } => (None, 0),
        };
        if discount > 0 && step.is_loop() {
            self.context.observer.notice(&Notice::MarkerInPrompt { name: &at.name, lines: discount });
        }
        if let Some(role) = step.role() {
            folder.open_calls(&token, Caller { role, proposes: plan.proposes_tasks })?;
        }
        let output = AttemptOutput::open(&folder, format, &plan.marker, discount, self.context.observer.pace())?;
        let stdin = step.prompt.as_ref().filter(|prompt| prompt.deliver == crate::chain::Delivery::Stdin);
        let prompt_path = folder.prompt_path();
        self.watch_own(at, &folder);
        let (program, arguments) = step.command();
        let mut arguments: Vec<OsString> = arguments.iter().map(|arg| render(arg, &value).into()).collect();
        // A prompt that is an argument is the last one.
        if let Some(last) = arguments.last_mut() {
            last.push(&appended);
        }
        let launch = Launch {
            program,
            arguments,
            environment: self.environment(step, &value),
            folder: step.folder.as_deref().unwrap_or(self.context.root),
            stdin: stdin.map(|_| prompt_path.as_path()),
        };
        match self.launch(&launch) {
            Err(error) => Ok(self.take(Input::NotStarted { error: error.to_string(), busy: error.is_busy() })?),
            Ok((mut lifeline, pipes)) => {
                let attempt = Attempt::new((&mut lifeline, pipes), output, &folder, &token, began, before);
                let attended = attempt.attend(self).await;
                if lifeline.is_ready() {
                    self.lifeline = Some(lifeline);
                } else {
                    lifeline.end();
                }
                attended
            }
        }
    }

    /// Starts a program under the lifeline of the previous attempt, or under a new one.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(LifelineHandle, AgentPipes), SpawnError> {
        let mut lifeline = match self.lifeline.take() {
            Some(lifeline) if lifeline.is_ready() => lifeline,
            lost => {
                if let Some(lost) = lost {
                    lost.end();
                }
                LifelineHandle::start(&self.context.world.lifeline(), self.context.journal.lock().map(AsFd::as_fd))?
            }
        };
        match lifeline.launch(launch) {
            Ok(pipes) => Ok((lifeline, pipes)),
            Err(error) => {
                self.lifeline = Some(lifeline);
                Err(error)
            }
        }
    }

    fn environment(&self, step: &PlannedStep, value: &dyn Fn(Late) -> String) -> Vec<(OsString, OsString)> {
        let changed = |name: &OsString| {
            name == "PWD"
                || name == DIAGNOSIS
                || step.env.unset.iter().any(|unset| name == unset.as_str())
                || step.env.set.iter().any(|(set, _)| name == set.as_str())
        };
        let inherited = self.context.world.environment().iter().filter(|(name, _)| !changed(name)).cloned();
        let set = step.env.set.iter().map(|(name, segments)| (name.into(), render(segments, value).into()));
        let told = self.diagnosed.iter().filter(|_| !step.is_check());
        let told = told.map(|(tree, passed)| format!("{tree} {}", if *passed { "passed" } else { "failed" }));
        let told = told.map(|words| (DIAGNOSIS.into(), words.into()));
        inherited.chain(set).chain(told).chain([("PWD".into(), self.context.root.into())]).collect()
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
