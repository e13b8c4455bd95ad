//! `runs`: lists, shows and prunes past runs.

pub(in crate::cli) mod args;
pub(super) mod batch;
pub(super) mod decode;
pub(super) mod history;
pub(super) mod log;
pub(in crate::cli) mod place;
pub(in crate::cli) mod print;

use crate::agent::fill;
use crate::chain::parse_duration;
use crate::cli::changes;
use crate::cli::config::{Project, project};
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::run::execute::{exit_of, resume_line};
use crate::cli::run::output::{next, verbosity};
use crate::cli::runs::args::{PruneArgs, RunsArgs, RunsVerb};
use crate::cli::runs::history::{is_alive, journal, meant, state};
use crate::engine::{BatchState, Event, EventKind, RunKind, RunRow, RunState, RunSummary, TaskOfBatch, TaskPlace};
use crate::hub::Hub;
use crate::journal::{Journal, JournalError, LockAttempt, RunLock, snapshot_store};
use crate::plan::Outline;
use crate::report::{
    Console, Paint, SummaryFacts, batch_json, findings_of, next_of_part, quoted, reason, run as run_text,
    runs as runs_text, summary_json, timeline,
};
use crate::runner::{PrunedSnapshots, prune_snapshots};
use crate::source::{Diagnostic, counted};
use crate::verdict::FindingRow;
use crate::world::World;
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;

