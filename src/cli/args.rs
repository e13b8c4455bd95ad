//! The command line as clap reads it. No I/O.

use crate::cli::eval::args::EvalArgs;
use crate::cli::init::InitArgs;
use crate::cli::mcp::McpArgs;
use crate::cli::options::{Common, OutputArgs, RunOptions};
use crate::cli::parse::deferred::Deferred;
use crate::cli::runs::args::{DiffArgs, ReportArgs, RunsArgs};
use crate::cli::task::args::{DisputeArgs, NotesArgs, RejectArgs, TaskArgs};
use crate::cli::work::args::WorkArgs;
use crate::unit::BundledPlan;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  forkhestra --chain demo                            show a run, without a model
  forkhestra \"coder:3 -> reviewer:1\" -p \"Fix #12\"    run two agents in sequence
  forkhestra \"(coder -> test):5\" -p \"…\" --dry-run    show what would run
  forkhestra --chain ship FEATURE=login              run a chain, set a variable
  forkhestra init                                    write forge/chains.json

`forkhestra \"CHAIN\" …` is short for `forkhestra run \"CHAIN\" …`.

Exit codes: 0 complete, 1 a step did not complete, 2 refused before anything ran, 3 a human is \
needed, 4 a limit was reached, 129, 130 or 143 interrupted, 141 standard output closed.";

/// The most common options of a run, shown below the list of commands.
const FIRST: &str = "\
Common options of a run (for all options: forkhestra run --help):
  -p, --prompt <TEXT>       Use this prompt for every step; - reads standard input
      --prompt-file <FILE>  Read the prompt from a file
      --dry-run             Show everything that would run, and run nothing
      --backend <NAME>      Use this backend for agents that name none
      --model <NAME>        Use this model for every agent that a backend runs
      --limit <NAME=VALUE>  Limit the whole run: time=2h, cost=5, attempts=50

Examples:
  forkhestra demo                                    show a run, without a model
  forkhestra \"coder:3 -> reviewer:1\" -p \"Fix #12\"    run two agents in sequence
  forkhestra \"(coder -> test):5\" -p - < issue.md     read the prompt from stdin
  forkhestra ship FEATURE=login                      run a chain, set a variable
  forkhestra init                                    write forge/chains.json

`forkhestra \"CHAIN\" …` is short for `forkhestra run \"CHAIN\" …`.

Exit codes: 0 complete, 1 a step did not complete, 2 refused before anything ran, 3 a human is \
needed, 4 a limit was reached, 129, 130 or 143 interrupted, 141 standard output closed.";

const EVAL: &str = "\
Examples:
  forkhestra eval run suite.json5 -j 4        run four cases at once
  forkhestra eval improve suite.json5         rewrite the prompt
  forkhestra eval show --prompt > better.md   print the winning prompt

A suite is a JSON or JSON5 file with a prompt, agents and cases. Answers from \
earlier evaluations are reused; --fresh runs every case again.";

const VERIFY: &str = "\
Exit codes: 0 passed, 1 a command failed, 2 there is no command to run.";

const DIAGNOSE: &str = "\
Exit codes: 0 no error was found, or there is no command to run; 1 the command failed. In a chain, \
the check `diagnose` never stops the run.";

const RESUME: &str = "\
Examples:
  forkhestra resume                     resume the last run that can be resumed
  forkhestra resume --dry-run           show what would happen
  forkhestra resume 12 --limit time=4h  resume with a higher limit, from now on

A run continues at the iteration that was interrupted; steps that had finished do not run again. If \
anything that would run has changed since, it is named, and used only with --accept-changes.";

const DIFF: &str = "\
Examples:
  forkhestra diff                       show what the last run changed
  forkhestra diff 12 --stat             list the files that run 12 changed
  forkhestra diff 12.2.3                show what attempt 2.3 of run 12 changed
  forkhestra diff 12.2.1..2.3           show what changed between them
  forkhestra diff 12 | git apply -R     undo what run 12 changed

Changes come from snapshots that forkhestra takes after each attempt, not from git's index.";

const WORK: &str = "\
The events of the run are printed as lines of JSON, unless standard output is a terminal.

