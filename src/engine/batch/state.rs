//! The state of a batch, as a fold of its events.

use super::event::{BatchEvent, BatchFacts};
use super::task::{TaskOfBatch, TaskPlace};
use super::tries::{ChoiceOfTask, ChoicePlace, TryOfTask};
use crate::engine::{Event, EventKind, RunOutcome};
use indexmap::IndexMap;
use std::collections::BTreeMap;

/// How many workers of one unit may be lost before it counts as failed.
pub const MOST_LOST: u32 = 3;

/// A unit that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitOfBatch {
    /// The task; `None` for a verification.
    pub task: Option<String>,
    /// With `--tries`: the number of its try at the task.
    pub try_number: Option<u32>,
    /// Whether a judge chooses one of the tries at the task.
    pub is_choice: bool,
    /// The lane, from 1.
    pub lane: u32,
    /// The number of its run.
    pub run: i64,
    /// The directory in which it works.
    pub workspace: String,
    /// The machine on which it is worked on; `None` for this one, or if no worker has claimed it yet.
    pub machine: Option<String>,
    /// How its run ended, if its worker has ended.
    pub outcome: Option<RunOutcome>,
    /// Whether a lane works on it now.
    pub at_work: bool,
    /// What its worker said last, if it failed.
    pub error: Option<String>,
}

impl UnitOfBatch {
    /// Returns what it works on, in a few words.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.task, self.try_number) {
            (Some(task), _) if self.is_choice => format!("{task}, choice"),
            (Some(task), Some(number)) => format!("{task}, try {number}"),
            (Some(task), None) => task.clone(),
            (None, _) => "verify".into(),
        }
    }
}

/// A merge of some tasks that is being verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The tasks.
    pub tasks: Vec<String>,
    /// The commit with their work.
    pub commit: String,
    /// The number of the trial, from 1.
    pub number: u32,
    /// Whether it passed; `None` while it is not verified yet.
    pub passed: Option<bool>,
    /// How many of its workers were lost; [`MOST_LOST`] if it cannot be verified.
    pub lost: u32,
}

/// The state of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchState {
    /// The facts of the batch; `None` before its first event.
    pub facts: Option<BatchFacts>,
    /// Its tasks, in the order in which they are begun.
    pub tasks: IndexMap<String, TaskOfBatch>,
    /// Its units, by name, in the order in which they were begun.
    pub units: IndexMap<String, UnitOfBatch>,
    /// The last commit of the line.
    pub line: String,
    /// The merge that is being verified.
    pub trial: Option<Trial>,
    /// How many trials there were.
    pub trials: u32,
    /// The most tasks of the next merge: half of the suspects, or `at_once` if there are none; `None` for all that are
    /// ready.
    pub most: Option<u32>,
    /// How many tasks at the head of the queue failed a verification together, with at least one red among them.
    pub suspects: u32,
    /// The most tasks of a merge while none is suspect; `None` for all that are ready. A red verification makes it half
    /// of the tasks of that merge; a green one of as many tasks doubles it.
    pub at_once: Option<u32>,
    /// The backends that have reached a usage limit, with the time at which it ends, in milliseconds since the epoch.
    pub parked: BTreeMap<String, i64>,
    /// How the batch ended, if it has.
    pub outcome: Option<RunOutcome>,
    /// The number of events so far.
    clock: u64,
}

impl BatchState {
    /// Returns the state after these events; `None` if they are not those of a batch.
    #[must_use]
    pub fn of_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<Self> {
        let mut state = Self::default();
        for event in events {
            state.evolve(&event.event);
        }
        state.facts.is_some().then_some(state)
    }

    /// Applies an event. Total: works in any state, for any event.
    pub fn evolve(&mut self, event: &EventKind) {
        match event {
            EventKind::Batch { event } => self.apply(event),
            EventKind::RunFinished { outcome } => self.outcome = Some(*outcome),
            EventKind::RunResumed { .. } => self.outcome = None,
            _ => {}
        }
    }

