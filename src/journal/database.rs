//! The connection to the database of a journal: SQLite in WAL mode, so that a commit survives any crash of the program.
#![expect(clippy::disallowed_methods, reason = "the owner of the database")]

use super::error::JournalError;
use super::folders::prepare_database;
use super::handle::Handle;
use super::ledger::register;
use super::lock::RunLock;
use super::schema::{BUSY, is_current, migrate};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The memory for pages of the database that each connection keeps, in KiB. The system keeps the pages, too.
const CACHE: i64 = 512;

/// The number of compiled statements that each connection keeps. What an iteration runs must fit.
const STATEMENTS: usize = 32;

/// An open database, and the file that it was opened from.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    path: PathBuf,
    /// The inode of the file. A removed file that is open can still be read and written.
    inode: u64,
}

impl Database {
    /// Opens the database in our directory, or creates it, in this version's format.
    pub(super) fn open(ours: &Handle) -> Result<Self, JournalError> {
        let path = prepare_database(ours)?;
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let mut connection = connect(&path).map_err(failed)?;
        // Deleted content is overwritten (sqlite.org/pragma.html#pragma_secure_delete).
        connection.pragma_update(None, "secure_delete", "ON").map_err(failed)?;
        register(&connection).map_err(failed)?;
        let root = path.ancestors().nth(2).unwrap_or(&path);
        migrate(&mut connection, &path, || Ok(RunLock::holder(root)?.filter(|holder| !holder.is_us())))?;
        Ok(Self { connection, inode: ours.inode("state.db").unwrap_or(0), path })
    }

    /// Opens a database that no program can write (sqlite.org/uri.html, `immutable`).
    pub(super) fn read_only(ours: &Handle) -> Result<Self, JournalError> {
        let path = ours.path().join("state.db");
        let unreadable = |why: &str| JournalError::Read { path: path.clone(), cause: std::io::Error::other(why) };
        if ours.open("state.db-wal").and_then(|log| log.metadata()).is_ok_and(|log| log.len() > 0) {
            return Err(unreadable("part of it is still in its log; copy the directory to a writable place"));
        }
        let name = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let connection = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags).map_err(failed)?;
        register(&connection).map_err(failed)?;
        if !is_current(&connection, &path)? {
            return Err(unreadable("an older version wrote it; copy the directory to a writable place"));
        }
        Ok(Self { connection, inode: ours.inode("state.db").unwrap_or(0), path })
    }

    /// The path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The connection, for a statement of its own.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    #[cfg(test)]
    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Whether the file at the path is still the one that is open.
    pub(super) fn is_in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }

    /// Turns an error of SQLite into one that names the file.
    pub(super) fn failed(&self) -> impl Fn(rusqlite::Error) -> JournalError + Copy + use<'_> {
        |cause| JournalError::Database { path: self.path.clone(), cause }
    }

    /// Reads or writes with single statements.
    pub(super) fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, JournalError> {
        work(&self.connection).map_err(self.failed())
    }

    /// Begins a transaction that writes: no other process writes until it ends. It must not be begun
    /// within another on this connection, which all lanes share.
    pub(super) fn begin(&self) -> Result<WriteTransaction<'_>, JournalError> {
        WriteTransaction::begin(&self.connection).map_err(self.failed())
    }

    /// Writes in one transaction. If `work` fails, nothing is written.
    pub(super) fn change<T>(
        &self,
        work: impl FnOnce(&WriteTransaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, JournalError> {
        let transaction = self.begin()?;
        let done = work(&transaction).map_err(self.failed())?;
        transaction.commit().map_err(self.failed())?;
        Ok(done)
    }

    /// Lets commits wait until the disk has them (`FULL`), or only until the operating system has (`NORMAL`).
    pub(super) fn synchronous(&self, level: &str) -> Result<(), JournalError> {
        self.with(|connection| connection.pragma_update(None, "synchronous", level))
    }

    /// Checks the whole database for damage that SQLite can detect, including its indexes.
    pub(super) fn check(&self) -> Result<(), JournalError> {
        let found: String =
            self.with(|connection| connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)))?;
        if found == "ok" { Ok(()) } else { Err(JournalError::Corrupt { path: self.path.clone(), found }) }
    }

    /// Empties the log, so that it does not keep rows that were removed. Does nothing while another process reads.
    pub(super) fn empty_log(&self) {
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// A transaction that writes. Dropped without a commit, it is rolled back. [`rusqlite::Transaction`] would compile its
/// statements each time, and an iteration has two commits.
#[derive(Debug)]
pub(super) struct WriteTransaction<'a>(&'a Connection);

impl<'a> WriteTransaction<'a> {
    /// Begins a transaction, once no other process is writing.
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    /// Writes all of it, or nothing if this fails.
    pub(super) fn commit(self) -> rusqlite::Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Deref for WriteTransaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        // Some errors end the transaction themselves (sqlite.org/lang_transaction.html).
        if !self.0.is_autocommit() {
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// Opens a database that other processes may use, too.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.busy_timeout(BUSY)?;
    database.set_prepared_statement_cache_capacity(STATEMENTS);
    // A negative size is in KiB (sqlite.org/pragma.html#pragma_cache_size).
    database.pragma_update(None, "cache_size", -CACHE)?;
    // A build with STAT4 would compile a statement again for each new value of a parameter that limits a range.
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(database)
}
