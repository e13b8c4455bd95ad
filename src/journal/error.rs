//! What can go wrong with the journal.

use std::io;
use std::path::PathBuf;

/// A failure of the journal; no agent is started without one.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A folder or file of ours cannot be made or written.
    #[error("cannot write {path}: {cause}")]
    Write {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// Something that is none of ours has the place of a file or folder of ours.
    #[error("{path} is {what}")]
    NotOurs {
        /// Where.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The journal was removed while a run was at work.
    #[error("{path} was removed while the run was at work")]
    Removed {
        /// Which.
        path: PathBuf,
    },
    /// A file of ours cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// Somebody has pruned the run meanwhile.
    #[error("run {run} is not in the journal {path} any more")]
    Forgotten {
        /// Which.
        path: PathBuf,
        /// The run.
        run: i64,
    },
    /// The database is another program's.
    #[error("{path} belongs to another program")]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// The database was written by a newer version.
    #[error("{path} was written by a newer forkhestra (format {found}, this one knows {known})")]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// SQLite refuses.
    #[error("the journal {path} fails: {cause}")]
    Database {
        /// Which.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        cause: rusqlite::Error,
    },
    /// An event is missing, or is not what was written.
    #[error("the journal {path} is damaged: event {seq} of run {run} is not what was written")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// The run.
        run: i64,
        /// The event's number.
        seq: u64,
    },
    /// SQLite finds the database damaged.
    #[error("the journal {path} is damaged: {found}")]
    Corrupt {
        /// Which.
        path: PathBuf,
        /// What SQLite found.
        found: String,
    },
    /// The journal is not what our program has written.
    #[error("the journal {path} was changed by another program than forkhestra{}", .agent.as_ref().map(|agent| format!(", while `{agent}` worked")).unwrap_or_default())]
    Tampered {
        /// Which.
        path: PathBuf,
        /// The agent that was at work meanwhile, if it is known.
        agent: Option<String>,
    },
    /// Another run works here, although it should not.
    #[error("another run has taken the journal {path} from this one")]
    Lost {
        /// Which.
        path: PathBuf,
    },
    /// An event of the journal is not one that we know.
    #[error("the journal {path} holds an event that cannot be read: {cause}")]
    Event {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
}

/// Whether the operating system refused to write, rather than SQLite to believe.
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
                format!("make room or make {} writable; nothing runs without its journal", path.display())
            }
            Self::NotOurs { .. } => "it has the place of a file or folder of ours, and nothing is written there. The checkout brought it, or an \
                 agent made it: look at it, and remove it"
                .into(),
            Self::Removed { .. } => "the history of the run is gone with it; what its agents did in the project is not. `git clean -fdx` removes \
                 it, `git clean -fd` does not"
                .into(),
            Self::Read { path, .. } => format!("make {} readable", path.display()),
            Self::Forgotten { .. } => "somebody has pruned it meanwhile; begin a new run".into(),
            Self::Foreign { path } => {
                format!("move {} out of the way; forkhestra keeps its journal there", path.display())
            }
            Self::Newer { path, .. } => {
                format!("update forkhestra, or move {} aside to begin a new journal", path.display())
            }
            Self::Tampered { .. } => {
                "what it says of tasks and verdicts cannot be believed. Look at it (`forkhestra runs`, `forkhestra task list`), then take it \
                 as it is with --accept-changes, or move `.forkhestra` aside"
                    .into()
            }
            Self::Lost { .. } => "somebody has removed `.forkhestra/lock`; let one run work here at a time".into(),
            Self::Database { cause, .. } if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                "another program holds the database for longer than we wait; let it finish, then `forkhestra resume`"
                    .into()
            }
            Self::Database { path, cause } if is_no_room(cause) => format!(
                "is the disk full, or {} read-only? Make room; a run that was under way goes on with `forkhestra resume`",
                path.display()
            ),
            Self::Database { path, .. }
            | Self::Event { path, .. }
            | Self::Damaged { path, .. }
            | Self::Corrupt { path, .. } => {
                format!(
                    "if it is damaged, move {} and its -wal and -shm aside; transcripts stay where they are",
                    path.display()
                )
            }
        }
    }
}
