//! A single word on the command line: a step, a chain of the config, a misspelled command, or one of another tool.

use crate::agent::{BUILT_IN_CHECKS, find_all_on_path};
use crate::chain::{Config, LayerKind};
use crate::cli::parse::argv::VERBS;
use crate::source::{Diagnostic, nearest};
use crate::world::World;

/// What a single word on the command line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum BareWord {
    /// A step: an agent, a check, a backend or a program.
    Step,
    /// A chain of the config.
    Chain,
}

/// Commands of other tools, and what to type here instead.
const FOREIGN: [(&[&str], &str); 20] = [
    (&["ls"], "`forkhestra list` lists chains, agents and checks, `forkhestra runs` lists runs"),
    (
        &["ship", "deploy", "build-all"],
        "there is no such chain: `forkhestra init` writes a config with the chain `ship`, `forkhestra list` lists chains",
    ),
    (&["ps", "history", "jobs"], "`forkhestra status` shows what is running, `forkhestra runs` lists runs"),
    (
        &["log", "logs", "tail", "watch", "top", "follow", "monitor"],
        "`forkhestra runs log -f` follows what agents print, `forkhestra status --watch` what is running",
    ),
    (
        &["events", "replay"],
        "`forkhestra runs events` prints the events of a run, `forkhestra runs log` shows it again",
    ),
    (&["prune", "clean", "gc", "rm"], "`forkhestra runs prune` removes old runs"),
    (&["kill", "cancel", "abort", "down"], "`forkhestra stop` stops the current run here"),
    (
        &["say", "send", "message", "msg", "note", "steer"],
        "`forkhestra tell \"…\"` sends a message to the agents of the current run; each sees it from its next attempt on",
    ),
    (&["detach", "background", "daemon"], "`--detach` runs in the background: forkhestra run --detach \"coder:3\""),
    (&["pause"], "press Ctrl-Z in the terminal of the run; `fg` continues it"),
    (&["continue", "retry", "restart", "rerun"], "`forkhestra resume` continues a run"),
    (&["start", "up", "exec", "go", "loop"], "`forkhestra \"coder:3 -> test\" -p \"…\"` runs a chain"),
    (&["agents", "chains", "checks", "backends"], "`forkhestra list` lists them"),
    (
        &["config", "check"],
        "`forkhestra init` writes a config, forge/chains.json; `forkhestra validate` checks it, `forkhestra verify` the project",
    ),
    (&["new", "create", "setup", "install"], "`forkhestra init` writes a config"),
    (
        &["add", "reset", "delete", "next", "todo", "backlog"],
        "tasks are under `forkhestra task`: task add, task list, task run",
    ),
    (&["resolve", "disputes"], "use `forkhestra dispute list` and `forkhestra dispute resolve`"),
    (&["improve", "bench", "benchmark", "evaluate"], "use `forkhestra eval run` or `forkhestra eval improve`"),
    (
        &["login", "auth", "env", "info"],
        "`forkhestra doctor` shows which backends are installed, and whether they are logged in",
    ),
    (&["version", "update", "upgrade"], "`forkhestra --version` prints the version"),
];

/// Returns what a single word means. The order: agents, checks and chains of the config, then built-in checks, agents
/// and chains, then backends and programs on PATH.
///
/// # Errors
/// When it is a command of another tool and has no meaning here, or is nearly the name of a command.
pub(in crate::cli) fn bare_word(world: &World, name: &str, config: &Config) -> Result<BareWord, Diagnostic> {
    let own = |layer: LayerKind| layer != LayerKind::BuiltIn;
    let agent = config.agents.get(name).map(|entry| own(entry.layer));
    let check = config.checks.get(name).map(|entry| own(entry.layer));
    let chain = config.chains.get(name).map(|entry| own(entry.layer));
    let is_step = agent.is_some() || check.is_some() || BUILT_IN_CHECKS.contains(&name);
    match (agent == Some(true) || check == Some(true), chain) {
        (true, _) => return Ok(BareWord::Step),
        (false, Some(true)) => return Ok(BareWord::Chain),
        (false, Some(false)) if !is_step => return Ok(BareWord::Chain),
        _ if is_step => return Ok(BareWord::Step),
        _ => {}
    }
    // `forkhestra run list`: after `run`, the word does not mean the command of that name.
    if VERBS.contains(&name) {
        return Ok(BareWord::Step);
    }
    let on_path = find_all_on_path(name, world, world);
    if let Some(fault) = foreign(name) {
        let help = fault.help.clone().unwrap_or_default();
        return Err(match on_path.first() {
            Some(program) => fault.help(format!("{help}. To run {}, give it a name in `agents`", program.display())),
            None => fault,
        });
    }
    if let Some((program, near)) = on_path.first().and_then(|program| Some((program, slip_of(name, config)?))) {
        return Err(only_a_program(name, &program.display().to_string(), near));
    }
    match nearest(name, VERBS) {
        Some(verb) if on_path.is_empty() && !is_nearer(name, config, verb) => {
            Err(no_verb(name, &format!("did you mean `forkhestra {verb}`?")))
        }
        _ => Ok(BareWord::Step),
    }
}

