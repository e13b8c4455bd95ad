//! `runs`: lists, shows and prunes past runs.

pub(super) mod history;

use crate::agent::{Format, Reader, fill};
use crate::chain::parse_duration;
use crate::cli::args::{Common, LogArgs, PruneArgs, RunsArgs, RunsVerb};
use crate::cli::config::{Project, project};
use crate::cli::people::only_people;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::run::execute::{exit_of, resume_line};
use crate::cli::run::output::{last_words, next, verbosity};
use crate::cli::runs::history::{is_alive, journal, meant, state};
use crate::engine::{At, AttemptRow, EventKind, RunKind, RunRow, RunState, RunSummary};
use crate::exit::Exit;
use crate::journal::{Journal, JournalError};
use crate::plan::Outline;
use crate::report::{
    Console, Paint, Verbosity, print, print_bytes, reason, run as run_text, runs as runs_text, summary_json,
};
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::json;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// The interval at which a log that is followed is read.
const LOOK: Duration = Duration::from_millis(100);

/// Carries out a command about past runs.
pub(in crate::cli) fn runs(world: &World, common: &Common, args: &RunsArgs) -> Answered {
    match &args.verb {
        None | Some(RunsVerb::List) => list(world, common, args.json),
        Some(RunsVerb::Show { run }) => show(world, common, *run, args.json),
        Some(RunsVerb::Events { run }) => events(world, common, *run),
        Some(RunsVerb::Log(log)) => follow(world, common, log, args.json),
        Some(RunsVerb::Replay { run }) => replay(world, common, *run, args.json),
        Some(RunsVerb::Prune(prune)) => forget(world, common, prune, args.json),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn broken(error: JournalError) -> Diagnostic {
    broken_journal(&error)
}

fn any(_: &RunRow, _: RunState) -> bool {
    true
}

fn list(world: &World, common: &Common, as_json: bool) -> Answered {
    let Some(journal) = Journal::existing(&project(world, common).root).map_err(broken)? else {
        return Ok(answer(if as_json { "[]\n" } else { "no runs yet\n" }));
    };
    let rows = journal.runs().map_err(broken)?;
    let rows: Vec<(RunRow, RunState)> =
        rows.into_iter().map(|row| state(&journal, &row).map(|state| (row, state))).collect::<Result<_, _>>()?;
    let machine = || rows.iter().map(|(row, state)| with_state(row, *state)).collect::<serde_json::Value>();
    Ok(answer(&if as_json { machine().to_string() + "\n" } else { runs_text(&rows, Paint::for_stdout(world)) }))
}

fn with_state(row: &RunRow, state: RunState) -> serde_json::Value {
    let (id, attempts) = (row.id, row.iterations);
    let mut row = json!(row);
    row["version"] = json!(1);
    row["state"] = json!(state);
    // The summary of a run uses these names.
    row["run"] = json!(id);
    row["attemptCount"] = json!(attempts);
    row
}

fn show(world: &World, common: &Common, run: Option<i64>, as_json: bool) -> Answered {
    let (project, journal) = journal(world, common)?;
    let (row, state) = meant(&journal, run, any, "yet")?;
    let mut attempts = journal.attempts(row.id).map_err(broken)?;
    let events = journal.events(row.id).map_err(broken)?;
    let summary = RunSummary::of(&events);
    for event in events {
        if let EventKind::AttemptFinished { at, finished, marker, .. } = event.event
            && let Some(attempt) = attempts.iter_mut().find(|row| (row.step, row.attempt) == (at.step, at.attempt))
        {
            (attempt.session, attempt.marker) = (finished.session, marker);
        }
    }
    let outline = journal.outline(row.id).map_err(broken)?;
    let resume = resume_line(world, common, &project.root, row.id);
    if as_json {
        let mut shown = with_state(&row, state);
        shown["attempts"] = json!(attempts);
        let ended = summary.totals.outcome.zip(outline.as_ref());
        let why = ended.map(|(outcome, outline)| reason(outcome, &summary.totals, outline));
        let next = ended.map(|(outcome, outline)| next(outcome, &summary, &resume, &outline.limits));
        let exit = summary.totals.outcome.map(|outcome| exit_of(outcome).code());
        let folder = world.relative(&journal.run_folder(row.id));
        shown["summary"] = summary_json(&summary, exit, why.as_deref(), &folder, next.as_deref());
        return Ok(answer(&json_line(shown)));
    }
    let attempts: Vec<AttemptRow> = attempts
        .into_iter()
        .map(|attempt| {
            let session = attempt
                .session
                .as_deref()
                .and_then(|session| session_line(&project, outline.as_ref(), attempt.step, session));
            AttemptRow { folder: world.relative(Path::new(&attempt.folder)), session, ..attempt }
        })
        .collect();
    let results = if row.kind == RunKind::Evaluation {
        format!("\nforkhestra eval show {} shows its results\n", row.id)
    } else {
        String::new()
    };
    Ok(answer(
        &(run_text(&row, state, &summary, &attempts, outline.as_ref(), &resume, Paint::for_stdout(world)) + &results),
    ))
}

/// The command line with which a person continues an agent's session.
fn session_line(project: &Project, outline: Option<&Outline>, step: u32, session: &str) -> Option<String> {
    let step = outline?.step(step)?;
    let backend = &project.config.backends.get(step.backend.as_deref()?)?.value;
    let program = backend.program.as_ref()?.value.clone();
    let words = fill(backend.resume.as_ref()?, session);
    shlex::try_join(std::iter::once(program.as_str()).chain(words.iter().map(String::as_str))).ok()
}

fn events(world: &World, common: &Common, run: Option<i64>) -> Answered {
    let (_, journal) = journal(world, common)?;
    let (row, _) = meant(&journal, run, any, "yet")?;
    let events = journal.events(row.id).map_err(broken)?;
    Ok(answer(&events.iter().map(|event| json!(event).to_string() + "\n").collect::<String>()))
}

// Logs.

fn follow(world: &World, common: &Common, args: &LogArgs, as_json: bool) -> Answered {
    let (_, journal) = journal(world, common)?;
    let (row, _) = meant(&journal, args.run, any, "yet")?;
    let wanted = args.step.as_deref().map(place).transpose()?;
    let name = if args.prompt {
        "prompt.md"
    } else if args.last {
        "final.md"
    } else if args.stderr {
        "stderr.log"
    } else {
        "stdout.log"
    };
    if args.follow && wanted.is_none() && !as_json {
        return follow_run(world, &journal, &row, name);
    }
    let attempts = journal.attempts(row.id).map_err(broken)?;
    let attempt = attempts.into_iter().rfind(|attempt| {
        wanted.is_none_or(|(step, iteration)| {
            step == attempt.step && iteration.is_none_or(|iteration| iteration == attempt.iteration)
        })
    });
    let Some(attempt) = attempt else { return Err(no_attempt(row.id).into()) };
    let path = Path::new(&attempt.folder).join(name);
    if as_json {
        return Ok(answer(&json_line(json!({ "run": row.id, "attempt": attempt, "path": path }))));
    }
    let mut offset = 0;
    loop {
        let over = !args.follow || is_over(&journal, &row, &attempt)?;
        if !pass_on(&journal, &path, &mut offset)? {
            return Ok(Exit::Success);
        }
        if over {
            say_missing(world, &journal, row.id, (attempt.step, &attempt.name, attempt.attempt))?;
            return if offset == 0 && !path.exists() { Err(no_log(&path).into()) } else { Ok(Exit::Success) };
        }
        std::thread::sleep(LOOK);
    }
}

/// Reports which part of a shown output is missing.
fn say_missing(
    world: &World,
    journal: &Journal,
    run: i64,
    (step, name, attempt): (u32, &str, u32),
) -> Result<(), Diagnostic> {
    if let Some(words) = journal.missing_output(run, step, name, attempt).map_err(broken)? {
        let words = format!("! the rest is lost: {words}");
        crate::report::print_error(&format!("{}\n", Paint::for_stderr(world).warn(&words)));
    }
    Ok(())
}

/// Follows a whole run, each attempt under its name, until the run has ended.
fn follow_run(world: &World, journal: &Journal, row: &RunRow, name: &str) -> Answered {
    let mut seen = 0;
    loop {
        let over = state(journal, &journal.run(row.id).map_err(broken)?.unwrap_or_else(|| row.clone()))?;
        let attempts = journal.attempts(row.id).map_err(broken)?;
        for attempt in attempts.iter().skip(seen) {
            let heading = format!("== {}-{}/{}\n", attempt.step, attempt.name, attempt.attempt);
            let (path, mut offset) = (Path::new(&attempt.folder).join(name), 0);
            if print(&heading).is_err() {
                return Ok(Exit::Success);
            }
            loop {
                // Checked before the last read, so that nothing written before the end is missed.
                let done = over != RunState::Running || is_over(journal, row, attempt)?;
                if !pass_on(journal, &path, &mut offset)? {
                    return Ok(Exit::Success);
                }
                if done {
                    break;
                }
                std::thread::sleep(LOOK);
            }
            say_missing(world, journal, row.id, (attempt.step, &attempt.name, attempt.attempt))?;
            seen += 1;
        }
        if over != RunState::Running {
            return Ok(Exit::Success);
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether an attempt prints nothing more: it has ended, or its run has died.
fn is_over(journal: &Journal, row: &RunRow, attempt: &AttemptRow) -> Result<bool, Diagnostic> {
    if attempt.outcome.is_some() || journal.is_over(row.id, attempt.step, attempt.attempt).map_err(broken)? {
        return Ok(true);
    }
    Ok(state(journal, row)? != RunState::Running)
}

/// Prints a log from the offset on; false if the reader has gone away.
fn pass_on(journal: &Journal, path: &Path, offset: &mut u64) -> Result<bool, Diagnostic> {
    loop {
        let piece = journal.piece(path, *offset).map_err(broken)?;
        if piece.is_empty() {
            return Ok(true);
        }
        *offset += piece.len() as u64;
        match print_bytes(&piece) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(no_output(&error)),
        }
    }
}

/// Parses `STEP` or `STEP.ITERATION`.
fn place(text: &str) -> Result<(u32, Option<u32>), Diagnostic> {
    let (step, iteration) = match text.split_once('.') {
        Some((step, iteration)) => (step, Some(iteration)),
        None => (text, None),
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| no_place(text));
    Ok((number(step)?, iteration.map(number).transpose()?))
}

// Replay.

/// Shows a run again: feeds its events to the console, and prints the agents' output.
fn replay(world: &World, common: &Common, run: Option<i64>, as_json: bool) -> Answered {
    if as_json {
        return events(world, common, run);
    }
    let (project, journal) = journal(world, common)?;
    let (row, _) = meant(&journal, run, any, "yet")?;
    let Some(outline) = journal.outline(row.id).map_err(broken)? else { return Err(too_old(row.id).into()) };
    let verbosity = verbosity(common);
    let folder = world.relative(&journal.run_folder(row.id));
    let resume = resume_line(world, common, &project.root, row.id);
    let paint = Paint::for_stdout(world).still();
    let mut console = Console::new(&outline, None, paint, verbosity, Path::new(&folder), &resume);
    let mut open: Option<At> = None;
    let mut summary = RunSummary::default();
    for event in journal.events(row.id).map_err(broken)? {
        summary.see(&event);
        let over = matches!(event.event, EventKind::AttemptFinished { .. } | EventKind::RunResumed { .. });
        if let Some(at) = open.take_if(|_| over)
            && verbosity > Verbosity::Quiet
            && !replay_output(&journal, &outline, event.run, &at)?
        {
            return Ok(Exit::Success);
        }
        if let EventKind::AttemptPlanned { at, .. } = &event.event {
            open = Some(at.clone());
        }
        if print(&console.event(&event)).is_err() {
            return Ok(Exit::Success);
        }
    }
    let words = if common.quiet { String::new() } else { last_words(&summary, &outline, &resume, paint) };
    Ok(answer(&words))
}

/// Prints the standard output of an attempt, decoded if the run decoded it, and its standard error; false if the reader
/// has gone away.
fn replay_output(journal: &Journal, outline: &Outline, run: i64, at: &At) -> Result<bool, Diagnostic> {
    let folder = journal.attempt_folder(run, at.step, &at.name, at.attempt);
    let errors = folder.path().join("stderr.log");
    let step = outline.step(at.step);
    let format = step.map_or(Format::Plain, |step| step.format);
    let Some(mut reader) = Reader::new(format) else {
        return Ok(pass_on(journal, &folder.path().join("stdout.log"), &mut 0)? && pass_on(journal, &errors, &mut 0)?);
    };
    let (path, mut offset, mut shown) = (folder.path().join("stdout.log"), 0, String::new());
    loop {
        let piece = journal.piece(&path, offset).map_err(broken)?;
        if piece.is_empty() {
            let _ = reader.finish(&mut |text| shown.push_str(text));
            return Ok(print(&shown).is_ok() && pass_on(journal, &errors, &mut 0)?);
        }
        offset += piece.len() as u64;
        reader.feed(&piece, &mut |text| shown.push_str(text));
        if print(&std::mem::take(&mut shown)).is_err() {
            return Ok(false);
        }
    }
}

// Pruning.

fn forget(world: &World, common: &Common, args: &PruneArgs, as_json: bool) -> Answered {
    only_people(world, &project(world, common).root)?;
    let age = parse_duration(&args.older_than).map_err(|_| bad_age(&args.older_than))?;
    let (_, mut journal) = journal(world, common)?;
    let before = world.timestamp_before(age);
    let mut old = Vec::new();
    for row in journal.runs().map_err(broken)? {
        let ended = row.ended.as_deref().unwrap_or(&row.started);
        if ended < before.as_str() && state(&journal, &row)? != RunState::Running {
            old.push(row.id);
        }
    }
    if !old.is_empty() && !args.yes {
        if !world.stdin_is_terminal() {
            return Err(not_asked(old.len()).into());
        }
        crate::report::print_error(&format!("Delete {} with all transcripts? [y/N] ", number_of_runs(old.len())));
        if !world.read_line().trim().eq_ignore_ascii_case("y") {
            return Ok(answer("nothing was deleted\n"));
        }
    }
    let mut forgotten = Vec::new();
    for run in old {
        if journal.forget(run, is_alive).map_err(broken)? {
            forgotten.push(run);
        }
    }
    Ok(answer(&if as_json {
        json_line(json!({ "forgotten": forgotten }))
    } else {
        format!("{} deleted\n", number_of_runs(forgotten.len()))
    }))
}

fn number_of_runs(count: usize) -> String {
    if count == 1 { "1 run".into() } else { format!("{count} runs") }
}

fn no_output(error: &Error) -> Diagnostic {
    Diagnostic::error("runs/output", format!("cannot write to standard output: {error}"))
        .help("the log contains the rest")
}

fn no_attempt(run: i64) -> Diagnostic {
    Diagnostic::error("runs/no-attempt", format!("run {run} has no such attempt"))
        .help(format!("`forkhestra runs show {run}` lists them"))
}

fn no_log(path: &Path) -> Diagnostic {
    Diagnostic::error("runs/no-log", format!("there is no {}", path.display()))
        .help("a check has no prompt, and only backends with structured output have a final message")
}

fn no_place(text: &str) -> Diagnostic {
    Diagnostic::error("runs/place", format!("`{text}` is not a step")).help("write STEP or STEP.ITERATION: 2, or 2.3")
}

fn too_old(run: i64) -> Diagnostic {
    Diagnostic::error("runs/too-old", format!("run {run} was recorded by a version that stored no outline"))
        .help(format!("`forkhestra runs events {run}` shows what it did store"))
}

fn bad_age(text: &str) -> Diagnostic {
    Diagnostic::error("runs/age", format!("`{text}` is not an age")).help("write it like 30d, 12h or 90m")
}

fn not_asked(count: usize) -> Diagnostic {
    Diagnostic::error(
        "runs/not-asked",
        format!("{} would be deleted, and there is no terminal to ask on", number_of_runs(count)),
    )
    .help("--yes deletes without asking")
}
