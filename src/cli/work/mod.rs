//! `work`: does one unit of work, from its claim to its result, in a workspace of its own.

pub(super) mod args;
mod keep;

use crate::cli::args::{Common, ResumeArgs, RunArgs};
use crate::cli::options::{BoundOptions, OutputArgs, RunOptions};
use crate::cli::respond::{Answered, Stopped, answer};
use crate::cli::run;
use crate::context::TreeOrigin;
use crate::exit::Exit;
use crate::hub::{Claim, Hub, HubError, PortBlock, Workspace};
use crate::journal::{Journal, NewTask};
use crate::report::print_error;
use crate::source::{Diagnostic, sha256};
use crate::task::AuditRow;
use crate::unit::Bundle;
use crate::world::World;
use args::WorkArgs;
use keep::{from_checkpoint, keeper, restore};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Does one unit of work. What the run reports as events goes to standard output.
pub(super) fn work(world: &World, common: &Common, args: &WorkArgs) -> Answered {
    let hub = open(world, &args.hub)?;
    hub.refresh(&args.unit)?;
    let mut bundle = hub.bundle(&args.unit).map_err(|error| refused(&error))?;
    let folder = match &args.workspaces {
        Some(folder) => folder.clone(),
        None if hub.is_mirror() => {
            let name = hub.path().file_stem().unwrap_or_default();
            world.cache_home().ok_or_else(no_home)?.join("forkhestra/workspaces").join(name)
        }
        None => workspaces(world, hub.path(), None)?,
    };
    let workspace = Workspace::of(&bundle, &folder);
    let worker = world.token().map_err(|error| no_name(&error.to_string()))?;
    let Some(claim) = hub.claim(&args.unit, &worker).map_err(|error| refused(&error))? else {
        // Whoever started this worker may have missed what the earlier one reported.
        if let Some((run, true)) = under_way(&workspace) {
            report_events(&workspace.root, run)?;
        }
        print_error(&format!("unit {} is done, or another worker has it\n", args.unit));
        return Ok(Exit::Taken);
    };
    let mut earlier = under_way(&workspace);
    let mut origin = hub.origin();
    if earlier.is_none() {
        let found = hub.unit(&args.unit).map_err(|error| refused(&error))?;
        bundle = from_checkpoint(&bundle, found.as_ref());
        let from = files(&hub, &bundle, args.files.as_deref())?;
        origin = hub.make_workspace(&bundle, &workspace, &from).map_err(|error| refused(&error))?;
        begin(&workspace, &bundle)?;
        earlier = restore(world, &hub, &bundle, &workspace, found.as_ref())?.map(|run| (run, false));
    }
    let ports = lease_ports(world, &bundle)?;
    let world = &in_workspace(world, (&workspace, &folder), ports.as_ref(), bundle.try_number);
    let claim = Rc::new(RefCell::new(claim));
    let keeper = (!args.no_checkpoints).then(|| keeper(&hub, &bundle, &workspace, &claim));
    let common = &Common { keeper, ..in_place(common, &bundle, &workspace, origin) };
    let earlier = earlier.map(|(run, has_ended)| EarlierRun { run, has_ended, limits: args.limit.clone() });
    let exit = carry_out(world, common, &bundle, &workspace, earlier).unwrap_or_else(|stopped| stopped.exit(world));
    hand_over(&hub, &bundle, &workspace, &mut claim.borrow_mut(), exit)
}

/// Opens a hub on this machine, or the mirror of one on another machine.
fn open(world: &World, hub: &str) -> Result<Hub, Stopped> {
    if !Hub::is_url(hub) {
        let path = world.cwd().join(hub);
        return if path.join("HEAD").is_file() { Ok(Hub::at(&path)) } else { Err(no_hub(&path).into()) };
    }
    let digest = sha256(hub.as_bytes());
    let name = format!("{}-{}.git", Hub::project_of(hub), digest.get(..8).unwrap_or(&digest));
    let path = world.cache_home().ok_or_else(no_home)?.join("forkhestra/hubs").join(name);
    Ok(Hub::mirror(hub, &path)?)
}

