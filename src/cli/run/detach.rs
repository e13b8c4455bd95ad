//! `--detach`: starts this program again in the background, and waits until its run has begun or it has given up.

use crate::cli::args::Verb;
use crate::cli::options::{Common, OutputArgs};
use crate::cli::people::no_run_by_a_judge;
use crate::cli::respond::{Answered, Stopped, answer};
use crate::cli::run::execute::{command_line, exit_of};
use crate::cli::run::reads_stdin;
use crate::cli::task::args::TaskVerb;
use crate::cli::verdict::in_an_iteration;
use crate::engine::{RunOutcome, Sig};
use crate::exit::Exit;
use crate::journal::Journal;
use crate::proc::{BackgroundProcess, Interrupts};
use crate::report::print_error;
use crate::source::{Diagnostic, Files};
use crate::world::World;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval at which the background process is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How many times a process that waits before its run begins is checked: a process that refuses its command line has
/// exited by then.
const LOOKS: u32 = 100;
/// How long the log of a process is kept.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// What `--detach` needs to know about a command line.
pub(in crate::cli) struct DetachRequest {
    /// Whether the prompt comes from standard input.
    reads_stdin: bool,
    /// Whether the run may begin much later.
    waits: bool,
    /// Whether events are to go to standard output.
    events: bool,
}

impl DetachRequest {
    /// Returns the request of a command that runs in the background.
    pub(in crate::cli) fn of(verb: &Verb) -> Option<Self> {
        let of = |told: &OutputArgs, reads_stdin, waits| {
            let events = told.events.as_deref() == Some("ndjson");
            told.detach.then_some(Self { reads_stdin, waits, events })
        };
        match verb {
            Verb::Run(args) => {
                let reads_stdin = reads_stdin(args.prompt.as_deref(), args.prompt_file.as_deref());
                of(&args.told, reads_stdin, args.wait || args.start_at.is_some())
            }
            Verb::Resume(args) => of(&args.told, false, args.wait),
            Verb::Task(args) => match &args.verb {
                TaskVerb::Run(args) => of(&args.told, false, args.wait || args.start_at.is_some()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Runs a command line in the background.
pub(in crate::cli) fn detach(
    world: &World,
    common: &Common,
    request: &DetachRequest,
    arguments: Vec<OsString>,
) -> Answered {
    no_run_by_a_judge(world)?;
    if in_an_iteration(world) {
        return Err(Diagnostic::error("run/detach", "an agent cannot start a run in the background")
            .help("all processes of an agent are ended after its attempt; run it in the foreground, without --detach")
            .into());
    }
    if request.events {
        return Err(Diagnostic::error(
            "usage/conflict",
            "a run in the background has no standard output for --events ndjson",
        )
        .help("write them to a file: --events ndjson=FILE")
        .into());
    }
    let log = log(world)?;
    let file = world.disk().appender(&log).map_err(|error| no_log(&log, &error))?;
    let arguments: Vec<OsString> = std::iter::once("__detached".into()).chain(arguments).collect();
    Interrupts::end_questions(|signal| world.ignores(signal)).map_err(|error| not_started(&error))?;
    let mut process = BackgroundProcess::start(world.own_program(), &arguments, file, request.reads_stdin)
        .map_err(|error| not_started(&error))?;
    let mut looks = 0;
    loop {
        if let Some(signal) = Interrupts::take_signal().and_then(Sig::of_number) {
            // If the terminal is closed, the run begins all the same.
            if signal != Sig::Hup {
                process.end().map_err(|error| not_started(&error))?;
                relay(world, &log)?;
                print_error(&format!("{signal} received: the process in the background has ended, too\n"));
            }
            return Ok(exit_of(RunOutcome::Interrupted { signal }));
        }
        if let Some(code) = process.exit_code().map_err(|error| not_started(&error))? {
            relay(world, &log)?;
            return Ok(Exit::of_code(code));
        }
        if let Some(root) = process.root()
            && let Some(run) = run_of(&root, process.pid())
        {
            relay(world, &log)?;
            let [attach, stop] = ["attach", "stop"].map(|verb| command_line(world, common, &root, verb));
            return Ok(answer(&format!(
                "run {run} is running in the background\n  to follow it: {attach}\n  to stop it: {stop}\n  \
                 its console output: {}\n",
                log.display()
            )));
        }
        looks += 1;
        if request.waits && looks > LOOKS {
            relay(world, &log)?;
            return Ok(answer(&format!(
                "process {} is waiting in the background\n  to stop it: kill {}\n  its console output: {}\n",
                process.pid(),
                process.pid(),
                log.display()
            )));
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns the run that a process is working on.
fn run_of(root: &Path, pid: i32) -> Option<i64> {
    let lease = Journal::existing(root).ok()??.lease().ok()??;
    (lease.pid == pid && lease.run > 0).then_some(lease.run)
}

/// Creates the log of a process in the background.
fn log(world: &World) -> Result<PathBuf, Stopped> {
    let Some(state) = world.state_home() else {
        return Err(Diagnostic::error("run/detach", "there is no directory for the log of a run in the background")
            .help("set HOME or XDG_STATE_HOME")
            .into());
    };
    let folder = state.join("forkhestra/detached");
    world.remove_older(&folder, KEPT);
    let time: String = world.timestamp().chars().take(19).filter(|character| *character != ':').collect();
    let log = folder.join(format!("{time}-{}.log", std::process::id()));
    world.disk().create_private(&log).map_err(|error| no_log(&log, &error))?;
    Ok(log)
}

/// Prints what the process has printed so far.
fn relay(world: &World, log: &Path) -> Result<(), Stopped> {
    let text = world.read(log).map_err(|error| no_log(log, &error))?;
    print_error(&String::from_utf8_lossy(&text));
    Ok(())
}

fn no_log(log: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error("run/detach", format!("cannot write the log {}: {error}", log.display()))
        .help("set XDG_STATE_HOME to a directory that you can write")
}

fn not_started(error: &io::Error) -> Diagnostic {
    Diagnostic::error("run/detach", format!("cannot start a process in the background: {error}"))
        .help("run it in the foreground, without --detach")
}
