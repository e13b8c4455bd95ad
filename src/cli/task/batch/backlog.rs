//! The tasks of a shared hub while a batch works on them: they are copied into the project's journal, and whatever
//! happens to them is brought back to the hub. One batch at a time does this, wherever it runs.

use super::claim::{Claim, claim};
use super::errors;
use crate::cli::config::Project;
use crate::cli::options::Common;
use crate::cli::respond::Stopped;
use crate::cli::task::shared::shared_hub;
use crate::engine::{BatchState, TaskOfBatch, TaskPlace};
use crate::hub::{FoundTask, Hub, Person, Pushed, RefChange, SharedHub, TaskChange};
use crate::journal::{Journal, NewTask};
use crate::task::{AuditRow, Status, Task};
use crate::unit::{SharedTask, TrailEntry, is_same_entry};
use crate::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How often a change of tasks is tried again at once.
const TRIES: u32 = 20;

/// The tasks of a hub as a batch sees them before it begins.
pub(super) struct SharedView {
    hub: Hub,
    /// The tasks.
    pub(super) tasks: Vec<Task>,
    /// The work on tasks that has not landed: commits.
    work: BTreeMap<String, String>,
    /// The tasks whose work has landed.
    landed: BTreeSet<String>,
}

impl SharedView {
    /// Reads the tasks of a hub, and changes nothing.
    pub(super) fn read(world: &World, common: &Common, name: &str) -> Result<Self, Stopped> {
        let hub = shared_hub(world, common, name)?;
        let found = hub.tasks().all()?;
        let tasks = found.iter().map(|found| found.task.task()).collect();
        Ok(Self::of(hub, tasks, &found))
    }

    fn of(hub: Hub, tasks: Vec<Task>, found: &[FoundTask]) -> Self {
        let (landed, open): (Vec<_>, Vec<_>) =
            found.iter().map(|found| &found.task).partition(|task| task.landed.is_some());
        let counts = open.iter().filter(|task| !task.discarded);
        let work = counts.filter_map(|task| Some((task.id.clone(), task.work.clone()?))).collect();
        Self { hub, tasks, work, landed: landed.iter().map(|task| task.id.clone()).collect() }
    }

    /// Whether the work on a task has landed, as far as the hub knows.
    pub(super) fn has_landed(&self, id: &str) -> bool {
        self.landed.contains(id)
    }

    /// The tasks that are completed, but whose work has not landed.
    pub(super) fn completed(&self) -> impl Iterator<Item = &str> {
        let is_completed = |id: &str| self.tasks.iter().any(|task| task.id == id && task.status == Status::Completed);
        self.work.keys().map(String::as_str).filter(move |id| is_completed(id))
    }

    /// Brings the work on a task into a project's hub. Returns its commit; `None` if the hub has none.
    pub(super) fn work_on(&self, own: &Hub, id: &str) -> Result<Option<&str>, Stopped> {
        let Some(work) = self.work.get(id) else { return Ok(None) };
        Ok(own.as_copy_of(&self.hub).tasks().fetch_work(id, work)?.then_some(work))
    }

    /// The last commit of the hub's line, which the project's hub has afterwards; `None` if there is no line.
    pub(super) fn line(&self, own: &Hub) -> Result<Option<String>, Stopped> {
        Ok(own.as_copy_of(&self.hub).shared().line()?)
    }

    /// Advances a project's line to that of the hub.
    pub(super) fn adopt_line(&self, own: &Hub) -> Result<(), Stopped> {
        let Some(theirs) = self.line(own)? else { return Ok(()) };
        match own.line() {
            Some(line) if own.commits().is_ancestor(&theirs, &line) => {}
            Some(line) if !own.commits().is_ancestor(&line, &theirs) => {
                return Err(errors::shared_line_apart(&self.hub.name(), own.commits().ahead(&line, &theirs)).into());
            }
            line => drop(own.advance_line(&theirs, line.as_deref())?),
        }
        Ok(())
    }
}

/// The right to work on the tasks of a hub.
pub(super) struct Backlog {
    hub: Hub,
    /// The hub, as the user has named it.
    pub(super) name: String,
    pub(super) claim: Claim,
    person: Person,
    root: PathBuf,
    /// The line of the hub, as it was seen last.
    line: Option<String>,
}

impl Backlog {
    /// Claims the tasks of a hub. With `waits`, until whoever has them gives them back or is silent for long.
    pub(super) fn join(
        world: &World,
        common: &Common,
        project: &Project,
        name: &str,
        waits: bool,
    ) -> Result<Self, Stopped> {
        let hub = shared_hub(world, common, name)?;
        let (root, person) = (project.root.clone(), Person::of(&project.root));
        let claim = claim(world, common, (&hub, name), &root, &person, waits)?;
        Ok(Self { hub, name: name.to_string(), claim, person, root, line: None })
    }

