//! The command line as clap reads it. No I/O.

use crate::cli::eval::args::EvalArgs;
use crate::cli::options::{OutputArgs, RunOptions};
use crate::cli::task::args::{DisputeArgs, NotesArgs, RejectArgs, TaskArgs};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  forkhestra --chain demo                            a demonstration; needs no agent CLI
  forkhestra \"coder:3 -> reviewer:1\" -p \"Fix #12\"    two agents, the first loops up to 3 times
  forkhestra \"(coder -> test):5\" -p \"…\" --dry-run    shows all that would run
  forkhestra --chain ship FEATURE=login              a chain of forge/chains.json, with a variable
  forkhestra init                                    writes a commented forge/chains.json

`forkhestra \"CHAIN\" …` is short for `forkhestra run \"CHAIN\" …`.
Exit codes: 0 complete, 1 a step did not complete, 2 refused before anything ran, 3 a human is
needed, 4 a limit was reached, 129, 130, 143 interrupted, 141 standard output closed.";

/// The options that are typed most, where the verbs are listed.
const FIRST: &str = "\
Options of a run (all of them: forkhestra run --help):
  -p, --prompt <TEXT>       The prompt of every step; - reads standard input
      --prompt-file <FILE>  A file with it
      --dry-run             Show all that would run, and run nothing
      --backend <NAME>      The agent CLI of agents that name none
      --model <NAME>        The model of every agent that an agent CLI runs
      --limit <NAME=VALUE>  A limit of the whole run: time=2h, cost=5, iterations=50

Examples:
  forkhestra demo                                    a demonstration; needs no agent CLI
  forkhestra \"coder:3 -> reviewer:1\" -p \"Fix #12\"    two agents, the first loops up to 3 times
  forkhestra \"(coder -> test):5\" -p - < issue.md      the prompt from standard input
  forkhestra ship FEATURE=login                      a chain of forge/chains.json, with a variable
  forkhestra init                                    writes a commented forge/chains.json

`forkhestra \"CHAIN\" …` is short for `forkhestra run \"CHAIN\" …`.
Exit codes: 0 complete, 1 a step did not complete, 2 refused before anything ran, 3 a human is
needed, 4 a limit was reached, 129, 130, 143 interrupted, 141 standard output closed.";

const EVAL: &str = "\
Examples:
  forkhestra eval run suite.json5 -j 4                         four cases at once
  forkhestra eval improve suite.json5 --holdout 0.3 --write    keeps a rewriting only if cases agree
                                                               that the improver never heard of
  forkhestra eval show --prompt > better.md                    the prompt that has won

A suite is a JSON or JSON5 file: a prompt, agents, cases (docs/evaluation.md). What was answered once is
not asked again: --fresh asks anew.";

const RESUME: &str = "\
Examples:
  forkhestra resume                     the last run that can go on
  forkhestra resume --dry-run           says what would happen
  forkhestra resume 12 --limit time=4h  under a higher limit, from now on

A run goes on at the iteration that was cut off; nothing that had finished is run again. What has
changed since is named, and taken only with --accept-changes.";

const REPORT: &str = "\
Examples:
  forkhestra report                     the last run, as report.html beside its transcripts
  forkhestra report 12 -o run.html      into a file of yours
  forkhestra report --format md -o -    Markdown, to standard output

The page needs no network and runs no script.";

const USAGE: &str = "forkhestra \"CHAIN\" [OPTIONS] [NAME=VALUE]...
       forkhestra NAME [OPTIONS] [NAME=VALUE]...
       forkhestra COMMAND";

