//! The work of a run: the tree that it began at, and what has changed since.

use super::driver::Driver;
use super::event::Overrides;
use super::fill::{PATIENCE, asking};
use crate::chain::Role;
use crate::context::{CACHES, Repository, Snapshots, TreeChanges, small};
use crate::journal::{JournalError, prepare_store, snapshot_store};
use crate::proc::ask;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the first snapshot may take, which reads every file once.
const FIRST_PATIENCE: Duration = Duration::from_mins(2);

/// What the work is compared with.
#[derive(Debug, Default)]
pub(super) struct Begun {
    snapshots: Option<Snapshots>,
    /// The tree that it began at; none where nobody knows.
    pub(super) tree: Option<String>,
    /// The commit that was checked out then, or that the user named.
    pub(super) commit: Option<String>,
    /// The working tree as this process found it.
    found: Option<crate::context::Snapshot>,
}

/// The commit that a name of the project's repository stands for.
fn commit_of(root: &Path, name: &str) -> Option<String> {
    let commit = format!("{name}^{{commit}}");
    let found = asking(root, PATIENCE)(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
    Some(found.trim().to_string())
}

/// What the user's own rules leave out, as they are when the work begins, and caches: both may be large, and are nobody's work.
fn ignored(repository: &Repository) -> String {
    let caches = CACHES.map(|cache| format!("{cache}/\n")).concat();
    let global = ["config", "--global", "--path", "--get", "core.excludesFile"].map(str::to_string);
    let own = ask(Path::new("git"), &global, &repository.top).filter(|answer| answer.code == Some(0));
    let own = own.map(|answer| PathBuf::from(answer.stdout.trim()));
    let files = [Some(repository.common.join("info/exclude")), own];
    files.into_iter().flatten().filter_map(|path| small(&path)).fold(caches, |rules, more| rules + &more + "\n")
}

/// What has changed in a tree since its last commit, as a template shows it: nothing is written in the project.
#[must_use]
pub fn uncommitted(root: &Path, scratch: &Path, since: Option<&str>) -> Option<TreeChanges> {
    let repository = Repository::of(root)?;
    let own = snapshot_store(root).join("objects");
    let objects: Vec<PathBuf> =
        [repository.common.join("objects"), own].into_iter().filter(|path| path.is_dir()).collect();
    prepare_store(scratch, &objects, repository.is_sha256(), &ignored(&repository)).ok()?;
    let git = asking(root, FIRST_PATIENCE);
    let snapshots = Snapshots::of(root, scratch.to_path_buf())?;
    let (head, now) = (snapshots.of_head(&git)?, snapshots.take(&git)?);
    let before = since.unwrap_or(&head);
    Some(TreeChanges {
        diff: snapshots.diff(before, &now, &git)?.replace('\0', "\u{fffd}"),
        changed: snapshots.changes(before, &now, &git)?,
        uncommitted: snapshots.changes(&head, &now, &git)?,
        unseen: Vec::new(),
    })
}

impl Driver<'_> {
    /// Whether anything depends on what has changed.
    fn looks_at_work(&self) -> bool {
        let plan = self.cast.plan;
        let templated = plan.steps.iter().filter_map(|step| step.prompt.as_ref()).any(|prompt| prompt.around.is_some());
        self.lane.is_none() && (templated || plan.steps.iter().any(|step| step.role() == Some(Role::Judge)))
    }

    /// Before the first attempt of a run: what its work is compared with.
    pub(super) fn begin_work(&mut self, overrides: &Overrides) -> Result<(), JournalError> {
        if !self.looks_at_work() {
            return Ok(());
        }
        self.open_snapshots()?;
        let (root, plan) = (self.cast.root, self.cast.plan);
        let git = asking(root, FIRST_PATIENCE);
        self.begun.commit = overrides.base.clone().or_else(|| Repository::of(root).map(|repository| repository.head()));
        let Some(snapshots) = &self.begun.snapshots else { return Ok(()) };
        let resolve = |commit: &str| snapshots.of_commit(&commit_of(root, commit)?, &git);
        let kept = match plan.task.as_ref() {
            Some(task) => match self.cast.journal.tree_of(&task.id)? {
                Some(tree) => Some(tree),
                // Begun before there were snapshots.
                None => self.cast.journal.base_of(&task.id)?.and_then(|commit| resolve(&commit)),
            },
            None => None,
        };
        let judge = plan.steps.iter().position(|step| step.role() == Some(Role::Judge));
        let worked = plan.steps[..judge.unwrap_or(0)].iter().any(|step| step.role() == Some(Role::Worker));
        self.begun.tree = match (&overrides.base, kept) {
            (Some(base), _) => resolve(base),
            // The work on a task began in its first run.
            (None, Some(tree)) => Some(tree),
            (None, None) if worked || plan.task.is_some() => snapshots.take(&git),
            // Nobody judges new work: what is not committed.
            (None, None) => snapshots.of_head(&git),
        };
        Ok(())
    }

    /// A run that goes on compares with what it began with.
    pub(super) fn begin_work_again(&mut self, tree: Option<String>, commit: Option<&str>) -> Result<(), JournalError> {
        if !self.looks_at_work() {
            return Ok(());
        }
        self.open_snapshots()?;
        self.begun.commit = commit.map(str::to_string);
        self.begun.tree = tree.or_else(|| {
            // Of a run from before there were snapshots.
            let git = asking(self.cast.root, PATIENCE);
            self.begun.snapshots.as_ref()?.of_commit(commit?, &git)
        });
        Ok(())
    }

    fn open_snapshots(&mut self) -> Result<(), JournalError> {
        let root = self.cast.root;
        self.begun.found = Some(self.tree.snapshot(root, None));
        if let Some(repository) = Repository::of(root).filter(|_| !self.tree.is_odd()) {
            let store = snapshot_store(root);
            let ignored = ignored(&repository);
            prepare_store(&store, &[repository.common.join("objects")], repository.is_sha256(), &ignored)?;
            self.begun.snapshots = Snapshots::of(root, store);
        }
        Ok(())
    }

    /// What was changed since the work began; none where git does not say.
    pub(super) fn work(&mut self) -> Option<TreeChanges> {
        let root = self.cast.root;
        if self.tree.is_odd() {
            return None;
        }
        let git = asking(root, PATIENCE);
        let snapshots = self.begun.snapshots.clone()?;
        let before = self.begun.tree.clone()?;
        let now = snapshots.take(&git)?;
        let changed = snapshots.changes(&before, &now, &git)?;
        // No prompt holds a NUL.
        let diff = snapshots.diff(&before, &now, &git)?.replace('\0', "\u{fffd}");
        let head = snapshots.of_head(&git);
        let uncommitted = head.and_then(|head| snapshots.changes(&head, &now, &git)).unwrap_or_default();
        let found = self.begun.found.clone().unwrap_or_else(|| self.tree.snapshot(root, None));
        let (touched, _) = self.tree.touched(root, &found, None);
        let named = |file: &String| changed.iter().any(|change| change.path == *file);
        let silent: Vec<String> = touched.into_iter().filter(|file| !named(file)).collect();
        // What a snapshot holds and the diff does not show was only touched.
        let kept = snapshots.held(&now, &silent, &git);
        let unseen = silent.into_iter().filter(|file| !kept.contains(file)).collect();
        Some(TreeChanges { diff, changed, uncommitted, unseen })
    }

    /// The files that were changed since the work began and are there, by path from the root.
    pub(super) fn changed_files(&mut self) -> Vec<String> {
        let changes = self.work().unwrap_or_default();
        let there = changes.changed.into_iter().filter(|change| change.status != 'D').map(|change| change.path);
        there.chain(changes.unseen).collect()
    }

    /// The messages of the commits that were made since the work began.
    pub(super) fn commit_messages(&self) -> String {
        let root = self.cast.root;
        let Some(commit) = self.begun.commit.as_deref().filter(|commit| !commit.is_empty()) else {
            return String::new();
        };
        let range = format!("{commit}..HEAD");
        asking(root, PATIENCE)(&["log", "--format=%B", "--end-of-options", &range]).unwrap_or_default()
    }

    /// Whether nothing has changed since the work began; none where nobody knows.
    pub(super) fn is_untouched(&mut self) -> bool {
        let root = self.cast.root;
        if let (Some(snapshots), Some(before)) = (&self.begun.snapshots, &self.begun.tree) {
            let git = asking(root, PATIENCE);
            return snapshots.take(&git).is_some_and(|now| now == *before);
        }
        // Without snapshots only what this process has seen itself counts, of work that was begun by it.
        let anew = self.cast.plan.task.as_ref().is_none_or(|task| task.status == "pending") && !self.resumed;
        let Some(found) = self.begun.found.clone().filter(|_| anew) else { return false };
        let (changed, removed) = self.tree.touched(root, &found, None);
        changed.is_empty() && removed.is_empty()
    }
}
