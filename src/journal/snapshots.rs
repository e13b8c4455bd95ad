//! The store of snapshots in `.forkhestra/`: a bare git repository with its own objects.

use super::error::JournalError;
use super::handle::FOLDER;
use super::handle::{Handle, refused};
use std::path::{Path, PathBuf};

/// No filter, no conversion, and every file is text. Git gives this file precedence over all others (gitattributes(5)).
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding diff -export-subst\n";

/// Returns the path of the snapshot store of a root.
#[must_use]
pub fn snapshot_store(root: &Path) -> PathBuf {
    root.join(FOLDER).join("snapshots")
}

/// Creates a store, or restores its expected state. `objects` are the directories from which it borrows objects;
/// `ignored` holds the user's own ignore rules, in addition to those of the tree.
///
/// # Errors
/// When it cannot be written.
pub fn prepare_store(store: &Path, objects: &[PathBuf], sha256: bool, ignored: &str) -> Result<(), JournalError> {
    let (above, name) = (store.parent().unwrap_or(store), store.file_name().unwrap_or_default().to_string_lossy());
    let made = Handle::at(above).and_then(|above| above.make_below([name.as_ref()]));
    let ours = made.map_err(|error| refused(store, error))?;
    for folder in [["objects", "info"], ["objects", "pack"], ["refs", "heads"]] {
        ours.make_below(folder).map_err(|error| ours.refused(folder[0], error))?;
    }
    let info = ours.make_below(["info"]).map_err(|error| ours.refused("info", error))?;
    let objects_info = ours.below(["objects", "info"]).map_err(|error| ours.refused("objects", error))?;
    let version = if sha256 { "1\n[extensions]\n\tobjectformat = sha256\n[core]" } else { "0" };
    let config = format!(
        "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tlooseCompression = 1\n[gc]\n\tauto = 0\n"
    );
    let mut borrowed: String = objects.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join("\n");
    borrowed.push('\n');
    let files = [
        (&ours, "HEAD", "ref: refs/heads/none\n".to_string()),
        (&ours, "config", config),
        (&info, "attributes", ATTRIBUTES.to_string()),
        (&info, "exclude", ignored.to_string()),
    ];
    for (folder, name, text) in files {
        if folder.read(name, text.len() as u64 + 1).is_ok_and(|found| found == text.as_bytes()) {
            continue;
        }
        folder.replace(name, text.as_bytes())?;
    }
    if objects.is_empty() {
        let _ = objects_info.remove("alternates");
    } else {
        objects_info.replace("alternates", borrowed.as_bytes())?;
    }
    // Only forkhestra writes here, one run at a time: an existing lock was left by a killed process.
    let _ = ours.remove("index.lock");
    Ok(())
}

/// Lets the store refer to exactly these trees, until [`forget_trees`] is called. What git prunes then is what nothing
/// else refers to. The index is removed, because it refers to files, too; the next snapshot reads every file again.
///
/// # Errors
/// When it cannot be written.
pub fn keep_trees(store: &Path, trees: &[String]) -> Result<(), JournalError> {
    let ours = Handle::at(store).map_err(|error| refused(store, error))?;
    ours.remove("index").map_err(|error| ours.refused("index", error))?;
    let is_id = |tree: &&String| !tree.is_empty() && tree.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names = trees.iter().filter(is_id).enumerate();
    let lines: Vec<String> = names.map(|(number, tree)| format!("{tree} refs/forkhestra/keep/{number:08}\n")).collect();
    ours.replace("packed-refs", lines.concat().as_bytes())
}

/// Removes what [`keep_trees`] has written.
pub fn forget_trees(store: &Path) {
    let _ = Handle::at(store).and_then(|ours| ours.remove("packed-refs"));
}
