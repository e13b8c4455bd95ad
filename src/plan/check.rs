//! The step of a check: a shell command line or a program, which passes with exit code 0.

use super::context::{Context, Faults, own_environment};
use super::isolation::{check_environment, isolate};
use super::secrets::with_secrets;
use super::{EnvDelta, Found, Kind, MissingCommand, PlannedStep, errors};
use crate::agent::{find_command, find_on_path};
use crate::chain::{Check, Entry, Isolation, LayerKind, Limit, Run, Step};
use crate::checks::{Kind as CheckKind, Profile, Scope, detect, wanted};
use crate::prompt::{Level, expand_config, text};
use crate::source::{Diagnostic, Text};
use indexmap::IndexMap;
use std::sync::Arc;

/// Plans a built-in check with the commands found in the project's files. Without any, it is skipped, never passed.
pub(super) fn plan_built_in(context: &Context<'_>, number: usize, step: &Step) -> Result<PlannedStep, Vec<Diagnostic>> {
    // A name that was looked up as a built-in check has a kind, unless the two lists differ.
    let Some(kind) = CheckKind::named(&step.name.value) else {
        return Err(vec![errors::unknown_check(&step.name.at, &step.name.value)]);
    };
    let detected = detect(context.request.root, context.files);
    let profile = context.request.settings.profile;
    let mut wanted = wanted(kind, profile, true, &detected, context.request.config);
    let tests = context.request.task.map_or("", |task| task.tests.trim());
    // If what shows that the task is done is a command, it runs with the others.
    if kind == CheckKind::Verify
        && is_command(context, tests)
        && !wanted.commands.iter().any(|command| command == tests)
    {
        wanted.commands.push(tests.to_string());
        wanted.parts.push("the task's tests");
    }
    let at = step.name.at.clone();
    if kind == CheckKind::Verify && profile == Profile::Strict && !wanted.missing.is_empty() {
        return Err(vec![errors::strict_needs(&at, &wanted.missing)]);
    }
    let line = Text { value: if wanted.commands.is_empty() { ":".into() } else { wanted.line() }, at: at.clone() };
    let check = Check {
        description: None,
        run: Run::Shell(line),
        env: IndexMap::new(),
        // It shows what is wrong; the agents after it are there to fix it.
        optional: kind == CheckKind::Diagnose,
        timeout: Some(wanted.timeout),
        isolation: Isolation::default(),
    };
    let entry = Entry { value: Some(check), at, layer: LayerKind::BuiltIn, faults: Vec::new() };
    let mut planned = plan_check(context, number, step, &entry)?;
    planned.found = Found::Config(LayerKind::BuiltIn, "built-in, from the project's files".into());
    let Kind::Check { skipped, line, absence, parts, .. } = &mut planned.kind else { return Ok(planned) };
    *parts = wanted.parts.iter().map(ToString::to_string).zip(wanted.commands.iter().cloned()).collect();
    // For display, without the markers that name each command in the output.
    *line = wanted.commands.join(" && ");
    let diagnoses = kind == CheckKind::Diagnose;
    if !wanted.commands.is_empty() {
        let tiny = diagnoses && profile != Profile::Strict && scope(context) == Scope::Tiny;
        *skipped = tiny.then(|| "the work is tiny; --scope normal runs it".into());
    } else if diagnoses || is_built_in(context) {
        *skipped = Some(format!("no command was found for `{}`", step.name.value));
        *absence = (!diagnoses).then_some(MissingCommand::Unverified);
    } else {
        let words = ["verify", &step.name.value, "--profile", profile.name()];
        *line = format!("forkhestra {}", words.join(" "));
        *absence = Some(MissingCommand::LookedForAgain);
        planned.program = context.request.own_program.to_path_buf();
        // Not in the line: it only says who reads the output.
        planned.argv = words.into_iter().chain(["--as-step"]).map(text).collect();
    }
    Ok(planned)
}

