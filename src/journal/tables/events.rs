//! The events of runs, append only: each with its number in the run and a checksum.

use super::task_rows;
use crate::engine::{Event, EventKind, RunSummary};
use crate::journal::database::{Database, WriteTransaction};
use crate::journal::error::JournalError;
use rusqlite::{OptionalExtension, Row, params};
use serde::ser::Error;
use sha2::{Digest, Sha256};

/// The events in a journal.
#[derive(Debug, Clone, Copy)]
pub struct EventTable<'a>(pub(in crate::journal) &'a Database);

impl EventTable<'_> {
    /// Returns the events of a run, in order and complete.
    ///
    /// # Errors
    /// When they cannot be read, or differ from what was written.
    pub fn of(self, run: i64) -> Result<Vec<Event>, JournalError> {
        self.after(run, 0)
    }

    /// Returns the events of a run after the one with this number.
    ///
    /// # Errors
    /// When they cannot be read, or differ from what was written.
    pub fn after(self, run: i64, seq: u64) -> Result<Vec<Event>, JournalError> {
        let mut events = Vec::new();
        self.each_after(run, seq, |event| events.push(event))?;
        Ok(events)
    }

    /// Returns the summary of a run. Its events are read one by one, not all into memory.
    ///
    /// # Errors
    /// When they cannot be read, or differ from what was written.
    pub fn summary(self, run: i64) -> Result<RunSummary, JournalError> {
        let mut summary = RunSummary::default();
        self.each_after(run, 0, |event| summary.see(&event))?;
        Ok(summary)
    }

    fn each_after(self, run: i64, seq: u64, mut each: impl FnMut(Event)) -> Result<(), JournalError> {
        let (failed, path) = (self.0.failed(), || self.0.path().to_path_buf());
        let select = "SELECT seq, event, sum FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq";
        let mut select = self.0.connection().prepare_cached(select).map_err(failed)?;
        let columns =
            |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?));
        let rows = select.query_map(params![run, seq.cast_signed()], columns).map_err(failed)?;
        for (row, expected) in rows.zip(seq + 1..) {
            let (seq, json, kept) = row.map_err(failed)?;
            if seq != expected.cast_signed() || kept.is_some_and(|kept| kept != sum(expected, &json)) {
                return Err(JournalError::Damaged { path: path(), run, seq: expected });
            }
            each(serde_json::from_str(&json).map_err(|cause| JournalError::Event { path: path(), cause })?);
        }
        Ok(())
    }

    /// Returns the last event of a run, or the last one of these types; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last(self, run: i64, types: &[&str]) -> Result<Option<Event>, JournalError> {
        let wanted = serde_json::to_string(types).unwrap_or_default();
        let select = "SELECT event FROM events
                      WHERE run = ?1 AND (?2 = '[]' OR type IN (SELECT value FROM json_each(?2)))
                      ORDER BY seq DESC LIMIT 1";
        let json: Option<String> =
            self.0.with(|database| database.query_row(select, params![run, wanted], |row| row.get(0)).optional())?;
        let event = json.map(|json| serde_json::from_str(&json)).transpose();
        event.map_err(|cause| JournalError::Event { path: self.0.path().to_path_buf(), cause })
    }

    /// Returns the number of the last event of a run; 0 if it has none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_number(self, run: i64) -> Result<u64, JournalError> {
        let select = "SELECT coalesce(max(seq), 0) FROM events WHERE run = ?1";
        let seq: i64 = self.0.with(|database| database.query_row(select, [run], |row| row.get(0)))?;
        Ok(seq.cast_unsigned())
    }

    /// Returns the lengths of an attempt's standard output and standard error that were recorded at its end, in bytes.
    /// Searches the events of the run.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn lengths(self, run: i64, step: u32, attempt: u32) -> Result<Option<(u64, u64)>, JournalError> {
        let select = "SELECT json_extract(event, '$.event.finished.stdoutBytes'), json_extract(event, '$.event.finished.stderrBytes')
                      FROM events WHERE run = ?1 AND type = 'attemptFinished'
                      AND json_extract(event, '$.event.at.step') = ?2 AND json_extract(event, '$.event.at.attempt') = ?3";
        let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, i64>(1)?.cast_unsigned()));
        self.0.with(|database| database.query_row(select, params![run, step, attempt], row).optional())
    }

    /// Returns the trees of the snapshots that the runs in the journal refer to.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn trees(self) -> Result<Vec<String>, JournalError> {
        self.0.with(|database| {
            let mut select = database.prepare(
                "SELECT event ->> '$.event.tree' FROM events WHERE type IN ('runStarted', 'runResumed')
                 UNION SELECT event ->> '$.event.found' FROM events WHERE type = 'runStarted'
                 UNION SELECT event ->> '$.event.finished.tree' FROM events WHERE type = 'attemptFinished'",
            )?;
            let found = select.query_map([], |row| row.get::<_, Option<String>>(0))?;
            found.filter_map(Result::transpose).collect()
        })
    }
}

