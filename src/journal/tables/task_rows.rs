//! The rows of tasks: written in the commits of events, and read back.

use crate::engine::Event;
use crate::journal::database::WriteTransaction;
use crate::task::{AuditRow, Change, Changes, DisputeKind, Follower, Status, Task, replay};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};

/// The task of the current run.
#[derive(Debug, Clone)]
pub(in crate::journal) struct Following {
    pub(in crate::journal) task: String,
    pub(in crate::journal) follower: Follower,
}

/// A task to be added.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// The ID; `None` for the next free number.
    pub id: Option<String>,
    /// What is to be done, in one line.
    pub title: String,
    /// The path of the file that specifies the task in full, from the root.
    pub spec: Option<String>,
    /// What shows that it is done, such as a test command.
    pub tests: Option<String>,
    /// The IDs of tasks that must be completed first.
    pub after: Vec<String>,
}

/// Applies an event to the task of its run, in the event's own commit.
pub(in crate::journal) fn project(
    transaction: &WriteTransaction<'_>,
    event: &Event,
    following: &mut Following,
) -> rusqlite::Result<()> {
    let Changes { changes, disputes, resolved } = following.follower.see(&event.event);
    if let Some((resolution, notes)) = &resolved {
        let settle = "UPDATE disputes SET decision = ?2, notes = ?3, resolved = ?4
                      WHERE task = ?1 AND resolved IS NULL AND kind <> 'minor'";
        transaction.execute(settle, params![following.task, resolution.name(), notes, event.at])?;
    }
    for change in &changes {
        insert_change(transaction, &following.task, Some(event.run), change, &event.at)?;
    }
    for (kind, reason) in &disputes {
        open_dispute(transaction, &following.task, event.run, *kind, reason, &event.at)?;
    }
    Ok(())
}

/// Adds the tasks that a planner proposes, except those with the title of a task that is still open.
pub(in crate::journal) fn add_proposed(
    transaction: &WriteTransaction<'_>,
    proposed: &[crate::verdict::ProposedTask],
    at: &str,
) -> rusqlite::Result<()> {
    let open = |transaction: &WriteTransaction<'_>| -> rusqlite::Result<Vec<(String, String)>> {
        let known = all_tasks(transaction)?.into_iter().filter(|task| !task.status.is_terminal());
        Ok(known.map(|task| (task.title, task.id)).collect())
    };
    let mut added = Vec::new();
    for task in proposed {
        if open(transaction)?.iter().any(|(title, _)| *title == task.title) {
            continue;
        }
        // An agent's text is passed on to agents, and forkhestra never runs it: no command is called `proposed:`.
        let tests = task.needs.tests.as_ref().map(|tests| format!("proposed: {tests}"));
        let spec = task.spec.clone();
        let new = NewTask { id: None, title: task.title.clone(), spec, tests, after: Vec::new() };
        let id = free_id(transaction)?;
        insert_task(transaction, &id, &new, at)?;
        added.push((id, &task.after));
    }
    // A task may wait for one that comes later in the list. A dependency that would close a cycle is dropped.
    let known = open(transaction)?;
    for (id, after) in added {
        for before in after.iter().filter_map(|title| known.iter().find(|(known, _)| known == title)) {
            if !waits(transaction, &before.1, &id)? {
                let insert = "INSERT OR IGNORE INTO task_order (task, after) VALUES (?1, ?2)";
                transaction.execute(insert, params![id, before.1])?;
            }
        }
    }
    Ok(())
}

/// Whether a task waits for another one, directly or indirectly.
pub(in crate::journal) fn waits(database: &Connection, task: &str, other: &str) -> rusqlite::Result<bool> {
    let select = "WITH RECURSIVE before (id) AS (SELECT ?1 UNION SELECT after FROM task_order JOIN before ON task = id)
                  SELECT 1 FROM before WHERE id = ?2";
    database.prepare_cached(select)?.exists([task, other])
}

pub(in crate::journal) fn exists(database: &Connection, id: &str) -> rusqlite::Result<bool> {
    database.prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?.exists([id])
}

