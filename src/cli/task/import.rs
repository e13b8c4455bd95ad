//! `task import`: adds tasks from lines of JSON, or from a list of spec-kit: all of them or none.

use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::task::args::TaskImportArgs;
use crate::cli::task::errors;
use crate::cli::task::facts::{journal, spec_of};
use crate::cli::task::spec_kit::{SpecKitTask, tasks};
use crate::exit::Exit;
use crate::journal::NewTask;
use crate::source::{Diagnostic, Files, Place, Source};
use crate::task::check_id;
use crate::world::World;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// One line: `{"title": "Log in", "spec": "docs/login.md", "after": ["1"], "id": "login", "tests": "cargo test"}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportLine {
    title: String,
    spec: Option<String>,
    tests: Option<String>,
    after: Option<After>,
    id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum After {
    One(String),
    Many(Vec<String>),
}

/// Reads the lines and adds the tasks.
pub(in crate::cli) fn import(world: &World, common: &Common, args: &TaskImportArgs) -> Answered {
    imported(world, common, args).map_err(Into::into)
}

fn imported(world: &World, common: &Common, args: &TaskImportArgs) -> Result<Exit, Vec<Diagnostic>> {
    let one = |fault: Diagnostic| vec![fault];
    let (_, journal) = journal(world, common).map_err(one)?;
    let known = journal.tasks().all().map_err(|error| one(broken_journal(&error)))?;
    let names = known.into_iter().map(|task| task.id).collect();
    let tasks = lines(world, common, args, names)?;
    let added = journal.tasks().add_all(&tasks, &world.timestamp()).map_err(|error| one(broken_journal(&error)))?;
    let name = if args.file == "-" { "standard input" } else { &args.file };
    let ids = added.map_err(|refused| one(errors::refused(&refused, name)))?;
    Ok(told(&ids, args.json))
}

/// The tasks of the lines. `names` are the IDs of all tasks that there are.
pub(super) fn lines(
    world: &World,
    common: &Common,
    args: &TaskImportArgs,
    mut names: BTreeSet<String>,
) -> Result<Vec<NewTask>, Vec<Diagnostic>> {
    let one = |fault: Diagnostic| vec![fault];
    let shell = crate::cli::config::shell(world, common);
    let bytes = if args.file == "-" { world.stdin().read_all() } else { world.read(&shell.join(&args.file)) };
    let bytes = bytes.map_err(|error| {
        let missing = error.kind() == ErrorKind::NotFound;
        let why = if missing { "it does not exist".into() } else { error.to_string() };
        one(errors::import_unreadable(&args.file, &why))
    })?;
    let text = String::from_utf8(bytes).map_err(|_| one(errors::import_unreadable(&args.file, "it is not UTF-8")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_string();
    let name = if args.file == "-" { "standard input" } else { &args.file };
    let source = Source::new(name, text.as_str(), &shell);
    let project = project(world, common);
    if Path::new(&args.file).extension().is_some_and(|ending| ending == "md") {
        return of_spec_kit(world, &project, &source, &shell.join(&args.file), names);
    }
    let (mut tasks, mut faults, mut start) = (Vec::new(), Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let place = Place::new(&source, start..start + line.trim_end().len());
        start += line.len();
        if words.is_empty() {
            continue;
        }
        let read: ImportLine = match serde_json::from_str(words) {
            Ok(read) => read,
            Err(error) => {
                let begin = place.span.start + line.len() - line.trim_start().len();
                faults.push(not_a_task(&place, begin, &error));
                continue;
            }
        };
        let title = read.title.trim();
        if title.is_empty() || title.contains('\n') {
            faults.push(errors::bad_title().at(&place, "this task"));
        }
        let after = match read.after {
            Some(After::One(id)) => vec![id],
            Some(After::Many(ids)) => ids,
            None => Vec::new(),
        };
        for id in read.id.iter().chain(&after) {
            faults.extend(check_id(id).err().map(|fault| errors::bad_id(id, fault).at(&place, "this task")));
        }
        for before in after.iter().filter(|before| !names.contains(*before)) {
            faults.push(errors::import_after(&place, before));
        }
        if let Some(id) = &read.id
            && !names.insert(id.clone())
        {
            faults.push(errors::import_twice(&place, id));
        }
        let spec = match read.spec.as_deref().map(|spec| spec_of(world, &project, spec)).transpose() {
            Ok(spec) => spec,
            Err(fault) => {
                faults.push(fault.at(&place, "this task"));
                None
            }
        };
        tasks.push(NewTask { id: read.id, title: title.into(), spec, tests: read.tests, after });
    }
    if faults.is_empty() { Ok(tasks) } else { Err(faults) }
}

/// The open tasks of a list that spec-kit has written. Their specification is the `spec.md` next to it.
fn of_spec_kit(
    world: &World,
    project: &Project,
    source: &Arc<Source>,
    path: &Path,
    mut names: BTreeSet<String>,
) -> Result<Vec<NewTask>, Vec<Diagnostic>> {
    let found = tasks(source, path);
    if found.is_empty() {
        return Err(vec![errors::import_no_list(&source.name)]);
    }
    let beside = path.with_file_name("spec.md");
    let spec = world.kind(&beside).is_ok().then(|| spec_of(world, project, &beside.display().to_string()));
    let spec = spec.transpose().map_err(|fault| vec![fault])?;
    let twice = |task: &SpecKitTask| (!names.insert(task.id.clone())).then(|| errors::import_twice(&task.at, &task.id));
    let faults: Vec<Diagnostic> = found.iter().filter_map(twice).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let new = |task: SpecKitTask| NewTask {
        id: Some(task.id),
        title: task.title,
        spec: spec.clone(),
        tests: None,
        after: task.after,
    };
    Ok(found.into_iter().map(new).collect())
}

/// Says which tasks were added.
pub(super) fn told(ids: &[String], as_json: bool) -> Exit {
    let names = if ids.is_empty() { String::new() } else { format!(": {}", ids.join(", ")) };
    answer(&if as_json { json_line(json!({ "tasks": ids })) } else { format!("{} added{names}\n", count(ids.len())) })
}

/// The error in a line, which begins at this byte.
fn not_a_task(place: &Place, begin: usize, error: &serde_json::Error) -> Diagnostic {
    let words = error.to_string();
    let why = words.rsplit_once(" at line ").map_or(words.as_str(), |(why, _)| why);
    if error.is_data() {
        return errors::import_line(place, why);
    }
    let at = (begin + error.column().saturating_sub(1)).min(place.span.end);
    errors::import_syntax(&Place::new(&place.source, at..place.span.end.min(at + 1)), why)
}

fn count(tasks: usize) -> String {
    match tasks {
        0 => "no tasks".into(),
        1 => "1 task".into(),
        many => format!("{many} tasks"),
    }
}
