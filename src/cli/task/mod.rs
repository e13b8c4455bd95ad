//! `task` and `dispute`: manages tasks, and what a human decides about them.

pub(super) mod args;
pub(super) mod batch;
pub(super) mod commit;
pub(super) mod errors;
mod export;
pub(super) mod facts;
pub(super) mod import;
mod land;
mod places;
pub(super) mod queue;
pub(super) mod run;
pub(super) mod shared;
mod spec_kit;

use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::people::only_people;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::runs::history::{is_alive, state};
use crate::cli::task::args::{DisputeArgs, DisputeVerb, TaskAddArgs, TaskArgs, TaskDecideArgs, TaskVerb};
use crate::cli::task::facts::{existing_journal, journal, known, spec_of};
use crate::cli::task::places::TaskPlaces;
use crate::cli::verdict::{in_an_iteration, record, record_for};
use crate::cli::work::{bundle, sync};
use crate::engine::RunRow;
use crate::exit::Exit;
use crate::journal::{Journal, NewTask, Refused, RunLock};
use crate::report::{Paint, dispute_text, disputes_text, task_text, tasks_text};
use crate::source::Diagnostic;
use crate::task::{Change, Dispute, Resolution, Status, Task, check_id, resolve, waits_for};
use crate::verdict::Decision;
use crate::world::World;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// Carries out a command about tasks.
pub(in crate::cli) fn task(world: &World, common: &Common, args: &TaskArgs) -> Answered {
    if in_an_iteration(world) {
        return by_an_agent(world, common, args);
    }
    let looks = matches!(args.verb, TaskVerb::List { .. } | TaskVerb::Show { .. } | TaskVerb::Update { .. });
    if !looks && let Err(fault) = only_people(world, &project(world, common).root) {
        return Err(fault.into());
    }
    if let Some(hub) = args.verb.hub() {
        return shared::task(world, common, &args.verb, hub);
    }
    let done = match &args.verb {
        TaskVerb::Add(args) => add(world, common, args),
        TaskVerb::Import(args) => return import::import(world, common, args),
        TaskVerb::List { json, .. } => list(world, common, *json),
        TaskVerb::Show { id, json, .. } => show(world, common, id, *json),
        TaskVerb::Run(args) => return run::run(world, common, args),
        TaskVerb::Bundle(args) => return bundle(world, common, args),
        TaskVerb::Sync { file } => return sync(world, common, file),
        TaskVerb::Export(args) => return export::export(world, common, args),
        TaskVerb::Land(args) => return land::land(world, common, args),
        TaskVerb::Approve(args) => decide(world, common, args, Status::Completed),
        TaskVerb::Reject(args) => decide(world, common, args, Status::InProgress),
        TaskVerb::Skip(args) => decide(world, common, args, Status::Skipped),
        TaskVerb::Reset(args) => decide(world, common, args, Status::Pending),
        TaskVerb::Delete { id } => delete(world, common, id),
        TaskVerb::Update { .. } => return record(world, Decision::Submit, ""),
    };
    done.map_err(Into::into)
}

/// Carries out an agent's commands in their other spellings; refuses what only a human may do.
fn by_an_agent(world: &World, common: &Common, args: &TaskArgs) -> Answered {
    match &args.verb {
        verb if verb.hub().is_some() => Err(errors::only_a_human().into()),
        TaskVerb::Update { id, .. } => record_for(world, id, Decision::Submit, ""),
        TaskVerb::Approve(args) => record_for(world, &args.id, Decision::Approve, &args.notes),
        TaskVerb::Reject(args) => record_for(world, &args.id, Decision::Reject, &args.notes),
        TaskVerb::Skip(args) => record_for(world, &args.id, Decision::Skip, &args.notes),
        TaskVerb::List { json, .. } => list(world, common, *json).map_err(Into::into),
        TaskVerb::Show { id, json, .. } => show(world, common, id, *json).map_err(Into::into),
        _ => Err(errors::only_a_human().into()),
    }
}

