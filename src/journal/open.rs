//! Opens the journal of a root: for writing, for reading, and where nothing can be written.
#![expect(clippy::disallowed_methods, reason = "the owner of the database")]

use super::error::JournalError;
use super::folders::{prepare, prepare_database};
use super::handle::{Handle, refused};
use super::ledger::register;
use super::lock::RunLock;
use super::schema::{BUSY, is_current, migrate};
use super::store::Journal;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::cell::RefCell;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The memory for pages of the database that each connection keeps, in KiB. A run has a connection for each lane, and
/// the system keeps the pages, too.
const CACHE: i64 = 512;

/// Opens a database that other processes may use, too.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.busy_timeout(BUSY)?;
    // A negative size is in KiB (sqlite.org/pragma.html#pragma_cache_size).
    database.pragma_update(None, "cache_size", -CACHE)?;
    // Otherwise, a statement is compiled again for each new value of a parameter that limits a range.
    database.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(database)
}

impl Journal {
    /// Wraps an open database that no run uses yet.
    fn over(ours: Handle, path: PathBuf, database: Connection) -> Self {
        let inode = ours.inode("state.db").unwrap_or(0);
        Self {
            ours,
            step_folder: RefCell::default(),
            path,
            database,
            synced: None,
            unsynced: Vec::new(),
            fence: None,
            next_outline: None,
            following: None,
            inode,
            head: None,
            writes_left: None,
            lock: None,
        }
    }

    /// Opens the journal of a root, or creates one.
    ///
    /// # Errors
    /// When the directory cannot be written, or this version cannot use the database.
    pub fn open(root: &Path) -> Result<Self, JournalError> {
        let ours = prepare(root)?;
        let path = prepare_database(&ours)?;
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let mut database = connect(&path).map_err(failed)?;
        // Deleted content is overwritten (sqlite.org/pragma.html#pragma_secure_delete).
        database.pragma_update(None, "secure_delete", "ON").map_err(failed)?;
        register(&database).map_err(failed)?;
        migrate(&mut database, &path, || Ok(RunLock::holder(root)?.filter(|holder| !holder.is_us())))?;
        Ok(Self::over(ours, path, database))
    }

    /// Opens the same journal again, under the same lease, for another lane of this run.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn sibling(&self) -> Result<Self, JournalError> {
        let failed = |cause| JournalError::Database { path: self.path.clone(), cause };
        let database = connect(&self.path).map_err(failed)?;
        register(&database).map_err(failed)?;
        database.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
        Ok(Self {
            fence: self.fence,
            inode: self.inode,
            writes_left: self.writes_left.clone(),
            lock: self.lock.clone(),
            ..Self::over(self.ours.clone(), self.path.clone(), database)
        })
    }

    /// Opens the journal of a root if there is one; creates nothing.
    ///
    /// # Errors
    /// Like [`Journal::open`].
    pub fn existing(root: &Path) -> Result<Option<Self>, JournalError> {
        let path = root.join(super::handle::FOLDER).join("state.db");
        match path.try_exists() {
            Ok(true) => match Self::open(root) {
                // A snapshot, an artifact of a CI job or another user's directory: its content can still be read.
                Err(JournalError::Write { cause, .. })
                    if matches!(cause.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
                {
                    Self::read_only(root).map(Some)
                }
                opened => opened.map(Some),
            },
            Ok(false) => Ok(None),
            Err(cause) => Err(JournalError::Read { path, cause }),
        }
    }

    /// Opens the journal of a root that no program can write (sqlite.org/uri.html, `immutable`).
    fn read_only(root: &Path) -> Result<Self, JournalError> {
        let ours = Handle::existing(root).map_err(|error| refused(&root.join(super::handle::FOLDER), error))?;
        let path = ours.path().join("state.db");
        let unreadable = |why: &str| JournalError::Read { path: path.clone(), cause: std::io::Error::other(why) };
        if ours.open("state.db-wal").and_then(|log| log.metadata()).is_ok_and(|log| log.len() > 0) {
            return Err(unreadable("part of it is still in its log; copy the directory to a writable place"));
        }
        let name = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let database = Connection::open_with_flags(format!("file:{name}?immutable=1"), flags).map_err(failed)?;
        register(&database).map_err(failed)?;
        if !is_current(&database, &path)? {
            return Err(unreadable("an older version wrote it; copy the directory to a writable place"));
        }
        Ok(Self::over(ours, path, database))
    }
}
