//! The headless command of a backend: its arguments, its permissions, its system prompt.

use super::context::{Context, Faults, named_path};
use super::{SystemPart, errors};
use crate::agent::{
    AttemptTool, ContractKind, EVALUATION_SCHEMA, Named, OWN_PROGRAM, PROGRAM, allowed, backend, contract,
    default_backend, fill, fill_list, find_command, level_words, tool_words,
};
use crate::chain::{Agent, CLI_KEYS, CliValue, CliValueKind, Form, LayerKind, Level, Permissions};
use crate::checks::Budget;
use crate::prompt::{Late, Segment, expand_config, read_prompt_file, text};
use crate::source::{Diagnostic, MarkdownHead, Place, Text};
use std::path::PathBuf;
use std::time::Duration;

/// Returns the backend of an agent: its own, or the default one for an agent that has only a system prompt.
pub(super) fn backend_of<'a>(
    context: &Context<'a>,
    agent: &Agent,
    at: &Place,
) -> Result<Option<Named<'a>>, Vec<Diagnostic>> {
    let config = context.request.config;
    if let Some(name) = &agent.backend {
        if agent.command.is_some() {
            return Err(vec![errors::command_and_backend(&name.at)]);
        }
        return backend(name, config).map(Some);
    }
    let only_system_prompt =
        agent.command.is_none() && (agent.system_prompt.is_some() || agent.system_prompt_text.is_some());
    if !only_system_prompt {
        return Ok(None);
    }
    default_backend(config, context.files, context.env, at).map(Some)
}

/// Returns the keys set for an agent that only a backend supports, with their places.
pub(super) fn backend_fields(agent: &Agent) -> impl Iterator<Item = (&'static str, Place)> {
    let cli =
        agent.cli.iter().filter(|(_, value)| !value.values.is_empty()).map(|(key, value)| (*key, value.at.clone()));
    let system = agent.system_prompt.as_ref().or(agent.system_prompt_text.as_ref());
    let system = system.map(|text| ("systemPrompt", text.at.clone()));
    cli.chain(system).chain(agent.permissions.as_ref().map(|(_, at)| ("permissions", at.clone())))
}

/// What an agent is asked for, and how.
pub(super) struct Task {
    /// What it is asked to do.
    pub(super) asked: ContractKind,
    /// Whether it is started again until its marker.
    pub(super) looped: bool,
    /// The tools that it is offered, if its backend can be given any.
    pub(super) tools: &'static [AttemptTool],
}

/// A headless command.
pub(super) struct Headless {
    pub(super) program: Option<PathBuf>,
    pub(super) argv: Vec<String>,
    /// The arguments with values that are known only during the run: its tools, the rest of the cost limit.
    pub(super) late: Vec<Vec<Segment>>,
    pub(super) start_timeout: Option<Duration>,
    /// Arguments after those of the agent and the step.
    pub(super) last: Vec<String>,
    /// Environment variables, unless the user has set them.
    pub(super) env: Vec<(String, String)>,
    /// Environment variables that express the permissions, whatever else is set.
    pub(super) level_env: Vec<(String, String)>,
    /// Environment variables that offer it tools, unless the user has set them.
    pub(super) tools_env: Vec<(String, Vec<Segment>)>,
    /// Whether the backend is built in, so that its values may be shown.
    pub(super) ours: bool,
    /// The meanings of exit codes, one per line.
    pub(super) exits: Vec<String>,
    pub(super) permissions: Permissions,
    /// The parts of the system prompt, if it is passed apart.
    pub(super) system: Vec<SystemPart>,
    /// The system prompt, if it has to be at the head of the prompt.
    pub(super) preface: Option<String>,
}

impl Headless {
    /// Returns the arguments that come before the agent's own.
    pub(super) fn words(&self) -> Vec<Vec<Segment>> {
        self.argv.iter().map(|word| text(word.as_str())).chain(self.late.iter().cloned()).collect()
    }
}

/// Returns the path of a file that an agent's key names.
fn named_file(context: &Context<'_>, value: &CliValue, faults: &mut Faults) -> Option<String> {
    let name = Text { value: value.values.first()?.clone(), at: value.at.clone() };
    let path = named_path(context, &name, faults)?;
    if context.files.kind(&path).is_err() {
        faults.0.push(errors::named_file_missing(&name.at, &path));
    }
    Some(path.display().to_string())
}

