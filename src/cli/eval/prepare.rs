//! Reads and checks everything that an evaluation needs, before anything is started.

use super::{ReadyEval, baseline, tree};
use crate::chain::Limits;
use crate::cli::config::Project;
use crate::engine::{CaseFacts, ColumnFacts, EvalBudget, EvalFacts, EvalOptions};
use crate::eval::{
    ANY_PROMPT, AskedAgents, Case, CaseTrees, EvalContext, Prompts, Suite, check_evaluation, held_out, matrix_refused,
    outputs_refused, tokens, too_few_cases,
};
use crate::plan::{Outline, OutlineStep, Overrides, Part, outline as outline_of};
use crate::source::{Diagnostic, Files, Place, Source, Text, sha256, sha256_json};
use crate::world::World;
use serde::{Serialize, Serializer};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

/// Reads the suite and its prompts, and reports every error.
pub(super) fn prepare(
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
    // A limit that was given wins over the budget: so a resume can raise it.
    let below = within(options.budget, suite.limits.clone(), &project.shell);
    settings.limits = settings.limits.or(below);
    let ids: Vec<&str> = suite.cases.iter().map(|case| &*case.id).collect();
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
        selector: suite.select_best.as_ref().map(|agent| agent.value.clone()),
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
        facts: Arc::new(facts),
        overrides,
        settings,
        outline: Outline::default(),
        digest: String::new(),
        warnings: Vec::new(),
        asked: AskedAgents::default(),
    };
    let same = same_cases(&ready.context(world, project), &ready.facts.prompt);
    for (case, same) in Arc::make_mut(&mut ready.facts).cases.iter_mut().zip(same) {
        case.same_as = same;
    }
    let context = ready.context(world, project);
    let warnings = check_evaluation(&context, ready.facts.options.improves, ready.facts.options.max_tokens)?;
    let outline = whole_outline(&context, &ready.facts);
    ready.digest = digest(&context, &ready.facts, &outline);
    (ready.warnings, ready.outline) = (warnings, outline);
    Ok(ready)
}

/// Returns the limits of a suite, no wider than the budget.
fn within(budget: EvalBudget, limits: Limits, shell: &Path) -> Limits {
    let cost = budget.cost_usd.filter(|most| limits.cost.as_ref().is_none_or(|(cost, _)| cost > most));
    let cost = cost.map(|most| (most, Place::whole(&Source::new("--budget", format!("cost={most}"), shell))));
    Limits { cost: cost.or(limits.cost), attempts: budget.attempts.into_iter().chain(limits.attempts).min(), ..limits }
}

/// Returns for each case the id of the first one that asks the same, if that is another one.
fn same_cases(context: &EvalContext<'_>, prompt: &str) -> Vec<Option<Arc<str>>> {
    let cases = &context.suite.cases;
    let asked = (0..).zip(cases).filter_map(|(number, case): (u32, &Case)| {
        // Recorded outputs are not answers to the same question.
        let asked = case.output.is_none().then(|| context.execute_prompt(0, prompt, case).ok())??;
        // A part of the digest is enough to tell questions apart.
        Some((u64::from_str_radix(&sha256(asked.as_bytes())[..16], 16).ok()?, number))
    });
    let mut asked: Vec<(u64, u32)> = asked.collect();
    asked.sort_unstable();
    let mut same = vec![None; cases.len()];
    for equal in asked.chunk_by(|(one, _), (other, _)| one == other) {
        let first = &cases[equal[0].1 as usize].id;
        equal[1..].iter().for_each(|(_, number)| same[*number as usize] = Some(Arc::clone(first)));
    }
    same
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
        Some(out) => world.disk().try_out(Path::new(out)).map_err(|error| {
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
    let Ok(executor) = context.executor_plan(0, ANY_PROMPT).map(|plan| outline_of(&plan)) else { return whole };
    (whole.marker, whole.limits) = (executor.marker, executor.limits);
    // A step that is not there has the place of its number all the same.
    let step = |agent: Option<&Text>, part| -> Option<OutlineStep> {
        let plan = agent.and_then(|agent| context.planner.plan(agent, part, ANY_PROMPT).ok());
        plan.and_then(|plan| outline_of(&plan).steps.pop()).or_else(|| executor.steps.first().cloned())
    };
    let improver = facts.options.improves.then(|| suite.rewriter());
    // Those that compare outputs have the place of the evaluators.
    let judge = suite.evaluator().map(|agent| (Some(agent), Part::Evaluates));
    let judge = judge.unwrap_or((suite.select_best.as_ref(), Part::Answers));
    let agents = [(None, Part::Answers), judge, (improver, Part::Answers)];
    let number = if facts.options.improves || suite.runs_commands() {
        3
    } else if suite.evaluator().or(suite.select_best.as_ref()).is_some() {
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
    let executors = columns.filter_map(|(number, _)| context.executor_plan(number, ANY_PROMPT).ok());
    let evaluators = context.suite.evaluators.iter().skip(1);
    let evaluators = evaluators.filter_map(|agent| context.planner.plan(agent, Part::Evaluates, ANY_PROMPT).ok());
    let selector = context.suite.select_best.as_ref();
    let selector = selector.and_then(|agent| context.planner.plan(agent, Part::Answers, ANY_PROMPT).ok());
    let more: Vec<OutlineStep> =
        executors.chain(evaluators).chain(selector).flat_map(|plan| outline_of(&plan).steps).collect();
    let steps: Vec<_> = outline
        .steps
        .iter()
        .chain(&more)
        .map(|step| {
            let asked = (&step.arguments, &step.environment, &step.prompt);
            (&step.name, &step.program, &step.backend, step.format, asked)
        })
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
