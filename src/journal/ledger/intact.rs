//! Whether only forkhestra has written a journal.

use super::{Head, RowSum, is_shrunk, kept, rows};
use crate::journal::database::Database;
use crate::journal::error::JournalError;
use crate::journal::folders::{FileStat, stat_of};
use rusqlite::Connection;
use std::cell::Cell;
use std::path::Path;

/// Notices what another program writes into a journal.
#[derive(Debug, Default)]
pub(in crate::journal) struct LedgerWatch {
    /// The state after the last commit of this process; `None` until [`LedgerWatch::begin`] is first called.
    head: Cell<Option<Head>>,
}

impl LedgerWatch {
    /// Whether the watch has begun.
    pub(in crate::journal) fn has_begun(&self) -> bool {
        self.head.get().is_some()
    }

    /// Remembers the current state. From now on, only forkhestra may change the journal.
    pub(in crate::journal) fn begin(&self, database: &Database) -> Result<(), JournalError> {
        let found = database.with(|connection| Ok((version(connection)?, kept(connection)?)))?;
        let now = files(database.path());
        self.head.set(found.1.map(|(links, sum)| Head { links, sum, version: found.0, files: now }));
        Ok(())
    }

    /// Follows our commit, which left this number of changes and this sum. Right before, the check has found nothing.
    /// What another program commits after us changes SQLite's version, so that the next check finds it.
    pub(in crate::journal) fn follow(&self, database: &Database, written: Option<(i64, RowSum)>) {
        let Some((before, (links, sum))) = self.head.get().zip(written) else { return };
        let files = files(database.path());
        if !is_shrunk(before, files) {
            self.head.set(Some(Head { links, sum, version: before.version, files }));
        }
    }

    /// Whether only forkhestra has written the journal, in this process or another. Costs three `stat`s if no other
    /// process has written, otherwise a read of all rows.
    pub(in crate::journal) fn is_intact(&self, database: &Database) -> Result<bool, JournalError> {
        // A removed database is still open here, and would still answer.
        if !database.is_in_place() {
            return Ok(false);
        }
        let version = database.with(version)?;
        let (head, now) = (self.head.get(), files(database.path()));
        if head.is_some_and(|head| head.version == version && head.files == now) {
            return Ok(true);
        }
        if head.is_some_and(|head| is_shrunk(head, now)) {
            return Ok(false);
        }
        // Damage to the file itself shows when it is read.
        let Ok(Some((links, sum))) = kept(database.connection()) else { return Ok(false) };
        let Ok(found) = rows(database.connection()) else { return Ok(false) };
        let follows = head.is_none_or(|head| links > head.links || links == head.links && sum == head.sum);
        if found != sum || !follows {
            return Ok(false);
        }
        self.begin(database)?;
        Ok(true)
    }

    /// Accepts the journal as it is.
    pub(in crate::journal) fn accept(&self, database: &Database) -> Result<(), JournalError> {
        let update = "UPDATE ledger SET links = links + 1, sum = ?1";
        database.with(|connection| connection.execute(update, [&rows(connection)?[..]]))?;
        self.begin(database)
    }
}

