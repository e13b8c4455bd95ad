//! Snapshots of the working tree, as git trees in a store of forkhestra's own, with its own objects. The project's
//! attributes, filters, index flags, replacements and objects do not affect the snapshots. So none of these can hide or
//! forge a change, and nothing from the project's config runs.

use super::own_output::own_outputs;
use super::repository::Repository;
use super::worktree::CACHES;
use crate::engine::FileChange;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Runs git. Returns its standard output, or `None` if it fails.
pub type Git<'a> = dyn Fn(&[&str]) -> Option<String> + 'a;

/// How patches are written.
const PATCH: [&str; 7] =
    ["--no-ext-diff", "--no-textconv", "--no-color", "--text", "-M", "--src-prefix=a/", "--dst-prefix=b/"];

/// The most files named in one command line.
const BATCH: usize = 200;

/// Size, time of the last status change, and inode of the store's index. That time cannot be set (stat(2), `st_ctime`).
type EntryStat = (u64, i64, i64, u64);

/// A working tree that forkhestra has just checked out itself.
#[derive(Debug, Clone)]
pub struct FreshTree {
    /// The tree that was checked out. No file has been changed since.
    pub tree: String,
    /// The index of that checkout (git-read-tree(1)), with what git knows about each file.
    pub index: PathBuf,
}

/// A working tree that forkhestra has made itself, and where its objects are.
#[derive(Debug, Clone)]
pub struct TreeOrigin {
    /// The directory of the objects, from which the snapshots borrow.
    pub objects: PathBuf,
    /// What is known about the working tree, if it is still as it was made.
    pub fresh: Option<FreshTree>,
}

/// The snapshots of one root. Each tree covers the whole working tree.
#[derive(Debug)]
pub struct Snapshots {
    store: PathBuf,
    top: PathBuf,
    /// The path of the root from the top of the working tree; empty if they are the same.
    prefix: String,
    repository: Repository,
    /// The state of the index after the last snapshot. An index in another state is not trusted.
    index: Cell<Option<EntryStat>>,
    /// The last tree that was taken, or the one at which the work began.
    last: RefCell<Option<String>>,
    /// The files that this process writes itself, relative to the top; empty until the first use.
    own: OnceCell<Vec<String>>,
}

/// A file that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// `A` for a new file, `D` for a deleted one, `T` for one whose type changed, `M` for any other.
    pub status: char,
    /// The path relative to the root; it starts with `../` for a file outside the root.
    pub path: String,
}

impl Snapshots {
    /// Opens the snapshots of the working tree around a root. The caller must have prepared `store`. `None` outside a
    /// repository.
    #[must_use]
    pub fn of(root: &Path, store: PathBuf) -> Option<Self> {
        let repository = Repository::of(root)?;
        let prefix = root.strip_prefix(&repository.top).ok()?.to_str()?.to_string();
        let (index, last) = (Cell::new(None), RefCell::new(None));
        Some(Self { store, top: repository.top.clone(), prefix, repository, index, last, own: OnceCell::new() })
    }

    fn ask(&self, git: &Git<'_>, words: &[&str]) -> Option<String> {
        let (store, top) = (self.store.display().to_string(), self.top.display().to_string());
        let own = ["--no-replace-objects", "--git-dir", &store, "--work-tree", &top];
        git(&[&own[..], words].concat())
    }

    fn stat(&self) -> Option<EntryStat> {
        let found = fs::symlink_metadata(self.store.join("index")).ok()?;
        Some((found.len(), found.ctime(), found.ctime_nsec(), found.ino()))
    }

    /// Sets the last known tree, from which the next snapshot can start.
    pub fn know(&self, tree: &str) {
        self.last.replace(Some(tree.to_string()));
    }

    /// Sets the state of a working tree that has just been checked out, which spares reading every file again. Returns
    /// whether the index could be copied.
    pub fn begin_at(&self, fresh: &FreshTree) -> bool {
        let index = self.store.join("index");
        // git compares the time of an index with the times of files (gitformat-index(5)), so the copy has the same.
        let copied = fs::copy(&fresh.index, &index).and_then(|_| {
            let time = fs::metadata(&fresh.index)?.modified()?;
            fs::File::open(&index)?.set_modified(time)
        });
        if copied.is_ok() {
            self.index.set(self.stat());
            self.know(&fresh.tree);
        }
        copied.is_ok()
    }

