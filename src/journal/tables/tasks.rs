//! Tasks and their audit trail: tables next to the events, changed in the same commits.

use super::task_rows::{
    Following, NewTask, all_tasks, exists, free_id, insert_change, insert_task, status_of, trail_of,
};
use crate::journal::database::{Database, WriteTransaction};
use crate::journal::error::JournalError;
use crate::plan::Outline;
use crate::task::{AuditRow, Change, Follower, Status, Task, replay};
use rusqlite::{OptionalExtension, Row, params};

/// Why a command about tasks was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A task with this ID already exists.
    Exists,
    /// There is no task or dispute with this ID.
    Unknown(String),
    /// The task has a different status by now.
    Moved(Status),
    /// The dispute is already resolved.
    Resolved,
}

/// The tasks in a journal.
#[derive(Debug, Clone, Copy)]
pub struct TaskTable<'a>(pub(in crate::journal) &'a Database);

impl TaskTable<'_> {
    /// Records a run as one of a task's. Its events do not change the task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn assign(self, run: i64, task: &str) -> Result<(), JournalError> {
        let update = "UPDATE runs SET task = ?2 WHERE id = ?1";
        self.0.with(|database| database.execute(update, params![run, task])).map(drop)
    }

    /// Returns all tasks, in the order in which they were added.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn all(self) -> Result<Vec<Task>, JournalError> {
        self.0.with(all_tasks)
    }

    /// Returns one task; `None` if there is no task with this ID.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn get(self, id: &str) -> Result<Option<Task>, JournalError> {
        Ok(self.all()?.into_iter().find(|task| task.id == id))
    }

    /// Returns everything that happened to a task, in order.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn trail(self, task: &str) -> Result<Vec<AuditRow>, JournalError> {
        self.0.with(|database| trail_of(database, task))
    }

    /// Returns what the events of a run with this outline do to a task.
    pub(in crate::journal) fn following(self, task: &str, outline: &Outline) -> Result<Following, JournalError> {
        let trail = self.trail(task)?;
        let (status, rejections) = replay(trail.iter().map(|row| &row.change));
        let since = trail.iter().rposition(|row| row.change.to == Status::Pending).map_or(0, |at| at + 1);
        let rejects = trail[since..].iter().filter(|row| row.change.rejection);
        let history = rejects.enumerate().map(|(index, row)| {
            let first = row.change.notes.lines().next().unwrap_or_default();
            format!("{}. {}: {first}", index + 1, row.change.actor)
        });
        let follower = Follower::new(outline, status, rejections).after(history.collect());
        Ok(Following { task: task.into(), follower })
    }

    /// Returns the numbers of the runs that worked on a task.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn runs_of(self, task: &str) -> Result<Vec<i64>, JournalError> {
        let select = "SELECT id FROM runs WHERE task = ?1 ORDER BY id";
        self.0.with(|database| database.prepare(select)?.query_map([task], |row| row.get(0))?.collect())
    }

    /// Returns the commit at which the work on a task began: that of its first run since it was added or reset.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn base_of(self, task: &str) -> Result<Option<String>, JournalError> {
        self.begun_with(task, "base")
    }

    /// Returns the tree at which the work on a task began: that of its first run since it was added or reset.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tree_of(self, task: &str) -> Result<Option<String>, JournalError> {
        self.begun_with(task, "tree")
    }

    /// Returns the user's own ignore rules for that tree, as lines of gitignore(5).
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn rules_of(self, task: &str) -> Result<Option<String>, JournalError> {
        self.begun_with(task, "rules")
    }

    /// Returns one key of the first event of a task's first run since it was added or reset.
    fn begun_with(self, task: &str, key: &str) -> Result<Option<String>, JournalError> {
        let select = "SELECT event ->> ('$.event.' || ?2) FROM events JOIN runs ON runs.id = run
                      WHERE type = 'runStarted' AND task = ?1 AND event ->> ('$.event.' || ?2) IS NOT NULL
                      AND started >= coalesce((SELECT max(at) FROM audit WHERE audit.task = ?1 AND to_status = 'pending'), '')
                      ORDER BY run LIMIT 1";
        self.0.with(|database| database.query_row(select, [task, key], |row| row.get(0)).optional())
    }

    /// Returns, in order, the trees at which runs began or resumed since a task's work began, each with the run's task.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn trees_since(self, task: &str) -> Result<Vec<(Option<String>, String)>, JournalError> {
        let Some(first) = self.first_run_of(task)? else { return Ok(Vec::new()) };
        let tree = "coalesce(event ->> '$.event.found', event ->> '$.event.tree')";
        let select = format!(
            "SELECT task, {tree} FROM events JOIN runs ON runs.id = run
                      WHERE type IN ('runStarted', 'runResumed') AND {tree} IS NOT NULL
                      AND at >= (SELECT at FROM events WHERE run = ?1 AND seq = 1) ORDER BY at, run, seq"
        );
        let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.0.with(|database| database.prepare(&select)?.query_map([first], row)?.collect())
    }

    /// Returns the first run of a task since it was added or reset.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn first_run_of(self, task: &str) -> Result<Option<i64>, JournalError> {
        let select = "SELECT min(id) FROM runs WHERE task = ?1 AND started >=
                      coalesce((SELECT max(at) FROM audit WHERE audit.task = ?1 AND to_status = 'pending'), '')";
        self.0.with(|database| database.query_row(select, [task], |row| row.get(0)))
    }

    /// Adds a task, and returns its ID.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(self, new: &NewTask, at: &str) -> Result<Result<String, Refused>, JournalError> {
        change_tasks(self.0, |transaction| {
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

    /// Adds several tasks at once, whose IDs and order were checked before; returns their IDs.
    ///
    /// # Errors
    /// When they cannot be written; then none is added.
    pub fn add_all(self, new: &[NewTask], at: &str) -> Result<Result<Vec<String>, Refused>, JournalError> {
        change_tasks(self.0, |transaction| {
            let mut ids = Vec::new();
            for task in new {
                let id = match &task.id {
                    Some(id) if exists(transaction, id)? => return Ok(Err(Refused::Exists)),
                    Some(id) => id.clone(),
                    None => {
                        let mut id = free_id(transaction)?;
                        // A number that a later task specifies as its ID is reserved for it.
                        while new.iter().any(|other| other.id.as_ref() == Some(&id)) {
                            id = free_id(transaction)?;
                        }
                        id
                    }
                };
                insert_task(transaction, &id, task, at)?;
                ids.push(id);
            }
            Ok(Ok(ids))
        })
    }

    /// Stores a task with its whole history, as another journal has it. It replaces what is known of the task.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(self, id: &str, task: &NewTask, added: &str, trail: &[AuditRow]) -> Result<(), JournalError> {
        let stored = change_tasks(self.0, |transaction| {
            for delete in ["DELETE FROM audit WHERE task = ?1", "DELETE FROM disputes WHERE task = ?1"] {
                transaction.execute(delete, [id])?;
            }
            if !exists(transaction, id)? {
                insert_task(transaction, id, task, added)?;
            }
            for row in trail {
                insert_change(transaction, id, row.run, &row.change, &row.at)?;
            }
            Ok(Ok(()))
        })?;
        stored.map_or_else(|_| Ok(()), Ok)
    }

    /// Changes the status of a task on a human's command. `change.from` is the status that the human saw.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn change_status(self, id: &str, change: &Change, at: &str) -> Result<Result<(), Refused>, JournalError> {
        change_tasks(self.0, |transaction| {
            if !exists(transaction, id)? {
                return Ok(Err(Refused::Unknown(id.into())));
            }
            let status = status_of(transaction, id)?;
            if status != change.from {
                return Ok(Err(Refused::Moved(status)));
            }
            // What a human decides about the task also settles its open dispute.
            let settle = "UPDATE disputes SET decision = 'custom', notes = ?2, resolved = ?3
                          WHERE task = ?1 AND resolved IS NULL AND kind <> 'minor'";
            transaction.execute(settle, params![id, change.notes, at])?;
            insert_change(transaction, id, None, change, at)?;
            Ok(Ok(()))
        })
    }

    /// Replaces the trail of a task, if it is still `old`. What humans have decided settles its open dispute. Returns
    /// whether it was.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace_trail(self, id: &str, old: &[AuditRow], new: &[AuditRow]) -> Result<bool, JournalError> {
        let stored = change_tasks(self.0, |transaction| {
            if trail_of(transaction, id)? != old {
                return Ok(Ok(false));
            }
            transaction.execute("DELETE FROM audit WHERE task = ?1", [id])?;
            for row in new {
                insert_change(transaction, id, row.run, &row.change, &row.at)?;
            }
            if let Some(decided) = new.iter().rev().find(|row| row.change.actor == "human" && !old.contains(row)) {
                let settle = "UPDATE disputes SET decision = 'custom', notes = ?2, resolved = ?3
                              WHERE task = ?1 AND resolved IS NULL AND kind <> 'minor'";
                transaction.execute(settle, params![id, decided.change.notes, decided.at])?;
            }
            Ok(Ok(true))
        })?;
        Ok(stored.unwrap_or(false))
    }

    /// Returns a number that increases with each change of a task's status.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_change(self) -> Result<i64, JournalError> {
        let select = "SELECT coalesce(max(id), 0) FROM audit";
        self.0.with(|database| database.query_row(select, [], |row| row.get(0)))
    }

    /// Removes a task with its trail and its disputes; tasks that waited for it no longer wait.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn delete(self, id: &str) -> Result<Result<(), Refused>, JournalError> {
        change_tasks(self.0, |transaction| {
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
}

/// Changes the tasks in one transaction, which is not committed if the change is refused.
pub(in crate::journal) fn change_tasks<T>(
    database: &Database,
    work: impl FnOnce(&WriteTransaction<'_>) -> rusqlite::Result<Result<T, Refused>>,
) -> Result<Result<T, Refused>, JournalError> {
    let transaction = database.begin()?;
    let done = work(&transaction).map_err(database.failed())?;
    if done.is_ok() {
        transaction.commit().map_err(database.failed())?;
    }
    Ok(done)
}
