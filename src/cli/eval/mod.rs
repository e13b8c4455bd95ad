//! `eval`: measures a prompt with a suite, and improves it.

pub(super) mod args;
mod baseline;
mod compare;
mod elsewhere;
mod execute;
mod show;
mod slice;
pub(super) mod tree;

use crate::cli::args::Common;
use crate::cli::config::{Project, project, shell};
use crate::cli::eval::args::{EvalArgs, EvalImproveArgs, EvalMeasureArgs, EvalRunArgs, EvalVerb};
use crate::cli::eval::execute::perform;
use crate::cli::options::OutputArgs;
use crate::cli::people::no_run_by_a_judge;
use crate::cli::respond::{Answered, answer};
use crate::cli::run::execute::{lock, worker};
use crate::cli::run::output::Output;
use crate::cli::run::survivors::end_last;
use crate::cli::trust::untrusted;
use crate::cli::work::another_outline;
use crate::engine::{CaseFacts, ColumnFacts, EvalFacts, EvalLedger, EvalOptions, Event, EventKind, USUAL_LEVEL};
use crate::eval::{
    Case, CaseTrees, EvalContext, Prompts, Suite, held_out, matrix_refused, outputs_refused, tokens, too_few_cases,
};
use crate::exit::Exit;
use crate::journal::{Journal, NewRun};
use crate::plan::{Outline, OutlineStep, Overrides, Part, RunSettings, outline as outline_of};
use crate::report::{Paint, print_error, render};
use crate::source::{Diagnostic, Files, Text, sha256, sha256_json};
use crate::unit::BundledPlan;
use crate::world::World;
use elsewhere::Elsewhere;
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

pub(super) use slice::{keep_answers, run_slice};

/// Carries out a command about evaluations.
pub(in crate::cli) fn eval(world: &World, common: &Common, args: &EvalArgs) -> Answered {
    match &args.verb {
        EvalVerb::Run(args) => {
            let options = options(world, common, &args.run, None, Some(args));
            begin(world, common, &args.run, options, None)
        }
        EvalVerb::Improve(args) => {
            begin(world, common, &args.run, options(world, common, &args.run, Some(args), None), None)
        }
        EvalVerb::Show { run, prompt, json } => show::show(world, common, *run, *prompt, *json),
        EvalVerb::Compare { runs, json } => compare::compare(world, common, runs, *json),
    }
}

