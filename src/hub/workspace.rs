//! Workspaces: the working trees of units, clones of the hub that lie outside of the user's root.

use super::commits::HubCommits;
use super::files::{add_all, tree_of_folder};
use super::fill::fill;
use super::hub_git::{HubGit, write};
use super::{HubError, git};
use crate::context::{FreshTree, Repository, TreeOrigin};
use crate::unit::Bundle;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The working tree of a unit.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Its top directory.
    pub top: PathBuf,
    /// The project's directory in it.
    pub root: PathBuf,
    name: String,
    /// The identity of the unit that works in it.
    unit: String,
}

/// The right of one process to write to a workspace, until it is dropped.
#[derive(Debug)]
pub struct WorkspaceLock {
    path: PathBuf,
    _file: File,
}

impl Workspace {
    /// The workspace of a bundle, below a directory of workspaces. Nothing is created.
    #[must_use]
    pub fn of(bundle: &Bundle, folder: &Path) -> Self {
        let named = Self { unit: bundle.identity(), ..Self::named(&bundle.workspace, folder) };
        if bundle.folder.is_empty() { named } else { Self { root: named.top.join(&bundle.folder), ..named } }
    }

    /// The workspace with this name.
    #[must_use]
    pub fn named(name: &str, folder: &Path) -> Self {
        let top = folder.join(name);
        Self { root: top.clone(), top, name: name.to_string(), unit: String::new() }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The file next to it that says which unit has it, and the last run in it before that unit.
    fn owner(&self) -> PathBuf {
        self.top.with_file_name(format!("{}.unit", self.name))
    }

    /// Locks it for this process, until the lock is dropped. Returns `None` if another process has it.
    ///
    /// # Errors
    /// When the lock cannot be written.
    pub fn lock(&self) -> Result<Option<WorkspaceLock>, HubError> {
        let path = self.top.with_file_name(format!("{}.lock", self.name));
        let failed = |cause| HubError::Write { path: path.clone(), cause };
        let above = self.top.parent().unwrap_or(&self.top);
        #[expect(clippy::disallowed_methods, reason = "the owner of workspaces")]
        fs::create_dir_all(above).map_err(failed)?;
        loop {
            let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
            // Whoever had it may have removed the file meanwhile: then the lock of that file means nothing.
            let is_same = |one: fs::Metadata, other: fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
            let ours = file.metadata().map_err(failed)?;
            if fs::metadata(&path).is_ok_and(|there| is_same(there, ours)) {
                return Ok(Some(WorkspaceLock { path, _file: file }));
            }
        }
    }

    /// Records that its unit has it from now on, with the number of the claim. `run` is the last run in it so far, or
    /// 0.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn take(&self, run: i64, fence: u32) -> Result<(), HubError> {
        write(&self.owner(), format!("{} {run} {fence}\n", self.unit).as_bytes())
    }

    /// Records that its unit was claimed again, with the number of the claim.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn claimed(&self, fence: u32) -> Result<(), HubError> {
        self.take(self.run_before().unwrap_or(0), fence)
    }

    /// Returns the last run in it before its unit took it; `None` if another unit has it.
    #[must_use]
    pub fn run_before(&self) -> Option<i64> {
        self.owned()?.0.parse().ok()
    }

    /// Returns the number of the last claim with which somebody worked in it; `None` if another unit has it.
    #[must_use]
    pub fn fence(&self) -> Option<u32> {
        self.owned()?.1.parse().ok()
    }

    fn owned(&self) -> Option<(String, String)> {
        let text = crate::context::small(&self.owner())?;
        let (run, fence) = text.trim().strip_prefix(&self.unit)?.strip_prefix(' ')?.split_once(' ')?;
        Some((run.to_string(), fence.to_string()))
    }
}

/// The workspaces that are clones of a hub.
#[derive(Debug, Clone, Copy)]
pub struct HubWorkspaces<'a>(pub(super) &'a HubGit);

