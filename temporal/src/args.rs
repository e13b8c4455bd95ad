//! The command line. No I/O.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// How many beats must fit into the lease of a unit, so that a worker notices in time that it is alone.
pub(crate) const BEATS: u32 = 4;

/// A team's queue of units, on Temporal.
#[derive(Debug, Parser)]
#[command(name = "forkhestra-temporal", version, about = "Workers and a queue of units of forkhestra, on Temporal")]
#[command(after_help = "The server is the one that Temporal's own environment variables and config file name \
    (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_PROFILE) [default: localhost:7233].")]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Work on the units in the queue, until a signal ends it
    Worker(WorkerArgs),
    /// Put units into the queue
    Submit(SubmitArgs),
    /// Print the units of this project's hub that the queue has, one per line
    List(ListArgs),
    /// End a unit: its agents are stopped, and its work so far is kept
    Cancel(CancelArgs),
    /// Show the units in the queue: where each is, what it has cost, and its last line
    Status(StatusArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// How many units to work on at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) slots: u32,
    /// Work on the units that need this label, and no others. May be repeated, for units that need several
    #[arg(long, value_name = "NAME", value_parser = label)]
    pub(crate) label: Vec<String>,
    /// A hub that this machine must reach. With this option, it works on units of these hubs only. May be repeated
    #[arg(long, value_name = "DIR|URL")]
    pub(crate) hub: Vec<String>,
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    /// The program forkhestra
    #[arg(long, value_name = "PATH", default_value = "forkhestra")]
    pub(crate) program: PathBuf,
    /// The directory of the workspaces [default: below ~/.cache/forkhestra/workspaces]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspaces: Option<PathBuf>,
    /// The directory with the ignored files that units need
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// The units, such as 31-4-1
    #[arg(value_name = "UNIT", required = true, value_parser = unit)]
    pub(crate) units: Vec<String>,
    /// Where the workers find the hub
    #[arg(long, value_name = "DIR|URL", value_parser = hub)]
    pub(crate) hub: String,
    /// The name of the job of the only unit [default: made from the hub and the unit]
    #[arg(long, value_name = "NAME")]
    pub(crate) job: Option<String>,
    /// The labels that a worker must have, separated by commas
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = labels)]
    pub(crate) labels: Labels,
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    /// How often a worker reports
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) beat: Duration,
    /// How long a worker may be silent before its unit is lost [at least 4 beats]
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(crate) lease: Duration,
    /// How often a unit whose worker is lost is given to another one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// How long a worker may have a unit
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = duration)]
    pub(crate) time: Duration,
    /// Whose work it is: workers share their time fairly among all of these
    #[arg(long, value_name = "NAME", env = "USER", value_parser = fairness_key)]
    pub(crate) fairness_key: Option<String>,
    /// From 1, the first, to 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5))]
    pub(crate) priority: Option<u32>,
}

/// The labels of `--labels`.
#[derive(Debug, Clone)]
pub(crate) struct Labels(pub(crate) Vec<String>);

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The name of a job of this hub
    #[arg(long, value_name = "NAME")]
    pub(crate) job: String,
    /// The hub, on this machine
    #[arg(long, value_name = "DIR", default_value = ".forkhestra/hub.git")]
    pub(crate) hub: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The name of the job, as `status` prints it
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) queue: QueueArgs,
    /// Show those that have ended, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Print a line of JSON for each unit
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// The queue; the version of forkhestra is added to it
    #[arg(long, value_name = "NAME", default_value = "forkhestra")]
    pub(crate) queue: String,
}

impl Arguments {
    /// Returns what is wrong with options that each are right.
    pub(crate) fn contradiction(&self) -> Option<String> {
        match &self.command {
            Command::Submit(args) if args.lease < args.beat * BEATS => Some(format!(
                "--lease {:?} is less than {BEATS} beats of {:?}: a worker without a network could not end its unit in time; \
                 use --lease {:?} or more",
                args.lease,
                args.beat,
                args.beat * BEATS
            )),
            Command::Submit(args) if args.job.is_some() && args.units.len() != 1 => {
                Some("--job names the job of one unit".into())
            }
            _ => None,
        }
    }
}

