//! `diff` and `runs restore`: what attempts changed, from the snapshots of their run.

use crate::cli::config::shell;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::runs::args::{DiffArgs, RestoreArgs};
use crate::cli::runs::batch::trees_of;
use crate::cli::runs::history::{journal, meant};
use crate::cli::runs::place::{AttemptPlace, RunPlace};
use crate::context::Repository;
use crate::engine::{AttemptTrees, FileChange, RunTrees};
use crate::exit::Exit;
use crate::report::{Paint, changed_files, painted_patch, print_bytes};
use crate::runner::TreeStore;
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::json;
use std::io::ErrorKind;
use std::path::Path;

/// Two trees of a run.
struct Span {
    store: TreeStore,
    run: i64,
    before: String,
    after: String,
}

/// Carries out `diff`.
pub(super) fn diff(world: &World, common: &Common, args: &DiffArgs) -> Answered {
    let span = span(world, common, args.what.as_deref().unwrap_or_default())?;
    let Span { store, run, before, after } = &span;
    let paint = Paint::for_stdout(world);
    if args.json || args.stat {
        let files = store.files(before, after).ok_or_else(|| gone(store.root()))?;
        return Ok(answer(&if args.json {
            in_json(*run, before, after, &files)
        } else {
            changed_files(&files, paint)
        }));
    }
    if paint.terminal {
        let patch = store.patch(before, after).ok_or_else(|| gone(store.root()))?;
        return Ok(answer(&painted_patch(&patch, paint)));
    }
    // Another program gets the bytes of the files, which need not be UTF-8.
    let scratch = world.scratch_folder().map_err(|error| not_diffed(&error.to_string()))?;
    let patch = store.patch_bytes(scratch.path(), before, after).ok_or_else(|| gone(store.root()))?;
    Ok(match print_bytes(&patch) {
        Ok(()) => Exit::Success,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Success,
        Err(error) => return Err(not_diffed(&error.to_string()).into()),
    })
}

fn in_json(run: i64, before: &str, after: &str, files: &[FileChange]) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|file| json!({ "status": file.status.to_string(), "path": file.path, "added": file.added, "removed": file.removed }))
        .collect();
    json_line(json!({ "run": run, "before": before, "after": after, "files": files }))
}

/// Carries out `runs restore`.
pub(super) fn restore(world: &World, common: &Common, args: &RestoreArgs, as_json: bool) -> Answered {
    let place = args.what.as_deref().map(RunPlace::parse).transpose()?.unwrap_or_default();
    let (store, run, trees) = trees(world, common, place.run)?;
    let tree = match place.attempt {
        Some(attempt) if args.before => find(&trees, run, attempt)?.before.clone(),
        Some(attempt) => find(&trees, run, attempt)?.after.clone(),
        None if args.before => trees.began.clone(),
        None => trees.last().map(str::to_string),
    };
    let tree = tree.ok_or_else(|| no_snapshot(run, place.attempt, reason(&store, &trees, place.attempt)))?;
    let to = shell(world, common).join(&args.to);
    world.disk().make_empty(&to).map_err(|error| not_empty(&to, &error.to_string()))?;
    let scratch = world.scratch_folder().map_err(|error| not_restored(&to, &error.to_string()))?;
    if !store.write_tree(scratch.path(), &tree, &to) {
        return Err(not_restored(&to, "git could not write the snapshot").into());
    }
    Ok(answer(&if as_json { json_line(json!({ "run": run, "directory": to })) } else { format!("{}\n", to.display()) }))
}

fn trees(world: &World, common: &Common, run: Option<i64>) -> Result<(TreeStore, i64, RunTrees), Diagnostic> {
    let (_, journal) = journal(world, common)?;
    let (row, _) = meant(&journal, run, |_, _| true, "yet")?;
    let events = journal.events().of(row.id).map_err(|error| broken_journal(&error))?;
    let (store, trees) = trees_of(&journal, &row, RunTrees::of(&events))?;
    Ok((store, row.id, trees))
}

/// Returns why there is no snapshot after an attempt, or after a run.
fn reason(store: &TreeStore, trees: &RunTrees, place: Option<AttemptPlace>) -> &'static str {
    let attempt = |place: AttemptPlace| trees.attempts.iter().rfind(|one| place.names(one.at.step, one.at.attempt));
    if place.is_some() && !store.has_snapshots() {
        "the workspace of the run was removed, and only the changes of the whole run are kept"
    } else if Repository::of(store.root()).is_none() {
        "this is not a git repository; git takes the snapshots"
    } else if trees.began.is_none() {
        "the run had no worker, git could not be run, or an older version of forkhestra made the run"
    } else if place.and_then(attempt).is_some_and(|one| one.after.is_none()) {
        "the attempt has not ended, or git could not be run then"
    } else {
        "git could not be run then"
    }
}

/// Returns the two trees that `[RUN[.ATTEMPT]][..ATTEMPT]` names.
fn span(world: &World, common: &Common, text: &str) -> Result<Span, Diagnostic> {
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (first, Some(AttemptPlace::parse(last)?)),
        None => (text, None),
    };
    let first = if first.is_empty() { RunPlace::default() } else { RunPlace::parse(first)? };
    let (store, run, trees) = trees(world, common, first.run)?;
    let began = trees.began.clone();
    let (before, after) = match (first.attempt, last) {
        (None, None) => (began, trees.last().map(str::to_string)),
        (None, Some(last)) => (began, find(&trees, run, last)?.after.clone()),
        (Some(only), None) => {
            let found = find(&trees, run, only)?;
            (found.before.clone(), found.after.clone())
        }
        (Some(first), Some(last)) => (find(&trees, run, first)?.after.clone(), find(&trees, run, last)?.after.clone()),
    };
    let place = last.or(first.attempt);
    let (before, after) = before.zip(after).ok_or_else(|| no_snapshot(run, place, reason(&store, &trees, place)))?;
    Ok(Span { store, run, before, after })
}

fn find(trees: &RunTrees, run: i64, place: AttemptPlace) -> Result<&AttemptTrees, Diagnostic> {
    trees.attempts.iter().rfind(|trees| place.names(trees.at.step, trees.at.attempt)).ok_or_else(|| {
        Diagnostic::error("runs/no-attempt", format!("run {run} has no {place}"))
            .help(format!("`forkhestra runs show {run}` lists its attempts"))
    })
}

fn no_snapshot(run: i64, place: Option<AttemptPlace>, why: &str) -> Diagnostic {
    let what = place.map_or_else(|| format!("run {run}"), |place| format!("{place} of run {run}"));
    Diagnostic::error("changes/no-snapshot", format!("there is no snapshot of the files for {what}: {why}"))
        .help("`git diff` shows what is not committed")
}

fn gone(root: &Path) -> Diagnostic {
    Diagnostic::error("changes/gone", format!("the snapshots of {} cannot be read", root.display()))
        .help("they are in .forkhestra/snapshots, and git reads them; were they deleted, or is git missing?")
}

fn not_diffed(why: &str) -> Diagnostic {
    Diagnostic::error("changes/output", format!("cannot print the changes: {why}"))
        .help("is there enough space in the temporary directory, and can standard output be written?")
}

fn not_empty(to: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("changes/not-empty", format!("cannot restore to {}: {why}", to.display()))
        .help("name a directory that does not exist yet, or is empty")
}

fn not_restored(to: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("changes/restore", format!("cannot restore to {}: {why}", to.display()))
        .help("is there enough space, and was .forkhestra/snapshots deleted? git reads the snapshots from there")
}
