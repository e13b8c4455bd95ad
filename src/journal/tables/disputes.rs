//! The disputes about tasks, and how people resolve them.

use super::task_rows::{insert_change, known, status_of, trail_of};
use super::tasks::{Refused, change_tasks};
use crate::journal::database::Database;
use crate::journal::error::JournalError;
use crate::task::{Change, Dispute, DisputeKind, Status};
use rusqlite::{OptionalExtension, Row, params};

/// The disputes in a journal.
#[derive(Debug, Clone, Copy)]
pub struct DisputeTable<'a>(pub(in crate::journal) &'a Database);

impl DisputeTable<'_> {
    /// Returns all disputes, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn all(self) -> Result<Vec<Dispute>, JournalError> {
        let select = "SELECT id, task, kind, reason, opened, decision, notes, resolved FROM disputes ORDER BY id";
        let row = |row: &Row<'_>| {
            Ok(Dispute {
                id: row.get(0)?,
                task: row.get(1)?,
                kind: known(row, 2, DisputeKind::named)?,
                reason: row.get(3)?,
                opened: row.get(4)?,
                decision: row.get(5)?,
                notes: row.get(6)?,
                resolved: row.get(7)?,
            })
        };
        self.0.with(|database| database.prepare(select)?.query_map([], row)?.collect())
    }

    /// Removes a dispute. A task that it blocked returns to its previous status.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete(self, dispute: i64, at: &str) -> Result<Result<(String, Status), Refused>, JournalError> {
        change_tasks(self.0, |transaction| {
            let select = "SELECT task, resolved IS NULL AND kind <> 'minor' FROM disputes WHERE id = ?1";
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let found: Option<(String, bool)> = transaction.query_row(select, [dispute], row).optional()?;
            let Some((task, open)) = found else { return Ok(Err(Refused::Unknown(dispute.to_string()))) };
            transaction.execute("DELETE FROM disputes WHERE id = ?1", [dispute])?;
            let status = status_of(transaction, &task)?;
            if !open || status != Status::Disputed {
                return Ok(Ok((task, status)));
            }
            let trail = trail_of(transaction, &task)?;
            let before = trail.iter().rev().find(|row| row.change.to == Status::Disputed).map(|row| row.change.from);
            let notes = format!("dispute {dispute} was deleted");
            let to = before.unwrap_or(Status::InProgress);
            let change = Change { from: status, to, actor: "human".into(), notes, rejection: false };
            insert_change(transaction, &task, None, &change, at)?;
            Ok(Ok((task, to)))
        })
    }

    /// Resolves a dispute, and changes the status of its task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn resolve(
        self,
        dispute: i64,
        decision: &str,
        change: &dyn Fn(Status) -> Change,
        at: &str,
    ) -> Result<Result<String, Refused>, JournalError> {
        change_tasks(self.0, |transaction| {
            let select = "SELECT task, resolved IS NOT NULL, kind = 'minor', reason FROM disputes WHERE id = ?1";
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            let found = transaction.query_row(select, [dispute], row).optional()?;
            let Some((task, resolved, minor, reason)): Option<(String, bool, bool, String)> = found else {
                return Ok(Err(Refused::Unknown(dispute.to_string())));
            };
            if resolved {
                return Ok(Err(Refused::Resolved));
            }
            let mut change = change(status_of(transaction, &task)?);
            let update = "UPDATE disputes SET decision = ?2, notes = ?3, resolved = ?4 WHERE id = ?1";
            transaction.execute(update, params![dispute, decision, change.notes, at])?;
            // The next agent learns what was disputed, and how it was resolved.
            let words = if change.notes.is_empty() { String::new() } else { format!(": {}", change.notes) };
            change.notes = format!("Disputed: {reason}\n\nA human resolved it as {decision}{words}");
            // A dispute that blocks nothing changes no status.
            if !minor {
                insert_change(transaction, &task, None, &change, at)?;
            }
            Ok(Ok(task))
        })
    }
}
