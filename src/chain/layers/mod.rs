//! The layers of configuration: built-in < user < project. They are merged by name; every entry keeps its origin and
//! its errors.

mod backends;
mod discovered;
mod entry;

use crate::chain::batch::{EngineSettings, Landing, WorkspaceSettings};
use crate::chain::errors;
use crate::chain::ir::{Agent, Chain, Check, HookKind, Limits, Run};
use crate::chain::isolation::{Isolation, Sandbox};
use crate::chain::json5::{Node, parse, parse_without};
use crate::chain::keys::batch::ENGINE;
use crate::chain::keys::cli::CliValues;
use crate::chain::keys::{AGENT, CHAIN, CHECK, ROOT};
use crate::chain::read;
use crate::chain::reader::Reader;
use crate::chain::validate::check;
use crate::source::{Diagnostic, Place, Text};
use entry::name_faults;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use backends::Backends;
pub use discovered::{AGENT_FILES, INSTRUCTION_FILES, SKILL_DIRS, add_discovered_agents};
pub use entry::{Entry, LayerKind, LayerSource};

/// Where a project keeps its config, relative to its root, in order of preference.
pub const PROJECT_FILES: [&str; 2] = ["forge/chains.json", "forge/chains.json5"];

/// The merged config of all layers.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The default backend.
    pub backend: Option<Text>,
    /// The directory of templates.
    pub templates: Option<Text>,
    /// The marker that ends a loop.
    pub marker: Option<Text>,
    /// Limits of a whole run, merged key by key.
    pub limits: Limits,
    /// The hooks: commands that run after an event, merged key by key.
    pub hooks: BTreeMap<HookKind, Run>,
    /// Whether the changes of a completed task are committed.
    pub commits_tasks: Option<bool>,
    /// Whether the machine is kept from sleeping during a run.
    pub keep_awake: Option<bool>,
    /// Whether agents, skills and instructions that other tools keep in the project are used. They are, by default.
    pub discover: Option<bool>,
    /// Why agents of other tools are not used, as warnings.
    pub unused: Vec<Diagnostic>,
    /// Whether the user must agree before a new or changed config of a project is used.
    pub asks_for_trust: bool,
    /// The isolation of agents and checks, as set by the project, otherwise by the user.
    pub isolation: Isolation,
    /// The isolation in the user's own config, which a project cannot lift.
    pub own_isolation: Isolation,
    /// The workspaces of several tasks at once.
    pub workspace: WorkspaceSettings,
    /// How the work of several tasks at once lands.
    pub landing: Landing,
    /// What brings work to other machines, by name, merged key by key.
    pub engines: BTreeMap<String, Entry<EngineSettings>>,
    /// Backends by name, merged key by key.
    pub backends: Backends,
    /// Agents by name.
    pub agents: IndexMap<String, Entry<Agent>>,
    /// Checks by name; the value is `None` if the check could not be read.
    pub checks: IndexMap<String, Entry<Option<Check>>>,
    /// Chains by name.
    pub chains: IndexMap<String, Entry<Chain>>,
    /// Names of built-in agents and chains that the project redefines. Built-in checks have no entries.
    pub redefined: BTreeSet<String>,
    /// Errors of the files themselves, which stop everything.
    pub faults: Vec<Diagnostic>,
    /// The files that were read, lowest layer first.
    pub files: Vec<LayerSource>,
}

impl Config {
    /// Whether a place is in the config of the project.
    #[must_use]
    pub fn is_project(&self, place: &Place) -> bool {
        let mut project = self.files.iter().filter(|file| file.kind == LayerKind::Project);
        project.any(|file| Arc::ptr_eq(&file.source, &place.source))
    }

    /// Returns the sandbox that the user's own config requires, whatever the project sets.
    #[must_use]
    pub fn demanded_sandbox(&self) -> Sandbox {
        self.own_isolation.sandbox.as_ref().map_or(Sandbox::Off, |(sandbox, _)| *sandbox)
    }

    /// Whether agents, skills and instructions of other tools are used.
    #[must_use]
    pub fn discovers(&self) -> bool {
        self.discover != Some(false)
    }
}

/// Reads and merges the layers, lowest first. It never fails: every error is in the result, with its entry if it has
/// one.
#[must_use]
pub fn load(sources: &[LayerSource]) -> Config {
    let mut config = Config::default();
    for layer in sources {
        config.files.push(layer.clone());
        // A command needs one of the built-in backends, or none.
        let parsed = match layer.kind {
            LayerKind::BuiltIn => parse_without(&layer.source, "backends"),
            _ => parse(&layer.source).map(|root| (root, Vec::new())),
        };
        match parsed {
            Ok((root, backends)) => {
                config.backends.add_unread(layer, backends);
                add(layer, &root, &mut config);
            }
            Err(fault) => config.faults.push(fault),
        }
    }
    config
}

/// Returns whether this layer is the project's and its entry redefines a built-in one.
fn redefines<T>(layer: &LayerSource, earlier: Option<&Entry<T>>) -> bool {
    layer.kind == LayerKind::Project && earlier.is_some_and(|earlier| earlier.layer == LayerKind::BuiltIn)
}

/// Adds the settings that apply to the whole config.
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
    config.discover = reader.flag("discover").or(config.discover);
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
    if let Some(workspace) = reader.get("workspace") {
        config.workspace = WorkspaceSettings::read(workspace).or(std::mem::take(&mut config.workspace));
    }
    if let Some(landing) = reader.get("landing") {
        config.landing = Landing::read(landing).or(std::mem::take(&mut config.landing));
    }
    if let Some(hooks) = reader.get("hooks") {
        config.hooks.extend(read::hooks(hooks));
    }
}

