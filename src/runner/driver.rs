//! The driver: the only `select!`. It turns everything from outside into inputs, appends the machine's events to the journal
//! before it performs their effects, and owns nothing that a journal does not also know.

use super::attempt::{Attempt, sleep};
use super::cast::{Again, Begin, Cast, Ended, Failure};
use super::evidence::Transcripts;
use super::hooks::HooksBeside;
use super::lanes::lane::Lane;
use super::reading::Before;
use super::recorder::Recorder;
use super::signals::{HeardSignal, Signals};
use super::stage::Stage;
use super::templates::TemplateWatch;
use super::timers::Timers;
use super::told::Told;
use super::work::Begun;
use crate::chain::Limit;
use crate::checks::Deciding;
use crate::context::{GuardWatch, Snapshot, TreeWatch};
use crate::engine::{
    At, Effect, EventKind, Feedback, HighestAttempt, Input, Notice, Observer, RunOutcome, State, Stopwatch, Timer,
    Transition,
};
use crate::journal::{JournalError, OwnFolder, Planted};
use crate::marker::count_lines;
use crate::plan::{Kind, PlannedStep};
use crate::proc::{AgentPipes, Launch, LifelineHandle, SpawnError, adopt_orphans};
use crate::prompt::{Late, render};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

/// How long a screen that does not move is waited for when a run did not end by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// Runs a plan to its end.
///
/// # Errors
/// When the run cannot go on; it is ended in order first.
pub async fn drive(cast: Cast<'_>, begin: Begin) -> Result<Ended, Failure> {
    let signals = Signals::listen(|signal| cast.world.ignores(signal)).map_err(Failure::Signals)?;
    let mut lifeline = None;
    let ended = play(cast, begin, signals, None, &mut lifeline).await;
    // It holds the lock of the root.
    if let Some(lifeline) = lifeline {
        lifeline.end();
    }
    ended
}

/// Runs a plan of one agent beside others.
pub(super) async fn drive_in_lane<'a>(
    cast: Cast<'a>,
    lane: &'a Lane<'a>,
    heard: UnboundedReceiver<HeardSignal>,
    lifeline: &mut Option<LifelineHandle>,
) -> Result<Ended, Failure> {
    play(cast, Begin::New(Box::default(), None), Signals::passed_on(heard), Some(lane), lifeline).await
}

async fn play<'a>(
    cast: Cast<'a>,
    begin: Begin,
    signals: Signals,
    lane: Option<&'a Lane<'a>>,
    lifeline: &mut Option<LifelineHandle>,
) -> Result<Ended, Failure> {
    adopt_orphans();
    let token = new_token(&cast)?;
    let clock = cast.world.uptime_clock();
    let recorder = Recorder::new(cast.run, 0, []);
    let mut driver = Driver {
        cast,
        lane,
        lifeline: lifeline.take(),
        token,
        signals,
        timers: Timers::new(clock),
        state: State::default(),
        recorder,
        tree: TreeWatch::default(),
        begun: Begun::default(),
        resumed: matches!(begin, Begin::Again(_)),
        deciding: None,
        guarding: GuardWatch::default(),
        weakened: Vec::new(),
        own: None,
        left: BTreeSet::new(),
        judged: None,
        diagnosed: None,
        hooks: HooksBeside::default(),
        templates: TemplateWatch::default(),
        output_error: None,
        observer_error: None,
    };
    let outcome = driver.run(begin).await;
    let ended_well = !matches!(outcome, Err(_) | Ok(RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed));
    driver.flush(if ended_well { None } else { Some(PATIENCE) }).await;
    *lifeline = driver.lifeline;
    Ok(Ended { outcome: outcome?, output_error: driver.output_error })
}

/// Waits until everything was written, for a second at most.
pub async fn flushed(observer: &mut dyn Observer) {
    let until = Instant::now() + PATIENCE;
    while !observer.is_idle() {
        tokio::select! {
            _ = written(observer) => {}
            () = sleep(Some(until)) => return,
        }
    }
}

/// Waits until something was written. Cancel-safe.
pub(super) async fn written(observer: &mut dyn Observer) -> io::Result<()> {
    poll_fn(|context| observer.poll_written(context)).await
}

/// A word that nobody guesses, after the number of our lease, by which a late one of an older run is known.
fn new_token(cast: &Cast<'_>) -> Result<String, Failure> {
    Ok(format!("{}-{}", cast.journal.fence(), cast.world.token().map_err(Failure::Token)?))
}

/// The variable by which an agent's `diagnose` knows what the host has found on the same tree.
const DIAGNOSIS: &str = "FORKHESTRA_DIAGNOSIS";

