//! Snapshots of working trees as commits of the hub.

use super::hub_git::write;
use super::store::Hub;
use super::{HubError, git};
use crate::context::Repository;
use std::ffi::OsStr;
use std::path::Path;

/// A person's repository, with its working tree.
#[derive(Debug, Clone, Copy)]
pub struct UserTree<'a>(pub &'a Repository);

impl UserTree<'_> {
    /// Returns a commit with everything that a person's working tree contains, on top of `head`. The person's
    /// repository is not changed: not one byte of it, and no time.
    ///
    /// # Errors
    /// When git fails.
    pub fn snapshot(self, hub: &Hub, head: &str) -> Result<String, HubError> {
        let index = hub.git().index("user");
        let _ = std::fs::remove_file(&index);
        write(&hub.path().join("indexes").join(".keep"), b"")?;
        // A copy of the person's index spares git from reading every file. A split one would be written to in place
        // (git-update-index(1), "SPLIT INDEX").
        if has_split_index(self.0) {
            let variables: [(&str, &OsStr); 1] = [("GIT_INDEX_FILE", index.as_os_str())];
            git::personal_with(&["read-tree", head], &self.0.top, &variables)?;
        } else {
            let _ = std::fs::copy(self.0.git_dir.join("index"), &index);
        }
        let (ours, theirs) = (hub.path().join("objects"), self.0.common.join("objects"));
        let variables: [(&str, &OsStr); 3] = [
            ("GIT_INDEX_FILE", index.as_os_str()),
            ("GIT_OBJECT_DIRECTORY", ours.as_os_str()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", theirs.as_os_str()),
        ];
        git::personal_with(&["add", "--all", "--", ":/"], &self.0.top, &variables)?;
        let tree = git::personal_with(&["write-tree"], &self.0.top, &variables)?;
        if tree == hub.commits().tree_of(head)? {
            return Ok(head.to_string());
        }
        hub.commits().create(&tree, &[head], "Uncommitted changes when the tasks began\n")
    }

    /// Returns the commit of a branch in a person's repository; `None` if there is no such branch.
    #[must_use]
    pub fn commit_of(self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        git::personal(&["rev-parse", "--verify", "--quiet", &name], &self.0.top).ok().filter(|found| !found.is_empty())
    }

    /// Returns the uncommitted files of a person's working tree, as `git status` names them; empty if there are none.
    ///
    /// # Errors
    /// When git fails.
    pub fn uncommitted(self) -> Result<Vec<String>, HubError> {
        let told = git::personal(&["status", "--porcelain", "--untracked-files=normal"], &self.0.top)?;
        Ok(told.lines().map(|line| line.get(3..).unwrap_or(line).to_string()).collect())
    }

    /// Returns whether git tracks a file or something in a directory of a person's working tree.
    #[must_use]
    pub fn has_tracked(self, path: &Path) -> bool {
        let path = path.display().to_string();
        git::personal(&["ls-files", "-z", "--", &path], &self.0.top).is_ok_and(|found| !found.is_empty())
    }

    /// Returns the submodules, and the attribute patterns of Git LFS: a workspace would lack these files.
    ///
    /// # Errors
    /// When git fails.
    pub fn not_in_objects(self) -> Result<Vec<String>, HubError> {
        let staged = git::personal(&["ls-files", "--stage", "-z"], &self.0.top)?;
        let links = staged.split('\0').filter_map(|entry| entry.strip_prefix("160000 ")?.split_once('\t'));
        let mut found: Vec<String> = links.map(|(_, path)| path.to_string()).collect();
        let listed = git::personal(&["ls-files", "-z", "--", ":(glob)**/.gitattributes"], &self.0.top)?;
        let of_tree = listed.split('\0').filter(|path| !path.is_empty()).map(|path| self.0.top.join(path));
        for path in of_tree.chain([self.0.common.join("info/attributes")]) {
            let attributes = crate::context::small(&path).unwrap_or_default();
            let rules = attributes.lines().filter(|line| !line.trim_start().starts_with('#'));
            let lfs = rules.filter(|line| line.split_whitespace().any(|word| word == "filter=lfs"));
            found.extend(lfs.filter_map(|line| Some(format!("{} (Git LFS)", line.split_whitespace().next()?))));
        }
        Ok(found)
    }
}

fn has_split_index(repository: &Repository) -> bool {
    let entries = std::fs::read_dir(&repository.git_dir).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex."))
}