/// Adds an event, and updates the tables that are read without replaying events. `token` is the digest of the token of
/// an attempt that is planned.
pub(in crate::journal) fn insert_event(
    database: &Database,
    transaction: &WriteTransaction<'_>,
    event: &Event,
    token: Option<&str>,
) -> Result<(), JournalError> {
    let unwritable = |cause| JournalError::Event { path: database.path().to_path_buf(), cause };
    let json = serde_json::to_string(event).map_err(unwritable)?;
    let kind = type_of_event(&json).ok_or_else(|| unwritable(serde_json::Error::custom("an event has no type")))?;
    let insert = "INSERT INTO events (run, seq, at, type, event, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = params![event.run, event.seq.cast_signed(), event.at, kind, json, sum(event.seq, &json)];
    let inserted = transaction.prepare_cached(insert).and_then(|mut insert| insert.execute(row));
    inserted.and_then(|_| project(transaction, event, token)).map_err(database.failed())
}

/// Updates the tables that are read without replaying events.
fn project(transaction: &WriteTransaction<'_>, event: &Event, token: Option<&str>) -> rusqlite::Result<()> {
    match &event.event {
        EventKind::AttemptPlanned { at, .. } => {
            let insert = "INSERT OR REPLACE INTO iterations (run, step, attempt, name, round, iteration, token)
                          VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let row = params![event.run, at.step, at.attempt, at.name, at.round, at.iteration, token];
            transaction.prepare_cached(insert)?.execute(row)?;
        }
        EventKind::AttemptFinished { at, outcome, finished, .. } => {
            let update = "UPDATE iterations SET outcome = ?4, took_ms = ?5, tokens = ?6, cost_usd = ?7
                          WHERE run = ?1 AND step = ?2 AND attempt = ?3";
            let outcome = serde_json::to_string(outcome).unwrap_or_default();
            let tokens = finished.agent.tokens.map(|tokens| tokens.total().cast_signed());
            let cost = finished.agent.tokens.and_then(|tokens| tokens.cost_usd);
            let took = finished.took_ms.cast_signed();
            let row = params![event.run, at.step, at.attempt, outcome, took, tokens, cost];
            transaction.prepare_cached(update)?.execute(row)?;
        }
        EventKind::RunFinished { outcome } => {
            let outcome = serde_json::to_string(outcome).unwrap_or_default();
            let update = "UPDATE runs SET ended = ?2, outcome = ?3 WHERE id = ?1";
            transaction.execute(update, params![event.run, event.at, outcome])?;
        }
        EventKind::TasksProposed { tasks, .. } => task_rows::add_proposed(transaction, tasks, &event.at)?,
        EventKind::RunResumed { .. } => {
            transaction.execute("UPDATE runs SET ended = NULL, outcome = NULL WHERE id = ?1", [event.run])?;
        }
        _ => {}
    }
    Ok(())
}

/// A checksum that reveals a damaged event: eight bytes of SHA-256 over its number and text.
fn sum(seq: u64, json: &str) -> i64 {
    let digest = Sha256::new().chain_update(seq.to_le_bytes()).chain_update(json).finalize();
    digest.iter().take(8).fold(0, |sum, byte| sum << 8 | i64::from(*byte))
}

/// Returns the type of an event, such as `runStarted`. `json` is an event as serde writes it: the type is the first key
/// of `event`. A quote within a string is escaped, so that no text in it looks like this key.
fn type_of_event(json: &str) -> Option<&str> {
    let (_, rest) = json.split_once(r#""event":{"type":""#)?;
    rest.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::BatchEvent;

    fn json(unit: Option<String>, event: EventKind) -> String {
        let at = "2026-01-01T00:00:00Z".into();
        serde_json::to_string(&Event { version: 1, run: 1, seq: 1, at, worked_ms: None, unit, event }).unwrap()
    }

    #[test]
    fn the_type_of_an_event_is_that_of_its_kind_whatever_its_texts_say() {
        let text = r#""event":{"type":"runFinished""#.to_string();
        let told = json(Some(text.clone()), EventKind::MessageReceived { id: 1, text });
        assert!(told.find("runFinished") < told.find("messageReceived"), "{told}");
        assert_eq!(type_of_event(&told), Some("messageReceived"));
        assert_eq!(type_of_event(&json(None, EventKind::RunPaused)), Some("runPaused"));
        let conflicted = BatchEvent::Conflicted { task: "1".into(), files: Vec::new() };
        assert_eq!(type_of_event(&json(None, EventKind::Batch { event: conflicted })), Some("batch"));
        assert_eq!(type_of_event("{}"), None);
    }

    #[test]
    fn a_cost_is_the_same_after_it_was_written_and_read() {
        for count in 1..20_000 {
            let cost = f64::from(count) * 0.1 + 0.007;
            let read: f64 = serde_json::from_str(&serde_json::to_string(&cost).unwrap()).unwrap();
            assert_eq!(read.to_bits(), cost.to_bits());
        }
    }
}
