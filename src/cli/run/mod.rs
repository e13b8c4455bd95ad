//! `run`: builds a plan, then shows it or runs it.

pub(super) mod chain;
pub(super) mod demo;
pub(super) mod detach;
pub(super) mod execute;
pub(super) mod names;
pub(super) mod output;
pub(super) mod resume;
pub(super) mod sandbox;
pub(super) mod setup;
pub(super) mod start_at;
pub(super) mod survivors;

use crate::agent::backend;
use crate::chain::{Chain, CliValue, Config, PromptSource};
use crate::cli::args::RunArgs;
use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::people::no_run_by_a_judge;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::run::chain::{TypedVars, add_secrets, chosen};
use crate::cli::run::execute::{NewStart, QueueRun, start};
use crate::cli::run::output::Output;
use crate::cli::run::setup::{with_chooser, with_setup};
use crate::cli::run::start_at::{check_start, wait_for_start};
use crate::cli::task::errors::unknown;
use crate::cli::task::facts::facts;
use crate::cli::trust::untrusted;
use crate::cli::work;
use crate::journal::{Journal, JournalError};
use crate::plan::{Overrides, Plan, Request, TaskFacts, build, digest, to_json};
use crate::proc::capture;
use crate::report::{EarlierRuns, Paint, dry_run, print_error, render};
use crate::runner::Replan;
use crate::source::{Diagnostic, Place, Source, Text};
use crate::world::World;
use std::borrow::Cow;
use std::path::Path;

/// Runs a chain, or shows what it would do.
pub(in crate::cli) fn run(world: &World, common: &Common, args: &RunArgs) -> Answered {
    run_as(world, common, args, None)
}

/// Runs a chain for a task of a queue.
pub(in crate::cli) fn run_of_queue(world: &World, common: &Common, args: &RunArgs, queue: QueueRun) -> Answered {
    run_as(world, common, args, Some(queue))
}

fn run_as(world: &World, common: &Common, args: &RunArgs, queue: Option<QueueRun>) -> Answered {
    no_run_by_a_judge(world)?;
    let project = project(world, common);
    // Before the config is used for anything: an agent may have broken it.
    let wants_to_run = Some(()).filter(|()| !args.dry_run);
    if let Some(fault) = wants_to_run.and_then(|()| untrusted(world, common, &project, args.options.accept_changes)) {
        return Err(fault.into());
    }
    if let Some(fault) =
        args.task.as_ref().filter(|_| !args.dry_run).and_then(|_| disbelieved(&project, args.options.accept_changes))
    {
        return Err(fault.into());
    }
    let chosen = chosen(world, args, &project).and_then(|(chain, mut given)| {
        add_secrets(world, &chain, &mut given, &project, args.dry_run)?;
        Ok((chain, given))
    });
    let (chain, given) = chosen?;
    let said = said_of(world, args.prompt.as_deref(), args.prompt_file.as_deref(), &project);
    let typed = said.and_then(|said| {
        let task =
            args.task.as_ref().map(|id| task_of(world, &project, id)).transpose().map_err(|fault| vec![fault])?;
        let said = if said.is_silent() { task.as_ref().map_or(said, |task| said_by(task, &project)) } else { said };
        Ok(Typed { prompt: said, overrides: args.options.overrides(), task })
    });
    let typed = typed?;
    let base = args.options.base.as_deref().and_then(|base| no_commit(&project, base));
    let others: Vec<Diagnostic> = base.into_iter().chain(check_start(world, args.start_at.as_ref()).err()).collect();
    let mut plan = match planned(world, &project, &chain, &given, &typed) {
        Ok(plan) if others.is_empty() => plan,
        Ok(_) => return Err(others.into()),
        Err(faults) => return Err(faults.into_iter().chain(others).collect::<Vec<_>>().into()),
    };
    if let Some(fault) = args.digest.as_deref().and_then(|given| another_plan(&plan, given)) {
        return Err(fault.into());
    }
    if let Some(fault) = args.made.as_ref().and_then(|made| work::another_plan(made, &project, &plan)) {
        return Err(fault.into());
    }
    let reads_stdin = reads_stdin(args.prompt.as_deref(), args.prompt_file.as_deref());
    // With `--start-at`, this is checked when the time has come.
    let is_asked = |world: &World| !reads_stdin && args.start_at.is_none() && world.stdin().has_unread_data();
    let told = is_asked(world);
    plan.warnings.extend(told.then(unread_stdin));
    if args.dry_run {
        if !common.quiet {
            print_error(&render(&plan.warnings, Paint::for_stderr(world)));
        }
        let earlier = earlier_runs(&project, plan.name.as_deref(), &plan.chain);
        return Ok(answer(&if args.json {
            let mut json = to_json(&plan);
            json["earlier"] = serde_json::to_value(earlier).unwrap_or_default();
            json_line(json)
        } else {
            dry_run(&plan, earlier.as_ref(), Paint::for_stdout(world), common.verbose)
        }));
    }
    let output = Output::of(world, common, &args.told.with_json(args.json))?;
    if let Some(typed) = &args.start_at {
        // The config is read again when the time has come.
        wait_for_start(world, common, typed, plan.keeps_awake)?;
        // Standard input can be read only once.
        let piped = if reads_stdin { plan.prompt.clone() } else { None };
        let again = RunArgs { start_at: None, ..args.clone() };
        let again = if reads_stdin { RunArgs { prompt: piped, prompt_file: None, ..again } } else { again };
        return run_as(world, common, &again, queue);
    }
    let replan = || planned(world, &project, &chain, &given, &typed);
    let new = NewStart {
        overrides: typed.overrides.clone(),
        queue,
        wait: args.wait,
        replan: args.options.accept_changes.then_some(Replan(&replan)),
    };
    let exit = start(world, common, &output, &plan, new);
    // The program that writes into the pipe may have been slower than this start.
    if !told && !common.quiet && is_asked(world) {
        print_error(&render(&[unread_stdin()], Paint::for_stderr(world)));
    }
    exit
}

