//! The git repository of a hub, and how git is called on it.

use super::HubError;
use super::git::{self, GitAnswer};
use crate::context::TreeOrigin;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The branch of the hub with the commits that have landed, each verified as it is.
pub const LINE: &str = "refs/heads/forkhestra/line";

/// What holds in every hub, and in every mirror of one: nothing runs by itself, and no object disappears while a
/// workspace borrows it.
pub(super) const SETTINGS: [(&str, &str); 6] = [
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("receive.autogc", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.logAllRefUpdates", "false"),
    ("advice.detachedHead", "false"),
];

/// A change of a ref of the hub: its name, the new commit, and the one that it must have now; `None` if it must not
/// exist.
pub type RefChange = (String, String, Option<String>);

/// The repository of a hub on this machine, or of a mirror of one on another machine.
#[derive(Debug, Clone)]
pub(super) struct HubGit {
    path: PathBuf,
    /// The URL of the hub that this is a mirror of.
    remote: Option<String>,
}

impl HubGit {
    /// The repository at this path. Nothing is created.
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), remote: None }
    }

    /// The mirror at this path of the hub with this URL. Nothing is created.
    pub(super) fn mirror(url: &str, path: &Path) -> Self {
        Self { path: path.to_path_buf(), remote: Some(url.to_string()) }
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The URL of the hub that this is a mirror of.
    pub(super) fn url(&self) -> Option<&str> {
        self.remote.as_deref()
    }

    /// Whether this is a mirror of a hub on another machine.
    pub(super) fn is_mirror(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the URL or the path of the hub, as git takes it.
    pub(super) fn name(&self) -> String {
        self.remote.clone().unwrap_or_else(|| self.path.display().to_string())
    }

    /// Returns whether the hub has a commit.
    pub(super) fn has(&self, commit: &str) -> bool {
        self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_ok()
    }

    /// Returns the last commit that has landed; `None` if there is no line.
    pub(super) fn line(&self) -> Option<String> {
        self.ask(&["rev-parse", "--verify", "--quiet", LINE]).ok().filter(|commit| !commit.is_empty())
    }

    /// Sets a ref to `new`, if it is still `old`; `None` if it must not exist (git-update-ref(1)).
    pub(super) fn swap(&self, name: &str, new: &str, old: Option<&str>) -> Result<bool, HubError> {
        let old = old.map_or_else(|| "0".repeat(new.len()), str::to_string);
        match self.ask(&["update-ref", "--no-deref", name, new, &old]) {
            Ok(_) => Ok(true),
            // The ref says which of the two it was: another value, or a failure.
            Err(error) => match self.ask(&["rev-parse", "--verify", "--quiet", name]) {
                Ok(now) if now == new => Ok(true),
                Ok(now) if now != old => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// The index with which the hub takes snapshots of a working tree of this name.
    pub(super) fn index(&self, name: &str) -> PathBuf {
        self.path.join("indexes").join(name)
    }

    /// Where the objects of a workspace are.
    pub(super) fn origin(&self) -> TreeOrigin {
        TreeOrigin { objects: self.path.join("objects"), fresh: None }
    }

    /// Calls git on the hub. Returns its standard output without the last line break.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String, HubError> {
        self.ask_with(words, &[], &[])
    }

    /// Like [`HubGit::ask`], with variables and an input.
    pub(super) fn ask_with(
        &self,
        words: &[&str],
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<String, HubError> {
        self.answer(words, variables, input).and_then(|answer| git::successful(&answer, words))
    }

    /// Calls git on the hub, for a command whose exit code 1 is an answer.
    pub(super) fn answer(
        &self,
        words: &[&str],
        variables: &[(&str, &OsStr)],
        input: &[u8],
    ) -> Result<GitAnswer, HubError> {
        let own = [("GIT_DIR", self.path.as_os_str())];
        git::call(words, &self.path, &[&own[..], variables].concat(), false, input)
    }

    /// Calls git on a working tree, with the hub's objects and settings and an index of our own. Nothing in the tree's
    /// own `.git` is read, so nothing that an agent has configured there runs.
    pub(super) fn in_tree(&self, words: &[&str], tree: &Path, index: &Path) -> Result<String, HubError> {
        self.in_tree_with(words, tree, index, &[]).and_then(|answer| git::successful(&answer, words))
    }

    /// Like [`HubGit::in_tree`], with variables. Returns the answer of a call that has failed, too.
    pub(super) fn in_tree_with(
        &self,
        words: &[&str],
        tree: &Path,
        index: &Path,
        more: &[(&str, &OsStr)],
    ) -> Result<GitAnswer, HubError> {
        git::answered(words, tree, &[&self.for_tree(tree, index)[..], more].concat(), false, &[])
    }

    /// The variables of a call on a working tree.
    fn for_tree<'a>(&'a self, tree: &'a Path, index: &'a Path) -> [(&'static str, &'a OsStr); 3] {
        [("GIT_DIR", self.path.as_os_str()), ("GIT_WORK_TREE", tree.as_os_str()), ("GIT_INDEX_FILE", index.as_os_str())]
    }
}

/// Writes a file of the hub or of a workspace, and the directories above it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    #[expect(clippy::disallowed_methods, reason = "the owner of the hub")]
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|cause| HubError::Write { path: path.to_path_buf(), cause })
}
