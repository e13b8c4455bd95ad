//! What is not committed: of a tree, and of the runs of a task.

use super::spans::spans;
use super::watch::ignored;
use crate::context::{Repository, Snapshots, TreeChanges};
use crate::journal::{Journal, JournalError, prepare_store, snapshot_store};
use crate::runner::render::{FIRST_PATIENCE, asking};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns what has changed in a tree since the tree `since`, or since its last commit, as a template shows it. Writes
/// nothing in the project.
#[must_use]
pub fn uncommitted(root: &Path, scratch: &Path, since: Option<&str>) -> Option<TreeChanges> {
    let snapshots = scratch_snapshots(root, scratch)?;
    let git = asking(root, FIRST_PATIENCE);
    let (head, now) = (snapshots.of_head(&git)?, snapshots.take(&git)?);
    let before = since.unwrap_or(&head);
    Some(TreeChanges {
        diff: Some(snapshots.diff(before, &now, &git)?.replace('\0', "\u{fffd}")),
        changed: snapshots.changes(before, &now, &git)?,
        uncommitted: snapshots.changes(&head, &now, &git)?,
        unseen: Vec::new(),
    })
}

/// The uncommitted changes of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// The files that only the task's runs have changed, as paths relative to the root.
    pub files: Vec<String>,
    /// The files that the task has changed and that already had uncommitted changes when it began, as paths relative to
    /// the root.
    pub mixed: Vec<String>,
}

/// Returns what the runs of a task have changed and what has not been committed; none if that is unknown. Writes
/// nothing in the project.
///
/// # Errors
/// When the journal cannot be read.
pub fn uncommitted_of_task(
    journal: &Journal,
    root: &Path,
    scratch: &Path,
    task: &str,
) -> Result<Option<Uncommitted>, JournalError> {
    let (trees, base) = (journal.tasks().trees_since(task)?, journal.tasks().base_of(task)?);
    let Some((snapshots, began)) = scratch_snapshots(root, scratch).zip(trees.first().map(|(_, tree)| tree)) else {
        return Ok(None);
    };
    let git = asking(root, FIRST_PATIENCE);
    let Some((head, now)) = snapshots.of_head(&git).zip(snapshots.take(&git)) else { return Ok(None) };
    let Some(spans) = spans(journal, &snapshots, &git, task, &now)? else { return Ok(None) };
    let commit = base.filter(|commit| !commit.is_empty());
    let before = match commit {
        Some(commit) => snapshots.of_commit(&commit, &git),
        None => Some(head.clone()),
    };
    let paths = |before: &str, now: &str| {
        let changes = snapshots.changes(before, now, &git)?;
        Some(changes.into_iter().map(|change| change.path).collect::<BTreeSet<String>>())
    };
    let Some((open, dirty)) = paths(&head, &now).zip(before.and_then(|before| paths(&before, began))) else {
        return Ok(None);
    };
    let (mixed, files) =
        spans.own.into_iter().filter(|path| open.contains(path)).partition(|path| dirty.contains(path));
    Ok(Some(Uncommitted { files, mixed }))
}

/// Opens snapshots in a separate store, which can also read the objects of the project's repository and of our own
/// store.
fn scratch_snapshots(root: &Path, scratch: &Path) -> Option<Snapshots> {
    let repository = Repository::of(root)?;
    let own = snapshot_store(root).join("objects");
    let objects: Vec<PathBuf> =
        [repository.common.join("objects"), own].into_iter().filter(|path| path.is_dir()).collect();
    prepare_store(scratch, &objects, repository.is_sha256(), &ignored(&repository)).ok()?;
    Snapshots::of(root, scratch.to_path_buf())
}
