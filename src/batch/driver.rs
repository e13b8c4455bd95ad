//! Carries out a batch: starts workers in lanes, and records what happens.

use super::at_work::{Reported, UnitAtWork, begin_run, rescue_work};
use super::context::{BatchContext, BatchError};
use super::landing::{clear, clear_verification, merge, send_back, settled, unless_changed};
use super::lane::{BatchLane, LaneWorker, News, WorkerEnd, run};
use super::machine::{Action, Capacity, choice_name, next, unit_name};
use super::parking::{park, parked_until};
use super::planned::{UnitPurpose, UnitToStart};
use super::remote::{RemoteUnit, follow};
use super::tries::{take_try, tries_shown};
use crate::engine::{BatchEvent, BatchState, EventKind, LimitKind, RunOutcome, Sig, Totals};
use crate::plan::OutlineStep;
use crate::runner::{Failure, ReceivedSignal, Recorder, Recording, Signals, Transcripts, flushed, written};
use crate::unit::UnitStage;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};

/// How long the lanes may take to pause their workers before this process pauses itself (Ctrl-Z).
const PAUSE_GRACE: Duration = Duration::from_millis(100);

/// How often to check that the journal is still there if nothing else happens. This also limits each wait for the end
/// of a usage limit: the wall clock may be set, and no timer advances while the machine sleeps.
const LOOK: Duration = Duration::from_secs(5);

/// Signals for a lane.
type LaneSignals = UnboundedReceiver<ReceivedSignal>;

type LaneFuture<'a> = Pin<Box<dyn Future<Output = (BatchLane, WorkerEnd)> + 'a>>;

/// A batch at work.
struct BatchDriver<'a> {
    context: BatchContext<'a>,
    recorder: Recorder,
    state: BatchState,
    lanes: FuturesUnordered<LaneFuture<'a>>,
    idle: Vec<BatchLane>,
    opened: u32,
    units: HashMap<String, UnitAtWork>,
    news: UnboundedSender<News>,
    /// When this process began, by the clock that includes sleep.
    begun: Duration,
    signal: Option<Sig>,
    limit: Option<LimitKind>,
    /// Whether nothing is left for another unit until a lane ends its unit.
    waits_for_share: bool,
}

/// Works until every task has landed or can go no further, or until a signal or a limit ends the batch.
///
/// # Errors
/// When the journal or the hub cannot be written. Every worker is ended then.
pub async fn work_on_batch(context: BatchContext<'_>) -> Result<BatchState, BatchError> {
    let mut signals = Signals::listen(|signal| context.world.ignores(signal)).map_err(Failure::Signals)?;
    let (news, mut reports) = unbounded_channel();
    let seq = context.earlier.last().map_or(0, |event| event.seq);
    let mut state = BatchState::default();
    for event in context.earlier {
        state.evolve(&event.event);
    }
    let mut driver = BatchDriver {
        recorder: Recorder::new(context.run, seq, []),
        begun: context.world.uptime(),
        context,
        state,
        lanes: FuturesUnordered::new(),
        idle: Vec::new(),
        opened: 0,
        units: HashMap::new(),
        news,
        signal: None,
        limit: None,
        waits_for_share: false,
    };
    let _open = match driver.context.engine {
        Some(_) => Some(driver.context.hub.batches().open(driver.context.run)?),
        None => None,
    };
    let worked = driver.work(&mut signals, &mut reports).await;
    // The hub may have been removed with it.
    driver.context.journal.still_there()?;
    worked?;
    driver.finish().await
}

impl<'a> BatchDriver<'a> {
    async fn work(&mut self, signals: &mut Signals, reports: &mut UnboundedReceiver<News>) -> Result<(), BatchError> {
        self.begin()?;
        loop {
            while let Some(action) = next(&self.state, self.capacity()) {
                self.perform(action)?;
            }
            if self.lanes.is_empty() && self.parked_until().is_none() {
                return Ok(());
            }
            let until_next = self.until_next();
            tokio::select! {
                biased;
                signal = signals.next() => self.hear(signal, signals).await,
                Some(news) = reports.recv() => self.take(news)?,
                Some((lane, end)) = self.lanes.next() => {
                    self.idle.push(lane);
                    self.ended(end, reports)?;
                }
                // A reader that has gone away misses our lines.
                _ = written(self.context.observer), if !self.context.observer.is_idle() => {}
                () = sleep(until_next) => self.tick(),
            }
            self.context.journal.still_there()?;
        }
    }

