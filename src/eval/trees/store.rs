//! A temporary git repository with the trees of the cases.

use super::{CaseTree, TreeIds, TreeSource};
use crate::context::Repository;
use crate::proc::GitCall;
use crate::world::World;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// How long a call of git may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// How much git may print, in bytes.
const MOST_OUTPUT: usize = 64 << 20;

/// A bare repository for trees. An error is one line of words.
#[derive(Debug)]
pub struct CaseTreeStore {
    path: PathBuf,
    /// Removes the repository in the end.
    _folder: Option<TempDir>,
}

/// Calls git, and returns what it prints.
pub(super) fn git(words: &[&str], folder: &Path, variables: &[(&str, &OsStr)], input: &[u8]) -> Result<String, String> {
    let call = GitCall {
        arguments: words,
        folder,
        variables,
        is_personal: false,
        input,
        patience: PATIENCE,
        kept: MOST_OUTPUT,
    };
    let command = words.iter().find(|word| !word.starts_with('-')).unwrap_or(&"");
    let answer = call.run().ok_or_else(|| format!("`git {command}` did not run, or was interrupted"))?;
    if answer.is_truncated {
        return Err(format!("`git {command}` printed more than {} MiB", MOST_OUTPUT >> 20));
    }
    match answer.code {
        Some(0) => Ok(answer.stdout),
        _ => Err(format!("`git {command}` failed: {}", answer.stderr.split_whitespace().collect::<Vec<_>>().join(" "))),
    }
}

impl CaseTreeStore {
    /// Makes an empty store, which can also read the objects of the repository that `root` is in, if it is in one.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(world: &World, root: &Path) -> Result<Self, String> {
        let folder = world.scratch_folder().map_err(|error| format!("there is no temporary directory: {error}"))?;
        let path = folder.path().to_path_buf();
        let repository = Repository::of(root);
        let format = repository.as_ref().is_some_and(Repository::is_sha256);
        let format = if format { "--object-format=sha256" } else { "--object-format=sha1" };
        git(&["init", "--quiet", "--bare", format, "."], &path, &[], &[])?;
        if let Some(repository) = repository {
            let objects = format!("{}\n", repository.common.join("objects").display());
            let alternates = path.join("objects/info/alternates");
            world.disk().create(&alternates, &objects).map_err(|error| format!("{}: {error}", alternates.display()))?;
        }
        Ok(Self { path, _folder: Some(folder) })
    }

    /// The store of another process.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), _folder: None }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the tree of a case, with the directory `own` of the project in it, without the directories `hidden` of the
    /// project, and its hidden files.
    ///
    /// # Errors
    /// When a directory cannot be read, or there is no such commit.
    pub fn take(&self, tree: &CaseTree, root: &Path, own: &str, hidden: &BTreeSet<&Path>) -> Result<TreeIds, String> {
        let start = match &tree.source {
            TreeSource::Folder(folder) => self.of_folder(folder, &[])?,
            TreeSource::Commit(name) => {
                // The part that belongs to the project, which may be a directory of its repository.
                let tree = format!("{name}:./");
                let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &tree];
                let found = git(&words, root, &[], &[]).map_err(|_| format!("there is no commit {name}"))?;
                found.trim().to_string()
            }
        };
        let index = Index::new(self);
        index.git(&["read-tree", &start], &[])?;
        if root.join(own).is_dir() {
            let tree = self.of_folder(&root.join(own), &[])?;
            index.remove(Path::new(own))?;
            // It needs a working tree, and does not use it.
            let variables = [("GIT_WORK_TREE", self.path.as_os_str())];
            index.git_with(&["read-tree", &format!("--prefix={own}/"), &tree], &self.path, &variables, &[])?;
        }
        for hidden in hidden {
            index.remove(hidden)?;
        }
        let start = index.tree()?;
        // Whatever git ignores among them, they are all needed.
        let hidden = tree.hidden.as_ref().map(|folder| self.of_folder(folder, &["--force"])).transpose()?;
        Ok(TreeIds { start, hidden })
    }

    /// Makes a tree of the files in a directory.
    fn of_folder(&self, folder: &Path, options: &[&str]) -> Result<String, String> {
        let index = Index::new(self);
        let variables = [("GIT_WORK_TREE", folder.as_os_str())];
        index.git_with(&[&["add", "--all"], options, &["--", "."]].concat(), folder, &variables, &[])?;
        let entries = index.git(&["ls-files", "--stage"], &[])?;
        if let Some(nested) = entries.lines().find(|line| line.starts_with("160000 ")) {
            let name = nested.split('\t').nth(1).unwrap_or_default();
            return Err(format!("{} has a repository in it, {name}, whose files git does not add", folder.display()));
        }
        index.tree()
    }

    /// Returns a tree with this file in it.
    ///
    /// # Errors
    /// When git fails.
    pub(super) fn with_file(&self, tree: &str, path: &str, text: &str) -> Result<String, String> {
        let blob = git(&["hash-object", "-w", "--stdin"], &self.path, &[], text.as_bytes())?;
        let index = Index::new(self);
        index.git(&["read-tree", tree], &[])?;
        let known = index.git(&["ls-files", "--stage", "--", path], &[])?;
        let mode = known.split(' ').next().filter(|mode| *mode == "100755").unwrap_or("100644");
        let entry = format!("{mode},{},{path}", blob.trim());
        index.git(&["update-index", "--add", "--replace", "--cacheinfo", &entry], &[])?;
        index.tree()
    }

    /// Returns a tree with the change in a file made to it.
    ///
    /// # Errors
    /// When the change cannot be applied.
    fn with_change(&self, tree: &str, patch: &Path) -> Result<String, String> {
        let index = Index::new(self);
        index.git(&["read-tree", tree], &[])?;
        let patch = patch.display().to_string();
        index.git(&["apply", "--cached", "--whitespace=nowarn", "--allow-empty", "--", &patch], &[])?;
        index.tree()
    }

    /// Writes to a file what has changed in a directory since a tree, without the changes in these directories of it.
    /// The files of repositories that were made in it count as its own.
    ///
    /// # Errors
    /// When git fails.
    pub(super) fn changes(&self, tree: &str, folder: &Path, except: &[&str], patch: &Path) -> Result<(), String> {
        remove_repositories(folder);
        let index = Index::new(self);
        index.git(&["read-tree", tree], &[])?;
        let variables = [("GIT_WORK_TREE", folder.as_os_str())];
        let except: Vec<String> = except.iter().map(|name| format!(":(exclude,top){name}")).collect();
        let below: Vec<&str> = std::iter::once(".").chain(except.iter().map(String::as_str)).collect();
        index.git_with(&[&["add", "--all", "--"], &below[..]].concat(), folder, &variables, &[])?;
        let output = format!("--output={}", patch.display());
        let words = ["diff-index", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "--no-renames"];
        index.git(&[&words[..], &[&output, tree]].concat(), &[]).map(drop)
    }

    /// Writes the files of a tree into a directory.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(super) fn lay_out(&self, tree: &str, to: &Path) -> Result<(), String> {
        let index = Index::new(self);
        index.git(&["read-tree", tree], &[])?;
        let variables = [("GIT_WORK_TREE", to.as_os_str())];
        index.git_with(&["checkout-index", "--all", "--force", "--quiet"], to, &variables, &[]).map(drop)
    }

    /// Writes the files that commands judge into a directory: the tree with the measured file, the change of the chain,
    /// and the hidden files.
    ///
    /// # Errors
    /// When the change does not apply, or the files cannot be written.
    pub(in crate::eval) fn lay_out_work(
        &self,
        ids: &TreeIds,
        file: Option<&super::MeasuredFile>,
        patch: &Path,
        to: &Path,
    ) -> Result<(), String> {
        let start = match file {
            Some(file) => self.with_file(&ids.start, &file.path, &file.text)?,
            None => ids.start.clone(),
        };
        self.lay_out(&self.with_change(&start, patch)?, to)?;
        ids.hidden.as_ref().map_or(Ok(()), |hidden| self.lay_out(hidden, to))
    }
}

