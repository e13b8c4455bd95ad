//! Messages that a person sends to a run in progress (`tell`). The command writes them, and the run reads them.

use super::error::JournalError;
use super::store::Journal;
use rusqlite::params;

/// A message to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number, unique within the journal. A later message has a higher number.
    pub id: i64,
    /// What it says.
    pub text: String,
}

impl Journal {
    /// Stores a message for a run, and returns its number.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn send_message(&self, run: i64, text: &str, at: &str) -> Result<i64, JournalError> {
        let insert = "INSERT INTO messages (run, at, text) VALUES (?1, ?2, ?3)";
        self.database.execute(insert, params![run, at, text]).map_err(self.failed())?;
        Ok(self.database.last_insert_rowid())
    }

    /// Returns the messages to a run that came after the one with the number `id`, in order.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn messages_after(&self, run: i64, id: i64) -> Result<Vec<Message>, JournalError> {
        let read = || -> rusqlite::Result<Vec<Message>> {
            let mut select =
                self.database.prepare_cached("SELECT id, text FROM messages WHERE run = ?1 AND id > ?2 ORDER BY id")?;
            let message = |row: &rusqlite::Row<'_>| Ok(Message { id: row.get(0)?, text: row.get(1)? });
            select.query_map(params![run, id], message)?.collect()
        };
        read().map_err(self.failed())
    }
}
