//! Detects whether an iteration changed anything: a fingerprint of the working tree and of the last output.

use super::own_output::{OwnOutput, own_outputs};
use super::repository::Repository;
use crate::source::hexadecimal;
use ignore::WalkBuilder;
use sha2::{Digest, Sha256};
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The largest file whose content is read, in bytes. A larger one is known by its size and time.
const LARGEST: u64 = 4 << 20;

/// Directories that are not part of the work, whether git ignores them or not.
pub const CACHES: [&str; 8] =
    [".git", ".forkhestra", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox"];

/// Names of what builds and tests produce.
pub const BUILDS: [&str; 17] = [
    "target",
    "dist",
    "build",
    "out",
    "bin",
    "obj",
    "coverage",
    ".coverage",
    ".nyc_output",
    "htmlcov",
    "Cargo.lock",
    ".venv",
    ".gradle",
    ".next",
    ".hypothesis",
    ".eslintcache",
    "junit.xml",
];

/// A tree at one moment. It can be compared only with others from the same [`TreeWatch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// For each path from the root, a number that represents the file's content.
    files: HashMap<PathBuf, u64>,
    head: Vec<u8>,
}

/// What identifies a tree at one moment, in a fixed size.
#[derive(Debug, Clone)]
pub struct TreeFingerprint(Sha256);

impl TreeFingerprint {
    /// Returns the fingerprint of the tree and these words, in hexadecimal.
    #[must_use]
    pub fn with(&self, words: &[u8]) -> String {
        hexadecimal(&self.0.clone().chain_update(words).finalize()[..16])
    }
}

/// Remembers the content of files, so that writing the same content again is not a change. Each look costs one walk,
/// one `stat` per file, and one read of each file touched since the last look. Ignored files are not part of the work.
#[derive(Debug, Default)]
pub struct TreeWatch {
    /// For the hash of each path: the last `stat`, and a number that represents the content.
    files: HashMap<u64, (u64, u64)>,
    looked: bool,
    odd: bool,
    /// What this process writes itself, once it has been looked up.
    own: OnceCell<Vec<OwnOutput>>,
}

impl TreeWatch {
    /// Returns the tree as it is now. For a judge, `tracked` lists the files that git tracks: untracked build
    /// output is left out, and every file is read, so that a file that was changed and restored counts as unchanged.
    pub fn snapshot(&mut self, root: &Path, tracked: Option<&HashSet<String>>) -> Snapshot {
        let mut files = HashMap::new();
        self.walk(root, tracked.is_some(), &mut |path, content| {
            let name = path.strip_prefix(root).unwrap_or(path);
            if !is_built(name, tracked) {
                files.insert(name.to_path_buf(), content);
            }
        });
        Snapshot { files, head: head(root) }
    }

    /// Returns at most `most` files that were changed, added or removed since `before`, by path from the root. A commit
    /// counts as one.
    pub fn changes(
        &mut self,
        root: &Path,
        before: &Snapshot,
        most: usize,
        tracked: Option<&HashSet<String>>,
    ) -> Vec<String> {
        let (mut changed, removed) = self.touched(root, before, tracked);
        changed.extend(removed.into_iter().map(|file| file + " (removed)"));
        let more = changed.len().saturating_sub(most);
        changed.truncate(most);
        if more > 0 {
            changed.push(format!("{more} more"));
        }
        if changed.is_empty() && head(root) != before.head {
            changed.push("a commit".into());
        }
        changed
    }

    /// Returns the files that were changed or added since `before`, and those that are gone, by path from the root.
    pub fn touched(
        &mut self,
        root: &Path,
        before: &Snapshot,
        tracked: Option<&HashSet<String>>,
    ) -> (Vec<String>, Vec<String>) {
        let (mut changed, mut seen) = (Vec::new(), HashSet::new());
        self.walk(root, tracked.is_some(), &mut |path, content| {
            let name = path.strip_prefix(root).unwrap_or(path);
            if is_built(name, tracked) {
                return;
            }
            if before.files.get(name) != Some(&content) {
                changed.push(name.display().to_string());
            }
            if before.files.contains_key(name) {
                seen.insert(name.to_path_buf());
            }
        });
        let gone = before.files.keys().filter(|file| !seen.contains(*file));
        let mut removed: Vec<String> = gone.map(|file| file.display().to_string()).collect();
        changed.sort_unstable();
        removed.sort_unstable();
        (changed, removed)
    }

    /// Returns the fingerprint of a tree and these words, in hexadecimal. It can be compared only with others from this
    /// watch.
    pub fn fingerprint(&mut self, root: &Path, words: &[u8]) -> String {
        self.fingerprint_of_tree(root).with(words)
    }

