//! The last diagnosis by hand: of which tree, and whether it passed. Lost, it is made again.
#![expect(clippy::disallowed_methods, reason = "the owner of .forkhestra/")]

use super::error::JournalError;
use super::folders::prepare;
use std::fs;
use std::path::Path;

const NAME: &str = "diagnosis";

/// Whether the diagnosis of this tree passed; none if there is none of it.
#[must_use]
pub fn diagnosis(root: &Path, tree: &str) -> Option<bool> {
    let text = fs::read_to_string(root.join(super::folders::FOLDER).join(NAME)).ok()?;
    let (of, passed) = text.trim().split_once(' ')?;
    (of == tree).then(|| passed == "passed")
}

/// Remembers it.
///
/// # Errors
/// When it cannot be written.
pub fn keep_diagnosis(root: &Path, tree: &str, passed: bool) -> Result<(), JournalError> {
    let path = prepare(root)?.join(NAME);
    let text = format!("{tree} {}\n", if passed { "passed" } else { "failed" });
    fs::write(&path, text).map_err(|cause| JournalError::Write { path, cause })
}
