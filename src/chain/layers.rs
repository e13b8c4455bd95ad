//! The layers of configuration: built-in < user < project, merged by name, every entry with its origin and its faults.

use super::backend::Backend;
use super::check::check;
use super::errors;
use super::ir::{Agent, Chain, Check, HookKind, Limits, Run};
use super::isolation::{Isolation, Sandbox};
use super::keys::cli::CliValues;
use super::keys::{AGENT, BACKEND, CHAIN, CHECK, ROOT};
use super::name::check_name;
use super::read::{self, Reader};
use super::tree;
use crate::source::{Diagnostic, Place, Source, Text};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where a project keeps its config, relative to its root, in order of preference.
pub const PROJECT_FILES: [&str; 2] = ["forge/chains.json", "forge/chains.json5"];

/// Where an entry comes from; a later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// Ours, embedded.
    BuiltIn,
    /// The user's own.
    User,
    /// The project's.
    Project,
}

impl std::fmt::Display for LayerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Project => "project",
        })
    }
}

/// A config file to be read.
#[derive(Debug, Clone)]
pub struct LayerSource {
    /// Which layer it is.
    pub kind: LayerKind,
    /// Its text.
    pub source: Arc<Source>,
}

/// An entry, its origin, and what is wrong with it alone.
#[derive(Debug, Clone)]
pub struct Entry<T> {
    /// What it says, as far as it could be read.
    pub value: T,
    /// Its key.
    pub at: Place,
    /// Its layer.
    pub layer: LayerKind,
    /// Its own faults.
    pub faults: Vec<Diagnostic>,
}

/// All layers, merged.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The default backend.
    pub backend: Option<Text>,
    /// The folder of templates.
    pub templates: Option<Text>,
    /// The marker.
    pub marker: Option<Text>,
    /// Limits of a whole run, merged key by key.
    pub limits: Limits,
    /// Commands that are run when something has happened, merged key by key.
    pub hooks: BTreeMap<HookKind, Run>,
    /// Whether what a completed task has changed is committed.
    pub commits_tasks: Option<bool>,
    /// Whether the machine is kept from sleeping during a run.
    pub keep_awake: Option<bool>,
    /// Whether the person wants to be asked before a project's config that is new is run.
    pub asks_for_trust: bool,
    /// What stands between agents and checks and the machine, as the project says, or else the user.
    pub isolation: Isolation,
    /// The same as the user's own config says, which a project cannot lift.
    pub own_isolation: Isolation,
    /// Agent CLIs by name, merged key by key.
    pub backends: IndexMap<String, Entry<Backend>>,
    /// Agents by name.
    pub agents: IndexMap<String, Entry<Agent>>,
    /// Checks by name; none for one that could not be read.
    pub checks: IndexMap<String, Entry<Option<Check>>>,
    /// Chains by name.
    pub chains: IndexMap<String, Entry<Chain>>,
    /// Names of ours that the project gives another meaning: agents and chains; checks of ours are no entries.
    pub redefined: BTreeSet<String>,
    /// Faults of the files themselves, which stop everything.
    pub faults: Vec<Diagnostic>,
    /// The files that were read, lowest layer first.
    pub files: Vec<LayerSource>,
}

impl Config {
    /// Whether this stands in the config of the project.
    #[must_use]
    pub fn is_project(&self, place: &Place) -> bool {
        let mut project = self.files.iter().filter(|file| file.kind == LayerKind::Project);
        project.any(|file| Arc::ptr_eq(&file.source, &place.source))
    }

    /// The sandbox that the user's own config asks for, whatever the project says.
    #[must_use]
    pub fn demanded_sandbox(&self) -> Sandbox {
        self.own_isolation.sandbox.as_ref().map_or(Sandbox::Off, |(sandbox, _)| *sandbox)
    }
}

/// Reads and merges the layers, lowest first. Never fails: every fault is in the result, at its entry where it has one.
#[must_use]
pub fn load(sources: &[LayerSource]) -> Config {
    let mut config = Config::default();
    for layer in sources {
        config.files.push(layer.clone());
        match tree::parse(&layer.source) {
            Ok(root) => add(layer, &root, &mut config),
            Err(fault) => config.faults.push(fault),
        }
    }
    config
}

/// Whether an entry of this layer gives a name of ours another meaning, and it is the project that does.
fn redefines<T>(layer: &LayerSource, earlier: Option<&Entry<T>>) -> bool {
    layer.kind == LayerKind::Project && earlier.is_some_and(|earlier| earlier.layer == LayerKind::BuiltIn)
}