    /// Takes a snapshot and returns its tree. Costs a `stat` of every file, and a read of those touched since the last
    /// snapshot. The first snapshot of a process reads every file.
    #[must_use]
    pub fn take(&self, git: &Git<'_>) -> Option<String> {
        if self.index.get().is_none() || self.index.get() != self.stat() {
            let _ = fs::remove_file(self.store.join("index"));
            // Starts from a known tree, because `add` would leave out files that git tracks although they match an
            // ignore rule.
            let known = self.last.borrow().clone();
            let seed = known
                .or_else(|| Some(self.repository.head()).filter(|head| !head.is_empty() && self.import(head, git)));
            if let Some(tree) = seed {
                let _ = self.ask(git, &["read-tree", &tree]);
            }
        }
        let without: Vec<String> =
            self.own_output().iter().map(|file| format!(":(top,exclude,literal){file}")).collect();
        let add = ["add", "--all", "--ignore-errors", "--", ":/"];
        let without = without.iter().map(String::as_str);
        if self.ask(git, &add.into_iter().chain(without).collect::<Vec<_>>()).is_none() {
            self.add_piecemeal(git);
        }
        let tree =
            self.ask(git, &["write-tree"]).map(|tree| tree.trim().to_string()).filter(|tree| !tree.is_empty())?;
        self.index.set(self.stat());
        self.know(&tree);
        Some(tree)
    }

    /// Returns the files that this process writes itself, relative to the top of the working tree. Those in caches are
    /// left out: git refuses a pathspec that names an ignored file.
    fn own_output(&self) -> &[String] {
        self.own.get_or_init(|| {
            let inside =
                own_outputs().into_iter().filter_map(|own| Some(own.path.strip_prefix(&self.top).ok()?.to_owned()));
            let shown = inside.filter(|path| !path.iter().any(|part| CACHES.iter().any(|cache| part == *cache)));
            shown.filter_map(|path| path.to_str().map(str::to_string)).collect()
        })
    }

