//! The database: runs and their events, append only. SQLite in WAL mode: a commit survives any crash of the program.
//! The end of an attempt is also synced to the disk, at most once per 100 ms; the end of a run always is.

use super::error::JournalError;
use super::folders::{AttemptFolder, highest_run};
use super::handle::Handle;
use super::ledger::Head;
use super::lock::RunLock;
use super::new_run::{NewRun, Worker, insert_run, lease};
use super::task_rows::{self, Following};
use crate::engine::{Event, EventKind, RunSummary, type_of_event};
use crate::plan::Outline;
use crate::source::sha256;
use rusqlite::{Connection, Transaction, TransactionBehavior::Immediate, params};
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The shortest time between two fsyncs.
const SYNC_EVERY: Duration = Duration::from_millis(100);

/// The most files that wait for an fsync, in addition to those of the last attempt.
const MOST_UNSYNCED: usize = 12;

/// The journal of one root.
#[derive(Debug)]
pub struct Journal {
    /// The handle of `.forkhestra/`.
    pub(super) ours: Handle,
    /// The directory of the step that the last attempt was made for.
    pub(super) step_folder: RefCell<Option<Handle>>,
    pub(super) path: PathBuf,
    pub(super) database: Connection,
    pub(super) synced: Option<Instant>,
    /// Transcripts that the next fsync writes to the disk before the events that refer to them.
    pub(super) unsynced: Vec<File>,
    /// The fencing number of this process's lease, once it has one.
    pub(super) fence: Option<i64>,
    /// The run number and the outline that a resumed run gets with its next commit.
    pub(super) next_outline: Option<(i64, String)>,
    /// The task that this run is working on.
    pub(super) following: Option<Following>,
    /// The inode of the database file.
    pub(super) inode: u64,
    /// The state of the journal after the last commit of this process; `None` until [`Journal::remember`] is first
    /// called.
    pub(super) head: Option<Head>,
    /// The number of commits until a test makes the process abort.
    pub(super) writes_left: Option<Rc<Cell<u32>>>,
    /// The lock of this run, shared with everything that works for it.
    pub(super) lock: Option<Rc<RunLock>>,
}

impl Journal {
    /// Holds the lock of this run until [`Journal::let_go`].
    pub fn hold(&mut self, lock: RunLock) {
        self.lock = Some(Rc::new(lock));
    }

    /// The lock of this run, if it is held.
    #[must_use]
    pub fn lock(&self) -> Option<&RunLock> {
        self.lock.as_deref()
    }

    /// Releases the lock of this run: the next one may begin.
    pub fn let_go(&mut self) {
        self.lock = None;
    }

    /// Checks that the journal and the lock of this run were not removed during the run: a removed file that is open
    /// can still be written, but nothing remains of it.
    ///
    /// # Errors
    /// When one of them was removed.
    pub fn still_there(&self) -> Result<(), JournalError> {
        let database = self.ours.inode("state.db") == Some(self.inode);
        let lock =
            self.lock().is_none_or(|lock| lock.inode().is_some_and(|held| self.ours.inode("lock") == Some(held)));
        match (self.ours.is_in_place() && database, lock) {
            (true, true) => Ok(()),
            (true, false) => Err(JournalError::Removed { path: self.ours.path().join("lock") }),
            (false, _) => Err(JournalError::Removed { path: self.path.clone() }),
        }
    }

    /// Makes the process abort after this many commits: lets tests simulate a crash.
    pub fn abort_after(&mut self, writes: Option<u32>) {
        self.writes_left = writes.map(|writes| Rc::new(Cell::new(writes)));
    }

    pub(super) fn failed(&self) -> impl FnOnce(rusqlite::Error) -> JournalError {
        let path = self.path.clone();
        move |cause| JournalError::Database { path, cause }
    }

