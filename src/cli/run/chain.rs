//! The chain of a command line, and its variables.

use crate::agent::BUILT_IN_CHECKS;
use crate::chain::{Chain, Config, check_name, parse};
use crate::cli::args::RunArgs;
use crate::cli::config::Project;
use crate::cli::parse::argv::torn;
use crate::cli::run::names::{BareWord, bare_word, nearly_a_verb, several_words};
use crate::report::print_error;
use crate::source::{Diagnostic, Env, Place, Source, nearest};
use crate::world::World;
use indexmap::IndexMap;
use std::path::Path;
use std::sync::Arc;

/// Variables by name, with their values and where they were typed.
pub(in crate::cli) type TypedVars = IndexMap<String, (String, Arc<Source>)>;

/// Separates the variables from the chain, and finds the chain.
///
/// # Errors
/// All errors of the arguments.
pub(in crate::cli) fn chosen(
    world: &World,
    args: &RunArgs,
    project: &Project,
) -> Result<(Chain, TypedVars), Vec<Diagnostic>> {
    let (given, words) = split(&args.words, &project.shell)?;
    if let Some(steps) = &args.steps {
        return Ok((parse(&Source::new("the unit of work", steps.as_str(), &project.shell))?, given));
    }
    match (&args.chain, words.as_slice()) {
        (Some(_), [text, ..]) => Err(vec![both(text)]),
        (Some(name), []) => Ok((named(name, &project.config)?, given)),
        (None, [text]) if text.trim_end().ends_with('-') => Err(vec![torn(&format!("`{text}` ends in half an arrow"))]),
        (None, [.., last]) if last.trim_end().ends_with('-') => Err(vec![torn("half an arrow is left")]),
        (None, [text]) if check_name(text).is_ok() => {
            let is_broken = project.config.faults.iter().any(Diagnostic::is_error);
            if is_broken && !is_known(text, &project.config) {
                return Err(project.config.faults.clone());
            }
            match bare_word(world, text, &project.config).map_err(|fault| vec![fault])? {
                BareWord::Chain => Ok((named(text, &project.config)?, given)),
                BareWord::Step => Ok((parse(&Source::new("command line", *text, &project.shell))?, given)),
            }
        }
        (None, [text]) => Ok((parse(&Source::new("command line", *text, &project.shell))?, given)),
        (None, []) => Err(vec![nothing()]),
        (None, words) => {
            let verb =
                words.first().filter(|word| !is_known(word, &project.config)).and_then(|word| nearly_a_verb(word));
            Err(vec![verb.unwrap_or_else(|| several_words(words, &project.config))])
        }
    }
}

/// Separates variables from other arguments.
///
/// # Errors
/// Variables that were given twice.
pub(in crate::cli) fn split<'a>(
    words: &'a [String],
    shell: &Path,
) -> Result<(TypedVars, Vec<&'a str>), Vec<Diagnostic>> {
    let (mut given, mut rest, mut faults) = (TypedVars::new(), Vec::new(), Vec::new());
    for word in words {
        let assignment = word.split_once('=').filter(|(name, _)| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        if let Some((name, value)) = assignment {
            let source = Source::new("command line", word.as_str(), shell);
            if given.insert(name.to_string(), (value.to_string(), source)).is_some() {
                faults.push(twice(name));
            }
        } else {
            faults.extend(misnamed(word).map(bad_variable));
            rest.push(word.as_str());
        }
    }
    if faults.is_empty() { Ok((given, rest)) } else { Err(faults) }
}

/// The name of a variable that would be one if it did not begin with a digit.
fn misnamed(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_word && name.starts_with(|first: char| first.is_ascii_digit())).then_some(name)
}

fn bad_variable(name: &str) -> Diagnostic {
    Diagnostic::error("config/variable-name", format!("`{name}` is not a valid name of a variable"))
        .help("it must not start with a digit")
}

