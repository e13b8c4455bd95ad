//! The work of a run: the tree that it began with, and what has changed since.

use super::spans::own_base;
use crate::chain::Role;
use crate::context::{
    BUILDS, CACHES, Git, Repository, Snapshot, Snapshots, TreeChanges, TreeFingerprint, TreeWatch, small,
};
use crate::engine::{At, EventKind, Notice, State};
use crate::journal::{JournalError, prepare_store, snapshot_store};
use crate::plan::{Overrides, Plan};
use crate::proc::capture;
use crate::runner::context::RunContext;
use crate::runner::render::{FIRST_PATIENCE, PATIENCE, asking};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The working tree of a run, and the state that it is compared with.
#[derive(Debug, Default)]
pub(in crate::runner) struct WorkWatch {
    /// Whether the run is one of several that work in one tree: no change belongs to one of them then.
    is_shared: bool,
    /// Whether an earlier process began the run.
    is_resumed: bool,
    tree: TreeWatch,
    snapshots: Option<Snapshots>,
    begun: WorkBaseline,
    sha256: bool,
    /// The last snapshot, with the fingerprint of the working tree right before it.
    last: Option<(String, String)>,
    /// The working tree as this process found it.
    found: Option<Snapshot>,
    /// The number of a judge's step, and the tree as that judge found it.
    judged: Option<(u32, Snapshot)>,
    /// The tree that `diagnose` last ran on, and whether it passed. Kept only in memory, so that no agent can change
    /// it.
    diagnosed: Option<(String, bool)>,
}

/// The state that the work of a run began with.
#[derive(Debug, Default)]
pub(in crate::runner) struct WorkBaseline {
    /// The tree; none if it is unknown.
    pub(in crate::runner) tree: Option<String>,
    /// The snapshot of the tree as this process found it.
    pub(in crate::runner) now: Option<String>,
    /// The commit that was checked out then, or that the user named.
    pub(in crate::runner) commit: Option<String>,
    /// The user's own ignore rules.
    pub(in crate::runner) rules: Option<String>,
}

/// What is remembered from before an attempt.
#[derive(Debug, Default)]
pub(in crate::runner) struct AttemptBaseline {
    /// The tree, where something depends on whether the attempt has changed it.
    pub(in crate::runner) tree: Option<Snapshot>,
    /// The attempt's prompt, as it was delivered.
    pub(in crate::runner) prompt: String,
}

impl WorkWatch {
    /// Watches the tree of a run that has not begun yet in this process.
    pub(in crate::runner) fn new(is_shared: bool, is_resumed: bool) -> Self {
        Self { is_shared, is_resumed, ..Self::default() }
    }

    /// The state that the work began with.
    pub(in crate::runner) fn begun(&self) -> &WorkBaseline {
        &self.begun
    }

    /// Returns a fingerprint of the tree and these bytes.
    pub(in crate::runner) fn fingerprint(&mut self, root: &Path, bytes: &[u8]) -> String {
        self.tree.fingerprint(root, bytes)
    }

    /// Keeps the result of a diagnosis with this command line of the tree as it is now.
    pub(in crate::runner) fn keep_diagnosis(&mut self, root: &Path, line: &str, passed: bool) {
        self.diagnosed = Some((self.fingerprint(root, line.as_bytes()), passed));
    }

    /// The tree that `diagnose` last ran on, and whether it passed.
    pub(in crate::runner) fn diagnosed(&self) -> Option<&(String, bool)> {
        self.diagnosed.as_ref()
    }

    /// Whether anything depends on what has changed.
    fn looks_at_work(&self, plan: &Plan) -> bool {
        let templated = plan.steps.iter().filter_map(|step| step.prompt.as_ref()).any(|prompt| prompt.around.is_some());
        let judged = plan.steps.iter().any(|step| step.role() == Some(Role::Judge));
        !self.is_shared && (templated || judged || plan.commits_tasks && plan.task.is_some())
    }