/// Runs chains of coding agents that work unattended
#[derive(Debug, Parser)]
#[command(name = "forkhestra", version, override_usage = USAGE, max_term_width = 100, after_help = FIRST)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(super) struct Common {
    /// Work in this folder, exactly: no search for a project above it
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,
    /// Say more: prompts in full, process ids
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Print nothing but failures; agents' output goes to the transcripts only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Trust the config of this project as it is, where your own config says `"trust": "ask"`
    #[arg(long, global = true)]
    pub(super) trust: bool,
    /// Colour: auto (the default), always or never
    #[arg(long, global = true, value_name = "WHEN", value_parser = ["auto", "always", "never"], hide_possible_values = true)]
    pub(super) color: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Run a chain (the default)
    #[command(after_help = EXAMPLES)]
    Run(Box<RunArgs>),
    /// Go on with a run that was cut off, where it was
    #[command(after_long_help = RESUME)]
    Resume(ResumeArgs),
    /// What was run, how it went, and where its words are
    Runs(RunsArgs),
    /// Write a run as one page that stands by itself: what happened, why, what it cost, every prompt
    #[command(after_long_help = REPORT)]
    Report(ReportArgs),
    /// What is to be done, and how far it is: add, list, show, run, approve, reject, skip, reset, delete
    #[command(alias = "tasks")]
    Task(TaskArgs),
    /// What waits for a human: list, show, resolve. For an agent: a human has to decide
    Dispute(DisputeArgs),
    /// Measure a prompt by a suite of cases, and improve it: run, improve, show
    #[command(after_long_help = EVAL)]
    Eval(EvalArgs),
    /// List chains, agents and checks, and where they come from
    List(ListArgs),
    /// Show a chain of the config
    Show(ShowArgs),
    /// Print the exact prompt of an agent; starts nothing
    Render(RenderArgs),
    /// Check a config, all of it
    Validate(ValidateArgs),
    /// Say what builds, tests and lints this project, as its files tell
    Detect(DetectArgs),
    /// Build and test this project as the check `verify` does
    Verify(VerifyArgs),
    /// Show the first real errors of this project, as the check `diagnose` does
    Diagnose(DiagnoseArgs),
    /// Try out whether this machine keeps our promises, and show what a run would find
    Doctor(DoctorArgs),
    /// Write a commented forge/chains.json and prompts that run at once; or templates to begin with
    Init(InitArgs),
    /// Explain the code of an error: what it means, and what to do
    Explain(ExplainArgs),
    /// Print what a shell reads to complete our command lines, with the names of this project
    Completions(CompletionsArgs),
    /// Print the manual page of the program, or of a verb
    Man(ManArgs),
    /// For an agent: the work is ready to be checked and judged
    Submit(NotesArgs),
    /// For an agent that judges: what was asked is done
    Approve(NotesArgs),
    /// For an agent that judges: something has to be mended
    Reject(RejectArgs),
    /// For an agent: there is nothing to do
    Skip(NotesArgs),
}

