//! Follows a unit whose worker is on another machine: each change of its ref in the hub is reported as news, as a
//! worker on this machine reports it on its standard output.

use super::RemoteEngine;
use crate::batch::lane::{BatchLane, News, NewsKind, WorkerEnd};
use crate::engine::{Event, EventKind, Sig};
use crate::hub::{FoundUnit, Hub, HubError};
use crate::runner::ReceivedSignal;
use crate::unit::UnitStage;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep};

/// How often the ref of a unit is read. That is a file of this machine.
const LOOK: Duration = Duration::from_millis(250);
/// How long a worker may take to end after its job was cancelled. Longer than the default grace period of agents.
const CANCEL: Duration = Duration::from_mins(1);
/// How many attempts are copied out of the hub one by one. For more, it is cheaper to copy all of the unit at once.
const ONE_BY_ONE: usize = 2;
/// In how many lists in a row a job must be missing before it counts as lost.
const MISSES: u32 = 2;

/// A unit for a worker on another machine.
#[derive(Debug)]
pub(in crate::batch) struct RemoteUnit {
    pub(in crate::batch) name: String,
    /// The limits of its run, as `--limit` takes them, if it continues.
    pub(in crate::batch) limits: Vec<String>,
}

/// Hands a unit to an engine unless it has it, and follows it. Returns the lane with the end of the worker.
pub(in crate::batch) async fn follow(
    hub: Hub,
    engine: Rc<RemoteEngine>,
    lane: BatchLane,
    unit: RemoteUnit,
    mut heard: UnboundedReceiver<ReceivedSignal>,
    news: UnboundedSender<News>,
) -> (BatchLane, WorkerEnd) {
    let name = unit.name.clone();
    let mut followed = Followed {
        hub,
        engine,
        unit,
        news,
        commit: None,
        seq: 0,
        fence: 0,
        is_concluded: false,
        has_begun: false,
        since: Instant::now(),
    };
    let end = followed.follow(&mut heard).await;
    let (exit, words) = end.unwrap_or_else(|why| (None, why));
    (lane, WorkerEnd { unit: name, exit, words })
}

/// A unit that is being followed.
struct Followed {
    hub: Hub,
    engine: Rc<RemoteEngine>,
    unit: RemoteUnit,
    news: UnboundedSender<News>,
    /// The commit of its ref that was reported last.
    commit: Option<String>,
    /// The number of the event that was reported last.
    seq: u64,
    /// The number of the claim that was reported last.
    fence: u32,
    /// Whether the last event that was reported ended the run.
    is_concluded: bool,
    /// Whether it is known that the engine has the unit.
    has_begun: bool,
    /// When its job was submitted, or was first looked for.
    since: Instant,
}

/// The exit code of a worker, and its last words.
type Ended = (Option<u8>, String);