/// Carries out a command about disputes.
pub(in crate::cli) fn dispute(world: &World, common: &Common, args: &DisputeArgs) -> Answered {
    let Some(verb) = &args.verb else {
        return record(world, Decision::Dispute, args.reason.as_deref().unwrap_or_default());
    };
    if let Some(recorded) = crate::cli::verdict::dispute(world, verb) {
        return recorded;
    }
    let done = match verb {
        DisputeVerb::List { json } => disputes(world, common, *json),
        DisputeVerb::Show { id, json } => show_dispute(world, common, *id, *json),
        DisputeVerb::Resolve { id, decision, notes } => only_people(world, &project(world, common).root)
            .and_then(|()| resolve_dispute(world, common, *id, decision, notes)),
        DisputeVerb::Delete { id } => {
            only_people(world, &project(world, common).root).and_then(|()| delete_dispute(world, common, *id))
        }
        DisputeVerb::Create { .. } => Ok(Exit::Success),
    };
    done.map_err(Into::into)
}

fn add(world: &World, common: &Common, args: &TaskAddArgs) -> Result<Exit, Diagnostic> {
    let new = new_task(world, common, args)?;
    let (_, journal) = journal(world, common)?;
    match journal.tasks().add(&new, &world.timestamp()).map_err(|error| broken_journal(&error))? {
        Ok(id) => Ok(added(&id, args.json)),
        Err(refused) => Err(errors::refused(&refused, args.id.as_deref().unwrap_or(&new.title))),
    }
}

/// The task of a command line.
fn new_task(world: &World, common: &Common, args: &TaskAddArgs) -> Result<NewTask, Diagnostic> {
    let title = args.title.trim();
    if title.is_empty() || title.contains('\n') {
        return Err(errors::bad_title());
    }
    for id in args.id.iter().chain(&args.after) {
        check_id(id).map_err(|fault| errors::bad_id(id, fault))?;
    }
    let spec = args.spec.as_ref().map(|spec| spec_of(world, &project(world, common), spec)).transpose()?;
    Ok(NewTask { id: args.id.clone(), title: title.into(), spec, tests: args.tests.clone(), after: args.after.clone() })
}

fn added(id: &str, as_json: bool) -> Exit {
    answer(&if as_json { json_line(json!({ "task": id })) } else { format!("task {id} added\n") })
}

fn list(world: &World, common: &Common, as_json: bool) -> Result<Exit, Diagnostic> {
    let journal = existing_journal(world, common)?;
    let tasks =
        journal.as_ref().map(|journal| journal.tasks().all().map_err(|error| broken_journal(&error))).transpose()?;
    let tasks = tasks.unwrap_or_default();
    let places = journal.as_ref().map(TaskPlaces::of).transpose()?.unwrap_or_default();
    if as_json {
        let mut rows = json!(tasks);
        for (row, task) in rows.as_array_mut().into_iter().flatten().zip(&tasks) {
            if let Some(place) = places.place_of(&task.id) {
                row["place"] = json!(place);
            }
        }
        return Ok(answer(&(rows.to_string() + "\n")));
    }
    Ok(answer(&tasks_text(&tasks, &|id| places.place_of(id), Paint::for_stdout(world))))
}

