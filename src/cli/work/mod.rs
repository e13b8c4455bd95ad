//! `work`: does one unit of work, from its claim to its result, in a workspace of its own.

pub(super) mod args;
mod carry;
mod contract;
mod keep;
mod next;
mod open;

use crate::cli::args::{ResumeArgs, RunArgs};
use crate::cli::eval::{keep_answers, run_slice};
use crate::cli::options::{Common, OutputArgs};
use crate::cli::respond::{Answered, Stopped, answer};
use crate::cli::run;
use crate::context::TreeOrigin;
use crate::exit::Exit;
use crate::hub::{Claim, FoundUnit, Hub, HubError, KeptUnit, Workspace, WorkspaceLock};
use crate::journal::{Journal, NewTask, RunLock};
use crate::report::print_error;
use crate::source::{Diagnostic, counted};
use crate::task::AuditRow;
use crate::unit::{Bundle, UnitStage};
use crate::world::World;
use args::WorkArgs;
use carry::work_on_file;
use keep::{RunToKeep, from_checkpoint, keeper, last_run, restore};
use next::{next, next_signal};
use open::{files, folder, in_workspace, lease_ports, open};

pub(in crate::cli) use carry::{bundle, sync};
pub(in crate::cli) use contract::{another_outline, another_plan};
pub(in crate::cli) use open::{missing, open as open_hub, workspaces};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// How long a worker waits before it tries again to hand a unit over, in seconds: ten minutes in all.
const PAUSES: [u32; 12] = [1, 2, 4, 8, 15, 30, 60, 60, 60, 120, 120, 120];

/// Does one unit of work. The events of its run go to standard output, unless that is a terminal.
pub(super) fn work(world: &World, common: &Common, args: &WorkArgs) -> Exit {
    // A unit that was refused has its result in the hub. Whoever started this worker must be able to tell that from a
    // worker that has reached nothing.
    work_on_units(world, common, args).unwrap_or_else(|stopped| match stopped.exit(world) {
        Exit::Refused => Exit::WorkerFailed,
        exit => exit,
    })
}

fn work_on_units(world: &World, common: &Common, args: &WorkArgs) -> Answered {
    world.make_own_cache();
    let random = world.token().map_err(|error| no_name(&error.to_string()))?;
    let part = args.name.as_ref().map_or_else(String::new, |name| format!("{name}/"));
    let worker = format!("{part}{random}@{}", world.machine());
    if let Some(files) = args.bundle.as_deref().zip(args.out.as_deref()) {
        return work_on_file(world, common, args, files, &worker);
    }
    let hub = open(world, args.hub.as_deref().unwrap_or_default())?;
    match &args.unit {
        Some(unit) => do_by_name(world, common, args, &hub, (unit, &worker)),
        None => next(world, common, args, &hub, &worker),
    }
}

/// Works on the unit with this name.
fn do_by_name(world: &World, common: &Common, args: &WorkArgs, hub: &Hub, (unit, worker): (&str, &str)) -> Answered {
    hub.units().refresh(unit)?;
    let before = hub.units().get(unit)?;
    if let Some(mut claim) = hub.units().claim(unit, worker)? {
        let bundle = hub.units().bundle(unit)?;
        return match obstacle(world, &bundle, args) {
            Some(refusal) => refuse(world, hub, &bundle, &mut claim, refusal),
            None => do_unit(world, common, args, hub, (bundle, claim), before.as_ref()),
        };
    }
    // Whoever started this worker may have missed what the earlier one reported.
    let workspace = Workspace::of(&hub.units().bundle(unit)?, &folder(world, args, hub)?);
    if let Some((run, true)) = under_way(&workspace) {
        report_events(world, &workspace.root, run)?;
    } else if !world.stdout_is_terminal()
        && let Some((_, events)) = hub.units().get(unit)?.and_then(|found| hub.kept().run(&found))
    {
        answer(&(events + "\n"));
    }
    print_error(&format!("unit {unit} is done, or another worker has it\n"));
    Ok(Exit::Taken)
}

