//! Tasks that several people share: the same commands, on the tasks of a hub (`--hub`).

use super::args::{TaskAddArgs, TaskDecideArgs, TaskImportArgs, TaskVerb};
use super::{added, decided, decision, errors, import, new_task};
use crate::cli::config::shell;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped, answer, json_line};
use crate::cli::task::facts::known;
use crate::cli::work::open_hub;
use crate::hub::{FoundTask, Hub, Person, TaskChange, is_hub_url, url_of_remote};
use crate::journal::NewTask;
use crate::report::{Paint, task_text, tasks_text};
use crate::source::Diagnostic;
use crate::task::{AuditRow, Status, Task, waits_for};
use crate::unit::{SHARED_TASK_FORMAT, SharedTask, TrailEntry};
use crate::world::World;
use serde_json::{Value, json};

/// How often a change is tried again after somebody else has changed the same task at the same moment.
const TRIES: u32 = 50;
/// After how many seconds of silence a batch may be lost.
const SILENT: u64 = 60;

/// Carries out a command about the tasks of a hub.
pub(super) fn task(world: &World, common: &Common, verb: &TaskVerb, hub: &str) -> Answered {
    let tasks = SharedTasks::open(world, common, hub)?;
    match verb {
        TaskVerb::Add(args) => tasks.add_one(world, common, args),
        TaskVerb::Import(args) => tasks.import(world, common, args),
        TaskVerb::Show { id, json, .. } => tasks.show(world, id, *json),
        TaskVerb::Approve(args) => tasks.decide(world, args, Status::Completed),
        TaskVerb::Reject(args) => tasks.decide(world, args, Status::InProgress),
        TaskVerb::Skip(args) => tasks.decide(world, args, Status::Skipped),
        TaskVerb::Reset(args) => tasks.decide(world, args, Status::Pending),
        TaskVerb::List { json: true, .. } => tasks.list(world, true),
        _ => tasks.list(world, false),
    }
}

/// Opens a hub by its URL, its path, or the name of a remote of the repository.
pub(in crate::cli) fn shared_hub(world: &World, common: &Common, name: &str) -> Result<Hub, Stopped> {
    let folder = shell(world, common);
    let url = if is_hub_url(name) { None } else { url_of_remote(name, &folder) };
    let found = url.as_deref().unwrap_or(name);
    if is_hub_url(found) {
        return open_hub(world, found);
    }
    let path = folder.join(found);
    let git = [path.clone(), path.join(".git")].into_iter().find(|path| path.join("HEAD").is_file());
    Ok(Hub::at(&git.ok_or_else(|| errors::no_shared_hub(name))?))
}

/// The tasks of a hub.
pub(in crate::cli) struct SharedTasks {
    hub: Hub,
    /// Who changes them.
    person: Person,
}

impl SharedTasks {
    fn open(world: &World, common: &Common, hub: &str) -> Result<Self, Stopped> {
        Ok(Self { hub: shared_hub(world, common, hub)?, person: Person::of(&shell(world, common)) })
    }

    fn all(&self) -> Result<(Vec<FoundTask>, Vec<Task>), Stopped> {
        let found = self.hub.tasks().all()?;
        let tasks = found.iter().map(|found| found.task.task()).collect();
        Ok((found, tasks))
    }

    fn add_one(&self, world: &World, common: &Common, args: &TaskAddArgs) -> Answered {
        let new = new_task(world, common, args)?;
        let ids = self.add(world, &[new])?;
        Ok(added(&ids.concat(), args.json))
    }

    fn import(&self, world: &World, common: &Common, args: &TaskImportArgs) -> Answered {
        let (_, known) = self.all()?;
        let names = known.into_iter().map(|task| task.id).collect();
        let lines = import::lines(world, common, args, names)?;
        let ids = self.add(world, &lines)?;
        Ok(import::told(&ids, args.json))
    }

    /// Adds tasks, all of them or none. Returns their IDs.
    fn add(&self, world: &World, new: &[NewTask]) -> Result<Vec<String>, Stopped> {
        for _ in 0..TRIES {
            let (_, known) = self.all()?;
            let tasks = with_ids(new, &known, &world.timestamp())?;
            let change = |task| TaskChange { task, old: None, old_work: None, event: "added".into() };
            let changes: Vec<TaskChange<'_>> = tasks.iter().map(change).collect();
            if self.hub.tasks().put(&changes, &self.person)? {
                return Ok(tasks.into_iter().map(|task| task.id).collect());
            }
        }
        Err(errors::busy(&self.hub.name()).into())
    }

