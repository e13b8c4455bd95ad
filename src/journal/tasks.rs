//! Tasks, their audit trail and their disputes: tables beside the events, changed in the same commits.

use super::error::JournalError;
use super::store::Journal;
use crate::plan::Outline;
use crate::run::Event;
use crate::task::{AuditRow, Change, Changes, Dispute, DisputeKind, Follower, Status, Task, replay};
use rusqlite::TransactionBehavior::Immediate;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

/// The task of the run that works here.
#[derive(Debug, Clone)]
pub(super) struct Following {
    task: String,
    follower: Follower,
}

/// A task to be added.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// Its name; none is the next free number.
    pub id: Option<String>,
    /// What is to be done, in a line.
    pub title: String,
    /// The file that says it whole.
    pub spec: Option<String>,
    /// What shows that it is done.
    pub tests: Option<String>,
    /// Tasks that come first.
    pub after: Vec<String>,
}

/// Why a command about tasks was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A task of this name is there already.
    Exists,
    /// There is no task, or no dispute, of this name.
    Unknown(String),
    /// Its status is another one by now.
    Moved(Status),
    /// It has an open dispute.
    Disputed(i64),
    /// The dispute is resolved.
    Resolved,
}

impl Journal {
    /// From now on the run's events move this task, in the same commits; the run is known as one of it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn follow(&mut self, run: i64, task: &str, outline: &Outline) -> Result<(), JournalError> {
        let trail = self.trail(task)?;
        let (status, rejections) = replay(trail.iter().map(|row| &row.change));
        let since = trail.iter().rposition(|row| row.change.to == Status::Pending).map_or(0, |at| at + 1);
        let rejects = trail[since..].iter().filter(|row| row.change.rejection);
        let history = rejects.enumerate().map(|(index, row)| {
            let first = row.change.notes.lines().next().unwrap_or_default();
            format!("{}. {}: {first}", index + 1, row.change.actor)
        });
        let follower = Follower::new(outline, status, rejections).after(history.collect());
        self.following = Some(Following { task: task.into(), follower });
        let update = "UPDATE runs SET task = ?2 WHERE id = ?1";
        self.database.execute(update, params![run, task]).map(drop).map_err(self.failed())
    }

    /// Every task, in the order in which they were added.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tasks(&self) -> Result<Vec<Task>, JournalError> {
        all_tasks(&self.database).map_err(self.failed())
    }

    /// One task.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn task(&self, id: &str) -> Result<Option<Task>, JournalError> {
        Ok(self.tasks()?.into_iter().find(|task| task.id == id))
    }

    /// Everything that happened to a task, in order.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn trail(&self, task: &str) -> Result<Vec<AuditRow>, JournalError> {
        trail_of(&self.database, task).map_err(self.failed())
    }

    /// The runs that worked on a task.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn runs_of(&self, task: &str) -> Result<Vec<i64>, JournalError> {
        let mut select =
            self.database.prepare("SELECT id FROM runs WHERE task = ?1 ORDER BY id").map_err(self.failed())?;
        let rows = select.query_map([task], |row| row.get(0)).map_err(self.failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// The commit that the work on a task began at: that of its first run since it was added or reset.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn base_of(&self, task: &str) -> Result<Option<String>, JournalError> {
        let select = "SELECT event ->> '$.event.base' FROM events JOIN runs ON runs.id = run
                      WHERE type = 'runStarted' AND task = ?1 AND event ->> '$.event.base' IS NOT NULL
                      AND started >= coalesce((SELECT max(at) FROM audit WHERE audit.task = ?1 AND to_status = 'pending'), '')
                      ORDER BY run LIMIT 1";
        self.database.query_row(select, [task], |row| row.get(0)).optional().map_err(self.failed())
    }

    /// Adds a task, and returns its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add_task(&mut self, new: &NewTask, at: &str) -> Result<Result<String, Refused>, JournalError> {
        self.change(|transaction| {
            let exists = |id: &str| exists(transaction, id);
            let id = match &new.id {
                Some(id) if exists(id)? => return Ok(Err(Refused::Exists)),
                Some(id) => id.clone(),
                None => free_id(transaction)?,
            };
            for before in &new.after {
                if !exists(before)? {
                    return Ok(Err(Refused::Unknown(before.clone())));
                }
            }
            insert_task(transaction, &id, new, at)?;
            Ok(Ok(id))
        })
    }

    /// Moves a task by a human's word. `from` is the status that the human saw.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn move_task(&mut self, id: &str, change: &Change, at: &str) -> Result<Result<(), Refused>, JournalError> {
        self.change(|transaction| {
            if !exists(transaction, id)? {
                return Ok(Err(Refused::Unknown(id.into())));
            }
            let status = status_of(transaction, id)?;
            if status != change.from {
                return Ok(Err(Refused::Moved(status)));
            }
            // What a human decides about the task settles what was open.
            let settle = "UPDATE disputes SET decision = 'custom', notes = ?2, resolved = ?3
                          WHERE task = ?1 AND resolved IS NULL AND kind <> 'minor'";
            transaction.execute(settle, params![id, change.notes, at])?;
            insert_change(transaction, id, None, change, at)?;
            Ok(Ok(()))
        })
    }

    /// Removes a task with its trail and its disputes; what waited for it waits no longer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete_task(&mut self, id: &str) -> Result<Result<(), Refused>, JournalError> {
        self.change(|transaction| {
            if !exists(transaction, id)? {
                return Ok(Err(Refused::Unknown(id.into())));
            }
            for delete in [
                "DELETE FROM task_order WHERE task = ?1 OR after = ?1",
                "DELETE FROM disputes WHERE task = ?1",
                "DELETE FROM audit WHERE task = ?1",
                "UPDATE runs SET task = NULL WHERE task = ?1",
                "DELETE FROM tasks WHERE id = ?1",
            ] {
                transaction.execute(delete, [id])?;
            }
            Ok(Ok(()))
        })
    }

    /// Every dispute, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn disputes(&self) -> Result<Vec<Dispute>, JournalError> {
        let select = "SELECT id, task, kind, reason, opened, decision, notes, resolved FROM disputes ORDER BY id";
        let mut select = self.database.prepare(select).map_err(self.failed())?;
        let row = |row: &Row<'_>| {
            Ok(Dispute {
                id: row.get(0)?,
                task: row.get(1)?,
                kind: DisputeKind::named(&row.get::<_, String>(2)?).unwrap_or(DisputeKind::System),
                reason: row.get(3)?,
                opened: row.get(4)?,
                decision: row.get(5)?,
                notes: row.get(6)?,
                resolved: row.get(7)?,
            })
        };
        let rows = select.query_map([], row).map_err(self.failed())?;
        rows.collect::<rusqlite::Result<_>>().map_err(self.failed())
    }

    /// Resolves a dispute, and moves its task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn resolve_dispute(
        &mut self,
        dispute: i64,
        decision: &str,
        change: &dyn Fn(Status) -> Change,
        at: &str,
    ) -> Result<Result<String, Refused>, JournalError> {
        self.change(|transaction| {
            let select = "SELECT task, resolved IS NOT NULL, kind = 'minor' FROM disputes WHERE id = ?1";
            let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let found = transaction.query_row(select, [dispute], row).optional()?;
            let Some((task, resolved, minor)): Option<(String, bool, bool)> = found else {
                return Ok(Err(Refused::Unknown(dispute.to_string())));
            };
            if resolved {
                return Ok(Err(Refused::Resolved));
            }
            let change = change(status_of(transaction, &task)?);
            let update = "UPDATE disputes SET decision = ?2, notes = ?3, resolved = ?4 WHERE id = ?1";
            transaction.execute(update, params![dispute, decision, change.notes, at])?;
            // What blocks nothing moves nothing.
            if !minor {
                insert_change(transaction, &task, None, &change, at)?;
            }
            Ok(Ok(task))
        })
    }

    fn change<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<T, Refused>>,
    ) -> Result<Result<T, Refused>, JournalError> {
        let path = self.path().to_path_buf();
        let failed = |cause| JournalError::Database { path: path.clone(), cause };
        let transaction = self.database.transaction_with_behavior(Immediate).map_err(failed)?;
        let done = work(&transaction).map_err(failed)?;
        if done.is_ok() {
            transaction.commit().map_err(failed)?;
        }
        Ok(done)
    }
}

