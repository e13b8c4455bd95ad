//! The command line before clap: adds `run` where a chain is typed alone, and explains common mistakes.

use crate::cli::args::RunArgs;
use crate::cli::options::Common;
use crate::source::Diagnostic;
use clap::{Args, Command};
use std::ffi::{OsStr, OsString};

pub(in crate::cli) const VERBS: [&str; 32] = [
    "run",
    "resume",
    "runs",
    "report",
    "diff",
    "status",
    "attach",
    "stop",
    "tell",
    "task",
    "dispute",
    "eval",
    "list",
    "show",
    "render",
    "work",
    "validate",
    "detect",
    "verify",
    "diagnose",
    "doctor",
    "init",
    "explain",
    "completions",
    "man",
    "mcp",
    "submit",
    "approve",
    "reject",
    "skip",
    "tasks",
    "help",
];
/// The global options without a value, and those with one.
const FLAGS: [&str; 9] = ["--trust", "-v", "--verbose", "-q", "--quiet", "-h", "--help", "-V", "--version"];
const VALUED: [&str; 3] = ["--cwd", "-C", "--color"];
/// Treats `runs report` and `runs resume` as `report` and `resume`.
fn as_own_verb(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let of_runs = arguments.first().is_some_and(|verb| verb == "runs");
    if of_runs && arguments.get(1).is_some_and(|verb| verb == "report" || verb == "resume") {
        arguments.remove(0);
    }
    arguments
}

/// Options of other tools, and their equivalents here.
const FOREIGN_OPTIONS: [(&[&str], &str); 11] = [
    (
        &["--yolo", "-y", "--yes", "--dangerously-skip-permissions", "--full-auto", "--allow-all"],
        "--permissions full lets agents do anything",
    ),
    (
        &["--agent", "--cli", "--provider"],
        "--backend NAME selects the backend; name agents in the chain: forkhestra \"coder -> test\"",
    ),
    (&["--print", "--message"], "use -p TEXT for the prompt"),
    (
        &["--max-iterations", "--iterations", "--max-turns"],
        "write an agent's iterations as a count, \"coder:5\"; use --limit attempts=50 for the whole run",
    ),
    (&["--max-cost", "--max-budget-usd", "--budget"], "use --limit cost=5, in US dollars"),
    (&["--max-time", "--max-duration"], "use --limit time=2h for the run, --timeout 10m for each attempt"),
    (&["--continue", "--resume"], "use forkhestra resume to continue a run"),
    (
        &["--watch", "--follow", "-f"],
        "forkhestra runs log -f follows a run; --prompt-file reads the prompt from a file",
    ),
    (&["-n", "--dry", "--plan"], "--dry-run shows everything that would run"),
    (&["-m"], "use --model NAME"),
    (&["-j", "--jobs", "--parallel"], "steps run one after another; `task run` and `eval run` have --jobs"),
];

fn foreign_option(option: &str, ours: &str) -> Diagnostic {
    Diagnostic::error("usage/unknown-option", format!("forkhestra has no option `{option}`")).help(ours)
}

/// Reports an arrow as a separate argument: the shell did not take it for a redirection.
fn not_one_word() -> Diagnostic {
    Diagnostic::error("usage/quote-the-chain", "the chain must be one quoted argument: an arrow stands alone")
        .help("put one pair of quotes around all of it: forkhestra \"coder:3 -> reviewer\"")
}

/// Whether an argument is the name of a command.
pub(in crate::cli) fn is_verb(word: &str) -> bool {
    VERBS.contains(&word)
}

/// Adds `run` where a chain was typed without it.
///
/// # Errors
/// When the chain is not one quoted argument, or the prompt is one of forkhestra's options.
pub(in crate::cli) fn normalise(arguments: Vec<OsString>) -> Result<Vec<OsString>, Diagnostic> {
    let arguments = as_own_verb(arguments);
    let mut position = 0;
    while let Some(word) = arguments.get(position).and_then(|word| word.to_str()) {
        let (name, joined) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
        if VALUED.contains(&name) {
            position += if joined { 1 } else { 2 };
        } else if FLAGS.contains(&word) {
            position += 1;
        } else {
            break;
        }
    }
    let next = arguments.get(position);
    let verb = next.and_then(|word| word.to_str()).filter(|word| VERBS.contains(word));
    if verb.is_none_or(|verb| verb == "run") {
        refuse_torn(&arguments)?;
    }
    let asks = arguments[..position.min(arguments.len())]
        .iter()
        .any(|word| ["-h", "--help", "-V", "--version"].contains(&word.to_str().unwrap_or("")));
    if verb.is_some() || (next.is_none() && (asks || arguments.is_empty())) {
        // An empty command line asks for help.
        return Ok(if arguments.is_empty() { vec!["--help".into()] } else { arguments });
    }
    Ok(std::iter::once("run".into()).chain(arguments).collect())
}

