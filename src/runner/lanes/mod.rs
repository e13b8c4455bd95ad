//! Several small runs at once, in one process and with one journal. A small run has a plan of one agent. Each has its
//! own lane, and all receive the same signals.

pub(super) mod lane;

use super::context::{Failure, RunContext};
use super::drive::drive_in_lane;
use super::evidence::Transcripts;
use super::flush::written;
use super::recorder::Recorder;
use super::signals::{ReceivedSignal, Signals};
use crate::engine::{At, Event, LimitKind, NullObserver, Observer, RunOutcome, Sig};
use crate::journal::Journal;
use crate::plan::Plan;
use crate::proc::LifelineHandle;
use crate::verdict::ScoreMode;
use crate::world::World;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lane::{AnswerStore, Lane, LaneAnswer};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

/// How long the lanes may take to pause their agents before this process pauses itself (Ctrl-Z).
const PAUSE_GRACE: Duration = Duration::from_millis(100);

/// Everything that the lanes of a run share.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// The number of lanes.
    pub number: usize,
    /// The directory in which they work.
    pub root: &'a Path,
    /// The environment, the clocks and our own program.
    pub world: &'a World,
    /// The journal of that directory.
    pub journal: &'a Journal,
    /// Records the events of all lanes.
    pub recorder: &'a Recorder,
    signals: Signals,
}

impl<'a> Lanes<'a> {
    /// Opens the lanes. From now on, signals are received even while no job runs.
    ///
    /// # Errors
    /// When signals cannot be received.
    pub fn open(
        number: usize,
        root: &'a Path,
        world: &'a World,
        journal: &'a Journal,
        recorder: &'a Recorder,
    ) -> Result<Self, Failure> {
        let signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
        Ok(Self { number, root, world, journal, recorder, signals })
    }
}

/// One job for a lane: a plan of one agent.
#[derive(Debug)]
pub struct Job {
    /// The plan to run.
    pub plan: Plan,
    /// The step, round and iteration in the whole run; the other fields are filled in by the lane.
    pub at: At,
    /// How a score out of bounds is treated.
    pub mode: ScoreMode,
    /// A number by which the source of the job recognizes it.
    pub id: usize,
    /// How the answer is stored; none if it is not.
    pub store: Option<AnswerStore>,
}

/// The source of the lanes' jobs.
pub trait JobSource {
    /// Returns the next job; `None` if there is no more work, or none at the moment.
    fn next(&mut self) -> Result<Option<Job>, Failure>;
    /// Returns whether `next` should be called again at once. For an answer that is already known, `next` returns no
    /// job, even if more questions wait. Many such answers take time, so signals are handled in between.
    fn has_more(&self) -> bool;
    /// Called with `None` when all lanes pause, and with the length of the pause when they continue.
    fn paused(&mut self, over: Option<Duration>) -> Result<(), Failure>;
    /// Called with the answer to a job.
    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure>;
    /// Called for each event once it is in the journal.
    fn see(&mut self, event: &Event);
}

/// Why no more jobs are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// A signal arrived.
    Signal(Sig),
    /// A limit of the whole run was reached.
    Limit(LimitKind),
}

/// What a lane keeps from job to job.
struct LaneResources {
    number: u32,
    journal: Journal,
    quiet: NullObserver,
    lifeline: Option<LifelineHandle>,
}

/// A finished job, its answer, and the limit that it reached, if any.
type JobOver = (Job, Result<LaneAnswer, Failure>, Option<LimitKind>);

type LaneFuture<'a> = Pin<Box<dyn Future<Output = (LaneResources, JobOver)> + 'a>>;

/// All lanes: the jobs of those that are working, and the resources of those that are idle.
#[derive(Default)]
struct LanePool<'a> {
    at_work: FuturesUnordered<LaneFuture<'a>>,
    /// The channels that pass signals on to the working lanes, by lane number.
    tell: HashMap<u32, UnboundedSender<ReceivedSignal>>,
    idle: Vec<LaneResources>,
    /// How many lanes have been opened.
    opened: u32,
    /// Finished jobs that have not been returned yet.
    over: VecDeque<JobOver>,
}

impl<'a> LanePool<'a> {
    /// How many lanes hold a job.
    fn busy(&self) -> usize {
        self.at_work.len() + self.over.len()
    }