/// What an event means for the task of its run, in the event's own commit.
pub(super) fn project(transaction: &Transaction<'_>, event: &Event, following: &mut Following) -> rusqlite::Result<()> {
    let Changes { changes, disputes } = following.follower.see(&event.event);
    for change in &changes {
        insert_change(transaction, &following.task, Some(event.run), change, &event.at)?;
    }
    for (kind, reason) in &disputes {
        open_dispute(transaction, &following.task, event.run, *kind, reason, &event.at)?;
    }
    Ok(())
}

/// Adds what a planner proposes; a task of the same title that is not over is the same one.
pub(super) fn add_proposed(
    transaction: &Transaction<'_>,
    proposed: &[crate::verdict::Task],
    at: &str,
) -> rusqlite::Result<()> {
    let open = |transaction: &Transaction<'_>| -> rusqlite::Result<Vec<(String, String)>> {
        let known = all_tasks(transaction)?.into_iter().filter(|task| !task.status.is_terminal());
        Ok(known.map(|task| (task.title, task.id)).collect())
    };
    let mut added = Vec::new();
    for task in proposed {
        if open(transaction)?.iter().any(|(title, _)| *title == task.title) {
            continue;
        }
        let (spec, tests) = (task.spec.clone(), task.needs.tests.clone());
        let new = NewTask { id: None, title: task.title.clone(), spec, tests, after: Vec::new() };
        let id = free_id(transaction)?;
        insert_task(transaction, &id, &new, at)?;
        added.push((id, &task.after));
    }
    // A title that comes first may stand later in the list. What would wait for itself does not wait.
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

