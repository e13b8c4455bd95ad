//! An agent's step: its program, its arguments, its environment, its prompt.

use super::context::{Context, Faults, own_environment};
use super::{EnvDelta, Found, Kind, PlannedPrompt, PlannedStep, context, errors};
use crate::agent::{Backend, Flag, Format, backend, contract, default_backend, find_command};
use crate::chain::{Agent, Command, Delivery, Entry, Limit, Step};
use crate::marker::count_lines;
use crate::prompt::{Late, Level, Pick, Segment, expand_config, expand_prose, pick, read_prompt_file, text};
use crate::source::{Diagnostic, Place, Text};
use std::path::PathBuf;
use std::time::Duration;

/// The longest single argument that Linux takes, in bytes without the closing NUL (`MAX_ARG_STRLEN`, execve(2)).
pub(super) const LONGEST_ARGUMENT: usize = 131_071;
/// How long an agent may be silent and idle unless somebody says otherwise (V-20).
const IDLE_TIMEOUT: Duration = Duration::from_mins(15);
/// Room for the feedback that is appended in a group: two streams' characters at four bytes, and their frame.
const FEEDBACK_ROOM: usize = 2 * crate::prompt::FEEDBACK_CHARACTERS * 4 + 4_096;

/// Plans a step whose name is an entry of the config, or a program on PATH.
pub(super) fn plan_agent(
    context: &Context<'_>,
    number: usize,
    step: &Step,
    entry: Option<&Entry<Agent>>,
    grouped: bool,
) -> Result<PlannedStep, Vec<Diagnostic>> {
    let mut faults = Faults::default();
    let nobody = Agent::default();
    let agent = entry.map_or(&nobody, |entry| &entry.value);
    let at = entry.map_or(&step.name.at, |entry| &entry.at);
    let (level, picked) = pick(context.request.said, &step.said, &context.request.chain.said, &agent.said);
    let mut prompt = prompt_text(context, picked, level, &mut faults);
    let looped = step.limit != Limit::Once;

    let Some(backend) = faults.one(backend_of(context, agent, at)) else { return Err(faults.0) };
    let deliver = backend.map_or_else(|| agent.deliver.unwrap_or(Delivery::Arg), |backend| backend.deliver);
    if let Some(prompt) = &mut prompt {
        prompt.deliver = deliver;
        if grouped {
            prompt.segments.push(Segment::Late(Late::Feedback));
        }
        check_prompt(context, prompt, grouped, at, &mut faults);
    }

    let (program, mut argv) = match backend {
        Some(backend) => backend_command(context, backend, agent, at, looped, &mut faults),
        None => program_command(context, agent, step, at, &mut faults),
    };
    for arg in agent.args.iter().flatten().chain(&step.args) {
        if let Some(value) = faults.many(expand_config(arg, &context.vars, context.env)) {
            argv.push(text(value));
        }
    }
    match prompt.as_ref().map(|prompt| (prompt.deliver, &prompt.segments)) {
        Some((Delivery::Arg, segments)) => argv.push(segments.clone()),
        Some((Delivery::File, _)) => argv.push(vec![Segment::Late(Late::PromptFile)]),
        _ => {}
    }
    let env = environment(context, number, step, agent, backend, &mut faults);
    let timeout = context.request.timeout.or(step.timeout).or(agent.timeout);
    let idle_timeout = context.request.idle_timeout.or(step.idle_timeout).or(agent.idle_timeout);
    if let (Some(timeout), Some(idle)) = (timeout, idle_timeout)
        && idle > timeout
    {
        faults.0.push(errors::idle_longer_than_timeout(&step.name.at, idle, timeout));
    }
    let Some(program) = program.filter(|_| faults.0.is_empty()) else { return Err(faults.0) };
    Ok(PlannedStep {
        number,
        name: step.name.value.clone(),
        kind: Kind::Agent {
            backend: backend.map(|backend| backend.name),
            format: backend.map_or(Format::Plain, |backend| backend.output),
        },
        limit: step.limit,
        timeout,
        idle_timeout: Some(idle_timeout.unwrap_or(IDLE_TIMEOUT)),
        found: entry.map_or(Found::Path, |entry| Found::Config(entry.layer, entry.at.to_string())),
        hides: Vec::new(),
        program,
        argv,
        env,
        prompt,
        level,
    })
}

