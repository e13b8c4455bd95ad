//! Detects tampering with a journal: a running sum of the digests of all rows that decisions depend on, kept by
//! triggers in the commits of the rows. Another program that changes a row does not update the sum; the host remembers
//! the sum while it works. A program that recomputes the sums, as any program of the same user can, is not detected.

use super::error::JournalError;
use super::folders::{FileStat, stat_of};
use super::store::Journal;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The tables that decisions depend on, with the relevant columns; the rest of `runs` follows from its events.
const TABLES: [(&str, &[&str]); 8] = [
    ("events", &["run", "seq", "at", "type", "event"]),
    ("runs", &["id", "started", "chain", "digest", "name", "outline", "task"]),
    ("tasks", &["id", "title", "spec", "tests", "added"]),
    ("task_order", &["task", "after"]),
    ("audit", &["id", "task", "run", "at", "from_status", "to_status", "actor", "notes", "rejection"]),
    ("disputes", &["id", "task", "run", "kind", "reason", "opened", "decision", "notes", "resolved"]),
    ("baselines", &["run", "deciding"]),
    ("messages", &["id", "run", "at", "text"]),
];

/// A sum of digests, modulo 2 to the 256th, least significant byte first.
type RowSum = [u8; 32];

/// What is remembered of the journal between one commit of this process and the next check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of row changes so far; it never decreases.
    links: i64,
    sum: RowSum,
    /// SQLite's `data_version`, which changes with the commits of other connections.
    version: i64,
    /// The database file and its log.
    files: [Option<FileStat>; 2],
}

fn plus(sum: &mut RowSum, digest: &[u8]) {
    let mut carry = 0_u16;
    for (byte, add) in sum.iter_mut().zip(digest) {
        carry += u16::from(*byte) + u16::from(*add);
        [*byte, _] = carry.to_le_bytes();
        carry >>= 8;
    }
}

fn minus(sum: &mut RowSum, digest: &[u8]) {
    let mut borrow = 0_i16;
    for (byte, take) in sum.iter_mut().zip(digest) {
        borrow += i16::from(*byte) - i16::from(*take);
        [*byte, _] = borrow.to_le_bytes();
        borrow >>= 8;
    }
}

/// Returns the digest of a row: its table, and each value with its type and length, so that no two rows look alike.
fn row_digest<'a>(table: &str, values: impl Iterator<Item = ValueRef<'a>>) -> Vec<u8> {
    let mut hash = Sha256::new().chain_update(table).chain_update([0]);
    for value in values {
        let mut add = |kind: u8, bytes: &[u8]| {
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        match value {
            ValueRef::Null => hash.update([0]),
            ValueRef::Integer(number) => add(1, &number.to_le_bytes()),
            ValueRef::Real(number) => add(2, &number.to_le_bytes()),
            ValueRef::Text(text) => add(3, text),
            ValueRef::Blob(blob) => add(4, blob),
        }
    }
    hash.finalize().to_vec()
}

/// Registers the functions that the triggers of a connection call.
pub(super) fn register(database: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let change = |context: &Context<'_>, by: fn(&mut RowSum, &[u8])| -> rusqlite::Result<Vec<u8>> {
        let wrong = || rusqlite::Error::UserFunctionError("not a valid sum".into());
        let mut sum: RowSum =
            context.get_raw(0).as_blob().ok().and_then(|sum| sum.try_into().ok()).ok_or_else(wrong)?;
        let table = context.get_raw(1).as_str().map_err(|_| wrong())?.to_string();
        by(&mut sum, &row_digest(&table, (2..context.len()).map(|index| context.get_raw(index))));
        Ok(sum.to_vec())
    };
    database.create_scalar_function("forkhestra_link", -1, flags, move |context| change(context, plus))?;
    database.create_scalar_function("forkhestra_unlink", -1, flags, move |context| change(context, minus))
}

/// Creates the ledger of a database that has none, over the existing rows.
pub(super) fn install(database: &Connection) -> rusqlite::Result<()> {
    for (table, _) in TABLES {
        watch(database, table)?;
    }
    let sum = rows(database)?;
    database.execute("UPDATE ledger SET sum = ?1", [&sum[..]]).map(drop)
}

/// Lets the ledger follow a table, which must still be empty unless the sum is computed afterwards.
pub(super) fn watch(database: &Connection, table: &str) -> rusqlite::Result<()> {
    for (table, columns) in TABLES.into_iter().filter(|(known, _)| *known == table) {
        let of = |row: &str| format!(", {row}.{}", columns.join(&format!(", {row}.")));
        let (new, old) = (of("NEW"), of("OLD"));
        let update = |sum: String| format!("BEGIN UPDATE ledger SET links = links + 1, sum = {sum}; END;");
        let linked = format!("forkhestra_link(sum, '{table}'{new})");
        let added = update(linked.clone());
        let removed = update(format!("forkhestra_unlink(sum, '{table}'{old})"));
        let changed = update(format!("forkhestra_unlink({linked}, '{table}'{old})"));
        let listed = columns.join(", ");
        database.execute_batch(&format!(
            "CREATE TRIGGER {table}_added AFTER INSERT ON {table} {added}
             CREATE TRIGGER {table}_removed AFTER DELETE ON {table} {removed}
             CREATE TRIGGER {table}_changed AFTER UPDATE OF {listed} ON {table} {changed}"
        ))?;
    }
    Ok(())
}

/// Computes the sum over all rows as they are.
fn rows(database: &Connection) -> rusqlite::Result<RowSum> {
    let mut sum = RowSum::default();
    for (table, columns) in TABLES {
        let mut select = database.prepare(&format!("SELECT {} FROM {table}", columns.join(", ")))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values: rusqlite::Result<Vec<ValueRef<'_>>> =
                (0..columns.len()).map(|index| row.get_ref(index)).collect();
            plus(&mut sum, &row_digest(table, values?.into_iter()));
        }
    }
    Ok(sum)
}

/// Returns the number of changes and the sum that the ledger holds.
fn kept(database: &Connection) -> rusqlite::Result<Option<(i64, RowSum)>> {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Option<(i64, Vec<u8>)> =
        database.query_row("SELECT links, sum FROM ledger WHERE id = 1", [], row).optional()?;
    Ok(found.and_then(|(links, sum)| Some((links, sum.try_into().ok()?))))
}

/// Whether the database is smaller than it was, or gone. If it was emptied, its log may still hold what it lost.
fn is_shrunk(before: Head, now: [Option<FileStat>; 2]) -> bool {
    before.files[0].zip(now[0]).is_none_or(|(before, now)| now.0 < before.0)
}

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
    pub(super) fn remember_own_write(&mut self) -> Result<(), JournalError> {
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
