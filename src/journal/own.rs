//! The contents of `.forkhestra/` while an attempt works: only forkhestra may change them.

use super::folders::{AttemptFolder, FileStat, stat_of};
use super::run_files::RunFiles;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most entries that are checked: more than any ordinary run has.
const MOST: usize = 20_000;
/// Files that forkhestra itself may change there during a run. Reports are recognized by their names.
const WRITTEN: [&str; 5] = ["state.db", "state.db-wal", "state.db-shm", "state.db-journal", "lock"];

/// The contents at one moment, by path from `.forkhestra/`: the size, change time and inode of a file, and the inode of
/// a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFolder {
    entries: BTreeMap<PathBuf, FileStat>,
}

/// An entry of `.forkhestra/` that is not as forkhestra left it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnexpectedFile {
    path: PathBuf,
    /// Whether it was created. Otherwise it was changed or removed, and its old content cannot be verified.
    made: bool,
}

impl UnexpectedFile {
    /// Whether the change was undone: what was created is gone.
    #[must_use]
    pub fn is_put_back(&self) -> bool {
        self.made && fs::symlink_metadata(&self.path).is_err()
    }

    /// Whether both are at the same path.
    #[must_use]
    pub fn is_at(&self, other: &Self) -> bool {
        self.path == other.path
    }

    /// The path from the root, for messages.
    #[must_use]
    pub fn shown(&self, root: &Path) -> String {
        let gone = if fs::symlink_metadata(&self.path).is_err() { " (removed)" } else { "" };
        format!("{}{gone}", self.path.strip_prefix(root).unwrap_or(&self.path).display())
    }
}

impl OwnFolder {
    /// Records the contents, except the attempt's own directory. Costs a `stat` for each file of the run and of the
    /// snapshots.
    #[must_use]
    pub fn look(files: &RunFiles, run: i64, attempt: &AttemptFolder) -> Self {
        let mut entries = BTreeMap::new();
        let (ours, run) = (files.handle().path(), files.run_folder(run));
        let written = |name: &Path| WRITTEN.iter().any(|known| name == Path::new(known));
        let mut folders = vec![ours.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Ok(name) = path.strip_prefix(ours) else { continue };
                let Ok(found) = fs::symlink_metadata(&path) else { continue };
                let is_report = name.starts_with("runs") && entry.file_name().to_string_lossy().starts_with("report.");
                if written(name) || is_report || path == attempt.path() || entries.len() >= MOST {
                    continue;
                }
                if found.is_dir() {
                    // Of other runs, only the directory is recorded, not what is in it.
                    let other_run = name.components().count() == 2 && name.starts_with("runs") && path != run;
                    if !other_run {
                        folders.push(path.clone());
                    }
                    entries.insert(name.to_path_buf(), (0, 0, 0, found.ino()));
                } else {
                    entries.insert(name.to_path_buf(), stat_of(&found));
                }
            }
        }
        Self { entries }
    }

    /// Returns what has changed since. The directory of a run that is not `known` any more does not count: a person
    /// has pruned the run in the meantime.
    #[must_use]
    pub fn changes(
        &self,
        files: &RunFiles,
        run: i64,
        attempt: &AttemptFolder,
        known: impl Fn(i64) -> bool,
    ) -> Vec<UnexpectedFile> {
        let now = Self::look(files, run, attempt);
        let planted = |path: &Path, made| UnexpectedFile { path: files.handle().path().join(path), made };
        let made = now.entries.iter().filter(|(path, stat)| self.entries.get(*path) != Some(stat));
        let pruned = |path: &Path| {
            let run = path.strip_prefix("runs").ok().and_then(|run| run.to_str()?.parse::<i64>().ok());
            run.is_some_and(|run| !known(run))
        };
        let gone = self.entries.keys().filter(|path| !now.entries.contains_key(*path) && !pruned(path));
        let made = made.map(|(path, _)| planted(path, !self.entries.contains_key(path)));
        made.chain(gone.map(|path| planted(path, false))).collect()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "simulates an agent")]
mod tests {
    use super::*;
    use crate::journal::folders::prepare;

    #[test]
    fn what_is_planted_changed_or_removed_is_named_and_the_attempts_own_folder_is_its_own() {
        let root = tempfile::tempdir().unwrap();
        let files = RunFiles::new(prepare(root.path()).unwrap());
        let (own, _) = files.attempt(1, 1, "c", 2).unwrap();
        files.attempt(1, 1, "c", 1).unwrap().0.write_prompt("p").unwrap();
        let before = OwnFolder::look(&files, 1, &own);
        let changed = || before.changes(&files, 1, &own, |_| true);
        own.write_prompt("mine").unwrap();
        assert!(changed().is_empty());
        let ours = root.path().join(".forkhestra");
        fs::create_dir_all(ours.join("runs/1/2-j/1")).unwrap();
        fs::write(ours.join("runs/1/1-c/1/prompt.md"), "q").unwrap();
        fs::remove_file(ours.join(".gitignore")).unwrap();
        let planted = changed();
        let shown: Vec<String> = planted.iter().map(|planted| planted.shown(root.path())).collect();
        assert_eq!(
            shown,
            [
                ".forkhestra/runs/1/1-c/1/prompt.md",
                ".forkhestra/runs/1/2-j",
                ".forkhestra/runs/1/2-j/1",
                ".forkhestra/.gitignore (removed)"
            ]
        );
        fs::remove_dir_all(ours.join("runs/1/2-j")).unwrap();
        let left = planted.iter().filter(|planted| !planted.is_put_back()).count();
        assert_eq!(left, 2, "what was made can be put back, what was changed cannot");
    }
}