/// Returns the next number that no task has.
pub(in crate::journal) fn free_id(database: &Connection) -> rusqlite::Result<String> {
    // Never one that a task had before: runs refer to their task by it.
    loop {
        database.execute("UPDATE task_number SET last = last + 1", [])?;
        let number: i64 = database.query_row("SELECT last FROM task_number", [], |row| row.get(0))?;
        if !exists(database, &number.to_string())? {
            return Ok(number.to_string());
        }
    }
}

pub(in crate::journal) fn insert_task(
    transaction: &WriteTransaction<'_>,
    id: &str,
    new: &NewTask,
    at: &str,
) -> rusqlite::Result<()> {
    let insert = "INSERT INTO tasks (id, title, spec, tests, added) VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.execute(insert, params![id, new.title, new.spec, new.tests, at])?;
    for before in &new.after {
        transaction.execute("INSERT OR IGNORE INTO task_order (task, after) VALUES (?1, ?2)", params![id, before])?;
    }
    Ok(())
}

pub(in crate::journal) fn insert_change(
    transaction: &WriteTransaction<'_>,
    task: &str,
    run: Option<i64>,
    change: &Change,
    at: &str,
) -> rusqlite::Result<()> {
    let insert = "INSERT INTO audit (task, run, at, from_status, to_status, actor, notes, rejection)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let (from, to) = (change.from.name(), change.to.name());
    let row = params![task, run, at, from, to, change.actor, change.notes, change.rejection];
    transaction.prepare_cached(insert)?.execute(row).map(drop)
}

/// Opens a dispute. A task has at most one open dispute: a second one is about the same conflict.
pub(in crate::journal) fn open_dispute(
    transaction: &WriteTransaction<'_>,
    task: &str,
    run: i64,
    kind: DisputeKind,
    reason: &str,
    at: &str,
) -> rusqlite::Result<()> {
    let insert = "INSERT OR IGNORE INTO disputes (task, run, kind, reason, opened) VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.execute(insert, params![task, run, kind.name(), reason, at]).map(drop)
}

/// Parses the name in a column. A name that this version does not know is an error, not another value.
pub(in crate::journal) fn known<T>(
    row: &Row<'_>,
    column: usize,
    named: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    let unknown =
        || rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("unknown value `{text}`").into());
    named(&text).ok_or_else(unknown)
}

pub(in crate::journal) fn status_of(database: &Connection, task: &str) -> rusqlite::Result<Status> {
    let trail = trail_of(database, task)?;
    Ok(replay(trail.iter().map(|row| &row.change)).0)
}

pub(in crate::journal) fn trail_of(database: &Connection, task: &str) -> rusqlite::Result<Vec<AuditRow>> {
    let select =
        "SELECT at, run, from_status, to_status, actor, notes, rejection FROM audit WHERE task = ?1 ORDER BY id";
    let mut select = database.prepare_cached(select)?;
    let rows = select.query_map([task], |row| {
        let status = |column| known(row, column, Status::named);
        let change =
            Change { from: status(2)?, to: status(3)?, actor: row.get(4)?, notes: row.get(5)?, rejection: row.get(6)? };
        Ok(AuditRow { at: row.get(0)?, run: row.get(1)?, change })
    })?;
    rows.collect()
}

pub(in crate::journal) fn all_tasks(database: &Connection) -> rusqlite::Result<Vec<Task>> {
    let mut select = database.prepare_cached("SELECT id, title, spec, tests, added FROM tasks ORDER BY rowid")?;
    let rows = select.query_map([], |row| {
        Ok(Task {
            id: row.get(0)?,
            title: row.get(1)?,
            spec: row.get(2)?,
            tests: row.get(3)?,
            added: row.get(4)?,
            after: Vec::new(),
            status: Status::Pending,
            rejections: 0,
            sent_back: 0,
            notes: None,
            cut_off: false,
        })
    })?;
    let mut tasks = rows.collect::<rusqlite::Result<Vec<Task>>>()?;
    let mut after = database.prepare_cached("SELECT after FROM task_order WHERE task = ?1 ORDER BY rowid")?;
    for task in &mut tasks {
        task.after = after.query_map([&task.id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let trail: Vec<Change> = trail_of(database, &task.id)?.into_iter().map(|row| row.change).collect();
        task.follow(&trail);
    }
    Ok(tasks)
}