/// Carries out a command about past runs.
pub(in crate::cli) fn runs(world: &World, common: &Common, args: &RunsArgs) -> Answered {
    match &args.verb {
        None | Some(RunsVerb::List) => list(world, common, args.json),
        Some(RunsVerb::Show { run }) => show(world, common, *run, args.json),
        Some(RunsVerb::Events { run }) => events(world, common, *run),
        Some(RunsVerb::Log(log)) => log::log(world, common, log, args.json),
        Some(RunsVerb::Restore(restore)) => changes::restore(world, common, restore, args.json),
        Some(RunsVerb::Prune(prune)) => forget(world, common, prune, args.json),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(in crate::cli) fn broken(error: JournalError) -> Diagnostic {
    broken_journal(&error)
}

fn any(_: &RunRow, _: RunState) -> bool {
    true
}

fn list(world: &World, common: &Common, as_json: bool) -> Answered {
    let Some(journal) = Journal::existing(&project(world, common).root).map_err(broken)? else {
        return Ok(answer(if as_json { "[]\n" } else { "no runs yet\n" }));
    };
    let rows = journal.runs().all().map_err(broken)?;
    let rows: Vec<(RunRow, RunState)> =
        rows.into_iter().map(|row| state(&journal, &row).map(|state| (row, state))).collect::<Result<_, _>>()?;
    let machine = || rows.iter().map(|(row, state)| with_state(row, *state)).collect::<serde_json::Value>();
    Ok(answer(&if as_json { machine().to_string() + "\n" } else { runs_text(&rows, Paint::for_stdout(world)) }))
}

fn with_state(row: &RunRow, state: RunState) -> serde_json::Value {
    let id = row.id;
    let mut row = json!(row);
    row["version"] = json!(1);
    row["state"] = json!(state);
    // The summary of a run uses these names.
    row["run"] = json!(id);
    row
}

fn show(world: &World, common: &Common, run: Option<i64>, as_json: bool) -> Answered {
    let (project, journal) = journal(world, common)?;
    let (row, state) = meant(&journal, run, any, "yet")?;
    let events = journal.events().of(row.id).map_err(broken)?;
    let outline = journal.runs().outline(row.id).map_err(broken)?;
    let resume = resume_line(world, common, &project.root, row.id);
    if as_json {
        return Ok(answer(&json_line(shown(world, &journal, (&row, state), &events, outline.as_ref(), &resume)?)));
    }
    if row.kind == RunKind::Batch {
        return Ok(answer(&batch::shown(world, common, &journal, (&row, state), &events)?));
    }
    let folder = world.relative(&journal.files().run_folder(row.id));
    let paint = Paint::for_stdout(world).still();
    let timeline = outline.as_ref().map_or_else(String::new, |outline| {
        let mut console = Console::new(outline, None, paint, verbosity(common), Path::new(&folder));
        let backends = backends_of_sessions(&events);
        timeline(&mut console, &events, |step, session| {
            let backend = backends.get(session).or(outline.step(step)?.backend.as_ref())?;
            session_line(&project, backend, session)
        })
    });
    let summary = RunSummary::of(&events);
    let results = if row.kind == RunKind::Evaluation {
        format!("\nforkhestra eval show {} shows its results\n", row.id)
    } else {
        String::new()
    };
    let (store, trees) = batch::trees_of(&journal, &row, summary.trees.clone())?;
    let changes = store.files_of_run(&trees);
    let text =
        run_text(&row, state, &summary, outline.as_ref(), changes.as_deref(), (&timeline, &folder, &resume), paint);
    Ok(answer(&(text + &results)))
}

/// One run as JSON (schemas/cli.schema.json).
fn shown(
    world: &World,
    journal: &Journal,
    (row, state): (&RunRow, RunState),
    events: &[Event],
    outline: Option<&Outline>,
    resume: &str,
) -> Result<serde_json::Value, Diagnostic> {
    let mut attempts = journal.runs().attempts(row.id).map_err(broken)?;
    for event in events {
        if let EventKind::AttemptFinished { at, finished, .. } = &event.event
            && let Some(attempt) = attempts.iter_mut().find(|row| (row.step, row.attempt) == (at.step, at.attempt))
        {
            attempt.session.clone_from(&finished.agent.session);
        }
    }
    let summary = RunSummary::of(events);
    let mut shown = with_state(row, state);
    if let Some(batch) = BatchState::of_events(events) {
        let exit = batch.outcome.map_or(0, |outcome| exit_of(outcome).code());
        shown["tasks"] = batch_json(row.id, &batch, exit)["tasks"].take();
        shown["line"] = json!(batch.line);
    }
    shown["attempts"] = json!(attempts);
    shown["findings"] = findings_of(events).iter().map(finding_json).collect();
    let ended = summary.totals.outcome.zip(outline);
    let why = ended.map(|(outcome, outline)| reason(outcome, &summary.totals, outline));
    let next = match row.batch {
        Some(_) => next_of_part(row, state),
        None => ended.map(|(outcome, outline)| next(outcome, &summary, resume, &outline.limits)),
    };
    let exit = summary.totals.outcome.map(|outcome| exit_of(outcome).code());
    let folder = world.relative(&journal.files().run_folder(row.id));
    let (store, trees) = batch::trees_of(journal, row, summary.trees.clone())?;
    let changes = store.files_of_run(&trees);
    let facts = SummaryFacts {
        exit,
        reason: why.as_deref(),
        transcripts: &folder,
        next: next.as_deref(),
        changes: changes.as_deref(),
    };
    shown["summary"] = summary_json(&summary, &facts);
    Ok(shown)
}

/// A finding as JSON.
fn finding_json(row: &FindingRow) -> serde_json::Value {
    json!({
        "number": row.number,
        "state": row.state,
        "file": row.finding.file,
        "line": row.finding.line,
        "title": row.finding.title,
        "severity": row.finding.severity,
        "answer": row.answer,
    })
}

/// The backends of sessions that were not run by the usual backend of their step.
fn backends_of_sessions(events: &[Event]) -> HashMap<String, String> {
    let (mut now, mut found) = (HashMap::new(), HashMap::new());
    for event in events {
        match &event.event {
            EventKind::AttemptPrepared { at, how } => drop(now.insert(at.step, how.backend.clone())),
            EventKind::AttemptFinished { at, finished, .. } => {
                let backend = now.get(&at.step).cloned().flatten();
                found.extend(finished.agent.session.clone().zip(backend));
            }
            _ => {}
        }
    }
    found
}

/// The command line with which a person continues an agent's session.
fn session_line(project: &Project, backend: &str, session: &str) -> Option<String> {
    let backend = &project.config.backends.get(backend)?.value;
    let program = backend.program.as_ref()?.value.clone();
    let words = fill(backend.resume.as_ref()?, session);
    shlex::try_join(std::iter::once(program.as_str()).chain(words.iter().map(String::as_str))).ok()
}

fn events(world: &World, common: &Common, run: Option<i64>) -> Answered {
    let (_, journal) = journal(world, common)?;
    let (row, _) = meant(&journal, run, any, "yet")?;
    let events = journal.events().of(row.id).map_err(broken)?;
    Ok(answer(&events.iter().map(|event| json!(event).to_string() + "\n").collect::<String>()))
}

// Pruning.

fn forget(world: &World, common: &Common, args: &PruneArgs, as_json: bool) -> Answered {
    only_people(world, &project(world, common).root)?;
    let age = parse_duration(&args.older_than).map_err(|_| bad_age(&args.older_than))?;
    let (_, mut journal) = journal(world, common)?;
    let before = world.timestamp_before(age);
    let unlanded = batches_with_work(&journal)?;
    let (mut old, mut kept) = (Vec::new(), Vec::new());
    for row in journal.runs().all().map_err(broken)? {
        let ended = row.ended.as_deref().unwrap_or(&row.started);
        if ended >= before.as_str() || state(&journal, &row)? == RunState::Running {
            continue;
        }
        if unlanded.contains(&row.id) {
            kept.push(row.id);
        } else if row.batch.is_none_or(|batch| !unlanded.contains(&batch)) {
            old.push(row.id);
        }
    }
    for run in kept {
        let why = format!("run {run} is kept: work of its tasks has not landed; `forkhestra task list` shows it");
        crate::report::print_error(&format!("{}\n", Paint::for_stderr(world).warn(&format!("! {why}"))));
    }
    if !old.is_empty() && !args.yes {
        if !world.stdin().is_terminal() {
            return Err(not_asked(old.len()).into());
        }
        crate::report::print_error(&format!("Delete {} with all transcripts? [y/N] ", counted(old.len(), "run")));
        if !world.stdin().read_line().trim().eq_ignore_ascii_case("y") {
            return Ok(answer("nothing was deleted\n"));
        }
    }
    let mut forgotten = Vec::new();
    for run in old {
        if journal.forget(run, is_alive).map_err(broken)? {
            forgotten.push(run);
        }
    }
    // Also without such runs: an earlier call may have had to leave snapshots.
    for why in left_behind(&journal, &project(world, common).root)? {
        crate::report::print_error(&format!("{}\n", Paint::for_stderr(world).warn(&format!("! {why}"))));
    }
    Ok(answer(&if as_json {
        json_line(json!({ "forgotten": forgotten }))
    } else {
        format!("{} deleted\n", counted(forgotten.len(), "run"))
    }))
}

/// The batches with work that waits to land or to be continued. Without them, nothing would know about this work.
fn batches_with_work(journal: &Journal) -> Result<Vec<i64>, Diagnostic> {
    let mut found = Vec::new();
    let mut later: Vec<(i64, String)> = Vec::new();
    for run in journal.runs().batches().map_err(broken)? {
        let Some(state) = BatchState::of_events(&journal.events().of(run).map_err(broken)?) else { continue };
        let waits = |task: &TaskOfBatch| match task.place {
            TaskPlace::Landed(_) => false,
            TaskPlace::Waiting | TaskPlace::Unsuccessful(_) | TaskPlace::Stopped(_) => task.work.is_some(),
            _ => true,
        };
        // A later batch has taken up the work of an earlier one.
        let is_last = |id: &String| !later.iter().any(|(_, other)| other == id);
        if state.tasks.iter().any(|(id, task)| waits(task) && is_last(id)) {
            found.push(run);
            // Without that batch, the work would seem to be that of this one.
            let newer = later.iter().filter(|(batch, id)| !found.contains(batch) && state.tasks.contains_key(id));
            let newer: Vec<i64> = newer.map(|(batch, _)| *batch).collect();
            found.extend(newer);
        }
        later.extend(state.tasks.into_keys().map(|id| (run, id)));
    }
    Ok(found)
}

/// Deletes what runs that are no longer in the journal have left: their snapshots, and the work of batches. Returns
/// what did not go as it should.
fn left_behind(journal: &Journal, root: &Path) -> Result<Vec<String>, Diagnostic> {
    let stay = "snapshots of deleted runs were not deleted";
    // While the lock is held, no run takes snapshots.
    let LockAttempt::Held(_lock) = RunLock::take(root).map_err(broken)? else {
        return Ok(vec![format!("{stay}: a run is in progress here; prune again when it has ended")]);
    };
    let runs: Vec<i64> = journal.runs().all().map_err(broken)?.into_iter().map(|row| row.id).collect();
    let hub = Hub::existing(root).map_or(Ok(()), |hub| hub.units().forget_except(&runs));
    let hub = hub.err().map(|error| format!("the work of deleted batches was not deleted: {error}"));
    Ok(hub.into_iter().chain(left_snapshots(journal, root, stay)?).collect())
}

/// Deletes the snapshots that no run in the journal refers to.
fn left_snapshots(journal: &Journal, root: &Path, stay: &str) -> Result<Option<String>, Diagnostic> {
    Ok(match prune_snapshots(root, &journal.events().trees().map_err(broken)?).map_err(broken)? {
        PrunedSnapshots::Done(0) => None,
        PrunedSnapshots::Done(damaged) => {
            let count = counted(damaged, "snapshot");
            Some(format!("{count} of other runs could not be read any more, and can no longer be compared or restored"))
        }
        PrunedSnapshots::Failed => {
            let store = snapshot_store(root);
            Some(format!("{stay}: see what is wrong with git --git-dir {} fsck", quoted(&store.display().to_string())))
        }
    })
}

pub(in crate::cli) fn bad_age(text: &str) -> Diagnostic {
    Diagnostic::error("runs/age", format!("`{text}` is not an age")).help("write it like 30d, 12h or 90m")
}

fn not_asked(count: usize) -> Diagnostic {
    Diagnostic::error(
        "runs/not-asked",
        format!("{} would be deleted, but there is no terminal in which to confirm it", counted(count, "run")),
    )
    .help("--yes deletes without asking")
}
