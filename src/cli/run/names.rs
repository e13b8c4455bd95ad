//! One word alone on the command line: a step, a chain of the config, or a verb that somebody misspelt or knows from another tool.

use crate::agent::{BUILT_IN_CHECKS, find_all_on_path};
use crate::chain::{Config, LayerKind};
use crate::cli::argv::VERBS;
use crate::source::{Diagnostic, nearest};
use crate::world::World;

/// What a word alone stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum BareWord {
    /// A step: an agent, a check, an agent CLI, a program.
    Step,
    /// A chain of the config.
    Chain,
}

/// Words of other tools, and what to type here.
const FOREIGN: [(&[&str], &str); 18] = [
    (&["ls"], "`forkhestra list` lists chains, agents and checks, `forkhestra runs` what was run"),
    (
        &["ship", "deploy", "build-all"],
        "no chain is called so here: `forkhestra init` writes a config with the chain `ship`, `forkhestra list` shows what there is",
    ),
    (&["status", "ps", "history", "jobs"], "`forkhestra runs` lists runs, `forkhestra runs show` shows the last one"),
    (
        &["log", "logs", "tail", "watch", "top", "attach", "follow", "monitor"],
        "`forkhestra runs log -f` follows what agents print",
    ),
    (&["events", "replay"], "`forkhestra runs events` and `forkhestra runs replay` tell a run again"),
    (&["prune", "clean", "gc", "rm"], "`forkhestra runs prune` removes old runs"),
    (
        &["stop", "kill", "cancel", "abort", "down"],
        "press Ctrl-C where the run is under way, or send SIGINT to its process",
    ),
    (&["pause"], "press Ctrl-Z where the run is under way; `fg` goes on"),
    (&["continue", "retry", "restart", "rerun"], "`forkhestra resume` goes on with a run"),
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
    (&["resolve", "disputes"], "`forkhestra dispute list`, `forkhestra dispute resolve`"),
    (&["improve", "bench", "benchmark", "evaluate"], "`forkhestra eval run`, `forkhestra eval improve`"),
    (
        &["login", "auth", "env", "info"],
        "`forkhestra doctor` says which agent CLIs are there, and whether they are logged in",
    ),
    (&["version", "update", "upgrade"], "`forkhestra --version`"),
];

/// What a word alone stands for: agents, checks and chains of the config, then built-in checks, agents and chains, then agent CLIs and
/// programs on PATH.
///
/// # Errors
/// A word of another tool that is nothing of ours, and one that is nearly a verb.
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
    // `forkhestra run list`: whoever writes `run` before a verb means something else of that name.
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

/// The known name of which a program's name is a slip: two letters swapped, or one wrong.
fn slip_of<'a>(name: &str, config: &'a Config) -> Option<&'a str> {
    let names = config.agents.keys().chain(config.checks.keys()).chain(config.chains.keys()).map(String::as_str);
    let all = names.chain(BUILT_IN_CHECKS).chain(VERBS);
    nearest(name, all.filter(|known| known.len() == name.len() && known.len() > 3))
}

/// A word that other tools have as a verb.
pub(in crate::cli) fn foreign(word: &str) -> Option<Diagnostic> {
    let (_, ours) = FOREIGN.iter().find(|(words, _)| words.contains(&word))?;
    Some(no_verb(word, ours))
}

/// Several words of which the first is nearly a verb.
pub(in crate::cli) fn nearly_a_verb(word: &str) -> Option<Diagnostic> {
    foreign(word).or_else(|| Some(no_verb(word, &format!("did you mean `forkhestra {}`?", nearest(word, VERBS)?))))
}

/// Whether a name of the config is as near to the word as the verb is.
fn is_nearer(word: &str, config: &Config, verb: &str) -> bool {
    let names = config.agents.keys().chain(config.checks.keys()).chain(config.chains.keys()).map(String::as_str);
    nearest(word, names.chain(BUILT_IN_CHECKS).chain([verb])).is_some_and(|near| near != verb)
}

fn no_verb(word: &str, ours: &str) -> Diagnostic {
    Diagnostic::error("usage/unknown-verb", format!("there is no verb, chain, agent or check `{word}`")).help(ours)
}

fn only_a_program(word: &str, program: &str, near: &str) -> Diagnostic {
    Diagnostic::error("usage/only-a-program", format!("`{word}` is only a program, {program}"))
        .help(format!("did you mean `{near}`? To run the program, give it a name in `agents` of forge/chains.json"))
}

/// Several words that are no verb: a prompt without its option, a command, or a chain without its quotes.
pub(in crate::cli) fn several_words(words: &[&str], config: &Config) -> Diagnostic {
    let first = words.first().copied().unwrap_or_default();
    let known = |word: &str| {
        let name = word.split(':').next().unwrap_or(word);
        config.agents.contains_key(name)
            || config.checks.contains_key(name)
            || config.chains.contains_key(name)
            || BUILT_IN_CHECKS.contains(&name)
    };
    let fault =
        Diagnostic::error("usage/quote-the-chain", format!("{} words were given where a chain is one", words.len()));
    if words.iter().any(|word| word.contains("->")) || words.iter().all(|word| known(word)) {
        let chain = words.iter().copied().filter(|word| *word != "->").collect::<Vec<_>>().join(" -> ");
        return fault.help(format!("put the whole chain into quotes: forkhestra \"{chain}\""));
    }
    let rest = if known(first) { &words[1..] } else { words };
    let agent = if known(first) { first } else { "coder" };
    fault.help(format!(
        "a prompt comes with -p: forkhestra {agent} -p \"{}\". A command is a check: \"checks\": {{ \"unit\": \"{}\" }}",
        rest.join(" "),
        words.join(" ")
    ))
}