/// The agent CLI that runs it: its own, or the default for one that has nothing but a system prompt.
fn backend_of(context: &Context<'_>, agent: &Agent, at: &Place) -> Result<Option<&'static Backend>, Diagnostic> {
    if let Some(name) = &agent.backend {
        if agent.command.is_some() {
            return Err(errors::command_and_backend(&name.at));
        }
        return backend(name).map(Some);
    }
    let only_system_prompt =
        agent.command.is_none() && (agent.system_prompt.is_some() || agent.system_prompt_text.is_some());
    if !only_system_prompt {
        return Ok(None);
    }
    let config = context.request.config.backend.as_ref();
    default_backend(config, context.files, context.env, at).map(Some)
}

/// Finds the prompt's text; none for an empty one, which is no prompt.
fn prompt_text(context: &Context<'_>, picked: Pick<'_>, level: Level, faults: &mut Faults) -> Option<PlannedPrompt> {
    let command_line = level == Level::CommandLine;
    let (value, stayed, origin) = match picked {
        Pick::Silent => return None,
        Pick::Inline(said) if command_line => {
            let (value, stayed) = expand_prose(&said.value, &context.vars);
            (value, stayed, said.at.source.name.clone())
        }
        Pick::Inline(said) => {
            let value = faults.many(expand_config(said, &context.vars, context.env))?;
            (value, Vec::new(), said.at.to_string())
        }
        Pick::File(name) => {
            let path = if command_line {
                context::path_of(&name.value, &name.at.source.base, context.env)
            } else {
                path_of(context, name, faults)?
            };
            let prose = faults.one(read_prompt_file(context.files, &path, &name.at))?;
            let (value, stayed) = expand_prose(&prose, &context.vars);
            (value, stayed, path.display().to_string())
        }
    };
    if value.is_empty() {
        return None;
    }
    Some(PlannedPrompt { segments: text(value), deliver: Delivery::Arg, origin, stayed })
}

/// A path as a config names it: variables, `~`, then from the file's base.
fn path_of(context: &Context<'_>, name: &Text, faults: &mut Faults) -> Option<PathBuf> {
    let value = faults.many(expand_config(name, &context.vars, context.env))?;
    Some(context::path_of(&value, &name.at.source.base, context.env))
}

/// What no agent can be told, or not in this way (V-34, R-14; the marker's echo would end the loop).
fn check_prompt(context: &Context<'_>, prompt: &PlannedPrompt, grouped: bool, at: &Place, faults: &mut Faults) {
    let Some(Segment::Text(known)) = prompt.segments.first() else { return };
    if count_lines(known.as_bytes(), &context.marker) > 0 {
        faults.0.push(errors::marker_in_prompt(&prompt.origin, &context.marker));
    }
    if prompt.deliver == Delivery::Arg {
        let room = LONGEST_ARGUMENT - if grouped { FEEDBACK_ROOM } else { 0 };
        if known.len() > room {
            faults.0.push(errors::prompt_too_long(at, &prompt.origin, known.len(), room));
        }
        if known.contains('\0') {
            faults.0.push(errors::nul_in_prompt(at, &prompt.origin));
        }
    }
}

/// A command, or the program of the agent's name.
fn program_command(
    context: &Context<'_>,
    agent: &Agent,
    step: &Step,
    at: &Place,
    faults: &mut Faults,
) -> (Option<PathBuf>, Vec<Vec<Segment>>) {
    let fields = backend_fields(agent);
    for (key, place) in fields.into_iter().filter_map(|(key, place)| Some((key, place?))) {
        faults.0.push(errors::program_cannot_honour(&place, key, &step.name.value));
    }
    let words: Vec<Text> = match &agent.command {
        None => {
            let found = find_command(&step.name.value, context.request.root, at, context.files, context.env);
            return (faults.one(found), Vec::new());
        }
        Some(Command::Words(words)) => words.clone(),
        Some(Command::Line(line)) => {
            if let Some(words) = shlex::split(&line.value) {
                words.into_iter().map(|value| Text { value, at: line.at.clone() }).collect()
            } else {
                faults.0.push(errors::unbalanced_command(&line.at));
                return (None, Vec::new());
            }
        }
    };
    let mut expanded = words.iter().filter_map(|word| faults.many(expand_config(word, &context.vars, context.env)));
    let (program, rest) = (expanded.next(), expanded.map(text).collect());
    let Some((program, first)) = program.zip(words.first()) else {
        if faults.0.is_empty() {
            faults.0.push(errors::empty_command(at));
        }
        return (None, rest);
    };
    let home = || context.env.var("HOME").and_then(|home| home.into_string().ok());
    let program = shellexpand::tilde_with_context(&program, home);
    let base = &first.at.source.base;
    (faults.one(find_command(&program, base, &first.at, context.files, context.env)), rest)
}

/// The keys that only an agent CLI can honour, with their places where they are set.
fn backend_fields(agent: &Agent) -> [(&'static str, Option<Place>); 7] {
    let of = |text: &Option<Text>| text.as_ref().map(|text| text.at.clone());
    let list = |texts: &Option<Vec<Text>>| texts.as_ref()?.first().map(|text| text.at.clone());
    let system = agent.system_prompt.as_ref().or(agent.system_prompt_text.as_ref());
    [
        ("systemPrompt", system.map(|text| text.at.clone())),
        ("model", of(&agent.model)),
        ("maxTurns", agent.max_turns.as_ref().map(|(_, at)| at.clone())),
        ("allowedTools", list(&agent.allowed_tools)),
        ("disallowedTools", list(&agent.disallowed_tools)),
        ("mcpConfig", of(&agent.mcp_config)),
        ("settings", of(&agent.settings)),
    ]
}

/// An agent CLI's headless command.
fn backend_command(
    context: &Context<'_>,
    backend: &Backend,
    agent: &Agent,
    at: &Place,
    looped: bool,
    faults: &mut Faults,
) -> (Option<PathBuf>, Vec<Vec<Segment>>) {
    let program = match backend.program {
        Some(program) => {
            let found = find_command(program, context.request.root, at, context.files, context.env);
            faults.one(found.map_err(|fault| fault.help(format!("install it: {}", backend.install))))
        }
        None => Some(context.request.own_program.to_path_buf()),
    };
    let mut argv: Vec<Vec<Segment>> = backend.headless.iter().map(|word| text(*word)).collect();
    let file = |name: &Option<Text>, faults: &mut Faults| {
        let name = name.as_ref()?;
        let path = path_of(context, name, faults)?;
        if context.files.kind(&path).is_err() {
            faults.0.push(errors::named_file_missing(&name.at, &path));
        }
        Some(path.display().to_string())
    };
    let joined = |texts: &Option<Vec<Text>>| {
        texts.as_ref().map(|texts| texts.iter().map(|text| text.value.as_str()).collect::<Vec<_>>().join(","))
    };
    let wanted = [
        (backend.system_prompt, system_prompt(context, agent, looped, faults)),
        (backend.model, agent.model.as_ref().map(|model| model.value.clone())),
        (backend.max_turns, agent.max_turns.as_ref().map(|(turns, _)| turns.to_string())),
        (backend.allowed_tools, joined(&agent.allowed_tools)),
        (backend.disallowed_tools, joined(&agent.disallowed_tools)),
        (backend.mcp_config, file(&agent.mcp_config, faults)),
        (backend.settings, file(&agent.settings, faults)),
    ];
    for (index, (flag, value)) in wanted.into_iter().enumerate() {
        let Some(value) = value else { continue };
        match flag {
            Some(Flag::Spaced(flag)) => argv.extend([text(flag), text(value)]),
            Some(Flag::Joined(flag)) => argv.push(text(format!("{flag}={value}"))),
            None => {
                if let (key, Some(place)) = &backend_fields(agent)[index] {
                    faults.0.push(errors::backend_cannot_honour(place, key, backend.name));
                }
            }
        }
    }
    if agent.deliver.is_some_and(|deliver| deliver != backend.deliver) {
        faults.0.push(errors::backend_cannot_honour(at, "deliver", backend.name));
    }
    (program, argv)
}

/// The headless contract, then the agent's own system prompt.
fn system_prompt(context: &Context<'_>, agent: &Agent, looped: bool, faults: &mut Faults) -> Option<String> {
    let own = match (&agent.system_prompt_text, &agent.system_prompt) {
        (Some(said), _) => Some(said.value.clone()),
        (None, Some(name)) => {
            let path = path_of(context, name, faults)?;
            faults.one(read_prompt_file(context.files, &path, &name.at))
        }
        (None, None) => None,
    };
    let contract = contract(looped.then_some(context.marker.as_str()));
    Some(match own.filter(|own| !own.trim().is_empty()) {
        Some(own) => format!("{contract}\n\n{own}"),
        None => contract,
    })
}

fn environment(
    context: &Context<'_>,
    number: usize,
    step: &Step,
    agent: &Agent,
    backend: Option<&Backend>,
    faults: &mut Faults,
) -> EnvDelta {
    let mut set = own_environment(context, number, step);
    for (name, value) in &agent.env {
        if let Some(value) = faults.many(expand_config(value, &context.vars, context.env)) {
            set.push((name.clone(), text(value)));
        }
    }
    let unset = backend.map_or(&[][..], |backend| backend.unset);
    let unset = unset.iter().filter(|name| context.env.var(name).is_some()).map(|name| (*name).to_string()).collect();
    EnvDelta { set, unset }
}
