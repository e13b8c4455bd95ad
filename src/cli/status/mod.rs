//! `status`, `attach`, `stop` and `tell`: what is running now, read from the journals and locks of other processes.

mod attach;
mod lanes;
mod stop;
mod tell;
mod watch;

pub(super) use attach::attach;
pub(super) use stop::stop;
pub(super) use tell::tell;

use crate::agent::Reader;
use crate::cli::args::StatusArgs;
use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::run::execute::resume_line;
use crate::cli::runs::broken;
use crate::cli::runs::decode::reader_of;
use crate::cli::runs::history::{is_alive, state};
use crate::engine::{At, Event, EventKind, RunKind, RunOutcome, RunRow, RunState};
use crate::journal::{Journal, Lease, QUEUE_TITLE, RunLock};
use crate::plan::Outline;
use crate::proc::roots_at_work;
use crate::report::{
    AttemptStatus, Paint, RootStatus, RunStatus, TaskCount, WaitingItem, attempt_label, status as lines_of, wait_words,
};
use crate::source::{Diagnostic, counted};
use crate::task::{Status, Task};
use crate::world::World;
use serde_json::json;
use std::path::{Path, PathBuf};

/// How much of the end of an output is read, in bytes.
const TAIL: u64 = 64 << 10;
/// How many of the last runs are searched for decisions that a person has to make.
const SEARCHED: usize = 50;

/// Carries out `status`.
pub(super) fn status(world: &World, common: &Common, args: &StatusArgs) -> Answered {
    if args.watch {
        return watch::watch(world, common, args);
    }
    let all = gather(world, common, args)?;
    if args.json {
        return Ok(answer(&json_line(json!({ "roots": all }))));
    }
    let paint = Paint::for_stdout(world).still();
    Ok(answer(&text(&all, args.all, paint)))
}

fn text(all: &[RootStatus], named: bool, paint: Paint) -> String {
    if all.is_empty() {
        return "nothing is running\n".into();
    }
    all.iter().flat_map(|root| lines_of(root, named, paint)).fold(String::new(), |text, line| text + &line + "\n")
}

/// Reads the roots that are meant.
fn gather(world: &World, common: &Common, args: &StatusArgs) -> Result<Vec<RootStatus>, Diagnostic> {
    if !args.all {
        return Ok(vec![root_status(world, common, &project(world, common).root)?]);
    }
    // A root that cannot be read does not hide the others.
    let known = |root: &PathBuf| {
        root_status(world, common, root)
            .unwrap_or_else(|error| RootStatus { error: Some(error.message), ..blank(root) })
    };
    Ok(roots_at_work().iter().map(known).collect())
}

fn blank(root: &Path) -> RootStatus {
    let root = root.display().to_string();
    RootStatus { root, error: None, run: None, waiting: Vec::new(), tasks: Vec::new() }
}

