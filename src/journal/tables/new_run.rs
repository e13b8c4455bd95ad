//! What is recorded when a run begins.

use super::lease::Worker;
use crate::journal::database::WriteTransaction;
use crate::plan::Outline;
use rusqlite::params;

/// What is recorded when a run begins.
#[derive(Debug, Clone, Copy)]
pub struct NewRun<'a> {
    /// The process that runs it.
    pub worker: Worker,
    /// The start time, in UTC (RFC 3339).
    pub started: &'a str,
    /// The digest of the plan.
    pub digest: &'a str,
    /// The outline of the plan.
    pub outline: &'a Outline,
}

/// Adds a run, and returns its number: higher than that of any run that has left transcripts.
pub(in crate::journal) fn insert_run(
    transaction: &WriteTransaction<'_>,
    highest: i64,
    new: NewRun<'_>,
    outline: &str,
) -> rusqlite::Result<i64> {
    let insert = "INSERT INTO runs (id, started, chain, name, digest, outline)
                  VALUES (max(?1, (SELECT coalesce(max(id), 0) FROM runs)) + 1, ?2, ?3, ?4, ?5, ?6)";
    let (chain, name) = (&new.outline.chain, &new.outline.name);
    transaction.execute(insert, params![highest, new.started, chain, name, new.digest, outline])?;
    Ok(transaction.last_insert_rowid())
}
