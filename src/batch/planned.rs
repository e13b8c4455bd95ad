//! What a batch needs to know to start its units.

use crate::journal::JournalError;
use crate::plan::Outline;
use crate::task::Status;
use crate::unit::Bundle;

/// What a unit is for.
#[derive(Debug, Clone, Copy)]
pub enum UnitPurpose<'a> {
    /// It works on a task.
    Task {
        /// The task.
        task: &'a str,
        /// With `--tries`: the number of the try.
        try_number: Option<u32>,
        /// The backend of its agents; `None` for that of each agent.
        backend: Option<&'a str>,
    },
    /// Its judge chooses one of several tries at a task.
    Choice {
        /// The task.
        task: &'a str,
        /// The tries, as the judge is shown them.
        tries: &'a str,
    },
    /// It verifies a merge.
    Verification,
}

impl UnitPurpose<'_> {
    /// The task that it is about.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::Task { task, .. } | Self::Choice { task, .. } => Some(task),
            Self::Verification => None,
        }
    }
}

/// A unit that is to be started.
#[derive(Debug, Clone, Copy)]
pub struct UnitToStart<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is for.
    pub purpose: UnitPurpose<'a>,
    /// The commit that its work is compared with.
    pub base: &'a str,
    /// The commit with which it begins.
    pub start: &'a str,
}

/// A unit of work, planned.
#[derive(Debug)]
pub struct PlannedUnit {
    /// What its worker gets.
    pub bundle: Bundle,
    /// Its plan in brief.
    pub outline: Outline,
    /// The digest of its plan.
    pub digest: String,
}

/// Plans the units of a batch, and records in its tasks what becomes of them.
pub trait UnitPlanner {
    /// Returns the status of a task; `None` if a person has deleted it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn status(&self, task: &str) -> Result<Option<Status>, JournalError>;
    /// Plans a unit.
    ///
    /// # Errors
    /// When the journal cannot be read.
    fn unit(&self, unit: &UnitToStart<'_>) -> Result<PlannedUnit, JournalError>;
    /// Records in the task's history that its work was sent back or has failed, with what its agents are told.
    ///
    /// # Errors
    /// When the journal cannot be written.
    fn rejected(&self, task: &str, feedback: &str, has_failed: bool) -> Result<(), JournalError>;
    /// Records in the task's history that several tries are made at it.
    ///
    /// # Errors
    /// When the journal cannot be written.
    fn tried(&self, task: &str) -> Result<(), JournalError>;
    /// Records in the task's history that it is completed by one of its tries.
    ///
    /// # Errors
    /// When the journal cannot be written.
    fn chosen(&self, task: &str, try_number: u32, reason: &str) -> Result<(), JournalError>;
    /// Returns the message of the commit with which a task's work lands.
    fn message(&self, task: &str, run: Option<i64>) -> String;
}
