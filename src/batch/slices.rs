//! The cases of an evaluation as units of work, a slice of them each, which an engine brings to other machines.

use super::budget::Budget;
use super::lane::{BatchLane, News, NewsKind, WorkerEnd};
use super::remote::{RemoteEngine, RemoteUnit, follow};
use crate::engine::{Event, RunOutcome, Sig, Totals};
use crate::eval::{SLICE_ANSWERS, SliceAnswers, SliceNews, SliceSource};
use crate::exit::Exit;
use crate::hub::{FoundUnit, Hub, HubError, OpenBatch};
use crate::runner::{Failure, ReceivedSignal};
use crate::unit::{Bundle, UnitStage};
use crate::world::World;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How many jobs of one slice may be lost before it fails.
const MOST_LOST: u32 = 3;

/// A slice that is to be done.
#[derive(Debug, Clone)]
struct Slice {
    unit: String,
    cases: Vec<String>,
    lost: u32,
}

/// A slice that an engine has.
#[derive(Debug)]
struct SliceAtWork {
    slice: Slice,
    events: Vec<Event>,
    totals: Totals,
    tell: UnboundedSender<ReceivedSignal>,
}

/// What an evaluation on other machines needs.
#[derive(Debug)]
pub struct SliceSettings<'a> {
    /// The clocks.
    pub world: &'a World,
    /// The hub of the project.
    pub hub: Hub,
    /// What brings the units to other machines.
    pub engine: Rc<RemoteEngine>,
    /// The number of the evaluation's run.
    pub run: i64,
    /// A unit without its name and its cases.
    pub unit: Bundle,
    /// How many cases each slice has.
    pub size: usize,
    /// How many slices are at work at once.
    pub lanes: u32,
    /// The limits of the evaluation, and what is used of them.
    pub budget: Budget,
}

type FollowedSlice = Pin<Box<dyn Future<Output = (BatchLane, WorkerEnd)>>>;

/// The slices of an evaluation.
pub struct Slices<'a> {
    settings: SliceSettings<'a>,
    waiting: VecDeque<Slice>,
    at_work: FuturesUnordered<FollowedSlice>,
    units: HashMap<String, SliceAtWork>,
    news: UnboundedSender<News>,
    heard: UnboundedReceiver<News>,
    /// What is to be reported next.
    next: VecDeque<SliceNews>,
    /// The slices whose answers were reported.
    reported: Vec<String>,
    /// Whether no more slices are started.
    is_ending: bool,
    /// Says to workers that there may be more slices.
    open: Option<OpenBatch>,
}

impl std::fmt::Debug for Slices<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Slices").field("waiting", &self.waiting).field("units", &self.units).finish()
    }
}

impl<'a> Slices<'a> {
    /// Nothing is started.
    #[must_use]
    pub fn new(settings: SliceSettings<'a>) -> Self {
        let (news, heard) = unbounded_channel();
        Self {
            settings,
            waiting: VecDeque::new(),
            at_work: FuturesUnordered::new(),
            units: HashMap::new(),
            news,
            heard,
            next: VecDeque::new(),
            reported: Vec::new(),
            is_ending: false,
            open: None,
        }
    }