/// Returns whether a line starts with something that a shell can run, as opposed to being a description.
fn is_command(context: &Context<'_>, line: &str) -> bool {
    const BUILT_IN: [&str; 12] = ["test", "[", "[[", "cd", "!", "(", "{", "if", "for", "while", "set", "export"];
    let Some(first) = line.split_whitespace().find(|word| !is_assignment(word)) else { return false };
    let is_path = || first.contains('/') && context.files.kind(&context.request.root.join(first)).is_ok();
    BUILT_IN.contains(&first) || is_path() || find_on_path(first, context.files, context.env).is_some()
}

/// Returns whether an argument is a `NAME=value` before a command.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|next| next.is_ascii_alphanumeric() || next == b'_')
    })
}

/// Returns whether the chain is a built-in one, made for any project.
fn is_built_in(context: &Context<'_>) -> bool {
    let request = context.request;
    let entry = request.chain.name.as_ref().and_then(|name| request.config.chains.get(name));
    entry.is_some_and(|entry| entry.layer == LayerKind::BuiltIn)
}

/// Returns the size of the work: as specified, else estimated from the wording of the prompt.
fn scope(context: &Context<'_>) -> Scope {
    let request = context.request;
    let asked = request.prompt.inline.as_ref().or(request.chain.prompt.inline.as_ref());
    request.settings.scope.unwrap_or_else(|| asked.map_or(Scope::Normal, |asked| Scope::of(&asked.value)))
}

/// Plans a step whose name is a check of the config.
pub(super) fn plan_check(
    context: &Context<'_>,
    number: usize,
    step: &Step,
    entry: &Entry<Option<Check>>,
) -> Result<PlannedStep, Vec<Diagnostic>> {
    let mut faults = Faults::default();
    if step.limit != Limit::Once {
        faults.0.push(errors::check_with_a_count(&step.name.at, &step.name.value));
    }
    // An entry that could not be read has its own errors and does not get here.
    let Some(check) = &entry.value else { return Err(faults.0) };
    let mut set = own_environment(context);
    let (program, argv, line) = match &check.run {
        // Variables are passed through the environment and never spliced into the line.
        Run::Shell(line) => {
            context.vars.note_mentioned(&line.value);
            set.extend(context.vars.all().into_iter().map(|(name, value)| (name, with_secrets(&value))));
            let shell = find_command("/bin/sh", context.request.root, &line.at, context.files, context.env);
            (faults.one(shell), vec![text("-c"), text(&line.value)], line.value.clone())
        }
        Run::Words(words) => {
            let values: Vec<String> =
                words.iter().filter_map(|word| faults.many(expand_config(word, &context.vars, context.env))).collect();
            // Shown as written: a value from the environment may be secret.
            let line = shlex::try_join(words.iter().map(|word| word.value.as_str())).unwrap_or_default();
            let program = values.first().zip(words.first()).and_then(|(program, word)| {
                let base = &word.at.source.base;
                faults.one(find_command(program, base, &word.at, context.files, context.env))
            });
            (program, values.into_iter().skip(1).map(text).collect(), line)
        }
    };
    for (name, value) in &check.env {
        if let Some(value) = faults.many(expand_config(value, &context.vars, context.env)) {
            set.push((name.clone(), with_secrets(&value)));
        }
    }
    let levels = [&check.isolation, &context.request.config.isolation];
    let isolation = isolate(
        context,
        &levels,
        program.as_deref(),
        (&entry.at, context.request.config.is_project(&entry.at)),
        &mut faults,
    );
    let env = Arc::new(EnvDelta { set, ..EnvDelta::default() });
    check_environment(isolation.as_ref(), &env, &entry.at, &mut faults);
    let Some(program) = program.filter(|_| faults.0.is_empty()) else { return Err(faults.0) };
    Ok(PlannedStep {
        number,
        name: step.name.value.clone(),
        kind: Kind::Check { optional: check.optional, line, skipped: None, absence: None, parts: Vec::new() },
        limit: Limit::Once,
        idle_timeout: None,
        start_timeout: None,
        timeout: context.request.settings.timeout.or(step.timeout).or(check.timeout),
        found: Found::Config(entry.layer, entry.at.to_string()),
        hides: Vec::new(),
        folder: None,
        program,
        argv,
        isolation: isolation.map(Box::new),
        env,
        prompt: None,
        continuation: None,
        variants: Vec::new(),
        level: Level::None,
    })
}