    /// Adds files by name, in batches, so that a file that cannot be added, such as a repository without a commit, does
    /// not keep out the others.
    fn add_piecemeal(&self, git: &Git<'_>) {
        let _ = self.ask(git, &["add", "--update", "--ignore-errors", "--", ":/"]);
        let others = self.ask(git, &["ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ":/"]);
        let others = others.unwrap_or_default();
        let files = others.split('\0').filter(|file| !file.is_empty() && !file.ends_with('/'));
        let files = files.filter(|file| !self.own_output().iter().any(|own| own == file));
        let files: Vec<String> = files.map(|file| format!(":(top,literal){file}")).collect();
        for batch in files.chunks(BATCH) {
            let names: Vec<&str> = batch.iter().map(String::as_str).collect();
            let _ = self.ask(git, &[&["add", "--ignore-errors", "--"][..], &names].concat());
        }
    }

    /// Copies a commit of the project's repository into the store, and returns whether the store has it. git rejects
    /// objects whose content does not match their ID.
    fn import(&self, commit: &str, git: &Git<'_>) -> bool {
        let tree = format!("{commit}^{{tree}}");
        let known = || self.ask(git, &["rev-parse", "--verify", "--quiet", &tree]).is_some();
        if known() {
            return true;
        }
        let from = self.repository.common.display().to_string();
        let to = format!("+{commit}:refs/forkhestra/base");
        let _ = self.ask(git, &["fetch", "--quiet", "--no-tags", "--depth=1", "--no-write-fetch-head", &from, &to]);
        known()
    }

    /// Returns the tree of a commit of the project's repository.
    #[must_use]
    pub fn of_commit(&self, commit: &str, git: &Git<'_>) -> Option<String> {
        self.import(commit, git).then_some(())?;
        let found = self.ask(git, &["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])?;
        Some(found.trim().to_string()).filter(|tree| !tree.is_empty())
    }

    /// Returns the tree of the commit that is checked out; an empty one before the first commit.
    #[must_use]
    pub fn of_head(&self, git: &Git<'_>) -> Option<String> {
        let head = self.repository.head();
        if head.is_empty() {
            return self.ask(git, &["mktree"]).map(|tree| tree.trim().to_string());
        }
        self.of_commit(&head, git)
    }

    /// Returns whether everything that a tree refers to exists and matches its name. The packs of borrowed objects are
    /// not read: they hold the whole history.
    #[must_use]
    pub fn is_whole(&self, tree: &str, git: &Git<'_>) -> bool {
        let objects = self.store.join("objects");
        let borrows = objects.join("info/alternates").exists();
        // A store that borrows its first objects has no packs, so somebody else has put one there.
        let is_foreign = borrows && fs::read_dir(objects.join("pack")).is_ok_and(|mut packs| packs.next().is_some());
        let full = if borrows { "--no-full" } else { "--full" };
        let words = ["fsck", full, "--no-dangling", "--no-progress", "--no-reflogs", tree];
        !is_foreign && self.ask(git, &words).is_some()
    }

    /// Converts a path relative to the top of the working tree to a path relative to the root.
    fn rooted(&self, path: &str) -> String {
        if self.prefix.is_empty() {
            return path.to_string();
        }
        match path.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('/')) {
            Some(inside) => inside.to_string(),
            None => "../".repeat(self.prefix.split('/').count()) + path,
        }
    }

    /// Returns the files that differ between two trees, by path. `None` if one of the trees is gone.
    #[must_use]
    pub fn changes(&self, before: &str, now: &str, git: &Git<'_>) -> Option<Vec<Changed>> {
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", before, now];
        let told = self.ask(git, &words)?;
        let mut words = told.split('\0');
        let mut changes = Vec::new();
        while let (Some(status), Some(path)) = (words.next().filter(|word| !word.is_empty()), words.next()) {
            let status = status.chars().next().unwrap_or('M');
            changes.push(Changed { status, path: self.rooted(path) });
        }
        Some(changes)
    }

    /// Returns the files that differ between two trees, by path, with the numbers of their lines. `None` if one of the
    /// trees is gone.
    #[must_use]
    pub fn numstat(&self, before: &str, now: &str, git: &Git<'_>) -> Option<Vec<FileChange>> {
        let changes = self.changes(before, now, git)?;
        let told = self.ask(git, &["diff-tree", "-r", "-z", "--no-renames", "--numstat", before, now])?;
        // `12<TAB>4<TAB>path`, or `-<TAB>-<TAB>path` for a binary file, in the order of the changes.
        let lines = told.split('\0').filter_map(|line| {
            let mut words = line.splitn(3, '\t');
            Some((words.next()?.parse().ok(), words.next()?.parse().ok()))
        });
        let counted = changes.into_iter().zip(lines);
        Some(
            counted
                .map(|(Changed { status, path }, (added, removed))| FileChange { status, path, added, removed })
                .collect(),
        )
    }

    /// Returns the tree `base` with some paths as they are in `now`.
    #[must_use]
    pub fn blend(&self, base: &str, now: &str, paths: &BTreeSet<String>, git: &Git<'_>) -> Option<String> {
        let told = self.ask(git, &["diff-tree", "-r", "-z", "--no-renames", base, now])?;
        let (mut words, mut entries) = (told.split('\0'), Vec::new());
        while let (Some(facts), Some(path)) = (words.next().filter(|word| !word.is_empty()), words.next()) {
            if !paths.contains(&self.rooted(path)) {
                continue;
            }
            // `:100644 100644 OLD NEW M`; a deleted file has the mode 000000.
            let mut facts = facts.split(' ').skip(1);
            let (mode, _, object) = (facts.next()?, facts.next()?, facts.next()?);
            entries.push((mode.to_string(), object.to_string(), path.to_string()));
        }
        // The index no longer matches the working tree, so the next snapshot starts over.
        self.index.set(None);
        self.ask(git, &["read-tree", base])?;
        for batch in entries.chunks(BATCH) {
            let mut words = vec!["update-index".to_string(), "--add".into()];
            for (mode, object, path) in batch {
                let gone = mode == "000000";
                words.extend(if gone {
                    ["--force-remove".into(), path.clone()]
                } else {
                    ["--cacheinfo".into(), format!("{mode},{object},{path}")]
                });
            }
            self.ask(git, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        Some(self.ask(git, &["write-tree"])?.trim().to_string()).filter(|tree| !tree.is_empty())
    }

    /// Returns the difference between two trees as a patch, for files below the root. Every file is treated as text.
    #[must_use]
    pub fn diff(&self, before: &str, now: &str, git: &Git<'_>) -> Option<String> {
        self.ask(git, &[&["diff"][..], &PATCH, &["--relative", before, now]].concat())
    }

    /// Writes the same patch to a file, byte for byte, whatever the encoding of the files is. Returns whether git
    /// could.
    #[must_use]
    pub fn diff_to(&self, file: &Path, before: &str, now: &str, git: &Git<'_>) -> bool {
        let output = format!("--output={}", file.display());
        self.ask(git, &[&["diff"][..], &PATCH, &[&output, "--relative", before, now]].concat()).is_some()
    }

    /// Returns the files that are ignored now but would not be under the ignore rules of an earlier tree. No snapshot
    /// has them, so nothing else reports them. `rules` are the user's own rules when that tree was taken.
    #[must_use]
    pub fn newly_ignored(&self, before: &str, rules: &str, git: &Git<'_>) -> Vec<String> {
        let told = self.ask(git, &["ls-tree", "-r", "-z", "--name-only", before]).unwrap_or_default();
        let places = told.split('\0').filter(|path| *path == ".gitignore" || path.ends_with("/.gitignore"));
        let mut all = rules.to_string();
        for path in places {
            let text = self.ask(git, &["cat-file", "blob", &format!("{before}:{path}")]).unwrap_or_default();
            let folder = path.strip_suffix(".gitignore").unwrap_or_default();
            all.extend(text.lines().filter_map(|line| anchored(line, folder)));
        }
        let file = self.store.join("rules");
        let _ = fs::remove_file(&file);
        if write_new(&file, &all).is_err() {
            return Vec::new();
        }
        let from = format!("--exclude-from={}", file.display());
        let told = self.ask(git, &["ls-files", "--others", "--full-name", "-z", &from, "--", ":/"]).unwrap_or_default();
        let _ = fs::remove_file(&file);
        let files = told.split('\0').filter(|path| !path.is_empty());
        files.filter(|path| !self.own_output().iter().any(|own| own == path)).map(|path| self.rooted(path)).collect()
    }

    /// Returns which of the given files below the root a tree contains.
    #[must_use]
    pub fn held(&self, tree: &str, files: &[String], git: &Git<'_>) -> Vec<String> {
        let mut held = Vec::new();
        for batch in files.chunks(BATCH) {
            let names: Vec<&str> = batch.iter().map(String::as_str).collect();
            let words = ["--literal-pathspecs", "ls-tree", "-r", "-z", "--name-only", tree, "--"];
            let told = self.ask(git, &[&words[..], &names].concat()).unwrap_or_default();
            held.extend(told.split('\0').filter(|name| !name.is_empty()).map(str::to_string));
        }
        held
    }
}

/// Converts a rule of a directory's .gitignore to one for the top directory (gitignore(5)).
fn anchored(line: &str, folder: &str) -> Option<String> {
    let line = line.trim_end_matches('\r');
    if line.trim().is_empty() || line.starts_with('#') {
        return None;
    }
    let (not, rule) = line.strip_prefix('!').map_or(("", line), |rule| ("!", rule));
    let inner = rule.trim_end().trim_end_matches('/');
    Some(if folder.is_empty() {
        format!("{not}{rule}\n")
    } else if inner.contains('/') {
        format!("{not}/{folder}{}\n", rule.trim_start_matches('/'))
    } else {
        format!("{not}/{folder}**/{rule}\n")
    })
}

#[expect(clippy::disallowed_methods, reason = "a rules file for git, in our own store")]
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::anchored;

    #[test]
    fn rules_of_a_folder_hold_below_it() {
        let of = |line: &str, folder: &str| anchored(line, folder).unwrap_or_default();
        assert_eq!(of("*.log", ""), "*.log\n");
        assert_eq!(of("*.log", "a/"), "/a/**/*.log\n");
        assert_eq!(of("/x", "a/"), "/a/x\n");
        assert_eq!(of("!b/c/", "a/"), "!/a/b/c/\n");
        assert_eq!(of("build/", "a/"), "/a/**/build/\n");
        assert_eq!(of("# x", "a/"), "");
    }
}
