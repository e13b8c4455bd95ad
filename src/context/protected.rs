//! Watches the files that determine how the work is judged: tests, commands and config. Reads all of them once, and
//! later only those that were touched.

use super::git_state::{digest, git_state};
use super::worktree::{TreeWalk, ordinary, walker};
use crate::checks::{Deciding, Tests, commands_of, files_named, lines_of, says_commands, tests_of};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The largest file that is searched for tests, in bytes. A larger one is compared by its size and times.
const LARGEST: u64 = 1 << 20;

/// Caches what is known of files, keyed by path and `stat`.
#[derive(Debug, Default)]
pub struct GuardWatch {
    known: HashMap<PathBuf, (Stat, GuardedFile)>,
}

/// Size, times and inode of a file. The time of the last status change cannot be set (stat(2), `st_ctime`).
type Stat = (u64, i64, i64, u64, i64, i64);

#[derive(Debug, Clone, Default)]
struct GuardedFile {
    tests: Option<Tests>,
    commands: Option<String>,
    /// Files that its command lines name, relative to its own directory.
    names: Vec<String>,
    /// A digest of the whole file.
    whole: Option<String>,
}

/// What is watched in addition to the tree.
#[derive(Debug, Clone, Copy)]
pub struct Guarded<'a> {
    /// The config, the templates, and the programs and prompts of judges: files and whole directories, whether they
    /// exist or not.
    pub config: &'a [PathBuf],
    /// The command lines that checks run.
    pub lines: &'a [String],
}

impl GuardWatch {
    /// Looks at the tree and at everything else that is watched. Costs one walk, and a read of each source file that
    /// was touched since the last look.
    pub fn look(&mut self, root: &Path, guarded: Guarded<'_>) -> Deciding {
        let mut deciding = Deciding::default();
        let mut named: BTreeSet<PathBuf> = BTreeSet::new();
        for line in guarded.lines {
            named.extend(files_named(line).into_iter().map(|file| root.join(file)));
        }
        let TreeWalk { walk, odd, .. } = walker(root);
        let files = walk.build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        for entry in files {
            let found = self.file(root, entry.path(), false);
            let name = name_of(root, entry.path());
            if let Some(tests) = found.tests.filter(|tests| tests.tests > 0) {
                deciding.tests.insert(name.clone(), tests);
            }
            if let Some(commands) = found.commands {
                deciding.commands.insert(name, commands);
            }
            let folder = entry.path().parent().unwrap_or(root);
            named.extend(found.names.iter().map(|file| folder.join(file)));
        }
        for file in named.into_iter().filter(|file| file.starts_with(root)) {
            if let Some(digest) = self.file(root, &file, true).whole {
                deciding.named.insert(name_of(root, &file), digest);
            }
        }
        deciding.commands.extend(git_state(root));
        for place in guarded.config {
            self.config(root, place, &mut deciding);
        }
        // A special file would block a program that reads it.
        for path in odd.take() {
            deciding.config.insert(name_of(root, &path), "not an ordinary file".into());
        }
        deciding
    }

    /// Adds a file, or a directory with everything below it, including files that git ignores, which matter too.
    fn config(&mut self, root: &Path, place: &Path, deciding: &mut Deciding) {
        let Ok(found) = fs::metadata(place) else { return };
        if !found.is_dir() {
            let digest = self.file(root, place, true).whole.unwrap_or_else(|| "not an ordinary file".into());
            deciding.config.insert(name_of(root, place), digest);
            return;
        }
        for entry in walker(place).walk.standard_filters(false).build().flatten() {
            if entry.file_type().is_some_and(|kind| !kind.is_dir()) {
                let digest = self.file(root, entry.path(), true).whole.unwrap_or_else(|| "not an ordinary file".into());
                deciding.config.insert(name_of(root, entry.path()), digest);
            }
        }
    }

    fn file(&mut self, root: &Path, path: &Path, whole: bool) -> GuardedFile {
        let Some(metadata) = ordinary(path) else { return GuardedFile::default() };
        let stat = stat_of(&metadata);
        let known = self.known.get(path).filter(|(before, found)| *before == stat && found.whole.is_some() >= whole);
        if let Some((_, found)) = known {
            return found.clone();
        }
        let found = read(path, &name_of(root, path), &metadata, whole);
        self.known.insert(path.to_path_buf(), (stat, found.clone()));
        found
    }
}

fn stat_of(metadata: &Metadata) -> Stat {
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    (metadata.len(), metadata.mtime(), metadata.mtime_nsec(), metadata.ino(), changed.0, changed.1)
}

fn name_of(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn read(path: &Path, name: &str, metadata: &Metadata, whole: bool) -> GuardedFile {
    let commands = says_commands(name);
    if !(whole || commands || tests_of(name, "").is_some()) {
        return GuardedFile::default();
    }
    if metadata.len() > LARGEST {
        let (size, mtime, mtime_ns, inode, ctime, ctime_ns) = stat_of(metadata);
        let known = whole.then(|| digest(&format!("({size}, {mtime}, {mtime_ns}, {inode}, {ctime}, {ctime_ns})")));
        return GuardedFile { whole: known, ..GuardedFile::default() };
    }
    let mut text = Vec::new();
    if File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text)).is_err() {
        return GuardedFile::default();
    }
    let text = String::from_utf8_lossy(&text);
    GuardedFile {
        tests: tests_of(name, &text),
        commands: commands.then(|| digest(&commands_of(name, &text))),
        names: if commands {
            lines_of(name, &text).iter().flat_map(|line| files_named(line)).collect()
        } else {
            Vec::new()
        },
        whole: whole.then(|| digest(&text)),
    }
}

/// Returns the digest of a config file; empty if it does not exist.
#[must_use]
pub fn config_digest(path: &Path) -> String {
    let Some(metadata) = ordinary(path) else { return String::new() };
    read(path, "", &metadata, true).whole.unwrap_or_default()
}
