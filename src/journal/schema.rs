//! The format of the database, and every migration that led to it.

use super::error::JournalError;
use super::ledger::{install, watch};
use super::lock::LockHolder;
use rusqlite::{Connection, ErrorCode};
use std::path::Path;
use std::time::{Duration, Instant};

/// "fork" in ASCII: distinguishes forkhestra's database from those of other programs (`PRAGMA application_id`).
pub(super) const APPLICATION: i64 = 0x666f_726b;

/// The migrations of the format, in order; `PRAGMA user_version` counts those that were applied.
pub(super) const MIGRATIONS: [&str; 8] = [
    "
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
",
    // What `runs` shows without folding every event; a checksum that reveals a damaged event; the working process.
    "
    ALTER TABLE runs ADD COLUMN name TEXT;
    ALTER TABLE runs ADD COLUMN outline TEXT;
    ALTER TABLE runs ADD COLUMN ended TEXT;
    ALTER TABLE runs ADD COLUMN outcome TEXT;
    ALTER TABLE events ADD COLUMN sum INTEGER;
    CREATE TABLE iterations (
        run       INTEGER NOT NULL REFERENCES runs(id),
        step      INTEGER NOT NULL,
        attempt   INTEGER NOT NULL,
        name      TEXT NOT NULL,
        round     INTEGER NOT NULL,
        iteration INTEGER NOT NULL,
        token     TEXT,
        outcome   TEXT,
        took_ms   INTEGER,
        tokens    INTEGER,
        cost_usd  REAL,
        PRIMARY KEY (run, step, attempt)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE lease (
        id         INTEGER PRIMARY KEY CHECK (id = 1),
        fence      INTEGER NOT NULL,
        run        INTEGER NOT NULL,
        pid        INTEGER NOT NULL,
        start_time INTEGER NOT NULL
    ) STRICT;
    INSERT INTO lease VALUES (1, 0, 0, 0, 0);
    UPDATE runs SET
        name = (SELECT event ->> '$.event.name' FROM events WHERE run = id AND type = 'runStarted'),
        ended = (SELECT at FROM events WHERE run = id AND type = 'runFinished'),
        outcome = (SELECT event -> '$.event.outcome' FROM events WHERE run = id AND type = 'runFinished');
    INSERT INTO iterations (run, step, attempt, name, round, iteration, outcome, took_ms)
        SELECT run, event ->> '$.event.at.step', event ->> '$.event.at.attempt', event ->> '$.event.at.name',
               event ->> '$.event.at.round', event ->> '$.event.at.iteration', event -> '$.event.outcome',
               event ->> '$.event.finished.tookMs'
        FROM events WHERE type = 'attemptFinished';
",
    // Tasks. Their status follows from their audit trail; at most one dispute of a task waits for a human.
    "
    ALTER TABLE runs ADD COLUMN task TEXT;
    CREATE TABLE tasks (
        id    TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        spec  TEXT,
        tests TEXT,
        added TEXT NOT NULL
    ) STRICT;
    CREATE TABLE task_number (
        id   INTEGER PRIMARY KEY CHECK (id = 1),
        last INTEGER NOT NULL
    ) STRICT;
    INSERT INTO task_number VALUES (1, 0);
    CREATE TABLE task_order (
        task  TEXT NOT NULL REFERENCES tasks(id),
        after TEXT NOT NULL REFERENCES tasks(id),
        PRIMARY KEY (task, after)
    ) STRICT;
    CREATE TABLE audit (
        id          INTEGER PRIMARY KEY,
        task        TEXT NOT NULL REFERENCES tasks(id),
        run         INTEGER,
        at          TEXT NOT NULL,
        from_status TEXT NOT NULL,
        to_status   TEXT NOT NULL,
        actor       TEXT NOT NULL,
        notes       TEXT NOT NULL,
        rejection   INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX audit_of_task ON audit (task);
    CREATE TABLE disputes (
        id       INTEGER PRIMARY KEY,
        task     TEXT NOT NULL REFERENCES tasks(id),
        run      INTEGER,
        kind     TEXT NOT NULL,
        reason   TEXT NOT NULL,
        opened   TEXT NOT NULL,
        decision TEXT,
        notes    TEXT,
        resolved TEXT
    ) STRICT;
    CREATE UNIQUE INDEX one_open_dispute ON disputes (task) WHERE resolved IS NULL AND kind <> 'minor';
",
    // Answers to the prompts of evaluations, by agent and prompt.
    "
    CREATE TABLE answers (
        key     TEXT PRIMARY KEY,
        said    TEXT NOT NULL,
        session TEXT,
        run     INTEGER NOT NULL,
        step    INTEGER NOT NULL,
        attempt INTEGER NOT NULL
    ) STRICT;
",
    // A running sum over all that decides, to detect changes by other programs; the protected files of each run.
    "
    CREATE TABLE ledger (
        id    INTEGER PRIMARY KEY CHECK (id = 1),
        links INTEGER NOT NULL,
        sum   BLOB NOT NULL
    ) STRICT;
    INSERT INTO ledger VALUES (1, 0, zeroblob(32));
    CREATE TABLE baselines (
        run      INTEGER PRIMARY KEY,
        deciding TEXT NOT NULL
    ) STRICT;
",
    // Messages from people to runs in progress.
    "
    CREATE TABLE messages (
        id   INTEGER PRIMARY KEY,
        run  INTEGER NOT NULL REFERENCES runs(id),
        at   TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX messages_of_run ON messages (run);
",
    // Batches: the run and the unit of the batch that a run belongs to.
    "
    ALTER TABLE runs ADD COLUMN parent INTEGER;
    ALTER TABLE runs ADD COLUMN unit TEXT;
",
    // What an answer to the prompt of an evaluation has cost, and how long it has taken. A new answer no longer
    // replaces the one before it: each is found by the attempt that gave it.
    "
    ALTER TABLE answers RENAME TO replaced_answers;
    CREATE TABLE answers (
        run     INTEGER NOT NULL,
        step    INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        key     TEXT NOT NULL,
        said    TEXT NOT NULL,
        session TEXT,
        cost    REAL,
        took_ms INTEGER,
        PRIMARY KEY (run, step, attempt)
    ) STRICT;
    CREATE INDEX answers_by_key ON answers (key, run, attempt);
    INSERT OR REPLACE INTO answers (run, step, attempt, key, said, session)
        SELECT run, step, attempt, key, said, session FROM replaced_answers;
    DROP TABLE replaced_answers;
",
];

/// The format that introduced the ledger, and the one that added messages to it.
const LEDGER: i64 = 5;
const MESSAGES: i64 = 6;

/// Imports baselines, which were files in older formats.
#[expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]
fn adopt_baselines(database: &Connection, path: &Path) -> rusqlite::Result<()> {
    let Some(runs) = path.parent().map(|folder| folder.join("runs")) else { return Ok(()) };
    let mut select = database.prepare("SELECT id FROM runs")?;
    let known: Vec<i64> = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for run in known {
        let Ok(text) = std::fs::read_to_string(runs.join(run.to_string()).join("deciding.json")) else { continue };
        database.execute("INSERT INTO baselines VALUES (?1, ?2)", rusqlite::params![run, text])?;
    }
    Ok(())
}

/// How long another process may hold the database.
pub(super) const BUSY: Duration = Duration::from_secs(10);

/// Switches to WAL mode, which the busy timeout does not cover: two first runs at once would refuse each other.
fn use_wal(database: &Connection) -> rusqlite::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a wait, not an event")]
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

/// Whether a database of forkhestra has this version's format.
pub(super) fn is_current(database: &Connection, path: &Path) -> Result<bool, JournalError> {
    let failed = |cause| JournalError::Database { path: path.to_path_buf(), cause };
    let read = |name: &str| database.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed);
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    match (read("application_id")?, read("user_version")?) {
        (APPLICATION, found) if found > known => Err(JournalError::Newer { path: path.to_path_buf(), found, known }),
        (APPLICATION, found) => Ok(found == known),
        _ => Err(JournalError::Foreign { path: path.to_path_buf() }),
    }
}

/// Migrates the database to this version's format, unless it is in use: an older version could not read it any more.
pub(super) fn migrate(
    database: &mut Connection,
    path: &Path,
    other_holder: impl Fn() -> Result<Option<LockHolder>, JournalError>,
) -> Result<(), JournalError> {
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
    if found > 0
        && found < known
        && let Some(holder) = other_holder()?
    {
        return Err(JournalError::OlderAtWork { path: path.to_path_buf(), found, known, pid: holder.pid });
    }
    use_wal(database).map_err(failed)?;
    database.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    if found == known {
        return Ok(());
    }
    // Another process may be migrating, too: the second one finds nothing left to do.
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
    if found < LEDGER {
        adopt_baselines(&transaction, path).map_err(failed)?;
        install(&transaction).map_err(failed)?;
    } else if found < MESSAGES {
        watch(&transaction, "messages").map_err(failed)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", known).map_err(failed)?;
    transaction.commit().map_err(failed)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "writes databases of older versions")]
mod tests {
    use super::*;
    use crate::engine::{Event, EventKind, RunOutcome};
    use crate::journal::ledger::register;
    use crate::journal::lock::{LockAttempt, RunLock};
    use crate::journal::store::Journal;

    /// Removes what came after that format.
    const NEWER: &str = "DROP TABLE messages; ALTER TABLE runs DROP COLUMN parent; ALTER TABLE runs DROP COLUMN unit;
                         DROP TABLE answers;
                         CREATE TABLE answers (key TEXT PRIMARY KEY, said TEXT NOT NULL, session TEXT,
                             run INTEGER NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL) STRICT;
                         INSERT INTO answers VALUES ('k', 'six', NULL, 1, 1, 2)";

    /// Makes a root whose database has the format before messages, with the ledger of that format.
    fn older(root: &Path) {
        drop(Journal::open(root).unwrap());
        let path = root.join(".forkhestra/state.db");
        let database = Connection::open(&path).unwrap();
        register(&database).unwrap();
        database.execute_batch(NEWER).unwrap();
        database.pragma_update(None, "user_version", MESSAGES - 1).unwrap();
    }

    #[test]
    fn messages_are_added_to_the_ledger_of_an_older_database() {
        let root = tempfile::tempdir().unwrap();
        older(root.path());
        let mut journal = Journal::open(root.path()).unwrap();
        journal.remember().unwrap();
        let other = Journal::open(root.path()).unwrap();
        let database = other.database().connection();
        database.execute("INSERT INTO runs (started, chain, digest) VALUES ('now', 'a', 'd')", []).unwrap();
        other.messages().send(1, "hello", "now").unwrap();
        assert!(journal.is_intact().unwrap());
        database.execute_batch("DROP TRIGGER messages_changed; UPDATE messages SET text = 'bye'").unwrap();
        assert!(!journal.is_intact().unwrap());
    }

    #[test]
    fn the_answers_of_an_older_database_are_kept() {
        let root = tempfile::tempdir().unwrap();
        older(root.path());
        let journal = Journal::open(root.path()).unwrap();
        let (answer, place) = journal.answers().last("k", None).unwrap().unwrap();
        assert_eq!((answer.said.as_str(), place.run, place.attempt), ("six", 1, 2));
    }

    #[test]
    fn a_database_that_an_older_version_is_using_is_not_migrated() {
        let root = tempfile::tempdir().unwrap();
        older(root.path());
        let LockAttempt::Held(mut lock) = RunLock::take(root.path()).unwrap() else { panic!("nobody has it") };
        lock.sign("a chain, process 1, since then").unwrap();
        let refused = Journal::open(root.path());
        assert!(
            matches!(refused, Err(JournalError::OlderAtWork { found: 5, known: 8, pid: Some(1), .. })),
            "{refused:?}"
        );
        lock.sign(&format!("a chain, process {}, since then", std::process::id())).unwrap();
        assert!(Journal::open(root.path()).is_ok(), "by a run of this version that has just taken the lock");
    }

    #[test]
    fn a_database_of_the_first_format_is_migrated_to_the_current_one() {
        let root = tempfile::tempdir().unwrap();
        drop(Journal::open(root.path()).unwrap());
        let path = root.path().join(".forkhestra/state.db");
        std::fs::remove_file(&path).unwrap();
        let database = Connection::open(&path).unwrap();
        database.execute_batch(MIGRATIONS[0]).unwrap();
        database.pragma_update(None, "application_id", APPLICATION).unwrap();
        database.pragma_update(None, "user_version", 1).unwrap();
        let event = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
        let at = "2026-01-01T00:00:00Z".into();
        let event = Event { version: 1, run: 1, seq: 1, at, worked_ms: None, unit: None, event };
        let old = serde_json::to_string(&event).unwrap();
        database.execute("INSERT INTO runs VALUES (1, 'then', 'a', 'd')", []).unwrap();
        database.execute("INSERT INTO events VALUES (1, 1, 'later', 'runFinished', ?1)", [old]).unwrap();
        drop(database);
        let journal = Journal::open(root.path()).unwrap();
        assert_eq!(journal.events().of(1).unwrap(), [event]);
        let ended: String =
            journal.database().connection().query_row("SELECT ended FROM runs", [], |row| row.get(0)).unwrap();
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
