//! The store of our snapshots in `.forkhestra/`: a bare repository of our own, with objects of its own.
#![expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]

use super::error::JournalError;
use super::folders::{FOLDER, failed, make_folder};
use std::fs;
use std::path::{Path, PathBuf};

/// No filter, no conversion, and every file is text: the first of all places in which git looks for attributes (gitattributes(5)).
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding diff -export-subst\n";

/// Where the snapshots of a root are.
#[must_use]
pub fn snapshot_store(root: &Path) -> PathBuf {
    root.join(FOLDER).join("snapshots")
}

/// Makes a store, or brings it back to what it has to be. `objects` are the folders from which it borrows, `ignored` what the user's own
/// rules leave out, beside those of the tree.
///
/// # Errors
/// When it cannot be written.
pub fn prepare_store(store: &Path, objects: &[PathBuf], sha256: bool, ignored: &str) -> Result<(), JournalError> {
    for folder in ["objects/info", "objects/pack", "refs/heads", "info"] {
        make_folder(&store.join(folder))?;
    }
    let version = if sha256 { "1\n[extensions]\n\tobjectformat = sha256\n[core]" } else { "0" };
    let config = format!("[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tlooseCompression = 1\n");
    let alternates = store.join("objects/info/alternates");
    let mut borrowed: String = objects.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join("\n");
    borrowed.push('\n');
    let files = [
        ("HEAD", "ref: refs/heads/none\n".to_string()),
        ("config", config),
        ("info/attributes", ATTRIBUTES.to_string()),
        ("info/exclude", ignored.to_string()),
    ];
    for (name, text) in files {
        let path = store.join(name);
        // A pipe would keep us waiting.
        let ordinary = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if ordinary && fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
            continue;
        }
        let fresh = store.join(format!("{name}.new"));
        fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, &path)).map_err(failed(&path))?;
    }
    if objects.is_empty() {
        let _ = fs::remove_file(&alternates);
    } else {
        fs::write(&alternates, borrowed).map_err(failed(&alternates))?;
    }
    // Only we write here, one run at a time: a lock is what a killed one has left.
    let _ = fs::remove_file(store.join("index.lock"));
    Ok(())
}