/// Whether a task waits for another one, at whatever distance.
fn waits(database: &Connection, task: &str, other: &str) -> rusqlite::Result<bool> {
    let select = "WITH RECURSIVE before (id) AS (SELECT ?1 UNION SELECT after FROM task_order JOIN before ON task = id)
                  SELECT 1 FROM before WHERE id = ?2";
    database.prepare_cached(select)?.exists([task, other])
}

fn exists(database: &Connection, id: &str) -> rusqlite::Result<bool> {
    database.prepare_cached("SELECT 1 FROM tasks WHERE id = ?1")?.exists([id])
}

/// The next number that no task has.
fn free_id(database: &Connection) -> rusqlite::Result<String> {
    // Never one that a task has had before: runs know their task by it.
    loop {
        database.execute("UPDATE task_number SET last = last + 1", [])?;
        let number: i64 = database.query_row("SELECT last FROM task_number", [], |row| row.get(0))?;
        if !exists(database, &number.to_string())? {
            return Ok(number.to_string());
        }
    }
}

fn insert_task(transaction: &Transaction<'_>, id: &str, new: &NewTask, at: &str) -> rusqlite::Result<()> {
    let insert = "INSERT INTO tasks (id, title, spec, tests, added) VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.execute(insert, params![id, new.title, new.spec, new.tests, at])?;
    for before in &new.after {
        transaction.execute("INSERT OR IGNORE INTO task_order (task, after) VALUES (?1, ?2)", params![id, before])?;
    }
    Ok(())
}

fn insert_change(
    transaction: &Transaction<'_>,
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

/// One open dispute a task: a second one is the same quarrel.
fn open_dispute(
    transaction: &Transaction<'_>,
    task: &str,
    run: i64,
    kind: DisputeKind,
    reason: &str,
    at: &str,
) -> rusqlite::Result<()> {
    let insert = "INSERT OR IGNORE INTO disputes (task, run, kind, reason, opened) VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.execute(insert, params![task, run, kind.name(), reason, at]).map(drop)
}

fn status_of(database: &Connection, task: &str) -> rusqlite::Result<Status> {
    let trail = trail_of(database, task)?;
    Ok(replay(trail.iter().map(|row| &row.change)).0)
}

fn trail_of(database: &Connection, task: &str) -> rusqlite::Result<Vec<AuditRow>> {
    let select =
        "SELECT at, run, from_status, to_status, actor, notes, rejection FROM audit WHERE task = ?1 ORDER BY id";
    let mut select = database.prepare_cached(select)?;
    let rows = select.query_map([task], |row| {
        let status = |column| -> rusqlite::Result<Status> {
            Ok(Status::named(&row.get::<_, String>(column)?).unwrap_or_default())
        };
        let change =
            Change { from: status(2)?, to: status(3)?, actor: row.get(4)?, notes: row.get(5)?, rejection: row.get(6)? };
        Ok(AuditRow { at: row.get(0)?, run: row.get(1)?, change })
    })?;
    rows.collect()
}

fn all_tasks(database: &Connection) -> rusqlite::Result<Vec<Task>> {
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
            notes: None,
            cut_off: false,
        })
    })?;
    let mut tasks = rows.collect::<rusqlite::Result<Vec<Task>>>()?;
    let mut after = database.prepare_cached("SELECT after FROM task_order WHERE task = ?1 ORDER BY rowid")?;
    for task in &mut tasks {
        task.after = after.query_map([&task.id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let trail = trail_of(database, &task.id)?;
        (task.status, task.rejections) = replay(trail.iter().map(|row| &row.change));
        let told = |change: &Change| change.rejection || change.actor == "human" && !change.notes.is_empty();
        task.notes = trail.iter().rev().find(|row| told(&row.change)).map(|row| row.change.notes.clone());
        let by_worker = |change: &Change| !change.rejection && change.actor != "host" && change.actor != "human";
        task.cut_off = task.status == Status::InProgress && trail.last().is_some_and(|row| by_worker(&row.change));
    }
    Ok(tasks)
}
