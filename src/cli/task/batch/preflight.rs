//! What is checked before a batch starts anything. All errors are reported at once.

use super::backlog::SharedView;
use super::engine::{engine_of, secrets_in};
use super::errors;
use super::landing::landing_checks;
use super::workspaces::WorkspacePlan;
use crate::batch::RemoteEngine;
use crate::chain::{Limits, Role};
use crate::cli::config::Project;
use crate::cli::respond::{Stopped, broken_journal};
use crate::cli::run::chain::{named, split};
use crate::cli::run::setup::SETUP;
use crate::cli::run::{Typed, planned, said_by};
use crate::cli::task::args::TaskRunArgs;
use crate::cli::task::errors as task_errors;
use crate::cli::task::facts::{facts_of, known, shared_ids};
use crate::cli::task::land::{last_line, moved};
use crate::cli::work::{missing, refused};
use crate::context::Repository;
use crate::engine::{BatchFacts, BatchState, BatchTask, TaskPlace};
use crate::hub::{Hub, Merged, UserTree, Workspace};
use crate::journal::Journal;
use crate::plan::{Kind, Overrides, Plan, limits};
use crate::proc::capture;
use crate::source::{Diagnostic, Place, Source};
use crate::task::{Status, Task};
use crate::world::World;
use std::num::NonZeroU32;
use std::path::Path;

/// A batch whose preconditions hold.
pub(super) struct Checked {
    pub(super) hub: Hub,
    pub(super) facts: BatchFacts,
    pub(super) workspaces: WorkspacePlan,
    /// The engine of `--on`.
    pub(super) engine: Option<RemoteEngine>,
    pub(super) whole: Limits,
    pub(super) each: Limits,
}

/// The oldest git that merges without a working tree (git-merge-tree(1), `--write-tree`).
const GIT: (u32, u32) = (2, 38);

/// Checks everything. Unless it is a dry run, prepares the hub, too.
pub(super) fn check(
    world: &World,
    project: &Project,
    args: &TaskRunArgs,
    (vars, ids): (&[String], &[String]),
    shared: Option<&SharedView>,
) -> Result<Checked, Stopped> {
    let mut faults = Vec::new();
    let whole = limits("--limit", &args.options.bounds.limit, &project.shell)
        .unwrap_or_else(|found| gathered(&mut faults, found));
    let each =
        limits("--limit-each", &args.limit_each, &project.shell).unwrap_or_else(|found| gathered(&mut faults, found));
    let journal = Journal::open(&project.root)?;
    let tasks = match shared {
        Some(shared) => shared.tasks.clone(),
        None => own_tasks(&project.root, journal.tasks().all()?, ids)?,
    };
    let earlier = earlier_batches(&journal)?;
    let unlanded = match shared {
        Some(shared) => shared.completed().collect(),
        None => unlanded(&project.root, &journal, &tasks, &earlier)?,
    };
    let chosen = chosen(&tasks, ids, &unlanded).unwrap_or_else(|found| gathered(&mut faults, found));
    // If the tasks cannot be chosen, the errors of the chain are reported all the same.
    let open: Vec<&Task> = tasks.iter().filter(|task| !task.status.is_terminal()).collect();
    let of_chain = if faults.is_empty() { &chosen } else { &open };
    let Planned { verification, rejections, judge } =
        plan_tasks(world, project, args, vars, of_chain).unwrap_or_else(|found| gathered(&mut faults, found));
    let repository = repository_of(&project.root, args.with_changes).map_err(|found| faults.extend(found)).ok();
    let workspaces = (repository.as_ref())
        .map(|(repository, _)| WorkspacePlan::of(world, project, Some(repository)))
        .transpose()
        .unwrap_or_else(|found| gathered(&mut faults, found));
    let needed: Vec<&str> =
        workspaces.iter().flat_map(|plan| plan.copy.iter().chain(&plan.share)).map(String::as_str).collect();
    let mut engine = None;
    if let Some(name) = &args.on {
        engine = engine_of(world, project, name, &needed).map_err(|found| faults.extend(found)).ok();
        faults.extend(secrets_in(world, vars, of_chain));
    } else if let Some(plan) = &workspaces {
        let missing = missing(world, &plan.needs);
        faults.extend((!missing.is_empty()).then(|| errors::machine_lacks(&missing)));
    }
    let Some((repository, head)) = repository.filter(|_| faults.is_empty()) else { return Err(faults.into()) };
    if chosen.is_empty() {
        return Err(task_errors::nothing_to_run().into());
    }
    let workspaces = workspaces.unwrap_or_default();
    let mut facts = BatchFacts {
        tasks: Vec::new(),
        jobs: args.lanes().unwrap_or(1),
        engine: args.on.clone(),
        hub: args.hub.clone(),
        chain: args.chain.clone(),
        vars: vars.to_vec(),
        verification,
        line: head.clone(),
        branch: branch(&project.root),
        rejections,
        limit_each: args.limit_each.clone(),
        together: project.config.landing.together.map(NonZeroU32::get),
        tries: args.tries.as_ref().map(|tries| tries.0.clone()).unwrap_or_default(),
        judge,
    };
    let each = each.or(project.config.limits.clone());
    if args.dry_run {
        facts.tasks = chosen.iter().map(|task| fresh(task, &chosen)).collect();
        return Ok(Checked { hub: Hub::at(&project.root), facts, workspaces, engine, whole, each });
    }
    let hub = Hub::prepare(&project.root, &repository)?;
    hub.adopt_settings(&repository, &workspaces.ignored(&repository.below(&project.root)))?;
    hub.import(&repository, &head)?;
    let begin = if args.with_changes { UserTree(&repository).snapshot(&hub, &head)? } else { head };
    let theirs = shared.map(|shared| shared.line(&hub)).transpose()?.flatten();
    let is_of_hub = |line: &str| theirs.as_ref().is_some_and(|theirs| hub.commits().is_ancestor(line, theirs));
    if let Some((known, now)) = last_line(&journal)?.zip(hub.line()).filter(|(known, now)| known != now) {
        let is_older =
            hub.commits().is_ancestor(&now, &known) || hub.commits().is_ancestor(&now, &begin) || is_of_hub(&now);
        if !is_older {
            return Err(moved(&known).into());
        }
    }
    if let Some(shared) = shared {
        shared.adopt_line(&hub)?;
    }
    facts.line = begin_line(&hub, &begin, facts.branch.as_deref()).map_err(Stopped::from)?;
    let known = EarlierWork { hub: &hub, folder: &workspaces.folder, batches: &earlier, shared };
    let tasks = chosen.iter().map(|task| of_batch(task, &chosen, &facts.line, &known));
    facts.tasks = tasks.collect::<Result<_, _>>()?;
    Ok(Checked { hub, facts, workspaces, engine, whole, each })
}