/// The directory with the ignored files that a unit needs.
fn files(hub: &Hub, bundle: &Bundle, given: Option<&Path>) -> Result<PathBuf, Diagnostic> {
    let needed: Vec<&str> = bundle.copy.iter().chain(&bundle.share).map(String::as_str).collect();
    match given {
        Some(folder) => Ok(folder.to_path_buf()),
        None if hub.is_mirror() && !needed.is_empty() => Err(Diagnostic::error(
            "work/files",
            format!("unit {} needs files that are not in its commit: {}", bundle.unit, needed.join(", ")),
        )
        .help("name a directory of this machine that has them: --files DIR")),
        None => Ok(root_of(hub.path()).to_path_buf()),
    }
}

/// A run that an earlier worker of the unit has begun.
struct EarlierRun {
    run: i64,
    /// Whether it has ended by itself.
    has_ended: bool,
    /// The limits that apply when it is resumed, as `--limit` takes them.
    limits: Vec<String>,
}

/// Keeps the work, and hands the unit over unless it was interrupted or has reached a limit, which can be raised.
fn hand_over(hub: &Hub, bundle: &Bundle, workspace: &Workspace, claim: &mut Claim, exit: Exit) -> Answered {
    let failed = |error: HubError| Stopped::from(refused(&error));
    let work = hub.commit_workspace(bundle, workspace).map_err(failed)?;
    let continues =
        matches!(exit, Exit::HungUp | Exit::Interrupted | Exit::Terminated | Exit::OutputClosed | Exit::LimitReached);
    let holds = if continues {
        hub.checkpoint(claim, &work).map_err(failed)?
    } else {
        hub.hand_over(claim, &work, exit.code()).map_err(failed)?
    };
    if holds {
        return Ok(exit);
    }
    print_error(&format!("another worker has claimed unit {}; its result counts\n", bundle.unit));
    Ok(Exit::Taken)
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
    let told = OutputArgs { events: Some("ndjson".into()), ..OutputArgs::default() };
    if let Some(EarlierRun { run, has_ended, limits }) = earlier {
        report_events(&workspace.root, run)?;
        if has_ended {
            return exit_of_run(&workspace.root, run);
        }
        let resumed = ResumeArgs { run: Some(run), limit: limits, told, ..ResumeArgs::default() };
        return run::resume::resume(world, common, &resumed);
    }
    let given = |word: &Option<String>| word.clone();
    let overrides = bundle.overrides.clone();
    let args = RunArgs {
        words: bundle.vars.clone(),
        steps: given(&bundle.steps),
        chain: given(&bundle.chain),
        task: bundle.task.as_ref().map(|task| task.id.clone()),
        prompt: bundle.choice.as_ref().map(|choice| choice.prompt.clone()),
        digest: given(&bundle.digest),
        options: RunOptions {
            bounds: BoundOptions {
                timeout: overrides.timeout,
                idle_timeout: overrides.idle_timeout,
                permissions: overrides.permissions,
                limit: overrides.limits,
            },
            backend: overrides.backend,
            model: overrides.model,
            profile: overrides.profile,
            scope: overrides.scope,
            base: overrides.base,
            accept_changes: false,
        },
        told,
        ..RunArgs::default()
    };
    run::run(world, common, &args)
}

/// Returns the run that an earlier worker of this unit has begun in its workspace, and whether it has ended by itself.
fn under_way(workspace: &Workspace) -> Option<(i64, bool)> {
    let before = workspace.run_before()?;
    let journal = Journal::existing(&workspace.root).ok()??;
    let row = journal.runs().ok()?.into_iter().next().filter(|row| row.id > before && row.began)?;
    Some((row.id, row.outcome.is_some_and(crate::engine::RunOutcome::is_a_conclusion)))
}

/// Records the unit as the owner of its workspace, and gives the workspace its task.
fn begin(workspace: &Workspace, bundle: &Bundle) -> Result<(), Stopped> {
    let mut journal = Journal::open(&workspace.root)?;
    let before = journal.runs()?.first().map_or(0, |row| row.id);
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
        journal.put_task(&task.id, &new, &task.added, &trail)?;
    }
    Ok(workspace.take(before)?)
}

