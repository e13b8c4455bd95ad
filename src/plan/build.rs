//! Builds a plan from a chain and a config, or reports every error that would stop it, all at once.

use super::context::{Context, LONGEST_ARGUMENT, LONGEST_PATH, Request, path_of};
use super::prompt::unsubstituted;
use super::secrets::{Secrets, no_secret};
use super::{EnvDelta, Plan, PlannedStep, Root, agent, check, errors, hooks, limits, places};
use crate::agent::{BUILT_IN_CHECKS, Found, check_startable, find_all_on_path, lookup};
use crate::chain::{Config, LayerKind, PROJECT_FILES, Permissions, Role, Run, Step, lower, show};
use crate::marker;
use crate::prompt::{Segment, Vars, read_prompt_file, show as show_segments, unused};
use crate::source::{Diagnostic, Env, Files, Kind, KnownFiles, Place};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Variables that would change how checks run, since checks have all variables in their environment.
const RESERVED: [&str; 5] = ["HOME", "IFS", "PATH", "PWD", "SHELL"];

/// The default timeout of an attempt. It also stops a program that stays busy forever.
const TIMEOUT: Duration = Duration::from_hours(2);

/// Returns whether a step is an agent of the demo.
fn is_demo(step: &PlannedStep) -> bool {
    matches!(&step.kind, super::Kind::Agent { backend: Some(name), .. } if name == "demo")
}

/// Builds the plan.
///
/// # Errors
/// Every error of the chain, of what it uses, and of the files it names. Nothing was started.
pub fn build(request: &Request<'_>, files: &dyn Files, env: &dyn Env) -> Result<Plan, Vec<Diagnostic>> {
    let chain = request.chain;
    let given = request.given.iter().filter(|(name, _)| !chain.secrets.contains_key(*name));
    let given = given.map(|(name, (value, _))| (name.clone(), value.clone())).collect();
    let secrets = Secrets::of(chain, request.given);
    let declared = chain.vars.iter().map(|(name, text)| (name.clone(), text.value.clone())).collect();
    let files = &KnownFiles::new(files);
    let context = Context {
        request,
        files,
        env,
        vars: Vars::new(given, declared).with_secrets(secrets.placeholders()),
        marker: request.config.marker.as_ref().map_or(marker::DEFAULT, |marker| &marker.value).to_string(),
        shown: show(&chain.items),
    };
    let mut faults = request.config.faults.clone();
    if let Some(name) = &chain.name {
        faults.extend(request.config.chains.get(name).into_iter().flat_map(|entry| entry.faults.clone()));
    }
    let names = request.given.iter().map(|(name, (_, source))| (name, Place::new(source, 0..name.len())));
    let names = names.chain(chain.vars.iter().map(|(name, text)| (name, text.at.clone())));
    let names = names.chain(chain.secrets.iter().map(|(name, at)| (name, at.clone())));
    let reserved = names.filter(|(name, _)| RESERVED.contains(&name.as_str()) || name.starts_with("FORKHESTRA_"));
    faults.extend(reserved.map(|(name, at)| errors::reserved_variable(&at, name)));
    let (program, steps) = lower(&chain.items);
    let mut environments = HashSet::new();
    let (mut planned, mut used): (Vec<PlannedStep>, _) = (Vec::with_capacity(steps.len()), BTreeSet::new());
    let mut told: HashSet<_> = faults.iter().map(identity).collect();
    for (index, step) in steps.iter().enumerate() {
        let grouped = program.step_group[index].is_some();
        match plan_step(&context, index + 1, step, grouped, &mut used) {
            Ok(mut step) => {
                step.timeout.get_or_insert(TIMEOUT.max(step.idle_timeout.unwrap_or_default()));
                share_environment(&mut environments, &mut step);
                planned.push(step);
            }
            // A prompt shared by several steps reports its errors once.
            Err(found) => faults.extend(found.into_iter().filter(|fault| told.insert(identity(fault)))),
        }
    }
    limits::check_measurable(request, &planned, &mut faults);
    // If a step has errors, it is unknown what runs before another.
    if planned.len() == steps.len() {
        for (index, step) in planned.iter().enumerate().filter(|(_, step)| step.is_looked_for_again()) {
            let before = |other: usize| other < index || program.shares_a_group(other, index);
            let made = (0..planned.len()).any(|other| before(other) && planned[other].role() == Some(Role::Worker));
            faults.push(errors::no_command(&steps[index].name.at, &step.name, made));
        }
    }
    let hooks = hooks::hooks(&context).unwrap_or_else(|more| {
        faults.extend(more);
        Vec::new()
    });
    if faults.iter().any(Diagnostic::is_error) {
        return Err(faults);
    }
    faults.extend(unused(
        &context.vars,
        &request.given.iter().map(|(name, (_, source))| (name.clone(), Arc::clone(source))).collect(),
    ));
    let mut files: Vec<_> = request.config.files.iter().map(|file| (file.kind, file.source.name.clone())).collect();
    // The built-in layer has two files: the chains and the backends.
    files.dedup();
    let places = places(request.config, request.root, env);
    let templates = [places.templates, places.shared];
    let (guarded, lines) = (guarded(&context, &planned, &templates), lines(&context, &planned));
    let mut plan = Plan {
        chain: context.shown.clone(),
        name: chain.name.clone(),
        root: if planned.iter().any(is_demo) { Root::Temporary } else { Root::Folder(request.root.to_path_buf()) },
        marker: context.marker.clone(),
        files,
        prompt: typed_prompt(&context),
        vars: context.vars.given().clone(),
        secrets,
        steps: planned,
        program,
        limits: limits::resolve(request),
        task: request.task.cloned(),
        profile: request.settings.profile,
        guarded,
        templates,
        lines,
        hooks,
        proposes_tasks: request.proposes_tasks(),
        commits_tasks: request.config.commits_tasks == Some(true),
        keeps_awake: request.config.keep_awake != Some(false),
        redefined: None,
        warnings: faults,
    };
    if plan.has_judged_group() {
        plan.limits.attempts.get_or_insert(limits::JUDGED_ATTEMPTS);
    }
    plan.warnings.extend(judges_that_may_edit(&plan, request.config));
    for step in plan.judged_before_any_work() {
        plan.warnings.push(errors::judge_before_work(&plan.steps[step].name, &plan.chain));
    }
    plan.warnings.extend(unsubstituted(&plan.steps, &context.vars, env));
    plan.redefined = redefined(&plan, request.config);
    Ok(plan)
}