Exit code 75: no unit was waiting, or another worker has it. Exit code 69: the worker failed, for \
example because it cannot reach the hub, and the hub has no result of the unit. Other exit codes are \
those of the run.";

const TELL: &str = "\
Examples:
  forkhestra tell \"use the new API\"    tell the current run here
  forkhestra tell 12 - < notes.md      send the text of a file to run 12

Every attempt that an agent begins after that gets the message in its prompt, until the run ends. The \
agent that is running now does not see it.";

const REPORT: &str = "\
Examples:
  forkhestra report                     write the last run to report.html
  forkhestra report --since 12h         write the runs of 12 hours to one page
  forkhestra report 12 -o run.html      write a run to another file
  forkhestra report --format md -o -    print Markdown to standard output
  forkhestra report --format junit      write checks and verdicts as JUnit XML

The page needs no network and runs no script.";

const USAGE: &str = "forkhestra \"CHAIN\" [OPTIONS] [NAME=VALUE]...
       forkhestra CHAIN-NAME [OPTIONS] [NAME=VALUE]...
       forkhestra COMMAND";

/// Run chains of coding agents unattended
#[derive(Debug, Parser)]
#[command(name = "forkhestra", version, override_usage = USAGE, max_term_width = 100, after_help = FIRST)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Run a chain (the default)
    #[command(after_help = EXAMPLES)]
    Run(Deferred<Box<RunArgs>>),
    /// Continue a run that was interrupted, failed, reached a limit, or is waiting for a decision
    #[command(after_long_help = RESUME)]
    Resume(Deferred<ResumeArgs>),
    /// Manage past runs: list, show, log, restore, events, prune
    Runs(Deferred<RunsArgs>),
    /// Write a report of a run as one self-contained page: what happened, why, what it cost, and every prompt
    #[command(after_long_help = REPORT)]
    Report(Deferred<ReportArgs>),
    /// Show what a run or an attempt changed in the files
    #[command(after_long_help = DIFF)]
    Diff(Deferred<DiffArgs>),
    /// Show what is running, what it is doing, and what is waiting for you
    Status(Deferred<StatusArgs>),
    /// Follow the current run, and exit with its exit code; Ctrl-C detaches
    Attach(Deferred<AttachArgs>),
    /// Stop the current run; `resume` continues it
    Stop(Deferred<StopArgs>),
    /// Send a message to the agents of the current run; each sees it from its next attempt on
    #[command(after_help = TELL, override_usage = "forkhestra tell [OPTIONS] [RUN] <MESSAGE>")]
    Tell(Deferred<TellArgs>),
    /// Manage tasks: add, import, list, show, run, land, bundle, sync, export, approve, reject, skip, reset, delete
    #[command(alias = "tasks")]
    Task(Deferred<TaskArgs>),
    /// Manage disputes, which wait for a human decision: list, show, resolve, delete
    Dispute(Deferred<DisputeArgs>),
    /// Measure a prompt with a suite of cases, and improve it: run, improve, show
    #[command(after_long_help = EVAL)]
    Eval(Deferred<EvalArgs>),
    /// List chains, agents and checks, and where they are defined
    List(Deferred<ListArgs>),
    /// Show a chain of the config
    Show(Deferred<ShowArgs>),
    /// Print the exact prompt of an agent, without starting it
    Render(Deferred<RenderArgs>),
    /// Work on one unit (a task or a verification of a batch) from a hub
    ///
    /// The hub is the git repository .forkhestra/hub.git of a project, through which a batch exchanges work.
    #[command(after_help = WORK)]
    Work(Deferred<WorkArgs>),
    /// Check a config for errors
    Validate(Deferred<ValidateArgs>),
    /// Show which commands build, test and lint this project, as found in its files
    Detect(Deferred<DetectArgs>),
    /// Build and test this project, as the check `verify` does
    #[command(after_help = VERIFY)]
    Verify(Deferred<VerifyArgs>),
    /// Show the first real errors of this project, as the check `diagnose` does
    #[command(after_help = DIAGNOSE)]
    Diagnose(Deferred<DiagnoseArgs>),
    /// Check that this machine can supervise agents, and show the backends and the config that a run would use
    Doctor(Deferred<DoctorArgs>),
    /// Write a commented forge/chains.json with prompts, ready to run (needs a coding-agent CLI, such as claude); or,
    /// with --templates, the built-in templates
    Init(Deferred<InitArgs>),
    /// Explain an error code: what it means, and what to do
    Explain(Deferred<ExplainArgs>),
    /// Generate shell completions, which include the project's chains, agents and tasks
    Completions(Deferred<CompletionsArgs>),
    /// Print the manual page of the program, or of a command
    Man(Deferred<ManArgs>),
    /// Serve the Model Context Protocol (MCP) on standard input and output
    Mcp(Deferred<McpArgs>),
    /// For agents: report that the work is ready to be checked and judged
    #[command(hide = true)]
    Submit(Deferred<NotesArgs>),
    /// For agents that judge: approve the work
    #[command(hide = true)]
    Approve(Deferred<NotesArgs>),
    /// For agents that judge: reject the work, because something has to be fixed
    #[command(hide = true)]
    Reject(Deferred<RejectArgs>),
    /// For agents: report that there is nothing to do
    #[command(hide = true)]
    Skip(Deferred<NotesArgs>),
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The code, as printed above an error: chain/arrow [default: list all codes]
    pub(super) code: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell to generate completions for [default with --install: your shell, as $SHELL says]
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell"], required_unless_present = "install")]
    pub(super) shell: Option<String>,
    /// Write them where the shell looks for completions in your home directory
    #[arg(long)]
    pub(super) install: bool,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// A command, with its subcommand: resume, task add
    #[arg(value_name = "COMMAND", num_args = 0..)]
    pub(super) verb: Vec<String>,
    /// Write every page into this directory, such as ~/.local/share/man/man1
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub(super) out: Option<PathBuf>,
    /// Write every page where man looks for them in your home directory
    #[arg(long, conflicts_with_all = ["verb", "out"])]
    pub(super) install: bool,
}

