//! `resume`: continues an interrupted run where it stopped.

use crate::chain::{Chain, PromptSource, limit_name, parse};
use crate::cli::args::ResumeArgs;
use crate::cli::config::{Project, project};
use crate::cli::eval;
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::run::chain::{TypedVars, add_secrets, named};
use crate::cli::run::execute::{Run, lock, perform, worker};
use crate::cli::run::output::Output;
use crate::cli::run::sandbox::sandbox_fault;
use crate::cli::run::survivors::survivors;
use crate::cli::run::{Typed, disbelieved, planned};
use crate::cli::runs::history::{journal, meant};
use crate::cli::task::batch;
use crate::cli::task::errors as task_errors;
use crate::cli::trust::distrusted;
use crate::cli::trust::unsettled;
use crate::engine::{Event, EventKind, Input, RunKind, RunOutcome, RunRow, RunState, State, Stopwatch, decide, evolve};
use crate::journal::{Journal, JournalError, RunLock, tampered};
use crate::plan::{Outline, Overrides, Plan, TaskFacts, outline};
use crate::proc::capture;
use crate::report::{Paint, print_error, render, resume_plan};
use crate::runner::{Replan, ResumePoint, RunStart};
use crate::source::{Diagnostic, Place, Source, Text};
use crate::task::{AuditRow, Status};
use crate::verdict::{Decision, ReadFrom, Verdict, findings};
use crate::world::World;
use serde_json::json;
use std::path::Path;

/// Resumes a run, or shows what that would do.
pub(in crate::cli) fn resume(world: &World, common: &Common, args: &ResumeArgs) -> Answered {
    only_people(world, &project(world, common).root)?;
    if args.dry_run {
        return match prepare(world, common, args) {
            Err(faults) => Err(faults.into()),
            Ok(ResumeReady::Chain(ready)) => Ok(answer(&ready.told(world, args))),
            Ok(ResumeReady::Batch(cut)) => Ok(answer(&format!("batch {} would continue\n", cut.row.id))),
            Ok(ResumeReady::Evaluation(cut)) => {
                Ok(answer(&eval::resume_told(world, &cut.project, cut.row.id, &cut.events, &args.limit)?))
            }
        };
    }
    // Errors are reported without the lock, unless a running run has to be waited for.
    if let Err(faults) = if args.wait { Ok(()) } else { prepare(world, common, args).map(drop) } {
        return Err(faults.into());
    }
    let root = project(world, common).root;
    let lock = lock(world, common, "a resume", &root, args.wait)?;
    // Only under the lock does nothing else change what is read.
    match prepare(world, common, args) {
        Err(faults) => Err(faults.into()),
        Ok(ResumeReady::Chain(ready)) => go_on(world, common, args, *ready, lock),
        Ok(ResumeReady::Batch(cut)) => {
            let CutOff { project, journal, row, events } = *cut;
            let told = args.told.with_json(args.json);
            batch::resume(world, common, &project, (journal, row.id), &events, (&args.limit, &told), lock)
        }
        Ok(ResumeReady::Evaluation(cut)) => {
            let CutOff { project, mut journal, row, events } = *cut;
            journal.hold(lock);
            survivors(&journal, row.id, &events)?;
            let told = args.told.with_json(args.json);
            let options = (args.limit.as_slice(), &told);
            eval::resume(world, common, &project, (journal, row.id), &events, options, args.accept_changes)
        }
    }
}

/// An interrupted run that can be resumed.
struct CutOff {
    project: Project,
    journal: Journal,
    row: RunRow,
    events: Vec<Event>,
}

/// What is resumed.
enum ResumeReady {
    Chain(Box<ReadyChain>),
    Evaluation(Box<CutOff>),
    Batch(Box<CutOff>),
}

/// Everything that the resume of a chain needs.
struct ReadyChain {
    project: Project,
    journal: Journal,
    row: RunRow,
    events: Vec<Event>,
    asked: (Chain, TypedVars, Typed),
    plan: Plan,
    outline: Outline,
    changes: Vec<String>,
}

impl ReadyChain {
    fn told(&self, world: &World, args: &ResumeArgs) -> String {
        let (mut state, mut watch) = (State::default(), Stopwatch::default());
        for event in &self.events {
            evolve(&mut state, &event.event);
            watch.see(event);
        }
        if let Some(at) = state.under_way() {
            let folder = self.journal.files().attempt_folder(self.row.id, at.step, &at.name, at.attempt);
            watch.worked(folder.worked_ms().unwrap_or(0));
        }
        // The decision is made, but not carried out.
        let input = Input::Resume {
            elapsed_ms: watch.milliseconds(),
            leftovers: Vec::new(),
            attempts: Vec::new(),
            limits: Vec::new(),
            decided: decided(args),
            more: more(args),
            tree: None,
        };
        let transition = decide(state.clone(), &self.plan, input);
        let next = transition.events.into_iter().find_map(|event| match event {
            EventKind::AttemptPlanned { at, .. } | EventKind::AttemptDeferred { at, .. } => Some(at),
            _ => None,
        });
        if args.json {
            let told = json!({
                "run": self.row.id,
                "chain": self.outline.chain,
                "next": next,
                "workedMs": watch.milliseconds(),
                "changes": self.changes,
            });
            return json_line(told);
        }
        let paint = Paint::for_stdout(world);
        let next = next.as_ref().map(|at| (at, transition.state.more_iterations(at.step)));
        resume_plan((self.row.id, &self.outline), (&state, next), watch.milliseconds(), &self.changes, paint)
    }
}

