//! The driver's context, how a run begins, and how it ends.

use crate::chain::Role;
use crate::context::TreeOrigin;
use crate::engine::{At, Event, Leftover, Observer, RunOutcome};
use crate::journal::{Journal, JournalError};
use crate::plan::{Overrides, Plan};
use crate::source::Diagnostic;
use crate::verdict::Verdict;
use crate::world::World;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::Path;

/// Plans the run again, as its command line would now. Given if edited templates are to be read (`--accept-changes`).
#[derive(Clone, Copy)]
pub struct Replan<'a>(pub &'a dyn Fn() -> Result<Plan, Vec<Diagnostic>>);

impl Debug for Replan<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Replan")
    }
}

/// Everything that the driver works with.
#[derive(Debug)]
pub struct RunContext<'a> {
    /// The plan to run.
    pub plan: &'a Plan,
    /// The directory in which the run works.
    pub root: &'a Path,
    /// Builds the plan again, if templates that are edited during the run are to be read.
    pub replan: Option<Replan<'a>>,
    /// The environment, the clocks and our own program.
    pub world: &'a World,
    /// The journal of that directory.
    pub journal: &'a mut Journal,
    /// The run's number in the journal.
    pub run: i64,
    /// Where the objects of the working tree are, if forkhestra has made it for this run.
    pub origin: Option<&'a TreeOrigin>,
    /// Receives the run's events and output.
    pub observer: &'a mut dyn Observer,
}

impl RunContext<'_> {
    /// The role of an attempt's step; none for a check.
    pub(super) fn role(&self, at: &At) -> Option<Role> {
        self.plan.step(at.step)?.role()
    }

    /// The group of an attempt's step.
    pub(super) fn group_of(&self, at: &At) -> Option<usize> {
        self.plan.group_of(at.step)
    }

    /// Whether an attempt may change this file: only a template, and only if the user wants edited templates to be
    /// read.
    pub(super) fn may_be_edited(&self, path: &str) -> bool {
        let path = self.root.join(path);
        self.replan.is_some() && self.plan.templates.iter().any(|folder| path.starts_with(folder))
    }
}

/// How a run begins.
#[derive(Debug)]
pub enum RunStart {
    /// A new run.
    New(Box<StartPoint>),
    /// A run that continues where an earlier process stopped.
    Resumed(Box<ResumePoint>),
}

/// What a new run starts from, besides its plan.
#[derive(Debug)]
pub struct StartPoint {
    /// The digest of the plan, as it is recorded for the run.
    pub digest: String,
    /// The overrides of the command line.
    pub overrides: Overrides,
    /// In a queue of tasks: the backends whose login has already worked in that queue.
    pub logins: Option<Vec<String>>,
}

/// What a resumed run starts from.
#[derive(Debug)]
pub struct ResumePoint {
    /// The run's events so far, in order.
    pub events: Vec<Event>,
    /// The processes that outlived the earlier forkhestra process and were terminated.
    pub leftovers: Vec<Leftover>,
    /// The limits that the command line sets.
    pub limits: Vec<String>,
    /// A person's decision about the work, if the run is waiting for one.
    pub decided: Option<Verdict>,
    /// How many more iterations or rounds are allowed, if they were used up.
    pub more: Option<u32>,
}

/// How a run ended, and why standard output failed if it did.
#[derive(Debug)]
pub struct RunEnd {
    /// How the run ended, as the engine decided it.
    pub outcome: RunOutcome,
    /// The error from writing to standard output, if there was one.
    pub output_error: Option<io::Error>,
}

/// Why a run could not continue. Its agent and everything that the agent started have been terminated.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Signals cannot be received, so the run could not be stopped.
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
    /// The engine produced no next action, which is a bug in forkhestra.
    #[error("internal error: the engine produced no next action; please report it with `forkhestra runs events N`")]
    Lost,
    /// The machine cannot start another thread for forkhestra itself.
    #[error("cannot start a thread: {0}")]
    Threads(#[source] io::Error),
    /// Work cannot be brought to other machines.
    #[error("cannot start work on other machines: {0}")]
    Elsewhere(#[source] io::Error),
    /// The system has no random bytes for a token.
    #[error("cannot generate a token: {0}")]
    Token(#[source] io::Error),
}
