//! The command line of evaluations as clap reads it. No I/O.

use crate::cli::options::BoundOptions;
use crate::engine::{EvalBudget, USUAL_LEVEL};
use crate::eval::MOST_REPETITIONS;
use clap::{Args, Subcommand};
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct EvalArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: EvalVerb,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum EvalVerb {
    /// Measure a prompt with the cases of a suite
    Run(EvalMeasureArgs),
    /// Let an agent try to improve the prompt; keep the rewrite only if it scores better
    Improve(EvalImproveArgs),
    /// Show several evaluations of the same cases side by side
    Compare {
        /// The numbers of the runs
        #[arg(required = true, num_args = 2.., value_name = "RUN")]
        runs: Vec<i64>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the results of an evaluation again
    Show {
        /// The run's number [default: the last evaluation]
        run: Option<i64>,
        /// Print only the winning prompt, byte for byte
        #[arg(long, conflicts_with = "json")]
        prompt: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one per flag")]
pub(in crate::cli) struct EvalRunArgs {
    /// The suite: a JSON or JSON5 file
    pub(in crate::cli) suite: PathBuf,
    /// Run only this case. May be repeated
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) case: Vec<String>,
    /// Run only the cases with this tag. May be repeated
    #[arg(long, value_name = "TAG")]
    pub(in crate::cli) only: Vec<String>,
    /// Run N cases at once
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=crate::cli::task::args::MOST_AT_ONCE))]
    pub(in crate::cli) jobs: u32,
    /// Run every case N times, because a model may answer differently each time [default: as the suite says, else 1]
    #[arg(long, value_name = "N", value_parser = times)]
    pub(in crate::cli) repeat: Option<NonZeroU32>,
    /// A directory with any of prompt.execute.md, prompt.evaluation.md, prompt.improve.md, prompt.compare.md; the
    /// built-in file is used for each that is missing
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) prompts: Option<PathBuf>,
    /// Run every case again, instead of reusing answers from earlier evaluations
    #[arg(long)]
    pub(in crate::cli) fresh: bool,
    #[command(flatten)]
    pub(in crate::cli) bounds: BoundOptions,
    /// Write every event as a line of JSON: `ndjson` prints to standard output, `ndjson=FILE` appends to a file
    #[arg(long, value_name = "ndjson[=FILE]", conflicts_with = "dry_run")]
    pub(in crate::cli) events: Option<String>,
    /// Show what would run, and run nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Wait until another run in the same directory has ended, instead of refusing
    #[arg(long, conflicts_with = "dry_run")]
    pub(in crate::cli) wait: bool,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct EvalMeasureArgs {
    #[command(flatten)]
    pub(in crate::cli) run: EvalRunArgs,
    /// Succeed if this share of the results passes, such as 0.9 [default: all of them, or no fewer than --baseline]
    #[arg(long, value_name = "SHARE", value_parser = pass_share)]
    pub(in crate::cli) min_pass: Option<f64>,
    /// Compare with this earlier evaluation of the suite, and fail if a case is worse beyond chance
    #[arg(long, value_name = "RUN")]
    pub(in crate::cli) baseline: Option<i64>,
    #[command(flatten)]
    pub(in crate::cli) elsewhere: ElsewhereArgs,
}

/// Where the cases of an evaluation are asked.
#[derive(Debug, Args)]
pub(in crate::cli) struct ElsewhereArgs {
    /// Run the cases on other machines, with this engine: `slurm`, `workers`, or one of `engines` in the config
    #[arg(long, value_name = "ENGINE")]
    pub(in crate::cli) on: Option<String>,
    /// With --on: give each worker N cases at a time; --jobs says how many workers there are
    #[arg(long, value_name = "N", default_value_t = 50, requires = "on")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) slice: u32,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct EvalImproveArgs {
    #[command(flatten)]
    pub(in crate::cli) run: EvalRunArgs,
    /// Hold out this share of the cases from the improver, such as 0.3, and let them decide which prompt wins
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(in crate::cli) holdout: f64,
    /// Choose the held-out cases with this random seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) seed: u64,
    /// Try at most N candidates (rewritten prompts)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(in crate::cli) generations: u32,
    /// Try a candidate on N cases first, and on the others only if it does better there than the prompt that it comes
    /// from
    #[arg(long, value_name = "N")]
    pub(in crate::cli) minibatch: Option<NonZeroU32>,
    /// Propose no further candidate if it could take more than this in all: `attempts=200` or `cost=5` (US dollars).
    /// May be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = budget)]
    pub(in crate::cli) budget: Vec<EvalBudget>,
    /// Allow a candidate at most N tokens (words and punctuation marks)
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..))]
    pub(in crate::cli) max_tokens: u32,
    /// Count a prompt as better only if chance alone would find one as good with at most this probability
    #[arg(long, value_name = "P", default_value_t = USUAL_LEVEL, value_parser = level)]
    pub(in crate::cli) level: f64,
    /// Improve the prompt even if it passes every case
    #[arg(long)]
    pub(in crate::cli) always: bool,
    /// Write the winning prompt to this file, which must not exist
    #[arg(long, value_name = "FILE", conflicts_with = "write")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Write the winning prompt back to the suite's promptFile
    #[arg(long)]
    pub(in crate::cli) write: bool,
}

impl EvalImproveArgs {
    /// Everything that `--budget` says together.
    pub(in crate::cli) fn budget(&self) -> EvalBudget {
        self.budget.iter().fold(EvalBudget::default(), |all, one| EvalBudget {
            attempts: one.attempts.or(all.attempts),
            cost_usd: one.cost_usd.or(all.cost_usd),
        })
    }
}

fn budget(text: &str) -> Result<EvalBudget, String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let cost = value.parse::<f64>().ok().filter(|cost| cost.is_finite() && *cost > 0.0);
    let budget = match name {
        "attempts" => EvalBudget { attempts: value.parse().ok().filter(|most| *most > 0), cost_usd: None },
        "cost" => EvalBudget { attempts: None, cost_usd: cost },
        _ => EvalBudget::default(),
    };
    if budget == EvalBudget::default() { Err("attempts=N or cost=N, above 0".into()) } else { Ok(budget) }
}

fn times(text: &str) -> Result<NonZeroU32, String> {
    let times = text.parse::<NonZeroU32>().ok().filter(|times| times.get() <= MOST_REPETITIONS);
    times.ok_or_else(|| format!("a number from 1 to {MOST_REPETITIONS}"))
}

fn pass_share(text: &str) -> Result<f64, String> {
    within(text, |share| (0.0..=1.0).contains(&share), "a share from 0 to 1, such as 0.9")
}

fn level(text: &str) -> Result<f64, String> {
    within(text, |level| (0.001..1.0).contains(&level), "a probability of at least 0.001 and below 1, such as 0.05")
}

fn share(text: &str) -> Result<f64, String> {
    within(text, |share| (0.0..1.0).contains(&share), "a share of at least 0 and below 1, such as 0.3")
}

fn within(text: &str, holds: fn(f64) -> bool, what: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|number| holds(*number)).ok_or_else(|| what.to_string())
}