    fn apply(&mut self, event: &BatchEvent) {
        self.clock += 1;
        match event {
            BatchEvent::Started { facts } => self.begin(facts),
            BatchEvent::UnitStarted { unit, task, try_number, choice, lane, run, base, workspace } => {
                let of = UnitOfBatch {
                    task: task.clone(),
                    try_number: *try_number,
                    is_choice: *choice,
                    lane: *lane,
                    run: *run,
                    workspace: workspace.clone(),
                    machine: None,
                    outcome: None,
                    at_work: true,
                    error: None,
                };
                let again = self.units.insert(unit.clone(), of).is_some();
                if let Some(task) = task.as_ref().and_then(|task| self.tasks.get_mut(task)) {
                    task.unit_started(*try_number, *choice, *run, (base, again));
                }
            }
            BatchEvent::UnitClaimed { unit, machine } => {
                if let Some(unit) = self.units.get_mut(unit) {
                    unit.machine = Some(machine.clone());
                }
            }
            BatchEvent::UnitEnded { unit, exit, outcome, work, error, stopping } => {
                let is_lost = work.is_none() && !stopping && !has_reached_limit(*outcome);
                self.unit_ended(unit, (*exit, *outcome), work.as_ref(), error.as_ref(), is_lost);
            }
            BatchEvent::Merged { tasks, commit } => {
                self.trials += 1;
                let passed = self.facts.as_ref().is_some_and(|facts| facts.verification.is_none()).then_some(true);
                self.trial =
                    Some(Trial { tasks: tasks.clone(), commit: commit.clone(), number: self.trials, passed, lost: 0 });
                self.place(tasks, &TaskPlace::OnTrial);
            }
            BatchEvent::Conflicted { task, files } => {
                self.place(std::slice::from_ref(task), &TaskPlace::Conflicted(files.clone()));
            }
            BatchEvent::Split { most } => self.halved(*most),
            BatchEvent::Landed { tasks, commit } => self.advanced(tasks, commit),
            BatchEvent::SentBack { task, base, start, .. } => {
                if self.trial.take_if(|trial| trial.tasks.contains(task)).is_some() {
                    // This was the red one.
                    self.without_suspects(u32::MAX);
                } else {
                    self.without_suspects(1);
                }
                if let Some(task) = self.tasks.get_mut(task) {
                    task.place = TaskPlace::Waiting;
                    task.rejections += 1;
                    task.sent_back += 1;
                    (task.base, task.start, task.work) = (Some(base.clone()), Some(start.clone()), None);
                }
            }
            BatchEvent::Stopped { task, reason, work } => {
                if let Some((task, work)) = self.tasks.get_mut(task).zip(work.as_ref()) {
                    task.start = Some(work.clone());
                }
                if let Some(trial) = &mut self.trial {
                    trial.tasks.retain(|other| other != task);
                    if self.trial.take_if(|trial| trial.tasks.is_empty()).is_some() {
                        self.without_suspects(u32::MAX);
                    }
                }
                self.place(std::slice::from_ref(task), &TaskPlace::Stopped(reason.clone()));
            }
            BatchEvent::Chosen { task, try_number, .. } => {
                let clock = self.clock;
                if let Some(task) = self.tasks.get_mut(task) {
                    let work = task
                        .accepted()
                        .iter()
                        .find(|(number, _)| number == try_number)
                        .map(|(_, work)| work.to_string());
                    (task.work, task.chosen, task.turn) = (work, Some(*try_number), 1);
                    (task.place, task.ready) = (TaskPlace::Ready, clock);
                }
            }
            BatchEvent::Undecided { task, .. } => {
                if let Some(task) = self.tasks.get_mut(task) {
                    task.choice.place = ChoicePlace::Open;
                }
            }
            BatchEvent::Parked { backend, until } => drop(self.parked.insert(backend.clone(), *until)),
        }
    }

    /// The tasks of the trial failed together: fewer of them are merged next.
    fn halved(&mut self, most: u32) {
        if self.suspects == 0 {
            self.at_once = Some(most);
        }
        self.most = Some(most);
        let tasks = self.trial.take().map(|trial| trial.tasks).unwrap_or_default();
        self.suspects = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        self.place(&tasks, &TaskPlace::Ready);
    }

    fn advanced(&mut self, tasks: &[String], commit: &str) {
        self.line = commit.to_string();
        self.trial = None;
        let landed = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        if self.suspects == 0 {
            self.at_once = self.at_once.map(|most| if landed < most { most } else { most.saturating_mul(2) });
        }
        self.without_suspects(landed);
        self.place(tasks, &TaskPlace::Landed(commit.to_string()));
    }

    /// Some of the suspects are gone. Half of the rest is verified next: most likely one of them is red, so all
    /// together would fail again.
    fn without_suspects(&mut self, gone: u32) {
        self.suspects = self.suspects.saturating_sub(gone);
        self.most = if self.suspects > 0 { Some((self.suspects / 2).max(1)) } else { self.at_once };
    }

