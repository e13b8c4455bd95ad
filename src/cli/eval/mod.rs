//! `eval`: measures a prompt with a suite, and improves it.

pub(super) mod args;
mod elsewhere;
mod execute;
mod slice;

use crate::cli::args::Common;
use crate::cli::config::{Project, project, shell};
use crate::cli::eval::args::{ElsewhereArgs, EvalArgs, EvalImproveArgs, EvalRunArgs, EvalVerb};
use crate::cli::eval::execute::perform;
use crate::cli::people::no_run_by_a_judge;
use crate::cli::respond::{Answered, answer, broken_journal};
use crate::cli::run::execute::{lock, worker};
use crate::cli::run::survivors::end_last;
use crate::cli::runs::history::{journal, meant};
use crate::cli::trust::untrusted;
use crate::cli::work::another_outline;
use crate::engine::{CaseFacts, EvalFacts, EvalLedger, EvalOptions, Event, EventKind, RunKind};
use crate::eval::{EvalContext, Prompts, Suite, held_out, tokens, too_few_cases};
use crate::exit::Exit;
use crate::journal::{Journal, NewRun};
use crate::plan::{Outline, OutlineStep, Overrides, Part, RunSettings, outline};
use crate::report::{Paint, evaluation_json, evaluation_text, print_error, prompt_diff, render};
use crate::source::{Diagnostic, Files, sha256_json};
use crate::unit::BundledPlan;
use crate::world::World;
use elsewhere::Elsewhere;
use std::path::{Path, PathBuf};

pub(super) use slice::{keep_answers, run_slice};

/// Carries out a command about evaluations.
pub(in crate::cli) fn eval(world: &World, common: &Common, args: &EvalArgs) -> Answered {
    match &args.verb {
        EvalVerb::Run(args) => {
            let options = options(world, common, &args.run, None, Some(&args.elsewhere));
            begin(world, common, &args.run, options, None)
        }
        EvalVerb::Improve(args) => {
            begin(world, common, &args.run, options(world, common, &args.run, Some(args), None), None)
        }
        EvalVerb::Show { run, prompt, json } => show(world, common, *run, *prompt, *json),
    }
}

/// The options of the command line, with absolute paths.
fn options(
    world: &World,
    common: &Common,
    args: &EvalRunArgs,
    improve: Option<&EvalImproveArgs>,
    elsewhere: Option<&ElsewhereArgs>,
) -> EvalOptions {
    let engine = elsewhere.and_then(|elsewhere| elsewhere.on.clone());
    let shell = shell(world, common);
    let absolute = |path: &PathBuf| shell.join(path).display().to_string();
    EvalOptions {
        improves: improve.is_some(),
        suite: absolute(&args.suite),
        prompts: args.prompts.as_ref().map(absolute),
        cases: args.case.clone(),
        jobs: args.jobs,
        slice: elsewhere.filter(|_| engine.is_some()).map_or(0, |elsewhere| elsewhere.slice),
        engine,
        fresh: args.fresh,
        holdout: improve.map_or(0.0, |improve| improve.holdout),
        seed: improve.map_or(0, |improve| improve.seed),
        generations: improve.map_or(0, |improve| improve.generations),
        max_tokens: improve.map_or(0, |improve| improve.max_tokens as usize),
        always: improve.is_some_and(|improve| improve.always),
        out: improve.and_then(|improve| improve.out.as_ref()).map(absolute),
        write: improve.is_some_and(|improve| improve.write),
        json: args.json,
    }
}

/// An evaluation that is ready to start.
struct ReadyEval {
    suite: Suite,
    prompts: Prompts,
    facts: EvalFacts,
    overrides: Overrides,
    settings: RunSettings,
    outline: Outline,
    digest: String,
    warnings: Vec<Diagnostic>,
}

impl ReadyEval {
    fn context<'a>(&'a self, world: &'a World, project: &'a Project) -> EvalContext<'a> {
        EvalContext {
            world,
            config: &project.config,
            root: &project.root,
            suite: &self.suite,
            prompts: &self.prompts,
            settings: &self.settings,
        }
    }
}