    /// Gives every free lane a job, as long as there are any.
    fn fill(&mut self, lanes: &Lanes<'a>, work: &mut dyn JobSource) -> Result<(), Failure> {
        while self.busy() < lanes.number {
            // For an answer that is already known there is no job. The caller handles signals before it calls this
            // again.
            let Some(job) = work.next()? else { return Ok(()) };
            let resources = self.idle.pop().unwrap_or_else(|| self.open(lanes));
            let (tell, heard) = unbounded_channel();
            self.tell.insert(resources.number, tell);
            self.at_work.push(Box::pin(one(lanes.root, lanes.world, lanes.recorder, resources, job, heard)));
        }
        Ok(())
    }

    fn open(&mut self, lanes: &Lanes<'a>) -> LaneResources {
        self.opened += 1;
        LaneResources {
            number: self.opened,
            journal: lanes.journal.sibling(),
            quiet: NullObserver::default(),
            lifeline: None,
        }
    }

    /// Returns the next finished job. Cancel-safe.
    async fn next(&mut self) -> JobOver {
        loop {
            if let Some(over) = self.over.pop_front() {
                return over;
            }
            self.work_on().await;
        }
    }

    /// Lets all lanes work until a job is finished. Cancel-safe.
    async fn work_on(&mut self) {
        let Some((resources, over)) = self.at_work.next().await else { return std::future::pending().await };
        self.tell.remove(&resources.number);
        self.idle.push(resources);
        self.over.push_back(over);
    }

    fn tell_all(&self, heard: ReceivedSignal) {
        for tell in self.tell.values() {
            // A lane that is just ending receives no more signals.
            let _ = tell.send(heard);
        }
    }

    /// Passes a signal on to the lanes, and returns it. Before this process pauses itself, the lanes have time to pause
    /// their agents.
    async fn hear(
        &mut self,
        signals: &mut Signals,
        heard: ReceivedSignal,
        work: &mut dyn JobSource,
    ) -> Result<ReceivedSignal, Failure> {
        self.tell_all(heard);
        if heard != ReceivedSignal::Pause {
            return Ok(heard);
        }
        let since = Instant::now();
        work.paused(None)?;
        let lanes = async {
            loop {
                self.work_on().await;
            }
        };
        // This future never completes, so the timeout always expires.
        let _: Result<(), _> = timeout(PAUSE_GRACE, lanes).await;
        signals.stop();
        work.paused(Some(since.elapsed()))?;
        Ok(heard)
    }
}

/// Works until there are no more jobs and every lane is idle, or until the run has to halt.
///
/// # Errors
/// When the journal cannot be written, or signals cannot be received; running agents are ended gracefully first.
pub async fn work_in_lanes(
    lanes: &mut Lanes<'_>,
    work: &mut dyn JobSource,
    observer: &mut dyn Observer,
) -> Result<Option<Halt>, Failure> {
    let mut pool = LanePool::default();
    let (mut halt, mut failure, mut ending) = (None, None, false);
    loop {
        if halt.is_none() && failure.is_none() {
            failure = pool.fill(lanes, work).err();
        }
        // Whatever failed, the running agents are ended gracefully.
        if failure.is_some() && !std::mem::replace(&mut ending, true) {
            pool.tell_all(ReceivedSignal::End(Sig::Term));
        }
        let running = pool.busy();
        let hungry = halt.is_none() && failure.is_none() && running < lanes.number && work.has_more();
        if running == 0 && !hungry {
            pool.idle.into_iter().filter_map(|resources| resources.lifeline).for_each(LifelineHandle::end);
            failure = failure.or(catch_up(lanes, work, observer).err());
            return failure.map_or(Ok(halt), Err);
        }
        let (job, answer, limit) = tokio::select! {
            biased;
            heard = lanes.signals.next() => {
                match pool.hear(&mut lanes.signals, heard, work).await {
                    Ok(ReceivedSignal::End(signal)) => drop(halt.get_or_insert(Halt::Signal(signal))),
                    Ok(_) => {}
                    Err(error) => drop(failure.get_or_insert(error)),
                }
                continue;
            }
            over = pool.next() => over,
            // The lanes were polled just now: what waits for a commit, none of them has recorded. Where jobs are open,
            // each answer that is already known lets the timers, the signals and the other lanes have their turn first.
            () = async { if hungry { yield_now().await } else { lanes.recorder.has_news().await } } => {
                failure = failure.or(catch_up(lanes, work, observer).err());
                continue;
            }
            // Write errors are ignored: a reader that has gone away misses our lines.
            _ = written(observer), if !observer.is_idle() => continue,
        };
        if let Some(limit) = limit {
            halt.get_or_insert(Halt::Limit(limit));
        }
        let told = answer.and_then(|answer| work.done(job, answer));
        if let Err(error) = told {
            failure.get_or_insert(error);
        }
        tell_news(lanes, &mut |event| work.see(event), observer);
    }
}

