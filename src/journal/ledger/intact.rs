//! Whether only forkhestra has written a journal.

use super::{Head, is_shrunk, kept, rows};
use crate::journal::error::JournalError;
use crate::journal::folders::{FileStat, stat_of};
use crate::journal::store::Journal;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

impl Journal {
    fn files(&self) -> [Option<FileStat>; 2] {
        let log = self.path().with_extension("db-wal");
        [self.path(), log.as_path()]
            .map(|path: &Path| std::fs::symlink_metadata(path).ok().map(|found| stat_of(&found)))
    }

    /// Remembers the current state. From now on, only forkhestra may change the journal.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn remember(&mut self) -> Result<(), JournalError> {
        let read = || -> rusqlite::Result<Option<Head>> {
            let version = self.database.pragma_query_value(None, "data_version", |row| row.get(0))?;
            Ok(kept(&self.database)?.map(|(links, sum)| Head { links, sum, version, files: self.files() }))
        };
        self.head = read().map_err(self.failed())?;
        Ok(())
    }

    /// Follows one of our commits. What another program has done in the meantime is left to the next check.
    pub(in crate::journal) fn remember_own_write(&mut self) -> Result<(), JournalError> {
        let Some(before) = self.head else { return Ok(()) };
        self.remember()?;
        if self.head.is_none_or(|now| now.version != before.version || is_shrunk(before, now.files)) {
            self.head = Some(before);
        }
        Ok(())
    }

    /// Whether only forkhestra has written the journal, in this process or another. Costs two `stat`s if no other
    /// process has written, otherwise a read of all rows.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_intact(&mut self) -> Result<bool, JournalError> {
        // A removed database is still open here, and would still answer.
        if std::fs::symlink_metadata(self.path()).map_or(0, |found| found.ino()) != self.inode {
            return Ok(false);
        }
        let version: i64 =
            self.database.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(self.failed())?;
        if self.head.is_some_and(|head| head.version == version && head.files == self.files()) {
            return Ok(true);
        }
        if self.head.is_some_and(|head| is_shrunk(head, self.files())) {
            return Ok(false);
        }
        // Damage to the file itself shows when it is read.
        let Ok(Some((links, sum))) = kept(&self.database) else { return Ok(false) };
        let Ok(found) = rows(&self.database) else { return Ok(false) };
        let follows = self.head.is_none_or(|head| links > head.links || links == head.links && sum == head.sum);
        if found != sum || !follows {
            return Ok(false);
        }
        self.remember()?;
        Ok(true)
    }

    /// Accepts the journal as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn accept(&mut self) -> Result<(), JournalError> {
        let sum = rows(&self.database).map_err(self.failed())?;
        let update = "UPDATE ledger SET links = links + 1, sum = ?1";
        self.database.execute(update, [&sum[..]]).map_err(self.failed())?;
        self.remember()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "simulates tampering")]
mod tests {
    use super::*;
    use crate::journal::NewTask;
    use rusqlite::Connection;

    fn journal(root: &Path) -> Journal {
        let mut journal = Journal::open(root).unwrap();
        let task = NewTask { title: "T".into(), ..NewTask::default() };
        journal.add_task(&task, "now").unwrap().unwrap();
        journal.remember().unwrap();
        journal
    }

    #[test]
    fn what_our_program_writes_keeps_the_journal_intact() {
        let root = tempfile::tempdir().unwrap();
        let mut journal = journal(root.path());
        assert!(journal.is_intact().unwrap());
        // A person's command in another terminal.
        let mut other = Journal::open(root.path()).unwrap();
        other.add_task(&NewTask { title: "U".into(), ..NewTask::default() }, "now").unwrap().unwrap();
        assert!(journal.is_intact().unwrap());
        other.delete_task("1").unwrap().unwrap();
        assert!(journal.is_intact().unwrap());
        other.database.execute("INSERT INTO runs (started, chain, digest) VALUES ('now', 'a', 'd')", []).unwrap();
        other.send_message(1, "use the new API", "now").unwrap();
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
        for tamper in [emptied, changed] {
            let root = tempfile::tempdir().unwrap();
            let mut journal = journal(root.path());
            tamper(&journal);
            journal.remember_own_write().unwrap();
            assert!(!journal.is_intact().unwrap_or(false));
        }
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