/// The tasks of the project itself: another batch may work on those of a hub.
fn own_tasks(root: &Path, tasks: Vec<Task>, ids: &[String]) -> Result<Vec<Task>, Stopped> {
    let shared = shared_ids(root)?;
    let meant: Vec<&str> = ids.iter().map(String::as_str).filter(|id| shared.iter().any(|known| known == id)).collect();
    if !meant.is_empty() {
        return Err(task_errors::of_a_hub(&meant).into());
    }
    Ok(tasks.into_iter().filter(|task| !shared.contains(&task.id)).collect())
}

fn gathered<T: Default>(faults: &mut Vec<Diagnostic>, found: Vec<Diagnostic>) -> T {
    faults.extend(found);
    T::default()
}

/// The tasks that are completed, but whose work in an earlier batch has not landed.
fn unlanded<'a>(
    root: &Path,
    journal: &Journal,
    tasks: &'a [Task],
    earlier: &[BatchState],
) -> Result<Vec<&'a str>, Stopped> {
    let mut found = Vec::new();
    // Without the hub, the work is gone.
    let Some(hub) = Hub::existing(root) else { return Ok(found) };
    for task in tasks.iter().filter(|task| task.status == Status::Completed) {
        let Some(state) = earlier.iter().find(|state| state.tasks.contains_key(&task.id)) else { continue };
        let Some(known) = state.tasks.get(&task.id) else { continue };
        let unit = state.units.values().rev().find(|unit| unit.task.as_ref() == Some(&task.id));
        let was_cut_off = matches!(known.place, TaskPlace::AtWork | TaskPlace::Interrupted | TaskPlace::Stopped(_));
        let has_workspace = was_cut_off && unit.is_some_and(|unit| Path::new(&unit.workspace).is_dir());
        let has_work = known.best_work().into_iter().any(|work| hub.has(work)) || has_workspace;
        let is_landed = matches!(known.place, TaskPlace::Landed(_));
        // A later run in the user's own directory has nothing to do with that work. The last batch may only have
        // tried to verify it.
        let of_batches = || earlier.iter().filter_map(|state| state.tasks.get(&task.id));
        let is_its_last = journal
            .tasks()
            .runs_of(&task.id)?
            .last()
            .is_some_and(|run| of_batches().any(|known| known.runs.contains(run)));
        if has_work && !is_landed && is_its_last {
            found.push(task.id.as_str());
        }
    }
    Ok(found)
}

