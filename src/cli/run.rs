//! `run`: plan, show or drive, and say how it ended.

use super::args::{Common, RunArgs};
use super::chain::{Given, chosen};
use super::config::{Project, project};
use super::{answer, refuse};
use crate::chain::{Chain, Limits, Said, bad_duration, parse_duration, parse_limit};
use crate::exit::Exit;
use crate::journal::{Journal, JournalError, RunLock, Taken};
use crate::plan::{Kind, Plan, Request, Root, build, to_json};
use crate::report::{Console, Paint, Screen, Verbosity, dry_run, print_error, render};
use crate::run::{Cast, Ended, Failure, RunOutcome, Sig, drive};
use crate::source::{Diagnostic, Place, Source, Text};
use crate::world::World;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Runs a chain, or shows what it would do.
pub(super) fn run(world: &World, common: &Common, args: &RunArgs) -> Exit {
    let project = project(world, common);
    let (chain, given) = match chosen(args, &project) {
        Ok(chosen) => chosen,
        Err(faults) => return refuse(world, &faults),
    };
    let plan = match planned(world, args, &project, &chain, &given) {
        Ok(plan) => plan,
        Err(faults) => return refuse(world, &faults),
    };
    if args.dry_run {
        if !common.quiet {
            print_error(&render(&plan.warnings, Paint::for_stderr(world)));
        }
        return answer(&if args.json {
            to_json(&plan).to_string() + "\n"
        } else {
            dry_run(&plan, Paint::for_stdout(world), common.verbose)
        });
    }
    start(world, common, &plan, args.wait)
}

fn planned(
    world: &World,
    args: &RunArgs,
    project: &Project,
    chain: &Chain,
    given: &Given,
) -> Result<Plan, Vec<Diagnostic>> {
    let said = said(world, args, project)?;
    let time = |option: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let source = Source::new(option, text.as_str(), &project.shell);
        parse_duration(text).map(Some).map_err(|fault| vec![bad_duration(&Place::whole(&source), option, text, fault)])
    };
    let timeout = time("--timeout", &args.timeout)?;
    let idle_timeout = time("--idle-timeout", &args.idle_timeout)?;
    let limits = limits(args, project)?;
    let own_program = world.own_program();
    let request = Request {
        chain,
        config: &project.config,
        root: &project.root,
        said: &said,
        given,
        timeout,
        idle_timeout,
        limits: &limits,
        own_program,
    };
    build(&request, world, world)
}