fn root_status(world: &World, common: &Common, root: &Path) -> Result<RootStatus, Diagnostic> {
    let mut found = blank(root);
    let Some(journal) = Journal::existing(root).map_err(broken)? else { return Ok(found) };
    if let Some(active) = at_work(&journal)? {
        found.run = Some(run_status(world, &journal, &active)?);
    }
    let tasks = journal.tasks().all().map_err(broken)?;
    let mut runs = journal.runs().all().map_err(broken)?;
    runs.truncate(SEARCHED);
    if let Some(row) = runs.iter().find(|row| row.batch.is_none()).filter(|_| found.run.is_none()) {
        let how = match state(&journal, row)? {
            RunState::Crashed => Some("crashed"),
            RunState::Interrupted => Some("was interrupted"),
            _ => None,
        };
        found.waiting.extend(how.map(|how| WaitingItem {
            what: format!("run {} ({}) {how}", row.id, row.name.as_ref().unwrap_or(&row.chain)),
            next: resume_line(world, common, root, row.id),
        }));
    }
    for row in runs {
        let state = state(&journal, &row)?;
        if state.waits() {
            let title = row.name.as_ref().unwrap_or(&row.chain);
            if row.batch.is_some() {
                found.waiting.extend(waiting_task(&journal, &tasks, &row)?);
                continue;
            }
            let resume = resume_line(world, common, root, row.id);
            let more = match state {
                // Another answer of the judge would decide, too.
                RunState::Unclear => &format!(", or {resume} "),
                _ if row.outcome.is_some_and(RunOutcome::is_exhausted) => " --more 3, or ",
                _ => " ",
            };
            found.waiting.push(WaitingItem {
                what: format!("run {} ({title}) waits for your decision", row.id),
                next: format!("{resume}{more}--approve, or --reject \"why\""),
            });
        }
    }
    let open = journal.disputes().all().map_err(broken)?.iter().filter(|dispute| dispute.is_open()).count();
    if open > 0 {
        let wait = if open == 1 { "waits" } else { "wait" };
        let what = format!("{} {wait} for your decision", counted(open, "dispute"));
        found.waiting.push(WaitingItem { what, next: "forkhestra dispute list".into() });
    }
    for (name, status) in Status::NAMES {
        let count = tasks.iter().filter(|task| task.status == status).count();
        if count > 0 {
            found.tasks.push(TaskCount { status: name.into(), count });
        }
    }
    Ok(found)
}

/// The task of a batch that waits for a decision; `None` if a person has decided since.
fn waiting_task(journal: &Journal, tasks: &[Task], row: &RunRow) -> Result<Option<WaitingItem>, Diagnostic> {
    let id = row.task.as_ref().and_then(|task| task.split(": ").next()).unwrap_or_default();
    let Some(task) = tasks.iter().find(|task| task.id == id && !task.status.is_terminal()) else { return Ok(None) };
    let decided = journal.tasks().trail(id).map_err(broken)?.last().is_some_and(|last| last.change.actor == "human");
    let is_last = journal.tasks().runs_of(id).map_err(broken)?.last() == Some(&row.id);
    Ok((is_last && !decided).then(|| WaitingItem {
        what: format!("task {id} ({}) waits for your decision, after run {}", task.title, row.id),
        next: format!("forkhestra task approve {id}, or forkhestra task reject {id} --notes \"why\""),
    }))
}

/// A run whose process is running in a root.
struct ActiveRun {
    row: RunRow,
    lease: Lease,
    /// Whether the run itself has ended: its process is a queue, which continues with the next task.
    has_ended: bool,
}

/// Returns the run that is in progress in a root, or the last run of a queue that is between two tasks.
fn at_work(journal: &Journal) -> Result<Option<ActiveRun>, Diagnostic> {
    let Some(lease) = journal.lease().map_err(broken)?.filter(|lease| is_alive(*lease)) else { return Ok(None) };
    let Some(row) = journal.runs().get(lease.run).map_err(broken)? else { return Ok(None) };
    let has_ended = RunState::of_run(&row, true) != RunState::Running;
    let is_active = if has_ended {
        let holder = RunLock::holder(journal.root()).map_err(broken)?;
        holder.is_some_and(|holder| holder.title == QUEUE_TITLE && holder.pid == Some(lease.pid))
    } else {
        true
    };
    Ok(is_active.then_some(ActiveRun { row, lease, has_ended }))
}

/// Returns the run in progress in a root, which must be the `wanted` one, if a number is given. `verb` names the
/// command.
///
/// # Errors
/// When it is not running.
fn chosen_at_work(journal: &Journal, wanted: Option<i64>, verb: &str) -> Result<ActiveRun, Diagnostic> {
    let found = at_work(journal)?;
    match (found, wanted) {
        (Some(found), None) => Ok(found),
        (Some(found), Some(wanted)) if found.row.id == wanted && !found.has_ended => Ok(found),
        (_, Some(wanted)) if journal.runs().get(wanted).map_err(broken)?.is_none() => {
            Err(Diagnostic::error("run/not-running", format!("there is no run {wanted}"))
                .help("`forkhestra runs` lists all runs"))
        }
        (found, wanted) => {
            Err(not_at_work(verb, wanted, found.filter(|found| !found.has_ended).map(|found| found.row.id)))
        }
    }
}

