//! `eval`: measures a prompt with a suite, and improves it.

pub(super) mod args;
mod baseline;
mod compare;
mod elsewhere;
mod execute;
mod prepare;
mod show;
mod slice;
pub(super) mod tree;

use crate::cli::config::{Project, project, shell};
use crate::cli::eval::args::{EvalArgs, EvalImproveArgs, EvalMeasureArgs, EvalRunArgs, EvalVerb};
use crate::cli::eval::execute::perform;
use crate::cli::options::{Common, OutputArgs};
use crate::cli::people::no_run_by_a_judge;
use crate::cli::respond::{Answered, answer};
use crate::cli::run::execute::{lock, worker};
use crate::cli::run::output::Output;
use crate::cli::run::survivors::end_last;
use crate::cli::trust::untrusted;
use crate::cli::work::another_outline;
use crate::engine::{EvalFacts, EvalLedger, EvalOptions, Event, EventKind, USUAL_LEVEL};
use crate::eval::{AskedAgents, CaseTrees, EvalContext, EvalPlanner, Prompts, Suite};
use crate::exit::Exit;
use crate::journal::{Journal, NewRun};
use crate::plan::{Outline, Overrides, RunSettings};
use crate::report::{Paint, print_error, render};
use crate::source::Diagnostic;
use crate::unit::BundledPlan;
use crate::world::World;
use elsewhere::Elsewhere;
use prepare::prepare;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

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
        budget: improve.map(EvalImproveArgs::budget).unwrap_or_default(),
        minibatch: improve.and_then(|improve| improve.minibatch).map_or(0, NonZeroU32::get),
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
    facts: Arc<EvalFacts>,
    overrides: Overrides,
    settings: RunSettings,
    outline: Outline,
    digest: String,
    warnings: Vec<Diagnostic>,
    /// The agents, as they were planned when they were checked.
    asked: AskedAgents,
}

impl ReadyEval {
    fn context<'a>(&'a self, world: &'a World, project: &'a Project) -> EvalContext<'a> {
        EvalContext {
            world,
            root: &project.root,
            suite: &self.suite,
            prompts: &self.prompts,
            trees: self.trees.as_ref(),
            settings: &self.settings,
            planner: EvalPlanner::new(world, (&project.config, &project.root), &self.settings, self.asked.clone()),
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
    let judged = ledger.results.values().filter(|result| result.remarks.error.is_none()).count();
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
    let now = Arc::make_mut(&mut ready.facts);
    (now.baseline, now.options.baseline) = (facts.baseline.clone(), facts.options.baseline);
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
