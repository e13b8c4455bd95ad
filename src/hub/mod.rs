//! The hub: a bare repository of forkhestra's own, `.forkhestra/hub.git`, through which units of work and their results
//! pass. Of the files of this module, only `land.rs` writes to the user's repository.

mod carry;
mod checkpoint;
mod error;
mod files;
mod fill;
mod git;
mod integrator;
mod land;
mod line;
mod open;
mod ports;
mod probe;
mod remote;
mod snapshot;
mod tasks;
mod units;
mod workspace;

use crate::context::Repository;
use git::GitAnswer;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub use carry::Synced;
pub use checkpoint::{KeptRun, KeptUnit};
pub use error::HubError;
pub use integrator::{FoundIntegrator, IntegratorClaim, Pushed};
pub use land::FastForward;
pub use line::{Merged, conflict_text};
pub use open::OpenBatch;
pub use ports::PortBlock;
pub use tasks::{FoundTask, Person, RefChange, TaskChange};
pub use units::{Claim, FoundUnit};
pub use workspace::{Workspace, WorkspaceLock};

/// The hub's directory, below `.forkhestra`.
const FOLDER: &str = "hub.git";

/// The branch of the hub with the commits that have landed, each verified as it is.
pub const LINE: &str = "refs/heads/forkhestra/line";

