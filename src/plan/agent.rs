//! The step of an agent: its program, arguments, environment and prompt.

use super::backend::{Headless, Task, backend_command, backend_fields, backend_of};
use super::context::{Context, Faults, Part, own_environment};
use super::isolation::{check_environment, isolate};
use super::prompt::{PromptRules, prefaced, prompt_text};
use super::secrets::with_secrets;
use super::template::{around, missing_variables};
use super::variants::{alternatives, continuation, first, words_of};
use super::{EnvDelta, Found, Kind, PlannedIsolation, PlannedPrompt, PlannedStep, errors};
use crate::agent::{AttemptTool, ContractKind, Format, Named, OWN_PROGRAM, find_command, tools_of};
use crate::chain::{
    Accounting, Agent, Command, Delivery, Entry, Form, LayerKind, Limit, OutputRules, Role, Step, UsageReport,
    UsageRule,
};
use crate::prompt::{Late, Level, Segment, expand_config, pick, text};
use crate::source::{Diagnostic, Place, Text};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long an agent may print nothing and use no CPU time by default.
const IDLE_TIMEOUT: Duration = Duration::from_mins(15);

/// Plans a step whose name is an entry of the config or a program on PATH, with all ways to run it.
pub(super) fn plan_agent(
    context: &Context<'_>,
    number: usize,
    step: &Step,
    entry: Option<&Entry<Agent>>,
    grouped: bool,
) -> Result<PlannedStep, Vec<Diagnostic>> {
    let nobody = Agent::default();
    let agent = entry.map_or(&nobody, |entry| &entry.value);
    let is_single = agent.fallback.is_empty() && agent.cli.get("model").is_none_or(|model| model.values.len() < 2);
    if is_single {
        return plan_one(context, number, step, (entry, agent), grouped);
    }
    let mut planned = plan_one(context, number, step, (entry, &first(agent)), grouped)?;
    // An evaluation compares what it names.
    if context.request.part.is_some() {
        return Ok(planned);
    }
    let at = entry.map_or(&step.name.at, |entry| &entry.at);
    let mut faults = Vec::new();
    for other in alternatives(agent, planned.permissions(), at) {
        match plan_one(context, number, step, (entry, &other), grouped) {
            Ok(other) => planned.variants.push(other),
            Err(more) => faults.extend(more),
        }
    }
    if faults.is_empty() { Ok(planned) } else { Err(faults) }
}