/// Whether this is an option of `run`, which is not taken as a prompt.
fn is_option(word: &str) -> bool {
    if !word.starts_with('-') {
        return false;
    }
    let command = RunArgs::augment_args(Common::augment_args(Command::new("run")));
    let mut options = command.get_arguments();
    let is_it = |option: &clap::Arg| match word.strip_prefix("--") {
        Some(long) => {
            option.get_long() == Some(long) || option.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        None => {
            word.strip_prefix('-').is_some_and(|short| option.get_short().is_some_and(|own| own.to_string() == short))
        }
    };
    ["--", "-h", "--help", "-V", "--version"].contains(&word) || options.any(is_it)
}

fn refuse_torn(arguments: &[OsString]) -> Result<(), Diagnostic> {
    let mut previous = OsStr::new("");
    for word in arguments {
        let prompts = previous == "-p" || previous == "--prompt";
        if prompts && let Some(option) = word.to_str().filter(|word| is_option(word)) {
            return Err(prompt_is_an_option(option));
        }
        if previous == "--" {
            break;
        }
        if !prompts && previous != "--prompt-file" && word.as_encoded_bytes().starts_with(b"->") {
            return Err(not_one_word());
        }
        let is_value = prompts || previous == "--prompt-file" || previous == "--chain";
        if !is_value
            && let Some((_, ours)) =
                FOREIGN_OPTIONS.iter().find(|(options, _)| options.iter().any(|option| word == *option))
        {
            return Err(foreign_option(&word.to_string_lossy(), ours));
        }
        previous = word;
    }
    Ok(())
}

fn prompt_is_an_option(option: &str) -> Diagnostic {
    Diagnostic::error("usage/prompt", format!("the prompt is missing: `{option}` is an option"))
        .help(format!("give the prompt: -p \"Fix the tests\". If {option} really is the whole prompt, put it into a file: --prompt-file"))
}

/// Reports a chain that was passed as several arguments; `why` names the evidence.
pub(in crate::cli) fn torn(why: &str) -> Diagnostic {
    Diagnostic::error("usage/quote-the-chain", format!("the chain must be one quoted argument: {why}"))
        .help(if why.contains("half an arrow") {
            "write: forkhestra \"coder:3 -> reviewer\". Without quotes, the shell takes `>` as a redirection and has just created a file named after the next step: remove it"
        } else {
            "write: forkhestra \"coder:3 -> reviewer\""
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use clap::CommandFactory;

    fn normalised(line: &str) -> Result<String, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        let words = normalise(words).map_err(|fault| fault.message)?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    /// The list is written by hand, because building clap's tables twice would slow down the start.
    #[test]
    fn every_verb_of_the_command_line_is_known_here() {
        let command = Cli::command();
        let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_string()).collect();
        assert_eq!(verbs, VERBS[..VERBS.len() - 2]);
    }

    #[test]
    fn run_is_added_unless_a_verb_is_there() {
        for (typed, meant) in [
            ("", "--help"),
            ("a:3", "run a:3"),
            ("--chain x", "run --chain x"),
            ("-v --cwd d list", "-v --cwd d list"),
            ("--cwd=d a", "run --cwd=d a"),
            ("-p hi list", "run -p hi list"),
            ("run list", "run list"),
            ("list", "list"),
            ("X=1 --chain c", "run X=1 --chain c"),
            ("--help", "--help"),
            ("-v", "run -v"),
            ("--dryrun a", "run --dryrun a"),
        ] {
            assert_eq!(normalised(typed), Ok(meant.to_string()), "{typed}");
        }
    }

    #[test]
    fn a_torn_chain_and_a_prompt_that_is_an_option_are_refused() {
        assert!(normalised("a -> b").unwrap_err().contains("one quoted argument"));
        assert!(normalised("->a").unwrap_err().contains("one quoted argument"));
        assert_eq!(normalised("a -p ->"), Ok("run a -p ->".into()));
        assert_eq!(normalised("a -p --dry-run"), Err("the prompt is missing: `--dry-run` is an option".into()));
        assert_eq!(normalised("a -p -x"), Ok("run a -p -x".into()));
    }
}
