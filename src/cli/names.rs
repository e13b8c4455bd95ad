//! One word alone on the command line: a step, a chain of the config, or a verb that somebody misspelt or knows from another tool.

use super::words::VERBS;
use crate::agent::{BUILT_IN_CHECKS, find_all_on_path};
use crate::chain::{Config, LayerKind};
use crate::source::{Diagnostic, nearest};
use crate::world::World;

/// What a word alone stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BareWord {
    /// A step: an agent, a check, an agent CLI, a program.
    Step,
    /// A chain of the config.
    Chain,
}

/// Words of other tools, and what to type here.
const FOREIGN: [(&[&str], &str); 16] = [
    (
        &["status", "ps", "ls", "history", "jobs"],
        "`forkhestra runs` lists runs, `forkhestra runs show` shows the last one",
    ),
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
    (&["config", "check"], "`forkhestra validate` checks the config, `forkhestra verify` the project"),
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
pub(super) fn bare_word(world: &World, name: &str, config: &Config) -> Result<BareWord, Diagnostic> {
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
    if let Some(fault) = foreign(name) {
        return Err(fault);
    }
    match nearest(name, VERBS) {
        Some(verb) if find_all_on_path(name, world, world).is_empty() && !is_nearer(name, config, verb) => {
            Err(no_verb(name, &format!("did you mean `forkhestra {verb}`?")))
        }
        _ => Ok(BareWord::Step),
    }
}

/// A word that other tools have as a verb.
pub(super) fn foreign(word: &str) -> Option<Diagnostic> {
    let (_, ours) = FOREIGN.iter().find(|(words, _)| words.contains(&word))?;
    Some(no_verb(word, ours))
}

/// Several words of which the first is nearly a verb.
pub(super) fn nearly_a_verb(word: &str) -> Option<Diagnostic> {
    foreign(word).or_else(|| Some(no_verb(word, &format!("did you mean `forkhestra {}`?", nearest(word, VERBS)?))))
}

/// Whether a name of the config is as near to the word as the verb is.
fn is_nearer(word: &str, config: &Config, verb: &str) -> bool {
    let names = config.agents.keys().chain(config.checks.keys()).chain(config.chains.keys()).map(String::as_str);
    nearest(word, names.chain(BUILT_IN_CHECKS).chain([verb])).is_some_and(|near| near != verb)
}

fn no_verb(word: &str, ours: &str) -> Diagnostic {
    Diagnostic::error("usage/unknown-verb", format!("`{word}` is no verb, and nothing else is called so")).help(ours)
}