    /// The root that the journal belongs to.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.path.ancestors().nth(2).unwrap_or(&self.path)
    }

    /// The path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a run, takes the lease of the root for it, and returns its number.
    ///
    /// # Errors
    /// When the run cannot be written.
    pub fn begin(&mut self, new: NewRun<'_>) -> Result<i64, JournalError> {
        let (highest, json) = self.before_run(new.outline)?;
        let path = self.path.clone();
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        let run = insert_run(&transaction, highest, new, &json).map_err(failed)?;
        let fence = lease(&transaction, run, new.worker).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.fence = Some(fence);
        Ok(run)
    }

    /// Takes the lease of the root for a run that resumes; its next commit stores this outline.
    ///
    /// # Errors
    /// When the lease cannot be written, or the run was removed.
    pub fn begin_again(&mut self, run: i64, outline: &Outline, worker: Worker) -> Result<(), JournalError> {
        self.next_outline = Some((run, self.outline_json(outline)?));
        let path = self.path.clone();
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        let there = transaction.prepare("SELECT 1 FROM runs WHERE id = ?1").and_then(|mut select| select.exists([run]));
        if !there.map_err(failed)? {
            return Err(JournalError::Forgotten { path: path.clone(), run });
        }
        let fence = lease(&transaction, run, worker).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.fence = Some(fence);
        Ok(())
    }

    /// Returns the highest number of a run that has left transcripts, and an outline as JSON.
    pub(super) fn before_run(&self, outline: &Outline) -> Result<(i64, String), JournalError> {
        Ok((highest_run(self.ours.path()), self.outline_json(outline)?))
    }

    fn outline_json(&self, outline: &Outline) -> Result<String, JournalError> {
        serde_json::to_string(outline).map_err(|cause| JournalError::Event { path: self.path.clone(), cause })
    }

    /// The number of this process's lease: it counts every run and resume of this root. 0 if it has none.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.fence.unwrap_or(0)
    }

    /// Queues the files of an attempt for the next fsync: they reach the disk before the events that refer to them.
    ///
    /// # Errors
    /// When the files that were queued before cannot be synced.
    pub fn sync_before(&mut self, folder: &AttemptFolder) -> Result<(), JournalError> {
        // Attempts of a few milliseconds would otherwise use up all file descriptors.
        if self.unsynced.len() >= MOST_UNSYNCED {
            self.sync_transcripts()?;
        }
        self.unsynced.extend(folder.to_sync());
        Ok(())
    }

    fn sync_transcripts(&mut self) -> Result<(), JournalError> {
        let failed = |cause| JournalError::Write { path: self.path.with_file_name("runs"), cause };
        self.unsynced.drain(..).try_for_each(|file| file.sync_data()).map_err(failed)
    }

    /// Appends events in one commit. A commit with the end of an attempt is synced to the disk unless the last sync was
    /// less than 100 ms before `now`. One with the end of the run is always synced. Other commits reach only the
    /// operating system. `token` is the digest of the token of an attempt that is planned.
    ///
    /// # Errors
    /// When they cannot be written; then none of them is.
    pub fn append(&mut self, events: &[Event], token: Option<&str>, now: Instant) -> Result<(), JournalError> {
        let ends_run = events.iter().any(|event| matches!(event.event, EventKind::RunFinished { .. }));
        let ends = ends_run || events.iter().any(|event| matches!(event.event, EventKind::AttemptFinished { .. }));
        let due = ends_run || self.synced.is_none_or(|synced| now.duration_since(synced) >= SYNC_EVERY);
        let full = ends && due;
        if full {
            self.sync_transcripts()?;
            self.pragma("synchronous", "FULL")?;
        }
        let written = self.insert(events, token);
        if full {
            self.pragma("synchronous", "NORMAL")?;
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

    fn pragma(&self, name: &str, value: &str) -> Result<(), JournalError> {
        self.database.pragma_update(None, name, value).map_err(self.failed())
    }

    fn insert(&mut self, events: &[Event], token: Option<&str>) -> Result<(), JournalError> {
        // Checked before this commit could hide a change by another program.
        if self.head.is_some() && !self.is_intact()? {
            return Err(JournalError::Tampered { path: self.path.clone(), agent: None });
        }
        let (path, fence) = (self.path.clone(), self.fence);
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        // If the lock file was removed, another run may have begun.
        if let Some(fence) = fence {
            let now = transaction.prepare_cached("SELECT fence FROM lease").map_err(failed)?;
            let now: i64 = { now }.query_row([], |row| row.get(0)).map_err(failed)?;
            if now != fence {
                return Err(JournalError::Lost { path: path.clone() });
            }
        }
        if let Some((run, outline)) = &self.next_outline {
            let update = "UPDATE runs SET outline = ?2 WHERE id = ?1";
            transaction.execute(update, params![run, outline]).map_err(failed)?;
        }
        let mut following = self.following.clone();
        for event in events {
            let unwritable = |cause| JournalError::Event { path: path.clone(), cause };
            let json = serde_json::to_string(event).map_err(unwritable)?;
            let kind = type_of_event(&json).map_err(unwritable)?;
            let insert = "INSERT INTO events (run, seq, at, type, event, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let row = params![event.run, event.seq.cast_signed(), event.at, kind, json, sum(event.seq, &json)];
            transaction.prepare_cached(insert).and_then(|mut insert| insert.execute(row)).map_err(failed)?;
            project(&transaction, event, token).map_err(failed)?;
            if let Some(following) = &mut following {
                task_rows::project(&transaction, event, following).map_err(failed)?;
            }
        }
        transaction.commit().map_err(failed)?;
        self.following = following;
        self.next_outline = None;
        self.remember_own_write()
    }

    /// Returns the events of a run, in order and complete.
    ///
    /// # Errors
    /// When they cannot be read, or differ from what was written.
    pub fn events(&self, run: i64) -> Result<Vec<Event>, JournalError> {
        self.events_after(run, 0)
    }

    /// Returns the events of a run after the one with this number.
    ///
    /// # Errors
    /// When they cannot be read, or differ from what was written.
    pub fn events_after(&self, run: i64, seq: u64) -> Result<Vec<Event>, JournalError> {
        let mut events = Vec::new();
        self.each_event_after(run, seq, |event| events.push(event))?;
        Ok(events)
    }

    /// Returns the summary of a run. Its events are read one by one, not all into memory.
    ///
    /// # Errors
    /// When they cannot be read, or differ from what was written.
    pub fn summary(&self, run: i64) -> Result<RunSummary, JournalError> {
        let mut summary = RunSummary::default();
        self.each_event_after(run, 0, |event| summary.see(&event))?;
        Ok(summary)
    }

    fn each_event_after(&self, run: i64, seq: u64, mut each: impl FnMut(Event)) -> Result<(), JournalError> {
        let select = "SELECT seq, event, sum FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq";
        let mut select = self.database.prepare_cached(select).map_err(self.failed())?;
        let columns = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?))
        };
        let rows = select.query_map(params![run, seq.cast_signed()], columns).map_err(self.failed())?;
        for (row, expected) in rows.zip(seq + 1..) {
            let (seq, json, kept) = row.map_err(self.failed())?;
            if seq != expected.cast_signed() || kept.is_some_and(|kept| kept != sum(expected, &json)) {
                return Err(JournalError::Damaged { path: self.path.clone(), run, seq: expected });
            }
            let event = serde_json::from_str(&json);
            each(event.map_err(|cause| JournalError::Event { path: self.path.clone(), cause })?);
        }
        Ok(())
    }
}