/// Plans one way to run a step.
fn plan_one(
    context: &Context<'_>,
    number: usize,
    step: &Step,
    (entry, agent): (Option<&Entry<Agent>>, &Agent),
    grouped: bool,
) -> Result<PlannedStep, Vec<Diagnostic>> {
    let mut faults = Faults::default();
    let at = entry.map_or(&step.name.at, |entry| &entry.at);
    let (level, picked) = pick(context.request.prompt, &step.prompt, &context.request.chain.prompt, &agent.prompt);
    let mut prompt = prompt_text(context, picked, level, &mut faults);
    let (role, form) = role_of(context, agent, &mut faults);

    // In an evaluation, the prompts come from its templates.
    let templated = context.request.part.is_none();
    if let Some(around) = templated.then(|| around(context, step, agent, &mut faults)).flatten() {
        missing_variables(&around, at, &mut faults);
        if let Err(error) = around.render("", &|_| None) {
            faults.0.push(errors::template_cannot_render(at, &error.to_string()));
        }
        let silent = || PlannedPrompt {
            segments: Vec::new(),
            around: None,
            deliver: Delivery::Arg,
            origin: around.template.origin().to_string(),
            stayed: Vec::new(),
        };
        prompt = Some(PlannedPrompt { around: Some(Box::new(around.clone())), ..prompt.unwrap_or_else(silent) });
    }
    let Some(named) = faults.many(backend_of(context, agent, at)) else { return Err(faults.0) };
    let is_silent = prompt.is_none() && level == Level::None && templated;
    faults.0.extend(is_silent.then(|| bare_cli(context, step, entry)).flatten());
    let task = task_of(context, step, (role, form), grouped);
    let headless = named.map(|named| backend_command(context, named, agent, at, &task, &mut faults));
    let deliver = match named {
        Some(named) => named.backend.deliver.unwrap_or(Delivery::Stdin),
        None => agent.deliver.unwrap_or(Delivery::Arg),
    };
    if let Some(preface) = headless.as_ref().and_then(|headless| headless.preface.as_deref()) {
        prompt = Some(prefaced(prompt, preface));
    }
    if let Some(prompt) = &mut prompt {
        prompt.deliver = deliver;
        let told = grouped || role == Role::Judge || context.request.task.is_some();
        if told && !prompt.around.as_ref().is_some_and(|around| around.names_feedback(role)) {
            prompt.segments.push(Segment::Late(Late::Feedback));
        }
        let slash_commands = named.is_some_and(|named| named.backend.slash_commands == Some(true));
        PromptRules { at, marker: &context.marker, grouped, slash_commands }.check(prompt, &mut faults);
    }

    let (program, mut argv) = match &headless {
        Some(headless) => (headless.program.clone(), headless.words()),
        None => program_command(context, agent, step, at, &mut faults),
    };
    let words = words_of(context, agent.args.iter().flatten().chain(&step.args).cloned(), &mut faults);
    let continuation = continuation(context, named, (agent, at), (&task, role), &words, &mut faults);
    argv.extend(words);
    argv.extend(headless.iter().flat_map(|headless| &headless.last).map(|word| text(word.as_str())));
    let templated = prompt.as_ref().is_some_and(|prompt| prompt.around.is_some());
    match prompt.as_ref().map(|prompt| (prompt.deliver, &prompt.segments)) {
        Some((Delivery::Arg, _)) if templated => argv.push(vec![Segment::Late(Late::Prompt)]),
        Some((Delivery::Arg, segments)) => argv.push(segments.clone()),
        Some((Delivery::File, _)) => argv.push(vec![Segment::Late(Late::PromptFile)]),
        _ => {}
    }
    let env = environment(context, agent, named.zip(headless.as_ref()), &mut faults);
    let isolation = isolation_of(context, step, (agent, entry), named, program.as_deref(), &mut faults);
    let timeout = context.request.settings.timeout.or(step.timeout).or(agent.timeout);
    let idle_timeout = context.request.settings.idle_timeout.or(step.idle_timeout).or(agent.idle_timeout);
    check_timers(step, timeout, idle_timeout, &mut faults);
    check_environment(isolation.as_ref(), &env, at, &mut faults);
    let Some(program) = program.filter(|_| faults.0.is_empty()) else { return Err(faults.0) };
    let (format, rules) = output_of(agent, named);
    Ok(PlannedStep {
        number,
        name: step.name.value.clone(),
        kind: Kind::Agent {
            backend: named.map(|named| named.name.to_string()),
            allows: named.and_then(|named| named.backend.cli.get("allowedTools").and(named.backend.command.clone())),
            model: named.and(agent.model().map(str::to_string)),
            format,
            accounting: accounting(named, format, rules.as_deref()),
            rules,
            role,
            form,
            least: agent.min_score.as_ref().map(|(least, _)| *least),
            permissions: headless.as_ref().map(|headless| headless.permissions),
            system: headless.as_ref().map_or_else(Vec::new, |headless| headless.system.clone()),
            exits: headless.as_ref().map_or_else(Vec::new, |headless| headless.exits.clone()),
        },
        limit: step.limit,
        timeout,
        idle_timeout: Some(idle_timeout.unwrap_or(IDLE_TIMEOUT)),
        start_timeout: headless.as_ref().and_then(|headless| headless.start_timeout),
        found: entry.map_or(Found::Path, |entry| Found::Config(entry.layer, entry.at.to_string())),
        hides: Vec::new(),
        folder: None,
        program,
        argv,
        isolation: isolation.map(Box::new),
        env: Arc::new(env),
        prompt,
        continuation,
        variants: Vec::new(),
        level,
    })
}

