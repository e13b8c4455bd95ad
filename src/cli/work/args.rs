//! The command line of `work` as clap reads it. No I/O.

use crate::unit::is_label;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(in crate::cli) struct WorkArgs {
    /// The hub, here or on another machine: a path, or a URL of git
    #[arg(long, value_name = "DIR|URL", required_unless_present = "bundle")]
    pub(in crate::cli) hub: Option<String>,
    /// Work on the unit in this file, which `forkhestra task bundle` has written
    #[arg(long, value_name = "FILE", requires = "out", conflicts_with_all = ["hub", "unit", "next"])]
    pub(in crate::cli) bundle: Option<PathBuf>,
    /// With --bundle: write what was done into this file, for `forkhestra task sync`
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Work on the unit with this name
    #[arg(long, value_name = "NAME", required_unless_present_any = ["next", "bundle"])]
    pub(in crate::cli) unit: Option<String>,
    /// Work on the next unit that nobody has claimed
    #[arg(long, conflicts_with = "unit")]
    pub(in crate::cli) next: bool,
    /// With --next: continue with the next unit until none is waiting and no batch is running
    #[arg(long, requires = "next")]
    pub(in crate::cli) all: bool,
    /// With --next: continue with the next unit, and wait if there is none
    #[arg(long, requires = "next", conflicts_with = "all")]
    pub(in crate::cli) wait: bool,
    /// The name of this worker: --next first continues the unfinished work of this name
    #[arg(long = "as", value_name = "NAME", requires = "next", value_parser = worker_name)]
    pub(in crate::cli) name: Option<String>,
    /// With --next: a label of this machine, which units may need (`workspace.needs.labels`). May be repeated
    #[arg(long, value_name = "NAME", requires = "next", value_parser = label)]
    pub(in crate::cli) label: Vec<String>,
    /// The directory of the workspaces [default: below ~/.cache/forkhestra/workspaces]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) workspaces: Option<PathBuf>,
    /// The directory with the ignored files that the unit needs [default: the project of the hub]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) files: Option<PathBuf>,
    /// For the batch's own machine: hand over only the work, not the run
    #[arg(long)]
    pub(in crate::cli) no_checkpoints: bool,
    /// Raise a limit of a run that is being continued. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(in crate::cli) limit: Vec<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BundleArgs {
    /// The unit's name, such as 31-4-1: batch 31, task 4, its first unit (2 after the work was sent back once)
    #[arg(value_name = "UNIT")]
    pub(in crate::cli) unit: String,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) out: PathBuf,
}

/// Parses a label of a worker.
pub(in crate::cli) fn label(text: &str) -> Result<String, String> {
    let words = "a label has letters, digits, `-`, `_`, `.` and `:`, at most 63";
    if is_label(text) { Ok(text.to_string()) } else { Err(words.into()) }
}

fn worker_name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if is_name { Ok(text.to_string()) } else { Err("a name has letters, digits and punctuation, but no slash".into()) }
}