    /// Gives slices to the engine, as many as may be at work at once.
    fn fill(&mut self) -> Result<(), HubError> {
        let SliceSettings { world, hub, engine, unit, lanes, budget, .. } = &mut self.settings;
        loop {
            let lanes_left = lanes.saturating_sub(u32::try_from(self.units.len()).unwrap_or(u32::MAX));
            if lanes_left == 0 {
                return Ok(());
            }
            let Some(slice) = self.waiting.pop_front() else { return Ok(()) };
            let slices_left = u32::try_from(self.waiting.len() + 1).unwrap_or(u32::MAX);
            let share = match budget.share(&slice.unit, lanes_left.min(slices_left), true, world.uptime()) {
                Ok(share) => share,
                Err(limit) => {
                    // What others do not use of their shares may be enough.
                    if self.units.is_empty() {
                        self.waiting.clear();
                        self.next.push_back(SliceNews::Limit(limit));
                    } else {
                        self.waiting.push_front(slice);
                    }
                    return Ok(());
                }
            };
            let mut bundle = Bundle { unit: slice.unit.clone(), ..unit.clone() };
            bundle.workspace = slice.unit.rsplit_once('-').map_or("", |(workspace, _)| workspace).to_string();
            if let Some(part) = &mut bundle.slice {
                part.cases.clone_from(&slice.cases);
            }
            bundle.overrides.limits.extend(share.iter().cloned());
            hub.units().queue(&bundle)?;
            // A run that continues has used time before, which its share does not count.
            let limits = share.into_iter().filter(|limit| !limit.starts_with("time=")).collect();
            let remote = RemoteUnit { name: slice.unit.clone(), limits };
            let (tell, heard) = unbounded_channel();
            let followed =
                follow(hub.clone(), Rc::clone(engine), BatchLane::default(), remote, heard, self.news.clone());
            self.at_work.push(Box::pin(followed));
            let at_work = SliceAtWork { slice, events: Vec::new(), totals: Totals::default(), tell };
            self.units.insert(at_work.slice.unit.clone(), at_work);
        }
    }

    fn see(&mut self, News { unit, kind }: News) {
        let Some(at_work) = self.units.get_mut(&unit) else { return };
        match kind {
            NewsKind::Event(event) => {
                at_work.totals.evolve(&event.event);
                self.settings.budget.spent(&unit, &at_work.totals);
                at_work.events.push(*event);
            }
            NewsKind::Claimed { machine } => self.next.push_back(SliceNews::Claimed { unit, machine }),
            NewsKind::Offered => {}
        }
    }

    fn ended(&mut self, end: &WorkerEnd) -> Result<(), HubError> {
        let Some(SliceAtWork { mut slice, events, .. }) = self.units.remove(&end.unit) else { return Ok(()) };
        let hub = &self.settings.hub;
        self.settings.budget.ended(&end.unit);
        let found = hub.units().get(&end.unit)?;
        let answers = found.and_then(|found| hub.kept().file(&found, SLICE_ANSWERS)).unwrap_or_default();
        let mut known = SliceAnswers::of(&events, &answers);
        known.attempts_at.0 = hub.kept().staging(&end.unit);
        let outcome = known.outcome;
        let missing: Vec<String> = slice.cases.iter().filter(|case| !known.has(case)).cloned().collect();
        self.next.push_back(SliceNews::Answers(Box::new(known)));
        self.reported.push(end.unit.clone());
        let why = end
            .words
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("its worker was ended before it had answered");
        match (end.exit, outcome) {
            (Some(code), _) if code == Exit::Refused.code() => {
                // Any other machine would most likely refuse the rest, too.
                let rest = self.waiting.drain(..).flat_map(|slice| slice.cases);
                let cases = missing.into_iter().chain(rest).collect();
                self.next.push_back(SliceNews::Failed { cases, why: in_one_line(&end.words) });
            }
            (Some(_), _) => {
                let why = format!("{}: {why}", end.unit);
                self.next.push_back(SliceNews::Failed { cases: missing, why });
            }
            (None, Some(RunOutcome::LimitReached { limit })) if !self.is_ending => {
                let budget = &self.settings.budget;
                let is_used_up = budget.is_used_up(limit, self.settings.world.uptime());
                if !is_used_up && budget.is_of_share(&end.unit, limit) {
                    slice.cases = missing;
                    self.waiting.push_back(slice);
                } else {
                    self.waiting.clear();
                    self.next.push_back(SliceNews::Limit(limit));
                }
            }
            (None, _) if self.is_ending => {}
            // Its job is lost, or the engine has ended it.
            (None, _) => {
                slice.lost += 1;
                if slice.lost < MOST_LOST {
                    slice.cases = missing;
                    self.waiting.push_back(slice);
                } else {
                    let why = format!("{}: {why}", end.unit);
                    self.next.push_back(SliceNews::Failed { cases: missing, why });
                }
            }
        }
        Ok(())
    }
}

