//! Options that several verbs share, what a resume remembers of them, and nothing else: a new option of runs begins here.

use crate::plan::Overrides;
use clap::Args;

/// How long, how much and how freely agents may work.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct BoundOptions {
    /// The longest any iteration may take: 90s, 10m, 1h30m
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// The longest any agent may print nothing and use no CPU time; 15m by default
    #[arg(long, value_name = "TIME")]
    pub(super) idle_timeout: Option<String>,
    /// What workers may do unasked: read, edit (the default) or full; judges read
    #[arg(long, value_name = "LEVEL", value_parser = ["read", "edit", "full"])]
    pub(super) permissions: Option<String>,
    /// A limit of the whole run, or of all tasks together: time=2h, cost=5 (US dollars), tokens=1000000, iterations=50, wait=6h,
    /// stalledAfter=3, grace=10s. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) limit: Vec<String>,
}

/// How a chain is run: the options of `run` and of `task run`.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunOptions {
    #[command(flatten)]
    pub(super) bounds: BoundOptions,
    /// The agent CLI of agents that name none: claude, codex, …
    #[arg(long, value_name = "NAME")]
    pub(super) backend: Option<String>,
    /// The model of every agent that an agent CLI runs
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// How much is verified: strict, fast (the default), smoke or yolo
    #[arg(long, alias = "verify", value_parser = ["strict", "fast", "smoke", "yolo"])]
    pub(super) profile: Option<String>,
    /// How large the work is: tiny, normal or large; told from the words of the prompt or the task by default
    #[arg(long, value_parser = ["tiny", "normal", "large"])]
    pub(super) scope: Option<String>,
    /// The commit from which changes are shown to a judge; the one that is checked out by default
    #[arg(long, value_name = "COMMIT")]
    pub(super) base: Option<String>,
    /// Go on although an agent of an earlier run has changed the config or a template, and read templates that are edited while it works
    #[arg(long)]
    pub(super) accept_changes: bool,
}

/// What machines are told of a run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Every event as a line of JSON: `ndjson` on standard output, `ndjson=FILE` at the end of a file
    #[arg(long, value_name = "ndjson[=FILE]", conflicts_with = "dry_run")]
    pub(super) events: Option<String>,
    /// What standard output is for: text (agents' output, the default) or json (a summary at the end)
    #[arg(long, visible_alias = "output-format", value_name = "FORM", value_parser = ["text", "json"], conflicts_with = "dry_run")]
    pub(super) output: Option<String>,
    /// Begin each line of an agent with its name
    #[arg(long)]
    pub(super) prefix: bool,
}

impl OutputArgs {
    /// The same, and with `--json` a summary.
    pub(super) fn with_json(&self, json: bool) -> Self {
        let output = if json { Some("json".into()) } else { self.output.clone() };
        Self { output, ..self.clone() }
    }
}

impl BoundOptions {
    /// What a resume has to know of them.
    pub(super) fn overrides(&self) -> Overrides {
        let Self { timeout, idle_timeout, permissions, limit } = self.clone();
        Overrides { timeout, idle_timeout, permissions, limits: limit, ..Overrides::default() }
    }
}

impl RunOptions {
    /// What a resume has to know of them. Whether changes are accepted is asked anew.
    pub(super) fn overrides(&self) -> Overrides {
        let Self { bounds, backend, model, profile, scope, base, accept_changes: _ } = self.clone();
        Overrides { backend, model, profile, scope, base, ..bounds.overrides() }
    }
}
