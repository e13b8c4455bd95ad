//! Changes of the config by an agent that were not accepted: the next run must not trust them.

use crate::journal::error::JournalError;
use crate::journal::handle::Handle;
use crate::journal::run_files::RunFiles;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A change of the config by an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tampered {
    /// The number of the run.
    pub run: i64,
    /// The name of the agent.
    pub agent: String,
    /// Paths from the root, each with the digest of the new content, empty if the agent removed the file. While the
    /// agent works: the digest of the original content.
    pub files: Vec<(String, String)>,
    /// Whether the agent was working when this was written: a difference may then be its change.
    #[serde(default)]
    pub at_work: bool,
}

const FILE: &str = "tampered.json";
/// The most that is read of it, in bytes.
const MOST: u64 = 16 << 20;

/// Returns what an agent changed in the config of a root, if that was not settled.
#[must_use]
pub fn tampered(root: &Path) -> Option<Tampered> {
    read(&Handle::existing(root).ok()?)
}

/// Marks the change as settled.
pub fn forget_tampering(root: &Path) {
    // If there is no file, it is already settled.
    let _ = Handle::existing(root).and_then(|ours| ours.remove(FILE));
}

/// Records the config while an agent works: if this process dies, the next run can tell whether it has changed.
///
/// # Errors
/// When it cannot be written.
pub fn remember_config(
    journal: &RunFiles,
    run: i64,
    agent: &str,
    files: &[(String, String)],
) -> Result<(), JournalError> {
    if read(journal.handle()).is_some_and(|known| !known.at_work) {
        return Ok(());
    }
    write(journal, &Tampered { run, agent: agent.into(), files: files.to_vec(), at_work: true })
}

/// Records what an agent changed in the config. Without changes, removes the record.
///
/// # Errors
/// When it cannot be written.
pub fn remember_tampering(
    journal: &RunFiles,
    run: i64,
    agent: &str,
    files: &[(String, String)],
) -> Result<(), JournalError> {
    if files.is_empty() {
        // If there is no file, there was no change before either.
        let _ = journal.handle().remove(FILE);
        return Ok(());
    }
    write(journal, &Tampered { run, agent: agent.into(), files: files.to_vec(), at_work: false })
}

fn read(ours: &Handle) -> Option<Tampered> {
    serde_json::from_str(&ours.text(FILE, MOST)?).ok()
}

fn write(journal: &RunFiles, tampered: &Tampered) -> Result<(), JournalError> {
    journal.handle().replace(FILE, serde_json::to_string(tampered).unwrap_or_default().as_bytes())
}
