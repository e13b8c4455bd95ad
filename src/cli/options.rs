//! Options that several commands share, and which of them a resume restores. A new option of runs starts here.

use crate::context::TreeOrigin;
use crate::plan::Overrides;
use crate::report::Keeper;
use clap::Args;
use std::path::PathBuf;

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Common {
    /// Work in exactly this directory, without searching for a project above it
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Show more: prompts in full, process ids
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Print only failures; agents' output goes to the transcripts only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Trust this project's config as it is now; needed only if ~/.config/forkhestra/chains.json sets
    /// `"trust": "ask"`
    #[arg(long, global = true)]
    pub(super) trust: bool,
    /// Use color: auto, always or never [default: auto]
    #[arg(long, global = true, value_name = "WHEN", value_parser = ["auto", "always", "never"], hide_possible_values = true)]
    pub(super) color: Option<String>,
    /// The program and the arguments that prepare a workspace, of `work`
    #[arg(skip)]
    pub(super) setup: Vec<String>,
    /// The judge that chooses one of several tries, of `work`
    #[arg(skip)]
    pub(super) chooser: Option<String>,
    /// Where the objects of the workspace are, of `work`
    #[arg(skip)]
    pub(super) origin: Option<TreeOrigin>,
    /// What keeps the run in the hub, of `work`
    #[arg(skip)]
    pub(super) keeper: Option<Keeper>,
}

/// Options that bound the work of agents: time, limits and permissions.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct BoundOptions {
    /// Stop an attempt that takes longer than this: 90s, 10m, 1h30m [default: 2h; less for built-in checks]
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<String>,
    /// Stop an agent that prints nothing and uses no CPU time for this long [default: 15m]
    #[arg(long, value_name = "DURATION")]
    pub(super) idle_timeout: Option<String>,
    /// What workers (agents that do not judge) may do without asking; judges may read and run checks
    /// [default: edit; in evaluations: read]
    #[arg(long, value_name = "LEVEL", value_parser = ["read", "edit", "full"])]
    pub(super) permissions: Option<String>,
    /// Limit the whole run: time=2h, cost=5 (US dollars), tokens=1000000, attempts=50, wait=6h, stalledAfter=3,
    /// rejections=15, grace=10s. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) limit: Vec<String>,
}

/// The options of both `run` and `task run`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunOptions {
    #[command(flatten)]
    pub(super) bounds: BoundOptions,
    /// Use this backend for agents that name none: claude, codex, …
    #[arg(long, value_name = "NAME")]
    pub(super) backend: Option<String>,
    /// Use this model for every agent that a backend runs
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// How much `verify` runs, from yolo and smoke (least) to strict (most); if given explicitly, also limits how many
    /// commands and model turns a worker may use [default: fast, without these limits]
    #[arg(long, alias = "verify", value_parser = ["strict", "fast", "smoke", "yolo"])]
    pub(super) profile: Option<String>,
    /// How large the work is; for tiny work `diagnose` is skipped [default: judged from the text of the prompt or the
    /// task]
    #[arg(long, value_parser = ["tiny", "normal", "large"])]
    pub(super) scope: Option<String>,
    /// Show a judge the changes since this commit [default: since the work began; without a worker, since HEAD]
    #[arg(long, value_name = "COMMIT")]
    pub(super) base: Option<String>,
    /// Accept what an agent of an earlier run changed in the config or a template; also, if a template is edited
    /// during this run, use it from the next attempt on
    #[arg(long)]
    pub(super) accept_changes: bool,
}

/// What a run prints for other programs.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Run in the background, detached from the terminal: print the run's number, and return
    #[arg(long, conflicts_with_all = ["dry_run", "json", "output"])]
    pub(super) detach: bool,
    /// Write every event as a line of JSON: `ndjson` prints to standard output, `ndjson=FILE` appends to a file
    #[arg(long, value_name = "ndjson[=FILE]", conflicts_with = "dry_run")]
    pub(super) events: Option<String>,
    /// What to print on standard output: agents' output (text), or a summary at the end (json) [default: text]
    #[arg(long, visible_alias = "output-format", value_name = "FORMAT", value_parser = ["text", "json"], conflicts_with = "dry_run")]
    pub(super) output: Option<String>,
    /// Begin each line of an agent's output with its name
    #[arg(long)]
    pub(super) prefix: bool,
}

impl OutputArgs {
    /// Returns the same options, with a JSON summary if `json` is set.
    pub(super) fn with_json(&self, json: bool) -> Self {
        let output = if json { Some("json".into()) } else { self.output.clone() };
        Self { output, ..self.clone() }
    }
}

impl BoundOptions {
    /// Returns the options that a resume restores.
    pub(super) fn overrides(&self) -> Overrides {
        let Self { timeout, idle_timeout, permissions, limit } = self.clone();
        Overrides { timeout, idle_timeout, permissions, limits: limit, ..Overrides::default() }
    }
}

impl RunOptions {
    /// Returns the options that a resume restores. `--accept-changes` is not one of them.
    pub(super) fn overrides(&self) -> Overrides {
        let Self { bounds, backend, model, profile, scope, base, accept_changes: _ } = self.clone();
        Overrides { backend, model, profile, scope, base, ..bounds.overrides() }
    }
}

/// The options of a run that restores these.
impl From<Overrides> for RunOptions {
    fn from(overrides: Overrides) -> Self {
        let Overrides { timeout, permissions, backend, model, idle_timeout, limits, profile, scope, base } = overrides;
        let bounds = BoundOptions { timeout, idle_timeout, permissions, limit: limits };
        Self { bounds, backend, model, profile, scope, base, accept_changes: false }
    }
}
