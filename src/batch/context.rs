//! What a batch works with, and why it may fail.

use super::budget::Budget;
use super::planned::UnitPlanner;
use super::remote::RemoteEngine;
use crate::engine::{BatchFacts, EventKind, Observer};
use crate::hub::{Hub, HubError};
use crate::journal::{Journal, JournalError};
use crate::runner::Failure;
use crate::world::World;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Why a batch could not continue.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The journal, the signals or a thread failed.
    #[error(transparent)]
    Run(#[from] Failure),
    /// The hub failed.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// Somebody else has moved the line.
    #[error("the branch forkhestra/line of the hub was moved by another program")]
    LineMoved,
}

impl From<JournalError> for BatchError {
    fn from(error: JournalError) -> Self {
        Self::Run(error.into())
    }
}

/// Everything that a batch works with.
pub struct BatchContext<'a> {
    /// The environment, the clocks and our own program.
    pub world: &'a World,
    /// The user's root.
    pub root: &'a Path,
    /// The hub of the root.
    pub hub: &'a Hub,
    /// The directory of the workspaces.
    pub workspaces: PathBuf,
    /// Whether the workspaces of landed tasks are kept.
    pub keeps_workspaces: bool,
    /// The journal of the root, under the lease of the batch.
    pub journal: &'a mut Journal,
    /// The number of the batch.
    pub run: i64,
    /// The events of the batch so far.
    pub earlier: &'a [crate::engine::Event],
    /// Plans its units.
    pub planner: &'a dyn UnitPlanner,
    /// The limits of the whole batch.
    pub budget: Budget,
    /// The first event: the batch begins or resumes.
    pub opening: EventKind,
    /// Its tasks and options.
    pub facts: BatchFacts,
    /// What brings its units to other machines; `None` if they are worked on here.
    pub engine: Option<Rc<RemoteEngine>>,
    /// Receives the events of the batch and of its runs.
    pub observer: &'a mut dyn Observer,
}
