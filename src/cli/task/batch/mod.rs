//! `task run --jobs N`: several tasks at once, each in a workspace of its own.

mod backlog;
mod claim;
mod engine;
mod errors;
mod landing;
mod planner;
mod preflight;
mod sharing;
mod show;
mod workspaces;

use crate::batch::{BatchContext, BatchError, Budget, work_on_batch};
use crate::chain::Limits;
use crate::cli::config::Project;
use crate::cli::options::{Common, OutputArgs};
use crate::cli::people::no_run_by_a_judge;
use crate::cli::respond::{Answered, Stopped, answer, json_line};
use crate::cli::run::disbelieved;
use crate::cli::run::execute::{event_queue, exit_of, lock, worker};
use crate::cli::run::output::Output;
use crate::cli::run::start_at::{check_start, wait_for_start};
use crate::cli::runs::batch::closing;
use crate::cli::task::args::TaskRunArgs;
use crate::cli::trust::untrusted;
use crate::cli::work::refused;
use crate::context::Repository;
use crate::engine::{BatchFacts, BatchState, Event, EventKind, RunOutcome, Totals};
use crate::exit::Exit;
use crate::hub::Hub;
use crate::journal::{Journal, NewRun, RunLock};
use crate::plan::{Limits as PlannedLimits, Outline, Overrides, limits};
use crate::proc::{SleepInhibitor, containment};
use crate::report::{BatchTerminal, Paint, Screen, batch_json, print_error, quoted, render};
use crate::runner::Failure;
use crate::source::{Diagnostic, sha256_json};
use crate::world::World;
use backlog::{Backlog, SharedView};
pub(in crate::cli) use engine::engine_of;
use indexmap::IndexMap;
pub(in crate::cli) use landing::landing_checks;
use planner::Planner;
use preflight::Checked;
pub(in crate::cli) use preflight::repository_of;
use sharing::Sharing;
use std::rc::Rc;
use std::sync::mpsc::channel;
pub(in crate::cli) use workspaces::{WorkspacePlan, needs};

/// A batch that is ready to start or to resume.
struct Ready<'a> {
    world: &'a World,
    common: &'a Common,
    project: &'a Project,
    hub: Hub,
    workspaces: WorkspacePlan,
    facts: BatchFacts,
    overrides: Overrides,
    whole: Limits,
    each: Limits,
    vars: Vec<String>,
    output: Output,
}

/// Works on several tasks at once.
pub(super) fn begin(
    world: &World,
    common: &Common,
    project: &Project,
    args: &TaskRunArgs,
    (vars, ids): (Vec<String>, Vec<String>),
) -> Answered {
    no_run_by_a_judge(world)?;
    if let Some(fault) = untrusted(world, common, project, args.options.accept_changes) {
        return Err(fault.into());
    }
    if let Some(fault) = disbelieved(project, args.options.accept_changes) {
        return Err(fault.into());
    }
    if args.dry_run {
        let project = &prepared(project);
        let shared = args.hub.as_ref().map(|hub| SharedView::read(world, common, hub)).transpose()?;
        let checked = preflight::check(world, project, args, (&vars, &ids), shared.as_ref())?;
        return Ok(answer(&if args.json {
            json_line(show::json(&checked))
        } else {
            show::text(world, &checked, args)
        }));
    }
    let output = Output::of(world, common, &args.told.with_json(args.json))?;
    check_start(world, args.start_at.as_ref())?;
    if let Some(start) = &args.start_at {
        wait_for_start(world, common, start, project.config.keep_awake != Some(false))?;
    }
    let lock = lock(world, common, &title(args.lanes().unwrap_or(1), args.on.as_deref()), &project.root, args.wait)?;
    let project = &prepared(project);
    let join = |hub: &String| Backlog::join(world, common, project, hub, args.wait);
    let mut backlog = args.hub.as_ref().map(join).transpose()?;
    let shared = backlog.as_mut().map(Backlog::view).transpose()?;
    let checked = preflight::check(world, project, args, (&vars, &ids), shared.as_ref())?;
    let Checked { hub, facts, workspaces, whole, each, .. } = checked;
    let overrides = Overrides { limits: args.options.bounds.limit.clone(), ..args.options.overrides() };
    let ready = Ready { world, common, project, hub, workspaces, facts, overrides, whole, each, vars, output };
    let mut journal = Journal::open(&project.root)?;
    let outline = ready.outline();
    let digest = sha256_json(&serde_json::to_value(&ready.facts).unwrap_or_default());
    let new = NewRun { worker: worker(), started: &world.timestamp(), digest: &digest, outline: &outline };
    let run = journal.begin(new)?;
    let opening = EventKind::RunStarted {
        containment: containment(),
        queue: None,
        found: None,
        tree: None,
        rules: None,
        chain: outline.chain.clone(),
        name: None,
        prompt: None,
        vars: IndexMap::new(),
        digest,
        root: project.root.display().to_string(),
        forkhestra: env!("CARGO_PKG_VERSION").into(),
        steps: 0,
        overrides: ready.overrides.clone(),
        base: Some(ready.facts.line.clone()),
        task: None,
    };
    perform(&ready, journal, lock, (run, &[]), opening, backlog)
}

