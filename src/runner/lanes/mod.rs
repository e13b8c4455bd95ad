//! Several small runs at once, in one process and with one journal: each in its lane, all of them hearing the same signals.

pub(super) mod lane;

use super::cast::{Cast, Failure};
use super::driver::{drive_in_lane, written};
use super::evidence::Transcripts;
use super::recorder::Recorder;
use super::signals::{HeardSignal, Signals};
use crate::engine::{At, Event, LimitKind, Observer, Quiet, RunOutcome, Sig};
use crate::journal::Journal;
use crate::plan::Plan;
use crate::proc::LifelineHandle;
use crate::verdict::ScoreMode;
use crate::world::World;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lane::{Lane, LaneAnswer};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

/// How long the lanes may take to stop their agents before we stop ourselves.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What lanes work with.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// How many.
    pub number: usize,
    /// Where.
    pub root: &'a Path,
    /// The ambient.
    pub world: &'a World,
    /// The journal of the root.
    pub journal: &'a Journal,
    /// Who writes down what they do.
    pub recorder: &'a Recorder,
    signals: Signals,
}

impl<'a> Lanes<'a> {
    /// Opens them; signals are heard from now on, also between one piece of work and the next.
    ///
    /// # Errors
    /// When the operating system does not let us listen.
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

/// One thing to do: a plan of one agent.
#[derive(Debug)]
pub struct Job {
    /// What to run.
    pub plan: Plan,
    /// Its step, round and iteration in the whole; the rest is given to it.
    pub at: At,
    /// What a score out of bounds is.
    pub mode: ScoreMode,
    /// By which whoever gave it knows it.
    pub id: usize,
}

/// Who gives the lanes their work.
pub trait Work {
    /// The next thing to do; none while there is nothing, or nothing just now.
    fn next(&mut self) -> Result<Option<Job>, Failure>;
    /// Whether there is more to be asked for at once: what was answered before takes a while too, in sum.
    fn has_more(&self) -> bool;
    /// All of us stand still from now on, or go on after so long.
    fn stand_still(&mut self, over: Option<Duration>) -> Result<(), Failure>;
    /// What came of it.
    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure>;
    /// Something happened meanwhile, as the journal has it.
    fn see(&mut self, event: &Event);
}

/// Why no more work is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// A signal came.
    Signal(Sig),
    /// A limit of the whole was reached.
    Limit(LimitKind),
}

/// What a lane keeps from job to job.
struct Rig {
    number: u32,
    journal: Journal,
    quiet: Quiet,
    lifeline: Option<LifelineHandle>,
}

/// A job that is over, what came of it, and the limit that it met.
type JobOver = (Job, Result<LaneAnswer, Failure>, Option<LimitKind>);

type Working<'a> = Pin<Box<dyn Future<Output = (Rig, JobOver)> + 'a>>;

/// All lanes: those that are at work, and what the others keep.
#[derive(Default)]
struct Crew<'a> {
    at_work: FuturesUnordered<Working<'a>>,
    /// By which those at work hear of signals, by their numbers.
    tell: HashMap<u32, UnboundedSender<HeardSignal>>,
    idle: Vec<Rig>,
    /// How many lanes there are.
    opened: u32,
    /// What is over, and nobody has looked at.
    over: VecDeque<JobOver>,
}

impl<'a> Crew<'a> {
    /// How many lanes hold a job.
    fn busy(&self) -> usize {
        self.at_work.len() + self.over.len()
    }

    /// Gives every lane something to do.
    fn fill(&mut self, lanes: &Lanes<'a>, work: &mut dyn Work) -> Result<(), Failure> {
        while self.busy() < lanes.number {
            // What is known already gives no job; signals are heard in between.
            let Some(job) = work.next()? else { return Ok(()) };
            let rig = match self.idle.pop() {
                Some(rig) => rig,
                None => self.open(lanes)?,
            };
            let (tell, heard) = unbounded_channel();
            self.tell.insert(rig.number, tell);
            self.at_work.push(Box::pin(one(lanes.root, lanes.world, lanes.recorder, rig, job, heard)));
        }
        Ok(())
    }

    fn open(&mut self, lanes: &Lanes<'a>) -> Result<Rig, Failure> {
        self.opened += 1;
        Ok(Rig { number: self.opened, journal: lanes.journal.sibling()?, quiet: Quiet::default(), lifeline: None })
    }

    /// The next job that is over. Cancel-safe.
    async fn next(&mut self) -> JobOver {
        loop {
            if let Some(over) = self.over.pop_front() {
                return over;
            }
            self.work_on().await;
        }
    }

