//! What decided about the work when its run began: kept once, for every resume of it.

use super::error::JournalError;
use super::store::Journal;
use rusqlite::{OptionalExtension, params};

impl Journal {
    /// What decided about the work when a run began; none if nothing was kept.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn baseline(&self, run: i64) -> Result<Option<String>, JournalError> {
        let select = "SELECT deciding FROM baselines WHERE run = ?1";
        self.database.query_row(select, [run], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// Keeps it, once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_baseline(&mut self, run: i64, text: &str) -> Result<(), JournalError> {
        let insert = "INSERT OR IGNORE INTO baselines (run, deciding) VALUES (?1, ?2)";
        self.database.execute(insert, params![run, text]).map_err(self.failed())?;
        self.remember()
    }
}