/// Removes the repositories in the subdirectories of a directory, and leaves their files: git adds no file of a
/// repository within another one.
fn remove_repositories(folder: &Path) {
    let mut open = vec![folder.to_path_buf()];
    while let Some(within) = open.pop() {
        for entry in std::fs::read_dir(&within).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if entry.file_name() == ".git" {
                if within != folder {
                    let path = entry.path();
                    // What cannot be removed is reported by git.
                    let _ = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
                }
            } else if is_folder {
                open.push(entry.path());
            }
        }
    }
}

/// An index file of its own (git-read-tree(1)), which is removed in the end.
struct Index<'a> {
    store: &'a CaseTreeStore,
    path: PathBuf,
}

impl<'a> Index<'a> {
    fn new(store: &'a CaseTreeStore) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { store, path: store.path.join(format!("index-{}-{number}", std::process::id())) }
    }

    fn git(&self, words: &[&str], input: &[u8]) -> Result<String, String> {
        self.git_with(words, &self.store.path, &[], input)
    }

    fn git_with(
        &self,
        words: &[&str],
        folder: &Path,
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<String, String> {
        let own = [("GIT_DIR", self.store.path.as_os_str()), ("GIT_INDEX_FILE", self.path.as_os_str())];
        git(words, folder, &[&own, variables].concat(), input)
    }

    /// Removes a directory, if it is there.
    fn remove(&self, folder: &Path) -> Result<(), String> {
        let folder = folder.display().to_string();
        let words = ["rm", "-r", "--cached", "--quiet", "--force", "--ignore-unmatch", "--", &folder];
        let variables = [("GIT_WORK_TREE", self.store.path.as_os_str())];
        self.git_with(&words, &self.store.path, &variables, &[]).map(drop)
    }

    fn tree(&self) -> Result<String, String> {
        self.git(&["write-tree"], &[]).map(|tree| tree.trim().to_string())
    }
}

impl Drop for Index<'_> {
    fn drop(&mut self) {
        // It is in a temporary directory.
        let _ = std::fs::remove_file(&self.path);
    }
}