/// The options of the command line, with absolute paths.
fn options(
    world: &World,
    common: &Common,
    args: &EvalRunArgs,
    improve: Option<&EvalImproveArgs>,
    measure: Option<&EvalMeasureArgs>,
) -> EvalOptions {
    let elsewhere = measure.map(|measure| &measure.elsewhere);
    let engine = elsewhere.and_then(|elsewhere| elsewhere.on.clone());
    let shell = shell(world, common);
    let absolute = |path: &PathBuf| shell.join(path).display().to_string();
    EvalOptions {
        improves: improve.is_some(),
        suite: absolute(&args.suite),
        prompts: args.prompts.as_ref().map(absolute),
        cases: args.case.clone(),
        only: args.only.clone(),
        jobs: args.jobs,
        slice: elsewhere.filter(|_| engine.is_some()).map_or(0, |elsewhere| elsewhere.slice),
        engine,
        repeat: args.repeat.map(NonZeroU32::get),
        fresh: args.fresh,
        holdout: improve.map_or(0.0, |improve| improve.holdout),
        seed: improve.map_or(0, |improve| improve.seed),
        generations: improve.map_or(0, |improve| improve.generations),
        max_tokens: improve.map_or(0, |improve| improve.max_tokens as usize),
        level: improve.map_or(USUAL_LEVEL, |improve| improve.level),
        min_pass: measure.and_then(|measure| measure.min_pass),
        baseline: measure.and_then(|measure| measure.baseline),
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
    trees: Option<CaseTrees>,
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
            trees: self.trees.as_ref(),
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
    let told = OutputArgs { events: args.events.clone(), ..OutputArgs::default() };
    let output = Output::of(world, common, &told.with_json(args.json))?;
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
            perform(world, common, (&project, &output), &ready, (journal, run), &[], &[])
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
    suite.keep(&options.cases, &options.only)?;
    let mut settings = overrides.settings(&project.shell)?;
    settings.limits = settings.limits.or(suite.limits.clone());
    let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
    if options.holdout > 0.0 && ids.len() < 2 {
        return Err(vec![too_few_cases(ids.len())]);
    }
    check_target(world, &options, &suite)?;
    let held = held_out(&ids, options.holdout, options.seed);
    let repeat = |case: &Case| options.repeat.or(case.repeat).or(suite.repeat).unwrap_or(1);
    let cases = (suite.cases.iter().zip(held))
        .map(|(case, held_out)| {
            let (id, repeat) = (case.id.clone(), repeat(case));
            CaseFacts { id, held_out, repeat, same_as: None, label: case.label }
        })
        .collect();
    if suite.is_matrix() && options.improves {
        return Err(vec![matrix_refused("eval improve")]);
    }
    if suite.is_matrix() && options.baseline.is_some() {
        return Err(vec![matrix_refused("--baseline")]);
    }
    if suite.has_outputs() && options.improves {
        return Err(vec![outputs_refused()]);
    }
    let columns = suite.columns.iter().filter(|_| suite.is_matrix()).map(|column| ColumnFacts {
        name: column.name.clone(),
        executor: column.executor.value.clone(),
        prompt: column.prompt.clone(),
        tokens: tokens(&column.prompt),
    });
    let facts = EvalFacts {
        suite: world.relative(path),
        executor: suite.executor.value.clone(),
        columns: columns.collect(),
        evaluator: (!suite.evaluators.is_empty())
            .then(|| suite.evaluators.iter().map(|agent| agent.value.as_str()).collect::<Vec<_>>().join(", ")),
        evaluators: u32::try_from(suite.evaluators.len()).unwrap_or(u32::MAX),
        improver: options.improves.then(|| suite.rewriter().value.clone()),
        tokens: tokens(&suite.prompt),
        prompt: suite.prompt.clone(),
        cases,
        baseline: options.baseline.map(|run| baseline::of_run(world, project, run, &suite, path)).transpose()?,
        options,
    };
    let trees = CaseTrees::take(world, &suite, &project.root)?;
    if trees.is_some() {
        tree::check_chain(world, project, &suite, &overrides)?;
    }
    let mut ready = ReadyEval {
        suite,
        prompts,
        trees,
        facts,
        overrides,
        settings,
        outline: Outline::default(),
        digest: String::new(),
        warnings: Vec::new(),
    };
    let same = same_cases(&ready.context(world, project), &ready.facts.prompt);
    for (case, same) in ready.facts.cases.iter_mut().zip(same) {
        case.same_as = same;
    }
    let context = ready.context(world, project);
    let warnings = context.check(ready.facts.options.improves, ready.facts.options.max_tokens)?;
    let outline = whole_outline(&context, &ready.facts);
    ready.digest = digest(&context, &ready.facts, &outline);
    (ready.warnings, ready.outline) = (warnings, outline);
    Ok(ready)
}

/// Returns for each case the id of the first one that asks the same, if that is another one.
fn same_cases(context: &EvalContext<'_>, prompt: &str) -> Vec<Option<String>> {
    // By a part of the digest of the question, which is enough to tell them apart.
    let mut first: HashMap<u128, &str> = HashMap::new();
    let same = context.suite.cases.iter().map(|case| {
        // Recorded outputs are not answers to the same question.
        if case.output.is_some() {
            return None;
        }
        let asked = context.execute_prompt(0, prompt, case).ok()?;
        let digest = u128::from_str_radix(&sha256(asked.as_bytes())[..32], 16).ok()?;
        let first = *first.entry(digest).or_insert(&case.id);
        (first != case.id).then(|| first.to_string())
    });
    same.collect()
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
    let mut whole = Outline {
        chain: format!("eval {} {}", if facts.options.improves { "improve" } else { "run" }, facts.suite),
        ..Outline::default()
    };
    let Ok(executor) = context.executor_plan(0, "?").map(|plan| outline_of(&plan)) else { return whole };
    (whole.marker, whole.limits) = (executor.marker, executor.limits);
    // A step that is not there has the place of its number all the same.
    let step = |agent: Option<&Text>, part| -> Option<OutlineStep> {
        let plan = agent.and_then(|agent| context.plan(agent, part, "?").ok());
        plan.and_then(|plan| outline_of(&plan).steps.pop()).or_else(|| executor.steps.first().cloned())
    };
    let improver = facts.options.improves.then(|| suite.rewriter());
    let agents = [(None, Part::Answers), (suite.evaluator(), Part::Evaluates), (improver, Part::Answers)];
    let number = if facts.options.improves || suite.runs_commands() {
        3
    } else if suite.evaluator().is_some() {
        2
    } else {
        1
    };
    whole.steps = agents.into_iter().take(number).filter_map(|(agent, part)| step(agent, part)).collect();
    whole.steps.extend(context.command_plans().next().and_then(|plan| outline_of(&plan).steps.pop()));
    whole
}

/// A digest of everything that is asked: prompts, cases and agents.
fn digest(context: &EvalContext<'_>, facts: &EvalFacts, outline: &Outline) -> String {
    let columns = (0..).zip(&context.suite.columns);
    let asked = columns
        .flat_map(|column| context.suite.cases.iter().map(move |case| (column, case)))
        .map(|((number, column), case)| context.execute_prompt(number, &column.prompt, case).ok());
    let asked = Listed(RefCell::new(asked));
    let expected = Listed(RefCell::new(context.suite.cases.iter().map(|case| (&case.expected, &case.criteria))));
    let recorded: Vec<_> =
        context.suite.cases.iter().filter_map(|case| Some((&case.id, case.output.as_ref()?))).collect();
    // Those that are no steps of the outline: of one executor and one evaluator, none.
    let columns = (0..).zip(&context.suite.columns).skip(1);
    let executors = columns.filter_map(|(number, _)| context.executor_plan(number, "?").ok());
    let evaluators = context.suite.evaluators.iter().skip(1);
    let evaluators = evaluators.filter_map(|agent| context.plan(agent, Part::Evaluates, "?").ok());
    let more: Vec<OutlineStep> = executors.chain(evaluators).flat_map(|plan| outline_of(&plan).steps).collect();
    let steps: Vec<_> = outline
        .steps
        .iter()
        .chain(&more)
        .map(|step| (&step.name, &step.program, &step.backend, step.format, &step.arguments, &step.environment))
        .collect();
    let suite = (
        context.suite.min_score,
        &context.suite.criteria,
        &context.suite.examples,
        context.suite.score_mode,
        (context.templates(), recorded, context.suite.decide),
    );
    sha256_json(&(asked, expected, steps, &facts.cases, suite))
}

/// A list that is serialized one by one, because a suite may have many cases.
struct Listed<I>(RefCell<I>);

impl<T: Serialize, I: Iterator<Item = T>> Serialize for Listed<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&mut *self.0.borrow_mut())
    }
}