/// The known name of which a program's name may be a typo: two letters swapped, or one wrong.
fn slip_of<'a>(name: &str, config: &'a Config) -> Option<&'a str> {
    let names = config.agents.keys().chain(config.checks.keys()).chain(config.chains.keys()).map(String::as_str);
    let all = names.chain(BUILT_IN_CHECKS).chain(VERBS);
    nearest(name, all.filter(|known| known.len() == name.len() && known.len() > 3))
}

/// Reports a command of another tool.
pub(in crate::cli) fn foreign(word: &str) -> Option<Diagnostic> {
    let (_, ours) = FOREIGN.iter().find(|(words, _)| words.contains(&word))?;
    Some(no_verb(word, ours))
}

/// Reports a first word that is nearly the name of a command, or a command of another tool.
pub(in crate::cli) fn nearly_a_verb(word: &str) -> Option<Diagnostic> {
    foreign(word).or_else(|| Some(no_verb(word, &format!("did you mean `forkhestra {}`?", nearest(word, VERBS)?))))
}

/// Whether a name of the config is as close to the word as the command is.
fn is_nearer(word: &str, config: &Config, verb: &str) -> bool {
    let names = config.agents.keys().chain(config.checks.keys()).chain(config.chains.keys()).map(String::as_str);
    nearest(word, names.chain(BUILT_IN_CHECKS).chain([verb])).is_some_and(|near| near != verb)
}

fn no_verb(word: &str, ours: &str) -> Diagnostic {
    Diagnostic::error("usage/unknown-verb", format!("there is no command, chain, agent or check `{word}`")).help(ours)
}

fn only_a_program(word: &str, program: &str, near: &str) -> Diagnostic {
    Diagnostic::error("usage/only-a-program", format!("`{word}` is only a program, {program}"))
        .help(format!("did you mean `{near}`? To run the program, give it a name in `agents` of forge/chains.json"))
}

/// Reports several words without a command: a prompt without its option, a shell command, or a chain without quotes.
pub(in crate::cli) fn several_words(words: &[&str], config: &Config) -> Diagnostic {
    let first = words.first().copied().unwrap_or_default();
    let known = |word: &str| {
        let name = word.split(':').next().unwrap_or(word);
        config.agents.contains_key(name)
            || config.checks.contains_key(name)
            || config.chains.contains_key(name)
            || BUILT_IN_CHECKS.contains(&name)
    };
    let fault = Diagnostic::error(
        "usage/quote-the-chain",
        format!("{} arguments were given, but a chain is one quoted argument", words.len()),
    );
    if words.iter().any(|word| word.contains("->")) || words.iter().all(|word| known(word)) {
        let chain = words.iter().copied().filter(|word| *word != "->").collect::<Vec<_>>().join(" -> ");
        return fault.help(format!("put the whole chain in quotes: forkhestra \"{chain}\""));
    }
    let rest = if known(first) { &words[1..] } else { words };
    let agent = if known(first) { first } else { "coder" };
    fault.help(format!(
        "pass a prompt with -p: forkhestra {agent} -p \"{}\". Run a command as a check: \"checks\": {{ \"unit\": \"{}\" }}",
        rest.join(" "),
        words.join(" ")
    ))
}