#[derive(Debug, Args)]
pub(super) struct DetectArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Run only one kind: build, test, lint or syntax
    #[arg(value_parser = kinds(), hide_possible_values = true)]
    pub(super) kind: Option<String>,
    /// How much to run [default: fast]
    #[arg(long, value_parser = ["strict", "fast", "smoke", "yolo"])]
    pub(super) profile: Option<String>,
    /// Advise a person, not an agent: a step of a chain has called this command
    #[arg(long, hide = true)]
    pub(super) as_step: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiagnoseArgs {
    /// What to start with [default: auto]
    #[arg(long, value_parser = ["auto", "build", "test", "lint"])]
    pub(super) kind: Option<String>,
    /// Run even if the same tree was diagnosed before
    #[arg(long)]
    pub(super) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RenderArgs {
    /// The agent's name
    pub(super) agent: String,
    /// Variables, as NAME=value
    #[arg(value_name = "NAME=VALUE")]
    pub(super) words: Vec<String>,
    /// Use this prompt; - reads standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub(super) prompt: Option<String>,
    /// Read the prompt from this file; - reads standard input
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(super) prompt_file: Option<String>,
    /// Render the prompt for this task
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
    /// Show where each piece comes from, and how large it is
    #[arg(long)]
    pub(super) explain: bool,
    /// Print JSON: the pieces and the whole prompt
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunArgs {
    /// A chain, as one quoted argument ("coder:3 -> reviewer"), and variables, as NAME=value
    #[arg(value_name = "CHAIN | NAME=VALUE")]
    pub(super) words: Vec<String>,
    /// The steps of a unit of work, which are never taken for the name of a chain
    #[arg(skip)]
    pub(super) steps: Option<String>,
    /// The plan of a unit of work that another machine has made
    #[arg(skip)]
    pub(super) made: Option<BundledPlan>,
    /// Run this chain of the config
    #[arg(long, value_name = "NAME")]
    pub(super) chain: Option<String>,
    /// Use this prompt for every step; - reads it from standard input, and an empty one means no prompt at all
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub(super) prompt: Option<String>,
    /// Read the prompt for every step from this file; - reads standard input
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(super) prompt_file: Option<String>,
    #[command(flatten)]
    pub(super) options: RunOptions,
    /// Work on this task: its title is the prompt, and its status follows the run
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
    /// Show everything that would run, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Run only if the plan still has this digest (shown by --dry-run)
    #[arg(long, value_name = "HEX")]
    pub(super) digest: Option<String>,
    /// Start at this time: 02:00, or 2026-11-23T02:00
    #[arg(long, value_name = "TIME")]
    pub(super) start_at: Option<String>,
    /// Wait until another run in the same directory has ended, instead of refusing
    #[arg(long, alias = "wait-lock", conflicts_with = "dry_run")]
    pub(super) wait: bool,
    /// Print JSON: the plan with --dry-run, otherwise a summary at the end, as with --output json
    #[arg(long, conflicts_with_all = ["output", "events"])]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) told: OutputArgs,
}

#[derive(Debug, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(super) struct ResumeArgs {
    /// The run's number [default: the last run that can be resumed]
    pub(super) run: Option<i64>,
    /// Show what would happen, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON: what would happen with --dry-run, otherwise a summary at the end, as with --output json
    #[arg(long, conflicts_with_all = ["output", "events"])]
    pub(super) json: bool,
    /// Accept what has changed in the config or a prompt since the run began; also, if a template is edited during
    /// this run, use it from the next attempt on
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Set a limit from now on: time=4h
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) limit: Vec<String>,
    /// Wait until another run in the same directory has ended, instead of refusing
    #[arg(long, alias = "wait-lock", conflicts_with = "dry_run")]
    pub(super) wait: bool,
    /// Allow N more iterations or rounds, if a loop or a group has used up its count
    #[arg(long, value_name = "N", conflicts_with_all = ["approve", "reject"])]
    pub(super) more: Option<std::num::NonZeroU16>,
    /// Accept the work, if the run is waiting for a human decision
    #[arg(long, conflicts_with = "reject")]
    pub(super) approve: bool,
    /// With --approve: the reason, for the record
    #[arg(long, value_name = "TEXT", requires = "approve", default_value = "", hide_default_value = true)]
    #[arg(allow_hyphen_values = true)]
    pub(super) notes: String,
    /// Reject the work with this reason, if the run is waiting for a human decision; a group gets another round
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) reject: Option<String>,
    #[command(flatten)]
    pub(super) told: OutputArgs,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Show all your runs that are in progress on this machine
    #[arg(long)]
    pub(super) all: bool,
    /// Keep the status at the bottom of the terminal, updated every second, with new output above it
    #[arg(long)]
    pub(super) watch: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "watch")]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct AttachArgs {
    /// The run's number [default: the current run here, and those that `task run --all` starts next]
    pub(super) run: Option<i64>,
}

#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// The run's number [default: the current run here]
    pub(super) run: Option<i64>,
}

#[derive(Debug, Args)]
pub(super) struct TellArgs {
    /// The run's number [default: the current run here], and the message; - reads standard input
    #[arg(required = true, num_args = 1..=2, value_names = ["RUN", "MESSAGE"])]
    pub(super) words: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Also start the backends and engines that this project's config names, to get versions and lists of jobs
    #[arg(long = "try")]
    pub(super) tries: bool,
    /// Also test this hub, as `work --hub` takes it, by pushing two conflicting changes, one of which it must refuse
    #[arg(long, value_name = "DIR | URL")]
    pub(super) hub: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The chain's name
    #[arg(value_name = "CHAIN")]
    pub(super) name: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// A config file [default: the config of the project]
    pub(super) file: Option<PathBuf>,
    /// Print JSON: every error with its place
    #[arg(long)]
    pub(super) json: bool,
}

/// The kinds of checks that `verify` takes. Its own name is one of them, but is not offered.
fn kinds() -> [PossibleValue; 5] {
    let hidden = PossibleValue::new("verify").hide(true);
    [hidden, "build".into(), "test".into(), "lint".into(), "syntax".into()]
}
