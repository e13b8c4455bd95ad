//! The database: runs, and their events, append only. SQLite in WAL mode: a commit survives any crash of the program at once;
//! an fsync follows at an iteration's end, at most one per 100 ms.
#![expect(clippy::disallowed_methods, reason = "the owner of the database")]

use super::error::JournalError;
use super::folders::{AttemptFolder, highest_run, prepare, prepare_database};
use crate::run::{Event, EventKind};
use rusqlite::{Connection, ErrorCode, params};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// "fork" in ASCII: tells our database from another's (`PRAGMA application_id`).
const APPLICATION: i64 = 0x666f_726b;

/// Every step of the format, in order; `PRAGMA user_version` counts those that were taken.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE runs (
        id      INTEGER PRIMARY KEY,
        started TEXT NOT NULL,
        chain   TEXT NOT NULL,
        digest  TEXT NOT NULL
    ) STRICT;
    CREATE TABLE events (
        run   INTEGER NOT NULL REFERENCES runs(id),
        seq   INTEGER NOT NULL,
        at    TEXT NOT NULL,
        type  TEXT NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
"];

/// The least time between two fsyncs.
const SYNC_EVERY: Duration = Duration::from_millis(100);
/// How long another process may hold the database.
const BUSY: Duration = Duration::from_secs(10);

/// The journal of one root.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    path: PathBuf,
    database: Connection,
    synced: Option<Instant>,
}

impl Journal {
    /// Opens the journal of a root, or begins one.
    ///
    /// # Errors
    /// When the folder cannot be written, or the database is not one that this version can use.
    pub fn open(root: &Path) -> Result<Self, JournalError> {
        let folder = prepare(root)?;
        let path = folder.join("state.db");
        prepare_database(&path)?;
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let mut database = Connection::open(&path).map_err(failed)?;
        database.busy_timeout(BUSY).map_err(failed)?;
        migrate(&mut database, &path)?;
        Ok(Self { folder, path, database, synced: None })
    }

    fn failed(&self) -> impl FnOnce(rusqlite::Error) -> JournalError {
        let path = self.path.clone();
        move |cause| JournalError::Database { path, cause }
    }

    /// Begins a run and returns its number.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, started: &str, chain: &str, digest: &str) -> Result<i64, JournalError> {
        let insert = "INSERT INTO runs (id, started, chain, digest)
                      VALUES (max(?1, (SELECT coalesce(max(id), 0) FROM runs)) + 1, ?2, ?3, ?4)";
        let highest = highest_run(&self.folder);
        self.database.execute(insert, params![highest, started, chain, digest]).map_err(self.failed())?;
        Ok(self.database.last_insert_rowid())
    }

    /// Appends events in one commit. The end of an iteration or of the run is brought to the disk itself, at most once per
    /// 100 ms by `now`, the rest to the operating system.
    ///
    /// # Errors
    /// When they cannot be written; then none of them is.
    pub fn append(&mut self, events: &[Event], now: Instant) -> Result<(), JournalError> {
        let ends_run = events.iter().any(|event| matches!(event.event, EventKind::RunFinished { .. }));
        let ends = ends_run || events.iter().any(|event| matches!(event.event, EventKind::AttemptFinished { .. }));
        let due = ends_run || self.synced.is_none_or(|synced| now.duration_since(synced) >= SYNC_EVERY);
        let full = ends && due;
        if full {
            self.pragma("synchronous", "FULL")?;
        }
        let written = self.insert(events);
        if full {
            self.pragma("synchronous", "NORMAL")?;
            self.synced = Some(now);
        }
        written
    }

    fn pragma(&self, name: &str, value: &str) -> Result<(), JournalError> {
        self.database.pragma_update(None, name, value).map_err(self.failed())
    }

    fn insert(&mut self, events: &[Event]) -> Result<(), JournalError> {
        let path = self.path.clone();
        let transaction =
            self.database.transaction().map_err(|cause| JournalError::Database { path: path.clone(), cause })?;
        {
            let insert = "INSERT INTO events (run, seq, at, type, event) VALUES (?1, ?2, ?3, ?4, ?5)";
            let mut insert = transaction
                .prepare_cached(insert)
                .map_err(|cause| JournalError::Database { path: path.clone(), cause })?;
            for event in events {
                let json =
                    serde_json::to_value(event).map_err(|cause| JournalError::Event { path: path.clone(), cause })?;
                let kind = json["event"]["type"].as_str().unwrap_or_default();
                insert
                    .execute(params![event.run, event.seq.cast_signed(), event.at, kind, json.to_string()])
                    .map_err(|cause| JournalError::Database { path: path.clone(), cause })?;
            }
        }
        transaction.commit().map_err(|cause| JournalError::Database { path, cause })
    }

    /// The events of a run, in order.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn events(&self, run: i64) -> Result<Vec<Event>, JournalError> {
        let select = "SELECT event FROM events WHERE run = ?1 ORDER BY seq";
        let mut select = self.database.prepare(select).map_err(self.failed())?;
        let rows = select.query_map([run], |row| row.get::<_, String>(0)).map_err(self.failed())?;
        rows.map(|row| {
            let json = row.map_err(self.failed())?;
            serde_json::from_str(&json).map_err(|cause| JournalError::Event { path: self.path.clone(), cause })
        })
        .collect()
    }

    /// Makes the folder of an attempt.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn attempt(&self, run: i64, step: u32, name: &str, attempt: u32) -> Result<AttemptFolder, JournalError> {
        AttemptFolder::make(&self.folder, run, step, name, attempt)
    }

    /// The folder of a run's transcripts, whether it exists or not.
    #[must_use]
    pub fn run_folder(&self, run: i64) -> PathBuf {
        self.folder.join("runs").join(run.to_string())
    }
}

