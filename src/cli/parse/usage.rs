//! Wrong command lines: every error of clap in our words, with the command whose help says more.

use crate::source::{Diagnostic, nearest};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

/// Whether a name is an alias of a command, or of a command below it.
fn is_alias(command: &Command, name: &str) -> bool {
    command.get_all_aliases().any(|alias| alias == name) || command.get_subcommands().any(|sub| is_alias(sub, name))
}

/// Converts an error of clap, given the tables of the commands and the arguments without the program's name.
pub(super) fn fault(error: &clap::Error, command: &Command, arguments: &[OsString]) -> Diagnostic {
    let named = command_line(command, arguments);
    let more = format!("`{named} --help` lists what it accepts");
    let of = |kind| texts(error, kind);
    let arg = of(ContextKind::InvalidArg).first().map_or_else(String::new, |arg| written(arg));
    let value = of(ContextKind::InvalidValue).concat();
    let near =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand].into_iter().find_map(|kind| of(kind).pop());
    // An alias is for those who know it.
    let near = near.filter(|near| !command.get_subcommands().any(|sub| is_alias(sub, near)));
    let help = near.map_or_else(|| more.clone(), |near| format!("did you mean `{near}`?"));
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let option = of(ContextKind::InvalidArg).concat();
            let message = if option.starts_with('-') {
                format!("`{named}` has no option `{option}`")
            } else {
                format!("`{named}` takes no argument `{option}`")
            };
            Diagnostic::error("usage/unknown-option", message).help(help)
        }
        ErrorKind::InvalidSubcommand => {
            let verb = of(ContextKind::InvalidSubcommand).concat();
            Diagnostic::error("usage/unknown-verb", format!("`{named}` has no command `{verb}`")).help(help)
        }
        ErrorKind::ArgumentConflict => Diagnostic::error("usage/conflict", conflict(error, &arg)).help(more),
        ErrorKind::MissingRequiredArgument => {
            let missing = of(ContextKind::InvalidArg);
            let is_typed = |option: &str| arguments.iter().any(|word| word == option);
            if let Some((message, help)) = in_own_words(&named, &missing, &is_typed) {
                return Diagnostic::error("usage/missing", message).help(format!("{help}\n{more}"));
            }
            let missing: Vec<String> = missing.iter().map(|arg| quoted(arg)).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            let message = format!("{} {are} missing", missing.join(" and "));
            Diagnostic::error("usage/missing", message).help(match usage(error) {
                Some(usage) => format!("{usage}\n{more}"),
                None => more,
            })
        }
        ErrorKind::MissingSubcommand => {
            Diagnostic::error("usage/missing", format!("`{named}` needs a command")).help(more)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            Diagnostic::error("usage/value", format!("the value of `{arg}` is missing"))
                .help(one_of(&of(ContextKind::ValidValue)).unwrap_or(more))
        }
        ErrorKind::InvalidValue => Diagnostic::error("usage/value", format!("`{arg}` cannot be `{value}`")).help(
            match one_of(&of(ContextKind::ValidValue)) {
                Some(values) => match nearest(&value, of(ContextKind::ValidValue).iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`? It is {values}"),
                    None => values,
                },
                None => more,
            },
        ),
        ErrorKind::ValueValidation => {
            let why = error.source().map_or_else(|| "a different value".into(), expected);
            Diagnostic::error("usage/value", format!("`{arg}` cannot be `{value}`: it must be {why}")).help(more)
        }
        ErrorKind::TooManyValues => {
            Diagnostic::error("usage/value", format!("`{arg}` does not take the value `{value}`")).help(more)
        }
        ErrorKind::InvalidUtf8 => Diagnostic::error("usage/value", "an argument is not valid UTF-8").help(more),
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
            Diagnostic::error("usage/value", first).help(more)
        }
    }
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns an argument as people name it: `--prompt` for `--prompt <TEXT>`, `RUN` for `[RUN]`.
fn written(arg: &str) -> String {
    if arg.starts_with('-') {
        return arg.split([' ', '=']).next().unwrap_or(arg).into();
    }
    let name = arg.trim_end_matches('.');
    // `<RUN[.ATTEMPT]>` has brackets of its own.
    let inner = |open, close| name.strip_prefix(open).and_then(|name: &str| name.strip_suffix(close));
    inner('<', '>').or_else(|| inner('[', ']')).unwrap_or(name).into()
}

/// Returns a missing argument in quotes, an option with the name of its value.
fn quoted(arg: &str) -> String {
    let arg = if arg.starts_with('-') { arg.replace(['<', '>'], "") } else { written(arg) };
    format!("`{arg}`")
}

fn conflict(error: &clap::Error, arg: &str) -> String {
    let others: Vec<String> = texts(error, ContextKind::PriorArg).iter().map(|other| written(other)).collect();
    let verb = texts(error, ContextKind::InvalidSubcommand).concat();
    let arg = if arg.is_empty() { verb.as_str() } else { arg };
    match others.as_slice() {
        [] => format!("`{arg}` cannot be combined with the other options"),
        [other] if other == arg => format!("`{arg}` was given twice"),
        others => {
            let others = others.iter().map(|other| format!("`{other}`")).collect::<Vec<_>>().join(" or ");
            format!("`{arg}` cannot be combined with {others}")
        }
    }
}

fn one_of(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| format!("one of: {}", values.join(", ")))
}

/// Returns what a value has to be, given why it could not be read: `a number from 1 to 64`.
fn expected(why: &(dyn Error + 'static)) -> String {
    if let Some(why) = why.downcast_ref::<ParseIntError>() {
        return match why.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "a smaller number".into(),
            IntErrorKind::Zero => "a number of at least 1".into(),
            _ => "a whole number".into(),
        };
    }
    let text = why.to_string();
    let Some((from, to)) = text.split_once(" is not in ").and_then(|(_, range)| range.split_once("..")) else {
        return text;
    };
    // Without an upper bound, clap names the largest number that fits.
    match to.strip_prefix('=').filter(|to| to.parse::<u32>().is_ok_and(|to| to < u32::MAX)) {
        Some(to) => format!("a number from {from} to {to}"),
        None => format!("a number of at least {from}"),
    }
}

/// Returns what is missing, and what to type, where clap would name options that exclude each other.
fn in_own_words(named: &str, missing: &[String], is_typed: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    let lacks = |name: &str| missing.iter().any(|arg| written(arg) == name);
    match named {
        "forkhestra work" if lacks("--next") => {
            let option = ["--all", "--wait", "--as", "--label"].into_iter().find(|option| is_typed(option));
            let option = match option {
                Some(option @ ("--as" | "--label")) => format!(" {option} NAME"),
                Some(option) => format!(" {option}"),
                None => String::new(),
            };
            let what = if lacks("--hub") { "`--hub DIR|URL` and `--next` are missing" } else { "`--next` is missing" };
            Some((what.into(), format!("forkhestra work --hub <DIR|URL> --next{option}")))
        }
        "forkhestra work" if lacks("--unit") => Some((
            "the work is not named".into(),
            "name it: --hub URL --next, --hub URL --unit NAME, or --bundle FILE --out FILE".into(),
        )),
        "forkhestra tell" => Some(("`MESSAGE` is missing".into(), "forkhestra tell [RUN] <MESSAGE>".into())),
        _ => None,
    }
}

/// Returns the usage of the command that an argument is missing from.
fn usage(error: &clap::Error) -> Option<String> {
    let text = error.to_string();
    text.lines().find_map(|line| line.strip_prefix("Usage: ")).map(str::to_string)
}

/// Returns the command that the arguments name: `forkhestra runs show`.
fn command_line(root: &Command, arguments: &[OsString]) -> String {
    let (mut command, mut named) = (root, String::from("forkhestra"));
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        if let Some(found) = command.find_subcommand(word) {
            named.extend([" ", found.get_name()]);
            command = found;
        } else if word.starts_with('-') {
            // The value of a global option can have the name of a command.
            if root.get_arguments().chain(command.get_arguments()).any(|option| takes_next(option, word)) {
                words.next();
            }
        } else {
            break;
        }
    }
    named
}

/// Whether this word is the option, and the next word is its value.
fn takes_next(option: &Arg, word: &str) -> bool {
    let is_it = match word.strip_prefix("--") {
        Some(long) => option.get_long() == Some(long),
        None => option.get_short().is_some_and(|short| word.strip_prefix('-') == Some(&short.to_string())),
    };
    is_it && option.get_action().takes_values()
}