/// The tasks of the batch, in the order in which they are begun: those with these names, or all that can be worked on.
fn chosen<'a>(tasks: &'a [Task], ids: &[String], unlanded: &[&str]) -> Result<Vec<&'a Task>, Vec<Diagnostic>> {
    let mut faults = Vec::new();
    let mut chosen: Vec<&Task> = Vec::new();
    for id in ids {
        match known(tasks, id) {
            Ok(task) if task.status.is_terminal() && !unlanded.contains(&task.id.as_str()) => {
                faults.push(task_errors::terminal(id, task.status));
            }
            Ok(task) if !chosen.iter().any(|other| other.id == task.id) => chosen.push(task),
            Ok(_) => {}
            Err(fault) => faults.push(fault),
        }
    }
    let can_end = |task: &&Task, among: &[&Task]| {
        let is_done = |id: &String| tasks.iter().any(|other| other.id == *id && other.status == Status::Completed);
        task.after.iter().all(|id| is_done(id) || among.iter().any(|other| other.id == *id))
    };
    if ids.is_empty() {
        let is_open = |task: &&Task| !task.status.is_terminal() || unlanded.contains(&task.id.as_str());
        chosen = tasks.iter().filter(is_open).collect();
        // What waits for a task that is not worked on is left out, and what waits for that one, too.
        loop {
            let left: Vec<&Task> = chosen.iter().copied().filter(|task| can_end(task, &chosen)).collect();
            if left.len() == chosen.len() {
                break;
            }
            chosen = left;
        }
    } else {
        for task in chosen.iter().filter(|task| !can_end(task, &chosen)) {
            let is_in = |id: &&String| chosen.iter().any(|other| other.id == **id);
            let outside: Vec<&str> = task.after.iter().filter(|id| !is_in(id)).map(String::as_str).collect();
            faults.push(errors::waits_outside(&task.id, &outside));
        }
    }
    let rank = |task: &Task| match task.status {
        Status::Review => 0,
        Status::InProgress => 1,
        _ => 2,
    };
    chosen.sort_by_key(|task| rank(task));
    if faults.is_empty() { Ok(chosen) } else { Err(faults) }
}

/// What the plans of a batch's tasks say.
#[derive(Debug, Default)]
struct Planned {
    /// The checks of the chain, as a chain that verifies a merge; `None` with `--unverified`.
    verification: Option<String>,
    /// How often a task may be rejected.
    rejections: u32,
    /// The agent that chooses one of several tries; `None` without `--tries`.
    judge: Option<String>,
}