pub(super) struct Driver<'a> {
    pub(super) cast: Cast<'a>,
    /// Where this is one of several.
    pub(super) lane: Option<&'a Lane<'a>>,
    /// Under which the next attempt is started; none before the first, and when the last was lost.
    lifeline: Option<LifelineHandle>,
    /// Of the next attempt.
    token: String,
    pub(super) signals: Signals,
    pub(super) timers: Timers,
    pub(super) state: State,
    recorder: Recorder,
    pub(super) tree: TreeWatch,
    /// What the work is compared with.
    pub(super) begun: Begun,
    /// Whether an earlier process began the run.
    pub(super) resumed: bool,
    /// What decided about the work when it began.
    pub(super) deciding: Option<Deciding>,
    pub(super) guarding: GuardWatch,
    /// What decides and is weaker or other than when the work began, in words.
    pub(super) weakened: Vec<String>,
    /// What lies in `.forkhestra/` while an attempt works that could decide about itself.
    pub(super) own: Option<OwnFolder>,
    /// What attempts have changed there, and nobody has put back.
    pub(super) left: BTreeSet<Planted>,
    /// The tree as a judge found it, with its step.
    pub(super) judged: Option<(u32, Snapshot)>,
    /// The tree that `diagnose` ran on last, and whether it passed. In memory alone: no agent can change it.
    pub(super) diagnosed: Option<(String, bool)>,
    /// Hooks that are at work beside it.
    pub(super) hooks: HooksBeside,
    pub(super) templates: TemplateWatch,
    pub(super) output_error: Option<io::Error>,
    /// What an observer said that takes no more.
    observer_error: Option<io::Error>,
}

