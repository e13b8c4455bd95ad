//! Carries out a plan: the root, its lock, its journal, the run, the exit code.

use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped, broken_journal};
use crate::cli::run::output::{Output, Over, close, run_hooks, verbosity, wanted_hooks};
use crate::cli::run::sandbox::sandbox_fault;
use crate::cli::run::survivors::end_last;
use crate::cli::task::commit::{Committed, commit_task};
use crate::cli::task::errors as task_errors;
use crate::engine::{Pace, RunOutcome, RunSummary, Sig};
use crate::exit::Exit;
use crate::journal::{BusyLock, Journal, JournalError, LockAttempt, NewRun, Refused, RunLock, Worker};
use crate::plan::{Kind, Outline, Overrides, Plan, PlannedStep, Root, TaskFacts, digest, outline};
use crate::proc::{SleepInhibitor, end_forks, end_holders, open_files, start_time};
use crate::report::{Console, Paint, Screen, Sinks, Terminal, TerminalOptions, Verbosity, print_error, quoted, render};
use crate::runner::{Failure, Replan, RunContext, RunEnd, RunStart, StartPoint, drive, wait_for_lock};
use crate::source::{Diagnostic, Env, counted};
use crate::world::World;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How a run begins, in addition to its plan.
pub(in crate::cli) struct NewStart<'a> {
    pub(in crate::cli) overrides: Overrides,
    /// What a run of a queue gets from the queue.
    pub(in crate::cli) queue: Option<QueueRun>,
    /// Whether to wait for another run in the same directory.
    pub(in crate::cli) wait: bool,
    /// Builds the plan again, if templates that are edited during the run are to be used.
    pub(in crate::cli) replan: Option<Replan<'a>>,
}

/// What a run of a queue of tasks gets from the queue.
pub(in crate::cli) struct QueueRun {
    /// The backends whose login has worked in the queue so far.
    pub(in crate::cli) logins: Vec<String>,
    /// The lock that the queue holds.
    pub(in crate::cli) lock: RunLock,
}

/// The number of open files without which waiting for signals cannot start. Whatever needs more reports it itself.
const FILES: u64 = 16;

/// The interval and the number of checks whether lifelines of a dead run have released the lock: two seconds in all,
/// after their processes have been stopped.
const LIFELINE_LOOK: Duration = Duration::from_millis(20);
const LIFELINE_LOOKS: usize = 100;

/// Runs a plan from its beginning.
pub(in crate::cli) fn start(
    world: &World,
    common: &Common,
    output: &Output,
    plan: &Plan,
    new: NewStart<'_>,
) -> Answered {
    let root = match &plan.root {
        Root::Folder(folder) => folder.clone(),
        Root::Temporary => world.make_temporary_folder().map_err(|error| no_temporary_folder(&error.to_string()))?,
    };
    if let Some(fault) = sandbox_fault(plan) {
        return Err(fault.into());
    }
    let (logins, lock) = match new.queue {
        Some(queue) => (Some(queue.logins), queue.lock),
        None => (None, lock(world, common, plan.name.as_deref().unwrap_or(&plan.chain), &root, new.wait)?),
    };
    let (outline, digest) = (outline(plan), digest(plan));
    let begun = Journal::open(&root).and_then(|mut journal| {
        let new = NewRun { worker: worker(), started: &world.timestamp(), digest: &digest, outline: &outline };
        let moved = plan.task.as_ref().map(|task| still_there(&journal, task)).transpose()?.flatten();
        if let Some(fault) = moved {
            return Ok(Err(fault));
        }
        if let Err(fault) = end_last(world, common, &journal) {
            return Ok(Err(fault));
        }
        let run = journal.begin(new)?;
        if let Some(task) = &plan.task {
            journal.follow(run, &task.id, &outline)?;
        }
        Ok(Ok((journal, run)))
    });
    let (mut journal, run) = match begun {
        Ok(Ok(begun)) => begun,
        Ok(Err(fault)) => return Err(fault.into()),
        Err(error) => return Err(error.into()),
    };
    journal.hold(lock);
    perform(
        world,
        common,
        output,
        Run { plan, outline: &outline, root: &root, journal, number: run, replan: new.replan },
        RunStart::New(Box::new(StartPoint { digest, overrides: new.overrides, logins })),
    )
}

/// Reports a task that was deleted or has changed its status since the plan was built.
fn still_there(journal: &Journal, planned: &TaskFacts) -> Result<Option<Diagnostic>, JournalError> {
    let now = journal.tasks().get(&planned.id)?;
    Ok(match now {
        None => Some(task_errors::unknown(&planned.id, None)),
        Some(task) if task.status.name() != planned.status => {
            Some(task_errors::refused(&Refused::Moved(task.status), &planned.id))
        }
        Some(_) => None,
    })
}