/// SQLite's number for the commits of other connections (sqlite.org/pragma.html, `data_version`).
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// The database file and its log.
fn files(path: &Path) -> [Option<FileStat>; 2] {
    let log = path.with_extension("db-wal");
    [path, &log].map(|path| std::fs::symlink_metadata(path).ok().map(|found| stat_of(&found)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "simulates tampering")]
mod tests {
    use super::*;
    use crate::engine::{Event, EventKind, RunOutcome};
    use crate::journal::{Commit, Journal, NewTask};
    use std::cell::RefCell;
    use std::time::Instant;

    fn journal(root: &Path) -> Journal {
        let mut journal = Journal::open(root).unwrap();
        let task = NewTask { title: "T".into(), ..NewTask::default() };
        journal.tasks().add(&task, "now").unwrap().unwrap();
        journal.remember().unwrap();
        journal
    }

    #[test]
    fn what_our_program_writes_keeps_the_journal_intact() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = journal(root.path());
        assert!(journal.is_intact().unwrap());
        // A person's command in another terminal.
        let other = Journal::open(root.path()).unwrap();
        other.tasks().add(&NewTask { title: "U".into(), ..NewTask::default() }, "now").unwrap().unwrap();
        assert!(journal.is_intact().unwrap());
        other.tasks().delete("1").unwrap().unwrap();
        assert!(journal.is_intact().unwrap());
        let run = "INSERT INTO runs (started, chain, digest) VALUES ('now', 'a', 'd')";
        other.database().connection().execute(run, []).unwrap();
        other.messages().send(1, "use the new API", "now").unwrap();
        assert!(journal.is_intact().unwrap());
    }

    #[test]
    fn a_row_that_somebody_else_has_changed_is_found() {
        for change in [
            "UPDATE tasks SET title = 'X'",
            "DELETE FROM tasks",
            "INSERT INTO audit (task, at, from_status, to_status, actor, notes, rejection)
             VALUES ('1', 'now', 'pending', 'completed', 'reviewer', '', 0)",
            "UPDATE ledger SET links = 0",
        ] {
            let root = tempfile::tempdir().unwrap();
            let mut journal = journal(root.path());
            let other = Connection::open(journal.path()).unwrap();
            // Without forkhestra's functions nothing can be written, unless the triggers are dropped first.
            if !change.contains("ledger") {
                assert!(other.execute(change, []).is_err(), "{change}");
                let select = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
                let triggers: Vec<String> = other
                    .prepare(select)
                    .unwrap()
                    .query_map([], |row| row.get(0))
                    .unwrap()
                    .collect::<rusqlite::Result<_>>()
                    .unwrap();
                for trigger in triggers {
                    other.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
                }
            }
            other.execute(change, []).unwrap();
            assert!(!journal.is_intact().unwrap(), "{change}");
        }
    }

    #[test]
    fn what_somebody_else_does_during_a_commit_of_ours_is_found() {
        let emptied: fn(&Journal) = |journal| std::fs::write(journal.path(), "").unwrap();
        let changed: fn(&Journal) = |journal| {
            let other = Connection::open(journal.path()).unwrap();
            other.execute_batch("DROP TRIGGER tasks_changed; UPDATE tasks SET title = 'X'").unwrap();
        };
        let turned_back: fn(&Journal) = |journal| {
            Connection::open(journal.path()).unwrap().execute("UPDATE ledger SET links = 0", []).unwrap();
        };
        for tamper in [emptied, changed, turned_back] {
            let root = tempfile::tempdir().unwrap();
            let mut journal = journal(root.path());
            journal.follow_own_write(tamper);
            assert!(!journal.is_intact().unwrap_or(false));
        }
    }

    #[test]
    fn what_somebody_else_commits_while_our_commit_waits_is_found() {
        thread_local!(static OTHER: RefCell<Option<Connection>> = const { RefCell::new(None) });
        let root = tempfile::tempdir().unwrap();
        let mut journal = journal(root.path());
        let run = "INSERT INTO runs (started, chain, digest) VALUES ('now', 'a', 'd')";
        journal.database().connection().execute(run, []).unwrap();
        journal.remember().unwrap();
        let other = Connection::open(journal.path()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE; UPDATE ledger SET links = 0").unwrap();
        OTHER.set(Some(other));
        // Called when our commit has to wait.
        let commits = |_| OTHER.take().is_some_and(|other| other.execute_batch("COMMIT").is_ok());
        journal.connection_mut().unwrap().busy_handler(Some(commits)).unwrap();
        let event = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
        let event = Event { version: 1, run: 1, seq: 1, at: "now".into(), worked_ms: None, unit: None, event };
        let written = journal.append(Commit::of(&[event]), Instant::now());
        assert!(matches!(written, Err(JournalError::Tampered { .. })), "{written:?}");
        assert!(OTHER.take().is_none(), "ours has waited");
    }

    #[test]
    fn a_lane_notices_what_somebody_else_wrote_since_its_run_began_to_watch() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = journal(root.path());
        let mut lane = journal.sibling();
        let event = |seq| {
            let event = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
            [Event { version: 1, run: 1, seq, at: "now".into(), worked_ms: None, unit: None, event }]
        };
        let run = "INSERT INTO runs (started, chain, digest) VALUES ('now', 'a', 'd')";
        journal.database().connection().execute(run, []).unwrap();
        lane.append(Commit::of(&event(1)), Instant::now()).unwrap();
        assert!(journal.is_intact().unwrap(), "the lane's own commit");
        Connection::open(journal.path()).unwrap().execute("UPDATE ledger SET links = 0", []).unwrap();
        let written = lane.append(Commit::of(&event(2)), Instant::now());
        assert!(matches!(written, Err(JournalError::Tampered { .. })), "{written:?}");
    }

    #[test]
    fn a_database_that_is_emptied_or_removed_is_found() {
        let root = tempfile::tempdir().unwrap();
        let mut emptied = journal(root.path());
        std::fs::write(emptied.path(), "").unwrap();
        assert!(!emptied.is_intact().unwrap_or(false));
        let root = tempfile::tempdir().unwrap();
        let mut removed = journal(root.path());
        std::fs::remove_file(removed.path()).unwrap();
        assert!(!removed.is_intact().unwrap());
    }
}