/// The answers of a unit, as the hub has them.
fn answers_of(hub: &Hub, unit: &FoundUnit) -> SliceAnswers {
    let events = hub.kept().run(unit).map(|(_, events)| events).unwrap_or_default();
    let events: Vec<Event> = events.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    SliceAnswers::of(&events, &hub.kept().file(unit, SLICE_ANSWERS).unwrap_or_default())
}

/// A diagnostic in one line, without its frame.
fn in_one_line(words: &str) -> String {
    words.split_whitespace().filter(|word| !["×", "│"].contains(word)).collect::<Vec<_>>().join(" ")
}

fn broken(error: HubError) -> Failure {
    Failure::Elsewhere(io::Error::other(error))
}

impl SliceSource for Slices<'_> {
    fn start(&mut self, cases: Vec<String>) -> Result<(), Failure> {
        self.open = Some(self.settings.hub.batches().open(self.settings.run).map_err(broken)?);
        let prefix = format!("{}-slice", self.settings.run);
        let mut open: HashSet<&str> = cases.iter().map(String::as_str).collect();
        let mut number = 0;
        // What an earlier process has begun.
        for (unit, found) in self.settings.hub.units().all().map_err(broken)? {
            let Some(rest) = unit.strip_prefix(&prefix).and_then(|rest| rest.split_once('-')) else { continue };
            number = rest.0.parse().unwrap_or(0).max(number);
            let bundle = self.settings.hub.units().bundle(&unit).map_err(broken)?;
            let its: Vec<String> = bundle.slice.map(|slice| slice.cases).unwrap_or_default();
            // A unit that is done is never done again: what it could not answer goes to another one.
            let is_done = found.record.stage == UnitStage::Done;
            let answers = if is_done { answers_of(&self.settings.hub, &found) } else { SliceAnswers::default() };
            let is_open = |case: &String| !is_done || answers.has_answered(case);
            let its: Vec<String> = its.into_iter().filter(|case| is_open(case) && open.remove(case.as_str())).collect();
            if !its.is_empty() {
                self.waiting.push_back(Slice { unit, cases: its, lost: 0 });
            }
        }
        let left: Vec<String> = cases.iter().filter(|case| open.contains(case.as_str())).cloned().collect();
        for part in left.chunks(self.settings.size.max(1)) {
            number += 1;
            self.waiting.push_back(Slice { unit: format!("{prefix}{number}-1"), cases: part.to_vec(), lost: 0 });
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<SliceNews>, Failure> {
        loop {
            if let Some(news) = self.next.pop_front() {
                return Ok(Some(news));
            }
            // Whoever asks for more has taken what was reported before.
            for unit in self.reported.drain(..) {
                self.settings.hub.kept().clear_staging(&unit);
            }
            if let Err(error) = self.fill() {
                self.is_ending = true;
                self.waiting.clear();
                return Err(broken(error));
            }
            if self.units.is_empty() && self.next.is_empty() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                Some(news) = self.heard.recv() => self.see(news),
                Some((_, end)) = self.at_work.next(), if !self.at_work.is_empty() => {
                    while let Ok(news) = self.heard.try_recv() {
                        self.see(news);
                    }
                    self.ended(&end).map_err(broken)?;
                }
            }
        }
    }

    fn end(&mut self, signal: Sig) {
        self.is_ending = true;
        self.waiting.clear();
        for unit in self.units.values() {
            // One that is just ending receives no more signals.
            let _ = unit.tell.send(ReceivedSignal::End(signal));
        }
    }
}