/// What holds for the whole config.
fn add_settings(layer: &LayerSource, reader: Reader<'_>, config: &mut Config) {
    if let Some(marker) = reader.text("marker") {
        if is_usable_marker(&marker.value) {
            config.marker = Some(marker);
        } else {
            config.faults.push(errors::bad_marker(&marker.at, &marker.value));
        }
    }
    config.templates = reader.text("templates").or(config.templates.take());
    config.backend = reader.text("backend").or(config.backend.take());
    config.commits_tasks = reader.text("commit").map(|when| when.value == "task").or(config.commits_tasks);
    config.keep_awake = reader.flag("keepAwake").or(config.keep_awake);
    if let Some(trust) = reader.text("trust") {
        match layer.kind {
            LayerKind::Project => config.faults.push(errors::trust_of_a_project(&trust.at)),
            _ => config.asks_for_trust = trust.value == "ask",
        }
    }
    config.isolation = read::isolation(reader).over(std::mem::take(&mut config.isolation), false);
    if layer.kind != LayerKind::Project {
        config.own_isolation = config.isolation.clone();
    }
    if let Some(limits) = reader.get("limits") {
        config.limits = read::limits(limits).or(std::mem::take(&mut config.limits));
    }
    if let Some(hooks) = reader.get("hooks") {
        config.hooks.extend(read::hooks(hooks));
    }
}

