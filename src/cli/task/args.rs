//! The command line of tasks, disputes and verdicts as clap reads it. No I/O.

use crate::cli::options::OutputArgs;
use crate::cli::options::RunOptions;
use clap::{Args, Subcommand};

/// What an agent says about its work.
#[derive(Debug, Args)]
pub(in crate::cli) struct NotesArgs {
    /// Why, in a few words
    #[arg(long, alias = "reason", value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) notes: Option<String>,
}

/// A reject says what is to be mended.
#[derive(Debug, Args)]
pub(in crate::cli) struct RejectArgs {
    /// What is to be mended: an item a finding, `- FILE:LINE: what happens`
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) notes: String,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct DisputeArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: Option<DisputeVerb>,
    /// For an agent: why a human has to decide
    #[arg(long, alias = "notes", value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DisputeVerb {
    /// Every dispute
    List {
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// One dispute, whole
    Show {
        /// Its number
        id: i64,
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// Decide one: for the coder (the work stands), the reviewer (the work goes on), or otherwise
    Resolve {
        /// Its number
        id: i64,
        /// For whom
        #[arg(value_parser = ["coder", "reviewer", "custom"])]
        decision: String,
        /// Why, for those who go on
        #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
        notes: String,
    },
    /// Remove one: its task goes on where it was
    Delete {
        /// Its number
        id: i64,
    },
    /// For an agent: the same as `dispute --reason`
    #[command(hide = true)]
    Create {
        /// Its task
        id: String,
        /// Why a human has to decide
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: String,
        /// Its own role, which is known
        #[arg(long = "type", value_parser = ["coder", "reviewer"])]
        kind: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: TaskVerb,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TaskVerb {
    /// Add a task
    #[command(aliases = ["create", "new"])]
    Add(TaskAddArgs),
    /// Add tasks from lines of JSON: title, and spec, tests, after, id
    Import(TaskImportArgs),
    /// Every task, and how far it is
    #[command(alias = "ls")]
    List {
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// One task: what happened to it, and what it waits for
    Show {
        /// Its name
        id: String,
        /// For machines
        #[arg(long)]
        json: bool,
    },
    /// Work on tasks: the chain `task`, or another one
    #[command(aliases = ["start", "work"])]
    Run(Box<TaskRunArgs>),
    /// Decide yourself that a task is done
    Approve(TaskDecideArgs),
    /// Send a task back yourself
    Reject(TaskDecideArgs),
    /// Leave a task out
    Skip(TaskDecideArgs),
    /// Begin a task anew: pending, without rejections
    Reset(TaskDecideArgs),
    /// Remove a task and all that is known of it
    #[command(aliases = ["rm", "remove"])]
    Delete {
        /// Its name
        id: String,
    },
    /// For an agent: the same as `submit`
    #[command(hide = true)]
    Update {
        /// Its task
        id: String,
        /// What it is to be
        #[arg(long, value_parser = ["review"])]
        status: String,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskAddArgs {
    /// What is to be done, in a line
    pub(in crate::cli) title: String,
    /// The file that says it whole
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) spec: Option<String>,
    /// The command that shows that it is done; `verify` runs it with everything else
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::cli) tests: Option<String>,
    /// A task that comes first. May be repeated
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) after: Vec<String>,
    /// Its name; the next free number by default
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) id: Option<String>,
    /// For machines
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskImportArgs {
    /// A file, or - for standard input: a JSON object a line, with title, and spec, tests, after, id if there are any
    #[arg(value_name = "FILE")]
    pub(in crate::cli) file: String,
    /// For machines
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskDecideArgs {
    /// Its name
    pub(in crate::cli) id: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", allow_hyphen_values = true)]
    pub(in crate::cli) notes: String,
    /// Who judged, in the spelling of other tools
    #[arg(long, hide = true)]
    pub(in crate::cli) model: Option<String>,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one a flag")]
pub(in crate::cli) struct TaskRunArgs {
    /// A task, and variables, NAME=value; without one the next task
    #[arg(value_name = "ID | NAME=VALUE")]
    pub(in crate::cli) words: Vec<String>,
    /// The next task, which is the default
    #[arg(long, conflicts_with = "all")]
    pub(in crate::cli) next: bool,
    /// One after the other, until none is left that can be worked on
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// The chain
    #[arg(long, value_name = "NAME", default_value = "task")]
    pub(in crate::cli) chain: String,
    #[command(flatten)]
    pub(in crate::cli) options: RunOptions,
    /// A limit of each task's run. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(in crate::cli) limit_each: Vec<String>,
    /// Show all that would run, and run nothing
    #[arg(long, conflicts_with = "all")]
    pub(in crate::cli) dry_run: bool,
    /// Begin at this time: 02:00, or 2026-11-23T02:00
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) start_at: Option<String>,
    /// Wait until another run in the same folder is over, instead of refusing
    #[arg(long, alias = "wait-lock", conflicts_with = "dry_run")]
    pub(in crate::cli) wait: bool,
    /// For machines: with --dry-run the plan, else a summary at the end of each run
    #[arg(long, conflicts_with_all = ["output", "events"])]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) told: OutputArgs,
}