/// What holds in every hub, and in every mirror of one: nothing runs by itself, and no object disappears while a
/// workspace borrows it.
const SETTINGS: [(&str, &str); 6] = [
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("receive.autogc", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.logAllRefUpdates", "false"),
    ("advice.detachedHead", "false"),
];

/// A hub on this machine, or a mirror of one on another machine.
#[derive(Debug, Clone)]
pub struct Hub {
    path: PathBuf,
    /// The URL of the hub that this is a mirror of.
    remote: Option<String>,
}

impl Hub {
    /// The hub at this path. Nothing is created.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), remote: None }
    }

    /// The hub of a root; `None` if there is none.
    #[must_use]
    pub fn existing(root: &Path) -> Option<Self> {
        let path = root.join(".forkhestra").join(FOLDER);
        path.join("HEAD").is_file().then_some(Self { path, remote: None })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the hub of a root, or creates it from the repository that the root is in. Objects are copied: git
    /// changes the times of an object that it would write again, and a hard link has the times of the user's file. The
    /// repository is not changed.
    ///
    /// # Errors
    /// When git fails.
    pub fn prepare(root: &Path, repository: &Repository) -> Result<Self, HubError> {
        if let Some(hub) = Self::existing(root) {
            return Ok(hub);
        }
        let ours = root.join(".forkhestra");
        let (path, new) = (ours.join(FOLDER), ours.join("hub.new"));
        // What a killed process has left.
        let _ = std::fs::remove_dir_all(&new);
        let hub = Self { path: new.clone(), remote: None };
        let (from, to) = (repository.common.display().to_string(), new.display().to_string());
        git::outside(&["clone", "--quiet", "--bare", "--local", "--no-hardlinks", "--", &from, &to], &ours)
            .or_else(|_| git::outside(&["clone", "--quiet", "--bare", "--", &from, &to], &ours))?;
        hub.ask(&["remote", "remove", "origin"])?;
        for (key, value) in SETTINGS {
            hub.ask(&["config", key, value])?;
        }
        // The objects that the user's repository borrows from another one.
        let borrowed = new.join("objects/info/alternates");
        if borrowed.is_file() {
            hub.ask(&["repack", "-a", "-d", "-q"])?;
            std::fs::remove_file(&borrowed).map_err(|cause| HubError::Write { path: borrowed, cause })?;
        }
        // The user's own branches must not be taken for ours.
        let theirs = hub.ask(&["for-each-ref", "--format=delete %(refname)", "refs/heads/forkhestra"])?;
        if !theirs.is_empty() {
            hub.ask_with(&["update-ref", "--stdin"], &[], (theirs + "\n").as_bytes())?;
        }
        // Agents, whose `origin` this is, cannot push to our refs.
        hub.ask(&["config", "receive.hideRefs", "refs/forkhestra"])?;
        hub.ask(&["config", "--add", "receive.hideRefs", "refs/heads/forkhestra"])?;
        std::fs::rename(&new, &path).map_err(|cause| HubError::Write { path: path.clone(), cause })?;
        Ok(Self { path, remote: None })
    }

    /// Copies the user's name and ignore rules from their repository, so that commits and snapshots are as their own
    /// would be. Paths from the top that workspaces get as copies or links are ignored, too.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be written.
    pub fn adopt_settings(&self, repository: &Repository, ignored: &[String]) -> Result<(), HubError> {
        let personal = |words: &[&str]| git::personal(words, &repository.top).ok().filter(|text| !text.is_empty());
        for (key, otherwise) in [("user.name", "forkhestra"), ("user.email", "forkhestra@localhost")] {
            let value = personal(&["config", "--get", key]).unwrap_or_else(|| otherwise.to_string());
            self.ask(&["config", key, &value])?;
        }
        let own = crate::context::small(&repository.common.join("info/exclude")).unwrap_or_default();
        let global = personal(&["config", "--type=path", "--get", "core.excludesFile"]);
        let global = global.and_then(|path| crate::context::small(Path::new(&path))).unwrap_or_default();
        let exclude = self.path.join("info").join("exclude");
        let given: Vec<String> = ignored.iter().map(|path| format!("/{}", path.trim_end_matches('/'))).collect();
        write(&exclude, format!("{global}\n{own}\n.forkhestra/\n{}\n", given.join("\n")).as_bytes())
    }

    /// Copies a commit of a repository into the hub.
    ///
    /// # Errors
    /// When git fails.
    pub fn import(&self, repository: &Repository, commit: &str) -> Result<(), HubError> {
        if self.has(commit) {
            return Ok(());
        }
        let from = repository.common.display().to_string();
        let refs = format!("+{commit}:refs/forkhestra/base");
        self.ask(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &from, &refs]).map(drop)
    }

    /// Returns whether the hub has a commit.
    #[must_use]
    pub fn has(&self, commit: &str) -> bool {
        self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_ok()
    }

    /// Returns whether a commit has a file or a directory at this path from the top.
    #[must_use]
    pub fn has_path(&self, commit: &str, path: &Path) -> bool {
        self.ask(&["cat-file", "-e", &format!("{commit}:{}", path.display())]).is_ok()
    }

    /// Calls git on the hub. Returns its standard output without the last line break.
    fn ask(&self, words: &[&str]) -> Result<String, HubError> {
        self.ask_with(words, &[], &[])
    }

    /// Like [`Hub::ask`], with variables and an input.
    fn ask_with(&self, words: &[&str], variables: &[(&str, &OsStr)], input: &[u8]) -> Result<String, HubError> {
        self.answer(words, variables, input).and_then(|answer| git::successful(&answer, words))
    }

    /// Calls git on the hub, for a command whose exit code 1 is an answer.
    fn answer(&self, words: &[&str], variables: &[(&str, &OsStr)], input: &[u8]) -> Result<GitAnswer, HubError> {
        let own = [("GIT_DIR", self.path.as_os_str())];
        git::call(words, &self.path, &[&own[..], variables].concat(), false, input)
    }

    /// Calls git on a working tree, with the hub's objects and settings and an index of our own. Nothing in the tree's
    /// own `.git` is read, so nothing that an agent has configured there runs.
    fn in_tree(&self, words: &[&str], tree: &Path, index: &Path) -> Result<String, HubError> {
        self.in_tree_with(words, tree, index, &[]).and_then(|answer| git::successful(&answer, words))
    }

    /// Like [`Hub::in_tree`], with variables. Returns the whole answer.
    fn in_tree_with(
        &self,
        words: &[&str],
        tree: &Path,
        index: &Path,
        more: &[(&str, &OsStr)],
    ) -> Result<GitAnswer, HubError> {
        git::call(words, tree, &[&self.for_tree(tree, index)[..], more].concat(), false, &[])
    }

    /// Like [`Hub::in_tree_with`], but returns the answer of a call that has failed, too.
    fn in_tree_whatever(
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

fn write(path: &Path, bytes: &[u8]) -> Result<(), HubError> {
    #[expect(clippy::disallowed_methods, reason = "the owner of the hub")]
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|cause| HubError::Write { path: path.to_path_buf(), cause })
}
