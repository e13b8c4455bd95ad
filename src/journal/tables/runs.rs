//! The runs and their attempts, read without folding events.

use super::lease::{Lease, current_lease};
use crate::engine::{AttemptRow, RunKind, RunRow};
use crate::journal::database::Database;
use crate::journal::error::JournalError;
use crate::journal::run_files::RunFiles;
use crate::plan::Outline;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

const RUNS: &str = "
    SELECT id, started, ended, chain, runs.name, runs.outcome, count(step), coalesce(sum(took_ms), 0), sum(tokens), sum(cost_usd),
           EXISTS (SELECT 1 FROM events WHERE events.run = id),
           EXISTS (SELECT 1 FROM events WHERE events.run = id AND seq = 2 AND type = 'evaluation'),
           EXISTS (SELECT 1 FROM events WHERE events.run = id AND seq = 2 AND type = 'batch'),
           parent, unit,
           (SELECT event ->> '$.event.task.id' || ': ' || (event ->> '$.event.task.title')
            FROM events WHERE events.run = id AND seq = 1)
    FROM runs LEFT JOIN iterations ON run = id";

/// Reads a column as unsigned. SQLite's integers are signed, but these values are never negative.
fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned))
}

/// Parses an outcome. An unknown outcome is an error; it does not mean that the run continues.
fn outcome<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let json: Option<String> = row.get(column)?;
    let read = |json: String| serde_json::from_str(&json);
    let damaged = |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error));
    json.map(read).transpose().map_err(damaged)
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        id: row.get(0)?,
        started: row.get(1)?,
        ended: row.get(2)?,
        chain: row.get(3)?,
        name: row.get(4)?,
        outcome: outcome(row, 5)?,
        attempts: row.get(6)?,
        task: row.get(15)?,
        batch: row.get(13)?,
        unit: row.get(14)?,
        took_ms: row.get::<_, i64>(7)?.cast_unsigned(),
        tokens: unsigned(row, 8)?,
        cost_usd: row.get(9)?,
        began: row.get(10)?,
        kind: match (row.get(11)?, row.get(12)?) {
            (true, _) => RunKind::Evaluation,
            (_, true) => RunKind::Batch,
            _ => RunKind::Chain,
        },
    })
}

/// The runs in a journal.
#[derive(Debug, Clone, Copy)]
pub struct RunTable<'a> {
    pub(in crate::journal) database: &'a Database,
    pub(in crate::journal) files: &'a RunFiles,
}