    /// Returns the fingerprint of a tree. It can be compared only with others from this watch.
    pub fn fingerprint_of_tree(&mut self, root: &Path) -> TreeFingerprint {
        let mut tree = Vec::new();
        let may_be_in_repository =
            self.walk(root, false, &mut |path, content| tree.push((hashed(path.as_os_str().as_bytes()), content)));
        tree.sort_unstable();
        let mut hash = Sha256::new();
        for (path, content) in tree {
            hash.update(path.to_le_bytes());
            hash.update(content.to_le_bytes());
        }
        if may_be_in_repository {
            hash.update(head(root));
        }
        TreeFingerprint(hash)
    }

    /// Visits every file that git would not ignore and that is not in a cache, with the hash of its content. Returns
    /// whether there may be a repository around them.
    fn walk(&mut self, root: &Path, whole: bool, each: &mut dyn FnMut(&Path, u64)) -> bool {
        let TreeWalk { walk, odd, may_be_in_repository } = walker(root);
        for entry in walk.build().flatten().filter(|entry| entry.depth() > 0) {
            let Ok(metadata) = entry.metadata() else { continue };
            if self.own.get_or_init(own_outputs).iter().any(|own| own.is_at(entry.path(), &metadata)) {
                continue;
            }
            let path = hashed(entry.path().as_os_str().as_bytes());
            let stat = stat_of(&metadata);
            let content = match self.files.get(&path) {
                Some((known, content)) if *known == stat && !(whole && *content == stat) => *content,
                // The first look need not read the whole tree: files that are touched later are read then.
                None if !self.looked && !whole => stat,
                _ => content_of(entry.path(), &metadata).unwrap_or(stat),
            };
            self.files.insert(path, (stat, content));
            // A directory is known by its entries.
            if !metadata.is_dir() {
                each(entry.path(), content);
            }
        }
        self.looked = true;
        self.odd = !odd.take().is_empty();
        may_be_in_repository
    }

    /// Returns whether the last look found git rules that cannot be read. They would block git.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.odd
    }
}

/// Special files (FIFOs, devices) where git's ignore files should be. Reading one would block.
#[derive(Debug, Clone, Default)]
pub(super) struct SpecialFiles(Arc<Mutex<Vec<PathBuf>>>);

impl SpecialFiles {
    /// Returns those found so far.
    pub(super) fn take(&self) -> Vec<PathBuf> {
        self.0.lock().map(|mut found| std::mem::take(&mut *found)).unwrap_or_default()
    }

    /// Returns whether the rules of a directory can be read.
    fn is_readable(&self, folder: &Path) -> bool {
        let odd: Vec<PathBuf> =
            [".gitignore", ".ignore"].map(|name| folder.join(name)).into_iter().filter(|path| is_odd(path)).collect();
        let readable = odd.is_empty();
        if let Ok(mut found) = self.0.lock() {
            found.extend(odd);
        }
        readable
    }
}

/// Returns whether a path exists and is neither a file nor a directory.
fn is_odd(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !is_usable(&found))
}

fn is_usable(found: &Metadata) -> bool {
    found.is_file() || found.is_dir()
}

/// Returns the metadata of an ordinary file, following links.
pub(super) fn ordinary(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_file)
}

/// A walk over what git would not ignore and what is not a cache.
pub(super) struct TreeWalk {
    pub(super) walk: WalkBuilder,
    /// What the walk finds where git's rules should be. Directories whose rules cannot be read are left out.
    pub(super) odd: SpecialFiles,
    /// Whether there may be a repository around the tree.
    may_be_in_repository: bool,
}

/// Prepares the walk over a tree.
pub(super) fn walker(root: &Path) -> TreeWalk {
    let odd = SpecialFiles::default();
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).require_git(false).git_global(false);
    // The rules of the directories above the root, and those of the repository itself.
    let rules = |folder: &Path| [".gitignore", ".ignore", ".git"].map(|name| fs::metadata(folder.join(name)).ok());
    let above: Vec<Metadata> = root.ancestors().skip(1).flat_map(rules).flatten().collect();
    let is_readable = odd.is_readable(root);
    let may_be_in_repository = !above.is_empty() || fs::symlink_metadata(root.join(".git")).is_ok();
    if may_be_in_repository {
        let exclude = Repository::of(root).is_some_and(|repository| is_odd(&repository.common.join("info/exclude")));
        walk.parents(!above.is_empty() && above.iter().all(is_usable)).git_exclude(!exclude);
        if !is_readable {
            walk.git_ignore(false).ignore(false);
        }
    } else {
        // No repository, and no rules above, the search for which would take longer than the rest. Of the rules of two
        // directories, the nearer ones win, whichever of the two files they are in. In a repository, `.ignore` wins.
        walk.parents(false).git_exclude(false).git_ignore(false).ignore(false);
        if is_readable {
            walk.add_custom_ignore_filename(".gitignore").add_custom_ignore_filename(".ignore");
        }
    }
    let noting = odd.clone();
    walk.filter_entry(move |entry| {
        let cache = CACHES.iter().any(|cache| entry.file_name() == *cache);
        let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || !cache && (!folder || noting.is_readable(entry.path()))
    });
    TreeWalk { walk, odd, may_be_in_repository }
}

