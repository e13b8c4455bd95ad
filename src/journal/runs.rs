//! Reads runs from the journal without folding every event, and removes runs.

use super::error::JournalError;
use super::store::Journal;
use crate::engine::{AttemptRow, Event, RunKind, RunRow};
use crate::plan::Outline;
use rusqlite::TransactionBehavior::Immediate;
use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, params};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of a log is read at once, in bytes.
const PIECE: u64 = 256 << 10;

/// The process that is running in a root, or was the last to run there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The number of the run.
    pub run: i64,
    /// The process ID.
    pub pid: i32,
    /// The start time of that process, in clock ticks since boot.
    pub start_time: u64,
}

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

impl Journal {
    /// Returns all runs, the newest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn runs(&self) -> Result<Vec<RunRow>, JournalError> {
        let select = format!("{RUNS} GROUP BY id ORDER BY id DESC");
        let mut select = self.database.prepare(&select).map_err(self.failed())?;
        let rows = select.query_map([], run_row).map_err(self.failed())?;
        let mut rows: Vec<RunRow> = rows.collect::<rusqlite::Result<_>>().map_err(self.failed())?;
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
    pub fn last_run(&self) -> Result<Option<RunRow>, JournalError> {
        let select = format!("{RUNS} WHERE id = (SELECT max(id) FROM runs WHERE parent IS NULL) GROUP BY id");
        let row = self.database.query_row(&select, [], run_row).optional().map_err(self.failed())?;
        self.with_runs_of_batch(row)
    }

    /// Adds to a batch what its runs have used.
    fn with_runs_of_batch(&self, row: Option<RunRow>) -> Result<Option<RunRow>, JournalError> {
        let Some(mut row) = row else { return Ok(None) };
        if row.kind != RunKind::Batch {
            return Ok(Some(row));
        }
        let select = format!("{RUNS} WHERE parent = ?1 GROUP BY id");
        let mut select = self.database.prepare(&select).map_err(self.failed())?;
        for child in select.query_map([row.id], run_row).map_err(self.failed())? {
            row.add(&child.map_err(self.failed())?);
        }
        Ok(Some(row))
    }