fn show(world: &World, common: &Common, id: &str, as_json: bool) -> Result<Exit, Diagnostic> {
    let Some(journal) = existing_journal(world, common)? else { return Err(errors::unknown(id, None)) };
    let broken = |error| broken_journal(&error);
    let tasks = journal.tasks().all().map_err(broken)?;
    let task = known(&tasks, id)?;
    let trail = journal.tasks().trail(id).map_err(broken)?;
    let runs = journal.tasks().runs_of(id).map_err(broken)?;
    let disputes: Vec<_> = journal.disputes().all().map_err(broken)?.into_iter().filter(|one| one.task == id).collect();
    let waits = waits_for(task, &tasks);
    let places = TaskPlaces::of(&journal)?;
    let (place, workspace) = (places.place_of(id), places.workspace(id));
    if as_json {
        let mut told = json!({ "task": task, "waitsFor": waits, "runs": runs, "audit": trail, "disputes": disputes });
        for (name, value) in [("place", &place), ("workspace", &workspace)] {
            if let Some(value) = value {
                told[name] = json!(value);
            }
        }
        return Ok(answer(&json_line(told)));
    }
    let place =
        [("place", place), ("workspace", workspace)].into_iter().filter_map(|(name, words)| Some((name, words?)));
    let place: Vec<(&str, String)> = place.collect();
    Ok(answer(&task_text(task, &waits, &place, &runs, &trail, &disputes, Paint::for_stdout(world))))
}

fn decide(world: &World, common: &Common, args: &TaskDecideArgs, to: Status) -> Result<Exit, Diagnostic> {
    let (project, journal) = journal(world, common)?;
    let broken = |error| broken_journal(&error);
    let tasks = journal.tasks().all().map_err(broken)?;
    let task = known(&tasks, &args.id)?;
    not_at_work(&project.root, &journal, &args.id)?;
    let change = decision(task, args, to)?;
    match journal.tasks().change_status(&args.id, &change, &world.timestamp()).map_err(broken)? {
        Ok(()) => Ok(decided(&args.id, to)),
        Err(refused) => Err(errors::refused(&refused, &args.id)),
    }
}

/// The change that a human's decision about a task is.
fn decision(task: &Task, args: &TaskDecideArgs, to: Status) -> Result<Change, Diagnostic> {
    if to == Status::InProgress && args.notes.trim().is_empty() {
        return Err(errors::reject_without_notes());
    }
    if task.status == to && to != Status::InProgress {
        return Err(errors::already(&args.id, to));
    }
    Ok(Change { from: task.status, to, actor: "human".into(), notes: args.notes.clone(), rejection: false })
}

fn decided(id: &str, to: Status) -> Exit {
    answer(&format!("the status of task {id} is now {}\n", to.name()))
}

/// Refuses a change while a run works on the task: the run would continue as if nothing had changed.
fn not_at_work(root: &Path, journal: &Journal, id: &str) -> Result<(), Diagnostic> {
    let broken = |error| broken_journal(&error);
    // A process in another PID namespace cannot be seen, but its lock can.
    let locked = RunLock::is_held(root).map_err(broken)?;
    let lease = journal.lease().map_err(broken)?.filter(|lease| locked || is_alive(*lease));
    let Some(lease) = lease else { return Ok(()) };
    for run in journal.tasks().runs_of(id).map_err(broken)? {
        let in_batch = |row: &RunRow| row.batch == Some(lease.run) && row.outcome.is_none();
        if run == lease.run || journal.runs().get(run).map_err(broken)?.is_some_and(|row| in_batch(&row)) {
            return Err(errors::at_work(id, lease.run));
        }
    }
    Ok(())
}

fn delete(world: &World, common: &Common, id: &str) -> Result<Exit, Diagnostic> {
    let (project, journal) = journal(world, common)?;
    not_at_work(&project.root, &journal, id)?;
    match journal.tasks().delete(id).map_err(|error| broken_journal(&error))? {
        Ok(()) => Ok(answer(&format!("task {id} is deleted; its runs are kept\n"))),
        Err(refused) => Err(errors::refused(&refused, id)),
    }
}

fn disputes(world: &World, common: &Common, as_json: bool) -> Result<Exit, Diagnostic> {
    let journal = existing_journal(world, common)?;
    let found = journal.as_ref().map(|journal| journal.disputes().all().map_err(|error| broken_journal(&error)));
    let disputes = found.transpose()?.unwrap_or_default();
    if as_json {
        return Ok(answer(&(json!(disputes).to_string() + "\n")));
    }
    let stale = |opened: &str| world.days_since(opened).is_some_and(|days| days >= STALE_DAYS);
    let waiting = journal.map_or_else(|| Ok(String::new()), |journal| waiting_runs(&journal, &disputes))?;
    Ok(answer(&(disputes_text(&disputes, &stale, Paint::for_stdout(world)) + &waiting)))
}