    fn decide(&self, world: &World, args: &TaskDecideArgs, to: Status) -> Answered {
        for _ in 0..TRIES {
            let (found, tasks) = self.all()?;
            let change = decision(known(&tasks, &args.id)?, args, to)?;
            let Some(FoundTask { commit, task }) = found.into_iter().find(|found| found.task.id == args.id) else {
                continue;
            };
            let mut task = task;
            let (from, notes) = (change.from.name(), args.notes.trim().to_string());
            let event = format!("{from} to {}{}{notes}", to.name(), if notes.is_empty() { "" } else { "\n\n" });
            task.trail.push(TrailEntry { at: world.timestamp(), change, by: self.person.name.clone() });
            if task.at_work
                && let Some(holder) = self.working(world)?
            {
                return Err(errors::shared_at_work(&args.id, &holder).into());
            }
            if to == Status::Pending {
                (task.landed, task.discarded) = (None, task.work.is_some());
            }
            let old_work = task.work.clone();
            let change = TaskChange { task: &task, old: Some(&commit), old_work: old_work.as_deref(), event };
            if self.hub.tasks().put(&[change], &self.person)? {
                return Ok(decided(&args.id, to));
            }
        }
        Err(errors::busy(&self.hub.name()).into())
    }

    /// Who works on tasks now, in words. A batch that has been silent for a minute does not count: its machine may be
    /// lost.
    fn working(&self, world: &World) -> Result<Option<String>, Stopped> {
        let found = self.hub.shared().integrator()?.filter(|found| !found.is_free());
        let now = world.moment().as_second();
        Ok(found.filter(|found| now.abs_diff(found.at) < SILENT).map(|found| found.holder()))
    }

    fn list(&self, world: &World, as_json: bool) -> Answered {
        let (found, tasks) = self.all()?;
        Ok(answer(&if as_json {
            json!(tasks).to_string() + "\n"
        } else {
            let place = |id: &str| found.iter().find(|found| found.task.id == id).and_then(|found| place(&found.task));
            tasks_text(&tasks, &place, Paint::for_stdout(world))
        }))
    }

    fn show(&self, world: &World, id: &str, as_json: bool) -> Answered {
        let (found, tasks) = self.all()?;
        let task = known(&tasks, id)?;
        let waits = waits_for(task, &tasks);
        let found = found.iter().find(|found| found.task.id == id).map(|found| &found.task);
        let trail = found.map(|found| found.trail.clone()).unwrap_or_default();
        let place: Vec<(&str, String)> = found.and_then(place).map(|place| ("place", place)).into_iter().collect();
        if as_json {
            let none: [Value; 0] = [];
            let told = json!({ "task": task, "waitsFor": waits, "runs": none, "audit": trail, "disputes": none });
            return Ok(answer(&json_line(told)));
        }
        let rows: Vec<AuditRow> = trail.into_iter().map(row).collect();
        Ok(answer(&task_text(task, &waits, &place, &[], &rows, &[], Paint::for_stdout(world))))
    }
}

/// Where the work on a task is, as far as the hub knows.
fn place(task: &SharedTask) -> Option<String> {
    task.landed.as_ref().map(|commit| format!("landed as {}", commit.get(..8).unwrap_or(commit)))
}

/// An entry as the text shows it: with the name of the human.
fn row(entry: TrailEntry) -> AuditRow {
    let mut change = entry.change;
    if let Some(name) = entry.by.filter(|_| change.actor == "human") {
        change.actor = name;
    }
    AuditRow { at: entry.at, run: None, change }
}

/// New tasks with their IDs.
fn with_ids(new: &[NewTask], known: &[Task], at: &str) -> Result<Vec<SharedTask>, Diagnostic> {
    let is_given = |id: &str| new.iter().any(|task| task.id.as_deref() == Some(id));
    let is_known = |id: &str| known.iter().any(|task| task.id == id);
    let mut last = known.iter().filter_map(|task| task.id.parse::<u64>().ok()).max().unwrap_or(0);
    let mut tasks: Vec<SharedTask> = Vec::new();
    for task in new {
        let id = match &task.id {
            Some(id) if is_known(id) => return Err(errors::refused(&crate::journal::Refused::Exists, id)),
            Some(id) if !is_ref_name(id) => return Err(errors::not_a_ref(id)),
            Some(id) => id.clone(),
            None => loop {
                last = last.saturating_add(1);
                if !is_given(&last.to_string()) {
                    break last.to_string();
                }
            },
        };
        let is_there = |before: &&String| is_known(before) || tasks.iter().any(|other| other.id == **before);
        if let Some(missing) = task.after.iter().find(|before| !is_there(before)) {
            return Err(errors::unknown(missing, None));
        }
        let NewTask { title, spec, tests, after, .. } = task.clone();
        tasks.push(SharedTask {
            format: SHARED_TASK_FORMAT,
            id,
            title,
            spec,
            tests,
            after,
            added: at.to_string(),
            work: None,
            discarded: false,
            at_work: false,
            landed: None,
            trail: Vec::new(),
        });
    }
    Ok(tasks)
}

/// Whether an ID can be the last part of the name of a ref (git-check-ref-format(1)).
fn is_ref_name(id: &str) -> bool {
    let ends = |end: &str| id.len() >= end.len() && id[id.len() - end.len()..].eq_ignore_ascii_case(end);
    !id.starts_with(['.', '-']) && !id.ends_with('.') && !ends(".lock")
}