    /// Called before the first attempt of a run: determines what its work is compared with.
    pub(in crate::runner) fn begin(
        &mut self,
        context: &mut RunContext<'_>,
        overrides: &Overrides,
    ) -> Result<(), JournalError> {
        if !self.looks_at_work(context.plan) {
            self.begun.now = self.first_tree(context)?;
            return Ok(());
        }
        let (root, plan) = (context.root, context.plan);
        let task = plan.task.as_ref();
        self.begun.rules = match task {
            Some(task) => context.journal.tasks().rules_of(&task.id)?,
            None => None,
        };
        self.open_snapshots(context)?;
        let git = asking(root, FIRST_PATIENCE);
        self.begun.commit = overrides.base.clone().or_else(|| Repository::of(root).map(|repository| repository.head()));
        let Some(snapshots) = &self.snapshots else { return Ok(()) };
        let resolve = |commit: &str| snapshots.of_commit(&commit_of(root, commit)?, &git);
        let kept = match task {
            Some(task) => match context.journal.tasks().tree_of(&task.id)? {
                Some(tree) => {
                    snapshots.know(&tree);
                    Some(tree).filter(|tree| snapshots.is_whole(tree, &git))
                }
                // The task was begun before there were snapshots.
                None => context.journal.tasks().base_of(&task.id)?.and_then(|commit| resolve(&commit)),
            },
            None => None,
        };
        let judge = plan.steps.iter().position(|step| step.role() == Some(Role::Judge));
        let worked = plan.steps[..judge.unwrap_or(0)].iter().any(|step| step.role() == Some(Role::Worker));
        let now = self.tree_found(context, snapshots, &git);
        self.begun.now.clone_from(&now);
        self.begun.tree = match (&overrides.base, kept) {
            (Some(base), _) => resolve(base),
            // The work on a task began in its first run.
            (None, Some(tree)) => match (now, task) {
                (Some(now), Some(task)) => Some(own_base(context.journal, snapshots, &git, &task.id, (&tree, &now))?),
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
            context.observer.notice(&Notice::Uncommitted(&files));
        }
        Ok(())
    }

    /// Called when a run is resumed: its work is compared with what the run began with. Returns the tree that it
    /// continues with.
    pub(in crate::runner) fn begin_again(
        &mut self,
        context: &RunContext<'_>,
        began: &EventKind,
    ) -> Result<Option<String>, JournalError> {
        let EventKind::RunStarted { base, tree, rules, .. } = began else { return Ok(None) };
        self.begun.rules.clone_from(rules);
        if !self.looks_at_work(context.plan) {
            return self.first_tree(context);
        }
        self.open_snapshots(context)?;
        self.begun.commit.clone_from(base);
        let git = asking(context.root, FIRST_PATIENCE);
        let Some(snapshots) = &self.snapshots else { return Ok(None) };
        self.begun.tree = match tree {
            Some(tree) => {
                snapshots.know(tree);
                Some(tree.clone()).filter(|tree| snapshots.is_whole(tree, &git))
            }
            // The run was begun before there were snapshots.
            None => base.as_deref().and_then(|commit| snapshots.of_commit(commit, &git)),
        };
        let now = snapshots.take(&git);
        if let (Some(task), Some(tree), Some(now)) = (&context.plan.task, &self.begun.tree, &now) {
            self.begun.tree = Some(own_base(context.journal, snapshots, &git, &task.id, (tree, now))?);
        }
        Ok(now)
    }

    /// Returns the tree with which the run begins, where only the record of its changes needs it. A run without a
    /// worker has no such record. The first snapshot of a commit copies its objects: about 0.2 s for 2,000 files; a
    /// later run takes about 30 ms.
    fn first_tree(&mut self, context: &RunContext<'_>) -> Result<Option<String>, JournalError> {
        let works = context.plan.steps.iter().any(|step| step.role() == Some(Role::Worker));
        if self.is_shared || !works {
            return Ok(None);
        }
        self.open_snapshots(context)?;
        let git = asking(context.root, FIRST_PATIENCE);
        Ok(self.snapshots.as_ref().and_then(|snapshots| self.tree_found(context, snapshots, &git)))
    }

    /// Returns the tree that a run finds.
    fn tree_found(&self, context: &RunContext<'_>, snapshots: &Snapshots, git: &Git<'_>) -> Option<String> {
        let fresh = context.origin.and_then(|origin| origin.fresh.as_ref()).filter(|_| !self.is_resumed);
        match fresh {
            Some(fresh) if snapshots.begin_at(fresh) => Some(fresh.tree.clone()),
            _ => snapshots.take(git),
        }
    }

    /// Returns the fingerprint of the tree as it is now, for `tree_now` and for that of a loop's iteration; `None` if
    /// this is no loop and there are no snapshots. Costs one walk of the tree.
    pub(in crate::runner) fn look(&mut self, root: &Path, loops: bool) -> Option<TreeFingerprint> {
        (loops || self.snapshots.is_some()).then(|| self.tree.fingerprint_of_tree(root))
    }

    /// Returns a snapshot of the tree: the last one if the tree looked the same then, otherwise a new one. `None`
    /// without snapshots. A new one costs two git commands.
    pub(in crate::runner) fn tree_now(&mut self, context: &RunContext<'_>, seen: &TreeFingerprint) -> Option<String> {
        self.snapshots.as_ref()?;
        let fingerprint = seen.with(b"");
        if let Some((_, tree)) = self.last.as_ref().filter(|(known, _)| *known == fingerprint) {
            return Some(tree.clone());
        }
        if self.tree.is_odd() || self.prepare_store(context).is_err() {
            return None;
        }
        let tree = self.snapshots.as_ref()?.take(&asking(context.root, PATIENCE))?;
        self.last = Some((fingerprint, tree.clone()));
        Some(tree)
    }

    fn open_snapshots(&mut self, context: &RunContext<'_>) -> Result<(), JournalError> {
        let root = context.root;
        self.found = Some(self.tree.snapshot(root, None));
        if let Some(repository) = Repository::of(root).filter(|_| !self.tree.is_odd()) {
            self.begun.rules.get_or_insert_with(|| ignored(&repository));
            self.sha256 = repository.is_sha256();
            self.prepare_store(context)?;
            self.snapshots = Snapshots::of(root, snapshot_store(root));
        }
        Ok(())
    }

    /// Restores the store to its proper state, whatever has happened to it.
    fn prepare_store(&self, context: &RunContext<'_>) -> Result<(), JournalError> {
        let rules = self.begun.rules.as_deref().unwrap_or_default();
        let borrowed = context.origin.map(|origin| origin.objects.clone());
        prepare_store(&snapshot_store(context.root), borrowed.as_slice(), self.sha256, rules)
    }

    /// Returns what has changed since the work began. Where git cannot tell, returns what we have seen ourselves; none
    /// if the tree was not looked at when the work began.
    pub(in crate::runner) fn changes(&mut self, context: &RunContext<'_>) -> Option<TreeChanges> {
        let root = context.root;
        let found = self.found.clone()?;
        let (touched, removed) = self.tree.touched(root, &found, None);
        self.compared(context, &touched).or_else(|| {
            let unseen = touched.into_iter().chain(removed.into_iter().map(|file| file + " (removed)")).collect();
            Some(TreeChanges { unseen, ..TreeChanges::default() })
        })
    }

    fn compared(&mut self, context: &RunContext<'_>, touched: &[String]) -> Option<TreeChanges> {
        let root = context.root;
        if self.tree.is_odd() || self.prepare_store(context).is_err() {
            return None;
        }
        let git = asking(root, PATIENCE);
        let snapshots = self.snapshots.as_ref()?;
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
    pub(in crate::runner) fn commit_messages(&self, root: &Path) -> String {
        let Some(commit) = self.begun.commit.as_deref().filter(|commit| !commit.is_empty()) else {
            return String::new();
        };
        let range = format!("{commit}..HEAD");
        asking(root, PATIENCE)(&["log", "--format=%B", "--end-of-options", &range]).unwrap_or_default()
    }

    /// Whether nothing has changed since the work began; false if that is unknown.
    pub(in crate::runner) fn is_untouched(&mut self, context: &RunContext<'_>) -> bool {
        let Some(found) = self.found.clone() else { return false };
        let (touched, removed) = self.tree.touched(context.root, &found, None);
        if let Some(changes) = self.compared(context, &touched) {
            return changes.changed.is_empty() && changes.unseen.is_empty();
        }
        // Without snapshots, only what this process has seen itself counts, and only for work that it began.
        let anew = context.plan.task.as_ref().is_none_or(|task| task.status == "pending") && !self.is_resumed;
        anew && self.snapshots.is_none() && touched.is_empty() && removed.is_empty()
    }

    /// Takes a snapshot of the tree where something depends on it: a judge must not change the tree, and a worker in a
    /// group should. In a lane, nothing does. Costs one walk of the tree.
    pub(in crate::runner) fn before(&mut self, context: &RunContext<'_>, state: &State, at: &At) -> Option<Snapshot> {
        if self.is_shared {
            return None;
        }
        let judge = context.role(at) == Some(Role::Judge);
        let looks = judge || context.role(at) == Some(Role::Worker) && context.group_of(at).is_some();
        // A judge that is asked again is compared with the tree that it found the first time.
        let again = state.unclear(at.step) > 0 || state.is_retry();
        if again
            && let Some((step, tree)) = &self.judged
            && *step == at.step
        {
            return Some(tree.clone());
        }
        let tracked = judge.then(|| tracked_builds(context.root));
        let tree = looks.then(|| self.tree.snapshot(context.root, tracked.as_ref()));
        self.judged = tree.clone().filter(|_| judge).map(|tree| (at.step, tree));
        tree
    }

    /// Returns the files that have changed since the tree before an attempt, up to `most`; none without such a tree.
    pub(in crate::runner) fn changed_by(
        &mut self,
        context: &RunContext<'_>,
        at: &At,
        before: Option<&Snapshot>,
        most: usize,
    ) -> Option<Vec<String>> {
        let before = before?;
        let tracked = (context.role(at) == Some(Role::Judge)).then(|| tracked_builds(context.root));
        Some(self.tree.changes(context.root, before, most, tracked.as_ref()))
    }
}

/// Returns the commit that a revision name refers to in the project's repository.
fn commit_of(root: &Path, name: &str) -> Option<String> {
    let commit = format!("{name}^{{commit}}");
    let found = asking(root, PATIENCE)(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])?;
    Some(found.trim().to_string())
}

/// Returns ignore rules for snapshots: the user's own rules as they are when the work begins, and rules for caches.
/// Both kinds of files may be large, and neither is part of the work.
pub(super) fn ignored(repository: &Repository) -> String {
    let caches = CACHES.map(|cache| format!("{cache}/\n")).concat();
    let global = ["config", "--global", "--path", "--get", "core.excludesFile"].map(str::to_string);
    let own = capture(Path::new("git"), &global, &repository.top).filter(|answer| answer.code == Some(0));
    let own = own.map(|answer| PathBuf::from(answer.stdout.trim()));
    let files = [Some(repository.common.join("info/exclude")), own];
    files.into_iter().flatten().filter_map(|path| small(&path)).fold(caches, |rules, more| rules + &more + "\n")
}

/// Returns the files that git tracks in build directories. Everything else in those directories is not judged.
fn tracked_builds(root: &Path) -> HashSet<String> {
    let places: Vec<String> =
        BUILDS.iter().flat_map(|build| [format!(":(glob)**/{build}/**"), format!(":(glob)**/{build}")]).collect();
    let words: Vec<&str> = ["ls-files", "-z", "--"].into_iter().chain(places.iter().map(String::as_str)).collect();
    let listed = asking(root, PATIENCE)(&words).unwrap_or_default();
    listed.split('\0').filter(|file| !file.is_empty()).map(str::to_string).collect()
}
