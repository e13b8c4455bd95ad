//! Usage limits that the runs of a batch tell each other, in a file next to their workspaces.

use super::World;
use crate::source::Env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The variable with the path of the file. Only the runs of a batch have it.
const VARIABLE: &str = "FORKHESTRA_PARKED";

/// The path of the file in a directory of workspaces.
fn file(workspaces: &Path) -> PathBuf {
    workspaces.join("parked")
}

/// The variable that tells the run of a workspace where the file is.
#[must_use]
pub fn parked_variable(workspaces: &Path) -> (&'static str, OsString) {
    (VARIABLE, file(workspaces).into_os_string())
}

/// Lets no run of a batch start an attempt of these backends until their usage limits end, in milliseconds since
/// the Unix epoch.
///
/// # Errors
/// When the file cannot be written.
pub fn write_parked<'a>(
    world: &World,
    workspaces: &Path,
    limits: impl Iterator<Item = (&'a str, i64)>,
) -> io::Result<()> {
    let lines: Vec<String> = limits.map(|(backend, until)| format!("{until} {backend}\n")).collect();
    world.disk().write(&file(workspaces), &lines.concat())
}

/// When the usage limit of a backend ends that another run of the batch has reached, in milliseconds since the Unix
/// epoch.
#[must_use]
pub fn parked_until(world: &World, backend: &str) -> Option<i64> {
    #[expect(clippy::disallowed_methods, reason = "the owner of files")]
    let text = fs::read_to_string(world.var(VARIABLE)?).ok()?;
    let is_meant = |line: &str| line.split_once(' ').filter(|(_, name)| *name == backend)?.0.parse().ok();
    text.lines().filter_map(is_meant).max()
}