    /// Returns the run that began next after this one, except those of a batch.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn run_after(&self, id: i64) -> Result<Option<RunRow>, JournalError> {
        let select =
            format!("{RUNS} WHERE id = (SELECT min(id) FROM runs WHERE id > ?1 AND parent IS NULL) GROUP BY id");
        self.database.query_row(&select, [id], run_row).optional().map_err(self.failed())
    }

    /// Returns one run; `None` if there is no run with this number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn run(&self, id: i64) -> Result<Option<RunRow>, JournalError> {
        let select = format!("{RUNS} WHERE id = ?1 GROUP BY id");
        let row = self.database.query_row(&select, [id], run_row).optional().map_err(self.failed())?;
        self.with_runs_of_batch(row)
    }

    /// Returns the attempts of all steps of a run, in the order in which they were planned.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn attempts(&self, run: i64) -> Result<Vec<AttemptRow>, JournalError> {
        let select = "SELECT iterations.step, iterations.name, round, iteration, attempt, outcome, took_ms, tokens, cost_usd
                      FROM iterations
                      JOIN (SELECT min(seq) AS planned, event ->> '$.event.at.step' AS s, event ->> '$.event.at.attempt' AS a
                            FROM events WHERE run = ?1 AND type = 'attemptPlanned' GROUP BY s, a)
                      ON s = step AND a = attempt WHERE run = ?1 ORDER BY planned";
        let mut select = self.database.prepare(select).map_err(self.failed())?;
        let row = |row: &Row<'_>| {
            let (step, name, attempt): (u32, String, u32) = (row.get(0)?, row.get(1)?, row.get(4)?);
            let folder = self.attempt_folder(run, step, &name, attempt).path().display().to_string();
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
        let rows = select.query_map([run], row).map_err(self.failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// Returns the outline of a run's plan; `None` for a run of an older format.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn outline(&self, run: i64) -> Result<Option<Outline>, JournalError> {
        let select = "SELECT outline FROM runs WHERE id = ?1";
        let json: Option<Option<String>> =
            self.database.query_row(select, [run], |row| row.get(0)).optional().map_err(self.failed())?;
        let Some(json) = json.flatten() else { return Ok(None) };
        let outline = serde_json::from_str(&json);
        outline.map(Some).map_err(|cause| JournalError::Event { path: self.path().to_path_buf(), cause })
    }

    /// Returns the last event of a run, or the last one of these types; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_event(&self, run: i64, types: &[&str]) -> Result<Option<Event>, JournalError> {
        let wanted = serde_json::to_string(types).unwrap_or_default();
        let select = "SELECT event FROM events
                      WHERE run = ?1 AND (?2 = '[]' OR type IN (SELECT value FROM json_each(?2)))
                      ORDER BY seq DESC LIMIT 1";
        let json: Option<String> = self
            .database
            .query_row(select, params![run, wanted], |row| row.get(0))
            .optional()
            .map_err(self.failed())?;
        let event = json.map(|json| serde_json::from_str(&json)).transpose();
        event.map_err(|cause| JournalError::Event { path: self.path().to_path_buf(), cause })
    }

    /// Returns the digest of an attempt's token.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn token_of(&self, run: i64, step: u32, attempt: u32) -> Result<Option<String>, JournalError> {
        let select = "SELECT token FROM iterations WHERE run = ?1 AND step = ?2 AND attempt = ?3";
        let row = self.database.query_row(select, params![run, step, attempt], |row| row.get(0));
        row.optional().map(Option::flatten).map_err(self.failed())
    }

    /// Returns the process that is running in this root, or was the last to run here.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn lease(&self) -> Result<Option<Lease>, JournalError> {
        let lease = self.database.query_row("SELECT run, pid, start_time FROM lease", [], lease_row);
        lease.optional().map_err(self.failed())
    }

    /// Checks the whole database for damage that SQLite can detect, including its indexes: queries do not find a row
    /// that is missing from an index.
    ///
    /// # Errors
    /// When damage is found.
    pub fn check(&self) -> Result<(), JournalError> {
        let found: String =
            self.database.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(self.failed())?;
        if found == "ok" { Ok(()) } else { Err(JournalError::Corrupt { path: self.path().to_path_buf(), found }) }
    }

    /// Returns the lengths of an attempt's standard output and standard error that were recorded at its end, in bytes.
    /// Searches the events of the run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn lengths(&self, run: i64, step: u32, attempt: u32) -> Result<Option<(u64, u64)>, JournalError> {
        let select = "SELECT json_extract(event, '$.event.finished.stdoutBytes'), json_extract(event, '$.event.finished.stderrBytes')
                      FROM events WHERE run = ?1 AND type = 'attemptFinished'
                      AND json_extract(event, '$.event.at.step') = ?2 AND json_extract(event, '$.event.at.attempt') = ?3";
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()))
        };
        self.database.query_row(select, params![run, step, attempt], row).optional().map_err(self.failed())
    }

    /// Returns the next piece of a file in an attempt's directory; empty at its end, and if there is no such file.
    ///
    /// # Errors
    /// When the file exists but cannot be read.
    pub fn piece(&self, path: &Path, offset: u64) -> Result<Vec<u8>, JournalError> {
        let read = || {
            let mut file = self.ours.open_below(path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut piece = Vec::new();
            file.take(PIECE).read_to_end(&mut piece)?;
            Ok(piece)
        };
        match read() {
            Err(error) if std::io::Error::kind(&error) == ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|cause| JournalError::Read { path: path.to_path_buf(), cause }),
        }
    }

    /// Removes a run, first its events and then its directory. Returns false for a run that is active by now.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn forget(&mut self, run: i64, is_at_work: impl Fn(Lease) -> bool) -> Result<bool, JournalError> {
        let (folder, path) = (self.run_folder(run), self.path().to_path_buf());
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        // If `runs` were a link, the directory of another program would be removed.
        match self.ours.below(["runs"]) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(self.ours.refused("runs", error)),
            _ => {}
        }
        // From here on, no process begins or resumes a run.
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        let lease = transaction.query_row("SELECT run, pid, start_time FROM lease", [], lease_row).map_err(failed)?;
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
            transaction.execute(delete, [run]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        // The log must not keep the removed rows either. A process that is reading now keeps it until it is done.
        let _ = self.database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        match std::fs::remove_dir_all(&folder) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(JournalError::Write { path: folder, cause }),
            _ => Ok(true),
        }
    }

    /// Whether an attempt has ended.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_over(&self, run: i64, step: u32, attempt: u32) -> Result<bool, JournalError> {
        let select = "SELECT outcome IS NOT NULL FROM iterations WHERE run = ?1 AND step = ?2 AND attempt = ?3";
        let row = self.database.query_row(select, params![run, step, attempt], |row| row.get(0));
        row.optional().map(|over| over.unwrap_or(true)).map_err(self.failed())
    }
}

fn lease_row(row: &Row<'_>) -> rusqlite::Result<Lease> {
    Ok(Lease { run: row.get(0)?, pid: row.get(1)?, start_time: row.get::<_, i64>(2)?.cast_unsigned() })
}
