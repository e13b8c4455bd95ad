//! Snapshots of the working tree, as git trees in a store of our own. The project's attributes, filters, index flags and
//! replacements do not reach them, so nothing that is changed can be hidden there, and nothing of the project's config is run.

use super::gather::Git;
use super::repository::Repository;
use std::path::{Path, PathBuf};

/// How many files are named in one command line.
const BATCH: usize = 200;

/// The snapshots of one root.
#[derive(Debug, Clone)]
pub struct Snapshots {
    store: PathBuf,
    top: PathBuf,
    /// The root, from the top of the working tree; empty when they are the same.
    prefix: String,
    /// The commit that was checked out when they were begun.
    repository: Repository,
}

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// `A` for a new file, `D` for one that is gone, `M` for any other, `T` for one of another kind.
    pub status: char,
    /// Its path from the root.
    pub path: String,
}

impl Snapshots {
    /// Snapshots of the files below a root; `store` is a prepared store of ours. None outside of a repository.
    #[must_use]
    pub fn of(root: &Path, store: PathBuf) -> Option<Self> {
        let repository = Repository::of(root)?;
        let prefix = root.strip_prefix(&repository.top).ok()?.to_str()?.to_string();
        Some(Self { store, top: repository.top.clone(), prefix, repository })
    }

    fn ask(&self, git: &Git<'_>, words: &[&str]) -> Option<String> {
        let (store, top) = (self.store.display().to_string(), self.top.display().to_string());
        let own = ["--no-replace-objects", "--git-dir", &store, "--work-tree", &top];
        git(&[&own[..], words].concat())
    }

    /// Takes a snapshot and returns its tree. Costs a `stat` of every file and the reading of those that were touched since the last one.
    #[must_use]
    pub fn take(&self, git: &Git<'_>) -> Option<String> {
        if !self.store.join("index").exists() {
            // What git keeps and would ignore belongs to the tree as well.
            let head = self.repository.head();
            if !head.is_empty() {
                let _ = self.ask(git, &["read-tree", &head]);
            }
        }
        if self.ask(git, &["add", "--all", "--ignore-errors", "--", "."]).is_none() {
            self.add_piecemeal(git);
        }
        self.write(git)
    }

    /// One file that cannot be added, such as a repository without a commit, keeps no other out.
    fn add_piecemeal(&self, git: &Git<'_>) {
        let _ = self.ask(git, &["add", "--update", "--ignore-errors", "--", "."]);
        let others = self.ask(git, &["ls-files", "--others", "--exclude-standard", "-z"]).unwrap_or_default();
        let files: Vec<&str> = others.split('\0').filter(|file| !file.is_empty() && !file.ends_with('/')).collect();
        for batch in files.chunks(BATCH) {
            let words = ["--literal-pathspecs", "add", "--ignore-errors", "--"];
            let _ = self.ask(git, &[&words[..], batch].concat());
        }
    }

    fn write(&self, git: &Git<'_>) -> Option<String> {
        let prefix = format!("--prefix={}/", self.prefix);
        let words: &[&str] = if self.prefix.is_empty() { &["write-tree"] } else { &["write-tree", &prefix] };
        self.ask(git, words).map(|tree| tree.trim().to_string()).filter(|tree| !tree.is_empty())
    }

    /// The files of a commit of the repository, as a tree.
    #[must_use]
    pub fn of_commit(&self, commit: &str, git: &Git<'_>) -> Option<String> {
        let tree =
            if self.prefix.is_empty() { format!("{commit}^{{tree}}") } else { format!("{commit}:{}", self.prefix) };
        let found = self.ask(git, &["rev-parse", "--verify", "--quiet", "--end-of-options", &tree])?;
        Some(found.trim().to_string()).filter(|tree| !tree.is_empty())
    }

    /// The tree of the commit that is checked out; an empty one before the first commit.
    #[must_use]
    pub fn of_head(&self, git: &Git<'_>) -> Option<String> {
        let head = self.repository.head();
        if head.is_empty() {
            return self.ask(git, &["mktree"]).map(|tree| tree.trim().to_string());
        }
        self.of_commit(&head, git)
    }

    /// The files that differ between two trees, by path. None when one of them is gone.
    #[must_use]
    pub fn changes(&self, before: &str, now: &str, git: &Git<'_>) -> Option<Vec<Changed>> {
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", before, now];
        let told = self.ask(git, &words)?;
        let mut words = told.split('\0');
        let mut changes = Vec::new();
        while let (Some(status), Some(path)) = (words.next().filter(|word| !word.is_empty()), words.next()) {
            let status = status.chars().next().unwrap_or('M');
            changes.push(Changed { status, path: path.to_string() });
        }
        Some(changes)
    }

    /// What differs between two trees, as a patch; every file as text.
    #[must_use]
    pub fn diff(&self, before: &str, now: &str, git: &Git<'_>) -> Option<String> {
        let own =
            ["--no-ext-diff", "--no-textconv", "--no-color", "--text", "-M", "--src-prefix=a/", "--dst-prefix=b/"];
        self.ask(git, &[&["diff"][..], &own, &[before, now]].concat())
    }

    /// Those of some files that a tree holds.
    #[must_use]
    pub fn held(&self, tree: &str, files: &[String], git: &Git<'_>) -> Vec<String> {
        let mut held = Vec::new();
        for batch in files.chunks(BATCH) {
            let names: Vec<&str> = batch.iter().map(String::as_str).collect();
            let words = ["--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", tree, "--"];
            let told = self.ask(git, &[&words[..], &names].concat()).unwrap_or_default();
            held.extend(told.split('\0').filter(|name| !name.is_empty()).map(str::to_string));
        }
        held
    }
}