    /// The root of the project.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Brings the journal and the hub to the same state. Returns the tasks of the hub.
    pub(super) fn view(&mut self) -> Result<SharedView, Stopped> {
        let mut journal = Journal::open(&self.root)?;
        let own = Hub::existing(&self.root);
        if let Some(own) = &own {
            self.push_from(own);
        }
        let found = self.hub.tasks().all()?;
        for own in journal.tasks().all()? {
            let shared = found.iter().map(|found| &found.task).find(|task| task.id == own.id);
            if shared.is_some_and(|shared| (&own.added, &own.title) != (&shared.added, &shared.title)) {
                return Err(errors::own_task(&own.id).into());
            }
        }
        // What an earlier batch could not bring to the hub. If another batch has worked on the tasks since, what that
        // one has done counts.
        let last = self.claim.with(|claim| claim.run_before()).filter(|_| own.is_some()).map(|run| (run, true));
        let holds = match &own {
            Some(own) => self.push_line(own)?,
            None => true,
        };
        if !holds || !self.sync(&mut journal, last)? {
            return Err(errors::taken(&self.name, "another batch").into());
        }
        let found = self.hub.tasks().all()?;
        let is_shared = |task: &Task| found.iter().any(|found| found.task.id == task.id);
        let tasks = journal.tasks().all()?.into_iter().filter(is_shared).collect();
        Ok(SharedView::of(self.hub.clone(), tasks, &found))
    }

    /// Pushes from the hub of the project from now on, and fetches to it.
    pub(super) fn push_from(&mut self, own: &Hub) {
        self.hub = own.as_copy_of(&self.hub);
        self.claim.with(|claim| claim.push_from(self.hub.shared()));
    }

    /// Takes over what people have decided, and brings to the hub what has happened in a batch, of which it is known
    /// whether it has ended. Returns whether the claim still holds.
    pub(super) fn sync(&mut self, journal: &mut Journal, batch: Option<(i64, bool)>) -> Result<bool, Stopped> {
        let state = match batch {
            Some((run, _)) => BatchState::of_events(&journal.events().of(run)?),
            None => None,
        };
        let has_ended = batch.is_none_or(|(_, has_ended)| has_ended);
        for _ in 0..TRIES {
            let mut copies = Vec::new();
            let known: BTreeSet<String> = journal.tasks().all()?.into_iter().map(|task| task.id).collect();
            for FoundTask { commit, mut task } in self.hub.tasks().all()? {
                let before = task.clone();
                task.at_work = false;
                let of_batch = state.as_ref().and_then(|state| Some((state, state.tasks.get(&task.id)?)));
                let is_only_here =
                    of_batch.is_some_and(|(state, known)| self.take_work(&mut task, known, state, has_ended));
                if known.contains(&task.id) {
                    join_trails(journal, &mut task, of_batch.is_some(), is_only_here)?;
                } else {
                    adopt(journal, &task)?;
                }
                if task != before {
                    let (from, to) = (before.task().status.name(), task.task().status.name());
                    let event = if from == to { format!("still {to}") } else { format!("{from} to {to}") };
                    copies.push((task, commit, before.work, event));
                }
            }
            if copies.is_empty() {
                return Ok(!self.claim.with(|claim| claim.is_lost()));
            }
            let changes = copies.iter().map(|(task, commit, old_work, event)| TaskChange {
                task,
                old: Some(commit.as_str()),
                old_work: old_work.as_deref(),
                event: event.clone(),
            });
            let changes: Vec<TaskChange<'_>> = changes.collect();
            let new_work = changes.iter().filter(|change| change.task.work.as_deref() != change.old_work);
            let new_work = new_work.filter_map(|change| Some((change.task.id.as_str(), change.task.work.as_deref()?)));
            self.hub.shared().send(&self.sender(), &new_work.collect::<Vec<_>>())?;
            match self.push(&self.hub.tasks().changes(&changes, &self.person)?)? {
                Pushed::Done => return Ok(true),
                Pushed::Lost => return Ok(false),
                Pushed::Changed => {}
            }
        }
        Err(crate::cli::task::errors::busy(&self.hub.name()).into())
    }

    fn push(&self, changes: &[RefChange]) -> Result<Pushed, Stopped> {
        Ok(self.claim.with(|claim| claim.push(changes))?)
    }

    /// A name for what is sent from here.
    fn sender(&self) -> String {
        self.claim.with(|claim| claim.name().to_string())
    }

