//! What can fail in the hub, and what to do then.

use crate::unit::{BadBundle, BadSharedTask};
use std::io;
use std::path::PathBuf;

/// What failed in the hub.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// git failed.
    #[error("`git {command}` failed: {why}")]
    Git {
        /// The command that failed, without its arguments.
        command: String,
        /// What git said, or why it could not run.
        why: String,
    },
    /// A hub on another machine could not be reached.
    #[error("cannot reach the hub {url}: {why}")]
    Remote {
        /// The URL of the hub.
        url: String,
        /// What git said.
        why: String,
    },
    /// A hub on another machine takes no changes.
    #[error("the hub {url} rejects a change: {why}")]
    Rejected {
        /// The URL of the hub.
        url: String,
        /// What its git said.
        why: String,
    },
    /// A file is not a git bundle that contains a unit.
    #[error("{path} is not a file with a unit of work", path = path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The command that writes such a file.
        writer: &'static str,
    },
    /// A file has the result of a unit, where a unit is needed.
    #[error("{path} was written by `forkhestra work --bundle`: it has a result, not a unit to work on", path = path.display())]
    Result {
        /// Its path.
        path: PathBuf,
    },
    /// A file or a directory could not be written.
    #[error("cannot write {path}: {cause}", path = path.display())]
    Write {
        /// Its path.
        path: PathBuf,
        /// Why it could not.
        #[source]
        cause: io::Error,
    },
    /// There is no such unit in the hub.
    #[error("the hub {hub} has no unit `{unit}`")]
    Unknown {
        /// The path or the URL of the hub.
        hub: String,
        /// The name of the unit.
        unit: String,
    },
    /// A task of a shared hub cannot be used.
    #[error("the hub's task `{task}` cannot be used: {cause}")]
    Task {
        /// The ID of the task.
        task: String,
        /// Why it cannot.
        #[source]
        cause: BadSharedTask,
    },
    /// The bundle of a unit cannot be used.
    #[error("the bundle of unit `{unit}` cannot be used: {cause}")]
    Bundle {
        /// The name of the unit.
        unit: String,
        /// Why it cannot.
        #[source]
        cause: BadBundle,
    },
}

impl HubError {
    /// Returns what a person can do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Git { .. } => "the directory may be full or damaged; `git fsck` in the hub checks it",
            Self::Remote { .. } => "`git ls-remote URL` on this machine shows whether it can be reached",
            Self::Rejected { .. } => {
                "its server must take changes of refs/forkhestra/*; `forkhestra explain hub/failed` says more"
            }
            Self::File { writer, .. } => writer,
            Self::Result { .. } => "take it over, where the batch was started: forkhestra task sync FILE",
            Self::Write { .. } => "free some space, or check the permissions of the directory",
            Self::Unknown { .. } => {
                "check the path of the hub; `git ls-remote HUB 'refs/forkhestra/units/*'` lists its units"
            }
            Self::Task { cause: BadSharedTask::Newer(_), .. } => {
                "install the newer version of forkhestra that wrote it"
            }
            Self::Task { .. } => "`git log refs/forkhestra/tasks/ID` in the hub shows who has changed it",
            Self::Bundle { cause: BadBundle::Newer { .. }, .. } => "use the version of forkhestra that made it",
            Self::Bundle { .. } => "start the batch again; it makes a new one",
        }
    }
}