/// Returns the format of an agent's output, and the rules of a format that is its backend's own.
fn output_of(agent: &Agent, named: Option<Named<'_>>) -> (Format, Option<Arc<OutputRules>>) {
    let backend = named.map(|named| named.backend);
    match (agent.output, backend.and_then(|backend| backend.reader.clone())) {
        (Some(format), _) => (format, None),
        (None, Some(rules)) => (Format::Custom, Some(rules)),
        (None, None) => (backend.and_then(|backend| backend.output).unwrap_or(Format::Plain), None),
    }
}

fn check_timers(step: &Step, timeout: Option<Duration>, idle_timeout: Option<Duration>, faults: &mut Faults) {
    if let (Some(timeout), Some(idle)) = (timeout, idle_timeout)
        && idle > timeout
    {
        faults.0.push(errors::idle_longer_than_timeout(&step.name.at, idle, timeout));
    }
}

/// Returns how an agent is isolated. The demo's agents are built in and work in a directory that does not exist yet.
fn isolation_of(
    context: &Context<'_>,
    step: &Step,
    (agent, entry): (&Agent, Option<&Entry<Agent>>),
    named: Option<Named<'_>>,
    program: Option<&Path>,
    faults: &mut Faults,
) -> Option<PlannedIsolation> {
    let config = context.request.config;
    let is_ours =
        |named: &Named<'_>| named.backend.program.as_ref().is_some_and(|program| program.value == OWN_PROGRAM);
    if named.as_ref().is_some_and(is_ours) {
        return None;
    }
    let at = entry.map_or(&step.name.at, |entry| &entry.at);
    let backend = named.and_then(|named| config.backends.get(named.name));
    // Anything that the project has written, or may have: the agent, the backend, or the chain with arguments and
    // variables.
    let theirs = config.is_project(at)
        || backend.is_some_and(|backend| config.is_project(&backend.at))
        || config.backend.as_ref().is_some_and(|name| agent.backend.is_none() && config.is_project(&name.at))
        || config.is_project(&step.name.at);
    let backend = named.map(|named| &named.backend.isolation);
    let levels: Vec<_> = [Some(&agent.isolation), backend, Some(&config.isolation)].into_iter().flatten().collect();
    isolate(context, &levels, program, (at, theirs), faults)
}

/// Returns an error if a step without a prompt is the bare name of a backend, which has no instructions of its own.
fn bare_cli(context: &Context<'_>, step: &Step, entry: Option<&Entry<Agent>>) -> Option<Diagnostic> {
    let ours = entry.is_some_and(|entry| entry.layer == LayerKind::BuiltIn);
    let is_cli = ours && context.request.config.backends.contains(&step.name.value);
    is_cli.then(|| errors::cli_without_a_prompt(&step.name.at, &step.name.value, context.request.chain.name.as_deref()))
}

/// Returns what an agent is asked for, and how.
fn task_of(context: &Context<'_>, step: &Step, (role, form): (Role, Form), grouped: bool) -> Task {
    let asked = match (context.request.part, role) {
        (Some(Part::Answers), _) => ContractKind::Answer,
        (_, Role::Judge) => ContractKind::Verdict(form),
        (_, Role::Worker) => ContractKind::Work,
    };
    let looped = step.limit != Limit::Once && role == Role::Worker;
    Task { asked, looped, tools: offered_tools(context, role, form, grouped) }
}

