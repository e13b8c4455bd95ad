//! The journal of a root: what a run writes, and the way to everything that is read.

use super::database::{Database, WriteTransaction};
use super::error::JournalError;
use super::folders::{AttemptFolder, prepare};
use super::handle::{FOLDER, Handle, refused};
use super::ledger::LedgerWatch;
use super::lock::RunLock;
use super::run_files::RunFiles;
use super::tables::answers::AnswerTable;
use super::tables::disputes::DisputeTable;
use super::tables::events::EventTable;
use super::tables::lease::{Lease, Worker, current_lease, take_lease};
use super::tables::messages::MessageTable;
use super::tables::new_run::{NewRun, insert_run};
use super::tables::runs::{RunTable, run_exists};
use super::tables::tasks::TaskTable;
use super::writer::{Commit, RunWriter};
use crate::engine::{Event, EventKind};
use crate::plan::Outline;
use rusqlite::{OptionalExtension, params};
use std::cell::Cell;
use std::io::ErrorKind;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

/// The journal of one root.
#[derive(Debug)]
pub struct Journal {
    database: Rc<Database>,
    files: RunFiles,
    watch: Rc<LedgerWatch>,
    writer: RunWriter,
    /// The lock of this run, shared with everything that works for it.
    lock: Option<Rc<RunLock>>,
}

impl Journal {
    /// Opens the journal of a root, or creates one.
    ///
    /// # Errors
    /// When the directory cannot be written, or this version cannot use the database.
    pub fn open(root: &Path) -> Result<Self, JournalError> {
        let ours = prepare(root)?;
        Ok(Self::over(Database::open(&ours)?, ours))
    }