/// `--dry-run`: prints which agent is asked what, and how often at most.
fn preview(world: &World, project: &Project, ready: &ReadyEval) -> Exit {
    let (context, facts) = (ready.context(world, project), &ready.facts);
    let Some(case) = context.suite.cases.first() else { return Exit::Success };
    let first = context.execute_prompt(0, &facts.prompt, case).unwrap_or_default();
    answer(&crate::report::evaluation_preview(facts, &ready.outline, &case.id, &first, Paint::for_stdout(world)))
}

/// The ledger of an evaluation; `None` if the events are not those of an evaluation.
pub(in crate::cli) fn ledger_of(events: &[Event]) -> Option<EvalLedger> {
    Some(EvalLedger::of_events(events)).filter(|ledger| ledger.facts.is_some())
}

/// Resumes an interrupted evaluation: answers in the journal are not requested again.
pub(in crate::cli) fn resume(
    world: &World,
    common: &Common,
    project: &Project,
    (mut journal, run): (Journal, i64),
    events: &[Event],
    (limits, told): (&[String], &OutputArgs),
    accept: bool,
) -> Answered {
    let ready = again(world, project, run, events, limits, accept)?;
    let output = Output::of(world, common, told)?;
    journal.begin_again(run, &ready.outline, worker())?;
    perform(world, common, (project, &output), &ready, (journal, run), events, limits)
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
        return Err(vec![show::no_evaluation(Some(run))]);
    };
    let later = events.iter().filter_map(|event| match &event.event {
        EventKind::RunResumed { limits, .. } => Some(limits),
        _ => None,
    });
    overrides.limits = overrides.limits.iter().chain(later.flatten()).chain(limits).cloned().collect();
    // The baseline is recorded: its run may be gone.
    let options = EvalOptions { baseline: None, ..facts.options.clone() };
    let mut ready = prepare(world, project, options, overrides)?;
    (ready.facts.baseline, ready.facts.options.baseline) = (facts.baseline.clone(), facts.options.baseline);
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