#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The run's number; the last by default
    pub(super) run: Option<i64>,
    /// The file; - is standard output. By default report.html beside the run's transcripts
    #[arg(short, long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// html (the default) or md
    #[arg(long, value_name = "FORMAT", default_value = "html", value_parser = ["html", "md"])]
    pub(super) format: String,
    /// For machines: the run and the file
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The code, as it stands above an error: chain/arrow; without one all of them
    pub(super) code: Option<String>,
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell"])]
    pub(super) shell: String,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// A verb: run, resume, eval
    pub(super) verb: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct DetectArgs {
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// One kind alone: build, test, lint or syntax
    #[arg(value_parser = ["verify", "build", "test", "lint", "syntax"], hide_possible_values = true)]
    pub(super) kind: Option<String>,
    /// How much: strict, fast (the default), smoke or yolo
    #[arg(long, value_parser = ["strict", "fast", "smoke", "yolo"])]
    pub(super) profile: Option<String>,
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DiagnoseArgs {
    /// What to begin with: auto (the default), build, test or lint
    #[arg(long, value_parser = ["auto", "build", "test", "lint"])]
    pub(super) kind: Option<String>,
    /// Run it although it was run on this very tree before
    #[arg(long)]
    pub(super) force: bool,
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Write our templates and skills for editing instead, beside what is there
    #[arg(long)]
    pub(super) templates: bool,
    /// Take over templates and skills of another tool, such as .foreman
    #[arg(long, value_name = "DIR", conflicts_with = "templates")]
    pub(super) from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RenderArgs {
    /// The agent
    pub(super) agent: String,
    /// Variables, NAME=value
    #[arg(value_name = "NAME=VALUE")]
    pub(super) words: Vec<String>,
    /// The prompt; - reads standard input
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub(super) prompt: Option<String>,
    /// A file with the prompt; - reads standard input
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(super) prompt_file: Option<String>,
    /// The task that it is about
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
    /// Say where every piece comes from, and how large it is
    #[arg(long)]
    pub(super) explain: bool,
    /// For machines: the pieces and the whole
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunArgs {
    /// A chain, as one quoted word ("coder:3 -> reviewer"), and variables, NAME=value
    #[arg(value_name = "CHAIN | NAME=VALUE")]
    pub(super) words: Vec<String>,
    /// A chain of the config
    #[arg(long, value_name = "NAME")]
    pub(super) chain: Option<String>,
    /// The prompt of every step; - reads standard input, empty: none
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "prompt_file")]
    pub(super) prompt: Option<String>,
    /// A file with the prompt of every step; - reads standard input
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    pub(super) prompt_file: Option<String>,
    #[command(flatten)]
    pub(super) options: RunOptions,
    /// The task that it is about: its title is the prompt, its status follows the run
    #[arg(long, value_name = "ID")]
    pub(super) task: Option<String>,
    /// Show all that would run, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Run exactly what a dry run showed, by its digest, or nothing
    #[arg(long, value_name = "HEX")]
    pub(super) digest: Option<String>,
    /// Begin at this time: 02:00, or 2026-11-23T02:00
    #[arg(long, value_name = "TIME")]
    pub(super) start_at: Option<String>,
    /// Wait until another run in the same folder is over, instead of refusing
    #[arg(long, alias = "wait-lock", conflicts_with = "dry_run")]
    pub(super) wait: bool,
    /// For machines: with --dry-run the plan, else a summary at the end, as --output json
    #[arg(long, conflicts_with_all = ["output", "events"])]
    pub(super) json: bool,
    /// In a queue of tasks: the backends whose login worked in it before.
    #[arg(skip)]
    pub(super) queue: Option<Vec<String>>,
    #[command(flatten)]
    pub(super) told: OutputArgs,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one a flag")]
pub(super) struct ResumeArgs {
    /// The run's number; the last that can go on by default
    pub(super) run: Option<i64>,
    /// Say what would happen, and run nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// For machines: with --dry-run what would happen, else a summary at the end, as --output json
    #[arg(long, conflicts_with_all = ["output", "events"])]
    pub(super) json: bool,
    /// Go on although the config or a prompt has changed since, and read templates that are edited while it works
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// A limit that holds from now on: time=4h
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) limit: Vec<String>,
    /// Wait until another run in the same folder is over, instead of refusing
    #[arg(long, alias = "wait-lock", conflicts_with = "dry_run")]
    pub(super) wait: bool,
    /// Where a loop or a group has used up its count: so many more iterations or rounds
    #[arg(long, value_name = "N", conflicts_with_all = ["approve", "reject"])]
    pub(super) more: Option<std::num::NonZeroU16>,
    /// Where a person is waited for: the work stands
    #[arg(long, conflicts_with = "reject")]
    pub(super) approve: bool,
    /// With --approve: why, for the record
    #[arg(long, value_name = "TEXT", requires = "approve", default_value = "", allow_hyphen_values = true)]
    pub(super) notes: String,
    /// Where a person is waited for: the work goes on, with these words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) reject: Option<String>,
    #[command(flatten)]
    pub(super) told: OutputArgs,
}

#[derive(Debug, Args)]
pub(super) struct RunsArgs {
    #[command(subcommand)]
    pub(super) verb: Option<RunsVerb>,
    /// For machines
    #[arg(long, global = true)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum RunsVerb {
    /// Every run, the last one first; the same as `runs` alone
    #[command(alias = "ls")]
    List,
    /// One run: every step, iteration and round, how it ended, where its log is
    Show {
        /// The run's number; the last by default
        run: Option<i64>,
    },
    /// What an agent printed, or was told
    Log(LogArgs),
    /// Every event, one JSON object a line
    Events {
        /// The run's number; the last by default
        run: Option<i64>,
    },
    /// The run again, as it looked
    Replay {
        /// The run's number; the last by default
        run: Option<i64>,
    },
    /// Forget old runs and their transcripts
    Prune(PruneArgs),
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one a flag")]
pub(super) struct LogArgs {
    /// The run's number; the last by default
    pub(super) run: Option<i64>,
    /// A step of it, or STEP.ITERATION; the last attempt by default
    #[arg(value_name = "STEP[.ITERATION]")]
    pub(super) step: Option<String>,
    /// Its standard error
    #[arg(long, conflicts_with_all = ["prompt", "last"])]
    pub(super) stderr: bool,
    /// The prompt, byte for byte as it was delivered
    #[arg(long, conflicts_with = "last")]
    pub(super) prompt: bool,
    /// The final message of an agent CLI
    #[arg(long = "final")]
    pub(super) last: bool,
    /// Follow it until it is over
    #[arg(short, long)]
    pub(super) follow: bool,
}

#[derive(Debug, Args)]
pub(super) struct PruneArgs {
    /// Runs that ended longer ago than this: 30d, 12h
    #[arg(long, value_name = "AGE")]
    pub(super) older_than: String,
    /// Do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Also start the programs of agent CLIs that this project's config names, to ask for their versions
    #[arg(long = "try")]
    pub(super) tries: bool,
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The chain's name
    #[arg(value_name = "CHAIN")]
    pub(super) name: String,
    /// For machines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// A config file; the project's own by default
    pub(super) file: Option<PathBuf>,
    /// For machines: every error with its place
    #[arg(long)]
    pub(super) json: bool,
}