/// A chain of the config by its name.
///
/// # Errors
/// One diagnostic with the nearest name, or the errors of the config if they may be the reason.
pub(in crate::cli) fn named(name: &str, config: &Config) -> Result<Chain, Vec<Diagnostic>> {
    if let Some(entry) = config.chains.get(name) {
        Ok(entry.value.clone())
    } else {
        // The chain may be in a file that could not be read.
        let unreadable = config.faults.iter().any(Diagnostic::is_error);
        Err(if unreadable { config.faults.clone() } else { vec![unknown(name, config)] })
    }
}

/// Whether a step or a chain of the config, or a built-in check, has this name.
fn is_known(word: &str, config: &Config) -> bool {
    let named =
        config.agents.contains_key(word) || config.checks.contains_key(word) || config.chains.contains_key(word);
    named || BUILT_IN_CHECKS.contains(&word)
}

fn unknown(name: &str, config: &Config) -> Diagnostic {
    let known: Vec<&str> = config.chains.keys().map(String::as_str).collect();
    let help = match nearest(name, known.iter().copied()) {
        _ if config.agents.contains_key(name) => {
            format!("`{name}` is an agent: `forkhestra {name}` runs it, `forkhestra render {name}` shows its prompt")
        }
        _ if config.checks.contains_key(name) || BUILT_IN_CHECKS.contains(&name) => {
            format!("`{name}` is a check: `forkhestra {name}` runs it")
        }
        _ if !name.is_empty() && name.bytes().all(|next| next.is_ascii_digit()) => {
            format!("`forkhestra runs show {name}` shows run {name}")
        }
        Some(near) => format!("did you mean `{near}`? The chains are: {}", known.join(", ")),
        None => format!("the chains are: {}", known.join(", ")),
    };
    Diagnostic::error("usage/unknown-chain", format!("no chain is called `{name}`")).help(help)
}

fn both(word: &str) -> Diagnostic {
    Diagnostic::error("usage/two-chains", format!("there are two chains: --chain and `{word}`"))
        .help("remove one of them; a variable is written NAME=value")
}

fn nothing() -> Diagnostic {
    Diagnostic::error("usage/no-chain", "no chain was given").help(
        "write one, \"coder:3 -> reviewer\", or name one of the config: --chain NAME. `forkhestra list` shows them",
    )
}

fn twice(name: &str) -> Diagnostic {
    Diagnostic::error("usage/variable-twice", format!("the variable `{name}` was given twice")).help("give it once")
}

/// Adds the secrets of a chain that were not typed, from the environment or from the terminal. A dry run needs none.
///
/// # Errors
/// Every secret without a value.
pub(in crate::cli) fn add_secrets(
    world: &World,
    chain: &Chain,
    given: &mut TypedVars,
    project: &Project,
    dry_run: bool,
) -> Result<(), Vec<Diagnostic>> {
    let mut faults = Vec::new();
    for (name, at) in &chain.secrets {
        let known = world.var(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
        // A diagnostic shows only the name of a secret.
        let source = || Source::new("a secret", name.as_str(), &project.shell);
        if let Some((_, typed)) = given.get_mut(name) {
            *typed = source();
            continue;
        }
        if known.is_none() && dry_run {
            continue;
        }
        let typed = || {
            print_error(&format!("Value of the secret {name} (not shown): "));
            Some(world.stdin().read_secret()).filter(|value| !value.is_empty())
        };
        match known.or_else(|| world.stdin().is_terminal().then(typed).flatten()) {
            Some(value) => {
                given.insert(name.clone(), (value, source()));
            }
            None => faults.push(no_secret(name, at)),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn no_secret(name: &str, at: &Place) -> Diagnostic {
    Diagnostic::error("usage/secret", format!("the secret `{name}` has no value, and secrets are never stored"))
        .at(at, "declared here")
        .help(format!("set it in the environment, {name}=…, or run this in a terminal to type it when asked"))
}
