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
use lane::{Lane, LaneAnswer};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
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
type Running<'a> = Pin<Box<dyn Future<Output = (Rig, JobOver)> + 'a>>;

/// One lane.
struct Slot<'a> {
    rig: Option<Rig>,
    running: Option<(Running<'a>, UnboundedSender<HeardSignal>)>,
    over: Option<JobOver>,
}

impl Slot<'_> {
    fn is_free(&self) -> bool {
        self.running.is_none() && self.over.is_none()
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
    let mut slots: Vec<Slot<'_>> = Vec::new();
    let (mut halt, mut failure, mut ending) = (None, None, false);
    loop {
        if halt.is_none() && failure.is_none() {
            failure = fill(lanes, &mut slots, work).err();
        }
        // Whatever takes no more, what runs is ended in order.
        if failure.is_some() && !std::mem::replace(&mut ending, true) {
            tell_all(&slots, HeardSignal::End(Sig::Term));
        }
        let running = slots.iter().filter(|slot| !slot.is_free()).count();
        let hungry = halt.is_none() && failure.is_none() && running < lanes.number && work.has_more();
        if running == 0 && !hungry {
            slots.into_iter().filter_map(|slot| slot.rig?.lifeline).for_each(LifelineHandle::end);
            return failure.map_or(Ok(halt), Err);
        }
        let (job, answer, limit) = tokio::select! {
            biased;
            heard = lanes.signals.next() => {
                match hear(&mut slots, &mut lanes.signals, heard, work).await {
                    Ok(HeardSignal::End(signal)) => drop(halt.get_or_insert(Halt::Signal(signal))),
                    Ok(_) => {}
                    Err(error) => drop(failure.get_or_insert(error)),
                }
                continue;
            }
            over = next_over(&mut slots) => over,
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

/// Gives every empty lane something to do.
fn fill<'a>(lanes: &Lanes<'a>, slots: &mut Vec<Slot<'a>>, work: &mut dyn Work) -> Result<(), Failure> {
    loop {
        if slots.iter().filter(|slot| !slot.is_free()).count() >= lanes.number {
            return Ok(());
        }
        // What is known already gives no job; signals are heard in between.
        let Some(job) = work.next()? else { return Ok(()) };
        let free = slots.iter().position(Slot::is_free);
        let index = if let Some(index) = free {
            index
        } else {
            let number = u32::try_from(slots.len() + 1).unwrap_or(u32::MAX);
            let rig = Rig { number, journal: lanes.journal.sibling()?, quiet: Quiet::default(), lifeline: None };
            slots.push(Slot { rig: Some(rig), running: None, over: None });
            slots.len() - 1
        };
        if let Some(rig) = slots[index].rig.take() {
            let (root, world, recorder) = (lanes.root, lanes.world, lanes.recorder);
            let (tell, heard) = unbounded_channel();
            slots[index].running = Some((Box::pin(one(root, world, recorder, rig, job, heard)), tell));
        }
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

/// The next lane that has ended its work.
async fn next_over(slots: &mut [Slot<'_>]) -> JobOver {
    poll_fn(|context| {
        go_on(slots, context);
        let over = slots.iter_mut().find_map(|slot| slot.over.take());
        over.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Lets every lane do what it can.
fn go_on(slots: &mut [Slot<'_>], context: &mut Context<'_>) {
    for slot in slots.iter_mut() {
        let Some((running, _)) = &mut slot.running else { continue };
        if let Poll::Ready((rig, over)) = running.as_mut().poll(context) {
            slot.running = None;
            slot.rig = Some(rig);
            slot.over = Some(over);
        }
    }
}

/// Passes a signal on; returns the last that was. Before we stop ourselves the lanes have time to stop their agents.
async fn hear(
    slots: &mut [Slot<'_>],
    signals: &mut Signals,
    heard: HeardSignal,
    work: &mut dyn Work,
) -> Result<HeardSignal, Failure> {
    tell_all(slots, heard);
    if heard != HeardSignal::Pause {
        return Ok(heard);
    }
    let since = Instant::now();
    work.stand_still(None)?;
    // Nobody is ready before the time is over.
    let _ = timeout(
        LAST_WORDS,
        poll_fn(|context| {
            go_on(slots, context);
            Poll::<()>::Pending
        }),
    )
    .await;
    signals.stop();
    work.stand_still(Some(since.elapsed()))?;
    Ok(heard)
}

fn tell_all(slots: &[Slot<'_>], heard: HeardSignal) {
    for (_, tell) in slots.iter().filter_map(|slot| slot.running.as_ref()) {
        // A lane that is just ending hears nothing more.
        let _ = tell.send(heard);
    }
}