fn prepare(world: &World, common: &Common, args: &ResumeArgs) -> Result<ResumeReady, Vec<Diagnostic>> {
    let broken = |error| vec![broken_journal(&error)];
    if args.reject.as_ref().is_some_and(|words| words.trim().is_empty()) {
        return Err(vec![no_reason()]);
    }
    let (project, journal) = journal(world, common).map_err(|fault| vec![fault])?;
    journal.check().map_err(broken)?;
    if let Some(fault) = disbelieved(&project, args.accept_changes && !args.dry_run) {
        return Err(vec![fault]);
    }
    if let Some(fault) = Some(()).filter(|()| !args.dry_run).and_then(|()| distrusted(world, common, &project)) {
        return Err(vec![fault]);
    }
    // Differences since a crash are reported below, if they concern this run.
    let settled = tampered(&project.root).is_none_or(|known| known.at_work);
    if let Some(fault) = Some(()).filter(|()| !settled).and_then(|()| unsettled(&project, args.accept_changes)) {
        return Err(vec![fault]);
    }
    let decides = args.approve || args.reject.is_some();
    let rows = journal.runs().all().map_err(broken)?;
    let exhausted = |row: &RunRow| row.outcome.is_some_and(RunOutcome::is_exhausted);
    let fits = |row: &RunRow, state: RunState| match state {
        // The batch as a whole is resumed.
        _ if row.batch.is_some() => false,
        _ if decides => state.waits(),
        _ if args.more.is_some() => exhausted(row),
        // If the chain was run again since, the old run is not meant.
        RunState::Incomplete => !rows.iter().any(|later| later.id > row.id && later.chain == row.chain),
        state => state.may_resume() && !exhausted(row),
    };
    let wanted = match args.more {
        _ if decides => "that is waiting for a human decision",
        Some(_) => "that has used up its count",
        None => "to resume",
    };
    let (row, state) = meant(&journal, args.run, fits, wanted).map_err(|fault| vec![fault])?;
    if state == RunState::Running {
        return Err(vec![still_running(row.id)]);
    }
    if let Some(batch) = row.batch {
        return Err(vec![of_batch(row.id, batch)]);
    }
    if state == RunState::NeverBegan {
        return Err(vec![never_began()]);
    }
    if decides && !state.waits() {
        return Err(vec![nobody_waits(row.id)]);
    }
    match (args.more, exhausted(&row)) {
        (Some(_), false) => return Err(vec![not_exhausted(row.id, state)]),
        (None, true) if !decides => return Err(vec![is_exhausted(row.id, state)]),
        _ => {}
    }
    if !decides && args.more.is_none() && state == RunState::NeedsHuman {
        return Err(vec![needs_a_person(row.id)]);
    }
    if !decides && args.more.is_none() && !state.may_resume() {
        return Err(vec![finished(row.id, state)]);
    }
    let events = journal.events().of(row.id).map_err(broken)?;
    if row.kind == RunKind::Batch {
        return Ok(ResumeReady::Batch(Box::new(CutOff { project, journal, row, events })));
    }
    if eval::ledger_of(&events).is_some() {
        if decides {
            return Err(vec![nobody_waits(row.id)]);
        }
        let changes = elsewhere(&project, &events);
        if !changes.is_empty() && !args.accept_changes && !args.dry_run {
            return Err(vec![changed(&changes)]);
        }
        return Ok(ResumeReady::Evaluation(Box::new(CutOff { project, journal, row, events })));
    }
    let mut asked = restored(&project, &events, args)?;
    add_secrets(world, &asked.0, &mut asked.1, &project, args.dry_run)?;
    let plan = planned(world, &project, &asked.0, &asked.1, &asked.2)?;
    if let Some(task) = &plan.task
        && let Some(fault) = moved(&journal, &row, task, decides).map_err(broken)?
    {
        return Err(vec![fault]);
    }
    let now = outline(&plan);
    let mut changes = match journal.runs().outline(row.id).map_err(broken)? {
        Some(before) => changes(&before, &now, args)?,
        None => Vec::new(),
    };
    changes.extend(elsewhere(&project, &events));
    if !changes.is_empty() && !args.accept_changes && !args.dry_run {
        return Err(vec![changed(&changes)]);
    }
    Ok(ResumeReady::Chain(Box::new(ReadyChain { project, journal, row, events, asked, plan, outline: now, changes })))
}

