//! What is recorded when a run begins, and the lease of the root that it takes.

use crate::plan::Outline;
use rusqlite::{Transaction, params};

/// The process that works in a root; pid 0 for none on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worker {
    /// The process ID.
    pub pid: i32,
    /// The start time in clock ticks since boot; with the pid it identifies one process (proc(5), stat field 22).
    pub start_time: u64,
}

impl Worker {
    /// No process of this machine.
    pub const NONE: Self = Self { pid: 0, start_time: 0 };
}

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
pub(super) fn insert_run(
    transaction: &Transaction<'_>,
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

/// Takes the lease of the root. Its number increases, so that an earlier holder can no longer write.
pub(super) fn lease(transaction: &Transaction<'_>, run: i64, worker: Worker) -> rusqlite::Result<i64> {
    let update = "UPDATE lease SET fence = fence + 1, run = ?1, pid = ?2, start_time = ?3";
    transaction.execute(update, params![run, worker.pid, worker.start_time.cast_signed()])?;
    transaction.query_row("SELECT fence FROM lease", [], |row| row.get(0))
}