/// Reports a plan that is not the one with the given digest.
fn another_plan(plan: &Plan, given: &str) -> Option<Diagnostic> {
    let own = digest(plan);
    (own != given).then(|| {
        Diagnostic::error(
            "run/digest",
            format!("the plan does not have the digest {given}; its digest is {own}"),
        )
        .help("look at the plan again with --dry-run, and pass the digest that it shows; the digest also covers the command line")
    })
}

/// Reports a `--base` that is not a commit.
fn no_commit(project: &Project, base: &str) -> Option<Diagnostic> {
    let commit = format!("{base}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit].map(str::to_string);
    let found = capture(Path::new("git"), &words, &project.root).is_some_and(|answer| answer.code == Some(0));
    let words = ["rev-parse", "--git-dir"].map(str::to_string);
    let is_inside = || capture(Path::new("git"), &words, &project.root).is_some_and(|answer| answer.code == Some(0));
    (!found).then(|| {
        if !is_inside() {
            let message = format!("--base needs a git repository, and {} is not in one", project.root.display());
            return Diagnostic::error("usage/base", message).help("leave out --base, or run `git init`");
        }
        Diagnostic::error("usage/base", format!("there is no commit `{base}` here"))
            .help("name a commit, a branch or a tag of this repository: --base main")
    })
}

/// Whether the prompt comes from standard input.
fn reads_stdin(prompt: Option<&str>, file: Option<&str>) -> bool {
    prompt == Some("-") || file == Some("-")
}

/// The duration and cost of earlier runs of a chain; `None` if there are none, or the journal cannot be read.
pub(in crate::cli) fn earlier_runs(project: &Project, name: Option<&str>, chain: &str) -> Option<EarlierRuns> {
    let rows = Journal::existing(&project.root).ok()??.runs().all().ok()?;
    EarlierRuns::of(&rows, name, chain)
}

/// Reports a journal that was changed from outside, unless it is accepted as it is.
pub(in crate::cli) fn disbelieved(project: &Project, accepted: bool) -> Option<Diagnostic> {
    let broken = |error: JournalError| Some(broken_journal(&error));
    let mut journal = match Journal::existing(&project.root) {
        Ok(journal) => journal?,
        Err(error) => return broken(error),
    };
    match journal.is_intact() {
        Ok(true) => None,
        Ok(false) if accepted => journal.accept().err().and_then(broken),
        Ok(false) => {
            let error = JournalError::Tampered { path: journal.path().to_path_buf(), agent: None };
            Some(Diagnostic::error("journal/tampered", error.to_string()).help(error.help()))
        }
        Err(error) => broken(error),
    }
}

/// What the command line sets in addition to the chain and its variables.
pub(in crate::cli) struct Typed {
    pub(in crate::cli) prompt: PromptSource,
    pub(in crate::cli) overrides: Overrides,
    pub(in crate::cli) task: Option<TaskFacts>,
}

/// The facts of the task that the command line names.
pub(in crate::cli) fn task_of(world: &World, project: &Project, id: &str) -> Result<TaskFacts, Diagnostic> {
    let journal = Journal::existing(&project.root).map_err(|error| broken_journal(&error))?;
    journal.map_or_else(|| Err(unknown(id, None)), |journal| facts(world, project, &journal, id))
}

/// The prompt that a task provides: its title, specification and tests.
pub(in crate::cli) fn said_by(task: &TaskFacts, project: &Project) -> PromptSource {
    let line = |text: &str, words: &str| if text.is_empty() { String::new() } else { format!("\n\n{words}") };
    let spec = line(&task.spec, &format!("The specification is in `{}`.", task.spec));
    let tests = line(&task.tests, &format!("Evidence that it is done: {}", task.tests));
    let words = format!("{}{spec}{tests}", task.title);
    let source = Source::new(format!("task {}", task.id), words.as_str(), &project.shell);
    PromptSource { inline: Some(Text { value: words, at: Place::whole(&source) }), file: None }
}

/// Builds the plan.
///
/// # Errors
/// All errors at once.
pub(in crate::cli) fn planned(
    world: &World,
    project: &Project,
    chain: &Chain,
    given: &TypedVars,
    typed: &Typed,
) -> Result<Plan, Vec<Diagnostic>> {
    let settings = typed.overrides.settings(&project.shell)?;
    let mut config = overridden(project, &typed.overrides);
    with_chooser(&mut config, project);
    let prepared = with_setup(chain, &mut config, project)?;
    let request = Request {
        chain: prepared.as_ref().unwrap_or(chain),
        config: &config,
        root: &project.root,
        prompt: &typed.prompt,
        given,
        settings: &settings,
        part: None,
        task: typed.task.as_ref(),
        own_program: world.own_program(),
    };
    let built = build(&request, world, world);
    // The option is checked even if no step uses a backend: it may be a typo.
    let named = config.backend.as_ref().filter(|_| typed.overrides.backend.is_some());
    match named.map(|name| backend(name, &config)) {
        Some(Err(unknown)) => {
            let mut faults = built.err().unwrap_or_default();
            faults.extend(unknown.into_iter().filter(|fault| !faults.contains(fault)).collect::<Vec<_>>());
            Err(faults)
        }
        _ => built,
    }
}

/// The config with the backend and the model of the command line.
fn overridden<'a>(project: &'a Project, overrides: &Overrides) -> Cow<'a, Config> {
    let mut config = Cow::Borrowed(&project.config);
    let text = |option: &str, value: &String| {
        let source = Source::new(option, value.as_str(), &project.shell);
        Text { value: value.clone(), at: Place::whole(&source) }
    };
    if let Some(backend) = &overrides.backend {
        config.to_mut().backend = Some(text("--backend", backend));
    }
    if let Some(model) = &overrides.model {
        for entry in config.to_mut().agents.values_mut() {
            let agent = &mut entry.value;
            let words = agent.system_prompt.is_some() || agent.system_prompt_text.is_some();
            let by_cli = agent.backend.as_ref().map_or(words, |backend| backend.value != "demo");
            if by_cli && agent.command.is_none() {
                let text = text("--model", model);
                agent.cli.insert("model", CliValue { values: vec![text.value], at: text.at });
            }
        }
    }
    config
}

