//! Refuses a config, repository or journal of another user: its commands would run as us. Git does the same
//! (CVE-2022-24765).

use crate::chain::PROJECT_FILES;
use crate::proc::{capture, find_outside};
use crate::source::{Diagnostic, Env, Files};
use crate::world::World;
use std::path::{Path, PathBuf};

const ROOT: u32 = 0;

/// Reports a file in a project root that decides what runs there and is owned by another user, unless git's config
/// says the root is safe.
pub(super) fn strangers(world: &World, root: &Path, repository: Option<&Path>) -> Option<Diagnostic> {
    let decides = [".forkhestra", "forge"].into_iter().chain(PROJECT_FILES).map(|name| root.join(name));
    let repository = repository.map(|folder| folder.join(".git"));
    let theirs = |path: &PathBuf| world.disk().owner(path).filter(|owner| !is_ours(world, *owner));
    let (path, owner) = repository.into_iter().chain(decides).find_map(|path| Some((path.clone(), theirs(&path)?)))?;
    if is_safe(root) {
        return None;
    }
    let message = format!("{} belongs to {}, and decides what runs as you", path.display(), name_of(world, owner));
    let help = format!(
        "if you trust them: git config --global --add safe.directory {}; if it is yours, correct its owner with chown",
        root.display()
    );
    Some(Diagnostic::error("config/owner", message).help(help))
}

/// Whether an owner is this user, root, or, as root under sudo, the user who called sudo.
fn is_ours(world: &World, owner: u32) -> bool {
    let by_sudo = || world.var("SUDO_UID").and_then(|id| id.into_string().ok()?.parse::<u32>().ok());
    let us = rustix::process::geteuid().as_raw();
    owner == us || owner == ROOT || us == ROOT && by_sudo() == Some(owner)
}

/// Whether the user's or the system's git config says that a directory is safe (git-config(1), `safe.directory`).
fn is_safe(root: &Path) -> bool {
    let git = find_outside("git", root).unwrap_or_default();
    let told = |scope: &str| {
        let words = ["config", scope, "--get-all", "safe.directory"].map(str::to_string);
        // Run in `/`, so that the project's own config cannot say that.
        capture(&git, &words, Path::new("/")).map(|answer| answer.stdout).unwrap_or_default()
    };
    let mut safe = Vec::new();
    for scope in ["--system", "--global"] {
        for line in told(scope).lines() {
            // An empty value clears all values before it.
            if line.is_empty() { safe.clear() } else { safe.push(line.to_string()) }
        }
    }
    safe.iter().any(|folder| match folder.strip_suffix("/*") {
        Some(above) => root.starts_with(above),
        None => folder == "*" || Path::new(folder) == root,
    })
}

/// Returns a user's name in backticks, or `user ID` if it has none.
fn name_of(world: &World, owner: u32) -> String {
    let users = world.read(Path::new("/etc/passwd")).unwrap_or_default();
    let name = String::from_utf8_lossy(&users).lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(owner)).then(|| name.to_string())
    });
    name.map_or_else(|| format!("user {owner}"), |name| format!("`{name}`"))
}
