//! What decides about the work, as it stands in the tree: read once whole, later only where it was touched.

use super::tree::walker;
use crate::checks::{Deciding, Tests, commands_of, says_commands, tests_of};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A larger file holds no tests that anybody reads.
const LARGEST: u64 = 1 << 20;

/// What is known of files by what their `stat` said.
#[derive(Debug, Default)]
pub struct GuardWatch {
    known: HashMap<PathBuf, (Stat, Found)>,
}

/// Size, times and inode; nobody sets the time of a change (stat(2), `st_ctime`).
type Stat = (u64, i64, i64, u64, i64, i64);

#[derive(Debug, Clone, Default)]
struct Found {
    tests: Option<Tests>,
    commands: Option<String>,
    config: Option<String>,
}

impl GuardWatch {
    /// Looks at the tree, and at our config and templates (`config`: files, and folders with everything below). Costs a walk, and
    /// a reading of each source file that was touched since the last look.
    pub fn look(&mut self, root: &Path, config: &[PathBuf], scripts: &[PathBuf]) -> Deciding {
        let mut deciding = Deciding::default();
        let files = walker(root).build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        for entry in files {
            self.file(root, entry.path(), false, &mut deciding);
        }
        // Also what git ignores: it decides all the same.
        for place in config {
            for entry in walker(place).standard_filters(false).build().flatten() {
                if entry.file_type().is_some_and(|kind| kind.is_file()) {
                    self.file(root, entry.path(), true, &mut deciding);
                }
            }
        }
        for script in scripts {
            Self::script(root, script, &mut deciding);
        }
        deciding
    }

    /// A file that a check's line names.
    fn script(root: &Path, path: &Path, deciding: &mut Deciding) {
        let mut bytes = Vec::new();
        if File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes)).is_ok() {
            let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
            deciding.commands.insert(name, digest(&String::from_utf8_lossy(&bytes)));
        }
    }

    fn file(&mut self, root: &Path, path: &Path, config: bool, deciding: &mut Deciding) {
        let Ok(metadata) = fs::metadata(path) else { return };
        let stat = (
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ino(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        );
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let known = self.known.get(path).filter(|(before, found)| *before == stat && found.config.is_some() >= config);
        let found = if let Some((_, found)) = known {
            found.clone()
        } else {
            let found = read(path, &name, metadata.len(), config);
            self.known.insert(path.to_path_buf(), (stat, found.clone()));
            found
        };
        if let Some(tests) = found.tests.filter(|tests| tests.tests > 0) {
            deciding.tests.insert(name.clone(), tests);
        }
        if let Some(commands) = found.commands {
            deciding.commands.insert(name.clone(), commands);
        }
        if let Some(digest) = found.config.filter(|_| config) {
            deciding.config.insert(name, digest);
        }
    }
}

fn read(path: &Path, name: &str, bytes: u64, config: bool) -> Found {
    let commands = says_commands(name);
    if bytes > LARGEST || !(config || commands || tests_of(name, "").is_some()) {
        return Found::default();
    }
    let mut text = Vec::new();
    if File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut text)).is_err() {
        return Found::default();
    }
    let text = String::from_utf8_lossy(&text);
    Found {
        tests: tests_of(name, &text),
        commands: commands.then(|| digest(&commands_of(name, &text))),
        config: config.then(|| digest(&text)),
    }
}

/// The digest by which a file of the config is known; empty for one that is not there.
#[must_use]
pub fn config_digest(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
    if read.is_ok() { digest(&String::from_utf8_lossy(&bytes)) } else { String::new() }
}

fn digest(text: &str) -> String {
    let mut hexadecimal = String::with_capacity(32);
    for byte in Sha256::digest(text).iter().take(16) {
        // Writing to a String cannot fail.
        let _ = write!(hexadecimal, "{byte:02x}");
    }
    hexadecimal
}