    /// Lets all of them work until a job is over. Cancel-safe.
    async fn work_on(&mut self) {
        let Some((rig, over)) = self.at_work.next().await else { return std::future::pending().await };
        self.tell.remove(&rig.number);
        self.idle.push(rig);
        self.over.push_back(over);
    }

    fn tell_all(&self, heard: HeardSignal) {
        for tell in self.tell.values() {
            // A lane that is just ending hears nothing more.
            let _ = tell.send(heard);
        }
    }

    /// Passes a signal on; returns the last that was. Before we stop ourselves the lanes have time to stop their agents.
    async fn hear(
        &mut self,
        signals: &mut Signals,
        heard: HeardSignal,
        work: &mut dyn Work,
    ) -> Result<HeardSignal, Failure> {
        self.tell_all(heard);
        if heard != HeardSignal::Pause {
            return Ok(heard);
        }
        let since = Instant::now();
        work.stand_still(None)?;
        let lanes = async {
            loop {
                self.work_on().await;
            }
        };
        // Nobody is ready before the time is over.
        let _: Result<(), _> = timeout(LAST_WORDS, lanes).await;
        signals.stop();
        work.stand_still(Some(since.elapsed()))?;
        Ok(heard)
    }
}

/// Works until nothing is left to do and every lane is empty, or until it is to halt.
///
/// # Errors
/// When the journal takes no more, or we cannot hear signals; what runs is ended in order first.
pub async fn work_in_lanes(
    lanes: &mut Lanes<'_>,
    work: &mut dyn Work,
    observer: &mut dyn Observer,
) -> Result<Option<Halt>, Failure> {
    let mut crew = Crew::default();
    let (mut halt, mut failure, mut ending) = (None, None, false);
    loop {
        if halt.is_none() && failure.is_none() {
            failure = crew.fill(lanes, work).err();
        }
        // Whatever takes no more, what runs is ended in order.
        if failure.is_some() && !std::mem::replace(&mut ending, true) {
            crew.tell_all(HeardSignal::End(Sig::Term));
        }
        let running = crew.busy();
        let hungry = halt.is_none() && failure.is_none() && running < lanes.number && work.has_more();
        if running == 0 && !hungry {
            crew.idle.into_iter().filter_map(|rig| rig.lifeline).for_each(LifelineHandle::end);
            return failure.map_or(Ok(halt), Err);
        }
        let (job, answer, limit) = tokio::select! {
            biased;
            heard = lanes.signals.next() => {
                match crew.hear(&mut lanes.signals, heard, work).await {
                    Ok(HeardSignal::End(signal)) => drop(halt.get_or_insert(Halt::Signal(signal))),
                    Ok(_) => {}
                    Err(error) => drop(failure.get_or_insert(error)),
                }
                continue;
            }
            over = crew.next() => over,
            // Whoever does not read our lines misses them.
            _ = written(observer), if !observer.is_idle() => continue,
            () = tokio::task::yield_now(), if hungry => {
                tell_news(lanes, &mut |event| work.see(event), observer);
                continue;
            }
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

/// Tells what is new in the journal: first whoever gives the work, then whoever looks on.
pub fn tell_news(lanes: &Lanes<'_>, see: &mut dyn FnMut(&Event), observer: &mut dyn Observer) {
    let evidence = Transcripts { journal: lanes.journal, world: lanes.world, run: lanes.recorder.run() };
    for event in lanes.recorder.news() {
        see(&event);
        // Whoever does not read our lines misses them.
        let _ = observer.event(&event, &evidence);
    }
}

async fn one(
    root: &Path,
    world: &World,
    recorder: &Recorder,
    mut rig: Rig,
    job: Job,
    heard: UnboundedReceiver<HeardSignal>,
) -> (Rig, JobOver) {
    let lane = Lane {
        number: rig.number,
        at: job.at.clone(),
        recorder,
        mode: job.mode,
        attempt: Cell::new(0),
        answer: RefCell::default(),
    };
    let (plan, journal) = (&job.plan, &mut rig.journal);
    let cast = Cast { plan, root, replan: None, world, journal, run: recorder.run(), observer: &mut rig.quiet };
    let ended = drive_in_lane(cast, &lane, heard, &mut rig.lifeline).await;
    let limit = match &ended {
        Ok(ended) => match ended.outcome {
            RunOutcome::LimitReached { limit } => Some(limit),
            _ => None,
        },
        Err(_) => None,
    };
    let answer = lane.answer.into_inner();
    (rig, (job, ended.map(|_| answer), limit))
}