/// Records what waits for a commit, and reports what is new.
fn catch_up(lanes: &Lanes<'_>, work: &mut dyn JobSource, observer: &mut dyn Observer) -> Result<(), Failure> {
    let recorded = lanes.recorder.record_waiting((&mut lanes.journal.sibling(), lanes.world));
    tell_news(lanes, &mut |event| work.see(event), observer);
    Ok(recorded?)
}

/// Reports what is new in the journal: first to `see`, for the source of the jobs, then to the observer.
pub fn tell_news(lanes: &Lanes<'_>, see: &mut dyn FnMut(&Event), observer: &mut dyn Observer) {
    tell_recorded((lanes.journal, lanes.world, lanes.recorder), see, observer);
}

/// Like [`tell_news`], where no lanes are open.
pub fn tell_recorded(
    (journal, world, recorder): (&Journal, &World, &Recorder),
    see: &mut dyn FnMut(&Event),
    observer: &mut dyn Observer,
) {
    let evidence = Transcripts { journal, world, run: recorder.run() };
    for event in recorder.take_unreported() {
        see(&event);
        // Write errors are ignored: a reader that has gone away misses our lines.
        let _ = observer.event(&event, &evidence);
    }
}

async fn one(
    root: &Path,
    world: &World,
    recorder: &Recorder,
    mut resources: LaneResources,
    job: Job,
    heard: UnboundedReceiver<ReceivedSignal>,
) -> (LaneResources, JobOver) {
    let lane = Lane {
        number: resources.number,
        at: job.at.clone(),
        recorder,
        mode: job.mode,
        store: job.store.as_ref(),
        attempt: Cell::new(0),
        answer: RefCell::default(),
    };
    let (plan, journal) = (&job.plan, &mut resources.journal);
    let context = RunContext {
        plan,
        root,
        replan: None,
        world,
        journal,
        run: recorder.run(),
        origin: None,
        observer: &mut resources.quiet,
    };
    let ended = drive_in_lane(context, &lane, heard, &mut resources.lifeline).await;
    let outcome = ended.as_ref().ok().map(|ended| ended.outcome);
    let limit = match outcome {
        Some(RunOutcome::LimitReached { limit }) => Some(limit),
        _ => None,
    };
    let mut answer = lane.answer.into_inner();
    answer.is_interrupted = matches!(outcome, Some(RunOutcome::Interrupted { .. }));
    (resources, (job, ended.map(|_| answer), limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EventKind;
    use crate::journal::{NewRun, Worker};
    use crate::plan::outline;
    use crate::plan::tests::{planned, world};

    /// Jobs whose answers are all known.
    struct Known<'a> {
        left: u32,
        reported: u32,
        recorder: &'a Recorder,
        /// Whether anything else had a turn.
        others: &'a Cell<bool>,
    }

    impl JobSource for Known<'_> {
        fn next(&mut self) -> Result<Option<Job>, Failure> {
            assert!(self.left > 1 || self.others.get(), "nothing else had a turn before the last answer");
            self.left -= 1;
            self.recorder.record_with_next(vec![EventKind::RunPaused]);
            Ok(None)
        }

        fn has_more(&self) -> bool {
            self.left > 0
        }

        fn paused(&mut self, _over: Option<Duration>) -> Result<(), Failure> {
            Ok(())
        }

        fn done(&mut self, _job: Job, _answer: LaneAnswer) -> Result<(), Failure> {
            Ok(())
        }

        fn see(&mut self, _event: &Event) {
            self.reported += 1;
        }
    }

    #[tokio::test]
    async fn many_answers_that_are_known_let_everything_else_have_its_turn_and_are_all_reported() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(root.path()).unwrap();
        let plan = planned(&world(&[]), r#"{"chains": {}}"#, "coder", &crate::chain::PromptSource::default(), &[]);
        let worker = Worker { pid: 1, start_time: 1 };
        let new = NewRun { worker, started: "now", digest: "d", outline: &outline(&plan.unwrap()) };
        let recorder = Recorder::new(journal.begin(new).unwrap(), 0, []);
        let host = World::look().unwrap();
        let mut lanes = Lanes::open(2, root.path(), &host, &journal, &recorder).unwrap();
        let others = Cell::new(false);
        let mut known = Known { left: 50, reported: 0, recorder: &recorder, others: &others };
        let mut observer = NullObserver::default();
        let (ended, ()) = tokio::join!(work_in_lanes(&mut lanes, &mut known, &mut observer), async {
            others.set(true);
        });
        assert_eq!((ended.unwrap(), known.reported), (None, 50));
        assert_eq!(journal.events().of(recorder.run()).unwrap().len(), 50);
    }
}
