//! Errors of the journal.

use std::io;
use std::path::PathBuf;

/// A failure of the journal. No agent is started without a journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A directory or file of forkhestra cannot be created or written.
    #[error("cannot write {path}: {cause}")]
    Write {
        /// The path that cannot be written.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Something else is in the place of a file or directory of forkhestra.
    #[error("{path} is {what}")]
    NotOurs {
        /// The path of that place.
        path: PathBuf,
        /// What is there: `a link`, `a file`.
        what: &'static str,
    },
    /// The journal was removed during a run.
    #[error("{path} was removed during the run")]
    Removed {
        /// The path that was removed.
        path: PathBuf,
    },
    /// A file of forkhestra cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The path that cannot be read.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The run was pruned in the meantime.
    #[error("run {run} is no longer in the journal {path}")]
    Forgotten {
        /// The path of the database.
        path: PathBuf,
        /// The number of the run.
        run: i64,
    },
    /// The database belongs to another program.
    #[error("{path} belongs to another program")]
    Foreign {
        /// The path of the database.
        path: PathBuf,
    },
    /// The database was written by a newer version.
    #[error("{path} was written by a newer forkhestra (format {found}, this version supports {known})")]
    Newer {
        /// The path of the database.
        path: PathBuf,
        /// The format of the database.
        found: i64,
        /// The newest format that this version supports.
        known: i64,
    },
    /// The database has an older format, and a process that uses that format is running.
    #[error("{path} is in use by an older forkhestra (format {found}, this version uses {known})")]
    OlderAtWork {
        /// The path of the database.
        path: PathBuf,
        /// The format of the database.
        found: i64,
        /// The format of this version.
        known: i64,
        /// The running process, if its lock names it.
        pid: Option<i32>,
    },
    /// SQLite reports an error.
    #[error("the journal {path} cannot be used: {cause}")]
    Database {
        /// The path of the database.
        path: PathBuf,
        /// The error of SQLite.
        #[source]
        cause: rusqlite::Error,
    },
    /// An event is missing, or differs from what was written.
    #[error("the journal {path} is damaged: event {seq} of run {run} differs from what was written")]
    Damaged {
        /// The path of the database.
        path: PathBuf,
        /// The number of the run.
        run: i64,
        /// The number of the event.
        seq: u64,
    },
    /// SQLite reports that the database is damaged.
    #[error("the journal {path} is damaged: {found}")]
    Corrupt {
        /// The path of the database.
        path: PathBuf,
        /// The damage that SQLite found.
        found: String,
    },
    /// A program other than forkhestra has changed the journal.
    #[error("the journal {path} was changed by a program other than forkhestra{}", .agent.as_ref().map(|agent| format!(", while `{agent}` was working")).unwrap_or_default())]
    Tampered {
        /// The path of the database.
        path: PathBuf,
        /// The agent that was working at that time, if it is known.
        agent: Option<String>,
    },
    /// Another run works in this root, although only one may.
    #[error("another run has taken over the journal {path}")]
    Lost {
        /// The path of the database.
        path: PathBuf,
    },
    /// An event of the journal cannot be parsed.
    #[error("the journal {path} contains an event that cannot be read: {cause}")]
    Event {
        /// The path of the database.
        path: PathBuf,
        /// What is wrong with the event.
        #[source]
        cause: serde_json::Error,
    },
}

/// Whether the operating system refused to write, as opposed to SQLite rejecting the database.
fn is_no_room(cause: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    let code = cause.sqlite_error_code();
    code.is_some_and(|code| matches!(code, CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure))
}

impl JournalError {
    /// What the user can do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Write { path, .. } => {
                format!("free disk space or make {} writable; nothing runs without a journal", path.display())
            }
            Self::NotOurs { .. } => {
                "a file or directory of forkhestra belongs there, and nothing was written. It came with the checkout, \
                 or an agent created it: inspect it, then remove it"
                    .into()
            }
            Self::Removed { .. } => "the history of the run is lost; what its agents changed in the project is not. \
                 `git clean -fdx` removes `.forkhestra`, `git clean -fd` does not"
                .into(),
            Self::Read { path, .. } => format!("make {} readable", path.display()),
            Self::Forgotten { .. } => "it was pruned in the meantime; start a new run".into(),
            Self::Foreign { path } => {
                format!("move {} aside; forkhestra keeps its journal there", path.display())
            }
            Self::Newer { path, .. } => {
                format!("update forkhestra, or move {} aside to start a new journal", path.display())
            }
            Self::OlderAtWork { pid, .. } => {
                let kill = pid.map_or_else(String::new, |pid| format!(" or with `kill {pid}`"));
                format!(
                    "wait until its run has ended, or end it with Ctrl-C in its terminal{kill}; the journal is \
                     updated then"
                )
            }
            Self::Tampered { .. } => {
                "its record of tasks and verdicts cannot be trusted. Inspect it (`forkhestra runs`, `forkhestra task \
                 list`), then accept it with --accept-changes, or move `.forkhestra` aside"
                    .into()
            }
            Self::Lost { .. } => "`.forkhestra/lock` was removed; only one run may work here at a time".into(),
            Self::Database { cause, .. } if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                "another program has locked the database for too long; let it finish, then run `forkhestra resume`"
                    .into()
            }
            Self::Database { path, cause } if is_no_room(cause) => format!(
                "is the disk full, or {} read-only? Fix that; `forkhestra resume` continues an interrupted run",
                path.display()
            ),
            Self::Database { path, .. }
            | Self::Event { path, .. }
            | Self::Damaged { path, .. }
            | Self::Corrupt { path, .. } => {
                format!(
                    "if it is damaged, move {} and its -wal and -shm files aside; transcripts stay where they are",
                    path.display()
                )
            }
        }
    }
}