impl HubWorkspaces<'_> {
    /// Makes a workspace ready for a unit: its files are those of `bundle.start`, and what is checked out is
    /// `bundle.base`, so that work that is continued shows as uncommitted changes. What git ignores, such as the result
    /// of a build, is kept from an earlier unit. A fresh workspace gets copies of, or links to, the paths below
    /// `from` that the bundle names. Returns what a run in it needs to know about its files.
    ///
    /// # Errors
    /// When git fails, or the directory cannot be written.
    pub fn make(self, bundle: &Bundle, workspace: &Workspace, from: &Path) -> Result<TreeOrigin, HubError> {
        let failed = |cause| HubError::Write { path: workspace.top.clone(), cause };
        let above = workspace.top.parent().unwrap_or(&workspace.top);
        #[expect(clippy::disallowed_methods, reason = "the owner of workspaces")]
        fs::create_dir_all(above).map_err(failed)?;
        let index = self.0.index(&workspace.name);
        write(&self.0.path().join("indexes").join(".keep"), b"")?;
        // The old `.git` belonged to an agent, who may have configured what would run here.
        let fresh = above.join(format!("{}.new", workspace.name));
        let _ = fs::remove_dir_all(&fresh);
        let (ours, to) = (self.0.path().display().to_string(), fresh.display().to_string());
        git::outside(&["clone", "--quiet", "--shared", "--no-checkout", "--", &ours, &to], above)?;
        let branch = format!("refs/heads/forkhestra/{}", bundle.workspace);
        // Nobody else knows this repository yet, so its refs can be written as files (gitrepository-layout(5)).
        write(&fresh.join(".git").join(&branch), format!("{}\n", bundle.base).as_bytes())?;
        write(&fresh.join(".git/HEAD"), format!("ref: {branch}\n").as_bytes())?;
        let is_reused = workspace.top.is_dir() && index.is_file() && !bundle.clean;
        if is_reused {
            let kept = workspace.top.join(".git");
            let _ = fs::remove_dir_all(&kept).or_else(|_| fs::remove_file(&kept));
            fs::rename(fresh.join(".git"), &kept).map_err(failed)?;
            fs::remove_dir_all(&fresh).map_err(failed)?;
            // These files may be replaced: they are the result of an earlier unit, and the hub has them already.
            add_all(self.0, &workspace.top, &index)?;
            self.check_out(&["--reset", "-u", &bundle.start], workspace)?;
        } else {
            let _ = fs::remove_dir_all(&workspace.top);
            fs::rename(&fresh, &workspace.top).map_err(failed)?;
            let _ = fs::remove_file(&index);
            self.check_out(&["-m", "-u", &bundle.start], workspace)?;
            fill(bundle, from, &workspace.root, &workspace.top)?;
        }
        // What git ignores here, it ignores for the agent, too.
        let _ = fs::copy(self.0.path().join("info/exclude"), workspace.top.join(".git/info/exclude"));
        let own = workspace.top.join(".git/index");
        fs::copy(&index, &own).map_err(failed)?;
        if bundle.start != bundle.base {
            self.0.in_tree(&["read-tree", "-m", &bundle.base], &workspace.top, &own)?;
            // Entries that did not change keep what is known of their files; the others are refreshed here.
            let _ = self.0.in_tree(&["update-index", "-q", "--refresh"], &workspace.top, &own);
        }
        // In one that was used before, files that git ignores only here could be taken for changes.
        let fresh = if is_reused { None } else { self.fresh_tree(bundle, workspace)? };
        Ok(TreeOrigin { fresh, ..self.0.origin() })
    }

    /// Checks files out in parallel, which is faster where there are several processors (git-config(1),
    /// `checkout.workers`).
    fn check_out(self, words: &[&str], workspace: &Workspace) -> Result<String, HubError> {
        let all = [&["-c", "checkout.workers=0", "read-tree"], words].concat();
        self.0.in_tree(&all, &workspace.top, &self.0.index(&workspace.name))
    }

    /// What is known about the files that have just been checked out. `None` if attributes may have changed some of
    /// them on their way to the disk (gitattributes(5)).
    fn fresh_tree(self, bundle: &Bundle, workspace: &Workspace) -> Result<Option<FreshTree>, HubError> {
        let index = self.0.index(&workspace.name);
        let attributes = self.0.in_tree(&["ls-files", "--", ":(glob)**/.gitattributes"], &workspace.top, &index)?;
        let tree = HubCommits(self.0).tree_of(&bundle.start)?;
        Ok(attributes.is_empty().then_some(FreshTree { tree, index }))
    }

    /// Returns a commit with everything in a workspace. Its parents are `bundle.base` and the agent's own last commit,
    /// if any.
    ///
    /// # Errors
    /// When git fails.
    pub fn commit(self, bundle: &Bundle, workspace: &Workspace) -> Result<String, HubError> {
        let tree = tree_of_folder(self.0, &workspace.top, &workspace.name)?;
        let committed = self.import_commits(bundle, workspace);
        let parents: Vec<&str> = std::iter::once(bundle.base.as_str()).chain(committed.as_deref()).collect();
        let title = bundle.task.as_ref().map_or("a verification", |task| task.title.as_str());
        HubCommits(self.0).create(&tree, &parents, &format!("{title}\n\nThe workspace of unit {}.\n", bundle.unit))
    }

    /// Copies the agent's commits to the hub, from all of its branches and stashes. Returns the commit that is checked
    /// out, if it is not the base. Best effort: the agent may have damaged the repository.
    fn import_commits(self, bundle: &Bundle, workspace: &Workspace) -> Option<String> {
        let repository = Repository::of(&workspace.top).filter(|found| found.git_dir == workspace.top.join(".git"))?;
        let head = repository.head();
        if head.is_empty() || head == bundle.base && !has_own_refs(&repository.git_dir, &bundle.workspace) {
            return None;
        }
        let from = repository.git_dir.display().to_string();
        let refs = format!("+refs/*:refs/forkhestra/kept/{}/*", bundle.unit);
        let fetch = |refs: &str| self.0.ask(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &from, refs]);
        if fetch(&refs).is_err() {
            // One damaged ref does not lose the others.
            let kept = |name: &str| {
                format!("+{name}:refs/forkhestra/kept/{}/{}", bundle.unit, name.trim_start_matches("refs/"))
            };
            let _ = fetch(&kept("HEAD"));
            for name in loose_refs(&repository.git_dir) {
                let _ = fetch(&kept(&name));
            }
        }
        (head != bundle.base && self.0.has(&head)).then_some(head)
    }

    /// Removes the locks that a git of an earlier worker of a workspace has left when it was killed. Call
    /// this only while no worker can be at work in it, such as right after claiming the unit.
    pub fn unlock(self, workspace: &Workspace) {
        let _ = std::fs::remove_file(self.0.index(&format!("{}.lock", workspace.name())));
    }

    /// Removes a workspace, unless another process has it. What is in it and git does not ignore must be in the hub.
    pub fn remove(self, workspace: &Workspace) {
        let Ok(Some(lock)) = workspace.lock() else { return };
        let _ = fs::remove_dir_all(&workspace.top);
        let _ = fs::remove_file(self.0.index(&workspace.name));
        let _ = fs::remove_file(workspace.owner());
        let _ = fs::remove_file(&lock.path);
    }
}