/// Why a unit cannot be worked on here. A batch has checked its own machine before it began.
fn obstacle(world: &World, bundle: &Bundle, args: &WorkArgs) -> Option<Diagnostic> {
    if let Some(refusal) = of_another_version(bundle, args) {
        return Some(refusal);
    }
    let missing = missing(world, &bundle.needs);
    (!missing.is_empty()).then(|| {
        let (unit, missing) = (&bundle.unit, missing.join(", "));
        Diagnostic::error("work/needs", format!("unit {unit} needs what this machine lacks: {missing}"))
            .help("install the program or set the variable where the worker starts, or start workers elsewhere")
    })
}

/// Why this version of forkhestra cannot work on a unit. On its own machine, a batch continues with a newer version.
fn of_another_version(bundle: &Bundle, args: &WorkArgs) -> Option<Diagnostic> {
    let own = env!("CARGO_PKG_VERSION");
    let is_same = |text: &str| text.split('.').take(2).eq(own.split('.').take(2));
    (!args.no_checkpoints && !is_same(&bundle.forkhestra)).then(|| {
        let (unit, theirs) = (&bundle.unit, &bundle.forkhestra);
        Diagnostic::error("work/version", format!("unit {unit} was made by forkhestra {theirs}, and this is {own}"))
            .help("install the same version on both machines")
    })
}

/// Hands a unit over that cannot be worked on here.
fn refuse(world: &World, hub: &Hub, bundle: &Bundle, claim: &mut Claim, refusal: Diagnostic) -> Answered {
    let stopped = Stopped::from(refusal);
    let error = stopped.words();
    let kept = KeptUnit { work: &bundle.start, run: None, error: error.as_deref() };
    hub.kept().hand_over(claim, kept, Some(Exit::Refused.code()))?;
    Ok(stopped.exit(world))
}

/// Does the unit that was claimed. `before` is the unit before the claim.
fn do_unit(
    world: &World,
    common: &Common,
    args: &WorkArgs,
    hub: &Hub,
    (mut bundle, claim): (Bundle, Claim),
    before: Option<&FoundUnit>,
) -> Answered {
    let folder = folder(world, args, hub)?;
    let (workspace, lock) = workspace_of(&mut bundle, &folder, claim.fence, args)?;
    hub.workspaces().unlock(&workspace);
    // If another worker has claimed the unit since, what is here is older than the hub's last checkpoint.
    let is_newest = workspace.fence() == before.map(|before| before.record.fence);
    let found = hub.units().get(&claim.unit)?;
    let is_kept = || found.as_ref().is_some_and(|found| hub.kept().run(found).is_some());
    let mut earlier = under_way(&workspace).filter(|_| is_newest || !is_kept());
    let mut origin = hub.origin();
    if earlier.is_some() {
        workspace.claimed(claim.fence)?;
    } else {
        bundle = from_checkpoint(&bundle, found.as_ref());
        let from = files(hub, &bundle, args)?;
        origin = hub.workspaces().make(&bundle, &workspace, &from)?;
        begin(&workspace, &bundle, claim.fence)?;
        earlier = restore(world, hub, &bundle, &workspace, found.as_ref())?.map(|run| (run, false));
    }
    let ports = lease_ports(world, &bundle)?;
    let world = &in_workspace(world, (&workspace, &folder), ports.as_ref(), bundle.try_number);
    let claim = Rc::new(RefCell::new(claim));
    let is_quiet = common.quiet;
    let keeper = (!args.no_checkpoints).then(|| keeper(hub, &bundle, &workspace, &claim));
    let common = &Common { keeper, ..in_place(common, &bundle, &workspace, origin) };
    let earlier = earlier.map(|(run, has_ended)| {
        let offered = found.iter().flat_map(|found| hub.kept().limits(found));
        EarlierRun { run, has_ended, limits: offered.chain(args.limit.iter().cloned()).collect() }
    });
    let says = |words: String| {
        if !args.no_checkpoints && !is_quiet {
            print_error(&format!("unit {}: {words}\n", bundle.unit));
        }
    };
    says(format!("at work in {}", workspace.root.display()));
    let done = carry_out(world, common, &bundle, &workspace, earlier);
    if bundle.slice.is_some() {
        keep_answers(&workspace.root)?;
    }
    let error = done.as_ref().err().and_then(Stopped::words);
    let exit = done.unwrap_or_else(|stopped| stopped.exit(world));
    let result = UnitResult { exit, error: error.as_deref(), has_run: !args.no_checkpoints };
    let exit = hand_over(hub, &bundle, &workspace, &mut claim.borrow_mut(), result)?;
    says(if exit == Exit::Success { "complete".into() } else { format!("ended with exit code {}", exit.code()) });
    // On its own machine, the batch removes it once the work has landed.
    if !args.no_checkpoints && hub.units().get(&bundle.unit)?.is_some_and(|unit| unit.record.stage == UnitStage::Done) {
        drop(lock);
        hub.workspaces().remove(&workspace);
    }
    Ok(exit)
}