/// Begins an evaluation. `made` is the plan of another machine, if that has sliced it.
fn begin(
    world: &World,
    common: &Common,
    args: &EvalRunArgs,
    options: EvalOptions,
    made: Option<&BundledPlan>,
) -> Answered {
    no_run_by_a_judge(world)?;
    let project = project(world, common);
    if let Some(fault) = Some(()).filter(|()| !args.dry_run).and_then(|()| untrusted(world, common, &project, false)) {
        return Err(fault.into());
    }
    let overrides = args.bounds.overrides();
    let ready = prepare(world, &project, options, overrides)?;
    if let Some(made) = made {
        // It contains the path of the suite, which depends on the workspace.
        let outline = Outline { chain: made.outline.chain.clone(), ..ready.outline.clone() };
        if let Some(fault) = another_outline(made, &project, &outline) {
            return Err(fault.into());
        }
    }
    Elsewhere::check(world, &project, &ready)?;
    if !common.quiet {
        print_error(&render(&ready.warnings, Paint::for_stderr(world)));
    }
    if args.dry_run {
        return Ok(preview(world, &project, &ready));
    }
    let lock = lock(world, common, &ready.outline.chain, &project.root, args.wait)?;
    let begun = Journal::open(&project.root).and_then(|mut journal| {
        if let Err(fault) = end_last(world, common, &journal) {
            return Ok(Err(fault));
        }
        let started = &world.timestamp();
        let run =
            journal.begin(NewRun { worker: worker(), started, digest: &ready.digest, outline: &ready.outline })?;
        Ok(Ok((journal, run)))
    });
    match begun {
        Ok(Err(fault)) => Err(fault.into()),
        Ok(Ok((mut journal, run))) => {
            // Held until the run ends.
            journal.hold(lock);
            perform(world, common, &project, &ready, (journal, run), &[], &[])
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads the suite and its prompts, and reports every error.
fn prepare(
    world: &World,
    project: &Project,
    options: EvalOptions,
    overrides: Overrides,
) -> Result<ReadyEval, Vec<Diagnostic>> {
    let (path, folder) = (Path::new(&options.suite), options.prompts.as_ref().map(Path::new));
    let (suite, prompts) = (Suite::read(path, &world.relative(path), world), Prompts::read(folder, world));
    let (mut suite, prompts) = match (suite, prompts) {
        (Ok(suite), Ok(prompts)) => (suite, prompts),
        (suite, prompts) => {
            return Err(suite.err().into_iter().chain(prompts.err()).flatten().collect());
        }
    };
    suite.keep(&options.cases)?;
    let mut settings = overrides.settings(&project.shell)?;
    settings.limits = settings.limits.or(suite.limits.clone());
    let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
    if options.holdout > 0.0 && ids.len() < 2 {
        return Err(vec![too_few_cases(ids.len())]);
    }
    check_target(world, &options, &suite)?;
    let held = held_out(&ids, options.holdout, options.seed);
    let cases = ids.iter().zip(held).map(|(id, held_out)| CaseFacts { id: (*id).to_string(), held_out }).collect();
    let facts = EvalFacts {
        suite: world.relative(path),
        executor: suite.executor.value.clone(),
        evaluator: suite.evaluator.as_ref().map(|agent| agent.value.clone()),
        improver: options.improves.then(|| suite.rewriter().value.clone()),
        tokens: tokens(&suite.prompt),
        prompt: suite.prompt.clone(),
        cases,
        options,
    };
    let mut ready = ReadyEval {
        suite,
        prompts,
        facts,
        overrides,
        settings,
        outline: Outline::default(),
        digest: String::new(),
        warnings: Vec::new(),
    };
    let context = ready.context(world, project);
    let warnings = context.check(ready.facts.options.improves, ready.facts.options.max_tokens)?;
    let outline = whole_outline(&context, &ready.facts);
    ready.digest = digest(&context, &ready.facts, &outline);
    (ready.warnings, ready.outline) = (warnings, outline);
    Ok(ready)
}

/// Checks that the winning prompt can be written: better now than after hours.
fn check_target(world: &World, options: &EvalOptions, suite: &Suite) -> Result<(), Vec<Diagnostic>> {
    if options.write && suite.prompt_file.is_none() {
        let fault = Diagnostic::error(
            "eval/write",
            "--write writes to the suite's promptFile, but the prompt is in the suite itself",
        )
        .help("move it into a file and name that as `promptFile`, or use --out FILE");
        return Err(vec![fault]);
    }
    match &options.out {
        Some(out) if world.kind(Path::new(out)).is_ok() || out.ends_with('/') => {
            let fault = Diagnostic::error("eval/out", format!("{out} already exists"))
                .help("--out never overwrites: name another file");
            Err(vec![fault])
        }
        Some(out) => world.try_out(Path::new(out)).map_err(|error| {
            let fault = Diagnostic::error("eval/out", format!("{out} cannot be written: {error}"));
            vec![fault.help("name a file in a writable directory")]
        }),
        None => Ok(()),
    }
}

/// The outline of an evaluation: its agents as the steps of one run.
fn whole_outline(context: &EvalContext<'_>, facts: &EvalFacts) -> Outline {
    let suite = context.suite;
    let step = |agent, part| -> Option<OutlineStep> { outline(&context.plan(agent, part, "?").ok()?).steps.pop() };
    let mut whole = Outline {
        chain: format!("eval {} {}", if facts.options.improves { "improve" } else { "run" }, facts.suite),
        ..Outline::default()
    };
    if let Ok(plan) = context.plan(&suite.executor, Part::Answers, "?") {
        let first = outline(&plan);
        (whole.marker, whole.limits) = (first.marker, first.limits);
    }
    let evaluator = suite.evaluator.as_ref().unwrap_or(&suite.executor);
    let agents = [(&suite.executor, Part::Answers), (evaluator, Part::Evaluates), (suite.rewriter(), Part::Answers)];
    let number = if facts.options.improves {
        3
    } else if suite.evaluator.is_some() {
        2
    } else {
        1
    };
    whole.steps = agents.into_iter().take(number).filter_map(|(agent, part)| step(agent, part)).collect();
    whole
}

/// A digest of everything that is asked: prompts, cases and agents.
fn digest(context: &EvalContext<'_>, facts: &EvalFacts, outline: &Outline) -> String {
    let asked: Vec<_> =
        context.suite.cases.iter().map(|case| context.execute_prompt(&facts.prompt, case).ok()).collect();
    let expected: Vec<_> = context.suite.cases.iter().map(|case| (&case.expected, &case.criteria)).collect();
    let steps: Vec<_> = outline
        .steps
        .iter()
        .map(|step| (&step.name, &step.program, &step.backend, step.format, &step.arguments, &step.environment))
        .collect();
    let suite = (context.suite.min_score, &context.suite.examples, context.suite.score_mode, context.templates());
    sha256_json(&(asked, expected, steps, &facts.cases, suite))
}

/// `--dry-run`: prints which agent is asked what, and how often at most.
fn preview(world: &World, project: &Project, ready: &ReadyEval) -> Exit {
    let (context, facts) = (ready.context(world, project), &ready.facts);
    let Some(case) = context.suite.cases.first() else { return Exit::Success };
    let first = context.execute_prompt(&facts.prompt, case).unwrap_or_default();
    answer(&crate::report::evaluation_preview(facts, &ready.outline, &case.id, &first, Paint::for_stdout(world)))
}

/// The ledger of an evaluation; `None` if the events are not those of an evaluation.
pub(in crate::cli) fn ledger_of(events: &[Event]) -> Option<EvalLedger> {
    Some(EvalLedger::of_events(events)).filter(|ledger| ledger.facts.is_some())
}

fn show(world: &World, common: &Common, run: Option<i64>, prompt: bool, json: bool) -> Answered {
    Ok(answer(&shown(world, common, run, prompt, json)?))
}

fn shown(world: &World, common: &Common, run: Option<i64>, prompt: bool, json: bool) -> Result<String, Diagnostic> {
    let broken = |error| broken_journal(&error);
    let (_, journal) = journal(world, common)?;
    let of = |run: i64| journal.events(run).map(|events| ledger_of(&events)).map_err(broken);
    let found = if let Some(run) = run {
        let (row, _) = meant(&journal, Some(run), |_, _| true, "yet")?;
        of(row.id)?.map(|ledger| (row.id, ledger))
    } else {
        let rows = journal.runs().map_err(broken)?.into_iter().filter(|row| row.kind == RunKind::Evaluation);
        let mut found = None;
        for row in rows {
            found = of(row.id)?.map(|ledger| (row.id, ledger));
            if found.is_some() {
                break;
            }
        }
        found
    };
    let Some((run, ledger)) = found else { return Err(no_evaluation(run)) };
    let paint = Paint::for_stdout(world);
    if prompt {
        let generation = ledger.chosen.as_ref().map_or(0, |(generation, _)| *generation);
        return Ok(ledger.prompts.get(&generation).map_or_else(String::new, |known| known.prompt.clone() + "\n"));
    }
    if json {
        return Ok(evaluation_json(&ledger, run).to_string() + "\n");
    }
    Ok(evaluation_text(&ledger, run, paint, common.verbose) + &prompt_diff(&ledger, common.verbose, paint))
}

fn no_evaluation(run: Option<i64>) -> Diagnostic {
    let message = run.map_or("there is no evaluation yet".into(), |run| format!("run {run} is not an evaluation"));
    Diagnostic::error("eval/none", message)
        .help("`forkhestra runs` lists all runs; `forkhestra eval run SUITE` starts an evaluation")
}

/// Resumes an interrupted evaluation: answers in the journal are not requested again.
pub(in crate::cli) fn resume(
    world: &World,
    common: &Common,
    project: &Project,
    (mut journal, run): (Journal, i64),
    events: &[Event],
    limits: &[String],
    accept: bool,
) -> Answered {
    let ready = again(world, project, run, events, limits, accept)?;
    journal.begin_again(run, &ready.outline, worker())?;
    perform(world, common, project, &ready, (journal, run), events, limits)
}

/// Describes what a resume would do.
pub(in crate::cli) fn resume_told(
    world: &World,
    project: &Project,
    run: i64,
    events: &[Event],
    limits: &[String],
) -> Result<String, Vec<Diagnostic>> {
    let ready = again(world, project, run, events, limits, true)?;
    let ledger = ledger_of(events).unwrap_or_default();
    let judged = ledger.results.values().filter(|result| result.error.is_none()).count();
    let paint = Paint::for_stdout(world);
    Ok(format!(
        "{}\n   results that exist and are not requested again: {judged}\n\n{}\n",
        paint.bold(&format!("Resume of run {run}: {}", ready.outline.chain)),
        paint.dim("Nothing was run and nothing was written.")
    ))
}

fn again(
    world: &World,
    project: &Project,
    run: i64,
    events: &[Event],
    limits: &[String],
    accept: bool,
) -> Result<ReadyEval, Vec<Diagnostic>> {
    let facts = ledger_of(events).and_then(|ledger| ledger.facts);
    let started = events.iter().find_map(|event| match &event.event {
        EventKind::RunStarted { overrides, digest, .. } => Some((overrides.clone(), digest)),
        _ => None,
    });
    let (Some(facts), Some((mut overrides, digest))) = (facts, started) else {
        return Err(vec![no_evaluation(Some(run))]);
    };
    let later = events.iter().filter_map(|event| match &event.event {
        EventKind::RunResumed { limits, .. } => Some(limits),
        _ => None,
    });
    overrides.limits = overrides.limits.iter().chain(later.flatten()).chain(limits).cloned().collect();
    let ready = prepare(world, project, facts.options, overrides)?;
    if *digest != ready.digest && !accept {
        let fault = Diagnostic::error(
            "resume/changed",
            "the suite, its prompts or its agents have changed since the evaluation began",
        )
        .help("--accept-changes continues anyway, with the existing results; or start a new evaluation");
        return Err(vec![fault]);
    }
    Ok(ready)
}