/// Whether an agent has made branches, stashes or tags in a workspace, besides the branch that it was given.
fn has_own_refs(git_dir: &Path, workspace: &str) -> bool {
    // A clone has the refs of its origin and its tags in one file (git-pack-refs(1)).
    let packed = crate::context::small(&git_dir.join("packed-refs")).unwrap_or_default();
    let is_packed = packed.lines().any(|line| line.contains(" refs/heads/") || line.contains(" refs/stash"));
    let given = git_dir.join("refs/heads/forkhestra").join(workspace);
    let is_known = |path: &Path| {
        let commit = crate::context::small(path).unwrap_or_default();
        path == given || packed.lines().any(|line| line.starts_with(commit.trim()))
    };
    let is_own = |name: &String| !is_known(&git_dir.join(name));
    is_packed || loose_refs(git_dir).iter().any(is_own)
}

/// The branches, tags and stashes of a repository that are files of their own (gitrepository-layout(5)).
fn loose_refs(git_dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    if git_dir.join("refs/stash").is_file() {
        found.push("refs/stash".to_string());
    }
    for folder in ["refs/heads", "refs/tags"] {
        files_below(git_dir, folder, &mut found);
    }
    found
}

fn files_below(git_dir: &Path, folder: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(git_dir.join(folder)).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{folder}/{name}");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files_below(git_dir, &path, found);
        } else {
            found.push(path);
        }
    }
}
