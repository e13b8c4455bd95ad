//! The tree of a workspace, whatever an agent has left in it: repositories inside of it, special files, and files that
//! cannot be converted as their attributes say. Everything that can be kept is kept.

use super::HubError;
use super::git::GitAnswer;
use super::hub_git::{HubGit, write};
use std::fs;
use std::path::{Path, PathBuf};

/// No file is converted to another encoding, whatever the attributes in a workspace say (gitattributes(5)).
const AS_THEY_ARE: &[u8] = b"* -working-tree-encoding\n";
/// The name that the `.git` of a repository inside of a workspace has for a moment.
const ASIDE: &str = ".git-aside";
/// All files of a workspace, without the renamed repositories.
const FILES: [&str; 4] = ["--", ":/", ":(exclude,top,glob)**/.git-aside", ":(exclude,top,glob)**/.git-aside/**"];
/// How deep directories are searched for repositories.
const DEEPEST: usize = 64;

/// Returns the tree of a workspace as it is, without what git ignores. What an agent has done to the workspace's
/// own `.git` does not matter.
///
/// # Errors
/// When git fails.
pub(super) fn tree_of_folder(hub: &HubGit, folder: &Path, index: &str) -> Result<String, HubError> {
    let index = hub.index(index);
    add_all(hub, folder, &index)?;
    hub.in_tree(&["write-tree"], folder, &index)
}

/// Brings an index up to date with the files of a workspace. What git cannot add, such as a named pipe, stays as it
/// was.
pub(super) fn add_all(hub: &HubGit, folder: &Path, index: &Path) -> Result<(), HubError> {
    let added = hub.in_tree_with(&["add", "--all", "--", ":/"], folder, index, &[]);
    // It would be added as a link, which says nothing about its files.
    let has_repository = |warnings: &str| warnings.contains("embedded git repository");
    if added.is_ok_and(|answer| answer.code == 0 && !has_repository(&answer.stderr)) {
        return Ok(());
    }
    let nested = Nested::below(folder);
    let links: Vec<String> = nested.paths(folder);
    // A link whose repository is gone would count as unchanged.
    let remove: Vec<&str> =
        ["update-index", "--force-remove", "--"].into_iter().chain(links.iter().map(String::as_str)).collect();
    let _ = hub.in_tree(&remove, folder, index);
    if hub.in_tree(&[&["add", "--all"], &FILES[..]].concat(), folder, index).is_ok() {
        return Ok(());
    }
    let words = [&["add", "--all", "--ignore-errors"], &FILES[..]].concat();
    let added = in_plain_repository(hub, &words, folder, index)?;
    match added.code {
        0 => Ok(()),
        // Everything else was added (git-add(1), `--ignore-errors`).
        1 if !added.stderr.contains("fatal: ") => Ok(()),
        _ => Err(HubError::Git { command: "add".into(), why: added.stderr.trim().to_string() }),
    }
}

/// Calls git on a working tree, as a repository with attributes of its own and the hub's objects.
fn in_plain_repository(hub: &HubGit, words: &[&str], folder: &Path, index: &Path) -> Result<GitAnswer, HubError> {
    let plain = hub.path().join("plain.git");
    write(&plain.join("info/attributes"), AS_THEY_ARE)?;
    write(&plain.join("refs/.keep"), b"")?;
    for file in ["HEAD", "config", "info/exclude"] {
        let _ = fs::copy(hub.path().join(file), plain.join(file));
    }
    let objects = hub.path().join("objects");
    let places = [("GIT_DIR", plain.as_os_str()), ("GIT_OBJECT_DIRECTORY", objects.as_os_str())];
    hub.in_tree_with(words, folder, index, &places)
}

/// Repositories inside of a workspace, whose `.git` is renamed until this is dropped, so that git sees their files.
struct Nested(Vec<PathBuf>);

impl Nested {
    fn below(top: &Path) -> Self {
        let mut found = Vec::new();
        search(top, 0, &mut found);
        found.retain(|folder| fs::rename(folder.join(".git"), folder.join(ASIDE)).is_ok());
        Self(found)
    }

    /// Their paths from the top. Those that are not UTF-8 are left out: they cannot be arguments here.
    fn paths(&self, top: &Path) -> Vec<String> {
        let inside = self.0.iter().filter_map(|folder| folder.strip_prefix(top).ok()?.to_str());
        inside.map(str::to_string).collect()
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::rename(folder.join(ASIDE), folder.join(".git"));
        }
    }
}

/// Finds the directories with a `.git`, also those that a killed process has left renamed.
fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || depth > DEEPEST || [".git", ASIDE, ".forkhestra"].iter().any(|own| name == *own) {
            continue;
        }
        let path = entry.path();
        // It is a file in a submodule and in a linked working tree (gitrepository-layout(5)).
        if path.join(ASIDE).symlink_metadata().is_ok() && !path.join(".git").exists() {
            let _ = fs::rename(path.join(ASIDE), path.join(".git"));
        }
        if path.join(".git").symlink_metadata().is_ok() {
            found.push(path.clone());
        }
        search(&path, depth + 1, found);
    }
}