/// Prints the events of a run in a workspace again. Who reads them knows their numbers.
fn report_events(root: &Path, run: i64) -> Result<(), Stopped> {
    let Some(journal) = Journal::existing(root)? else { return Ok(()) };
    let lines = journal.events(run)?.into_iter().filter_map(|event| serde_json::to_string(&event).ok());
    answer(&lines.map(|line| line + "\n").collect::<String>());
    Ok(())
}

fn exit_of_run(root: &Path, run: i64) -> Answered {
    let rows = match Journal::existing(root)? {
        Some(journal) => journal.runs()?,
        None => Vec::new(),
    };
    let outcome = rows.into_iter().find(|row| row.id == run).and_then(|row| row.outcome);
    Ok(outcome.map_or(Exit::Incomplete, run::execute::exit_of))
}

/// The user's root, to which a hub belongs.
fn root_of(hub: &Path) -> &Path {
    hub.ancestors().nth(2).unwrap_or(hub)
}

/// Leases the ports of a unit, for as long as this process lives.
fn lease_ports(world: &World, bundle: &Bundle) -> Result<Option<PortBlock>, Stopped> {
    if bundle.ports == 0 {
        return Ok(None);
    }
    let cache = world.cache_home().ok_or_else(no_home)?;
    let lease = PortBlock::lease(&cache.join("forkhestra/ports"), bundle.ports)?;
    let none = || {
        Diagnostic::error("work/ports", format!("no {} ports in a row are free", bundle.ports))
            .help("end the programs that listen on ports from 20000 on, or ask for fewer: `workspace.ports`")
    };
    Ok(Some(lease.ok_or_else(none)?))
}

/// The surroundings of a run in a workspace.
fn in_workspace(
    world: &World,
    (workspace, folder): (&Workspace, &Path),
    ports: Option<&PortBlock>,
    try_number: Option<u32>,
) -> World {
    let mut variables =
        vec![("FORKHESTRA_WORKSPACE", workspace.top.clone().into_os_string()), World::parked_variable(folder)];
    variables.extend(try_number.map(|number| ("FORKHESTRA_TRY", number.to_string().into())));
    variables.extend(ports.map(|ports| ("FORKHESTRA_PORT", ports.first.to_string().into())));
    world.with_variables(&variables)
}

/// The directory of the workspaces of a hub, below `root` or the user's cache.
pub(in crate::cli) fn workspaces(world: &World, hub: &Path, root: Option<&Path>) -> Result<PathBuf, Diagnostic> {
    let project = root_of(hub);
    let name = project.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let digest = sha256(project.as_os_str().as_encoded_bytes());
    let below = format!("{name}-{}", digest.get(..8).unwrap_or(&digest));
    let root = match root {
        Some(root) => root.to_path_buf(),
        None => world.cache_home().ok_or_else(no_home)?.join("forkhestra/workspaces"),
    };
    Ok(root.join(below))
}

fn no_hub(path: &Path) -> Diagnostic {
    Diagnostic::error("work/no-hub", format!("there is no hub at {}", path.display()))
        .help("that of a project is its .forkhestra/hub.git; `task run --jobs N` creates it")
}

fn no_name(why: &str) -> Diagnostic {
    Diagnostic::error("work/name", format!("this worker can get no name: {why}"))
        .help("it is a random number from the system; is /dev/urandom readable?")
}

fn no_home() -> Diagnostic {
    Diagnostic::error("work/workspaces", "there is no directory for workspaces: HOME is not set")
        .help("set HOME or XDG_CACHE_HOME, or the key `workspace.root` of the config")
}

/// An error of the hub, as a person sees it.
pub(in crate::cli) fn refused(error: &HubError) -> Diagnostic {
    Diagnostic::error("hub/failed", error.to_string()).help(error.help())
}

impl From<HubError> for Stopped {
    fn from(error: HubError) -> Self {
        refused(&error).into()
    }
}
