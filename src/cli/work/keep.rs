//! Checkpoints of a unit's run in the hub, and its continuation from a checkpoint in another workspace.

use super::refused;
use crate::cli::respond::Stopped;
use crate::engine::{Event, EventKind};
use crate::hub::{Claim, FoundUnit, Hub, KeptRun, Workspace};
use crate::journal::{Journal, NewRun, Worker};
use crate::plan::Outline;
use crate::report::Keeper;
use crate::unit::Bundle;
use crate::world::World;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// What is known about a run besides its events.
#[derive(Debug, Serialize, Deserialize)]
struct RunFacts {
    started: String,
    digest: String,
    outline: Outline,
}

/// Returns what keeps the run of a unit in the hub after each of its attempts.
pub(super) fn keeper(hub: &Hub, bundle: &Bundle, workspace: &Workspace, claim: &Rc<RefCell<Claim>>) -> Keeper {
    let (hub, bundle, workspace, claim) = (hub.clone(), bundle.clone(), workspace.clone(), Rc::clone(claim));
    Keeper(Rc::new(move |event: &Event| {
        if !matches!(event.event, EventKind::AttemptFinished { .. }) {
            return Ok(());
        }
        match keep(&hub, &bundle, &workspace, &mut claim.borrow_mut()) {
            Some(false) => Err(io::Error::other(format!("another worker has claimed unit {}", bundle.unit))),
            // One that could not be made now is made after the next attempt, or at the end.
            Some(true) | None => Ok(()),
        }
    }))
}

/// Makes a checkpoint. Returns whether the claim still holds; `None` if none could be made.
fn keep(hub: &Hub, bundle: &Bundle, workspace: &Workspace, claim: &mut Claim) -> Option<bool> {
    let run = last_run(workspace)?;
    // A run that has ended is handed over at once; no checkpoint is needed.
    if run.has_ended {
        return Some(true);
    }
    let work = hub.workspaces().commit(bundle, workspace).ok()?;
    hub.kept().checkpoint(claim, &work, run.kept()).ok()
}

/// The run of a unit, ready to be kept.
pub(super) struct RunToKeep {
    facts: String,
    events: String,
    attempts: PathBuf,
    has_ended: bool,
}

impl RunToKeep {
    pub(super) fn kept(&self) -> KeptRun<'_> {
        KeptRun { facts: &self.facts, events: &self.events, attempts: &self.attempts }
    }
}

/// The run that a unit has begun in its workspace; `None` if it has begun none.
pub(super) fn last_run(workspace: &Workspace) -> Option<RunToKeep> {
    let before = workspace.run_before()?;
    let journal = Journal::existing(&workspace.root).ok()??;
    let row = journal.runs().all().ok()?.into_iter().next().filter(|row| row.id > before)?;
    let outline = journal.runs().outline(row.id).ok()??;
    let (mut events, mut digest, mut has_ended) = (String::new(), String::new(), false);
    for event in journal.events().of(row.id).ok()? {
        events += &(serde_json::to_string(&event).ok()? + "\n");
        has_ended = matches!(event.event, EventKind::RunFinished { .. });
        if let EventKind::RunStarted { digest: planned, .. } = event.event {
            digest = planned;
        }
    }
    let facts = RunFacts { started: row.started, digest, outline: outline.on_any_machine() };
    let facts = serde_json::to_string(&facts).ok()?;
    Some(RunToKeep { facts, events, attempts: journal.files().run_folder(row.id), has_ended })
}

/// A bundle that begins with the work at the last checkpoint of its unit, if there is one.
pub(super) fn from_checkpoint(bundle: &Bundle, found: Option<&FoundUnit>) -> Bundle {
    let mut bundle = bundle.clone();
    if let Some(work) = found.and_then(|found| found.work.clone()) {
        bundle.start = work;
        bundle.overrides.base.get_or_insert_with(|| bundle.base.clone());
    }
    bundle
}

/// Writes the run of a unit's last checkpoint into the journal of a fresh workspace. Returns its number; `None` if
/// there is no checkpoint, or if this version does not understand it.
pub(super) fn restore(
    world: &World,
    hub: &Hub,
    bundle: &Bundle,
    workspace: &Workspace,
    found: Option<&FoundUnit>,
) -> Result<Option<i64>, Stopped> {
    let Some((found, (facts, events))) = found.and_then(|found| Some((found, hub.kept().run(found)?))) else {
        return Ok(None);
    };
    let events: Result<Vec<Event>, _> = events.lines().map(serde_json::from_str).collect();
    let (Ok(facts), Ok(events)) = (serde_json::from_str::<RunFacts>(&facts), events) else { return Ok(None) };
    let mut journal = Journal::open(&workspace.root)?;
    let RunFacts { started, digest, outline } = facts;
    let new = NewRun { worker: Worker::NONE, started: &started, digest: &digest, outline: &outline };
    let task = bundle.task.as_ref().map(|task| task.id.as_str());
    let run = journal.adopt_run(task, new, events, world.now())?;
    journal.files().make_run_folder(run)?;
    hub.kept()
        .restore_attempts(&bundle.unit, found, &journal.files().run_folder(run))
        .map_err(|error| refused(&error))?;
    Ok(Some(run))
}
