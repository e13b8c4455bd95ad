//! Answers of agents to the prompts of evaluations: the same prompt to the same agent is not paid for twice.

use crate::journal::database::Database;
use crate::journal::error::JournalError;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// An answer that an agent gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The text of the answer.
    pub said: String,
    /// The agent session in which it was given, if the agent reports one.
    pub session: Option<String>,
    /// What it has cost, in US dollars, if the agent reports that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How long it has taken, in milliseconds; none for an answer from before this was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
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

/// An answer that is to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAnswer {
    /// The key under which it is found again.
    pub key: String,
    /// The attempt that gave it.
    pub at: AnswerPlace,
    /// The answer.
    pub answer: StoredAnswer,
}

/// The answers in a journal.
#[derive(Debug, Clone, Copy)]
pub struct AnswerTable<'a>(pub(in crate::journal) &'a Database);

impl AnswerTable<'_> {
    /// Returns the text of the answer that an attempt gave; `None` if it gave none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn said(self, at: AnswerPlace) -> Result<Option<String>, JournalError> {
        let select = "SELECT said FROM answers WHERE run = ?1 AND step = ?2 AND attempt = ?3";
        let row = params![at.run, at.step, at.attempt];
        self.0.with(|database| database.prepare_cached(select)?.query_row(row, |row| row.get(0)).optional())
    }

    /// Returns the last answer stored under a key, with its place; with a run, the last one given in that run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn last(self, key: &str, run: Option<i64>) -> Result<Option<(StoredAnswer, AnswerPlace)>, JournalError> {
        let select = "SELECT said, session, cost, took_ms, run, step, attempt FROM answers
                      WHERE key = ?1 AND run = coalesce(?2, run) ORDER BY run DESC, attempt DESC LIMIT 1";
        let given = |row: &rusqlite::Row<'_>| {
            let place = AnswerPlace { run: row.get(4)?, step: row.get(5)?, attempt: row.get(6)? };
            Ok((stored(row, 0)?, place))
        };
        self.0.with(|database| database.prepare_cached(select)?.query_row(params![key, run], given).optional())
    }

    /// Returns the answers that were given in a run, each with its place.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn of(self, run: i64) -> Result<Vec<(AnswerPlace, StoredAnswer)>, JournalError> {
        let select =
            "SELECT step, attempt, said, session, cost, took_ms FROM answers WHERE run = ?1 ORDER BY step, attempt";
        let given = |row: &rusqlite::Row<'_>| {
            let at = AnswerPlace { run, step: row.get(0)?, attempt: row.get(1)? };
            Ok((at, stored(row, 2)?))
        };
        self.0.with(|database| database.prepare_cached(select)?.query_map(params![run], given)?.collect())
    }
}

/// Stores the answer of an attempt.
pub(in crate::journal) fn insert_answer(database: &Connection, new: &NewAnswer) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO answers (key, said, session, run, step, attempt, cost, took_ms)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let NewAnswer { key, at, answer } = new;
    let took = answer.took_ms.and_then(|took| i64::try_from(took).ok());
    let row = params![key, answer.said, answer.session, at.run, at.step, at.attempt, answer.cost_usd, took];
    database.prepare_cached(insert)?.execute(row).map(drop)
}

/// Reads an answer from four columns, from this one on.
fn stored(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<StoredAnswer> {
    let took: Option<i64> = row.get(first + 3)?;
    Ok(StoredAnswer {
        said: row.get(first)?,
        session: row.get(first + 1)?,
        cost_usd: row.get(first + 2)?,
        took_ms: took.and_then(|took| u64::try_from(took).ok()),
    })
}