fn add(layer: &LayerSource, root: &tree::Node, config: &mut Config) {
    let source = &layer.source;
    check(source, root, &ROOT, true, &mut config.faults);
    let reader = Reader::new(source, root);
    add_settings(layer, reader, config);
    let entries = |key| reader.get(key).into_iter().flat_map(Reader::all_members);
    for member in entries("backends") {
        let mut faults = named(source, member);
        if member.duplicates.is_some() {
            config.backends.entry(member.key.clone()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &BACKEND, false, &mut faults);
        let backend = read::backend(Reader::new(source, &member.node));
        let (index, earlier) = match config.backends.get_full(&member.key) {
            Some((index, _, earlier)) => (Some(index), earlier.clone()),
            None => (None, entry(layer, member, Backend::default(), Vec::new())),
        };
        faults.extend(earlier.faults);
        let entry = entry(layer, member, backend.or(earlier.value, layer.kind == LayerKind::Project), faults);
        // A refined one keeps its turn among those that are looked for.
        let index = index.unwrap_or(config.backends.len());
        config.backends.shift_insert(index, member.key.clone(), entry);
    }
    // An agent CLI is an agent of its name: so is every key that an entry does not set.
    for (name, entry) in &config.backends {
        // The demo's scripted agents are no agent CLI.
        let ours = entry.value.program.as_ref().is_some_and(|program| program.value == "{self}");
        if !ours && !config.agents.contains_key(name) {
            let text = Text { value: name.clone(), at: entry.at.clone() };
            let value = Agent { backend: Some(text), ..Agent::default() };
            let agent = Entry { value, at: entry.at.clone(), layer: LayerKind::BuiltIn, faults: Vec::new() };
            config.agents.insert(name.clone(), agent);
        }
    }
    for member in entries("agents") {
        let mut faults = named(source, member);
        if member.duplicates.is_some() {
            config.agents.entry(member.key.clone()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &AGENT, false, &mut faults);
        let agent = read::agent(Reader::new(source, &member.node));
        let earlier = config.agents.swap_remove(&member.key);
        if redefines(layer, earlier.as_ref()) {
            config.redefined.insert(member.key.clone());
        }
        let value = match earlier {
            Some(earlier) => {
                faults.extend(earlier.faults);
                refine(earlier.value, agent, layer.kind == LayerKind::Project)
            }
            None => agent,
        };
        let entry = entry(layer, member, value, faults);
        config.agents.insert(member.key.clone(), entry);
    }
    for member in entries("checks") {
        let mut faults = named(source, member);
        if member.duplicates.is_some() {
            config.checks.entry(member.key.clone()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &CHECK, false, &mut faults);
        let value = read::check(Reader::new(source, &member.node));
        if let Some(agent) = entries("agents").find(|agent| agent.key == member.key) {
            let at = |span| Place::new(source, span);
            let fault = errors::agent_and_check(&at(member.key_span.clone()), &member.key, &at(agent.key_span.clone()));
            // Of the file, not of the entry: which of the two a step means is not known.
            config.faults.push(fault);
        }
        config.checks.insert(member.key.clone(), entry(layer, member, value, faults));
    }
    for member in entries("chains") {
        let mut faults = named(source, member);
        if member.duplicates.is_some() {
            config.chains.entry(member.key.clone()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &CHAIN, false, &mut faults);
        let name = Text { value: member.key.clone(), at: Place::new(source, member.key_span.clone()) };
        let value = read::chain(&name, Reader::new(source, &member.node), &mut faults);
        let earlier = config.chains.insert(member.key.clone(), entry(layer, member, value, faults));
        if redefines(layer, earlier.as_ref()) {
            config.redefined.insert(member.key.clone());
        }
    }
}

/// Faults of an entry's name, which are the entry's own: they stop no other.
fn named(source: &Arc<Source>, member: &tree::Member) -> Vec<Diagnostic> {
    let at = Place::new(source, member.key_span.clone());
    if let Some(first) = &member.duplicates {
        return vec![errors::duplicate_key(&at, &member.key, &Place::new(source, first.clone()))];
    }
    check_name(&member.key).err().map(|fault| errors::bad_config_name(&at, &member.key, &fault)).into_iter().collect()
}

fn entry<T>(layer: &LayerSource, member: &tree::Member, value: T, faults: Vec<Diagnostic>) -> Entry<T> {
    Entry { value, at: Place::new(&layer.source, member.key_span.clone()), layer: layer.kind, faults }
}

/// Who runs an agent, as far as an entry says so.
#[derive(PartialEq, Eq)]
enum Runs {
    /// A command, which knows nothing of what an agent CLI is told.
    Command,
    /// An agent CLI, by name or because there are words for one.
    Backend,
    /// It does not say.
    Silent,
}

fn runs(agent: &Agent) -> Runs {
    if agent.command.is_some() {
        Runs::Command
    } else if agent.backend.is_some() || agent.system_prompt.is_some() || agent.system_prompt_text.is_some() {
        Runs::Backend
    } else {
        Runs::Silent
    }
}

/// Templates that are the agent's whole protocol: it keeps them, whoever runs it.
const PROTOCOLS: [&str; 2] = ["carbon", "helium"];

/// A later entry over an earlier one of its name, key by key. Its role stays unless it is set: who judges is not decided by who runs
/// it. What only an agent CLI can honour does not reach a command, and the other way round.
fn refine(earlier: Agent, later: Agent, project: bool) -> Agent {
    let (before, now) = (runs(&earlier), runs(&later));
    let from_command = now == Runs::Backend && before == Runs::Command;
    let to_command = now == Runs::Command;
    // Arguments are those of the program that they were written for.
    let other_program = to_command || from_command || later.backend.is_some() && earlier.backend.is_some();
    let words = later.system_prompt.is_some() || later.system_prompt_text.is_some();
    let is_protocol = |template: &Text| PROTOCOLS.contains(&template.value.as_str());
    let template = earlier.template.filter(|template| !to_command || is_protocol(template));
    let mut env = earlier.env;
    env.extend(later.env);
    let keep = |key: Option<Text>| key.filter(|_| !to_command);
    let mut cli = if to_command { CliValues::new() } else { earlier.cli };
    cli.extend(later.cli);
    Agent {
        description: later.description.or(earlier.description),
        // The two spellings of the default prompt are one key, or an earlier inline prompt would mask a later file.
        said: if later.said.is_silent() { earlier.said } else { later.said },
        system_prompt: later.system_prompt.or(keep(earlier.system_prompt).filter(|_| !words)),
        system_prompt_text: later.system_prompt_text.or(keep(earlier.system_prompt_text).filter(|_| !words)),
        cli,
        template: later.template.or(template),
        role: later.role.or(earlier.role),
        verdict: later.verdict.or(earlier.verdict),
        min_score: later.min_score.or(earlier.min_score),
        backend: later.backend.or(keep(earlier.backend)),
        command: later.command.or(earlier.command.filter(|_| now != Runs::Backend)),
        args: later.args.or(earlier.args.filter(|_| !other_program)),
        env,
        deliver: later.deliver.or(earlier.deliver.filter(|_| !other_program)),
        output: later.output.or(earlier.output.filter(|_| !other_program)),
        permissions: later.permissions.or(earlier.permissions.filter(|_| !to_command)),
        timeout: later.timeout.or(earlier.timeout),
        idle_timeout: later.idle_timeout.or(earlier.idle_timeout),
        isolation: later.isolation.over(earlier.isolation, project),
    }
}

/// A marker must survive the decoration rule of the line, and must not be a word that agents say by chance.
fn is_usable_marker(marker: &str) -> bool {
    let mut characters = marker.chars();
    marker.len() >= 4
        && marker.len() <= 200
        && characters
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric() || matches!(first, '<' | '[' | '@' | '#'))
        && marker.chars().next_back().is_some_and(|last| !matches!(last, '*' | '_' | '`'))
        && characters.all(|next| next.is_ascii_graphic())
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
