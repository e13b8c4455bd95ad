//! Whether an iteration changed anything: a fingerprint of the working tree and of what was said last (V-26).

use super::repository::Repository;
use ignore::WalkBuilder;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A larger file is known by its size and time alone.
const LARGEST: u64 = 4 << 20;

/// What is no part of the work, whether git would ignore it or not.
pub const CACHES: [&str; 8] =
    [".git", ".forkhestra", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox"];

/// Where builds and tests leave what they make.
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

/// A tree at one moment. Comparable with others of its watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// By its path from the root, what stands for a file's content.
    files: HashMap<PathBuf, u64>,
    head: Vec<u8>,
}

/// Remembers what files held, so that one written anew with the same words is no change. Costs one walk a look, one `stat` a
/// file, and one reading of each file that was touched since the last look; ignored files are no part of the work.
#[derive(Debug, Default)]
pub struct TreeWatch {
    /// By the hash of a path: what its `stat` said last, and what stands for its content.
    files: HashMap<u64, (u64, u64)>,
    looked: bool,
    odd: bool,
}

impl TreeWatch {
    /// The tree as it is now.
    /// For a judge with what git keeps in the folders of builds: all else there is left out, and every file is read, so that one
    /// that is put back is as it was.
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

    /// The files that were changed, made or removed since, from the root, at most so many; a commit counts as one.
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

    /// The files that were changed or made since, and those that are gone, by path from the root.
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

    /// The fingerprint, in hexadecimal. Comparable with others of this watch.
    pub fn fingerprint(&mut self, root: &Path, words: &[u8]) -> String {
        let mut tree = Vec::new();
        self.walk(root, false, &mut |path, content| tree.push((hashed(path.as_os_str().as_bytes()), content)));
        tree.sort_unstable();
        let mut hash = Sha256::new();
        for (path, content) in tree {
            hash.update(path.to_le_bytes());
            hash.update(content.to_le_bytes());
        }
        hash.update(head(root));
        hash.update(words);
        let mut hexadecimal = String::with_capacity(32);
        for byte in hash.finalize().iter().take(16) {
            // Writing to a String cannot fail.
            let _ = write!(hexadecimal, "{byte:02x}");
        }
        hexadecimal
    }

    /// Every file that git would not ignore and that is no cache, with the hash of what it holds.
    fn walk(&mut self, root: &Path, whole: bool, each: &mut dyn FnMut(&Path, u64)) {
        let (walk, odd) = walker(root);
        for entry in walk.build().flatten().filter(|entry| entry.depth() > 0) {
            let Ok(metadata) = entry.metadata() else { continue };
            let path = hashed(entry.path().as_os_str().as_bytes());
            let stat = stat_of(&metadata);
            let content = match self.files.get(&path) {
                Some((known, content)) if *known == stat && !(whole && *content == stat) => *content,
                // The first look need not read the whole tree: what is touched later is read then.
                None if !self.looked && !whole => stat,
                _ => content_of(entry.path(), &metadata).unwrap_or(stat),
            };
            self.files.insert(path, (stat, content));
            // A folder is known by what is in it.
            if !metadata.is_dir() {
                each(entry.path(), content);
            }
        }
        self.looked = true;
        self.odd = !odd.take().is_empty();
    }

    /// Whether the last look found rules of git that cannot be read: whoever asks git waits.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.odd
    }
}

/// Files of git's rules that are no ordinary files: whoever reads one waits.
#[derive(Debug, Clone, Default)]
pub(super) struct Odd(Arc<Mutex<Vec<PathBuf>>>);

impl Odd {
    /// Those that were found so far.
    pub(super) fn take(&self) -> Vec<PathBuf> {
        self.0.lock().map(|mut found| std::mem::take(&mut *found)).unwrap_or_default()
    }

    /// Whether the rules of a folder can be read.
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

/// Whether something stands there that is neither a file nor a folder.
fn is_odd(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// What is known of an ordinary file, links followed.
pub(super) fn ordinary(path: &Path) -> Option<Metadata> {
    fs::metadata(path).ok().filter(Metadata::is_file)
}

/// A walk over what git would not ignore and what is no cache. Folders whose rules cannot be read are left out, and noted.
pub(super) fn walker(root: &Path) -> (WalkBuilder, Odd) {
    let odd = Odd::default();
    let mut walk = WalkBuilder::new(root);
    walk.hidden(false).require_git(false).git_global(false);
    // The rules above the root, and those of the repository itself.
    let above = root
        .ancestors()
        .skip(1)
        .flat_map(|folder| [folder.join(".gitignore"), folder.join(".ignore")])
        .any(|path| is_odd(&path));
    let exclude = Repository::of(root).is_some_and(|repository| is_odd(&repository.common.join("info/exclude")));
    walk.parents(!above).git_exclude(!exclude);
    if !odd.is_readable(root) {
        walk.git_ignore(false).ignore(false);
    }
    let noting = odd.clone();
    walk.filter_entry(move |entry| {
        let cache = CACHES.iter().any(|cache| entry.file_name() == *cache);
        let folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0 || !cache && (!folder || noting.is_readable(entry.path()))
    });
    (walk, odd)
}

fn hashed(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn stat_of(metadata: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u32(metadata.mode());
    // A folder's own time changes with its entries, which speak for themselves.
    if !metadata.is_dir() {
        hasher.write_u64(metadata.len());
        hasher.write_i64(metadata.mtime());
        hasher.write_i64(metadata.mtime_nsec());
        hasher.write_u64(metadata.ino());
    }
    hasher.finish()
}

/// What a file holds; none for what is no file, is large, or cannot be read.
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

/// The commit that is checked out, without asking git. Nothing without a repository.
fn head(root: &Path) -> Vec<u8> {
    Repository::of(root).map_or_else(Vec::new, |repository| repository.head().into_bytes())
}

/// Whether a file stands where builds leave what they make, and git does not keep it.
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