/// Switches to WAL. The busy timeout does not cover this one: two first runs at once would refuse each other.
fn use_wal(database: &Connection) -> rusqlite::Result<()> {
    let began = Instant::now();
    loop {
        match database.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && began.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn migrate(database: &mut Connection, path: &Path) -> Result<(), JournalError> {
    let failed = |cause| JournalError::Database { path: path.to_path_buf(), cause };
    let read = |database: &Connection, name: &str| database.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found = read(database, "user_version").map_err(failed)?;
    let application = read(database, "application_id").map_err(failed)?;
    let foreign = || JournalError::Foreign { path: path.to_path_buf() };
    if application != APPLICATION && (found != 0 || application != 0) {
        return Err(foreign());
    }
    if found > known {
        return Err(JournalError::Newer { path: path.to_path_buf(), found, known });
    }
    use_wal(database).map_err(failed)?;
    database.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    if found == known {
        return Ok(());
    }
    // Another process may be doing the same: whoever comes second finds it done.
    let transaction = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(failed)?;
    let found = read(&transaction, "user_version").map_err(failed)?;
    if found == 0 {
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
        if tables > 0 {
            return Err(foreign());
        }
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunOutcome;
    use std::os::unix::fs::PermissionsExt;

    fn event(run: i64, seq: u64) -> Event {
        let event = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
        Event { version: 1, run, seq, at: "2026-01-01T00:00:00Z".into(), event }
    }

    #[test]
    fn what_is_appended_is_read_back_after_reopening() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(root.path()).unwrap();
        let run = journal.begin("now", "a", "d").unwrap();
        journal.append(&[event(run, 1), event(run, 2)], Instant::now()).unwrap();
        assert!(
            journal.append(&[event(run, 3), event(run, 2)], Instant::now()).is_err(),
            "a doubled number is refused"
        );
        drop(journal);
        let mut journal = Journal::open(root.path()).unwrap();
        assert_eq!(journal.events(run).unwrap(), [event(run, 1), event(run, 2)]);
        assert_eq!(journal.begin("now", "a", "d").unwrap(), run + 1);
    }

    #[test]
    fn everything_is_for_its_owner_only_and_git_ignores_it() {
        let root = tempfile::tempdir().unwrap();
        let journal = Journal::open(root.path()).unwrap();
        let folder = journal.attempt(1, 2, "tasks:manager", 3).unwrap();
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
