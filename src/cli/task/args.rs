//! The command line of tasks, disputes and verdicts as clap reads it. No I/O.

use crate::cli::options::{OutputArgs, RunOptions};
use crate::cli::work::args::BundleArgs;
use clap::{ArgGroup, Args, Subcommand};

/// The notes of an agent about its work.
#[derive(Debug, Args)]
pub(in crate::cli) struct NotesArgs {
    /// The reason, in a few words
    #[arg(long, alias = "reason", value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) notes: Option<String>,
}

/// The notes of a rejection, which are required.
#[derive(Debug, Args)]
pub(in crate::cli) struct RejectArgs {
    /// What has to be fixed, one item per finding: `- FILE:LINE: what happens`. Required
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, default_value = "", hide_default_value = true)]
    pub(in crate::cli) notes: String,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct DisputeArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: Option<DisputeVerb>,
    /// For agents: why a human has to decide
    #[arg(long, alias = "notes", value_name = "TEXT", allow_hyphen_values = true)]
    pub(in crate::cli) reason: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum DisputeVerb {
    /// List all disputes
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one dispute in full
    Show {
        /// The dispute's number
        id: i64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Resolve a dispute: for the coder (the work is accepted), the reviewer (the work continues), or as your notes say
    Resolve {
        /// The dispute's number
        id: i64,
        /// In whose favor to decide
        #[arg(value_parser = ["coder", "reviewer", "custom"])]
        decision: String,
        /// The reason, for the agents that continue; `custom` requires it
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
        notes: String,
    },
    /// Delete a dispute; its task gets back the status that it had before
    Delete {
        /// The dispute's number
        id: i64,
    },
    /// For agents: the same as `dispute --reason`
    #[command(hide = true)]
    Create {
        /// The task's ID
        id: String,
        /// Why a human has to decide
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        reason: String,
        /// The agent's own role, which is already known
        #[arg(long = "type", value_parser = ["coder", "reviewer"])]
        kind: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: TaskVerb,
}

/// What the jobs of an exported file run on.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(in crate::cli) enum ExportTarget {
    /// A workflow of GitHub Actions
    Github,
    /// A job of GitLab CI/CD
    Gitlab,
    /// An Indexed Job of Kubernetes
    Kubernetes,
    /// A job array of Slurm
    Slurm,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    /// The system that starts the jobs
    pub(in crate::cli) target: ExportTarget,
    /// The hub (the git repository .forkhestra/hub.git of this project), as the jobs reach it [default for slurm: its
    /// path]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) hub: Option<String>,
    /// The number of jobs
    #[arg(short, long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) jobs: u32,
    /// The container image of the jobs; Kubernetes needs one, Slurm takes none [default: none]
    #[arg(long, value_name = "IMAGE")]
    pub(in crate::cli) image: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TaskVerb {
    /// Add a task
    #[command(aliases = ["create", "new"])]
    Add(TaskAddArgs),
    /// Add tasks from lines of JSON: title, and optionally spec, tests, after, id
    Import(TaskImportArgs),
    /// List all tasks and their status
    #[command(alias = "ls")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        shared: SharedArgs,
    },
    /// Show one task: what happened to it, and what it waits for
    Show {
        /// The task's ID
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        shared: SharedArgs,
    },
    /// Work on tasks with the chain `task`, or another one
    #[command(aliases = ["start", "work"])]
    Run(Box<TaskRunArgs>),
    /// Advance your branch to the tasks that batches have verified and landed in the hub
    Land(TaskLandArgs),
    /// Write a unit (a task or a verification of a batch) to a file, for a machine that does not reach the hub
    Bundle(BundleArgs),
    /// Bring the result of a unit back into the hub, from a file that `forkhestra work --bundle` wrote
    Sync {
        /// The file
        #[arg(value_name = "FILE")]
        file: std::path::PathBuf,
    },
    /// Print a job file for a CI system or a cluster; its jobs do the work of `task run --on workers`
    Export(ExportArgs),
    /// Approve a task yourself: it is done
    Approve(TaskDecideArgs),
    /// Reject a task yourself: it needs more work
    Reject(TaskDecideArgs),
    /// Skip a task
    Skip(TaskDecideArgs),
    /// Set a task back to pending, and forget its rejections
    Reset(TaskDecideArgs),
    /// Delete a task and everything known about it, except its runs
    #[command(aliases = ["rm", "remove"])]
    Delete {
        /// The task's ID
        id: String,
    },
    /// For agents: the same as `submit`
    #[command(hide = true)]
    Update {
        /// The task's ID
        id: String,
        /// The new status
        #[arg(long, value_parser = ["review"])]
        status: String,
    },
}

/// The backend of each try at a task; `None` for that of each agent.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Tries(pub(in crate::cli) Vec<Option<String>>);

/// The most tries at one task.
const MOST_TRIES: usize = 9;

/// Parses `--tries`: a number, or the names of backends.
fn tries(text: &str) -> Result<Tries, String> {
    let tries: Vec<Option<String>> = match text.parse::<usize>() {
        Ok(count) => vec![None; count.min(MOST_TRIES + 1)],
        Err(_) => text.split(',').map(|name| Some(name.trim().to_string())).collect(),
    };
    let lacks_name = tries.iter().flatten().any(String::is_empty);
    if !lacks_name && (2..=MOST_TRIES).contains(&tries.len()) {
        Ok(Tries(tries))
    } else {
        Err(format!("a number from 2 to {MOST_TRIES}, or 2 to {MOST_TRIES} backends: claude,codex"))
    }
}

/// Whose tasks a command is about.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct SharedArgs {
    /// Use the tasks that several people share: the hub is a URL or a path of a git repository, or one of this
    /// repository's remotes
    #[arg(long, value_name = "HUB")]
    pub(in crate::cli) hub: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskLandArgs {
    /// Advance this branch to the tasks that have landed; without it, show them and the command that fetches them
    #[arg(long, value_name = "BRANCH")]
    pub(in crate::cli) into: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskAddArgs {
    /// What has to be done, in one line
    pub(in crate::cli) title: String,
    /// The file with the full specification
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) spec: Option<String>,
    /// The command that shows that the task is done; `verify` runs it, too
    #[arg(long, value_name = "COMMAND")]
    pub(in crate::cli) tests: Option<String>,
    /// A task that must be completed first. May be repeated
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) after: Vec<String>,
    /// The task's ID [default: the next free number]
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) id: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) shared: SharedArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskImportArgs {
    /// A file, or - for standard input, with one JSON object per line: title, and optionally spec, tests, after, id.
    /// A file that ends in .md is a task list of spec-kit
    #[arg(value_name = "FILE")]
    pub(in crate::cli) file: String,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) shared: SharedArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskDecideArgs {
    /// The task's ID
    pub(in crate::cli) id: String,
    /// The reason
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub(in crate::cli) notes: String,
    /// The model that judged, as other tools pass it; ignored
    #[arg(long, hide = true)]
    pub(in crate::cli) model: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) shared: SharedArgs,
}