/// The project as the runs in its workspaces see it: their first step prepares the workspace.
fn prepared(project: &Project) -> Project {
    let setup = project.config.workspace.setup_words().unwrap_or_default();
    Project { setup, ..project.clone() }
}

/// What the lock file and the list of runs call a batch.
fn title(jobs: u32, engine: Option<&str>) -> String {
    let on = engine.map_or_else(String::new, |engine| format!(" --on {engine}"));
    format!("task run --jobs {jobs}{on}")
}

/// The limits of a whole batch, as its outline has them.
fn limits_of(whole: &Limits) -> PlannedLimits {
    PlannedLimits {
        time: whole.time,
        cost: whole.cost.as_ref().map(|(cost, _)| *cost),
        tokens: whole.tokens.as_ref().map(|(tokens, _)| *tokens),
        attempts: whole.attempts,
        ..PlannedLimits::default()
    }
}

impl Ready<'_> {
    fn outline(&self) -> Outline {
        Outline {
            chain: title(self.facts.jobs, self.facts.engine.as_deref()),
            limits: limits_of(&self.whole),
            ..Outline::default()
        }
    }
}

/// Resumes a batch that was interrupted, or that reached a limit.
pub(in crate::cli) fn resume(
    world: &World,
    common: &Common,
    project: &Project,
    (mut journal, run): (Journal, i64),
    events: &[Event],
    (more, told): (&[String], &OutputArgs),
    lock: RunLock,
) -> Answered {
    let Some(state) = BatchState::of_events(events) else { return Err(errors::never_began(run).into()) };
    let output = Output::of(world, common, told)?;
    let facts = state.facts.clone().unwrap_or_default();
    let overrides = overrides_of(events, more);
    let hub = Hub::existing(&project.root).ok_or_else(|| errors::no_hub(&project.root))?;
    let mut backlog = facts.hub.as_ref().map(|name| Backlog::join(world, common, project, name, false)).transpose()?;
    if let Some(backlog) = &mut backlog {
        let theirs = backlog.view()?.line(&hub)?;
        let is_behind = |theirs: &String| hub.line().is_none_or(|line| !hub.commits().is_ancestor(theirs, &line));
        if theirs.is_some_and(|theirs| is_behind(&theirs)) {
            return Err(errors::overtaken(run, facts.hub.as_deref().unwrap_or_default()).into());
        }
    }
    let whole = limits("--limit", &overrides.limits, &project.shell)?;
    let each = limits("--limit-each", &facts.limit_each, &project.shell)?.or(project.config.limits.clone());
    let vars = facts.vars.clone();
    let repository = Repository::of(&project.root).ok_or_else(|| errors::no_repository(&project.root))?;
    let workspaces = WorkspacePlan::of(world, project, Some(&repository))?;
    let project = &prepared(project);
    let ready = Ready { world, common, project, hub, workspaces, facts, overrides, whole, each, vars, output };
    journal.begin_again(run, &ready.outline(), worker())?;
    let opening = EventKind::RunResumed {
        forkhestra: env!("CARGO_PKG_VERSION").into(),
        attempts: Vec::new(),
        limits: more.to_vec(),
        worked_ms: 0,
        more: None,
        tree: None,
    };
    perform(&ready, journal, lock, (run, events), opening, backlog)
}

/// The options that a batch began with, and the limits that were set since.
fn overrides_of(events: &[Event], more: &[String]) -> Overrides {
    let mut overrides = Overrides::default();
    for event in events {
        match &event.event {
            EventKind::RunStarted { overrides: first, .. } => overrides = first.clone(),
            EventKind::RunResumed { limits, .. } => overrides.limits.extend(limits.iter().cloned()),
            _ => {}
        }
    }
    overrides.limits.extend(more.iter().cloned());
    overrides
}