/// The command line's level of the prompt.
///
/// # Errors
/// When standard input has to be read, and cannot be.
pub(in crate::cli) fn said_of(
    world: &World,
    prompt: Option<&str>,
    file: Option<&str>,
    project: &Project,
) -> Result<PromptSource, Vec<Diagnostic>> {
    let text = |name: &str, value: &str| {
        let source = Source::new(name, value, &project.shell);
        Some(Text { value: value.to_string(), at: Place::whole(&source) })
    };
    if reads_stdin(prompt, file) {
        if world.stdin().is_terminal() {
            return Err(vec![stdin_is_a_terminal()]);
        }
        let bytes = world.stdin().read_all().map_err(|error| vec![stdin_unreadable(&error.to_string())])?;
        let prompt = String::from_utf8(bytes).map_err(|_| vec![stdin_unreadable("it is not UTF-8")])?;
        return Ok(PromptSource { inline: text("standard input", &prompt), file: None });
    }
    let inline = prompt.and_then(|prompt| text("--prompt", prompt));
    let file = file.and_then(|file| text("--prompt-file", file));
    Ok(PromptSource { inline, file })
}

fn stdin_is_a_terminal() -> Diagnostic {
    Diagnostic::error("usage/stdin", "the prompt should come from standard input, which is a terminal")
        .help("pipe it in: forkhestra … -p - < prompt.md")
}

fn unread_stdin() -> Diagnostic {
    Diagnostic::warning("usage/unread-stdin", "standard input has data that is not read")
        .help("`-p -` uses it as the prompt; `< /dev/null` ignores it")
}

fn stdin_unreadable(why: &str) -> Diagnostic {
    Diagnostic::error("usage/stdin", format!("cannot read the prompt from standard input: {why}"))
}