/// Restores the chain, its variables, and the options that the run began with.
fn restored(
    project: &Project,
    events: &[Event],
    args: &ResumeArgs,
) -> Result<(Chain, TypedVars, Typed), Vec<Diagnostic>> {
    let Some(EventKind::RunStarted { chain, name, prompt, vars, overrides, task, .. }) =
        events.first().map(|event| &event.event)
    else {
        return Err(vec![never_began()]);
    };
    let chain = match name {
        Some(name) => named(name, &project.config)?,
        None => parse(&Source::new("the run's chain", chain.as_str(), &project.shell))?,
    };
    let given = vars.iter().map(|(name, value)| {
        (name.clone(), (value.clone(), Source::new("the run's variables", format!("{name}={value}"), &project.shell)))
    });
    let inline = prompt.as_ref().map(|prompt| Text {
        value: prompt.clone(),
        at: Place::whole(&Source::new("the run's prompt", prompt.as_str(), &project.shell)),
    });
    let later = events.iter().filter_map(|event| match &event.event {
        EventKind::RunResumed { limits, .. } => Some(limits),
        _ => None,
    });
    let limits = overrides.limits.iter().chain(later.flatten()).chain(&args.limit).cloned().collect();
    let overrides = Overrides { limits, ..overrides.clone() };
    Ok((chain, given.collect(), Typed { prompt: PromptSource { inline, file: None }, overrides, task: task.clone() }))
}

/// Reports a journal that may come from somebody else: from another directory, or with a checkout.
fn elsewhere(project: &Project, events: &[Event]) -> Vec<String> {
    let Some(EventKind::RunStarted { root, .. }) = events.first().map(|event| &event.event) else { return Vec::new() };
    let mut found = Vec::new();
    if project.root.display().to_string() != *root {
        found.push(format!("directory: it ran in {root}"));
    }
    let words =
        ["--no-optional-locks", "-c", "core.fsmonitor=false", "ls-files", "--", ".forkhestra"].map(str::to_string);
    if capture(Path::new("git"), &words, &project.root).is_some_and(|answer| !answer.stdout.trim().is_empty()) {
        found.push("journal: git tracks `.forkhestra`, so it comes from the person who committed it".into());
    }
    found
}

/// Lists what has changed since the run began. A run cannot be resumed if its chain has different steps.
fn changes(before: &Outline, now: &Outline, args: &ResumeArgs) -> Result<Vec<String>, Vec<Diagnostic>> {
    if !now.has_the_shape_of(before) {
        return Err(vec![other_steps(&before.chain, &now.chain)]);
    }
    let mut before = before.clone();
    for limit in &args.limit {
        // This change was requested just now.
        before.limits.copy(limit_name(limit).unwrap_or_default(), &now.limits);
    }
    Ok(before.changes(now))
}

fn go_on(world: &World, common: &Common, args: &ResumeArgs, ready: ReadyChain, lock: RunLock) -> Answered {
    let ReadyChain { project, mut journal, row, events, asked: (chain, given, typed), plan, outline, changes } = ready;
    if !changes.is_empty() && !common.quiet {
        print_error(&render(&[taken(&changes)], Paint::for_stderr(world)));
    }
    if let Some(fault) = sandbox_fault(&plan) {
        return Err(fault.into());
    }
    journal.begin_again(row.id, &outline, worker())?;
    if let Some(task) = &plan.task
        && let Err(error) = journal.follow(row.id, &task.id, &outline)
    {
        return Err(error.into());
    }
    let leftovers = survivors(&journal, row.id, &events)?;
    journal.hold(lock);
    let replan = || planned(world, &project, &chain, &given, &typed);
    let replan = args.accept_changes.then_some(Replan(&replan));
    let run = Run { plan: &plan, outline: &outline, root: &project.root, journal, number: row.id, replan };
    match Output::of(world, common, &args.told.with_json(args.json)) {
        Ok(output) => {
            let (limits, decided, more) = (args.limit.clone(), decided(args), more(args));
            let begin = RunStart::Resumed(Box::new(ResumePoint { events, leftovers, limits, decided, more }));
            perform(world, common, &output, run, begin)
        }
        Err(fault) => Err(fault.into()),
    }
}