fn perform(
    ready: &Ready<'_>,
    mut journal: Journal,
    lock: RunLock,
    (run, earlier): (i64, &[Event]),
    opening: EventKind,
    backlog: Option<Backlog>,
) -> Answered {
    let Ready { world, common, project, .. } = *ready;
    journal.hold(lock);
    journal.abort_after(world.abort_after());
    let runtime = event_queue()?;
    let needed: Vec<&str> = ready.workspaces.copy.iter().chain(&ready.workspaces.share).map(String::as_str).collect();
    let engine = ready.facts.engine.as_ref().map(|name| engine_of(world, project, name, &needed)).transpose()?;
    let planner = Planner::new(ready, &project.root)?;
    let mut budget = Budget::new(&ready.whole, &ready.each, world.uptime());
    for (unit, totals) in used_before(&journal, earlier)? {
        budget.used_before(&unit, &totals);
    }
    let awake = (project.config.keep_awake != Some(false))
        .then(|| SleepInhibitor::take(&format!("run {run} works on tasks"), &project.root));
    let paint = Paint::for_stderr(world);
    let sinks = ready.output.sinks(world)?;
    let (say, messages) = channel();
    // Without live lines, nothing is in the way.
    let is_live = paint.terminal && !common.quiet;
    let say = move |message: String| {
        if !is_live || say.send(message.clone()).is_err() {
            print_error(&message);
        }
    };
    let sharing = backlog.map(|backlog| Sharing::start(backlog, ready.hub.clone(), run, say)).transpose()?;
    let ended = runtime.block_on(async {
        let screen = Screen::start().map_err(Failure::Threads)?;
        let mut terminal = BatchTerminal::new(screen, sinks, run, paint, common.quiet);
        terminal.hear(messages);
        for event in earlier {
            crate::engine::Observer::earlier_event(&mut terminal, event);
        }
        let context = BatchContext {
            world,
            root: &project.root,
            hub: &ready.hub,
            workspaces: ready.workspaces.folder.clone(),
            keeps_workspaces: ready.workspaces.keep,
            journal: &mut journal,
            run,
            earlier,
            planner: &planner,
            budget,
            opening,
            facts: ready.facts.clone(),
            engine: engine.map(Rc::new),
            observer: &mut terminal,
        };
        work_on_batch(context).await
    });
    drop(awake);
    let is_shared = sharing.is_none_or(Sharing::finish);
    let where_landed = ready.facts.hub.as_ref().filter(|_| is_shared && !common.quiet);
    match ended {
        Ok(state) => match closed(ready, &journal, run, &state)? {
            // Nobody else has what this batch has done.
            Exit::Success if !is_shared => Ok(Exit::Incomplete),
            exit => {
                if let Some(hub) = where_landed {
                    print_error(&format!("  for others: git fetch {} forkhestra/line\n", quoted(hub)));
                }
                Ok(exit)
            }
        },
        Err(error) => {
            let fault = match &error {
                BatchError::Hub(error) => refused(error),
                _ => Diagnostic::error("run/failed", error.to_string()).help("no process of the batch is left running"),
            };
            print_error(&render(&[fault], paint));
            Ok(Exit::Incomplete)
        }
    }
}

/// What the runs of a batch have used so far.
fn used_before(journal: &Journal, earlier: &[Event]) -> Result<Vec<(String, Totals)>, Stopped> {
    let Some(state) = BatchState::of_events(earlier) else { return Ok(Vec::new()) };
    let mut used = Vec::new();
    for (name, unit) in &state.units {
        used.push((name.clone(), journal.events().summary(unit.run)?.totals));
    }
    Ok(used)
}

/// Prints the table of a batch, and returns its exit code.
fn closed(ready: &Ready<'_>, journal: &Journal, run: i64, state: &BatchState) -> Answered {
    let Ready { world, common, .. } = *ready;
    let outcome = state.outcome.unwrap_or(RunOutcome::TasksLeft);
    let ends = state.units.values().filter(|unit| unit.task.is_some()).filter_map(|unit| unit.outcome);
    let needs_human = ends.filter(|end| matches!(end, RunOutcome::NeedsHuman { .. })).count() > 0;
    let exit = match outcome {
        RunOutcome::TasksLeft if needs_human => Exit::HumanNeeded,
        outcome => exit_of(outcome),
    };
    if ready.output.json {
        answer(&json_line(batch_json(run, state, exit.code())));
    }
    if !common.quiet {
        let paint = Paint::for_stderr(world);
        print_error(&closing(world, common, journal, (run, state), paint)?);
    }
    Ok(exit)
}
