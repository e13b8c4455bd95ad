//! The work of a run: the tree that it began with, and what has changed since.

use super::driver::Driver;
use super::render::{PATIENCE, asking};
use crate::chain::Role;
use crate::context::{CACHES, Git, Repository, Snapshots, TreeChanges, small};
use crate::engine::{EventKind, Notice};
use crate::journal::{Journal, JournalError, prepare_store, snapshot_store};
use crate::plan::Overrides;
use crate::proc::capture;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the first snapshot may take; it reads every file once.
pub(super) const FIRST_PATIENCE: Duration = Duration::from_mins(2);

/// Returns the commit that a revision name refers to in the project's repository.
fn commit_of(root: &Path, name: &str) -> Option<String> {
    let commit = format!("{name}^{{commit}}");
    let found = asking(root, PATIENCE)(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
    Some(found.trim().to_string())
}

/// Returns ignore rules for snapshots: the user's own rules as they are when the work begins, and rules for caches.
/// Both kinds of files may be large, and neither is part of the work.
fn ignored(repository: &Repository) -> String {
    let caches = CACHES.map(|cache| format!("{cache}/\n")).concat();
    let global = ["config", "--global", "--path", "--get", "core.excludesFile"].map(str::to_string);
    let own = capture(Path::new("git"), &global, &repository.top).filter(|answer| answer.code == Some(0));
    let own = own.map(|answer| PathBuf::from(answer.stdout.trim()));
    let files = [Some(repository.common.join("info/exclude")), own];
    files.into_iter().flatten().filter_map(|path| small(&path)).fold(caches, |rules, more| rules + &more + "\n")
}

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

/// The files that have changed since the work on a task began. A change belongs to the run that began last before it:
/// to one of the task's own runs, or to another run.
struct Spans {
    own: BTreeSet<String>,
    others: BTreeSet<String>,
}

/// Returns none if a tree is gone, because then the changes since that tree are unknown.
fn spans(
    journal: &Journal,
    snapshots: &Snapshots,
    git: &Git<'_>,
    task: &str,
    now: &str,
) -> Result<Option<Spans>, JournalError> {
    let trees = journal.trees_since(task)?;
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
fn own_base(
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
    let (trees, base) = (journal.trees_since(task)?, journal.base_of(task)?);
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

impl Driver<'_> {
    /// Whether anything depends on what has changed.
    fn looks_at_work(&self) -> bool {
        let plan = self.context.plan;
        let templated = plan.steps.iter().filter_map(|step| step.prompt.as_ref()).any(|prompt| prompt.around.is_some());
        let judged = plan.steps.iter().any(|step| step.role() == Some(Role::Judge));
        self.lane.is_none() && (templated || judged || plan.commits_tasks && plan.task.is_some())
    }

    /// Called before the first attempt of a run: determines what its work is compared with.
    pub(super) fn begin_work(&mut self, overrides: &Overrides) -> Result<(), JournalError> {
        if !self.looks_at_work() {
            self.begun.now = self.first_tree()?;
            return Ok(());
        }
        let (root, plan) = (self.context.root, self.context.plan);
        let task = plan.task.as_ref();
        self.begun.rules = match task {
            Some(task) => self.context.journal.rules_of(&task.id)?,
            None => None,
        };
        self.open_snapshots()?;
        let git = asking(root, FIRST_PATIENCE);
        self.begun.commit = overrides.base.clone().or_else(|| Repository::of(root).map(|repository| repository.head()));
        let Some(snapshots) = &self.begun.snapshots else { return Ok(()) };
        let resolve = |commit: &str| snapshots.of_commit(&commit_of(root, commit)?, &git);
        let kept = match task {
            Some(task) => match self.context.journal.tree_of(&task.id)? {
                Some(tree) => {
                    snapshots.know(&tree);
                    Some(tree).filter(|tree| snapshots.is_whole(tree, &git))
                }
                // The task was begun before there were snapshots.
                None => self.context.journal.base_of(&task.id)?.and_then(|commit| resolve(&commit)),
            },
            None => None,
        };
        let judge = plan.steps.iter().position(|step| step.role() == Some(Role::Judge));
        let worked = plan.steps[..judge.unwrap_or(0)].iter().any(|step| step.role() == Some(Role::Worker));
        let now = self.found(snapshots, &git);
        self.begun.now.clone_from(&now);
        self.begun.tree = match (&overrides.base, kept) {
            (Some(base), _) => resolve(base),
            // The work on a task began in its first run.
            (None, Some(tree)) => match (now, task) {
                (Some(now), Some(task)) => {
                    Some(own_base(self.context.journal, snapshots, &git, &task.id, (&tree, &now))?)
                }
                _ => Some(tree),
            },
            (None, None) if worked || plan.task.is_some() => now,
            // There is no new work to judge, so the uncommitted changes are judged.
            (None, None) => snapshots.of_head(&git),
        };
        // Earlier uncommitted changes are not judged; the notice keeps them from being mistaken for the work.
        let (head, tree) = (snapshots.of_head(&git), self.begun.tree.clone());
        let open = head.zip(tree).and_then(|(head, tree)| snapshots.changes(&head, &tree, &git)).unwrap_or_default();
        if worked && overrides.base.is_none() && !open.is_empty() {
            let files: Vec<String> = open.into_iter().map(|change| change.path).collect();
            self.context.observer.notice(&Notice::Uncommitted(&files));
        }
        Ok(())
    }

    /// Called when a run is resumed: its work is compared with what the run began with. Returns the tree that it
    /// continues with.
    pub(super) fn begin_work_again(&mut self, began: &EventKind) -> Result<Option<String>, JournalError> {
        let EventKind::RunStarted { base, tree, rules, .. } = began else { return Ok(None) };
        self.begun.rules.clone_from(rules);
        if !self.looks_at_work() {
            return self.first_tree();
        }
        self.open_snapshots()?;
        self.begun.commit.clone_from(base);
        let git = asking(self.context.root, FIRST_PATIENCE);
        let Some(snapshots) = &self.begun.snapshots else { return Ok(None) };
        self.begun.tree = match tree {
            Some(tree) => {
                snapshots.know(tree);
                Some(tree.clone()).filter(|tree| snapshots.is_whole(tree, &git))
            }
            // The run was begun before there were snapshots.
            None => base.as_deref().and_then(|commit| snapshots.of_commit(commit, &git)),
        };
        let now = snapshots.take(&git);
        if let (Some(task), Some(tree), Some(now)) = (&self.context.plan.task, &self.begun.tree, &now) {
            self.begun.tree = Some(own_base(self.context.journal, snapshots, &git, &task.id, (tree, now))?);
        }
        Ok(now)
    }

    /// Returns the tree with which the run begins, where only the record of its changes needs it. A run without a
    /// worker has no such record. The first snapshot of a commit copies its objects: about 0.2 s for 2,000 files; a
    /// later run takes about 30 ms.
    fn first_tree(&mut self) -> Result<Option<String>, JournalError> {
        let works = self.context.plan.steps.iter().any(|step| step.role() == Some(Role::Worker));
        if self.lane.is_some() || !works {
            return Ok(None);
        }
        self.open_snapshots()?;
        let git = asking(self.context.root, FIRST_PATIENCE);
        Ok(self.begun.snapshots.as_ref().and_then(|snapshots| self.found(snapshots, &git)))
    }

    /// Returns the tree that a run finds.
    fn found(&self, snapshots: &Snapshots, git: &Git<'_>) -> Option<String> {
        let fresh = self.context.origin.and_then(|origin| origin.fresh.as_ref()).filter(|_| !self.resumed);
        match fresh {
            Some(fresh) if snapshots.begin_at(fresh) => Some(fresh.tree.clone()),
            _ => snapshots.take(git),
        }
    }

    /// Returns the tree as it is now; `None` without snapshots. Costs a walk of the tree, and two git commands if it
    /// has changed since the last time.
    pub(super) fn tree_now(&mut self) -> Option<String> {
        let root = self.context.root;
        self.begun.snapshots.as_ref()?;
        let fingerprint = self.tree.fingerprint(root, b"");
        if let Some((_, tree)) = self.begun.last.as_ref().filter(|(known, _)| *known == fingerprint) {
            return Some(tree.clone());
        }
        if self.tree.is_odd() || self.prepare_store().is_err() {
            return None;
        }
        let tree = self.begun.snapshots.as_ref()?.take(&asking(root, PATIENCE))?;
        self.begun.last = Some((fingerprint, tree.clone()));
        Some(tree)
    }

    fn open_snapshots(&mut self) -> Result<(), JournalError> {
        let root = self.context.root;
        self.begun.found = Some(self.tree.snapshot(root, None));
        if let Some(repository) = Repository::of(root).filter(|_| !self.tree.is_odd()) {
            self.begun.rules.get_or_insert_with(|| ignored(&repository));
            self.begun.sha256 = repository.is_sha256();
            self.prepare_store()?;
            self.begun.snapshots = Snapshots::of(root, snapshot_store(root));
        }
        Ok(())
    }

    /// Restores the store to its proper state, whatever has happened to it.
    fn prepare_store(&self) -> Result<(), JournalError> {
        let rules = self.begun.rules.as_deref().unwrap_or_default();
        let borrowed = self.context.origin.map(|origin| origin.objects.clone());
        prepare_store(&snapshot_store(self.context.root), borrowed.as_slice(), self.begun.sha256, rules)
    }

    /// Returns what has changed since the work began. Where git cannot tell, returns what we have seen ourselves; none
    /// if the tree was not looked at when the work began.
    pub(super) fn work(&mut self) -> Option<TreeChanges> {
        let root = self.context.root;
        let found = self.begun.found.clone()?;
        let (touched, removed) = self.tree.touched(root, &found, None);
        self.compared(&touched).or_else(|| {
            let unseen = touched.into_iter().chain(removed.into_iter().map(|file| file + " (removed)")).collect();
            Some(TreeChanges { unseen, ..TreeChanges::default() })
        })
    }

    fn compared(&mut self, touched: &[String]) -> Option<TreeChanges> {
        let root = self.context.root;
        if self.tree.is_odd() || self.prepare_store().is_err() {
            return None;
        }
        let git = asking(root, PATIENCE);
        let snapshots = self.begun.snapshots.as_ref()?;
        let before = self.begun.tree.clone()?;
        let now = snapshots.take(&git)?;
        let changed = snapshots.changes(&before, &now, &git)?;
        // A prompt cannot hold a NUL.
        let diff = snapshots.diff(&before, &now, &git)?.replace('\0', "\u{fffd}");
        let head = snapshots.of_head(&git);
        let uncommitted = head.and_then(|head| snapshots.changes(&head, &now, &git)).unwrap_or_default();
        let named = |file: &String| changed.iter().any(|change| change.path == *file);
        let silent: Vec<String> = touched.iter().filter(|file| !named(file)).cloned().collect();
        // A file that the snapshot holds and the diff does not show was only touched.
        let kept = snapshots.held(&now, &silent, &git);
        let mut unseen: Vec<String> = silent.into_iter().filter(|file| !kept.contains(file)).collect();
        let rules = self.begun.rules.as_deref().unwrap_or_default();
        for file in snapshots.newly_ignored(&before, rules, &git) {
            if !unseen.contains(&file) {
                unseen.push(file);
            }
        }
        Some(TreeChanges { diff: Some(diff), changed, uncommitted, unseen })
    }

    /// Returns the messages of the commits made since the work began.
    pub(super) fn commit_messages(&self) -> String {
        let root = self.context.root;
        let Some(commit) = self.begun.commit.as_deref().filter(|commit| !commit.is_empty()) else {
            return String::new();
        };
        let range = format!("{commit}..HEAD");
        asking(root, PATIENCE)(&["log", "--format=%B", "--end-of-options", &range]).unwrap_or_default()
    }

    /// Whether nothing has changed since the work began; false if that is unknown.
    pub(super) fn is_untouched(&mut self) -> bool {
        let Some(found) = self.begun.found.clone() else { return false };
        let (touched, removed) = self.tree.touched(self.context.root, &found, None);
        if let Some(changes) = self.compared(&touched) {
            return changes.changed.is_empty() && changes.unseen.is_empty();
        }
        // Without snapshots, only what this process has seen itself counts, and only for work that it began.
        let anew = self.context.plan.task.as_ref().is_none_or(|task| task.status == "pending") && !self.resumed;
        anew && self.begun.snapshots.is_none() && touched.is_empty() && removed.is_empty()
    }
}