/// Returns what identifies an error: its message and its place.
fn identity(fault: &Diagnostic) -> (String, Option<(String, usize)>) {
    let place = fault.places.first().map(|(place, _)| (place.source.name.clone(), place.span.start));
    (fault.message.clone(), place)
}

fn plan_step(
    context: &Context<'_>,
    number: usize,
    step: &Step,
    grouped: bool,
    used: &mut BTreeSet<String>,
) -> Result<PlannedStep, Vec<Diagnostic>> {
    let name = step.name.value.as_str();
    let found = lookup(step, context.request.config, context.files, context.env).map_err(|fault| vec![fault])?;
    // The errors of a config entry are reported once, however many steps use it.
    let entry_faults = match &found {
        Found::Agent(entry) => &entry.faults[..],
        Found::Check(entry) => &entry.faults[..],
        Found::Program(_) | Found::BuiltInCheck => &[],
    };
    if !entry_faults.is_empty() {
        return Err(if used.insert(name.to_string()) { entry_faults.to_vec() } else { Vec::new() });
    }
    let mut planned = match found {
        Found::Agent(entry) => agent::plan_agent(context, number, step, Some(entry), grouped)?,
        Found::Program(_) => agent::plan_agent(context, number, step, None, grouped)?,
        Found::Check(entry) => check::plan_check(context, number, step, entry)?,
        Found::BuiltInCheck => check::plan_built_in(context, number, step)?,
    };
    let mut faults: Vec<Diagnostic> =
        check_startable(&planned.program, &step.name.at, context.files).err().into_iter().collect();
    check_secrets(&planned, &step.name.at, &mut faults);
    if faults.is_empty() {
        check_words(&planned, &step.name.at, &mut faults);
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    planned.hides = hidden(context, name, &planned.program);
    Ok(planned)
}

/// Returns the built-in names used by the plan that the project redefines: an unknown project may run anything by them.
fn redefined(plan: &Plan, config: &Config) -> Option<(Vec<String>, String)> {
    let is_theirs = |name: &String| {
        let check = || config.checks.get(name).is_some_and(|entry| entry.layer == LayerKind::Project);
        config.redefined.contains(name) || BUILT_IN_CHECKS.contains(&name.as_str()) && check()
    };
    let used = plan.name.iter().chain(plan.steps.iter().map(|step| &step.name));
    let mut names: Vec<String> = used.filter(|name| is_theirs(name)).cloned().collect();
    let mut known = BTreeSet::new();
    names.retain(|name| known.insert(name.clone()));
    let file = plan.files.iter().find(|(kind, _)| *kind == LayerKind::Project)?.1.clone();
    (!names.is_empty()).then_some((names, file))
}

/// Returns a warning for each judge that may edit files although no config asked for that.
fn judges_that_may_edit(plan: &Plan, config: &Config) -> Vec<Diagnostic> {
    let asked =
        |step: &&PlannedStep| config.agents.get(&step.name).is_some_and(|entry| entry.value.permissions.is_some());
    let judges = plan.steps.iter().filter(|step| step.role() == Some(Role::Judge)).filter(|step| !asked(step));
    let warning = |step: &PlannedStep| match (step.permissions(), &step.kind) {
        (Some(level @ (Permissions::Edit | Permissions::Full)), super::Kind::Agent { backend: Some(backend), .. }) => {
            Some(errors::judge_may_edit(&step.name, backend, level.name()))
        }
        _ => None,
    };
    judges.filter_map(warning).collect()
}

/// Returns the paths that determine how a run goes: the config of the project and of the user, the templates, and what
/// judges run and read.
fn guarded(context: &Context<'_>, steps: &[PlannedStep], templates: &[PathBuf]) -> Vec<PathBuf> {
    let request = context.request;
    let mut guarded: Vec<PathBuf> = PROJECT_FILES.iter().map(|name| request.root.join(name)).collect();
    guarded.extend_from_slice(templates);
    let home = |name: &str| context.env.var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config =
        home("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| Some(home("HOME")?.join(".config")));
    guarded.extend(config.map(|config| config.join("forkhestra/chains.json")));
    for step in steps.iter().filter(|step| step.role() == Some(Role::Judge)) {
        // System programs change with updates. Programs of the project, and scripts, can be changed by agents.
        let small = matches!(context.files.kind(&step.program), Ok(Kind::File { bytes, .. }) if bytes <= SCRIPT);
        if small || step.program.starts_with(request.root) {
            guarded.push(step.program.clone());
        }
        let words = step.argv.iter().filter_map(|word| match word.as_slice() {
            [Segment::Text(word)] if word.len() < LONGEST_PATH && !word.contains('\n') => Some(request.root.join(word)),
            _ => None,
        });
        guarded.extend(words.filter(|path| matches!(context.files.kind(path), Ok(Kind::File { .. }))));
        if let Some(entry) = request.config.agents.get(&step.name) {
            let prompts = [&entry.value.system_prompt, &entry.value.prompt.file];
            guarded.extend(
                prompts.into_iter().flatten().map(|name| path_of(&name.value, &name.at.source.base, context.env)),
            );
        }
    }
    guarded.sort_unstable();
    guarded.dedup();
    guarded
}

/// The largest script, in bytes. Anything larger is taken for a binary.
const SCRIPT: u64 = 1 << 20;
/// Returns the command lines that checks run: those of the config, and those of this plan.
fn lines(context: &Context<'_>, steps: &[PlannedStep]) -> Vec<String> {
    let checks = context.request.config.checks.values().filter(|entry| entry.layer != LayerKind::BuiltIn);
    let configured = checks.filter_map(|entry| entry.value.as_ref()).map(|check| match &check.run {
        Run::Shell(line) => line.value.clone(),
        Run::Words(words) => words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "),
    });
    let planned = steps.iter().filter_map(|step| match &step.kind {
        super::Kind::Check { line, .. } => Some(line.clone()),
        super::Kind::Agent { .. } => None,
    });
    configured.chain(planned).collect()
}

/// Returns the prompt of the command line as it was given, before substitution.
fn typed_prompt(context: &Context<'_>) -> Option<String> {
    let said = context.request.prompt;
    if let Some(text) = &said.inline {
        return Some(text.value.clone());
    }
    let file = said.file.as_ref()?;
    let path = path_of(&file.value, &file.at.source.base, context.env);
    read_prompt_file(context.files, &path, &file.at).ok()
}

/// Reports secrets outside the environment: other users can see arguments (proc(5)), and prompts are stored.
fn check_secrets(step: &PlannedStep, at: &Place, faults: &mut Vec<Diagnostic>) {
    let (program, words) = step.command();
    let words = words.iter().map(|word| show_segments(word)).chain([program.display().to_string()]);
    let prompt = step.prompt.as_ref().map(|prompt| ("a prompt", prompt.show()));
    let texts = words.map(|word| ("an argument", word)).chain(prompt);
    let mut found: Vec<Diagnostic> = texts.filter_map(|(what, text)| no_secret(at, what, &text)).collect();
    found.dedup();
    faults.extend(found);
}

/// Reports arguments and variables with a NUL byte, or longer than Linux accepts. The prompt has messages of its own.
fn check_words(step: &PlannedStep, at: &Place, faults: &mut Vec<Diagnostic>) {
    let prompt = step.prompt.as_ref().map(|prompt| &prompt.segments);
    let arguments = step.argv.iter().filter(|arg| Some(*arg) != prompt).map(|arg| ("an argument", show_segments(arg)));
    let variables = step
        .env
        .set
        .iter()
        .map(|(name, value)| ("an environment variable", format!("{name}={}", show_segments(value))));
    for (what, word) in arguments.chain(variables) {
        if word.contains('\0') {
            faults.push(errors::nul_in_word(at, what, &step.name));
        }
        if word.len() > LONGEST_ARGUMENT {
            faults.push(errors::word_too_long(at, what, &step.name, word.len(), LONGEST_ARGUMENT));
        }
    }
}

/// Shares one environment among the steps that have the same: a chain may have thousands.
fn share_environment(known: &mut HashSet<Arc<EnvDelta>>, step: &mut PlannedStep) {
    match known.get(&step.env) {
        Some(known) => step.env = Arc::clone(known),
        None => drop(known.insert(Arc::clone(&step.env))),
    }
}

/// Returns the program on PATH that has the step's name but does not run.
fn hidden(context: &Context<'_>, name: &str, runs: &Path) -> Vec<PathBuf> {
    let mut hidden = find_all_on_path(name, context.files, context.env);
    hidden.truncate(1);
    hidden.retain(|path| path != runs);
    hidden.shrink_to_fit();
    hidden
}