    fn begin(&mut self) -> Result<(), BatchError> {
        let facts = self.context.facts.clone();
        self.record(vec![self.context.opening.clone(), EventKind::Batch { event: BatchEvent::Started { facts } }])
    }

    fn record(&mut self, kinds: Vec<EventKind>) -> Result<(), BatchError> {
        let (journal, world) = (&mut *self.context.journal, self.context.world);
        let events = self.recorder.record((journal, world), Recording::of(kinds))?;
        let evidence = Transcripts { journal, world, run: self.context.run };
        for event in &events {
            self.state.evolve(&event.event);
            // A reader that has gone away misses our lines.
            let _ = self.context.observer.event(event, &evidence);
        }
        Ok(())
    }

    fn say(&mut self, event: BatchEvent) -> Result<(), BatchError> {
        self.record(vec![EventKind::Batch { event }])
    }

    /// Records what a worker has reported.
    fn take(&mut self, News { unit: name, kind }: News) -> Result<(), BatchError> {
        let Some(unit) = self.units.get_mut(&name) else { return Ok(()) };
        match unit.take(&mut self.context, &name, kind)? {
            Reported::Claimed(machine) => self.say(BatchEvent::UnitClaimed { unit: name, machine }),
            Reported::Parked(backend, until) if self.state.parked.get(&backend).is_none_or(|known| *known < until) => {
                self.say(BatchEvent::Parked { backend, until })?;
                park(&self.context, &self.state);
                Ok(())
            }
            Reported::Parked(..) | Reported::Nothing => Ok(()),
        }
    }

    /// When the last usage limit ends that holds the batch, in milliseconds since the epoch; `None` if none does.
    fn parked_until(&self) -> Option<i64> {
        let starts = self.signal.is_none() && self.limit.is_none();
        parked_until(&self.context, &self.state).filter(|_| starts)
    }

    fn capacity(&self) -> Capacity {
        Capacity {
            lane: self.lanes.len() < usize::try_from(self.context.facts.jobs.max(1)).unwrap_or(1),
            starts: self.signal.is_none() && self.limit.is_none() && !self.waits_for_share,
            agents: self.parked_until().is_none(),
        }
    }

    /// How long until something has to be looked at again: the journal, the live lines, or the end of a usage limit.
    fn until_next(&self) -> Duration {
        let look = self.context.world.shortened("LOOK", LOOK);
        let frame = self.context.observer.frame().map_or(look, |frame| frame.min(look));
        let now = self.context.world.moment().as_millisecond();
        let parked = self.parked_until().and_then(|until| u64::try_from(until - now).ok()).map(Duration::from_millis);
        parked.map_or(frame, |parked| parked.min(frame))
    }

    fn tick(&mut self) {
        let elapsed = self.context.world.uptime().saturating_sub(self.begun);
        self.context.observer.draw(elapsed, Duration::ZERO);
    }

