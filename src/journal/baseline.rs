//! The protected files as they were when a run began: stored once, for every resume of that run.

use super::error::JournalError;
use super::store::Journal;
use rusqlite::{OptionalExtension, params};

impl Journal {
    /// Returns the protected files as they were when a run began, as JSON; `None` if nothing was stored.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn baseline(&self, run: i64) -> Result<Option<String>, JournalError> {
        let select = "SELECT deciding FROM baselines WHERE run = ?1";
        self.database.query_row(select, [run], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// Stores the protected files of a run. Only the first call has an effect.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_baseline(&mut self, run: i64, text: &str) -> Result<(), JournalError> {
        let insert = "INSERT OR IGNORE INTO baselines (run, deciding) VALUES (?1, ?2)";
        self.database.execute(insert, params![run, text]).map_err(self.failed())?;
        self.remember()
    }
}