impl RunTable<'_> {
    /// Returns all runs, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn all(self) -> Result<Vec<RunRow>, JournalError> {
        let select = format!("{RUNS} GROUP BY id ORDER BY id DESC");
        let mut rows: Vec<RunRow> =
            self.database.with(|database| database.prepare(&select)?.query_map([], run_row)?.collect())?;
        let mut sums: HashMap<i64, Vec<RunRow>> = HashMap::new();
        for row in &rows {
            if let Some(batch) = row.batch {
                sums.entry(batch).or_default().push(row.clone());
            }
        }
        for row in &mut rows {
            sums.remove(&row.id).into_iter().flatten().for_each(|child| row.add(&child));
        }
        Ok(rows)
    }

    /// Returns the run that began last, except those of a batch.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last(self) -> Result<Option<RunRow>, JournalError> {
        let select = format!("{RUNS} WHERE id = (SELECT max(id) FROM runs WHERE parent IS NULL) GROUP BY id");
        self.database
            .with(|database| with_runs_of_batch(database, database.query_row(&select, [], run_row).optional()?))
    }

    /// Returns the run that began next after this one, except those of a batch.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn after(self, id: i64) -> Result<Option<RunRow>, JournalError> {
        let select =
            format!("{RUNS} WHERE id = (SELECT min(id) FROM runs WHERE id > ?1 AND parent IS NULL) GROUP BY id");
        self.database.with(|database| database.query_row(&select, [id], run_row).optional())
    }

    /// Returns one run; `None` if there is no run with this number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn get(self, id: i64) -> Result<Option<RunRow>, JournalError> {
        let select = format!("{RUNS} WHERE id = ?1 GROUP BY id");
        let row = |database: &Connection| database.query_row(&select, [id], run_row).optional();
        self.database.with(|database| with_runs_of_batch(database, row(database)?))
    }

    /// Whether there is a run with this number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn exists(self, id: i64) -> Result<bool, JournalError> {
        self.database.with(|database| run_exists(database, id))
    }

    /// Returns the numbers of all batches, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn batches(self) -> Result<Vec<i64>, JournalError> {
        let select = "SELECT run FROM events WHERE seq = 2 AND type = 'batch' ORDER BY run DESC";
        self.database.with(|database| database.prepare(select)?.query_map([], |row| row.get(0))?.collect())
    }

    /// Returns the attempts of all steps of a run, in the order in which they were planned.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn attempts(self, run: i64) -> Result<Vec<AttemptRow>, JournalError> {
        let select = "SELECT iterations.step, iterations.name, round, iteration, attempt, outcome, took_ms, tokens, cost_usd
                      FROM iterations
                      JOIN (SELECT min(seq) AS planned, event ->> '$.event.at.step' AS s, event ->> '$.event.at.attempt' AS a
                            FROM events WHERE run = ?1 AND type = 'attemptPlanned' GROUP BY s, a)
                      ON s = step AND a = attempt WHERE run = ?1 ORDER BY planned";
        let row = |row: &Row<'_>| {
            let (step, name, attempt): (u32, String, u32) = (row.get(0)?, row.get(1)?, row.get(4)?);
            let folder = self.files.attempt_folder(run, step, &name, attempt).path().display().to_string();
            Ok(AttemptRow {
                step,
                name,
                round: row.get(2)?,
                iteration: row.get(3)?,
                attempt,
                outcome: outcome(row, 5)?,
                took_ms: unsigned(row, 6)?,
                tokens: unsigned(row, 7)?,
                cost_usd: row.get(8)?,
                session: None,
                folder,
            })
        };
        self.database.with(|database| database.prepare(select)?.query_map([run], row)?.collect())
    }

    /// Whether an attempt has ended.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_over(self, run: i64, step: u32, attempt: u32) -> Result<bool, JournalError> {
        let select = "SELECT outcome IS NOT NULL FROM iterations WHERE run = ?1 AND step = ?2 AND attempt = ?3";
        let row = params![run, step, attempt];
        let over = self.database.with(|database| database.query_row(select, row, |row| row.get(0)).optional())?;
        Ok(over.unwrap_or(true))
    }

    /// Returns the digest of an attempt's token.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn token_of(self, run: i64, step: u32, attempt: u32) -> Result<Option<String>, JournalError> {
        let select = "SELECT token FROM iterations WHERE run = ?1 AND step = ?2 AND attempt = ?3";
        let row = params![run, step, attempt];
        let token = self.database.with(|database| database.query_row(select, row, |row| row.get(0)).optional())?;
        Ok(token.flatten())
    }

    /// Returns the outline of a run's plan; `None` for a run of an older format.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn outline(self, run: i64) -> Result<Option<Outline>, JournalError> {
        let select = "SELECT outline FROM runs WHERE id = ?1";
        let json: Option<Option<String>> =
            self.database.with(|database| database.query_row(select, [run], |row| row.get(0)).optional())?;
        let Some(json) = json.flatten() else { return Ok(None) };
        let outline = serde_json::from_str(&json);
        outline.map(Some).map_err(|cause| JournalError::Event { path: self.database.path().to_path_buf(), cause })
    }

    /// Returns the protected files as they were when a run began, as JSON; `None` if nothing was stored.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn baseline(self, run: i64) -> Result<Option<String>, JournalError> {
        let select = "SELECT deciding FROM baselines WHERE run = ?1";
        self.database.with(|database| database.query_row(select, [run], |row| row.get(0)).optional())
    }

    /// Removes the rows of a run. Returns false for a run that is active by now.
    pub(in crate::journal) fn remove(self, run: i64, is_at_work: impl Fn(Lease) -> bool) -> Result<bool, JournalError> {
        // From here on, no process begins or resumes a run.
        let removed = self.database.change(|transaction| {
            let lease = current_lease(transaction)?;
            if lease.run == run && is_at_work(lease) {
                return Ok(false);
            }
            for delete in [
                "DELETE FROM events WHERE run = ?1",
                "DELETE FROM iterations WHERE run = ?1",
                "DELETE FROM baselines WHERE run = ?1",
                "DELETE FROM messages WHERE run = ?1",
                "DELETE FROM runs WHERE id = ?1",
            ] {
                transaction.execute(delete, [run])?;
            }
            Ok(true)
        })?;
        if removed {
            self.database.empty_log();
        }
        Ok(removed)
    }
}

/// Whether there is a run with this number.
pub(in crate::journal) fn run_exists(database: &Connection, id: i64) -> rusqlite::Result<bool> {
    database.prepare_cached("SELECT 1 FROM runs WHERE id = ?1")?.exists([id])
}

/// Adds to a batch what its runs have used.
fn with_runs_of_batch(database: &Connection, row: Option<RunRow>) -> rusqlite::Result<Option<RunRow>> {
    let Some(mut row) = row else { return Ok(None) };
    if row.kind != RunKind::Batch {
        return Ok(Some(row));
    }
    let mut select = database.prepare(&format!("{RUNS} WHERE parent = ?1 GROUP BY id"))?;
    for child in select.query_map([row.id], run_row)? {
        row.add(&child?);
    }
    Ok(Some(row))
}