/// Builds the headless command of a backend.
pub(super) fn backend_command(
    context: &Context<'_>,
    named: Named<'_>,
    agent: &Agent,
    at: &Place,
    task: &Task,
    faults: &mut Faults,
) -> Headless {
    let (backend, asked) = (named.backend, task.asked);
    let mut argv = backend.arguments.clone().unwrap_or_default();
    let env: Vec<(String, String)> = backend.env.clone().into_iter().collect();
    let mut level_env = Vec::new();
    let judges = matches!(asked, ContractKind::Verdict(_));
    let permissions = permissions_of(context, named, agent, judges);
    if let Some(level) = level(context, named, agent, at, permissions, faults) {
        let allowed = allowed(context.request.root, context.request.config, context.files);
        // In an evaluation, a judge does not use verbs.
        let (words, env) = level_words(backend, level, &allowed, judges && context.request.part.is_none());
        argv.extend(words);
        level_env.extend(env);
        if context.env.is_root() {
            level_env.extend(level.root_env.clone());
        }
    }
    // A variable that the user has set for the same purpose is kept, and the agent gets no tools.
    let is_free = |(name, _): &(String, String)| context.env.var(name).is_none() && !agent.env.contains_key(name);
    let tools =
        tool_words(backend, task.tools).filter(|tools| !tools.names.is_empty() && tools.env.iter().all(is_free));
    let tools = tools.unwrap_or_default();
    let system = system_prompt(context, agent, task, &tools.names, faults);
    let keeps_own = backend.own_instructions.as_deref().is_some_and(|own| has_own_instructions(context, own, at));
    let whole = system.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n\n");
    let (system, preface) = match backend.system_prompt.as_ref().filter(|_| !keeps_own && !system.is_empty()) {
        Some(words) => {
            argv.extend(fill(words, &whole));
            (system, None)
        }
        None => (Vec::new(), (!whole.is_empty()).then_some(whole)),
    };
    for key in &CLI_KEYS {
        let values = match (agent.cli.get(key.name), key.kind) {
            (Some(value), CliValueKind::File) => match named_file(context, value, faults) {
                Some(path) => vec![path],
                None => continue,
            },
            (Some(value), _) => value.values.clone(),
            // The limit of the profile, if one was chosen and the program supports such a limit.
            (None, _) if key.name == "maxTurns" && context.request.settings.budgeted && asked == ContractKind::Work => {
                vec![context.request.settings.profile.budget().turns.to_string()]
            }
            (None, _) => continue,
        };
        match (backend.cli.get(key.name), agent.cli.get(key.name)) {
            (Some(words), _) => argv.extend(fill_list(words, &values)),
            (None, Some(value)) if !values.is_empty() => {
                faults.0.push(errors::backend_cannot_honour(&value.at, key.name, named.name));
            }
            _ => {}
        }
    }
    if agent.deliver.is_some_and(|deliver| Some(deliver) != backend.deliver) {
        faults.0.push(errors::backend_cannot_honour(at, "deliver", named.name));
    }
    let last = backend.last.clone().unwrap_or_default();
    let program = program(context, named, at, faults);
    let ours = context.request.config.backends.get(named.name).is_some_and(|entry| entry.layer == LayerKind::BuiltIn);
    let exits = backend.exits.clone().unwrap_or_default();
    let limited = context.request.settings.limits.clone().or(context.request.config.limits.clone()).cost.is_some();
    let budget = backend.max_cost.iter().flatten().filter(|_| limited).map(|word| late(word, "{}", Late::Budget));
    let program_of = |word: &String| late(word, PROGRAM, Late::OwnProgram);
    let forced = backend.schema.iter().flatten().filter(|_| asked == ContractKind::Verdict(Form::Evaluation));
    let forced = forced.map(|word| late(&word.replace("{}", EVALUATION_SCHEMA), "{file}", Late::SchemaFile));
    let late = forced.chain(tools.arguments.iter().map(program_of)).chain(budget).collect();
    let tools_env = tools.env.iter().map(|(name, value)| (name.clone(), program_of(value))).collect();
    let start_timeout = backend.start_timeout;
    Headless {
        program,
        argv,
        late,
        start_timeout,
        last,
        env,
        level_env,
        tools_env,
        ours,
        exits,
        permissions,
        system,
        preface,
    }
}

/// Returns whether the user has set the `[file, key]` of a settings file that forkhestra's instructions would replace.
fn has_own_instructions(context: &Context<'_>, own: &[String], at: &Place) -> bool {
    let [file, key] = own else { return false };
    let file = Text { value: file.clone(), at: at.clone() };
    let Ok(file) = expand_config(&file, &context.vars, context.env) else { return false };
    let path = super::context::path_of(&file, context.request.root, context.env);
    let Ok(bytes) = context.files.read(&path) else { return false };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // Keys before the first table of a TOML file belong to the file itself.
    let own = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    own.filter_map(|line| line.split_once('=')).any(|(name, _)| name.trim().trim_matches('"') == key)
}

