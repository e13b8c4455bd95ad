//! The driver turns everything that happens outside into inputs of the engine. It appends the engine's events to the
//! journal before it performs their effects.

use super::choices::Choices;
use super::context::{Failure, RunContext};
use super::evidence::Transcripts;
use super::flush::{sleep, written};
use super::hooks::RunningHooks;
use super::lanes::lane::Lane;
use super::recorder::{Recorder, Recording};
use super::signals::{ReceivedSignal, Signals};
use super::templates::TemplateWatch;
use super::timers::Timers;
use super::work::{WorkGuard, WorkWatch};
use crate::engine::{At, Effect, EventKind, Input, State, Timer, Transition, UsageLimit, decide};
use crate::journal::JournalError;
use crate::plan::{Kind, PlannedStep};
use crate::proc::LifelineHandle;
use crate::world::parked_until;
use jiff::Timestamp;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// How often the run's working time is saved, and messages from people are read.
pub(super) const BEAT: Duration = Duration::from_secs(1);

/// How long writing the pending output before a stop may take.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A run in progress.
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
    pub(super) recorder: Recorder,
    /// The tree that the run works in.
    pub(super) work: WorkWatch,
    /// What the work is judged by.
    pub(super) guard: WorkGuard,
    /// Hooks that are running alongside the run.
    pub(super) hooks: RunningHooks,
    pub(super) templates: TemplateWatch,
    /// What the choice of the next attempt's backend, model and session depends on.
    pub(super) choices: Choices,
    pub(super) output_error: Option<io::Error>,
    /// The error of an observer that accepts no more events.
    observer_error: Option<io::Error>,
}

