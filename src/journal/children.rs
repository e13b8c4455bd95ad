//! The runs of a batch: each was worked on elsewhere, with a journal of its own, and is copied into this one. A copy is
//! a fold: copying an event twice changes nothing.

use super::error::JournalError;
use super::folders::failed;
use super::handle::Handle;
use super::new_run::NewRun;
use super::new_run::insert_run;
use super::store::Journal;
use crate::engine::{At, Event, EventKind};
use rusqlite::TransactionBehavior::Immediate;
use rusqlite::params;
use std::io;
use std::path::Path;
use std::time::Instant;

impl Journal {
    /// Begins a run that belongs to a batch, under the batch's lease, and returns its number.
    ///
    /// # Errors
    /// When the run cannot be written.
    pub fn begin_child(&mut self, batch: i64, unit: &str, new: NewRun<'_>) -> Result<i64, JournalError> {
        let path = self.path.clone();
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let (highest, json) = self.before_run(new.outline)?;
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        let run = insert_run(&transaction, highest, new, &json).map_err(failed)?;
        let update = "UPDATE runs SET parent = ?2, unit = ?3 WHERE id = ?1";
        transaction.execute(update, params![run, batch, unit]).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(run)
    }

    /// Adds a run that has begun in another root, with its events so far. They change its task. Returns its number.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn adopt_run(
        &mut self,
        task: Option<&str>,
        new: NewRun<'_>,
        events: Vec<Event>,
        now: Instant,
    ) -> Result<i64, JournalError> {
        let path = self.path.clone();
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let outline = new.outline;
        let (highest, json) = self.before_run(outline)?;
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        let run = insert_run(&transaction, highest, new, &json).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if let Some(task) = task {
            self.follow(run, task, outline)?;
        }
        let here = self.root().display().to_string();
        let mut events: Vec<Event> = events.into_iter().map(|event| Event { run, unit: None, ..event }).collect();
        for event in &mut events {
            if let EventKind::RunStarted { root, .. } = &mut event.event {
                root.clone_from(&here);
            }
        }
        self.append(&events, None, now)?;
        Ok(run)
    }

    /// Returns the numbers of all batches, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn batches(&self) -> Result<Vec<i64>, JournalError> {
        let select = "SELECT run FROM events WHERE seq = 2 AND type = 'batch' ORDER BY run DESC";
        let mut select = self.database.prepare(select).map_err(self.failed())?;
        let rows = select.query_map([], |row| row.get(0)).map_err(self.failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// Returns the number of the last event of a run; 0 if it has none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_seq(&self, run: i64) -> Result<u64, JournalError> {
        let select = "SELECT coalesce(max(seq), 0) FROM events WHERE run = ?1";
        let seq: i64 = self.database.query_row(select, [run], |row| row.get(0)).map_err(self.failed())?;
        Ok(seq.cast_unsigned())
    }

    /// Copies the directory of an attempt from another root. An attempt that was copied before stays as it is.
    ///
    /// # Errors
    /// When it cannot be written. Files that cannot be read are left out.
    pub fn adopt_attempt(&self, run: i64, at: &At, from: &Path, their_run: i64) -> Result<(), JournalError> {
        self.adopt_attempt_as(run, at, from, (their_run, at.attempt))
    }

    /// Like [`Journal::adopt_attempt`], of an attempt that has another number there.
    ///
    /// # Errors
    /// When it cannot be written. Files that cannot be read are left out.
    pub fn adopt_attempt_as(
        &self,
        run: i64,
        at: &At,
        from: &Path,
        (their_run, attempt): (i64, u32),
    ) -> Result<(), JournalError> {
        if self.attempt_folder(run, at.step, &at.name, at.attempt).path().is_dir() {
            return Ok(());
        }
        let step = format!("{}-{}", at.step, at.name);
        let names = ["runs", &their_run.to_string(), &step, &attempt.to_string()];
        let theirs = Handle::existing(from).and_then(|theirs| theirs.below(names));
        let Ok(theirs) = theirs else { return Ok(()) };
        let (ours, _) = self.attempt(run, at.step, &at.name, at.attempt)?;
        let ours = ours.writable()?;
        let entries = std::fs::read_dir(theirs.path()).into_iter().flatten().flatten();
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            // Only ordinary files that are reached without a link.
            let Ok(mut file) = theirs.open(&name) else { continue };
            let copied = ours.create(&name).and_then(|mut copy| io::copy(&mut file, &mut copy));
            copied.map_err(failed(&ours.path().join(&name)))?;
        }
        Ok(())
    }
}
