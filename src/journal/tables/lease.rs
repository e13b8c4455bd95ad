//! The lease of a root: which process may write its journal.

use crate::journal::database::WriteTransaction;
use rusqlite::{Connection, Row, params};

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

/// Takes the lease of the root. Its number increases, so that an earlier holder can no longer write.
pub(in crate::journal) fn take_lease(
    transaction: &WriteTransaction<'_>,
    run: i64,
    worker: Worker,
) -> rusqlite::Result<i64> {
    let update = "UPDATE lease SET fence = fence + 1, run = ?1, pid = ?2, start_time = ?3";
    transaction.execute(update, params![run, worker.pid, worker.start_time.cast_signed()])?;
    current_fence(transaction)
}

/// Returns the number of the current lease.
pub(in crate::journal) fn current_fence(database: &Connection) -> rusqlite::Result<i64> {
    database.prepare_cached("SELECT fence FROM lease")?.query_row([], |row| row.get(0))
}

/// Returns the current lease.
pub(in crate::journal) fn current_lease(database: &Connection) -> rusqlite::Result<Lease> {
    let lease = |row: &Row<'_>| {
        Ok(Lease { run: row.get(0)?, pid: row.get(1)?, start_time: row.get::<_, i64>(2)?.cast_unsigned() })
    };
    database.query_row("SELECT run, pid, start_time FROM lease", [], lease)
}