fn hashed(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn stat_of(metadata: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u32(metadata.mode());
    // The time of a directory changes with its entries, which are visited themselves.
    if !metadata.is_dir() {
        hasher.write_u64(metadata.len());
        hasher.write_i64(metadata.mtime());
        hasher.write_i64(metadata.mtime_nsec());
        hasher.write_u64(metadata.ino());
    }
    hasher.finish()
}

/// Returns the hash of a file's content; `None` if it is not a file, is too large, or cannot be read.
fn content_of(path: &Path, metadata: &Metadata) -> Option<u64> {
    if metadata.is_symlink() {
        return Some(hashed(fs::read_link(path).ok()?.as_os_str().as_bytes()));
    }
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(hashed(&bytes).wrapping_add(u64::from(metadata.mode())))
}

/// Returns the commit that is checked out, without running git. Empty without a repository.
fn head(root: &Path) -> Vec<u8> {
    Repository::of(root).map_or_else(Vec::new, |repository| repository.head().into_bytes())
}

/// Returns whether a file is build output that git does not track.
fn is_built(name: &Path, tracked: Option<&HashSet<String>>) -> bool {
    let Some(tracked) = tracked else { return false };
    let built = name.iter().any(|part| BUILDS.iter().any(|build| part == *build));
    built && !tracked.contains(&name.display().to_string())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes a working tree")]
mod tests {
    use super::*;

    fn looks(root: &Path, watch: &mut TreeWatch) -> String {
        watch.fingerprint(root, b"words")
    }

    #[test]
    fn a_change_a_new_file_and_other_words_are_seen_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (root, mut watch) = (folder.path(), TreeWatch::default());
        fs::write(root.join("a"), "1").unwrap();
        fs::write(root.join(".gitignore"), "target\n").unwrap();
        let first = looks(root, &mut watch);
        assert_eq!(looks(root, &mut watch), first);
        fs::create_dir(root.join("target")).unwrap();
        fs::write(root.join("target/x"), "built").unwrap();
        fs::create_dir(root.join(".forkhestra")).unwrap();
        assert_eq!(looks(root, &mut watch), first, "ignored files are no work");
        assert_ne!(watch.fingerprint(root, b"other words"), first);
        fs::write(root.join("a"), "2").unwrap();
        let second = looks(root, &mut watch);
        assert_ne!(second, first);
        fs::write(root.join("b"), "").unwrap();
        assert_ne!(looks(root, &mut watch), second);
        fs::remove_file(root.join("b")).unwrap();
        assert_eq!(looks(root, &mut watch), second);
    }

    #[test]
    fn the_rules_of_each_directory_mean_the_same_with_and_without_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [
            (".gitignore", "*.log\n/out\n!keep.log\nboth\n"),
            (".ignore", "*.tmp\n!both\n"),
            ("sub/.gitignore", "!b.log\n/x\n"),
            ("sub/.ignore", "keep.log\n"),
            ("sub/deep/.gitignore", "/a\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        for folder in ["", "sub", "sub/deep", "out", "sub/out"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            for name in ["a", "a.log", "b.log", "keep.log", "a.tmp", "both", "x"] {
                fs::write(root.join(folder).join(name), "").unwrap();
            }
        }
        let listed = || {
            let mut paths: Vec<PathBuf> =
                walker(root).walk.build().flatten().map(ignore::DirEntry::into_path).collect();
            paths.sort_unstable();
            paths
        };
        let without = listed();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        assert_eq!(listed(), without);
        assert!(without.contains(&root.join("sub/b.log")) && !without.contains(&root.join("a.log")));
    }

    #[test]
    fn a_file_written_anew_with_the_same_words_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let (root, mut watch) = (folder.path(), TreeWatch::default());
        looks(root, &mut watch);
        let write = || {
            let _ = fs::remove_file(root.join("notes"));
            fs::write(root.join("notes"), "the same").unwrap();
        };
        write();
        let first = looks(root, &mut watch);
        write();
        assert_eq!(looks(root, &mut watch), first);
    }

    #[test]
    fn a_commit_is_seen_also_in_a_worktree() {
        let folder = tempfile::tempdir().unwrap();
        let (root, mut watch) = (folder.path(), TreeWatch::default());
        fs::create_dir_all(root.join("main/.git/worktrees/w")).unwrap();
        fs::create_dir_all(root.join("main/.git/refs/heads")).unwrap();
        fs::write(root.join("main/.git/worktrees/w/HEAD"), "ref: refs/heads/w\n").unwrap();
        fs::write(root.join("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
        fs::create_dir(root.join("work")).unwrap();
        fs::write(root.join("work/.git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
        let first = looks(&root.join("work"), &mut watch);
        fs::write(root.join("main/.git/refs/heads/w"), "commit").unwrap();
        assert_ne!(looks(&root.join("work"), &mut watch), first);
    }
}