/// Updates the tables that are read without replaying events.
fn project(transaction: &Transaction<'_>, event: &Event, token: Option<&str>) -> rusqlite::Result<()> {
    match &event.event {
        EventKind::AttemptPlanned { at, .. } => {
            let insert = "INSERT OR REPLACE INTO iterations (run, step, attempt, name, round, iteration, token)
                          VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let row = params![event.run, at.step, at.attempt, at.name, at.round, at.iteration, token];
            transaction.prepare_cached(insert)?.execute(row)?;
        }
        EventKind::AttemptFinished { at, outcome, finished, .. } => {
            let update = "UPDATE iterations SET outcome = ?4, took_ms = ?5, tokens = ?6, cost_usd = ?7
                          WHERE run = ?1 AND step = ?2 AND attempt = ?3";
            let outcome = serde_json::to_string(outcome).unwrap_or_default();
            let tokens = finished.agent.tokens.map(|tokens| tokens.total().cast_signed());
            let cost = finished.agent.tokens.and_then(|tokens| tokens.cost_usd);
            let took = finished.took_ms.cast_signed();
            let row = params![event.run, at.step, at.attempt, outcome, took, tokens, cost];
            transaction.prepare_cached(update)?.execute(row)?;
        }
        EventKind::RunFinished { outcome } => {
            let outcome = serde_json::to_string(outcome).unwrap_or_default();
            let update = "UPDATE runs SET ended = ?2, outcome = ?3 WHERE id = ?1";
            transaction.execute(update, params![event.run, event.at, outcome])?;
        }
        EventKind::TasksProposed { tasks, .. } => task_rows::add_proposed(transaction, tasks, &event.at)?,
        EventKind::RunResumed { .. } => {
            transaction.execute("UPDATE runs SET ended = NULL, outcome = NULL WHERE id = ?1", [event.run])?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the digest by which the journal recognizes an attempt's token without storing it.
#[must_use]
pub fn token_digest(token: &[u8]) -> String {
    sha256(token)
}

/// A checksum that reveals a damaged event: eight bytes of SHA-256 over its number and text.
fn sum(seq: u64, json: &str) -> i64 {
    let digest = Sha256::new().chain_update(seq.to_le_bytes()).chain_update(json).finalize();
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | i64::from(*byte))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the owner of the database")]
mod tests {
    use super::*;
    use crate::engine::RunOutcome;
    use std::os::unix::fs::PermissionsExt;

    fn event(run: i64, seq: u64) -> Event {
        let event = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
        Event { version: 1, run, seq, at: "2026-01-01T00:00:00Z".into(), worked_ms: None, unit: None, event }
    }

    fn outline() -> Outline {
        let world = crate::plan::tests::world(&[]);
        let said = crate::chain::PromptSource::default();
        crate::plan::outline(&crate::plan::tests::planned(&world, r#"{"chains": {}}"#, "coder:3", &said, &[]).unwrap())
    }

    fn begin(journal: &mut Journal) -> i64 {
        journal
            .begin(NewRun {
                worker: Worker { pid: 1, start_time: 1 },
                started: "now",
                digest: "d",
                outline: &outline(),
            })
            .unwrap()
    }

    #[test]
    fn what_is_appended_is_read_back_after_reopening() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(root.path()).unwrap();
        let run = begin(&mut journal);
        journal.append(&[event(run, 1), event(run, 2)], None, Instant::now()).unwrap();
        assert!(
            journal.append(&[event(run, 3), event(run, 2)], None, Instant::now()).is_err(),
            "a duplicate number is refused"
        );
        drop(journal);
        let mut journal = Journal::open(root.path()).unwrap();
        assert_eq!(journal.events(run).unwrap(), [event(run, 1), event(run, 2)]);
        assert_eq!(begin(&mut journal), run + 1);
    }

    #[test]
    fn everything_is_for_its_owner_only_and_git_ignores_it() {
        let root = tempfile::tempdir().unwrap();
        let journal = Journal::open(root.path()).unwrap();
        let (folder, _) = journal.attempt(1, 2, "tasks:manager", 3).unwrap();
        folder.write_prompt("p").unwrap();
        folder.transcript("stdout.log").unwrap().append(b"\xff\0").unwrap();
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(root.path().join(".forkhestra")), 0o700);
        for file in ["state.db", "runs/1/2-tasks:manager/3/prompt.md", "runs/1/2-tasks:manager/3/stdout.log"] {
            assert_eq!(mode(root.path().join(".forkhestra").join(file)), 0o600, "{file}");
        }
        assert_eq!(std::fs::read(root.path().join(".forkhestra/.gitignore")).unwrap(), b"*\n");
        assert!(folder.write_prompt("again").is_err(), "nothing is overwritten");
        assert_eq!(folder.last_words(2), ["\u{fffd}\u{fffd}", ""]);
    }

    #[test]
    fn an_event_that_was_changed_or_is_missing_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(root.path()).unwrap();
        let run = begin(&mut journal);
        journal.append(&[event(run, 1), event(run, 2), event(run, 3)], None, Instant::now()).unwrap();
        journal.database.execute("DELETE FROM events WHERE seq = 2", []).unwrap();
        assert!(matches!(journal.events(run), Err(JournalError::Damaged { seq: 2, .. })));
        let flip = "UPDATE events SET event = replace(event, 'succeeded', 'outputClosed') WHERE seq = 1";
        journal.database.execute(flip, []).unwrap();
        assert!(matches!(journal.events(run), Err(JournalError::Damaged { seq: 1, .. })));
    }

    #[test]
    fn a_run_whose_lease_another_run_has_taken_cannot_append() {
        let root = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (Journal::open(root.path()).unwrap(), Journal::open(root.path()).unwrap());
        let run = begin(&mut first);
        assert_eq!(first.fence(), 1);
        begin(&mut second);
        assert!(matches!(first.append(&[event(run, 1)], None, Instant::now()), Err(JournalError::Lost { .. })));
        assert!(first.events(run).unwrap().is_empty());
    }

    #[test]
    fn a_database_of_the_first_format_is_migrated_to_the_current_one() {
        let root = tempfile::tempdir().unwrap();
        drop(Journal::open(root.path()).unwrap());
        let path = root.path().join(".forkhestra/state.db");
        std::fs::remove_file(&path).unwrap();
        let database = Connection::open(&path).unwrap();
        database.execute_batch(super::super::schema::MIGRATIONS[0]).unwrap();
        database.pragma_update(None, "application_id", super::super::schema::APPLICATION).unwrap();
        database.pragma_update(None, "user_version", 1).unwrap();
        let old = serde_json::to_string(&event(1, 1)).unwrap();
        database.execute("INSERT INTO runs VALUES (1, 'then', 'a', 'd')", []).unwrap();
        database.execute("INSERT INTO events VALUES (1, 1, 'later', 'runFinished', ?1)", [old]).unwrap();
        drop(database);
        let journal = Journal::open(root.path()).unwrap();
        assert_eq!(journal.events(1).unwrap(), [event(1, 1)]);
        let ended: String = journal.database.query_row("SELECT ended FROM runs", [], |row| row.get(0)).unwrap();
        assert_eq!(ended, "later");
    }

    #[test]
    fn a_newer_or_foreign_or_damaged_database_is_refused() {
        let root = tempfile::tempdir().unwrap();
        drop(Journal::open(root.path()).unwrap());
        let path = root.path().join(".forkhestra/state.db");
        let database = Connection::open(&path).unwrap();
        database.pragma_update(None, "user_version", 99).unwrap();
        drop(database);
        assert!(matches!(Journal::open(root.path()), Err(JournalError::Newer { found: 99, .. })));
        std::fs::remove_file(&path).unwrap();
        let database = Connection::open(&path).unwrap();
        database.execute_batch("CREATE TABLE theirs (a)").unwrap();
        drop(database);
        assert!(matches!(Journal::open(root.path()), Err(JournalError::Foreign { .. })));
        std::fs::write(&path, b"not a database at all, but long enough to be read as one").unwrap();
        assert!(matches!(Journal::open(root.path()), Err(JournalError::Database { .. })));
    }
}
