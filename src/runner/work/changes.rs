//! What attempts changed, read from the snapshots of their run, and trees written back to a directory.

use crate::context::{Repository, Snapshots};
use crate::engine::{FileChange, RunTrees};
use crate::journal::{JournalError, forget_trees, keep_trees, prepare_store, snapshot_store};
use crate::runner::render::{FIRST_PATIENCE, asking};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long git may take to find out what nothing refers to any more.
const PRUNE_PATIENCE: Duration = Duration::from_mins(10);

/// A git repository with trees of a root: the snapshots of its runs, or the hub of its batches.
#[derive(Debug, Clone)]
pub struct TreeStore {
    root: PathBuf,
    store: PathBuf,
}

impl TreeStore {
    /// The snapshots of a root.
    #[must_use]
    pub fn of(root: &Path) -> Self {
        Self { root: root.to_path_buf(), store: snapshot_store(root) }
    }

    /// Another repository with trees of a root.
    #[must_use]
    pub fn at(root: &Path, store: &Path) -> Self {
        Self { root: root.to_path_buf(), store: store.to_path_buf() }
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it has the snapshots of runs in this root.
    #[must_use]
    pub fn has_snapshots(&self) -> bool {
        self.store == snapshot_store(&self.root)
    }

    fn snapshots(&self) -> Option<Snapshots> {
        Snapshots::of(&self.root, self.store.clone())
    }

    /// Returns whether it has a tree.
    #[must_use]
    pub fn has(&self, tree: &str) -> bool {
        let store = self.store.display().to_string();
        self.store.is_dir()
            && asking(&self.root, FIRST_PATIENCE)(&["--git-dir", &store, "cat-file", "-e", tree]).is_some()
    }

    /// Returns the difference between two trees as a patch. `None` if there is no repository or one of the trees is
    /// gone.
    #[must_use]
    pub fn patch(&self, before: &str, after: &str) -> Option<String> {
        self.snapshots()?.diff(before, after, &asking(&self.root, FIRST_PATIENCE))
    }

    /// Returns the same patch byte for byte, whatever the encoding of the files is. `scratch` is a directory for a
    /// file.
    #[must_use]
    pub fn patch_bytes(&self, scratch: &Path, before: &str, after: &str) -> Option<Vec<u8>> {
        let (file, mut bytes) = (scratch.join("patch"), Vec::new());
        self.snapshots()?.diff_to(&file, before, after, &asking(&self.root, FIRST_PATIENCE)).then_some(())?;
        File::open(file).and_then(|mut file| file.read_to_end(&mut bytes)).ok()?;
        Some(bytes)
    }

    /// Returns the files that differ between two trees, with the numbers of their lines. `None` if there is no
    /// repository or one of the trees is gone.
    #[must_use]
    pub fn files(&self, before: &str, after: &str) -> Option<Vec<FileChange>> {
        if before == after {
            return Some(Vec::new());
        }
        self.snapshots()?.numstat(before, after, &asking(&self.root, FIRST_PATIENCE))
    }

    /// Returns the files that a run changed, from its first tree to its last. `None` if there were no snapshots. The
    /// root may have been moved since.
    #[must_use]
    pub fn files_of_run(&self, trees: &RunTrees) -> Option<Vec<FileChange>> {
        self.files(trees.began.as_deref()?, trees.last()?)
    }

    /// Writes a tree to an empty directory. `scratch` is an empty directory that is not used afterwards. Returns
    /// whether git could write all of it.
    #[must_use]
    pub fn write_tree(&self, scratch: &Path, tree: &str, to: &Path) -> bool {
        let Some(repository) = Repository::of(&self.root) else { return false };
        // An index of its own, because a run in progress uses that of the store.
        let store = scratch.join("store");
        if prepare_store(&store, &[self.store.join("objects")], repository.is_sha256(), "").is_err() {
            return false;
        }
        let (store, to) = (store.display().to_string(), to.display().to_string());
        let git = asking(&self.root, FIRST_PATIENCE);
        let own = ["--no-replace-objects", "--git-dir", &store, "--work-tree", &to];
        let all = |words: &[&str]| git(&[&own[..], words].concat()).is_some();
        all(&["read-tree", tree]) && all(&["checkout-index", "--all"])
    }
}

/// The result of [`prune_snapshots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrunedSnapshots {
    /// What nothing refers to is gone. So are this many snapshots that lack files, which git could not read any more.
    Done(usize),
    /// git cannot be run, takes too long, or reports an error that is not in the snapshots.
    Failed,
}

/// Removes from a root's snapshots what none of these trees contains. Without a store there is nothing to do.
///
/// # Errors
/// When the store cannot be written.
pub fn prune_snapshots(root: &Path, trees: &[String]) -> Result<PrunedSnapshots, JournalError> {
    let store = snapshot_store(root);
    if !store.is_dir() {
        return Ok(PrunedSnapshots::Done(0));
    }
    let folder = store.display().to_string();
    let all = asking(root, PRUNE_PATIENCE);
    let git = |words: &[&str]| all(&[&["--git-dir", &folder], words].concat()).is_some();
    // Commits that were fetched to borrow their trees are the store's own refs; each run fetches what it needs.
    let _ = git(&["update-ref", "-d", "refs/forkhestra/base"]);
    let prune = |trees: &[String]| {
        keep_trees(&store, trees)?;
        // A fetch of many objects keeps them in a pack, which `prune` does not touch. What is borrowed is not copied.
        let done = git(&["repack", "-a", "-d", "-l", "-q"]) && git(&["prune", "--expire=now"]);
        forget_trees(&store);
        Ok(done)
    };
    if prune(trees)? {
        return Ok(PrunedSnapshots::Done(0));
    }
    // git prunes nothing as long as a kept tree lacks an object. The repository that the store borrows from may have
    // lost one.
    let is_whole = |tree: &str| git(&["rev-list", "--objects", "--quiet", "--end-of-options", tree]);
    let is_there = |tree: &&String| git(&["cat-file", "-e", tree]);
    let (whole, others): (Vec<String>, Vec<String>) = trees.iter().cloned().partition(|tree| is_whole(tree));
    let damaged = others.iter().filter(is_there).count();
    if others.is_empty() || !prune(&whole)? {
        return Ok(PrunedSnapshots::Failed);
    }
    Ok(PrunedSnapshots::Done(damaged))
}
