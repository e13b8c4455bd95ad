//! The options of `runs`, `diff` and `report`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct RunsArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: Option<RunsVerb>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RunsVerb {
    /// List all runs, newest first; the same as `runs` alone
    #[command(alias = "ls")]
    List,
    /// Show one run: how it ended and why, and every attempt with its verdict, findings and warnings
    Show {
        /// The run's number [default: the last run]
        run: Option<i64>,
    },
    /// Show a run as the console showed it, with the output of its agents; or show one attempt
    #[command(alias = "replay")]
    Log(LogArgs),
    /// Write the files, as they were after a run or an attempt, to a directory
    Restore(RestoreArgs),
    /// Print every event, one JSON object per line
    Events {
        /// The run's number [default: the last run]
        run: Option<i64>,
    },
    /// Delete old runs and their transcripts
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(in crate::cli) struct LogArgs {
    /// The run's number, or an attempt of it: 12.2.3 [default: the last run]
    #[arg(value_name = "RUN[.ATTEMPT]")]
    pub(in crate::cli) run: Option<String>,
    /// An attempt, written STEP.ATTEMPT, or STEP for its last attempt [default: the whole run]
    #[arg(value_name = "STEP[.ATTEMPT]")]
    pub(in crate::cli) attempt: Option<String>,
    /// Print only standard output, byte for byte
    #[arg(long, group = "file")]
    pub(in crate::cli) raw: bool,
    /// Print only standard error, byte for byte
    #[arg(long, group = "file")]
    pub(in crate::cli) stderr: bool,
    /// Print the prompt instead, byte for byte as it was delivered
    #[arg(long, group = "file")]
    pub(in crate::cli) prompt: bool,
    /// Print the final message of a backend instead
    #[arg(long = "final", group = "file")]
    pub(in crate::cli) last: bool,
    /// Follow the run to its end; without RUN, also the runs that `task run --all` starts next
    #[arg(short, long)]
    pub(in crate::cli) follow: bool,
}

impl LogArgs {
    /// The file of the attempt that is printed as it is; `None` for what the console shows.
    pub(in crate::cli) fn file(&self) -> Option<&'static str> {
        let files = [
            (self.raw, "stdout.log"),
            (self.stderr, "stderr.log"),
            (self.prompt, "prompt.md"),
            (self.last, "final.md"),
        ];
        files.into_iter().find_map(|(wanted, file)| wanted.then_some(file))
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArgs {
    /// A run, an attempt of it, or two attempts: 12, 12.2.3, 12.2.1..2.3 [default: the last run]
    #[arg(value_name = "RUN[.ATTEMPT][..ATTEMPT]")]
    pub(in crate::cli) what: Option<String>,
    /// List the files and count their lines
    #[arg(long)]
    pub(in crate::cli) stat: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "stat")]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RestoreArgs {
    /// A run, or an attempt of it: 12, or 12.2.3 [default: the last run]
    #[arg(value_name = "RUN[.ATTEMPT]")]
    pub(in crate::cli) what: Option<String>,
    /// The directory to write to, which must not exist or must be empty
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) to: PathBuf,
    /// Write the files as they were before the run or the attempt
    #[arg(long)]
    pub(in crate::cli) before: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PruneArgs {
    /// Delete runs that ended longer ago than this: 30d, 12h
    #[arg(long, value_name = "AGE")]
    pub(in crate::cli) older_than: String,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(in crate::cli) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ReportArgs {
    /// The run's number [default: the last run]
    pub(in crate::cli) run: Option<i64>,
    /// Report all runs on one page
    #[arg(long, conflicts_with = "run")]
    pub(in crate::cli) all: bool,
    /// Report the runs of the last 12h, 2d, … on one page
    #[arg(long, value_name = "AGE", conflicts_with_all = ["run", "all"])]
    pub(in crate::cli) since: Option<String>,
    /// Report the runs of a task on one page
    #[arg(long, value_name = "ID", conflicts_with = "run")]
    pub(in crate::cli) task: Option<String>,
    /// Write the report again every few seconds until its runs have ended; the page reloads itself
    #[arg(long)]
    pub(in crate::cli) follow: bool,
    /// Write to this file; - is standard output [default: report.html, .md or .xml next to the transcripts]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// The format of the report; junit is the checks and verdicts as JUnit XML, for CI systems
    #[arg(long, value_name = "FORMAT", default_value = "html", value_parser = ["html", "md", "junit"])]
    pub(in crate::cli) format: String,
    /// Print JSON: the run and the file
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

impl ReportArgs {
    /// Whether the options select runs in the plural.
    pub(in crate::cli) fn several(&self) -> bool {
        self.all || self.since.is_some() || self.task.is_some()
    }
}
