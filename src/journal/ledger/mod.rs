//! Detects tampering with a journal: a running sum of the digests of all rows that decisions depend on, kept by
//! triggers in the commits of the rows. Another program that changes a row does not update the sum; the host remembers
//! the sum while it works. A program that recomputes the sums, as any program of the same user can, is not detected.

mod intact;
pub(super) mod tampering;

pub(super) use intact::LedgerWatch;

use super::folders::FileStat;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};

/// The tables that decisions depend on, with the relevant columns; the rest of `runs` follows from its events.
const TABLES: [(&str, &[&str]); 8] = [
    ("events", &["run", "seq", "at", "type", "event"]),
    ("runs", &["id", "started", "chain", "digest", "name", "outline", "task"]),
    ("tasks", &["id", "title", "spec", "tests", "added"]),
    ("task_order", &["task", "after"]),
    ("audit", &["id", "task", "run", "at", "from_status", "to_status", "actor", "notes", "rejection"]),
    ("disputes", &["id", "task", "run", "kind", "reason", "opened", "decision", "notes", "resolved"]),
    ("baselines", &["run", "deciding"]),
    ("messages", &["id", "run", "at", "text"]),
];

/// A sum of digests, modulo 2 to the 256th, least significant byte first.
pub(super) type RowSum = [u8; 32];

/// What is remembered of the journal between one commit of this process and the next check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of row changes so far; it never decreases.
    pub(super) links: i64,
    pub(super) sum: RowSum,
    /// SQLite's `data_version`, which changes with the commits of other connections.
    pub(super) version: i64,
    /// The database file and its log.
    pub(super) files: [Option<FileStat>; 2],
}

fn plus(sum: &mut RowSum, digest: &[u8]) {
    let mut carry = 0_u16;
    for (byte, add) in sum.iter_mut().zip(digest) {
        carry += u16::from(*byte) + u16::from(*add);
        [*byte, _] = carry.to_le_bytes();
        carry >>= 8;
    }
}

fn minus(sum: &mut RowSum, digest: &[u8]) {
    let mut borrow = 0_i16;
    for (byte, take) in sum.iter_mut().zip(digest) {
        borrow += i16::from(*byte) - i16::from(*take);
        [*byte, _] = borrow.to_le_bytes();
        borrow >>= 8;
    }
}

/// Returns the digest of a row: its table, and each value with its type and length, so that no two rows look alike.
fn row_digest<'a>(table: &str, values: impl Iterator<Item = ValueRef<'a>>) -> Vec<u8> {
    let mut hash = Sha256::new().chain_update(table).chain_update([0]);
    for value in values {
        let mut add = |kind: u8, bytes: &[u8]| {
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        match value {
            ValueRef::Null => hash.update([0]),
            ValueRef::Integer(number) => add(1, &number.to_le_bytes()),
            ValueRef::Real(number) => add(2, &number.to_le_bytes()),
            ValueRef::Text(text) => add(3, text),
            ValueRef::Blob(blob) => add(4, blob),
        }
    }
    hash.finalize().to_vec()
}

/// Registers the functions that the triggers of a connection call.
pub(super) fn register(database: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    let change = |context: &Context<'_>, by: fn(&mut RowSum, &[u8])| -> rusqlite::Result<Vec<u8>> {
        let wrong = || rusqlite::Error::UserFunctionError("not a valid sum".into());
        let mut sum: RowSum =
            context.get_raw(0).as_blob().ok().and_then(|sum| sum.try_into().ok()).ok_or_else(wrong)?;
        let table = context.get_raw(1).as_str().map_err(|_| wrong())?.to_string();
        by(&mut sum, &row_digest(&table, (2..context.len()).map(|index| context.get_raw(index))));
        Ok(sum.to_vec())
    };
    database.create_scalar_function("forkhestra_link", -1, flags, move |context| change(context, plus))?;
    database.create_scalar_function("forkhestra_unlink", -1, flags, move |context| change(context, minus))
}

/// Creates the ledger of a database that has none, over the existing rows.
pub(super) fn install(database: &Connection) -> rusqlite::Result<()> {
    for (table, _) in TABLES {
        watch(database, table)?;
    }
    let sum = rows(database)?;
    database.execute("UPDATE ledger SET sum = ?1", [&sum[..]]).map(drop)
}

/// Lets the ledger follow a table, which must still be empty unless the sum is computed afterwards.
pub(super) fn watch(database: &Connection, table: &str) -> rusqlite::Result<()> {
    for (table, columns) in TABLES.into_iter().filter(|(known, _)| *known == table) {
        let of = |row: &str| format!(", {row}.{}", columns.join(&format!(", {row}.")));
        let (new, old) = (of("NEW"), of("OLD"));
        let update = |sum: String| format!("BEGIN UPDATE ledger SET links = links + 1, sum = {sum}; END;");
        let linked = format!("forkhestra_link(sum, '{table}'{new})");
        let added = update(linked.clone());
        let removed = update(format!("forkhestra_unlink(sum, '{table}'{old})"));
        let changed = update(format!("forkhestra_unlink({linked}, '{table}'{old})"));
        let listed = columns.join(", ");
        database.execute_batch(&format!(
            "CREATE TRIGGER {table}_added AFTER INSERT ON {table} {added}
             CREATE TRIGGER {table}_removed AFTER DELETE ON {table} {removed}
             CREATE TRIGGER {table}_changed AFTER UPDATE OF {listed} ON {table} {changed}"
        ))?;
    }
    Ok(())
}

/// Computes the sum over all rows as they are.
pub(super) fn rows(database: &Connection) -> rusqlite::Result<RowSum> {
    let mut sum = RowSum::default();
    for (table, columns) in TABLES {
        let mut select = database.prepare(&format!("SELECT {} FROM {table}", columns.join(", ")))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values: rusqlite::Result<Vec<ValueRef<'_>>> =
                (0..columns.len()).map(|index| row.get_ref(index)).collect();
            plus(&mut sum, &row_digest(table, values?.into_iter()));
        }
    }
    Ok(sum)
}

/// Returns the number of changes and the sum that the ledger holds.
pub(super) fn kept(database: &Connection) -> rusqlite::Result<Option<(i64, RowSum)>> {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let mut select = database.prepare_cached("SELECT links, sum FROM ledger WHERE id = 1")?;
    let found: Option<(i64, Vec<u8>)> = select.query_row([], row).optional()?;
    Ok(found.and_then(|(links, sum)| Some((links, sum.try_into().ok()?))))
}

/// Whether the database is smaller than it was, or gone. If it was emptied, its log may still hold what it lost.
pub(super) fn is_shrunk(before: Head, now: [Option<FileStat>; 2]) -> bool {
    before.files[0].zip(now[0]).is_none_or(|(before, now)| now.0 < before.0)
}