/// Parses a length of time: `500ms`, `90s`, `10m`, `8h`, `7d`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().map_err(|_| "a length of time is a number and a unit, such as 90s")?;
    let milliseconds = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("the unit is ms, s, m, h or d, such as 90s".into()),
    };
    match number.checked_mul(milliseconds) {
        Some(1..) if number > 0 => Ok(Duration::from_millis(number * milliseconds)),
        _ => Err("it must be more than zero, and less than a lifetime".into()),
    }
}

fn label(text: &str) -> Result<String, String> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    let is_label = (1..=63).contains(&text.len()) && text.bytes().all(is_sign);
    if is_label {
        Ok(text.into())
    } else {
        Err("a label has letters, digits, `-`, `_`, `.` and `:`, at most 63".into())
    }
}

/// Parses labels that are separated by commas; none if the text is empty.
fn labels(text: &str) -> Result<Labels, String> {
    let given = text.split(',').filter(|_| !text.is_empty());
    Ok(Labels(given.map(label).collect::<Result<_, _>>()?))
}

fn unit(text: &str) -> Result<String, String> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+.".contains(&byte);
    let is_unit = (1..=200).contains(&text.len()) && text.bytes().all(is_sign) && !text.starts_with(['-', '.']);
    if is_unit { Ok(text.into()) } else { Err("the name of a unit is like 31-4-1: batch, task, and its number".into()) }
}

/// What is in the queue can be read by everybody who can read the queue.
fn hub(text: &str) -> Result<String, String> {
    let login = text.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once('@'));
    match login {
        Some((login, _)) if login.contains(':') => {
            Err("the URL has a password, which everybody could read in the queue; \
             let the workers' git know it (gitcredentials(7))"
                .into())
        }
        _ => Ok(text.into()),
    }
}

fn fairness_key(text: &str) -> Result<String, String> {
    if text.len() <= 64 { Ok(text.into()) } else { Err("it has at most 64 bytes".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Arguments, String> {
        let arguments = Arguments::try_parse_from(words.split(' ')).map_err(|error| error.to_string())?;
        arguments.contradiction().map_or(Ok(arguments), Err)
    }

    #[test]
    fn submit_takes_no_password_of_a_hub() {
        assert!(parse("x submit --hub https://me:secret@host/hub.git 1-1-1").unwrap_err().contains("has a password"));
        assert!(parse("x submit --hub ssh://me@host/hub.git 1-1-1").is_ok());
        assert!(parse("x submit --hub me@host:hub.git 1-1-1").is_ok());
    }

    #[test]
    fn submit_wants_a_lease_of_four_beats() {
        let error = parse("x submit --hub h --lease 39s --beat 10s 1-1-1").unwrap_err();
        assert!(error.contains("--lease 39s is less than 4 beats of 10s"), "{error}");
        assert!(parse("x submit --hub h --lease 40s --beat 10s 1-1-1").is_ok());
    }

    #[test]
    fn lengths_of_time_have_a_number_and_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("7d"), Ok(Duration::from_hours(7 * 24)));
        for bad in ["", "s", "5", "5w", "0s", "99999999999999999999s", "99999999999999999d", "-1s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_units_and_labels_have_no_spaces_and_begin_with_no_dash() {
        assert!(parse("x submit --hub h 31-4-1 31-verify-2 31-4+2-1").is_ok());
        assert!(parse("x submit --hub h a/b").is_err());
        assert!(parse("x worker --slots 1 --label gpu --label a_b").is_ok());
        assert!(parse("x worker --slots 1 --label ,").is_err());
        assert!(parse("x worker --slots 0").is_err());
        assert_eq!(labels("gpu,big").unwrap().0, ["gpu", "big"]);
        assert!(labels("").unwrap().0.is_empty() && labels("a,,b").is_err());
    }
}