impl<'a> Driver<'a> {
    /// A run that has not begun yet in this process, under this lifeline if there is one.
    pub(super) fn new(
        context: RunContext<'a>,
        (lane, lifeline): (Option<&'a Lane<'a>>, Option<LifelineHandle>),
        token: String,
        signals: Signals,
        resumed: bool,
    ) -> Self {
        Self {
            lane,
            lifeline,
            token,
            signals,
            timers: Timers::new(context.world.uptime_clock()),
            state: State::default(),
            recorder: Recorder::new(context.run, 0, []),
            work: WorkWatch::new(lane.is_some(), resumed),
            guard: WorkGuard::new(&context, lane.is_some()),
            hooks: RunningHooks::default(),
            templates: TemplateWatch::default(),
            choices: Choices::default(),
            output_error: None,
            observer_error: None,
            context,
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

    /// Whether the current attempt is an iteration of a loop.
    pub(super) fn loops(&self) -> bool {
        let step = self.state.at().and_then(|at| self.context.plan.step(at.step));
        step.is_some_and(PlannedStep::is_loop)
    }

    /// Handles one input: decides, records the events and reports them. The caller has to perform the effects.
    pub(super) fn take(&mut self, input: Input) -> Result<Vec<Effect>, JournalError> {
        let Transition { state, events, mut effects } =
            decide(std::mem::take(&mut self.state), self.context.plan, input);
        self.state = state;
        self.record(events)?;
        if let Some(error) = self.observer_error.take()
            && self.output_error.is_none()
        {
            effects.extend(self.output_failed(error)?);
        }
        Ok(effects)
    }

    pub(super) fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), JournalError> {
        let RunContext { journal, world, .. } = &mut self.context;
        if let Some(lane) = self.lane {
            let kinds: Vec<EventKind> = kinds.iter().filter_map(|kind| lane.retell(kind)).collect();
            // What waits for a commit waits for one that has events of its own.
            if kinds.is_empty() {
                return Ok(());
            }
            let answer = lane.answer_of(&kinds);
            let recording = Recording { kinds, worked_ms: None, token: &self.token, answer };
            let events = lane.recorder.record((journal, world), recording)?;
            lane.recorder.tell_later(events);
            return Ok(());
        }
        let worked_ms = Some(self.worked_ms());
        let RunContext { journal, world, .. } = &mut self.context;
        let recording = Recording { kinds, worked_ms, token: &self.token, answer: None };
        for event in &self.recorder.record((journal, world), recording)? {
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

    /// Takes the messages that people have sent since the last call.
    ///
    /// # Errors
    /// Also when there are messages, and the journal was written by another program: an agent may have sent them.
    pub(super) fn take_messages(&mut self) -> Result<(), JournalError> {
        if self.lane.is_some() {
            return Ok(());
        }
        let messages = self.context.journal.messages().after(self.context.run, self.state.last_message())?;
        if !messages.is_empty() && !self.context.journal.is_intact()? {
            let path = self.context.journal.path().to_path_buf();
            return Err(JournalError::Tampered { path, agent: None });
        }
        for message in messages {
            self.take(Input::Message { id: message.id, text: message.text })?;
        }
        Ok(())
    }

    /// Handles a signal.
    pub(super) fn hear(&mut self, heard: ReceivedSignal) -> Result<Vec<Effect>, Failure> {
        if heard == ReceivedSignal::Continue {
            self.timers.resume(Instant::now());
        }
        Ok(self.take(heard.input())?)
    }

    /// Stops every timer and this process, once the pending output is written. The signal to continue is received
    /// afterwards, even if it arrived earlier.
    pub(super) async fn stand_still(&mut self) {
        let until = Instant::now() + LAST_WORDS;
        while !self.context.observer.is_idle() && Instant::now() < until {
            tokio::select! {
                written = written(self.context.observer) => if let Err(error) = written {
                    self.output_error.get_or_insert(error);
                },
                () = sleep(Some(until)) => {}
            }
        }
        self.timers.pause(Instant::now());
        // In a lane this does nothing: the listener that passes signals on stops the whole process.
        self.signals.stop();
    }

    /// Returns why an attempt cannot start: a signal or the end of the time, or a usage limit that another run of the
    /// batch has reached.
    pub(super) async fn obstacle(&mut self, at: &At) -> Result<Option<Input>, Failure> {
        if !self.may_start().await? {
            return Ok(Some(Input::NotStarted { error: "interrupted".into(), busy: false }));
        }
        // A step with several backends continues with another one.
        let Some(step) = self.context.plan.step(at.step).filter(|step| step.variants.is_empty()) else {
            return Ok(None);
        };
        let Kind::Agent { backend: Some(backend), .. } = &step.kind else { return Ok(None) };
        let now = self.context.world.moment();
        let until = parked_until(self.context.world, backend).and_then(|until| Timestamp::from_millisecond(until).ok());
        Ok(until.filter(|until| *until > now).map(|until| {
            let left = until.as_millisecond().saturating_sub(now.as_millisecond());
            let limit = UsageLimit {
                resets_at: Some(format!("{until:.0}")),
                resets_in_ms: u64::try_from(left).ok(),
                ..UsageLimit::default()
            };
            Input::Parked { limit }
        }))
    }

    /// Handles the signals that arrived while nothing ran, pauses included. Returns whether an attempt may start.
    async fn may_start(&mut self) -> Result<bool, Failure> {
        let mut next = self.signals.pending().await;
        while let Some(heard) = next {
            let effects = self.hear(heard)?;
            if let ReceivedSignal::End(_) = heard {
                self.context.observer.stop_pacing();
                return Ok(false);
            }
            if effects.contains(&Effect::StandStill) {
                self.stand_still().await;
            }
            next = if self.timers.is_paused() { Some(self.signals.next().await) } else { self.signals.pending().await };
        }
        if self.timers.left(Timer::Run, Instant::now()).is_some_and(|left| left.is_zero()) {
            self.timers.disarm(Timer::Run);
            self.take(Input::TimeOver(Timer::Run))?;
            return Ok(false);
        }
        // An observer that accepts no more events has ended the run.
        Ok(self.output_error.is_none())
    }
}

/// Returns a random token, prefixed with the lease's fencing number, so that a token of an older run that turns up
/// later is recognized.
pub(super) fn new_token(context: &RunContext<'_>) -> Result<String, Failure> {
    Ok(format!("{}-{}", context.journal.fence(), context.world.token().map_err(Failure::Token)?))
}
