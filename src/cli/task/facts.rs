//! What the commands about tasks share: the journal, the selected task, and its facts for a plan.

use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::respond::broken_journal;
use crate::cli::task::errors;
use crate::cli::work::refused;
use crate::hub::Hub;
use crate::journal::Journal;
use crate::plan::TaskFacts;
use crate::source::{Diagnostic, Files};
use crate::task::{Task, waits_for};
use crate::world::World;
use std::path::Path;

/// The project and its journal, which is created if there is none.
pub(in crate::cli) fn journal(world: &World, common: &Common) -> Result<(Project, Journal), Diagnostic> {
    let project = project(world, common);
    let journal = Journal::open(&project.root).map_err(|error| broken_journal(&error))?;
    Ok((project, journal))
}

/// The journal for reading; `None` if there is none. Nothing is created.
pub(in crate::cli) fn existing_journal(world: &World, common: &Common) -> Result<Option<Journal>, Diagnostic> {
    Journal::existing(&project(world, common).root).map_err(|error| broken_journal(&error))
}

/// The IDs of the tasks of the hub whose tasks were worked on here last.
pub(in crate::cli) fn shared_ids(root: &Path) -> Result<Vec<String>, Diagnostic> {
    let known = Hub::existing(root).map(|hub| hub.tasks().known()).transpose();
    Ok(known.map_err(|error| refused(&error))?.unwrap_or_default())
}

/// The task with this name.
pub(in crate::cli) fn known<'a>(tasks: &'a [Task], id: &str) -> Result<&'a Task, Diagnostic> {
    let near = || crate::source::nearest(id, tasks.iter().map(|task| task.id.as_str()));
    tasks.iter().find(|task| task.id == id).ok_or_else(|| errors::unknown(id, near()))
}

/// A specification's path relative to the root. It must be an ordinary file inside the root, after links are followed.
pub(in crate::cli) fn spec_of(world: &World, project: &Project, spec: &str) -> Result<String, Diagnostic> {
    spec_in(world, &project.root, &project.shell.join(spec), spec)
}

/// Like [`spec_of`], for a path that is already joined; `spec` is its name in errors.
pub(in crate::cli) fn spec_in(world: &World, root: &Path, path: &Path, spec: &str) -> Result<String, Diagnostic> {
    let real = |path: &std::path::Path| Files::canonical(world, path).ok();
    let (Some(file), Some(root)) = (real(path), real(root)) else {
        return Err(errors::no_spec(spec));
    };
    match (file.strip_prefix(&root), world.kind(&file)) {
        (Ok(inside), Ok(crate::source::Kind::File { .. })) => Ok(inside.display().to_string()),
        (Err(_), _) => Err(errors::spec_outside(spec)),
        _ => Err(errors::no_spec(spec)),
    }
}

/// The facts of a task that a plan uses.
///
/// # Errors
/// When there is no task with this name, when it has ended, or when it waits for another one.
pub(in crate::cli) fn facts(
    world: &World,
    project: &Project,
    journal: &Journal,
    id: &str,
) -> Result<TaskFacts, Diagnostic> {
    let tasks = journal.tasks().all().map_err(|error| broken_journal(&error))?;
    let task = known(&tasks, id)?;
    if task.status.is_terminal() {
        return Err(errors::terminal(id, task.status));
    }
    if let Some(spec) = &task.spec {
        let found = spec_in(world, &project.root, &project.root.join(spec), spec);
        found.map_err(|_| errors::spec_gone(id, spec))?;
    }
    match waits_for(task, &tasks).as_slice() {
        [] => Ok(facts_of(task)),
        before => Err(errors::waits(id, before)),
    }
}

/// The facts of a task, whatever its status is.
pub(in crate::cli) fn facts_of(task: &Task) -> TaskFacts {
    TaskFacts {
        id: task.id.clone(),
        title: task.title.clone(),
        spec: task.spec.clone().unwrap_or_default(),
        tests: task.tests.clone().unwrap_or_default(),
        status: task.status.name().into(),
        rejections: task.rejections,
        sent_back: task.sent_back,
        notes: task.notes.clone().unwrap_or_default(),
        cut_off: task.cut_off,
        added: task.added.clone(),
    }
}
