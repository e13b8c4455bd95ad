//! What agents have answered to prompts of evaluations: the same prompt to the same agent is not paid for twice.

use super::error::JournalError;
use super::store::Journal;
use rusqlite::{OptionalExtension, params};

/// Where an answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenIn {
    /// The run.
    pub run: i64,
    /// Its step.
    pub step: u32,
    /// The attempt.
    pub attempt: u32,
}

impl Journal {
    /// The answer of this key, if there is one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn answer(&self, key: &str) -> Result<Option<String>, JournalError> {
        let found = self.database.prepare_cached("SELECT said FROM answers WHERE key = ?1");
        let found = found.and_then(|mut select| select.query_row([key], |row| row.get(0)).optional());
        found.map_err(self.failed())
    }

    /// Keeps an answer; one that is there already gives way.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn keep_answer(&self, key: &str, said: &str, given: GivenIn) -> Result<(), JournalError> {
        let insert = "INSERT OR REPLACE INTO answers (key, said, run, step, attempt) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![key, said, given.run, given.step, given.attempt];
        let inserted = self.database.prepare_cached(insert).and_then(|mut insert| insert.execute(row));
        inserted.map(drop).map_err(self.failed())
    }
}
