//! Writes what a run does: its events in commits, and the order in which they and the transcripts reach the disk.

use super::database::Database;
use super::error::JournalError;
use super::ledger::{LedgerWatch, RowSum, kept};
use super::tables::answers::{NewAnswer, insert_answer};
use super::tables::events::insert_event;
use super::tables::lease::current_fence;
use super::tables::task_rows::{self, Following};
use crate::engine::{Event, EventKind};
use rusqlite::params;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The shortest time between two fsyncs.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// The most files that wait for an fsync, in addition to those of the last attempt.
const MOST_UNSYNCED: usize = 12;

/// What one commit of a run writes.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'a> {
    /// The events, in order.
    pub events: &'a [Event],
    /// The digest of the token of an attempt that is planned.
    pub token: Option<&'a str>,
    /// The answer of an attempt that ends.
    pub answer: Option<&'a NewAnswer>,
}

impl<'a> Commit<'a> {
    /// A commit of events only.
    #[must_use]
    pub fn of(events: &'a [Event]) -> Self {
        Self { events, token: None, answer: None }
    }
}

/// What the commits of a run depend on.
#[derive(Debug, Default)]
pub(super) struct RunWriter {
    /// The fencing number of this process's lease, once it has one.
    pub(super) fence: Option<i64>,
    /// The run number and the outline that a resumed run gets with its next commit, by whichever lane.
    pub(super) next_outline: Rc<RefCell<Option<(i64, String)>>>,
    /// The task that this run is working on.
    pub(super) following: Option<Following>,
    /// The number of commits until a test makes the process abort.
    pub(super) writes_left: Option<Rc<Cell<u32>>>,
    synced: Option<Instant>,
    /// Transcripts that the next fsync writes to the disk before the events that refer to them.
    unsynced: Vec<File>,
}

impl RunWriter {
    /// A writer for another lane of the same run.
    pub(super) fn sibling(&self) -> Self {
        Self {
            fence: self.fence,
            next_outline: Rc::clone(&self.next_outline),
            writes_left: self.writes_left.clone(),
            ..Self::default()
        }
    }

    /// Queues files for the next fsync.
    pub(super) fn sync_before(&mut self, files: Vec<File>, database: &Database) -> Result<(), JournalError> {
        // Attempts of a few milliseconds would otherwise use up all file descriptors.
        if self.unsynced.len() >= MOST_UNSYNCED {
            self.sync_transcripts(database)?;
        }
        self.unsynced.extend(files);
        Ok(())
    }

    fn sync_transcripts(&mut self, database: &Database) -> Result<(), JournalError> {
        let failed = |cause| JournalError::Write { path: database.path().with_file_name("runs"), cause };
        self.unsynced.drain(..).try_for_each(|file| file.sync_data()).map_err(failed)
    }

    /// Writes a commit, as [`Journal::append`](crate::journal::Journal::append) says.
    pub(super) fn append(
        &mut self,
        (database, watch): (&Database, &LedgerWatch),
        commit: Commit<'_>,
        now: Instant,
    ) -> Result<(), JournalError> {
        let events = commit.events;
        let ends_run = events.iter().any(|event| matches!(event.event, EventKind::RunFinished { .. }));
        let ends = ends_run || events.iter().any(|event| matches!(event.event, EventKind::AttemptFinished { .. }));
        let due = ends_run || self.synced.is_none_or(|synced| now.duration_since(synced) >= SYNC_EVERY);
        let full = ends && due;
        if full {
            self.sync_transcripts(database)?;
            database.synchronous("FULL")?;
        }
        let written = self.insert((database, watch), commit).map(|written| watch.follow(database, written));
        if full {
            database.synchronous("NORMAL")?;
            self.synced = Some(now);
        }
        if let Some(left) = &self.writes_left {
            left.set(left.get().saturating_sub(1));
            if left.get() == 0 {
                std::process::abort();
            }
        }
        written
    }

    /// Writes a commit. Returns the number of changes and the sum that the ledger then has.
    fn insert(
        &mut self,
        (database, watch): (&Database, &LedgerWatch),
        commit: Commit<'_>,
    ) -> Result<Option<(i64, RowSum)>, JournalError> {
        let failed = database.failed();
        // From here on nobody else can commit, so that our commit hides no change by another program.
        let transaction = database.begin();
        if watch.has_begun() && !watch.is_intact(database)? {
            return Err(JournalError::Tampered { path: database.path().to_path_buf(), agent: None });
        }
        let transaction = transaction?;
        // If the lock file was removed, another run may have begun.
        if let Some(fence) = self.fence
            && current_fence(&transaction).map_err(failed)? != fence
        {
            return Err(JournalError::Lost { path: database.path().to_path_buf() });
        }
        if let Some((run, outline)) = &*self.next_outline.borrow() {
            let update = "UPDATE runs SET outline = ?2 WHERE id = ?1";
            transaction.execute(update, params![run, outline]).map_err(failed)?;
        }
        let mut following = self.following.clone();
        for event in commit.events {
            insert_event(database, &transaction, event, commit.token)?;
            if let Some(following) = &mut following {
                task_rows::project(&transaction, event, following).map_err(failed)?;
            }
        }
        if let Some(answer) = commit.answer {
            insert_answer(&transaction, answer).map_err(failed)?;
        }
        let written = kept(&transaction).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.following = following;
        self.next_outline.take();
        Ok(written)
    }
}