/// Plans the run of each task, and of each try at it.
fn plan_tasks(
    world: &World,
    project: &Project,
    args: &TaskRunArgs,
    vars: &[String],
    tasks: &[&Task],
) -> Result<Planned, Vec<Diagnostic>> {
    let (given, _) = split(vars, &project.shell)?;
    let chain = named(&args.chain, &project.config)?;
    // Errors in the limits are reported already.
    let mut overrides = args.options.overrides();
    overrides.limits.extend(args.limit_each.iter().cloned());
    overrides.settings(&project.shell).err().into_iter().for_each(|_| overrides.limits.clear());
    let mut backends: Vec<Option<String>> = args.tries.as_ref().map_or_else(|| vec![None], |tries| tries.0.clone());
    backends.sort();
    backends.dedup();
    let (mut faults, mut checks, mut judge): (Vec<Diagnostic>, Vec<String>, Option<String>) = Default::default();
    let mut rejections = 0;
    for (task, backend) in tasks.iter().flat_map(|task| backends.iter().map(move |backend| (task, backend))) {
        let facts = facts_of(task);
        let overrides = Overrides { backend: backend.clone().or(overrides.backend.clone()), ..overrides.clone() };
        let typed = Typed { prompt: said_by(&facts, project), overrides, task: Some(facts) };
        match planned(world, project, &chain, &given, &typed) {
            Ok(plan) => {
                (checks, rejections, judge) = (checks_of(&plan), plan.limits.rejections, judge_of(&plan));
                let unused = backend.as_ref().filter(|name| !uses(&plan, name));
                let unused = unused.map(|name| errors::unused_backend(&args.chain, name));
                faults.extend(unused.filter(|fault| !faults.contains(fault)));
            }
            // Most errors are those of every task.
            Err(found) => {
                let found = found.into_iter().map(|fault| of_tries(fault, backend.as_deref()));
                faults.extend(found.filter(|fault| !faults.contains(fault)).collect::<Vec<_>>());
            }
        }
    }
    if args.tries.is_none() {
        judge = None;
    } else if faults.is_empty() && judge.is_none() && !tasks.is_empty() {
        faults.push(errors::no_judge(&args.chain));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut found = Planned { verification: None, rejections, judge };
    if args.unverified || tasks.is_empty() {
        return Ok(found);
    }
    let checks = match &project.config.landing.checks {
        Some(names) => landing_checks(world, project, names, &overrides)?,
        None => checks,
    };
    if checks.is_empty() {
        return Err(vec![errors::no_check(&args.chain)]);
    }
    found.verification = Some(checks.join(" -> "));
    Ok(found)
}

/// An error about a backend of `--tries`, at that option.
fn of_tries(fault: Diagnostic, backend: Option<&str>) -> Diagnostic {
    let Some(backend) = backend else { return fault };
    let places = fault.places.into_iter().map(|(place, label)| match place.source.name.as_str() {
        "--backend" => (Place::whole(&Source::new("--tries", backend, &place.source.base)), label),
        _ => (place, label),
    });
    Diagnostic { places: places.collect(), ..fault }
}

/// Whether an agent of a plan runs on this backend.
fn uses(plan: &Plan, name: &str) -> bool {
    let is_used = |kind: &Kind| matches!(kind, Kind::Agent { backend: Some(used), .. } if used == name);
    plan.steps.iter().any(|step| is_used(&step.kind))
}

/// The last judge of a plan.
fn judge_of(plan: &Plan) -> Option<String> {
    plan.steps.iter().rev().find(|step| step.role() == Some(Role::Judge)).map(|step| step.name.clone())
}

/// The names of the checks of a plan that can fail it, each once, in order.
fn checks_of(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for step in &plan.steps {
        let fails = matches!(step.kind, Kind::Check { optional: false, .. }) && step.name != SETUP;
        if fails && !names.contains(&step.name) {
            names.push(step.name.clone());
        }
    }
    names
}

/// The repository of a root and its checked-out commit, if a batch can begin there.
pub(in crate::cli) fn repository_of(root: &Path, with_changes: bool) -> Result<(Repository, String), Vec<Diagnostic>> {
    let version = capture(Path::new("git"), &["--version".to_string()], root);
    let version = version.map(|answer| answer.stdout.trim().to_string()).unwrap_or_default();
    let mut faults: Vec<Diagnostic> = is_old(&version).then(|| errors::old_git(&version)).into_iter().collect();
    let Some(repository) = Repository::of(root) else {
        faults.push(errors::no_repository(root));
        return Err(faults);
    };
    let head = repository.head();
    if head.is_empty() {
        faults.push(errors::no_commit());
        return Err(faults);
    }
    match UserTree(&repository).not_in_objects() {
        // With Git LFS, `git status` would write into the repository.
        Ok(paths) if !paths.is_empty() => {
            faults.push(errors::not_in_objects(&paths));
            return Err(faults);
        }
        Ok(_) => {}
        Err(error) => faults.push(refused(&error)),
    }
    match UserTree(&repository).uncommitted() {
        Ok(files) if !files.is_empty() && !with_changes => faults.push(errors::uncommitted(&files)),
        Ok(_) => {}
        Err(error) => faults.push(refused(&error)),
    }
    if faults.is_empty() { Ok((repository, head)) } else { Err(faults) }
}

/// Whether a version of git is too old, as `git --version` prints it.
fn is_old(version: &str) -> bool {
    let mut numbers = version.split(|next: char| !next.is_ascii_digit()).filter_map(|word| word.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < GIT
}

fn branch(root: &Path) -> Option<String> {
    let words = ["symbolic-ref", "--quiet", "--short", "HEAD"].map(str::to_string);
    let answer = capture(Path::new("git"), &words, root).filter(|answer| answer.code == Some(0))?;
    Some(answer.stdout.trim().to_string())
}

/// Advances the line to the user's commit if needed, and returns its last commit.
fn begin_line(hub: &Hub, begin: &str, branch: Option<&str>) -> Result<String, Vec<Diagnostic>> {
    let failed = |error| vec![refused(&error)];
    let old = hub.line();
    match &old {
        Some(line) if hub.commits().is_ancestor(begin, line) => return Ok(line.clone()),
        Some(line) if !hub.commits().is_ancestor(line, begin) => {
            return Err(vec![errors::line_apart(hub.commits().ahead(line, begin), branch.unwrap_or("HEAD"))]);
        }
        _ => {}
    }
    hub.advance_line(begin, old.as_deref()).map_err(failed)?;
    Ok(begin.to_string())
}

/// The batches of a root, the newest first.
fn earlier_batches(journal: &Journal) -> Result<Vec<BatchState>, Stopped> {
    let mut states = Vec::new();
    for batch in journal.runs().batches()? {
        states.extend(BatchState::of_events(&journal.events().of(batch).map_err(|error| broken_journal(&error))?));
    }
    Ok(states)
}

/// What earlier batches have left.
struct EarlierWork<'a> {
    hub: &'a Hub,
    /// The directory of the workspaces.
    folder: &'a Path,
    /// The batches, the newest first.
    batches: &'a [BatchState],
    /// The tasks that several people share, with the work of all batches.
    shared: Option<&'a SharedView>,
}

impl EarlierWork<'_> {
    /// The work on a task in the batches of this root, if it has not landed.
    fn of_batches(&self, task: &str) -> Option<String> {
        let state = self.batches.iter().find(|state| state.tasks.contains_key(task))?;
        let before = state.tasks.get(task).filter(|before| !matches!(before.place, TaskPlace::Landed(_)))?;
        let in_workspace = || self.in_workspace(state, task);
        before.work.clone().or_else(in_workspace).or_else(|| before.best_work().map(str::to_string))
    }

    /// Keeps what is in the workspace of a task whose process was killed before it could hand its work over. Returns
    /// the commit.
    fn in_workspace(&self, state: &BatchState, task: &str) -> Option<String> {
        let known = state.tasks.get(task)?;
        let is_stopped = matches!(known.place, TaskPlace::Stopped(_)) && known.best_work().is_none();
        let is_lost = is_stopped || matches!(known.place, TaskPlace::AtWork | TaskPlace::Interrupted);
        let (unit, found) = state.units.iter().rev().find(|(_, unit)| unit.task.as_deref() == Some(task))?;
        if !is_lost || !Path::new(&found.workspace).is_dir() {
            return None;
        }
        let bundle = self.hub.units().bundle(unit).ok()?;
        let workspace = Workspace::of(&bundle, self.folder);
        self.hub.workspaces().unlock(&workspace);
        self.hub.workspaces().commit(&bundle, &workspace).ok()
    }
}

