//! Finds where git keeps the history of a working tree, without running git and without following the repository's own
//! config.
#![expect(clippy::disallowed_methods, reason = "reads the working tree")]

use std::fs;
use std::path::{Path, PathBuf};

/// A repository on disk (gitrepository-layout(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top directory of the working tree, which contains `.git`.
    pub top: PathBuf,
    /// The directory of what belongs to this working tree: HEAD, the index.
    pub git_dir: PathBuf,
    /// The directory of what all working trees share: objects, branches, config. In the main one, it is `git_dir`.
    pub common: PathBuf,
}

impl Repository {
    /// Returns the path of a directory in it, relative to its top; empty for the top itself.
    #[must_use]
    pub fn below(&self, folder: &Path) -> String {
        folder.strip_prefix(&self.top).map(|path| path.display().to_string()).unwrap_or_default()
    }

    /// Returns the repository that a directory is in.
    #[must_use]
    pub fn of(root: &Path) -> Option<Self> {
        let top = root.ancestors().find(|folder| folder.join(".git").exists())?.to_path_buf();
        let git = top.join(".git");
        let is_folder = git.is_dir();
        let git_dir = if is_folder { git } else { worktree(&git)? };
        // In a `.git` directory, such a file is there only to make git read another config.
        let common = small(&git_dir.join("commondir")).filter(|_| !is_folder);
        let common = common.map_or(git_dir.clone(), |common| git_dir.join(common.trim()));
        // A pipe in place of one of these would block git, and forkhestra with it.
        let read = [git_dir.join("HEAD"), git_dir.join("index"), common.join("config"), common.join("packed-refs")];
        let odd = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| !found.is_file());
        (!read.iter().any(odd)).then_some(Self { top, git_dir, common })
    }

    /// Returns the commit that is checked out: from the branch's own file, else from `packed-refs`. Empty before the
    /// first commit.
    #[must_use]
    pub fn head(&self) -> String {
        let head = small(&self.git_dir.join("HEAD")).unwrap_or_default();
        let Some(branch) = head.trim().strip_prefix("ref: ") else { return head.trim().to_string() };
        let loose = small(&self.git_dir.join(branch)).or_else(|| small(&self.common.join(branch)));
        loose.map(|commit| commit.trim().to_string()).or_else(|| self.packed(branch)).unwrap_or_default()
    }

    fn packed(&self, branch: &str) -> Option<String> {
        let refs = text(&self.common.join("packed-refs"), LARGEST_REFS)?;
        refs.lines().find_map(|line| {
            let (commit, name) = line.split_once(' ')?;
            (name == branch).then(|| commit.to_string())
        })
    }

    /// Returns whether objects are named by SHA-256.
    #[must_use]
    pub fn is_sha256(&self) -> bool {
        let config = small(&self.common.join("config")).unwrap_or_default().to_lowercase();
        config.lines().any(|line| line.replace(' ', "").trim() == "objectformat=sha256")
    }
}

/// The largest `packed-refs` file that is read, in bytes.
const LARGEST_REFS: u64 = 64 << 20;

/// Returns the text of a small ordinary file; `None` for anything else.
#[must_use]
pub fn small(path: &Path) -> Option<String> {
    text(path, 1 << 20)
}

/// Returns the text of an ordinary file. Anything else could block.
fn text(path: &Path, most: u64) -> Option<String> {
    let kind = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    (kind.len() <= most)
        .then(|| fs::read(path).ok())
        .flatten()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the directory that the `.git` file of a worktree names.
fn worktree(file: &Path) -> Option<PathBuf> {
    let text = small(file)?;
    let folder = text.strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_known_by_its_commit_wherever_git_keeps_it() {
        let root = tempfile::tempdir().unwrap();
        let git = root.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("refs/heads/main"), "abc\n").unwrap();
        let repository = Repository::of(&root.path().join("below")).unwrap();
        assert_eq!((repository.head(), repository.is_sha256()), ("abc".into(), false));
        fs::remove_file(git.join("refs/heads/main")).unwrap();
        fs::write(git.join("packed-refs"), "# pack-refs\nabc refs/heads/main\ndef refs/heads/other\n").unwrap();
        assert_eq!(repository.head(), "abc", "git pack-refs is no commit");
        fs::write(git.join("config"), "[extensions]\n\tobjectFormat = sha256\n").unwrap();
        assert!(repository.is_sha256());
    }
}
