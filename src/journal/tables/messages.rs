//! Messages that a person sends to a run in progress (`tell`). The command writes them, and the run reads them.

use crate::journal::database::Database;
use crate::journal::error::JournalError;
use rusqlite::params;

/// A message to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number, unique within the journal. A later message has a higher number.
    pub id: i64,
    /// What it says.
    pub text: String,
}

/// The messages in a journal.
#[derive(Debug, Clone, Copy)]
pub struct MessageTable<'a>(pub(in crate::journal) &'a Database);

impl MessageTable<'_> {
    /// Stores a message for a run, and returns its number.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn send(self, run: i64, text: &str, at: &str) -> Result<i64, JournalError> {
        let insert = "INSERT INTO messages (run, at, text) VALUES (?1, ?2, ?3)";
        self.0.with(|database| {
            database.execute(insert, params![run, at, text])?;
            Ok(database.last_insert_rowid())
        })
    }

    /// Returns the messages to a run that came after the one with the number `id`, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn after(self, run: i64, id: i64) -> Result<Vec<Message>, JournalError> {
        let select = "SELECT id, text FROM messages WHERE run = ?1 AND id > ?2 ORDER BY id";
        let message = |row: &rusqlite::Row<'_>| Ok(Message { id: row.get(0)?, text: row.get(1)? });
        self.0.with(|database| database.prepare_cached(select)?.query_map(params![run, id], message)?.collect())
    }
}
