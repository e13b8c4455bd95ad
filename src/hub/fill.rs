//! What a fresh workspace gets in addition to the files of its commit: copies of ignored files, and links to ignored
//! directories of the user's root.

use super::HubError;
use crate::unit::Bundle;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Copies and links what the bundle names from the user's root into the root of a fresh workspace. What is there
/// already stays, and nothing is put outside of `top`, the top of the working tree.
///
/// # Errors
/// When a file cannot be read or written.
pub(super) fn fill(bundle: &Bundle, from: &Path, root: &Path, top: &Path) -> Result<(), HubError> {
    for path in &bundle.copy {
        let to = root.join(path);
        let failed = |cause| HubError::Write { path: to.clone(), cause };
        if let Some(to) = target(root, top, path).map_err(failed)? {
            copy(&from.join(path), &to).map_err(failed)?;
        }
    }
    for path in &bundle.share {
        let to = root.join(path);
        let failed = |cause| HubError::Write { path: to.clone(), cause };
        if let Some(to) = target(root, top, path).map_err(failed)? {
            std::os::unix::fs::symlink(from.join(path), to).map_err(failed)?;
        }
    }
    Ok(())
}

/// Where a path of the root lies in a workspace; `None` if something is there, or if a link leads out of it.
fn target(root: &Path, top: &Path, path: &str) -> io::Result<Option<PathBuf>> {
    let to = root.join(path);
    let above = to.parent().unwrap_or(root);
    #[expect(clippy::disallowed_methods, reason = "the owner of workspaces")]
    fs::create_dir_all(above)?;
    let is_inside = fs::canonicalize(above)?.starts_with(fs::canonicalize(top)?);
    Ok((is_inside && to.symlink_metadata().is_err()).then_some(to))
}

/// Copies a file, a link or a whole directory. Sockets and devices are left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let kind = from.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if kind.is_file() {
        return fs::copy(from, to).map(drop);
    }
    if kind.is_dir() {
        #[expect(clippy::disallowed_methods, reason = "the owner of workspaces")]
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
