//! Snapshots of working trees as commits of the hub.

use super::{Hub, HubError, Workspace, git, write};
use crate::context::Repository;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

impl Hub {
    /// The index with which the hub takes snapshots of a working tree of this name.
    pub(super) fn index(&self, name: &str) -> PathBuf {
        self.path.join("indexes").join(name)
    }

    /// Removes the locks that a git of an earlier worker of a workspace has left when it was killed. Call
    /// this only while no worker can be at work in it, such as right after claiming the unit.
    pub fn unlock(&self, workspace: &Workspace) {
        let _ = std::fs::remove_file(self.index(&format!("{}.lock", workspace.name())));
    }

    /// Returns a commit with everything that a person's working tree contains, on top of `head`. The person's
    /// repository is not changed: not one byte of it, and no time.
    ///
    /// # Errors
    /// When git fails.
    pub fn snapshot(&self, repository: &Repository, head: &str) -> Result<String, HubError> {
        let index = self.index("user");
        let _ = std::fs::remove_file(&index);
        write(&self.path.join("indexes").join(".keep"), b"")?;
        // A copy of the person's index spares git from reading every file. A split one would be written to in place
        // (git-update-index(1), "SPLIT INDEX").
        if has_split_index(repository) {
            let variables: [(&str, &OsStr); 1] = [("GIT_INDEX_FILE", index.as_os_str())];
            git::personal_with(&["read-tree", head], &repository.top, &variables)?;
        } else {
            let _ = std::fs::copy(repository.git_dir.join("index"), &index);
        }
        let (ours, theirs) = (self.path.join("objects"), repository.common.join("objects"));
        let variables: [(&str, &OsStr); 3] = [
            ("GIT_INDEX_FILE", index.as_os_str()),
            ("GIT_OBJECT_DIRECTORY", ours.as_os_str()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", theirs.as_os_str()),
        ];
        git::personal_with(&["add", "--all", "--", ":/"], &repository.top, &variables)?;
        let tree = git::personal_with(&["write-tree"], &repository.top, &variables)?;
        if tree == self.tree_of(head)? {
            return Ok(head.to_string());
        }
        self.commit(&tree, &[head], "Uncommitted changes when the tasks began\n")
    }

    /// Returns the uncommitted files of a person's working tree, as `git status` names them; empty if there are none.
    ///
    /// # Errors
    /// When git fails.
    pub fn uncommitted(repository: &Repository) -> Result<Vec<String>, HubError> {
        let told = git::personal(&["status", "--porcelain", "--untracked-files=normal"], &repository.top)?;
        Ok(told.lines().map(|line| line.get(3..).unwrap_or(line).to_string()).collect())
    }

    /// Returns whether git tracks a file or something in a directory of a person's working tree.
    #[must_use]
    pub fn has_tracked(repository: &Repository, path: &Path) -> bool {
        let path = path.display().to_string();
        git::personal(&["ls-files", "-z", "--", &path], &repository.top).is_ok_and(|found| !found.is_empty())
    }

    /// Returns the submodules, and the attribute patterns of Git LFS: a workspace would lack these files.
    ///
    /// # Errors
    /// When git fails.
    pub fn not_in_objects(repository: &Repository) -> Result<Vec<String>, HubError> {
        let staged = git::personal(&["ls-files", "--stage", "-z"], &repository.top)?;
        let links = staged.split('\0').filter_map(|entry| entry.strip_prefix("160000 ")?.split_once('\t'));
        let mut found: Vec<String> = links.map(|(_, path)| path.to_string()).collect();
        let listed = git::personal(&["ls-files", "-z", "--", ":(glob)**/.gitattributes"], &repository.top)?;
        let of_tree = listed.split('\0').filter(|path| !path.is_empty()).map(|path| repository.top.join(path));
        for path in of_tree.chain([repository.common.join("info/attributes")]) {
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