/// The workspace of a unit, with its lock. If a worker that has lost its claim still works in it, the unit gets another
/// one: that worker may stand still, on this machine or on one that shares the directory.
fn workspace_of(
    bundle: &mut Bundle,
    folder: &Path,
    fence: u32,
    args: &WorkArgs,
) -> Result<(Workspace, Option<WorkspaceLock>), HubError> {
    let workspace = Workspace::of(bundle, folder);
    let lock = workspace.lock()?;
    let is_held = || workspace.root.is_dir() && RunLock::is_held(&workspace.root).unwrap_or(false);
    // On its own machine, a batch starts a worker only when the one before has ended.
    if args.no_checkpoints || lock.is_some() && !is_held() {
        return Ok((workspace, lock));
    }
    bundle.workspace = format!("{}@{fence}", bundle.workspace);
    let workspace = Workspace::of(bundle, folder);
    let lock = workspace.lock()?;
    Ok((workspace, lock))
}

/// A run that an earlier worker of the unit has begun.
struct EarlierRun {
    run: i64,
    /// Whether it has ended by itself.
    has_ended: bool,
    /// The limits that apply when it is resumed, as `--limit` takes them.
    limits: Vec<String>,
}

/// What became of a unit.
#[derive(Clone, Copy)]
struct UnitResult<'a> {
    exit: Exit,
    /// Why it was refused.
    error: Option<&'a str>,
    /// Whether the hub gets its run, too.
    has_run: bool,
}

/// Keeps the work, and hands the unit over unless it was interrupted or has reached a limit, which can be raised.
fn hand_over(hub: &Hub, bundle: &Bundle, workspace: &Workspace, claim: &mut Claim, result: UnitResult<'_>) -> Answered {
    let UnitResult { exit, error, has_run } = result;
    let work = hub.workspaces().commit(bundle, workspace)?;
    let continues =
        matches!(exit, Exit::HungUp | Exit::Interrupted | Exit::Terminated | Exit::OutputClosed | Exit::LimitReached);
    let run = has_run.then(|| last_run(workspace)).flatten();
    let kept = KeptUnit { work: &work, run: run.as_ref().map(RunToKeep::kept), error };
    let exit_code = (!continues).then(|| exit.code());
    if patiently(&bundle.unit, || hub.kept().hand_over(claim, kept, exit_code))? {
        return Ok(exit);
    }
    print_error(&format!("another process has claimed unit {}; its result counts\n", bundle.unit));
    Ok(Exit::Taken)
}

/// Repeats what cannot reach the hub, until it does, a signal arrives, or ten minutes have passed.
fn patiently<T>(unit: &str, mut ask: impl FnMut() -> Result<T, HubError>) -> Result<T, HubError> {
    for seconds in PAUSES {
        match ask() {
            Err(error @ HubError::Remote { .. }) => {
                print_error(&format!("unit {unit}: {error}; trying again in {}\n", counted(seconds, "second")));
                if next_signal(Duration::from_secs(seconds.into())).is_some() {
                    return Err(error);
                }
            }
            asked => return asked,
        }
    }
    ask()
}

/// The options of the run in a workspace.
fn in_place(common: &Common, bundle: &Bundle, workspace: &Workspace, origin: TreeOrigin) -> Common {
    Common {
        cwd: Some(workspace.root.clone()),
        verbose: common.verbose,
        quiet: true,
        // The batch has checked that the config is trusted.
        trust: true,
        color: None,
        setup: bundle.setup.clone(),
        chooser: bundle.choice.as_ref().map(|choice| choice.judge.clone()),
        origin: Some(origin),
        keeper: None,
    }
}