/// Returns the tools that an agent is offered: none where nobody reads what they record.
fn offered_tools(context: &Context<'_>, role: Role, form: Form, grouped: bool) -> &'static [AttemptTool] {
    let proposes = context.request.proposes_tasks();
    let is_read = match role {
        Role::Judge => form == Form::Decision,
        Role::Worker => grouped || proposes || context.request.task.is_some(),
    };
    if is_read && context.request.part.is_none() { tools_of(role, proposes) } else { &[] }
}

/// Returns what an agent reports about its usage. A plain program is assumed to use nothing, unless its output says so.
fn accounting(named: Option<Named<'_>>, format: Format, rules: Option<&OutputRules>) -> Option<Accounting> {
    let told = match rules.map(|rules| rules.usage.as_ref()) {
        None => Accounting { tokens: format.tells_tokens(), cost: format.tells_cost() },
        Some(usage) => {
            let when = |usage: &UsageRule| if usage.adds { UsageReport::AsItGoes } else { UsageReport::AtTheEnd };
            let of =
                |tells: fn(&UsageRule) -> bool| usage.filter(|usage| tells(usage)).map_or(UsageReport::Never, when);
            Accounting { tokens: of(|usage| usage.at.len() > 1), cost: of(|usage| usage.at.contains_key("cost")) }
        }
    };
    match named {
        None => (format != Format::Plain).then_some(told),
        Some(named) if named.backend.program.as_ref().is_some_and(|program| program.value == OWN_PROGRAM) => None,
        Some(named) if named.backend.tells_cost == Some(false) => Some(Accounting { cost: UsageReport::Never, ..told }),
        Some(_) => Some(told),
    }
}

/// Returns the role of an agent and the form of its verdict: as configured, or as an evaluation needs them.
fn role_of(context: &Context<'_>, agent: &Agent, faults: &mut Faults) -> (Role, Form) {
    match context.request.part {
        Some(Part::Answers) => return (Role::Worker, Form::Decision),
        Some(Part::Evaluates) => return (Role::Judge, Form::Evaluation),
        None => {}
    }
    let role = agent.role.unwrap_or_default();
    let form = agent.verdict.as_ref().map_or(Form::Decision, |(form, _)| *form);
    if let Some((_, at)) = agent.verdict.as_ref().filter(|_| role == Role::Worker) {
        faults.0.push(errors::only_a_judge(at, "verdict"));
    }
    if let Some((_, at)) = agent.min_score.as_ref().filter(|_| form == Form::Decision) {
        faults.0.push(errors::only_an_evaluation(at));
    }
    (role, form)
}

/// Returns the program and arguments of a `command`, or the program that has the agent's name.
fn program_command(
    context: &Context<'_>,
    agent: &Agent,
    step: &Step,
    at: &Place,
    faults: &mut Faults,
) -> (Option<PathBuf>, Vec<Vec<Segment>>) {
    for (key, place) in backend_fields(agent) {
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

fn environment(
    context: &Context<'_>,
    agent: &Agent,
    backend: Option<(Named<'_>, &Headless)>,
    faults: &mut Faults,
) -> EnvDelta {
    let (mut set, mut settings) = (own_environment(context), Vec::new());
    // There is no person to close an editor or type a password.
    for (name, value) in [("GIT_EDITOR", "true"), ("GIT_TERMINAL_PROMPT", "0")] {
        if context.env.var(name).is_none() && !agent.env.contains_key(name) {
            set.push((name.to_string(), text(value)));
        }
    }
    for (name, value) in backend.iter().flat_map(|(_, headless)| &headless.env) {
        // A value set by the user, in the environment or for this agent, takes precedence.
        if context.env.var(name).is_none() && !agent.env.contains_key(name) {
            settings.push(name.clone());
            set.push((name.clone(), text(value.as_str())));
        }
    }
    for (name, value) in backend.iter().flat_map(|(_, headless)| &headless.level_env) {
        settings.push(name.clone());
        set.push((name.clone(), text(value.as_str())));
    }
    for (name, value) in backend.iter().flat_map(|(_, headless)| &headless.tools_env) {
        settings.push(name.clone());
        set.push((name.clone(), value.clone()));
    }
    if !backend.is_some_and(|(_, headless)| headless.ours) {
        // The values of a user's backend may be secret, so only their names are shown.
        settings.clear();
    }
    for (name, value) in &agent.env {
        if let Some(value) = faults.many(expand_config(value, &context.vars, context.env)) {
            set.push((name.clone(), with_secrets(&value)));
        }
    }
    let unset = backend.and_then(|(named, _)| named.backend.unset.as_deref()).unwrap_or_default();
    let unset = unset.iter().filter(|name| context.env.var(name).is_some()).cloned().collect();
    EnvDelta { set, settings, unset }
}