fn not_at_work(verb: &str, wanted: Option<i64>, running: Option<i64>) -> Diagnostic {
    let what = match wanted {
        Some(run) => format!("run {run} is not running"),
        None => "no run is in progress here".into(),
    };
    let help = match running {
        Some(run) => format!("run {run} is running: forkhestra {verb} {run}"),
        None => "`forkhestra status --all` shows all your runs on this machine".into(),
    };
    Diagnostic::error("run/not-running", what).help(help)
}

fn run_status(world: &World, journal: &Journal, active: &ActiveRun) -> Result<RunStatus, Diagnostic> {
    let row = &active.row;
    let outline = journal.runs().outline(row.id).map_err(broken)?;
    let last = journal.events().last(row.id, &[]).map_err(broken)?;
    let waits = if active.has_ended {
        Some("ended; the queue runs its hooks, then begins the next task".into())
    } else {
        last.as_ref().and_then(|event| wait_words(&event.event))
    };
    let last = journal.events().last(row.id, &["attemptPlanned", "attemptFinished"]).map_err(broken)?;
    let attempt = last.and_then(|event| attempt_status(world, journal, outline.as_ref(), &event));
    let batch = if row.kind == RunKind::Batch { lanes::batch_of(journal, row.id)? } else { None };
    let (lanes, progress) = match &batch {
        Some(state) => (lanes::lanes(world, state)?, Some(lanes::progress(state))),
        None => (Vec::new(), None),
    };
    Ok(RunStatus {
        run: row.id,
        chain: row.name.clone().unwrap_or_else(|| row.chain.clone()),
        task: row.task.clone(),
        started: row.started.clone(),
        running_ms: world.milliseconds_since_time(&row.started),
        attempts: row.attempts,
        tokens: row.tokens,
        cost_usd: row.cost_usd,
        attempt,
        waits,
        lanes,
        progress,
    })
}

fn attempt_status(world: &World, journal: &Journal, outline: Option<&Outline>, last: &Event) -> Option<AttemptStatus> {
    let EventKind::AttemptPlanned { at, iterations, .. } = &last.event else { return None };
    let folder = journal.files().attempt_folder(last.run, at.step, &at.name, at.attempt);
    let running_ms = world.milliseconds_since_time(&last.at);
    let touched = ["stdout.log", "stderr.log"].map(|name| world.milliseconds_since_touch(&folder.path().join(name)));
    let reader = outline.and_then(|outline| reader_of(journal, outline, last.run, (at.step, at.attempt)));
    Some(AttemptStatus {
        label: attempt_label(at, *iterations),
        running_ms,
        silent_ms: touched.into_iter().flatten().min().unwrap_or(running_ms).min(running_ms),
        last_line: last_line(world, journal, (last.run, at), reader),
    })
}

/// The last line of an attempt's output, as a person sees it.
fn last_line(world: &World, journal: &Journal, (run, at): (i64, &At), reader: Option<Reader>) -> String {
    let path = journal.files().attempt_folder(run, at.step, &at.name, at.attempt).path().join("stdout.log");
    let from = world.disk().size_of(&path).unwrap_or(0).saturating_sub(TAIL);
    let bytes = journal.files().piece(&path, from).unwrap_or_default();
    // The first line is cut, unless it is the first of the file.
    let begin = if from == 0 { 0 } else { bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1) };
    let bytes = &bytes[begin..];
    let text = match reader {
        None => String::from_utf8_lossy(bytes).into_owned(),
        Some(mut reader) => {
            let mut text = String::new();
            reader.feed(bytes, &mut |shown| text.push_str(shown));
            text
        }
    };
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_string()
}