/// Returns an argument in which this placeholder is replaced by a late value.
pub(super) fn late(word: &str, placeholder: &str, value: Late) -> Vec<Segment> {
    let Some((before, after)) = word.split_once(placeholder) else { return text(word) };
    let known = |part: &str| (!part.is_empty()).then(|| Segment::Text(part.into()));
    [known(before), Some(Segment::Late(value)), known(after)].into_iter().flatten().collect()
}

fn program(context: &Context<'_>, named: Named<'_>, at: &Place, faults: &mut Faults) -> Option<PathBuf> {
    let Some(program) = &named.backend.program else {
        faults.0.push(errors::backend_without_program(at, named.name));
        return None;
    };
    if program.value == OWN_PROGRAM {
        let entry = context.request.config.backends.get(named.name);
        if entry.is_some_and(|entry| entry.layer != LayerKind::BuiltIn) {
            faults.0.push(errors::own_program_elsewhere(at));
            return None;
        }
        return Some(context.request.own_program.to_path_buf());
    }
    let base = &program.at.source.base;
    let found = find_command(&program.value, base, at, context.files, context.env);
    faults.one(found.map_err(|fault| match &named.backend.install {
        Some(install) => fault.help(format!("install it: {install}")),
        None => fault,
    }))
}

/// Returns what an agent may do without asking. An agent that answers, evaluates or judges may only read by default; a
/// judge whose backend cannot enforce that gets the lowest level that it can.
fn permissions_of(context: &Context<'_>, named: Named<'_>, agent: &Agent, judges: bool) -> Permissions {
    let own = agent.permissions.as_ref().map(|(level, _)| *level);
    let knows = |level: &Permissions| named.backend.permissions.contains_key(level.name());
    let usual = match (judges, context.request.part.is_some()) {
        (true, _) => lowest(knows).unwrap_or_default(),
        (false, true) if knows(&Permissions::Read) => Permissions::Read,
        (false, _) => Permissions::default(),
    };
    // `--permissions` sets what agents may change. A judge changes nothing, unless its own entry allows it.
    let typed = context.request.settings.permissions.filter(|_| !judges || own.is_some());
    typed.or(own).unwrap_or(usual)
}

/// Returns the lowest level that a backend can enforce.
fn lowest(knows: impl Fn(&Permissions) -> bool) -> Option<Permissions> {
    [Permissions::Read, Permissions::Edit, Permissions::Full].into_iter().find(knows)
}

/// Returns the backend's settings for a permission level, which it must support.
fn level<'a>(
    context: &Context<'_>,
    named: Named<'a>,
    agent: &Agent,
    at: &Place,
    wanted: Permissions,
    faults: &mut Faults,
) -> Option<&'a Level> {
    let level = named.backend.permissions.get(wanted.name());
    if level.is_none() {
        let at = match &agent.permissions {
            Some((_, at)) if context.request.settings.permissions.is_none() => at,
            _ => at,
        };
        let known: Vec<&str> = named.backend.permissions.keys().map(String::as_str).collect();
        faults.0.push(errors::no_such_permissions(at, named.name, wanted.name(), &known));
    }
    level
}

/// Returns the headless contract, followed by the agent's own system prompt; nothing if that cannot be read.
fn system_prompt(
    context: &Context<'_>,
    agent: &Agent,
    task: &Task,
    tools: &[String],
    faults: &mut Faults,
) -> Vec<SystemPart> {
    let asked = task.asked;
    let own = match (&agent.system_prompt_text, &agent.system_prompt) {
        (Some(said), _) => Some((said.at.to_string(), said.value.clone())),
        (None, Some(name)) => {
            let Some(path) = named_path(context, name, faults) else { return Vec::new() };
            let text = faults.one(read_prompt_file(context.files, &path, &name.at));
            // An agent's file of another tool begins with what only that tool reads.
            text.map(|text| MarkdownHead::of(&text).map_or(text.clone(), |head| text[head.end..].to_string()))
                .map(|text| (path.display().to_string(), text))
        }
        (None, None) => None,
    };
    let mut contract = contract(task.looped.then_some(context.marker.as_str()), asked, tools);
    if context.request.settings.budgeted && asked == ContractKind::Work {
        let Budget { commands, test_runs, installs, .. } = context.request.settings.profile.budget();
        let install = if installs { "" } else { ", and install nothing" };
        let tests = if test_runs == 1 { "1 of them a run".into() } else { format!("{test_runs} of them runs") };
        let words = format!("\n\nYour budget: at most {commands} commands, {tests} of the tests{install}.");
        contract.push_str(&words);
    }
    let contract = SystemPart { origin: "built-in instructions".into(), text: contract };
    let own = own.filter(|(_, own)| !own.trim().is_empty()).map(|(origin, text)| SystemPart { origin, text });
    std::iter::once(contract).chain(own).collect()
}
