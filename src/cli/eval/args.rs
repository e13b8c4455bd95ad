//! The command line of evaluations as clap reads it. No I/O.

use crate::cli::options::BoundOptions;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(in crate::cli) struct EvalArgs {
    #[command(subcommand)]
    pub(in crate::cli) verb: EvalVerb,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum EvalVerb {
    /// Measure a prompt by the cases of a suite
    Run(EvalRunArgs),
    /// Let an agent rewrite the prompt until it does better, and keep it only if it does
    Improve(EvalImproveArgs),
    /// The results of an evaluation again
    Show {
        /// The run's number; the last evaluation by default
        run: Option<i64>,
        /// Only the prompt that has won, byte for byte
        #[arg(long, conflicts_with = "json")]
        prompt: bool,
        /// For machines
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "one a flag")]
pub(in crate::cli) struct EvalRunArgs {
    /// The suite: a JSON or JSON5 file
    pub(in crate::cli) suite: PathBuf,
    /// Only this case; may be repeated
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) case: Vec<String>,
    /// So many cases at once
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(in crate::cli) jobs: u32,
    /// A folder with prompt.execute.md, prompt.evaluation.md, prompt.improve.md; what is not there is ours
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) prompts: Option<PathBuf>,
    /// Ask again what was answered in an earlier evaluation
    #[arg(long)]
    pub(in crate::cli) fresh: bool,
    #[command(flatten)]
    pub(in crate::cli) bounds: BoundOptions,
    /// Show what would be asked, and ask nothing
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Wait until another run in the same folder is over, instead of refusing
    #[arg(long, conflicts_with = "dry_run")]
    pub(in crate::cli) wait: bool,
    /// For machines
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct EvalImproveArgs {
    #[command(flatten)]
    pub(in crate::cli) run: EvalRunArgs,
    /// This share of the cases decides which prompt wins, and is never told to the improver: 0.3
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(in crate::cli) holdout: f64,
    /// Which cases those are follows from this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) seed: u64,
    /// So many candidates at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(in crate::cli) generations: u32,
    /// The most tokens (words and marks) a candidate may have
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(2..))]
    pub(in crate::cli) max_tokens: u32,
    /// Improve it although it passes every case
    #[arg(long)]
    pub(in crate::cli) always: bool,
    /// Write the prompt that has won into this file, which must not exist
    #[arg(long, value_name = "FILE", conflicts_with = "write")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Write it back into the suite's promptFile
    #[arg(long)]
    pub(in crate::cli) write: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to below 1, such as 0.3".into()),
    }
}