/// This process, as the journal identifies it.
pub(in crate::cli) fn worker() -> Worker {
    let pid = i32::try_from(std::process::id()).unwrap_or(0);
    Worker { pid, start_time: start_time(pid).unwrap_or(0) }
}

/// A run that is ready to start.
pub(in crate::cli) struct Run<'a> {
    pub(in crate::cli) plan: &'a Plan,
    pub(in crate::cli) outline: &'a Outline,
    pub(in crate::cli) root: &'a Path,
    pub(in crate::cli) journal: Journal,
    pub(in crate::cli) number: i64,
    /// Builds the plan again, if templates that are edited during the run are to be used.
    pub(in crate::cli) replan: Option<Replan<'a>>,
}

/// Drives a run to its end, and reports how it ended.
pub(in crate::cli) fn perform(
    world: &World,
    common: &Common,
    output: &Output,
    mut run: Run<'_>,
    begin: RunStart,
) -> Answered {
    let runtime = event_queue()?;
    let sinks = output.sinks(world)?;
    let why = format!("run {} of {}", run.number, run.outline.chain);
    let awake = run.plan.keeps_awake.then(|| SleepInhibitor::take(&why, run.root));
    let ended = runtime.block_on(on_stage(world, common, (output, sinks), &mut run, begin));
    drop(awake);
    match ended {
        Ok((ended, summary)) => {
            let exit = exit(&ended);
            let (task_status, commit) = task_is_over(world, common, &run);
            let folder = relative_folder(world, &run);
            let resume = resume_line(world, common, run.root, run.number);
            let transcripts = folder.display().to_string();
            let hooks = wanted_hooks(&run.plan.hooks, &summary);
            let over = Over {
                summary: &summary,
                outline: run.outline,
                root: run.root,
                transcripts,
                resume,
                exit,
                task_status,
                commit,
                has_hooks: !hooks.is_empty(),
            };
            let (json, printed) = close(world, common, output, &over);
            // Another run that waits for this directory need not wait for the hooks. A queue keeps its own lock.
            run.journal.let_go();
            run_hooks(world, common, &hooks, run.root, &json);
            match printed {
                Err(error) if exit == Exit::Success => {
                    print_error(&format!("forkhestra: cannot write its output: {error}\n"));
                    Ok(Exit::Incomplete)
                }
                _ => Ok(exit),
            }
        }
        Err(failure) => {
            let help = match &failure {
                Failure::Journal(error) => error.help(),
                Failure::Threads(_) => {
                    "the machine is out of resources; stop other programs, or raise the limits (ulimit -u)".into()
                }
                Failure::Signals(_) | Failure::Token(_) | Failure::Lost | Failure::Elsewhere(_) => {
                    "no process of the run is left running".into()
                }
            };
            let fault = Diagnostic::error("run/failed", failure.to_string()).help(help);
            print_error(&render(&[fault], Paint::for_stderr(world)));
            Ok(Exit::Incomplete)
        }
    }
}

/// Returns the current status of a run's task, and the commit of its work if the config wants one.
fn task_is_over(world: &World, common: &Common, run: &Run<'_>) -> (Option<&'static str>, Option<String>) {
    let Some(task) = &run.plan.task else { return (None, None) };
    let status = run.journal.tasks().get(&task.id).ok().flatten().map(|task| task.status.name());
    if !run.plan.commits_tasks {
        return (status, None);
    }
    let said = |words: &str| {
        if !common.quiet {
            print_error(words);
        }
    };
    let paint = Paint::for_stderr(world);
    let sandboxed = run.plan.steps.iter().any(PlannedStep::is_sandboxed);
    match commit_task(world, &run.journal, run.root, task, run.number, sandboxed) {
        Ok(Committed::As(commit, files, mixed)) => {
            let files = counted(files, "file");
            said(&format!("  committed {files} of task {} as {}\n", task.id, commit.get(..12).unwrap_or(&commit)));
            if !mixed.is_empty() {
                let words = format!("! left out, changed before the work began: {}", mixed.join(", "));
                said(&format!("{}\n", paint.warn(&words)));
            }
            (status, Some(commit))
        }
        Ok(Committed::Nothing) => (status, None),
        Ok(Committed::Failed(why)) => {
            said(&format!(
                "{}\n",
                paint.warn(&format!("! task {} is completed, but was not committed: {why}", task.id))
            ));
            (status, None)
        }
        Err(error) => {
            print_error(&render(&[broken_journal(&error)], paint));
            (status, None)
        }
    }
}

