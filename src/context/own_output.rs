//! Files in the working tree that this process itself writes: a redirected standard output, `--events ndjson=FILE`.

use super::repository::small;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A regular file that this process holds open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnOutput {
    /// Its absolute path when it was looked up.
    pub path: PathBuf,
    /// Its device and inode, so that another file that is put in its place is not mistaken for it.
    identity: (u64, u64),
}

impl OwnOutput {
    /// Returns whether a directory entry is this file. A hard link of another name is not: an agent could hide a change
    /// behind one.
    pub(super) fn is_at(&self, path: &Path, metadata: &fs::Metadata) -> bool {
        self.identity == (metadata.dev(), metadata.ino()) && self.path.file_name() == path.file_name()
    }
}

/// Returns the regular files that this process holds open for writing (proc(5), `/proc/pid/fd` and `fdinfo`). They grow
/// while agents work, and no agent changed them: they are not part of the work.
pub(super) fn own_outputs() -> Vec<OwnOutput> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    entries.flatten().filter_map(|entry| own_output(&entry)).collect()
}

fn own_output(entry: &fs::DirEntry) -> Option<OwnOutput> {
    let found = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file)?;
    let information = small(&PathBuf::from("/proc/self/fdinfo").join(entry.file_name()))?;
    let flags = information.lines().find_map(|line| line.strip_prefix("flags:"))?;
    // The access mode of open(2): 0 reads only.
    let writes = u32::from_str_radix(flags.trim(), 8).ok()? & 3 != 0;
    let path = fs::read_link(entry.path()).ok()?;
    writes.then_some(OwnOutput { path, identity: (found.dev(), found.ino()) })
}