    fn begin(&mut self, facts: &BatchFacts) {
        if self.facts.is_none() {
            self.line.clone_from(&facts.line);
            let new = |backend: &Option<String>| TryOfTask { backend: backend.clone(), ..TryOfTask::default() };
            let tries: Vec<TryOfTask> = facts.tries.iter().map(new).collect();
            for task in &facts.tasks {
                let place = if task.completed { TaskPlace::Ready } else { TaskPlace::Waiting };
                let work = task.start.clone().filter(|_| task.completed);
                let of = TaskOfBatch {
                    facts: task.clone(),
                    place,
                    turn: 0,
                    base: task.base.clone(),
                    start: task.start.clone(),
                    work,
                    rejections: task.rejections,
                    sent_back: 0,
                    lost: 0,
                    ready: self.clock,
                    runs: Vec::new(),
                    tries: if task.completed { Vec::new() } else { tries.clone() },
                    choice: ChoiceOfTask::default(),
                    chosen: None,
                };
                self.tasks.insert(task.id.clone(), of);
            }
        }
        self.facts = Some(facts.clone());
        // Nothing is at work when a batch resumes, and lost workers are counted afresh.
        for unit in self.units.values_mut() {
            unit.at_work = false;
        }
        if let Some(trial) = &mut self.trial {
            trial.lost = 0;
        }
        for task in self.tasks.values_mut() {
            task.lost = 0;
            task.tries_interrupted();
            if task.place == TaskPlace::AtWork {
                task.place = TaskPlace::Interrupted;
            }
        }
    }

    fn unit_ended(
        &mut self,
        name: &str,
        (exit, outcome): (Option<u8>, Option<RunOutcome>),
        work: Option<&String>,
        error: Option<&String>,
        is_lost: bool,
    ) {
        let Some(unit) = self.units.get_mut(name) else { return };
        (unit.at_work, unit.outcome, unit.error) = (false, outcome, error.cloned());
        let passed = exit == Some(0);
        let Some(id) = unit.task.clone() else {
            if let Some(trial) = &mut self.trial {
                match (work, exit) {
                    // It is repeated, but not for ever.
                    (None, _) => trial.lost += u32::from(is_lost),
                    (Some(_), Some(0 | 1)) => {}
                    // It could not say whether the work is good, and could not say so the next time, either.
                    (Some(_), _) => trial.lost = MOST_LOST,
                }
            }
            if let Some(trial) = self.trial.as_mut().filter(|trial| work.is_some() && trial.lost < MOST_LOST) {
                trial.passed = Some(passed);
                if !passed && trial.tasks.len() == 1 {
                    let tasks = trial.tasks.clone();
                    self.place(&tasks, &TaskPlace::Red);
                }
            }
            return;
        };
        let (try_number, is_choice) = (unit.try_number, unit.is_choice);
        let clock = self.clock;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        match try_number {
            _ if is_choice => return task.choice_ended(work.is_some(), is_lost),
            Some(number) if task.chosen.is_none() => return task.try_ended((number, passed), outcome, work, is_lost),
            _ => {}
        }
        task.place = match (work, passed) {
            (None, _) => {
                task.lost += u32::from(is_lost);
                TaskPlace::Interrupted
            }
            (Some(work), true) => {
                (task.work, task.ready) = (Some(work.clone()), clock);
                TaskPlace::Ready
            }
            (Some(work), false) => {
                task.start = Some(work.clone());
                TaskPlace::Unsuccessful(outcome)
            }
        };
    }

    fn place(&mut self, tasks: &[String], place: &TaskPlace) {
        for task in tasks {
            if let Some(task) = self.tasks.get_mut(task) {
                task.place = place.clone();
            }
        }
    }

    /// Returns the tasks whose work waits to land, those that were complete first before the others.
    #[must_use]
    pub fn ready(&self) -> Vec<&str> {
        let mut ready: Vec<(&str, u64)> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.place == TaskPlace::Ready)
            .map(|(id, task)| (id.as_str(), task.ready))
            .collect();
        ready.sort_by_key(|(_, ready)| *ready);
        ready.into_iter().map(|(id, _)| id).collect()
    }

    /// Returns how many units are at work.
    #[must_use]
    pub fn at_work(&self) -> usize {
        self.units.values().filter(|unit| unit.at_work).count()
    }

    /// Returns the number of tasks that have landed.
    #[must_use]
    pub fn landed(&self) -> usize {
        self.tasks.values().filter(|task| matches!(task.place, TaskPlace::Landed(_))).count()
    }
}

/// Whether a run that has handed nothing over has reached a limit: it continues once it gets more.
fn has_reached_limit(outcome: Option<RunOutcome>) -> bool {
    matches!(outcome, Some(RunOutcome::LimitReached { .. }))
}