impl Followed {
    async fn follow(&mut self, heard: &mut UnboundedReceiver<ReceivedSignal>) -> Result<Ended, String> {
        if let Some(end) = self.begin().await? {
            return Ok(end);
        }
        let (mut cancelled, mut misses, mut missed_at) = (None::<Instant>, 0, None);
        loop {
            if let Some(end) = self.look()? {
                return Ok(end);
            }
            if cancelled.is_some_and(|since| since.elapsed() >= CANCEL) {
                return Ok(Ended::default());
            }
            match self.engine.is_listed(&self.unit.name).await {
                Some((_, true)) => misses = 0,
                Some((asked, false)) if asked > self.since && missed_at != Some(asked) => {
                    (misses, missed_at) = (misses + 1, Some(asked));
                }
                _ => {}
            }
            if misses >= MISSES {
                // A worker hands its unit over before its job ends.
                let lost = || format!("its job is no longer known to {}", self.engine.name);
                let words = if cancelled.is_some() { String::new() } else { lost() };
                return Ok(self.look()?.unwrap_or((None, words)));
            }
            tokio::select! {
                Some(signal) = heard.recv() => {
                    let ReceivedSignal::End(signal) = signal else { continue };
                    // A closed terminal leaves the job running; a second signal stops waiting for it.
                    if self.engine.cancel.is_empty() || signal == Sig::Hup || cancelled.is_some() {
                        return Ok(self.look()?.unwrap_or_default());
                    }
                    cancelled = Some(Instant::now());
                    if let Err(why) = self.engine.cancel(&self.unit.name).await {
                        // It may have ended by itself.
                        let why = format!("its job could not be cancelled: {why}");
                        return Ok(self.look()?.unwrap_or((None, why)));
                    }
                }
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Submits the unit's job unless a worker has the unit already, or has ended it.
    async fn begin(&mut self) -> Result<Option<Ended>, String> {
        if let Some(end) = self.look()?.filter(|(exit, _)| exit.is_some()) {
            return Ok(Some(end));
        }
        self.has_begun = true;
        let name = self.unit.name.clone();
        let is_listed = self.engine.is_listed(&name).await;
        if is_listed.is_some_and(|(_, is_listed)| is_listed) {
            return Ok(None);
        }
        // It may have been handed over, and its job may have ended, while the list was made.
        if let Some(end) = self.look()?.filter(|(exit, _)| exit.is_some()) {
            return Ok(Some(end));
        }
        let found = self.hub.units().get(&name).map_err(|error| error.to_string())?;
        let is_new = found.is_some_and(|found| found.record == crate::unit::UnitRecord::queued());
        // Without a list, a worker that has claimed it may still be at work.
        if !is_new && (self.is_concluded || is_listed.is_some()) {
            self.hub.kept().queue_again(&name, &self.unit.limits).map_err(|error| error.to_string())?;
            self.is_concluded = false;
            self.report(NewsKind::Offered);
        }
        self.engine.submit(&name).await.map_err(|why| format!("its job could not be submitted: {why}"))?;
        self.since = Instant::now();
        Ok(None)
    }

    /// Reports what has changed. Returns the end of the worker if it has handed the unit over.
    fn look(&mut self) -> Result<Option<Ended>, String> {
        let now = self.hub.units().last_commit(&self.unit.name);
        if now.is_none() || now == self.commit {
            return Ok(None);
        }
        let Some(found) = self.hub.units().get(&self.unit.name).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let is_claimed = found.record.stage != UnitStage::Queued && found.record.fence > self.fence;
        self.fence = self.fence.max(found.record.fence);
        // One that was claimed before this lane began may be queued again.
        if is_claimed && self.has_begun {
            self.report(NewsKind::Claimed { machine: found.machine().to_string() });
        }
        self.report_events(&found).map_err(|error| error.to_string())?;
        // Now all of it is reported.
        self.commit = Some(found.commit.clone());
        Ok(match found.record.stage {
            UnitStage::Done => Some((found.record.exit, self.hub.kept().error(&found).unwrap_or_default())),
            UnitStage::Checkpoint if self.is_concluded => Some((None, String::new())),
            _ => None,
        })
    }

    fn report_events(&mut self, found: &FoundUnit) -> Result<(), HubError> {
        let Some((_, events)) = self.hub.kept().run(found) else { return Ok(()) };
        // What is no event was written by a newer version.
        let events = events.lines().filter_map(|line| serde_json::from_str::<Event>(line).ok());
        let new: Vec<Event> = events.filter(|event| event.seq > self.seq).collect();
        let ended = new.iter().filter(|event| matches!(event.event, EventKind::AttemptFinished { .. })).count();
        let folder = |run: i64| self.hub.kept().staging(&self.unit.name).join(".forkhestra/runs").join(run.to_string());
        if let Some(first) = new.first().filter(|_| ended > ONE_BY_ONE) {
            let to = folder(first.run);
            self.hub.kept().make_folder(&to)?;
            self.hub.kept().restore_attempts(&self.unit.name, found, &to)?;
        }
        for event in new {
            self.is_concluded = matches!(event.event, EventKind::RunFinished { .. });
            if let EventKind::AttemptFinished { at, .. } = &event.event
                && ended <= ONE_BY_ONE
            {
                let step = format!("{}-{}", at.step, at.name);
                self.hub.kept().restore_attempt(found, (&step, at.attempt), &folder(event.run))?;
            }
            self.seq = event.seq;
            self.report(NewsKind::Event(Box::new(event)));
        }
        Ok(())
    }

    fn report(&self, kind: NewsKind) {
        // The batch is gone only if it is ending.
        let _ = self.news.send(News { unit: self.unit.name.clone(), kind });
    }
}