/// Runs the chain of a bundle in its workspace, or resumes the run that an earlier worker began there.
fn carry_out(
    world: &World,
    common: &Common,
    bundle: &Bundle,
    workspace: &Workspace,
    earlier: Option<EarlierRun>,
) -> Answered {
    // Events are for programs.
    let events = (!world.stdout_is_terminal()).then(|| "ndjson".to_string());
    let told = OutputArgs { events, ..OutputArgs::default() };
    if let Some(EarlierRun { run, has_ended, limits }) = earlier {
        report_events(world, &workspace.root, run)?;
        if has_ended {
            return exit_of_run(&workspace.root, run);
        }
        let resumed = ResumeArgs { run: Some(run), limit: limits, told, ..ResumeArgs::default() };
        return run::resume::resume(world, common, &resumed);
    }
    if let Some(slice) = &bundle.slice {
        return run_slice(world, common, slice, bundle.plan.as_ref(), bundle.overrides.clone());
    }
    let given = |word: &Option<String>| word.clone();
    let args = RunArgs {
        words: bundle.vars.clone(),
        steps: given(&bundle.steps),
        chain: given(&bundle.chain),
        task: bundle.task.as_ref().map(|task| task.id.clone()),
        prompt: bundle.choice.as_ref().map(|choice| choice.prompt.clone()),
        // On its own machine, a batch may have another config since it made the unit.
        made: bundle.plan.clone().filter(|_| common.keeper.is_some()),
        options: bundle.overrides.clone().into(),
        told,
        ..RunArgs::default()
    };
    run::run(world, common, &args)
}

/// Returns the run that an earlier worker of this unit has begun in its workspace, and whether it has ended by itself.
fn under_way(workspace: &Workspace) -> Option<(i64, bool)> {
    let before = workspace.run_before()?;
    let journal = Journal::existing(&workspace.root).ok()??;
    let row = journal.runs().all().ok()?.into_iter().next().filter(|row| row.id > before && row.began)?;
    Some((row.id, row.outcome.is_some_and(crate::engine::RunOutcome::is_a_conclusion)))
}

/// Records the unit as the owner of its workspace, and gives the workspace its task.
fn begin(workspace: &Workspace, bundle: &Bundle, fence: u32) -> Result<(), Stopped> {
    let journal = Journal::open(&workspace.root)?;
    let before = journal.runs().all()?.first().map_or(0, |row| row.id);
    if let Some(task) = &bundle.task {
        let new = NewTask {
            id: Some(task.id.clone()),
            title: task.title.clone(),
            spec: task.spec.clone(),
            tests: task.tests.clone(),
            after: Vec::new(),
        };
        let entries = task.trail.iter();
        let trail: Vec<AuditRow> =
            entries.map(|entry| AuditRow { at: entry.at.clone(), run: None, change: entry.change.clone() }).collect();
        journal.tasks().put(&task.id, &new, &task.added, &trail)?;
    }
    Ok(workspace.take(before, fence)?)
}

/// Prints the events of a run in a workspace again. Who reads them knows their numbers.
fn report_events(world: &World, root: &Path, run: i64) -> Result<(), Stopped> {
    if world.stdout_is_terminal() {
        return Ok(());
    }
    let Some(journal) = Journal::existing(root)? else { return Ok(()) };
    let lines = journal.events().of(run)?.into_iter().filter_map(|event| serde_json::to_string(&event).ok());
    answer(&lines.map(|line| line + "\n").collect::<String>());
    Ok(())
}

fn exit_of_run(root: &Path, run: i64) -> Answered {
    let rows = match Journal::existing(root)? {
        Some(journal) => journal.runs().all()?,
        None => Vec::new(),
    };
    let outcome = rows.into_iter().find(|row| row.id == run).and_then(|row| row.outcome);
    Ok(outcome.map_or(Exit::Incomplete, run::execute::exit_of))
}

fn no_name(why: &str) -> Diagnostic {
    Diagnostic::error("work/name", format!("cannot create a name for this process: {why}"))
        .help("it is a random number from the system; is /dev/urandom readable?")
}

/// An error of the hub, as a person sees it.
pub(in crate::cli) fn refused(error: &HubError) -> Diagnostic {
    let what = error.to_string();
    let diagnostic = match error {
        HubError::File { .. } | HubError::Result { .. } => Diagnostic::error("bundle/unreadable", what),
        _ => Diagnostic::error("hub/failed", what),
    };
    diagnostic.help(error.help())
}

impl From<HubError> for Stopped {
    fn from(error: HubError) -> Self {
        refused(&error).into()
    }
}