/// The runs that wait for a decision which is not about a dispute.
fn waiting_runs(journal: &Journal, disputes: &[Dispute]) -> Result<String, Diagnostic> {
    let mut text = String::new();
    for row in journal.runs().all().map_err(|error| broken_journal(&error))? {
        let task = row.task.as_ref().and_then(|task| task.split(": ").next());
        let is_disputed = disputes.iter().any(|dispute| dispute.is_open() && Some(dispute.task.as_str()) == task);
        if row.batch.is_none() && !is_disputed && state(journal, &row)?.waits() {
            let run = row.id;
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "run {run} waits for your decision: forkhestra resume {run} --approve, or --reject \"why\""
            );
        }
    }
    Ok(text)
}

/// The age in days from which a dispute is shown as old.
const STALE_DAYS: u64 = 7;

fn known_dispute(disputes: &[Dispute], id: i64) -> Result<&Dispute, Diagnostic> {
    disputes.iter().find(|dispute| dispute.id == id).ok_or_else(|| errors::no_dispute(&id.to_string()))
}

fn show_dispute(world: &World, common: &Common, id: i64, as_json: bool) -> Result<Exit, Diagnostic> {
    let Some(journal) = existing_journal(world, common)? else { return Err(errors::no_dispute(&id.to_string())) };
    let disputes = journal.disputes().all().map_err(|error| broken_journal(&error))?;
    let dispute = known_dispute(&disputes, id)?;
    if as_json {
        return Ok(answer(&json_line(json!(dispute))));
    }
    Ok(answer(&dispute_text(dispute, Paint::for_stdout(world))))
}

fn delete_dispute(world: &World, common: &Common, id: i64) -> Result<Exit, Diagnostic> {
    let (project, journal) = journal(world, common)?;
    let disputes = journal.disputes().all().map_err(|error| broken_journal(&error))?;
    let dispute = known_dispute(&disputes, id)?;
    not_at_work(&project.root, &journal, &dispute.task)?;
    match journal.disputes().delete(id, &world.timestamp()).map_err(|error| broken_journal(&error))? {
        Ok((task, status)) => {
            Ok(answer(&format!("dispute {id} is deleted; the status of task {task} is now {}\n", status.name())))
        }
        Err(refused) => Err(errors::refused(&refused, &id.to_string())),
    }
}

fn resolve_dispute(world: &World, common: &Common, id: i64, decision: &str, notes: &str) -> Result<Exit, Diagnostic> {
    let (project, journal) = journal(world, common)?;
    let disputes = journal.disputes().all().map_err(|error| broken_journal(&error))?;
    let dispute = known_dispute(&disputes, id)?;
    let resolution = Resolution::named(decision).unwrap_or(Resolution::Custom);
    if resolution == Resolution::Custom && notes.trim().is_empty() {
        return Err(errors::custom_without_notes(id));
    }
    not_at_work(&project.root, &journal, &dispute.task)?;
    let minor = !dispute.is_open() && dispute.resolved.is_none();
    let change = |from: Status| resolve(from, resolution, notes);
    match journal
        .disputes()
        .resolve(id, decision, &change, &world.timestamp())
        .map_err(|error| broken_journal(&error))?
    {
        Ok(task) if minor => Ok(answer(&format!("dispute {id} is marked as resolved; task {task} does not change\n"))),
        Ok(task) => {
            let to = change(Status::Disputed).to;
            Ok(answer(&format!("dispute {id} is resolved; the status of task {task} is now {}\n", to.name())))
        }
        Err(Refused::Unknown(_)) => Err(errors::no_dispute(&id.to_string())),
        Err(refused) => Err(errors::refused(&refused, &id.to_string())),
    }
}
