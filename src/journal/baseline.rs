//! What decided about the work when its run began: kept once, for every resume of it.
#![expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]

use super::error::JournalError;
use super::folders::{failed, make_file, make_folder};
use super::store::Journal;
use std::fs;
use std::io::Write;

/// What decided about the work when its run began, in the run's folder.
const BASELINE: &str = "deciding.json";

impl Journal {
    /// What decided about the work when a run began; none if nothing was kept.
    #[must_use]
    pub fn baseline(&self, run: i64) -> Option<String> {
        fs::read_to_string(self.run_folder(run).join(BASELINE)).ok()
    }

    /// Keeps it, once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_baseline(&self, run: i64, text: &str) -> Result<(), JournalError> {
        let folder = self.run_folder(run);
        make_folder(&folder)?;
        let path = folder.join(BASELINE);
        if path.exists() {
            return Ok(());
        }
        make_file(&path)?.write_all(text.as_bytes()).map_err(failed(&path))
    }
}