    /// Passes a signal on to all workers. Before this process pauses itself, they have time to pause theirs.
    async fn hear(&mut self, signal: ReceivedSignal, signals: &mut Signals) {
        for unit in self.units.values() {
            // A worker that is just ending receives no more signals.
            let _ = unit.tell.send(signal);
        }
        match signal {
            ReceivedSignal::End(signal) => {
                self.signal.get_or_insert(signal);
                self.context.observer.stop_pacing();
            }
            ReceivedSignal::Pause => {
                let mut over = Vec::new();
                let lanes = async {
                    while let Some(ended) = self.lanes.next().await {
                        over.push(ended);
                    }
                    std::future::pending::<()>().await;
                };
                // This future never completes, so the timeout always expires.
                let _ = timeout(PAUSE_GRACE, lanes).await;
                self.lanes.extend(over.into_iter().map(|ended| -> LaneFuture<'_> { Box::pin(async { ended }) }));
                signals.stop();
            }
            ReceivedSignal::Continue => {}
        }
    }

    fn perform(&mut self, action: Action) -> Result<(), BatchError> {
        match action {
            Action::Start { task, try_number, turn, base, start } => {
                let name = unit_name(self.context.run, &task, try_number, turn);
                let known = self.state.tasks.get(&task).zip(try_number);
                let backend = known.and_then(|(known, number)| known.backend_of(number)).map(str::to_string);
                let purpose = UnitPurpose::Task { task: &task, try_number, backend: backend.as_deref() };
                self.start(&UnitToStart { name: &name, purpose, base: &base, start: &start })
            }
            Action::Verify { number, commit } => {
                let name = format!("{}-verify-{number}", self.context.run);
                let line = self.state.line.clone();
                let purpose = UnitPurpose::Verification;
                self.start(&UnitToStart { name: &name, purpose, base: &line, start: &commit })
            }
            Action::Choose { task, number } => {
                let name = format!("{}-{number}", choice_name(self.context.run, &task));
                let line = self.state.tasks.get(&task).and_then(|known| known.base.clone()).unwrap_or_default();
                let tries = tries_shown(&self.context, &self.state, &task, &line)?;
                let purpose = UnitPurpose::Choice { task: &task, tries: &tries };
                self.start(&UnitToStart { name: &name, purpose, base: &line, start: &line })
            }
            Action::Take { task } => {
                take_try(&self.context, &self.state, task)?.map_or(Ok(()), |event| self.say(event))
            }
            Action::Merge { tasks } => self.say(merge(&self.context, &self.state, &tasks)?),
            Action::Land { tasks, commit } => {
                if !self.context.hub.advance_line(&commit, Some(&self.state.line))? {
                    return Err(BatchError::LineMoved);
                }
                self.say(BatchEvent::Landed { tasks: tasks.clone(), commit })?;
                clear(&self.context, &self.state, &tasks);
                Ok(())
            }
            Action::Split { most } => self.say(BatchEvent::Split { most }),
            Action::SendBack { task, files } => self.say(send_back(&self.context, &self.state, task, &files)?),
            Action::Stop { task, reason, is_failed } => {
                if is_failed {
                    self.context.planner.rejected(&task, &reason, true)?;
                }
                let work = rescue_work(&self.context, &self.state, &task);
                self.say(BatchEvent::Stopped { task, reason, work })
            }
        }
    }

    /// Starts a worker for a unit.
    fn start(&mut self, unit: &UnitToStart<'_>) -> Result<(), BatchError> {
        let (name, task) = (unit.name.to_string(), unit.purpose.task());
        let settled = task.map(|task| settled(&self.context, &self.state, task)).transpose()?.flatten();
        if let Some(event) = settled {
            return self.say(event);
        }
        let lanes_left = self.context.facts.jobs.saturating_sub(u32::try_from(self.lanes.len()).unwrap_or(0)).max(1);
        let share = match self.context.budget.share(&name, lanes_left, task.is_some(), self.context.world.uptime()) {
            Ok(share) => share,
            // What other lanes do not use of their shares may be enough.
            Err(_) if !self.lanes.is_empty() => {
                self.waits_for_share = true;
                return Ok(());
            }
            Err(limit) => {
                self.limit = Some(limit);
                return Ok(());
            }
        };
        let mut planned = self.context.planner.unit(unit)?;
        planned.bundle.overrides.limits.extend(share.iter().cloned());
        self.context.hub.units().queue(&planned.bundle)?;
        let known = self.state.units.get(&name).map(|known| known.run);
        let (journal, run_number) = begin_run((&self.context, &self.state), known, unit, &planned)?;
        let workspace = crate::hub::Workspace::of(&planned.bundle, &self.context.workspaces).root;
        let mut lane = self.idle.pop().unwrap_or_default();
        if lane.number == 0 {
            self.opened += 1;
            lane.number = self.opened;
        }
        self.say(BatchEvent::UnitStarted {
            unit: name.clone(),
            task: task.map(str::to_string),
            try_number: planned.bundle.try_number,
            choice: planned.bundle.choice.is_some(),
            lane: lane.number,
            run: run_number,
            base: unit.base.to_string(),
            workspace: workspace.display().to_string(),
        })?;
        let (tell, signals) = unbounded_channel();
        let seq = journal.events().last_number(run_number)?;
        // A step with several backends continues with another one, so that its limits hold nobody else.
        let single = |step: &OutlineStep| step.backend.clone().filter(|_| step.variants.is_empty());
        let backends = planned.outline.steps.iter().map(single).collect();
        let at_work = UnitAtWork {
            journal,
            run: run_number,
            seq,
            outcome: None,
            totals: Totals::default(),
            root: if self.context.engine.is_some() { self.context.hub.kept().staging(&name) } else { workspace },
            backends,
            tell,
        };
        self.units.insert(name.clone(), at_work);
        // A run that continues has used time before, which its share does not count.
        let raised = share.into_iter().filter(|limit| !limit.starts_with("time=")).collect();
        self.lanes.push(self.worker(lane, name, raised, signals));
        Ok(())
    }

    /// What works on a unit: a process on this machine, or one that an engine starts on another machine.
    fn worker(&self, lane: BatchLane, unit: String, limits: Vec<String>, signals: LaneSignals) -> LaneFuture<'a> {
        let BatchContext { world, root, hub, .. } = self.context;
        let news = self.news.clone();
        if let Some(engine) = &self.context.engine {
            let unit = RemoteUnit { name: unit, limits };
            return Box::pin(follow(hub.clone(), Rc::clone(engine), lane, unit, signals, news));
        }
        let arguments = [
            "work".to_string(),
            "--hub".into(),
            hub.path().display().to_string(),
            "--unit".into(),
            unit.clone(),
            "--workspaces".into(),
            self.context.workspaces.display().to_string(),
            // The workspace and this journal stay, whatever happens to the worker.
            "--no-checkpoints".into(),
        ];
        let limits = limits.into_iter().flat_map(|limit| ["--limit".to_string(), limit]);
        let worker = LaneWorker { unit, arguments: arguments.into_iter().chain(limits).collect() };
        Box::pin(run(world, root, lane, worker, signals, news))
    }

    /// Records the end of a worker, once everything that it reported is in the journal.
    fn ended(&mut self, end: WorkerEnd, reports: &mut UnboundedReceiver<News>) -> Result<(), BatchError> {
        while let Ok(news) = reports.try_recv() {
            self.take(news)?;
        }
        let unit = self.units.remove(&end.unit);
        if self.context.engine.is_some() {
            self.context.hub.kept().clear_staging(&end.unit);
        }
        self.context.budget.ended(&end.unit);
        self.waits_for_share = false;
        let outcome = unit.and_then(|unit| unit.outcome);
        let continues = self.continues_with_more(&end.unit, outcome);
        // The result of a worker elsewhere counts only once all of its events are reported.
        let is_reported = self.context.engine.is_none() || end.exit.is_some();
        // A run that has reached a limit of its own has kept its work, but is not over for the hub.
        let is_over = |stage| stage == UnitStage::Done && is_reported || outcome.is_some_and(is_limit) && !continues;
        let found = self.context.hub.units().get(&end.unit)?.filter(|found| is_over(found.record.stage));
        let exit = found.as_ref().and_then(|found| found.record.exit).or(end.exit);
        let work = found.and_then(|found| found.work);
        let words = end.words.trim();
        let error = (exit != Some(0) && !words.is_empty()).then(|| words.to_string());
        let (exit, error) = unless_changed((&self.context, &self.state), &end.unit, work.as_deref(), (exit, error))?;
        let stopping = self.signal.is_some();
        self.say(BatchEvent::UnitEnded { unit: end.unit, exit, outcome, work, error, stopping })
    }

    /// Returns whether a unit that has reached a limit continues once it gets more: it has used up its share, or the
    /// whole batch has used up the limit, which can be raised.
    fn continues_with_more(&mut self, unit: &str, outcome: Option<RunOutcome>) -> bool {
        let Some(RunOutcome::LimitReached { limit }) = outcome else { return false };
        let is_used_up = self.context.budget.is_used_up(limit, self.context.world.uptime());
        if is_used_up {
            self.limit = Some(limit);
        }
        is_used_up || self.context.budget.is_of_share(unit, limit)
    }

    async fn finish(mut self) -> Result<BatchState, BatchError> {
        let outcome = match (self.signal, self.limit) {
            (Some(signal), _) => RunOutcome::Interrupted { signal },
            (None, _) if self.state.landed() == self.state.tasks.len() => RunOutcome::Succeeded,
            (None, Some(limit)) => RunOutcome::LimitReached { limit },
            (None, None) => RunOutcome::TasksLeft,
        };
        self.record(vec![EventKind::RunFinished { outcome }])?;
        clear_verification(&self.context, outcome);
        for lane in std::mem::take(&mut self.idle) {
            if let Some(lifeline) = lane.lifeline {
                lifeline.end();
            }
        }
        flushed(self.context.observer).await;
        Ok(self.state)
    }
}

fn is_limit(outcome: RunOutcome) -> bool {
    matches!(outcome, RunOutcome::LimitReached { .. })
}