/// The command line's limits; a later one of a name wins.
fn limits(args: &RunArgs, project: &Project) -> Result<Limits, Vec<Diagnostic>> {
    let (mut limits, mut faults) = (Limits::default(), Vec::new());
    for text in &args.limit {
        match parse_limit(&Source::new("--limit", text.as_str(), &project.shell)) {
            Ok(limit) => limits = limit.or(limits),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(limits) } else { Err(faults) }
}

/// The command line's level of the prompt.
fn said(world: &World, args: &RunArgs, project: &Project) -> Result<Said, Vec<Diagnostic>> {
    let text = |name: &str, value: &str| {
        let source = Source::new(name, value, &project.shell);
        Some(Text { value: value.to_string(), at: Place::whole(&source) })
    };
    if args.prompt_file.as_deref() == Some("-") {
        if world.stdin_is_terminal() {
            return Err(vec![stdin_is_a_terminal()]);
        }
        let bytes = world.read_stdin().map_err(|error| vec![stdin_unreadable(&error.to_string())])?;
        let prompt = String::from_utf8(bytes).map_err(|_| vec![stdin_unreadable("it is not UTF-8")])?;
        return Ok(Said { inline: text("standard input", &prompt), file: None });
    }
    let inline = args.prompt.as_ref().and_then(|prompt| text("--prompt", prompt));
    let file = args.prompt_file.as_ref().and_then(|file| text("--prompt-file", file));
    Ok(Said { inline, file })
}

fn start(world: &World, common: &Common, plan: &Plan, wait: bool) -> Exit {
    let root = match &plan.root {
        Root::Folder(folder) => Ok(folder.clone()),
        Root::Temporary => world.make_temporary_folder(),
    };
    let root = match root {
        Ok(root) => root,
        Err(error) => return refuse(world, &[no_temporary_folder(&error.to_string())]),
    };
    // Held to the end of the run.
    let _lock = match lock(world, common, plan, &root, wait) {
        Ok(lock) => lock,
        Err(fault) => return refuse(world, &[fault]),
    };
    let begun = Journal::open(&root).and_then(|mut journal| {
        let run = journal.begin(&world.timestamp(), &plan.chain, &plan.digest)?;
        Ok((journal, run))
    });
    let (journal, run) = match begun {
        Ok(begun) => begun,
        Err(error) => return refuse(world, &[Diagnostic::error("journal/open", error.to_string()).help(error.help())]),
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return refuse(world, &[Diagnostic::error("run/runtime", "the operating system gives us no event queue")]);
    };
    let ended = runtime.block_on(on_stage(world, common, plan, &root, journal, run));
    match ended {
        Ok(ended) => exit(&ended),
        Err(failure) => {
            let help = match &failure {
                Failure::Journal(error) => error.help(),
                Failure::Signals(_) | Failure::Token(_) | Failure::Lost => "nothing of the run is left running".into(),
            };
            let fault = Diagnostic::error("run/failed", failure.to_string()).help(help);
            print_error(&render(&[fault], Paint::for_stderr(world)));
            Exit::Incomplete
        }
    }
}

/// Takes the root for this run alone (V-41).
fn lock(world: &World, common: &Common, plan: &Plan, root: &Path, wait: bool) -> Result<RunLock, Diagnostic> {
    let failed = |error: JournalError| Diagnostic::error("run/lock", error.to_string()).help(error.help());
    let mut lock = match RunLock::take(root).map_err(failed)? {
        Taken::Held(lock) => lock,
        Taken::Busy(busy) if wait => {
            if !common.quiet {
                print_error(&format!("waiting for another run here: {}\n", busy.holder));
            }
            busy.wait().map_err(failed)?
        }
        Taken::Busy(busy) => return Err(busy_root(root, &busy.holder)),
    };
    let title = plan.name.as_deref().unwrap_or(&plan.chain);
    lock.sign(&format!("{title}, process {}, since {}", std::process::id(), world.timestamp())).map_err(failed)?;
    Ok(lock)
}

fn busy_root(root: &Path, holder: &str) -> Diagnostic {
    Diagnostic::error("run/busy", format!("another run works in {}: {holder}", root.display()))
        .help("two runs in one folder would undo each other's work. Wait for it with --wait, end it, or work in another folder")
}

async fn on_stage(
    world: &World,
    common: &Common,
    plan: &Plan,
    root: &Path,
    mut journal: Journal,
    run: i64,
) -> Result<Ended, Failure> {
    let (paint, stdout) = (Paint::for_stderr(world), Paint::for_stdout(world));
    let verbosity = match (common.quiet, common.verbose) {
        (true, _) => Verbosity::Quiet,
        (_, true) => Verbosity::Verbose,
        _ => Verbosity::Normal,
    };
    let mut screen = Screen::start();
    if verbosity > Verbosity::Quiet {
        screen.say(&render(&plan.warnings, paint));
    }
    if verbosity > Verbosity::Quiet && is_demo(plan) {
        screen.say(&demo_note(paint, root));
    }
    let folder = journal.run_folder(run);
    let folder = folder.strip_prefix(world.cwd()).map_or(folder.clone(), PathBuf::from);

    drive(Cast {
        plan,
        root,
        world,
        journal: &mut journal,
        run,
        screen: &mut screen,
        console: Console::new(plan, paint, verbosity, &folder),
        show_output: verbosity > Verbosity::Quiet,
        terminal: stdout.terminal,
    })
    .await
}

fn is_demo(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step.kind, Kind::Agent { backend: Some("demo"), .. }))
}

fn demo_note(paint: Paint, root: &Path) -> String {
    paint.dim(&format!(
        "This is a demonstration: the agents follow a script, no model is asked, and the work is done in\n{}\n\n",
        root.display()
    ))
}

fn exit(ended: &Ended) -> Exit {
    match ended.outcome {
        RunOutcome::Succeeded | RunOutcome::OutputClosed if ended.output_error.is_some() => match &ended.output_error {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                print_error(&format!("forkhestra: cannot write to standard output: {error}\n"));
                Exit::Incomplete
            }
            _ => Exit::OutputClosed,
        },
        RunOutcome::Succeeded => Exit::Success,
        RunOutcome::Failed { .. }
        | RunOutcome::Exhausted { .. }
        | RunOutcome::Failing { .. }
        | RunOutcome::Stalled { .. } => Exit::Incomplete,
        RunOutcome::LimitReached { .. } => Exit::LimitReached,
        RunOutcome::OutputClosed => Exit::OutputClosed,
        RunOutcome::Interrupted { signal } => match signal {
            Sig::Hup => Exit::HungUp,
            Sig::Int => Exit::Interrupted,
            Sig::Term | Sig::Kill => Exit::Terminated,
        },
    }
}

fn stdin_is_a_terminal() -> Diagnostic {
    Diagnostic::error("usage/stdin", "the prompt is to come from standard input, which is a terminal")
        .help("pipe it in: forkhestra … --prompt-file - < prompt.md")
}

fn stdin_unreadable(why: &str) -> Diagnostic {
    Diagnostic::error("usage/stdin", format!("cannot read the prompt from standard input: {why}"))
}

fn no_temporary_folder(why: &str) -> Diagnostic {
    Diagnostic::error("run/temporary", format!("cannot make a temporary folder for the demo: {why}"))
        .help("set TMPDIR to a folder that can be written")
}
