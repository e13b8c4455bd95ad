//! What the driver works with, how a run begins, and how it ends.

use super::templates::Replan;
use crate::engine::{Event, Leftover, Observer, RunOutcome};
use crate::journal::{Journal, JournalError};
use crate::plan::Overrides;
use crate::plan::Plan;
use crate::verdict::Verdict;
use crate::world::World;
use std::io;
use std::path::Path;

/// What the driver works with.
#[derive(Debug)]
pub struct Cast<'a> {
    /// What to run.
    pub plan: &'a Plan,
    /// Where, with late values known.
    pub root: &'a Path,
    /// Plans again, where templates that are edited meanwhile are to be read.
    pub replan: Option<Replan<'a>>,
    /// The ambient.
    pub world: &'a World,
    /// The journal of the root.
    pub journal: &'a mut Journal,
    /// The run's number in it.
    pub run: i64,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
}

/// How a run begins.
#[derive(Debug)]
pub enum Begin {
    /// Anew, with what the command line said. In a queue of tasks, with the backends whose login worked in it before.
    New(Box<Overrides>, Option<Vec<String>>),
    /// Where an earlier process left off.
    Again(Box<Again>),
}

/// What a resume begins with.
#[derive(Debug)]
pub struct Again {
    /// The run's events so far.
    pub events: Vec<Event>,
    /// What had outlived the earlier process, and was ended.
    pub leftovers: Vec<Leftover>,
    /// Limits of the command line.
    pub limits: Vec<String>,
    /// What a person decides about the work, where one is waited for.
    pub decided: Option<Verdict>,
    /// How many more iterations or rounds there are, where they were used up.
    pub more: Option<u32>,
}

/// How a run ended, and why standard output failed if it did.
#[derive(Debug)]
pub struct Ended {
    /// The machine's word.
    pub outcome: RunOutcome,
    /// What writing to standard output said.
    pub output_error: Option<io::Error>,
}

/// Why a run could not go on. Its agent is ended, and nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The journal takes no more.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// We cannot hear signals, and so could not stop.
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
    /// The machine came to no conclusion: a fault of ours.
    #[error("the run lost its way; please report this with its events")]
    Lost,
    /// The machine has no room for our own threads.
    #[error("cannot start a thread: {0}")]
    Threads(#[source] io::Error),
    /// No random bytes for a token.
    #[error("cannot make a token: {0}")]
    Token(#[source] io::Error),
}
