//! Config that an agent has changed, and that did not count: the next run must not take it for granted.

use super::error::JournalError;
use super::handle::Handle;
use super::store::Journal;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What an agent did to the config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tampered {
    /// In which run.
    pub run: i64,
    /// Who.
    pub agent: String,
    /// Files from the root, and the digest of what it made of each; empty for one that it removed. While it is at work, of what they
    /// were.
    pub files: Vec<(String, String)>,
    /// Whether it was at work when this was written: what differs then may be its doing.
    #[serde(default)]
    pub at_work: bool,
}

const FILE: &str = "tampered.json";
/// The most of it that is read, in bytes.
const MOST: u64 = 16 << 20;

/// What an agent did to the config of a root, if that was not settled.
#[must_use]
pub fn tampered(root: &Path) -> Option<Tampered> {
    serde_json::from_str(&Handle::existing(root).ok()?.text(FILE, MOST)?).ok()
}

/// It is settled.
pub fn forget_tampering(root: &Path) {
    // What is not there is settled, too.
    let _ = Handle::existing(root).and_then(|ours| ours.remove(FILE));
}

impl Journal {
    /// Remembers the config as it is while an agent works: if we die, the next run can tell whether it has changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember_config(&self, run: i64, agent: &str, files: &[(String, String)]) -> Result<(), JournalError> {
        let Some(root) = self.path().parent().and_then(Path::parent) else { return Ok(()) };
        if tampered(root).is_some_and(|known| !known.at_work) {
            return Ok(());
        }
        let tampered = Tampered { run, agent: agent.into(), files: files.to_vec(), at_work: true };
        self.ours.replace(FILE, serde_json::to_string(&tampered).unwrap_or_default().as_bytes())
    }

    /// Remembers what an agent made of the config; nothing settles what was remembered.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn remember_tampering(&self, run: i64, agent: &str, files: &[(String, String)]) -> Result<(), JournalError> {
        let Some(root) = self.path().parent().and_then(Path::parent) else { return Ok(()) };
        if files.is_empty() {
            forget_tampering(root);
            return Ok(());
        }
        let tampered = Tampered { run, agent: agent.into(), files: files.to_vec(), at_work: false };
        self.ours.replace(FILE, serde_json::to_string(&tampered).unwrap_or_default().as_bytes())
    }
}