fn add(layer: &LayerSource, root: &Node<'_>, config: &mut Config) {
    let source = &layer.source;
    check(source, root, &ROOT, true, &mut config.faults);
    let reader = Reader::new(source, root);
    add_settings(layer, reader, config);
    let entries = |key| reader.get(key).into_iter().flat_map(Reader::all_members);
    for member in entries("backends") {
        config.backends.add(layer, member);
    }
    for member in entries("engines") {
        let mut faults = name_faults(source, member);
        let earlier = config.engines.remove(member.key.as_ref());
        check(source, &member.node, &ENGINE, false, &mut faults);
        let settings = EngineSettings::read(Reader::new(source, &member.node));
        let value = match earlier {
            Some(earlier) => {
                faults.extend(earlier.faults);
                settings.or(earlier.value)
            }
            None => settings,
        };
        config.engines.insert(member.key.to_string(), Entry::of(layer, &member.key_span, value, faults));
    }
    // Every backend is also an agent of the same name, with no other key set.
    for (name, at) in config.backends.offered() {
        if !config.agents.contains_key(name) {
            let text = Text { value: name.to_string(), at: at.clone() };
            let value = Agent { backend: Some(text), ..Agent::default() };
            let agent = Entry { value, at: at.clone(), layer: LayerKind::BuiltIn, faults: Vec::new() };
            config.agents.insert(name.to_string(), agent);
        }
    }
    for member in entries("agents") {
        let mut faults = name_faults(source, member);
        if member.duplicates.is_some() {
            config.agents.entry(member.key.to_string()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &AGENT, false, &mut faults);
        let agent = read::agent(Reader::new(source, &member.node));
        let earlier = config.agents.swap_remove(member.key.as_ref());
        if redefines(layer, earlier.as_ref()) {
            config.redefined.insert(member.key.to_string());
        }
        let value = match earlier {
            Some(earlier) => {
                faults.extend(earlier.faults);
                refine(earlier.value, agent, layer.kind == LayerKind::Project)
            }
            None => agent,
        };
        let entry = Entry::of(layer, &member.key_span, value, faults);
        config.agents.insert(member.key.to_string(), entry);
    }
    for member in entries("checks") {
        let mut faults = name_faults(source, member);
        if member.duplicates.is_some() {
            config.checks.entry(member.key.to_string()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &CHECK, false, &mut faults);
        let value = read::check(Reader::new(source, &member.node));
        if let Some(agent) = entries("agents").find(|agent| agent.key == member.key) {
            let at = |span| Place::new(source, span);
            let fault = errors::agent_and_check(&at(member.key_span.clone()), &member.key, &at(agent.key_span.clone()));
            // An error of the file, not of the entry: it is not known which of the two a step means.
            config.faults.push(fault);
        }
        config.checks.insert(member.key.to_string(), Entry::of(layer, &member.key_span, value, faults));
    }
    for member in entries("chains") {
        let mut faults = name_faults(source, member);
        if member.duplicates.is_some() {
            config.chains.entry(member.key.to_string()).and_modify(|entry| entry.faults.append(&mut faults));
            continue;
        }
        check(source, &member.node, &CHAIN, false, &mut faults);
        let name = Text { value: member.key.to_string(), at: Place::new(source, member.key_span.clone()) };
        let value = read::chain(&name, Reader::new(source, &member.node), &mut faults);
        let earlier = config.chains.insert(member.key.to_string(), Entry::of(layer, &member.key_span, value, faults));
        if redefines(layer, earlier.as_ref()) {
            config.redefined.insert(member.key.to_string());
        }
    }
}

/// What runs an agent, according to one entry.
#[derive(PartialEq, Eq)]
enum Runs {
    /// A command, to which the settings for backends do not apply.
    Command,
    /// A backend, by name or because the entry has a system prompt.
    Backend,
    /// The entry does not specify it.
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

/// Mandatory templates of built-in agents: they are all the instructions that these agents have. An agent keeps such a
/// template, whatever program runs it.
const PROTOCOLS: [&str; 2] = ["carbon", "helium"];

/// Merges a later entry over an earlier one of the same name, key by key. The earlier role is kept unless the later
/// entry sets one, because a role does not depend on the program that runs the agent. A command does not get settings
/// that only a backend supports, and vice versa.
fn refine(earlier: Agent, later: Agent, project: bool) -> Agent {
    let (before, now) = (runs(&earlier), runs(&later));
    let from_command = now == Runs::Backend && before == Runs::Command;
    let to_command = now == Runs::Command;
    // Arguments apply only to the program that they were written for.
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
        // The two spellings of the default prompt count as one key; otherwise an earlier inline prompt would mask a
        // later file.
        prompt: if later.prompt.is_silent() { earlier.prompt } else { later.prompt },
        system_prompt: later.system_prompt.or(keep(earlier.system_prompt).filter(|_| !words)),
        system_prompt_text: later.system_prompt_text.or(keep(earlier.system_prompt_text).filter(|_| !words)),
        cli,
        template: later.template.or(template),
        role: later.role.or(earlier.role),
        verdict: later.verdict.or(earlier.verdict),
        min_score: later.min_score.or(earlier.min_score),
        fallback: if later.backend.is_some() || to_command { later.fallback } else { earlier.fallback },
        backend: later.backend.or(keep(earlier.backend)),
        session: later.session.or(earlier.session.filter(|_| !to_command)),
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

/// Returns whether a marker can still be recognized with decoration around it (`*`, `_`, backticks), and is unlikely to
/// be printed by accident.
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
mod tests;