    /// Opens the journal of a root if there is one; creates nothing.
    ///
    /// # Errors
    /// Like [`Journal::open`].
    pub fn existing(root: &Path) -> Result<Option<Self>, JournalError> {
        let path = root.join(FOLDER).join("state.db");
        match path.try_exists() {
            Ok(true) => match Self::open(root) {
                // A snapshot, an artifact of a CI job or another user's directory: its content can still be read.
                Err(JournalError::Write { cause, .. })
                    if matches!(cause.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
                {
                    let ours = Handle::existing(root).map_err(|error| refused(&root.join(FOLDER), error))?;
                    Ok(Some(Self::over(Database::read_only(&ours)?, ours)))
                }
                opened => opened.map(Some),
            },
            Ok(false) => Ok(None),
            Err(cause) => Err(JournalError::Read { path, cause }),
        }
    }

    /// The same journal, under the same lease, for another lane of this run. They share a connection: with one each,
    /// every commit of a lane would make SQLite drop the pages that the others have cached.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self {
            database: Rc::clone(&self.database),
            files: RunFiles::new(self.files.handle().clone()),
            watch: Rc::clone(&self.watch),
            writer: self.writer.sibling(),
            lock: self.lock.clone(),
        }
    }

    /// Wraps an open database that no run uses yet.
    fn over(database: Database, ours: Handle) -> Self {
        Self {
            database: Rc::new(database),
            files: RunFiles::new(ours),
            watch: Rc::default(),
            writer: RunWriter::default(),
            lock: None,
        }
    }

    /// The events of the runs.
    #[must_use]
    pub fn events(&self) -> EventTable<'_> {
        EventTable(&self.database)
    }

    /// The runs and their attempts.
    #[must_use]
    pub fn runs(&self) -> RunTable<'_> {
        RunTable { database: &self.database, files: &self.files }
    }

    /// The files of the runs: transcripts and reports.
    #[must_use]
    pub fn files(&self) -> &RunFiles {
        &self.files
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> TaskTable<'_> {
        TaskTable(&self.database)
    }

    /// The disputes about tasks.
    #[must_use]
    pub fn disputes(&self) -> DisputeTable<'_> {
        DisputeTable(&self.database)
    }

    /// The messages from people to runs.
    #[must_use]
    pub fn messages(&self) -> MessageTable<'_> {
        MessageTable(&self.database)
    }

    /// The answers that agents gave to the prompts of evaluations.
    #[must_use]
    pub fn answers(&self) -> AnswerTable<'_> {
        AnswerTable(&self.database)
    }

    /// The root that the journal belongs to.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.path().ancestors().nth(2).unwrap_or(self.path())
    }

    /// The path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.database.path()
    }

    /// Checks the whole database for damage that SQLite can detect, including its indexes: queries do not find a row
    /// that is missing from an index.
    ///
    /// # Errors
    /// When damage is found.
    pub fn check(&self) -> Result<(), JournalError> {
        self.database.check()
    }

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
        let ours = self.files.handle();
        let lock = self.lock().is_none_or(|lock| lock.inode().is_some_and(|held| ours.inode("lock") == Some(held)));
        match (ours.is_in_place() && self.database.is_in_place(), lock) {
            (true, true) => Ok(()),
            (true, false) => Err(JournalError::Removed { path: ours.path().join("lock") }),
            (false, _) => Err(JournalError::Removed { path: self.path().to_path_buf() }),
        }
    }

    /// Returns the process that is running in this root, or was the last to run here.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn lease(&self) -> Result<Option<Lease>, JournalError> {
        self.database.with(|database| current_lease(database).optional())
    }

    /// The number of this process's lease: it counts every run and resume of this root. 0 if it has none.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.writer.fence.unwrap_or(0)
    }

    /// Begins a run, takes the lease of the root for it, and returns its number.
    ///
    /// # Errors
    /// When the run cannot be written.
    pub fn begin(&mut self, new: NewRun<'_>) -> Result<i64, JournalError> {
        let (run, fence) = self.add_run(new, |transaction, run| take_lease(transaction, run, new.worker))?;
        self.writer.fence = Some(fence);
        Ok(run)
    }

    /// Takes the lease of the root for a run that resumes; its next commit stores this outline.
    ///
    /// # Errors
    /// When the lease cannot be written, or the run was removed.
    pub fn begin_again(&mut self, run: i64, outline: &Outline, worker: Worker) -> Result<(), JournalError> {
        self.writer.next_outline.replace(Some((run, self.outline_json(outline)?)));
        let fence = self.database.change(|transaction| {
            run_exists(transaction, run)?.then(|| take_lease(transaction, run, worker)).transpose()
        })?;
        if fence.is_none() {
            return Err(JournalError::Forgotten { path: self.path().to_path_buf(), run });
        }
        self.writer.fence = fence;
        Ok(())
    }

    /// Begins a run that belongs to a batch, under the batch's lease, and returns its number.
    ///
    /// # Errors
    /// When the run cannot be written.
    pub fn begin_child(&self, batch: i64, unit: &str, new: NewRun<'_>) -> Result<i64, JournalError> {
        let update = "UPDATE runs SET parent = ?2, unit = ?3 WHERE id = ?1";
        let (run, _) = self.add_run(new, |transaction, run| transaction.execute(update, params![run, batch, unit]))?;
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
        let (run, ()) = self.add_run(new, |_, _| Ok(()))?;
        if let Some(task) = task {
            self.follow(run, task, new.outline)?;
        }
        let here = self.root().display().to_string();
        let mut events: Vec<Event> = events.into_iter().map(|event| Event { run, unit: None, ..event }).collect();
        for event in &mut events {
            if let EventKind::RunStarted { root, .. } = &mut event.event {
                root.clone_from(&here);
            }
        }
        self.append(Commit::of(&events), now)?;
        Ok(run)
    }

    /// Adds a run, and writes what else belongs to its beginning in the same commit. Returns the run's number.
    fn add_run<T>(
        &self,
        new: NewRun<'_>,
        also: impl FnOnce(&WriteTransaction<'_>, i64) -> rusqlite::Result<T>,
    ) -> Result<(i64, T), JournalError> {
        let (highest, outline) = (self.files.highest_run(), self.outline_json(new.outline)?);
        self.database.change(|transaction| {
            let run = insert_run(transaction, highest, new, &outline)?;
            Ok((run, also(transaction, run)?))
        })
    }

    fn outline_json(&self, outline: &Outline) -> Result<String, JournalError> {
        serde_json::to_string(outline).map_err(|cause| JournalError::Event { path: self.path().to_path_buf(), cause })
    }

    /// Lets the run's events change this task, in the same commits, and records the run as one of the task's.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn follow(&mut self, run: i64, task: &str, outline: &Outline) -> Result<(), JournalError> {
        self.writer.following = Some(self.tasks().following(task, outline)?);
        self.tasks().assign(run, task)
    }

    /// Stores the protected files of a run. Only the first call has an effect.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_baseline(&mut self, run: i64, text: &str) -> Result<(), JournalError> {
        let insert = "INSERT OR IGNORE INTO baselines (run, deciding) VALUES (?1, ?2)";
        self.database.with(|database| database.execute(insert, params![run, text]))?;
        self.remember()
    }

    /// Queues the files of an attempt for the next fsync: they reach the disk before the events that refer to them. The
    /// lengths are those of its standard output and standard error, in bytes.
    ///
    /// # Errors
    /// When the files that were queued before cannot be synced.
    pub fn sync_before(&mut self, folder: &AttemptFolder, stdout: u64, stderr: u64) -> Result<(), JournalError> {
        self.writer.sync_before(folder.to_sync(stdout, stderr), &self.database)
    }

    /// Appends events, and what belongs to them, in one commit. A commit with the end of an attempt is synced to the
    /// disk unless the last sync was less than 100 ms before `now`. One with the end of the run is always synced. Other
    /// commits reach only the operating system.
    ///
    /// # Errors
    /// When they cannot be written; then none of them is.
    pub fn append(&mut self, commit: Commit<'_>, now: Instant) -> Result<(), JournalError> {
        self.writer.append((&self.database, &self.watch), commit, now)
    }

    /// Follows a commit of this process, right after which another program does something.
    #[cfg(test)]
    pub(super) fn follow_own_write(&mut self, then: impl FnOnce(&Self)) {
        let written = super::ledger::kept(self.database.connection()).unwrap_or_default();
        then(self);
        self.watch.follow(&self.database, written);
    }

    /// Remembers the current state. From now on, only forkhestra may change the journal.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn remember(&mut self) -> Result<(), JournalError> {
        self.watch.begin(&self.database)
    }

    /// Whether only forkhestra has written the journal, in this process or another.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_intact(&mut self) -> Result<bool, JournalError> {
        self.watch.is_intact(&self.database)
    }

    /// Accepts the journal as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn accept(&mut self) -> Result<(), JournalError> {
        self.watch.accept(&self.database)
    }

    /// Removes a run, first its events and then its directory. Returns false for a run that is active by now.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn forget(&mut self, run: i64, is_at_work: impl Fn(Lease) -> bool) -> Result<bool, JournalError> {
        self.files.check_runs()?;
        let removed = self.runs().remove(run, is_at_work)?;
        if removed {
            self.files.remove_run(run)?;
        }
        Ok(removed)
    }

    /// Makes the process abort after this many commits: lets tests simulate a crash.
    pub fn abort_after(&mut self, writes: Option<u32>) {
        self.writer.writes_left = writes.map(|writes| Rc::new(Cell::new(writes)));
    }

    /// The connection, for tests that watch when it waits; `None` if it is shared.
    #[cfg(test)]
    pub(super) fn connection_mut(&mut self) -> Option<&mut rusqlite::Connection> {
        Rc::get_mut(&mut self.database).map(Database::connection_mut)
    }

    /// The database, for tests that write into it.
    #[cfg(test)]
    pub(super) fn database(&self) -> &Database {
        &self.database
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the owner of the database")]
mod tests {
    use super::*;
    use crate::engine::RunOutcome;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

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
        journal.append(Commit::of(&[event(run, 1), event(run, 2)]), Instant::now()).unwrap();
        assert!(
            journal.append(Commit::of(&[event(run, 3), event(run, 2)]), Instant::now()).is_err(),
            "a duplicate number is refused"
        );
        drop(journal);
        let mut journal = Journal::open(root.path()).unwrap();
        assert_eq!(journal.events().of(run).unwrap(), [event(run, 1), event(run, 2)]);
        assert_eq!(begin(&mut journal), run + 1);
    }

    #[test]
    fn everything_is_for_its_owner_only_and_git_ignores_it() {
        let root = tempfile::tempdir().unwrap();
        let journal = Journal::open(root.path()).unwrap();
        let (folder, _) = journal.files().attempt(1, 2, "tasks:manager", 3).unwrap();
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
        journal.append(Commit::of(&[event(run, 1), event(run, 2), event(run, 3)]), Instant::now()).unwrap();
        journal.database().connection().execute("DELETE FROM events WHERE seq = 2", []).unwrap();
        assert!(matches!(journal.events().of(run), Err(JournalError::Damaged { seq: 2, .. })));
        let flip = "UPDATE events SET event = replace(event, 'succeeded', 'outputClosed') WHERE seq = 1";
        journal.database().connection().execute(flip, []).unwrap();
        assert!(matches!(journal.events().of(run), Err(JournalError::Damaged { seq: 1, .. })));
    }

    #[test]
    fn the_outline_of_a_resumed_run_is_stored_with_the_first_commit_of_any_lane() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(root.path()).unwrap();
        let run = begin(&mut journal);
        let changed = Outline { chain: "changed".into(), ..outline() };
        let mut lane = journal.sibling();
        journal.begin_again(run, &changed, Worker { pid: 1, start_time: 1 }).unwrap();
        lane.writer.fence = Some(journal.fence());
        lane.append(Commit::of(&[event(run, 1)]), Instant::now()).unwrap();
        let select = "SELECT outline FROM runs";
        let stored: String = journal.database().with(|it| it.query_row(select, [], |row| row.get(0))).unwrap();
        assert_eq!(serde_json::from_str::<Outline>(&stored).unwrap(), changed);
    }

    #[test]
    fn a_run_whose_lease_another_run_has_taken_cannot_append() {
        let root = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (Journal::open(root.path()).unwrap(), Journal::open(root.path()).unwrap());
        let run = begin(&mut first);
        assert_eq!(first.fence(), 1);
        begin(&mut second);
        assert!(matches!(first.append(Commit::of(&[event(run, 1)]), Instant::now()), Err(JournalError::Lost { .. })));
        assert!(first.events().of(run).unwrap().is_empty());
    }
}