    /// Adds to a task where its work is, according to a batch. Returns whether that work is complete, but only here, so
    /// that nobody may believe that it is done.
    fn take_work(&self, task: &mut SharedTask, known: &TaskOfBatch, state: &BatchState, has_ended: bool) -> bool {
        let is_at_work = matches!(known.place, TaskPlace::AtWork | TaskPlace::Trying);
        let is_waiting = matches!(known.place, TaskPlace::Ready | TaskPlace::OnTrial | TaskPlace::Interrupted);
        task.at_work = !has_ended && (is_at_work || is_waiting);
        if let TaskPlace::Landed(commit) = &known.place {
            let is_shared = |line: &String| self.hub.commits().is_ancestor(commit, line);
            if task.landed.as_ref() == Some(commit) || self.line.as_ref().is_some_and(is_shared) {
                task.landed = Some(commit.clone());
                return false;
            }
        }
        let unit = state.units.iter().rev().find(|(_, unit)| unit.task.as_ref() == Some(&task.id));
        // Of a unit on another machine, the project's hub has what its last checkpoint has.
        let checkpoint = || self.hub.units().get(unit?.0).ok()??.work;
        let work = known.work.clone().or_else(checkpoint).or_else(|| known.best_work().map(str::to_string));
        // What the hub knows already may have been discarded since.
        if let Some(work) = work.filter(|work| task.work.as_ref() != Some(work) && self.hub.has(work)) {
            (task.work, task.discarded, task.landed) = (Some(work), false, None);
        }
        // A batch that was killed has tasks at work for ever.
        is_at_work || known.work.is_some() && known.work != task.work
    }

    /// Advances the line of the hub to that of the project. Returns whether the claim still holds.
    pub(super) fn push_line(&mut self, own: &Hub) -> Result<bool, Stopped> {
        let Some(line) = own.line().filter(|line| self.line.as_ref() != Some(line)) else { return Ok(true) };
        let theirs = self.hub.shared().line()?;
        if theirs.as_ref().is_none_or(|theirs| !own.commits().is_ancestor(&line, theirs)) {
            if theirs.as_ref().is_some_and(|theirs| !own.commits().is_ancestor(theirs, &line)) {
                let count = own.commits().ahead(&line, theirs.as_deref().unwrap_or_default());
                return Err(errors::shared_line_apart(&self.hub.name(), count).into());
            }
            self.hub.shared().send(&self.sender(), &[("line", &line)])?;
            match self.push(&[SharedHub::line_change(&line, theirs.as_deref())])? {
                Pushed::Done => {}
                Pushed::Lost => return Ok(false),
                Pushed::Changed => return Err(errors::shared_line_moved(&self.hub.name()).into()),
            }
        }
        self.line = Some(line);
        Ok(true)
    }
}

/// Adds a task of the hub to the journal, with all that has happened to it.
fn adopt(journal: &mut Journal, task: &SharedTask) -> Result<(), Stopped> {
    let new = NewTask {
        id: Some(task.id.clone()),
        title: task.title.clone(),
        spec: task.spec.clone(),
        tests: task.tests.clone(),
        after: task.after.clone(),
    };
    let row = |entry: &TrailEntry| AuditRow { at: entry.at.clone(), run: None, change: entry.change.clone() };
    let trail: Vec<AuditRow> = task.trail.iter().map(row).collect();
    Ok(journal.tasks().put(&task.id, &new, &task.added, &trail)?)
}

/// Brings the trail of a task to the same state in the journal and in the copy of the hub. The order of the hub counts.
/// What agents have done counts only if a batch that holds the claim has seen it, and not while the work that it calls
/// completed is only here.
fn join_trails(
    journal: &mut Journal,
    task: &mut SharedTask,
    is_of_batch: bool,
    is_only_here: bool,
) -> Result<(), Stopped> {
    let rows = journal.tasks().trail(&task.id)?;
    let entry = |row: &AuditRow| TrailEntry { at: row.at.clone(), change: row.change.clone(), by: None };
    let entries: Vec<TrailEntry> = rows.iter().map(entry).collect();
    let is_human = |entry: &TrailEntry| entry.change.actor == "human";
    let is_withheld = |entry: &TrailEntry| is_only_here && entry.change.to == Status::Completed && !is_human(entry);
    task.take(&entries, |entry| is_human(entry) || is_of_batch && !is_withheld(entry));
    let mut whole = task.clone();
    whole.take(&entries, |entry| is_of_batch && is_withheld(entry));
    let run_of = |entry: &TrailEntry| {
        entries.iter().zip(&rows).find(|(known, _)| is_same_entry(known, entry)).and_then(|(_, row)| row.run)
    };
    let new: Vec<AuditRow> = whole
        .trail
        .iter()
        .map(|entry| AuditRow { at: entry.at.clone(), run: run_of(entry), change: entry.change.clone() })
        .collect();
    if new != rows {
        // If an agent has changed it at this moment, the next exchange does it.
        journal.tasks().replace_trail(&task.id, &rows, &new)?;
    }
    Ok(())
}