/// Locks the root for this run.
pub(in crate::cli) fn lock(
    world: &World,
    common: &Common,
    title: &str,
    root: &Path,
    wait: bool,
) -> Result<RunLock, Stopped> {
    let failed =
        |error: JournalError| Stopped::from(Diagnostic::error("run/lock", error.to_string()).help(error.help()));
    let mut taken = RunLock::take(root).map_err(failed)?;
    if let LockAttempt::Busy(busy) = taken {
        taken = after_lifelines(world, common, root, busy)?;
    }
    let mut lock = match taken {
        LockAttempt::Held(lock) => lock,
        LockAttempt::Busy(busy) if wait => {
            if !common.quiet {
                print_error(&format!("waiting for another run here: {}\n", busy.holder));
            }
            let runtime = event_queue()?;
            match runtime.block_on(wait_for_lock(world, busy)) {
                Ok(Ok(lock)) => lock,
                Ok(Err(signal)) => return Err(Stopped::Ended(exit_of(RunOutcome::Interrupted { signal }))),
                Err(error) => return Err(Diagnostic::error("run/lock", error.to_string()).into()),
            }
        }
        LockAttempt::Busy(busy) => return Err(busy_root(root, &busy.holder).into()),
    };
    lock.sign(&format!("{title}, process {}, since {}", std::process::id(), world.timestamp())).map_err(failed)?;
    Ok(lock)
}

/// Tries to get the lock of a dead process. Only its lifelines can still hold it, and forks that have not become
/// lifelines. Lifelines stop what the process left, so they are waited for. Such forks, and lifelines that do nothing,
/// are killed. A lock that is held even then belongs to a process that cannot be seen, in another container.
fn after_lifelines(world: &World, common: &Common, root: &Path, busy: BusyLock) -> Result<LockAttempt, Stopped> {
    if busy.process().is_none_or(|process| start_time(process).is_some()) {
        return Ok(LockAttempt::Busy(busy));
    }
    // A process that cannot be seen keeps holding it.
    let _ = end_forks(busy.file());
    let busy = match again(busy)? {
        LockAttempt::Busy(busy) => busy,
        held @ LockAttempt::Held(_) => return Ok(held),
    };
    let ended = Journal::existing(root).map_err(|error| broken_journal(&error));
    let ended = ended.and_then(|journal| journal.map_or(Ok(()), |journal| end_last(world, common, &journal)));
    ended?;
    let _ = end_holders(busy.file());
    again(busy)
}

/// Tries to get the lock for two seconds.
fn again(mut busy: BusyLock) -> Result<LockAttempt, Stopped> {
    for _ in 0..LIFELINE_LOOKS {
        busy = match busy.again()? {
            LockAttempt::Held(lock) => return Ok(LockAttempt::Held(lock)),
            LockAttempt::Busy(busy) => busy,
        };
        std::thread::sleep(LIFELINE_LOOK);
    }
    Ok(LockAttempt::Busy(busy))
}

/// Builds the async runtime.
pub(in crate::cli) fn event_queue() -> Result<Runtime, Diagnostic> {
    // tokio panics if there is no file descriptor for its signals.
    let most = open_files(FILES);
    if most < FILES {
        return Err(Diagnostic::error("run/runtime", format!("only {most} files may be open at once"))
            .help(format!("a run needs {FILES}: ulimit -n 1024")));
    }
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Diagnostic::error("run/runtime", format!("cannot start the async runtime: {error}")))
}

fn busy_root(root: &Path, holder: &str) -> Diagnostic {
    Diagnostic::error("run/busy", format!("another run is working in {}: {holder}", root.display())).help(
        "two runs in one directory would undo each other's work. Wait with --wait, stop it, or use another directory",
    )
}

/// The directory of the run's transcripts, relative to the current directory if it is below it.
fn relative_folder(world: &World, run: &Run<'_>) -> PathBuf {
    let folder = run.journal.files().run_folder(run.number);
    folder.strip_prefix(world.cwd()).map_or(folder.clone(), PathBuf::from)
}

