//! The directory with what can be made again: workspaces, mirrors of hubs, locks of ports.

use super::World;
use std::fs::{DirBuilder, Permissions, set_permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

impl World {
    /// Returns our directory for what can be made again; `None` if there is no home (XDG Base Directory Specification).
    #[must_use]
    pub fn own_cache(&self) -> Option<PathBuf> {
        Some(self.base_folder("XDG_CACHE_HOME", ".cache")?.join("forkhestra"))
    }

    /// Makes that directory, for its owner only: a workspace has what the project has, and a mirror of a hub has logs.
    /// Best effort: what is then written there says what is wrong.
    pub fn make_own_cache(&self) {
        let Some(path) = self.own_cache() else { return };
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        let _ = set_permissions(path, Permissions::from_mode(0o700));
    }
}