/// Reports a run that cannot be resumed because the status of its task was changed since.
fn moved(
    journal: &Journal,
    run: &RunRow,
    planned: &TaskFacts,
    decides: bool,
) -> Result<Option<Diagnostic>, JournalError> {
    let Some(task) =
        journal.tasks().get(&planned.id)?.filter(|task| planned.added.is_empty() || task.added == planned.added)
    else {
        return Ok(Some(task_errors::unknown(&planned.id, None)));
    };
    let waits = decides && matches!(task.status, Status::Disputed | Status::Failed);
    if task.status.is_terminal() && !waits {
        return Ok(Some(task_errors::terminal(&task.id, task.status)));
    }
    let last = journal.tasks().trail(&task.id)?.pop();
    // Times are whole seconds. In the second in which this run began, changes by an earlier run and by a batch came
    // before it.
    let is_by_person = |row: &AuditRow| row.run.is_none() && row.change.actor != "host";
    let since = last
        .filter(|row| row.run != Some(run.id) && (row.at > run.started || is_by_person(row) && row.at == run.started));
    Ok(since.map(|row| task_errors::moved_since(&task.id, run.id, &row.change.actor)))
}

fn never_began() -> Diagnostic {
    Diagnostic::error("resume/empty", "the run was interrupted before it started").help("start a new one")
}

fn of_batch(run: i64, batch: i64) -> Diagnostic {
    Diagnostic::error("resume/batch", format!("run {run} belongs to batch {batch}")).help(format!(
        "resume the batch: forkhestra resume {batch}; or decide about the task: forkhestra task approve ID"
    ))
}

fn still_running(run: i64) -> Diagnostic {
    Diagnostic::error("resume/running", format!("run {run} is still running"))
        .help(format!("`forkhestra runs log {run} -f` follows it"))
}

/// The verdict that the command line gives about the work.
fn decided(args: &ResumeArgs) -> Option<Verdict> {
    let verdict = |decision, notes: &str| Verdict::new(decision, notes.to_string(), findings(notes), ReadFrom::Person);
    match &args.reject {
        Some(notes) => Some(verdict(Decision::Reject, notes)),
        None => args.approve.then(|| verdict(Decision::Approve, &args.notes)),
    }
}

fn nobody_waits(run: i64) -> Diagnostic {
    Diagnostic::error("resume/nobody-waits", format!("run {run} is not waiting for a human decision")).help(
        "--approve and --reject decide when a run is waiting for a person: `forkhestra runs` shows `needs a human`",
    )
}

fn needs_a_person(run: i64) -> Diagnostic {
    Diagnostic::error("resume/decide", format!("run {run} is waiting for a human decision")).help(format!(
        "decide: forkhestra resume {run} --approve, or forkhestra resume {run} --reject \"what has to be fixed\""
    ))
}

fn no_reason() -> Diagnostic {
    Diagnostic::error("resume/no-reason", "--reject needs a reason").help("--reject \"what has to be fixed\"")
}

fn finished(run: i64, state: RunState) -> Diagnostic {
    let how = match state {
        RunState::Complete => "all its steps succeeded",
        RunState::TasksLeft => "not all of its tasks landed. `forkhestra task run --jobs N` continues with them",
        _ => "not every case passed",
    };
    Diagnostic::error("resume/finished", format!("run {run} has ended: {how}"))
        .help(format!("start a new run; `forkhestra runs show {run}` shows what happened in this one"))
}

fn more(args: &ResumeArgs) -> Option<u32> {
    args.more.map(|more| more.get().into())
}

fn is_exhausted(run: i64, state: RunState) -> Diagnostic {
    let decide = match state {
        RunState::NeedsHuman => "\nor decide: --approve, or --reject \"what has to be fixed\"",
        _ => "",
    };
    Diagnostic::error("resume/exhausted", format!("run {run} has used up its rounds (or iterations)"))
        .help(format!("allow more: forkhestra resume {run} --more 3{decide}"))
}

fn not_exhausted(run: i64, state: RunState) -> Diagnostic {
    let fault =
        Diagnostic::error("resume/not-exhausted", format!("run {run} has not used up its rounds (or iterations)"));
    match state {
        RunState::Complete => fault.help("it is complete; start a new run"),
        state if state.may_resume() => fault.help(format!("resume it without --more: forkhestra resume {run}")),
        _ => fault.help(format!("`forkhestra runs show {run}` shows how it ended")),
    }
}

fn other_steps(before: &str, now: &str) -> Diagnostic {
    Diagnostic::error("resume/other-steps", "the chain has different steps from when the run began")
        .help(format!("it was: {before}\nit is now: {now}\nstart a new run, or restore the chain"))
}

fn changed(changes: &[String]) -> Diagnostic {
    Diagnostic::error(
        "resume/changed",
        format!("something that the run uses has changed since it began: {}", changes.join("; ")),
    )
    .help("`forkhestra resume --dry-run` lists the changes; --accept-changes continues with them")
}

fn taken(changes: &[String]) -> Diagnostic {
    Diagnostic::warning(
        "resume/changed",
        format!("continuing with the changes since the run began: {}", changes.join("; ")),
    )
}