/// Drives a run, and shows it on the terminal. Returns how the run ended, and its summary.
async fn on_stage(
    world: &World,
    common: &Common,
    (output, sinks): (&Output, Sinks),
    run: &mut Run<'_>,
    begin: RunStart,
) -> Result<(RunEnd, RunSummary), Failure> {
    let folder = relative_folder(world, run);
    let Run { plan, outline, root, journal, number, replan } = run;
    let (plan, root, number, replan) = (*plan, *root, *number, *replan);
    journal.abort_after(world.abort_after());
    let (paint, stdout) = (Paint::for_stderr(world), Paint::for_stdout(world));
    let verbosity = verbosity(common);
    let mut screen = Screen::start().map_err(Failure::Threads)?;
    if verbosity > Verbosity::Quiet {
        screen.say(&render(&plan.warnings, paint));
    }
    if let Some((names, file)) = plan.redefined.as_ref().filter(|_| verbosity > Verbosity::Quiet) {
        screen.say(&paint.dim(&format!("defined in {file}, not built in: {}\n", names.join(", "))));
    }
    if verbosity > Verbosity::Quiet && is_demo(plan) {
        screen.say(&demo_note(paint, root));
    }
    let dumb = world.var("TERM").is_some_and(|term| term == "dumb");
    let live = paint.terminal && !dumb && !world.is_still() && screen.has_room_for_live(stdout.terminal);
    let paint = if dumb { paint.still() } else { paint };
    let show_output = verbosity > Verbosity::Quiet && !output.owns_stdout();
    let pace = match (show_output, stdout.terminal) {
        (false, _) => Pace::Nothing,
        (true, false) => Pace::InStep,
        (true, true) => Pace::CatchUp,
    };
    let console = Console::new(outline, Some(plan), paint, verbosity, &folder);
    let options = TerminalOptions { pace, on_terminal: stdout.terminal, live, prefix: output.prefix };
    let sinks = Sinks { keeper: common.keeper.clone(), ..sinks };
    let mut terminal = Terminal::new(screen, console, sinks, options);
    let origin = common.origin.as_ref();
    let context = RunContext { plan, root, replan, world, journal, run: number, origin, observer: &mut terminal };
    let ended = drive(context, begin).await?;
    Ok((ended, terminal.into_summary()))
}

/// The command line that resumes a run, as typed in the user's current directory.
pub(in crate::cli) fn resume_line(world: &World, common: &Common, root: &Path, number: i64) -> String {
    command_line(world, common, root, &format!("resume {number}"))
}

/// A command line of forkhestra for a root, as typed in the user's current directory.
pub(in crate::cli) fn command_line(world: &World, common: &Common, root: &Path, words: &str) -> String {
    let elsewhere = common.cwd.is_some() || !world.cwd().starts_with(root);
    let cwd = if elsewhere { format!(" --cwd {}", quoted(&root.display().to_string())) } else { String::new() };
    format!("forkhestra {words}{cwd}")
}

fn is_demo(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(&step.kind, Kind::Agent { backend: Some(name), .. } if name == "demo"))
}

fn demo_note(paint: Paint, root: &Path) -> String {
    paint.dim(&format!(
        "This is a demonstration: the agents follow a script, no model is used, and the work is done in\n{}\n\n",
        root.display()
    ))
}

fn exit(ended: &RunEnd) -> Exit {
    match ended.outcome {
        RunOutcome::Succeeded | RunOutcome::OutputClosed if ended.output_error.is_some() => match &ended.output_error {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                print_error(&format!("forkhestra: cannot write its output: {error}\n"));
                Exit::Incomplete
            }
            _ => Exit::OutputClosed,
        },
        outcome => exit_of(outcome),
    }
}

/// Returns the exit code for the outcome of a run.
pub(in crate::cli) fn exit_of(outcome: RunOutcome) -> Exit {
    match outcome {
        RunOutcome::Succeeded => Exit::Success,
        RunOutcome::Failed { .. }
        | RunOutcome::IterationsExhausted { .. }
        | RunOutcome::Rejected { .. }
        | RunOutcome::CrashLoop { .. }
        | RunOutcome::CasesFailed
        | RunOutcome::TasksLeft
        | RunOutcome::OutOfResources { .. }
        | RunOutcome::Stalled { .. } => Exit::Incomplete,
        RunOutcome::NeedsHuman { .. } => Exit::HumanNeeded,
        RunOutcome::LimitReached { .. } => Exit::LimitReached,
        RunOutcome::OutputClosed => Exit::OutputClosed,
        RunOutcome::Interrupted { signal } => match signal {
            Sig::Hup => Exit::HungUp,
            Sig::Int => Exit::Interrupted,
            Sig::Term | Sig::Kill => Exit::Terminated,
        },
    }
}

fn no_temporary_folder(why: &str) -> Diagnostic {
    Diagnostic::error("run/temporary", format!("cannot create a temporary directory for the demo: {why}"))
        .help("set TMPDIR to a writable directory")
}