/// A task as the batch gets it, without the work of an earlier batch.
fn fresh(task: &Task, chosen: &[&Task]) -> BatchTask {
    let is_in = |id: &&String| chosen.iter().any(|other| other.id == **id);
    BatchTask {
        id: task.id.clone(),
        title: task.title.clone(),
        after: task.after.iter().filter(is_in).cloned().collect(),
        rejections: task.rejections,
        ..BatchTask::default()
    }
}

/// A task as the batch gets it, with the work of an earlier batch.
fn of_batch(task: &Task, chosen: &[&Task], line: &str, earlier: &EarlierWork<'_>) -> Result<BatchTask, Stopped> {
    let hub = earlier.hub;
    let mut facts = fresh(task, chosen);
    let shared = match earlier.shared {
        Some(shared) if shared.has_landed(&task.id) => return Ok(facts),
        Some(shared) => shared.work_on(hub, &task.id)?.map(str::to_string),
        None => None,
    };
    let work = shared.or_else(|| earlier.of_batches(&task.id));
    let Some(work) = work.filter(|work| hub.has(work)) else { return Ok(facts) };
    if task.status == Status::Pending {
        return Ok(facts);
    }
    if task.status == Status::Completed {
        (facts.start, facts.completed) = (Some(work), true);
        return Ok(facts);
    }
    let (Merged::Clean { tree } | Merged::Conflict { tree, .. }) = hub.commits().merge(line, &work)?;
    facts.start = Some(hub.commits().create(&tree, &[line], "Work of an earlier batch, merged into the line\n")?);
    facts.base = Some(line.to_string());
    Ok(facts)
}