impl Driver<'_> {
    /// The first effects of a run.
    fn begin(&mut self, begin: Begin) -> Result<Vec<Effect>, JournalError> {
        let plan = self.cast.plan;
        let (overrides, queue) = match begin {
            Begin::New(overrides, queue) => (*overrides, queue),
            Begin::Again(again) => return self.begin_again(*again),
        };
        self.begin_work(&overrides)?;
        if self.is_guarded() && self.lane.is_none() {
            self.cast.journal.remember()?;
        }
        let started = EventKind::RunStarted {
            chain: plan.chain.clone(),
            name: plan.name.clone(),
            prompt: plan.prompt.clone(),
            vars: plan.vars.clone(),
            digest: plan.digest.clone(),
            root: self.cast.root.display().to_string(),
            forkhestra: env!("CARGO_PKG_VERSION").into(),
            steps: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
            overrides,
            base: self.begun.commit.clone(),
            tree: self.begun.tree.clone(),
            rules: self.begun.rules.clone(),
            task: plan.task.clone(),
            queue,
            found: self.begun.now.clone(),
        };
        self.state.evolve(&started);
        self.record(vec![started])?;
        self.take(Input::Begin)
    }

    /// The fold of what was journalled is where the run goes on.
    fn begin_again(&mut self, again: Again) -> Result<Vec<Effect>, JournalError> {
        let Again { events, leftovers, limits, decided, more } = again;
        let mut watch = Stopwatch::default();
        let tree = match events.first() {
            Some(began) => self.begin_work_again(&began.event)?,
            None => None,
        };
        for event in &events {
            self.state.evolve(&event.event);
            watch.see(event);
            // What was said then is not said again; sums and times go on.
            self.cast.observer.earlier_event(event);
        }
        self.recorder.go_on_after(events.last().map_or(0, |event| event.seq));
        if let Some(at) = self.state.under_way() {
            let folder = self.cast.journal.attempt_folder(self.cast.run, at.step, &at.name, at.attempt);
            watch.worked(folder.worked_ms().unwrap_or(0));
        }
        self.timers.after(Duration::from_millis(watch.milliseconds()));
        if self.is_guarded() && self.lane.is_none() {
            self.cast.journal.remember()?;
        }
        let attempts = self.cast.journal.highest_attempts(self.cast.run);
        let attempts = attempts.into_iter().map(|(step, attempt)| HighestAttempt { step, attempt }).collect();
        self.take(Input::Resume { elapsed_ms: watch.milliseconds(), leftovers, attempts, limits, decided, more, tree })
    }

    async fn run(&mut self, begin: Begin) -> Result<RunOutcome, Failure> {
        let mut effects: VecDeque<Effect> = self.begin(begin)?.into();
        loop {
            match effects.pop_front() {
                Some(Effect::Finish(outcome)) => return Ok(outcome),
                Some(Effect::Spawn { at, feedback }) => effects.extend(self.attempt(&at, feedback.as_ref()).await?),
                Some(Effect::Arm(timer, time)) => self.arm(timer, time),
                Some(Effect::StandStill) => self.stand_still().await,
                // Only an attempt has somebody to signal.
                Some(Effect::Signal(_) | Effect::StopAgent | Effect::ContinueAgent) => {}
                None if self.state.is_waiting() => effects.extend(self.wait().await?),
                None => return Err(Failure::Lost),
            }
        }
    }

    /// Until something happens while no agent runs: a usage limit is waited out.
    async fn wait(&mut self) -> Result<Vec<Effect>, Failure> {
        loop {
            let now = Instant::now();
            let left = self.timers.left(Timer::Wait, now).unwrap_or_default();
            let next = self.cast.observer.countdown(left);
            let tick = next.filter(|_| !self.timers.is_paused()).map(|next| now + next);
            tokio::select! {
                biased;
                heard = self.signals.next() => return self.hear(heard),
                written = written(self.cast.observer), if !self.cast.observer.is_idle() => if let Err(error) = written {
                    return Ok(self.output_failed(error)?);
                },
                timer = self.timers.over() => return Ok(self.take(Input::TimeOver(timer))?),
                () = sleep(tick) => {}
            }
        }
    }

    pub(super) fn arm(&mut self, timer: Timer, time: Duration) {
        let time = match timer {
            Timer::Grace => self.cast.world.shortened("GRACE", time),
            Timer::Linger => self.cast.world.shortened("LINGER", time),
            // Many runs that wait for one service do not come back at the same moment.
            Timer::Wait => {
                let jitter = self.cast.world.jitter(time.min(Duration::from_mins(1)) / 4);
                self.cast.world.shortened("WAIT", time + jitter)
            }
            _ => time,
        };
        self.timers.arm(timer, time, Instant::now());
    }

    /// How long the run has been at work, in milliseconds; nothing while the clock of the tests stands still.
    pub(super) fn worked_ms(&self) -> u64 {
        if self.cast.world.is_still() { 0 } else { u64::try_from(self.timers.worked().as_millis()).unwrap_or(u64::MAX) }
    }

    /// What an exit code of the current attempt's program means, if that is known.
    pub(super) fn exit_words(&self, code: i32) -> Option<String> {
        let step = self.cast.plan.step(self.state.at()?.step)?;
        step.exit_words(code).map(str::to_string)
    }

    /// What an iteration of a loop leaves behind: the tree, and what was said last (V-26).
    pub(super) fn fingerprint(&mut self, stage: &Stage) -> Option<String> {
        let step = self.cast.plan.step(self.state.at()?.step)?;
        let looped = step.limit != Limit::Once && !step.is_check();
        looped.then(|| self.tree.fingerprint(self.cast.root, &stage.last_words()))
    }

    /// One input: decide, remember, write down, tell; the effects are the caller's to perform.
    pub(super) fn take(&mut self, input: Input) -> Result<Vec<Effect>, JournalError> {
        let Transition { state, events, mut effects } = std::mem::take(&mut self.state).decide(self.cast.plan, input);
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
        let Cast { journal, world, .. } = &mut self.cast;
        if let Some(lane) = self.lane {
            let kinds = kinds.iter().filter_map(|kind| lane.retell(kind)).collect();
            let events = lane.recorder.record((journal, world), kinds, None, &self.token)?;
            lane.recorder.tell_later(events);
            return Ok(());
        }
        let worked_ms = Some(self.worked_ms());
        let Cast { journal, world, .. } = &mut self.cast;
        for event in &self.recorder.record((journal, world), kinds, worked_ms, &self.token)? {
            self.call_hooks(event);
            let Cast { journal, world, run, observer, .. } = &mut self.cast;
            let evidence = Transcripts { journal, world, run: *run };
            if let Err(error) = observer.event(event, &evidence) {
                self.observer_error.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// One attempt from its folder to its sweep.
    async fn attempt(&mut self, at: &At, feedback: Option<&Feedback>) -> Result<Vec<Effect>, Failure> {
        // What came meanwhile is heard before anything new is started.
        if !self.may_start().await? {
            return Ok(self.take(Input::NotStarted { why: "interrupted".into(), busy: false })?);
        }
        let began = self.cast.world.now();
        let plan = self.cast.plan;
        let Some(step) = plan.step(at.step) else { return Ok(Vec::new()) };
        let place = self.lane.map_or_else(|| at.clone(), |lane| lane.place(at));
        let (folder, found) = self.cast.journal.attempt(self.cast.run, place.step, &place.name, place.attempt)?;
        if let Some(found) = found {
            self.cast.observer.notice(&Notice::PutAside { name: &at.name, aside: found.display().to_string() });
        }
        let fresh = new_token(&self.cast)?;
        let token = std::mem::replace(&mut self.token, fresh);
        if self.lane.is_none() {
            self.guard(at)?;
        }
        self.look_at_templates()?;
        let Told { words: told, prompt: whole } =
            match self.told(&self.with_its_template(step), at, feedback, (&folder, &token))? {
                Ok(told) => told,
                Err(why) => return Ok(self.take(Input::NotStarted { why, busy: false })?),
            };
        let mut before = if self.lane.is_none() { self.before(at) } else { Before::default() };
        before.prompt.clone_from(&whole);
        // Rounded up, so that who keeps to it has reached the limit.
        let budget = format!("{:.4}", (self.state.billed().cost_left(plan.limits.cost) * 10_000.0).ceil() / 10_000.0);
        let run = self.cast.run;
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
            Late::Result => folder.result_path(&token).display().to_string(),
        };
        let (format, discount) = match &step.kind {
            // What is known of it holds no marker; what was filled in may.
            Kind::Agent { format, .. } => (Some(*format), count_lines(whole.as_bytes(), &plan.marker)),
            Kind::Check { .. } => (None, 0),
        };
        if discount > 0 && step.is_loop() {
            self.cast.observer.notice(&Notice::MarkerInPrompt { name: &at.name, lines: discount });
        }
        if let Some(role) = step.role() {
            folder.open_calls(&token, role.name())?;
        }
        let stage = Stage::open(&folder, format, &plan.marker, discount, self.cast.observer.pace())?;
        let stdin = step.prompt.as_ref().filter(|prompt| prompt.deliver == crate::chain::Delivery::Stdin);
        let prompt_path = folder.prompt_path();
        self.watch_own(at, &folder);
        let (program, arguments) = step.command();
        let launch = Launch {
            program,
            arguments: arguments.iter().map(|arg| OsString::from(render(arg, &value))).collect(),
            environment: self.environment(step, &value),
            folder: self.cast.root,
            stdin: stdin.map(|_| prompt_path.as_path()),
        };
        match self.launch(&launch) {
            Err(error) => Ok(self.take(Input::NotStarted { why: error.to_string(), busy: error.is_busy() })?),
            Ok((mut lifeline, pipes)) => {
                let attempt = Attempt::new((&mut lifeline, pipes), stage, &folder, &token, began, before);
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

    /// Starts a program under the lifeline of the attempt before, else under a new one.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(LifelineHandle, AgentPipes), SpawnError> {
        let mut lifeline = match self.lifeline.take() {
            Some(lifeline) if lifeline.is_ready() => lifeline,
            lost => {
                if let Some(lost) = lost {
                    lost.end();
                }
                LifelineHandle::start(&self.cast.world.lifeline(), self.cast.journal.lock().map(AsFd::as_fd))?
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
        let inherited = self.cast.world.environment().iter().filter(|(name, _)| !changed(name)).cloned();
        let set = step.env.set.iter().map(|(name, segments)| (name.into(), render(segments, value).into()));
        let told = self.diagnosed.iter().filter(|_| !step.is_check());
        let told = told.map(|(tree, passed)| format!("{tree} {}", if *passed { "passed" } else { "failed" }));
        let told = told.map(|words| (DIAGNOSIS.into(), words.into()));
        inherited.chain(set).chain(told).chain([("PWD".into(), self.cast.root.into())]).collect()
    }

    /// Standard output takes no more.
    pub(super) fn output_failed(&mut self, error: io::Error) -> Result<Vec<Effect>, JournalError> {
        self.output_error.get_or_insert(error);
        self.take(Input::OutputClosed)
    }

    /// Waits until everything was written; a reader that is stuck is left at the next signal, or when patience is over.
    async fn flush(&mut self, patience: Option<Duration>) {
        while !self.cast.observer.is_idle() {
            let deadline = patience.map(|patience| Instant::now() + patience);
            tokio::select! {
                biased;
                heard = self.signals.next() => match heard {
                    HeardSignal::End(_) => return,
                    HeardSignal::Pause => self.signals.stop(),
                    HeardSignal::Continue => {}
                },
                written = written(self.cast.observer) => if let Err(error) = written {
                    self.output_error.get_or_insert(error);
                },
                () = sleep(deadline) => return,
            }
        }
    }
}
