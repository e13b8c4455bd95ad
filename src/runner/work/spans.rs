//! Which files the runs of a task have changed, and which other runs have changed meanwhile.

use crate::context::{Git, Snapshots};
use crate::journal::{Journal, JournalError};
use std::collections::BTreeSet;

/// The files that have changed since the work on a task began. A change belongs to the run that began last before it:
/// to one of the task's own runs, or to another run.
pub(super) struct Spans {
    pub(super) own: BTreeSet<String>,
    others: BTreeSet<String>,
}

/// Returns them; none if a tree is gone, because then the changes since that tree are unknown.
pub(super) fn spans(
    journal: &Journal,
    snapshots: &Snapshots,
    git: &Git<'_>,
    task: &str,
    now: &str,
) -> Result<Option<Spans>, JournalError> {
    let trees = journal.tasks().trees_since(task)?;
    let mut spans = Spans { own: BTreeSet::new(), others: BTreeSet::new() };
    for (index, (of, tree)) in trees.iter().enumerate() {
        let after = trees.get(index + 1).map_or(now, |(_, tree)| tree.as_str());
        let Some(changes) = snapshots.changes(tree, after, git) else { return Ok(None) };
        let paths = changes.into_iter().map(|change| change.path);
        if of.as_deref() == Some(task) { spans.own.extend(paths) } else { spans.others.extend(paths) }
    }
    Ok(Some(spans))
}

/// Returns the tree that the work on a task is compared with: the one that it began with, but with the current version
/// of each file that only other runs have changed since.
pub(super) fn own_base(
    journal: &Journal,
    snapshots: &Snapshots,
    git: &Git<'_>,
    task: &str,
    (began, now): (&str, &str),
) -> Result<String, JournalError> {
    let Some(spans) = spans(journal, snapshots, git, task, now)? else { return Ok(began.to_string()) };
    let theirs: BTreeSet<String> = spans.others.difference(&spans.own).cloned().collect();
    let blended = if theirs.is_empty() { None } else { snapshots.blend(began, now, &theirs, git) };
    Ok(blended.unwrap_or_else(|| began.to_string()))
}
