//! Answers of agents to the prompts of evaluations: the same prompt to the same agent is not paid for twice.

use super::error::JournalError;
use super::store::Journal;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// An answer that an agent gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The text of the answer.
    pub said: String,
    /// The agent session in which it was given, if the agent reports one.
    pub session: Option<String>,
}

/// Where an answer was given: the attempt, and its place in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerPlace {
    /// The number of the run.
    pub run: i64,
    /// The number of the step in the run.
    pub step: u32,
    /// The number of the attempt of that step.
    pub attempt: u32,
}

impl Journal {
    /// Returns the answer stored under a key; with a run, only an answer that was given in that run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn answer(&self, key: &str, run: Option<i64>) -> Result<Option<StoredAnswer>, JournalError> {
        let select = "SELECT said, session FROM answers WHERE key = ?1 AND run = coalesce(?2, run)";
        let given = |row: &rusqlite::Row<'_>| Ok(StoredAnswer { said: row.get(0)?, session: row.get(1)? });
        let found = self.database.prepare_cached(select);
        let found = found.and_then(|mut select| select.query_row(params![key, run], given).optional());
        found.map_err(self.failed())
    }

    /// Returns the answers that were given in a run, each with its place.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn answers_of(&self, run: i64) -> Result<Vec<(AnswerPlace, StoredAnswer)>, JournalError> {
        let select = "SELECT step, attempt, said, session FROM answers WHERE run = ?1 ORDER BY step, attempt";
        let given = |row: &rusqlite::Row<'_>| {
            let at = AnswerPlace { run, step: row.get(0)?, attempt: row.get(1)? };
            Ok((at, StoredAnswer { said: row.get(2)?, session: row.get(3)? }))
        };
        let mut select = self.database.prepare_cached(select).map_err(self.failed())?;
        let rows = select.query_map(params![run], given).map_err(self.failed())?;
        rows.collect::<Result<_, _>>().map_err(self.failed())
    }

    /// Stores an answer, and replaces an existing one.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn keep_answer(&self, key: &str, given: &StoredAnswer, at: AnswerPlace) -> Result<(), JournalError> {
        let insert = "INSERT OR REPLACE INTO answers (key, said, session, run, step, attempt)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let row = params![key, given.said, given.session, at.run, at.step, at.attempt];
        let inserted = self.database.prepare_cached(insert).and_then(|mut insert| insert.execute(row));
        inserted.map(drop).map_err(self.failed())
    }
}
