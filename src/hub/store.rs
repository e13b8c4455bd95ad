//! The hub itself: how it is opened, created and kept.

use super::carry::UnitFiles;
use super::checkpoint::KeptWork;
use super::commits::HubCommits;
use super::hub_git::{HubGit, LINE, SETTINGS, write};
use super::integrator::SharedHub;
use super::open::OpenBatches;
use super::tasks::HubTasks;
use super::units::HubUnits;
use super::workspace::HubWorkspaces;
use super::{HubError, git};
use crate::context::{Repository, TreeOrigin};
use std::path::Path;

/// The hub's directory, below `.forkhestra`.
const FOLDER: &str = "hub.git";

/// A hub on this machine, or a mirror of one on another machine.
#[derive(Debug, Clone)]
pub struct Hub {
    git: HubGit,
}

impl Hub {
    /// The hub at this path. Nothing is created.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { git: HubGit::at(path) }
    }

    /// The hub of a root; `None` if there is none.
    #[must_use]
    pub fn existing(root: &Path) -> Option<Self> {
        let path = root.join(".forkhestra").join(FOLDER);
        path.join("HEAD").is_file().then(|| Self::at(&path))
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
        let hub = HubGit::at(&new);
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
        Ok(Self::at(&path))
    }

    /// Opens the hub at this path, for units of another machine. It is created if there is none.
    ///
    /// # Errors
    /// When git fails.
    pub fn open_or_create(path: &Path) -> Result<Self, HubError> {
        if !path.join("HEAD").is_file() {
            create_empty(path)?;
        }
        Ok(Self::at(path))
    }

    /// Opens the hub at a URL through its mirror at `path`, which is created if there is none.
    ///
    /// # Errors
    /// When git fails.
    pub fn mirror(url: &str, path: &Path) -> Result<Self, HubError> {
        Self::open_or_create(path)?;
        Ok(Self { git: HubGit::mirror(url, path) })
    }

    /// This hub, as the copy of a shared one: what is shared is pushed from here, and fetched to here.
    #[must_use]
    pub fn as_copy_of(&self, shared: &Self) -> Self {
        Self { git: HubGit::mirror(&shared.name(), self.path()) }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.git.path()
    }

    /// Returns the URL or the path of the hub, as git takes it.
    #[must_use]
    pub fn name(&self) -> String {
        self.git.name()
    }

    /// Whether this is a mirror of a hub on another machine.
    #[must_use]
    pub fn is_mirror(&self) -> bool {
        self.git.is_mirror()
    }

    /// Returns the last commit that has landed; `None` if there is no line.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        self.git.line()
    }

    /// Returns whether the hub has a commit.
    #[must_use]
    pub fn has(&self, commit: &str) -> bool {
        self.git.has(commit)
    }

    /// Returns whether a commit has a file or a directory at this path from the top.
    #[must_use]
    pub fn has_path(&self, commit: &str, path: &Path) -> bool {
        self.git.ask(&["cat-file", "-e", &format!("{commit}:{}", path.display())]).is_ok()
    }

    /// Where the objects of a workspace are.
    #[must_use]
    pub fn origin(&self) -> TreeOrigin {
        self.git.origin()
    }

    /// Its commits and trees.
    #[must_use]
    pub fn commits(&self) -> HubCommits<'_> {
        HubCommits(&self.git)
    }

    /// Its units: one ref each, to which every change is added as a commit.
    #[must_use]
    pub fn units(&self) -> HubUnits<'_> {
        HubUnits(&self.git)
    }

    /// What workers of its units have handed over.
    #[must_use]
    pub fn kept(&self) -> KeptWork<'_> {
        KeptWork(&self.git)
    }

    /// Its units as files.
    #[must_use]
    pub fn unit_files(&self) -> UnitFiles<'_> {
        UnitFiles(&self.git)
    }

    /// Which of its batches are running.
    #[must_use]
    pub fn batches(&self) -> OpenBatches<'_> {
        OpenBatches(&self.git)
    }

    /// The hub as several people share it: who works on its tasks, and its line.
    #[must_use]
    pub fn shared(&self) -> SharedHub<'_> {
        SharedHub(&self.git)
    }

    /// Its tasks, if several people share it.
    #[must_use]
    pub fn tasks(&self) -> HubTasks<'_> {
        HubTasks(&self.git)
    }

    /// The workspaces that are clones of it.
    #[must_use]
    pub fn workspaces(&self) -> HubWorkspaces<'_> {
        HubWorkspaces(&self.git)
    }

    /// The repository of the hub.
    pub(super) fn git(&self) -> &HubGit {
        &self.git
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
            self.git.ask(&["config", key, &value])?;
        }
        let own = crate::context::small(&repository.common.join("info/exclude")).unwrap_or_default();
        let global = personal(&["config", "--type=path", "--get", "core.excludesFile"]);
        let global = global.and_then(|path| crate::context::small(Path::new(&path))).unwrap_or_default();
        let exclude = self.path().join("info").join("exclude");
        let given: Vec<String> = ignored.iter().map(|path| format!("/{}", path.trim_end_matches('/'))).collect();
        write(&exclude, format!("{global}\n{own}\n.forkhestra/\n{}\n", given.join("\n")).as_bytes())
    }

    /// Copies a commit of a repository into the hub.
    ///
    /// # Errors
    /// When git fails.
    pub fn import(&self, repository: &Repository, commit: &str) -> Result<(), HubError> {
        if self.git.has(commit) {
            return Ok(());
        }
        let from = repository.common.display().to_string();
        let refs = format!("+{commit}:refs/forkhestra/base");
        self.git.ask(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &from, &refs]).map(drop)
    }

    /// Advances the line, if its last commit is still `old`; `None` if it must not exist. Returns whether it was.
    ///
    /// # Errors
    /// When git cannot run.
    pub fn advance_line(&self, new: &str, old: Option<&str>) -> Result<bool, HubError> {
        self.git.swap(LINE, new, old)
    }
}

/// Creates an empty hub for units of another machine.
fn create_empty(path: &Path) -> Result<(), HubError> {
    let above = path.parent().unwrap_or(path);
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let hub = HubGit::at(&new);
    write(&above.join(".keep"), b"")?;
    git::outside(&["init", "--quiet", "--bare", "--", &new.display().to_string()], above)?;
    let own = [("user.name", "forkhestra"), ("user.email", "forkhestra@localhost")];
    for (key, value) in SETTINGS.iter().copied().chain(own) {
        hub.ask(&["config", key, value])?;
    }
    write(&new.join("info/exclude"), b".forkhestra/\n")?;
    let renamed = std::fs::rename(&new, path);
    // Another worker may have created it at the same moment.
    let _ = std::fs::remove_dir_all(&new);
    match renamed {
        Err(cause) if !path.join("HEAD").is_file() => Err(HubError::Write { path: path.to_path_buf(), cause }),
        _ => Ok(()),
    }
}