impl TaskVerb {
    /// The hub whose tasks the command is about; `None` for those of the project.
    pub(in crate::cli) fn hub(&self) -> Option<&str> {
        let shared = match self {
            Self::Add(args) => &args.shared,
            Self::Import(args) => &args.shared,
            Self::List { shared, .. } | Self::Show { shared, .. } => shared,
            Self::Approve(args) | Self::Reject(args) | Self::Skip(args) | Self::Reset(args) => &args.shared,
            _ => return None,
        };
        shared.hub.as_deref()
    }
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("batch").args(["jobs", "on"]).multiple(true)))]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(in crate::cli) struct TaskRunArgs {
    /// A task, and variables, as NAME=value [default: the next task]. With --jobs: any number of tasks [default: all]
    #[arg(value_name = "ID | NAME=VALUE")]
    pub(in crate::cli) words: Vec<String>,
    /// Work on the next task (the default)
    #[arg(long, conflicts_with = "all")]
    pub(in crate::cli) next: bool,
    /// Work on tasks one after another, until none can be worked on
    #[arg(long)]
    pub(in crate::cli) all: bool,
    /// Work on up to N tasks at once, each in a workspace of its own, and land each result once it is verified
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_AT_ONCE))]
    #[arg(conflicts_with_all = ["all", "next"])]
    pub(in crate::cli) jobs: Option<u32>,
    /// Run the tasks on other machines, with this engine: `slurm`, `temporal`, `workers`, or one of the config
    #[arg(long, value_name = "ENGINE", conflicts_with_all = ["all", "next"])]
    pub(in crate::cli) on: Option<String>,
    /// With --jobs: work on the tasks of this hub, which several people share, and land them there. One batch at a
    /// time does this, wherever it runs
    #[arg(long, value_name = "HUB", requires = "batch")]
    pub(in crate::cli) hub: Option<String>,
    /// With --jobs: work on each task N times, or once with each of these backends. The chain's judge chooses a result
    #[arg(long, value_name = "N | BACKEND,…", requires = "batch", value_parser = tries)]
    pub(in crate::cli) tries: Option<Tries>,
    /// With --jobs: include the uncommitted changes of the working tree in the workspaces
    #[arg(long, requires = "batch")]
    pub(in crate::cli) with_changes: bool,
    /// With --jobs: land results without verifying them
    #[arg(long, requires = "batch")]
    pub(in crate::cli) unverified: bool,
    /// The chain to run
    #[arg(long, value_name = "NAME", default_value = "task")]
    pub(in crate::cli) chain: String,
    #[command(flatten)]
    pub(in crate::cli) options: RunOptions,
    /// Limit the run of each task, where --limit limits all tasks together. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(in crate::cli) limit_each: Vec<String>,
    /// Show everything that would run, and run nothing
    #[arg(long, conflicts_with = "all")]
    pub(in crate::cli) dry_run: bool,
    /// Start at this time: 02:00, or 2026-11-23T02:00
    #[arg(long, value_name = "TIME")]
    pub(in crate::cli) start_at: Option<String>,
    /// Wait until another run in the same directory has ended, instead of refusing
    #[arg(long, alias = "wait-lock", conflicts_with = "dry_run")]
    pub(in crate::cli) wait: bool,
    /// Print JSON: the plan with --dry-run, otherwise a summary at the end of each run
    #[arg(long, conflicts_with_all = ["output", "events"])]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) told: OutputArgs,
}

/// The most units that are worked on at once. On this machine, each has a process.
pub(in crate::cli) const MOST_AT_ONCE: i64 = 1000;
/// How many units `--on` works on at once without `--jobs`.
const MOST_JOBS: u32 = 64;

impl TaskRunArgs {
    /// How many units are worked on at once; `None` if there are no workspaces.
    pub(in crate::cli) fn lanes(&self) -> Option<u32> {
        self.jobs.or(self.on.is_some().then_some(MOST_JOBS))
    }
}
