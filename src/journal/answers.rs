//! What agents have answered to prompts of evaluations: the same prompt to the same agent is not paid for twice.

use super::error::JournalError;
use super::store::Journal;
use rusqlite::{OptionalExtension, params};

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its words.
    pub said: String,
    /// The session in which it was said, where its program tells.
    pub session: Option<String>,
}

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
    /// The answer of this key, if there is one; with a run, only if it was given in that one.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn answer(&self, key: &str, run: Option<i64>) -> Result<Option<Given>, JournalError> {
        let select = "SELECT said, session FROM answers WHERE key = ?1 AND run = coalesce(?2, run)";
        let given = |row: &rusqlite::Row<'_>| Ok(Given { said: row.get(0)?, session: row.get(1)? });
        let found = self.database.prepare_cached(select);
        let found = found.and_then(|mut select| select.query_row(params![key, run], given).optional());
        found.map_err(self.failed())
    }

    /// Keeps an answer; one that is there already gives way.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn keep_answer(&self, key: &str, given: &Given, at: GivenIn) -> Result<(), JournalError> {
        let insert = "INSERT OR REPLACE INTO answers (key, said, session, run, step, attempt)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let row = params![key, given.said, given.session, at.run, at.step, at.attempt];
        let inserted = self.database.prepare_cached(insert).and_then(|mut insert| insert.execute(row));
        inserted.map(drop).map_err(self.failed())
    }
}
