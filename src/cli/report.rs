//! `report`: one run or several as a self-contained document.

use crate::chain::parse_duration;
use crate::cli::config::shell;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, Stopped, answer, broken_journal, json_line};
use crate::cli::run::execute::resume_line;
use crate::cli::runs::args::ReportArgs;
use crate::cli::runs::batch::trees_of;
use crate::cli::runs::decode::reader_of;
use crate::cli::runs::history::{journal, meant, state};
use crate::cli::runs::{bad_age, broken};
use crate::engine::{At, Event, EventKind, FileChange, Finished, RunKind, RunRow, RunState, RunSummary, RunTrees};
use crate::exit::Exit;
use crate::journal::Journal;
use crate::plan::Outline;
use crate::report::{
    AttemptTexts, BatchPage, Document, Refresh, html_page, junit, markdown, next_of_part, print, reason,
};
use crate::runner::TreeStore;
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The size up to which a log of an attempt, or the patch of a run, is included, in bytes.
const LONGEST: usize = 5 << 20;
/// The interval at which a report that follows its runs is written again.
const AGAIN: Duration = Duration::from_secs(3);

/// Everything that is read of a run for its report.
struct RunData {
    row: RunRow,
    summary: RunSummary,
    outline: Outline,
    events: Vec<Event>,
    reason: String,
    resume: String,
    part: Option<String>,
    at_work: bool,
    changes: Option<Vec<FileChange>>,
    patch: String,
    papers: Vec<AttemptTexts>,
}

/// Writes the report and prints its path.
pub(super) fn report(world: &World, common: &Common, args: &ReportArgs) -> Answered {
    if args.follow && args.format == "junit" {
        return Err(followed_junit().into());
    }
    let (project, journal) = journal(world, common)?;
    let mut printed = false;
    loop {
        let mut runs = chosen(world, &journal, args)?;
        let batch = if args.several() { None } else { batch_of(&journal, &mut runs)? };
        let several = runs.len() != 1 || args.several() || batch.is_some();
        let data: Vec<RunData> = runs
            .into_iter()
            .map(|(row, state)| read(world, common, (&project.root, &journal), row, state))
            .collect::<Result<_, _>>()?;
        let is_running = batch.as_ref().is_some_and(|batch| batch.1 == RunState::Running);
        let at_work = data.iter().any(|run| run.at_work) || is_running;
        let page = batch.as_ref().map(|(run, state, events)| BatchPage { run: *run, state: *state, events });
        let follows = args.follow && at_work;
        let documents: Vec<Document<'_>> = data.iter().map(RunData::document).collect();
        let refresh = if follows { Refresh::Every(AGAIN) } else { Refresh::Never };
        let text = match args.format.as_str() {
            "md" => page.as_ref().map(BatchPage::markdown).unwrap_or_default() + &markdown(&documents, several),
            "junit" => junit(&documents, several).map_err(|why| not_xml(&why))?,
            _ => html_page(&documents, page.as_ref(), several, refresh),
        };
        let only = || data.first().filter(|_| !several).map(|run| run.row.id);
        let first = page.as_ref().map(|page| page.run).or_else(only);
        let Some(file) = written(world, common, args, &journal, first, &text)? else { return Ok(answer(&text)) };
        if !std::mem::replace(&mut printed, true) {
            let words = if args.json {
                json_line(json!({ "run": first, "path": file }))
            } else {
                format!("{}\n", world.relative(&file))
            };
            if print(&words).is_err() || !follows {
                return Ok(Exit::Success);
            }
        }
        if !follows {
            return Ok(Exit::Success);
        }
        std::thread::sleep(AGAIN);
    }
}

/// The events of a batch, if that is the run that is meant, which is replaced by the runs of the batch.
fn batch_of(
    journal: &Journal,
    runs: &mut Vec<(RunRow, RunState)>,
) -> Result<Option<(i64, RunState, Vec<Event>)>, Diagnostic> {
    let [(row, batch)] = runs.as_slice() else { return Ok(None) };
    if row.kind != RunKind::Batch {
        return Ok(None);
    }
    let (run, batch) = (row.id, *batch);
    runs.clear();
    for row in journal.runs().all().map_err(broken)?.into_iter().rev().filter(|row| row.batch == Some(run) && row.began)
    {
        let state = state(journal, &row)?;
        runs.push((row, state));
    }
    Ok(Some((run, batch, journal.events().of(run).map_err(broken)?)))
}

/// Returns the runs that are meant, the oldest first.
fn chosen(world: &World, journal: &Journal, args: &ReportArgs) -> Result<Vec<(RunRow, RunState)>, Diagnostic> {
    if !args.several() {
        return Ok(vec![meant(journal, args.run, |_, _| true, "yet")?]);
    }
    let since = args.since.as_deref().map(|age| parse_duration(age).map_err(|_| bad_age(age))).transpose()?;
    let since = since.map(|age| world.timestamp_before(age));
    let mut runs = Vec::new();
    for row in journal.runs().all().map_err(broken)? {
        let of_task = |task: &String| row.task.as_ref().is_some_and(|known| known.split(':').next() == Some(task));
        let wanted = args.task.as_ref().is_none_or(of_task)
            && since.as_ref().is_none_or(|since| row.ended.as_ref().is_none_or(|ended| ended >= since));
        let state = state(journal, &row)?;
        // A run that died long ago has no end.
        let old = row.ended.is_none()
            && state != RunState::Running
            && since.as_ref().is_some_and(|since| row.started < *since);
        if wanted && !old && row.began && row.kind != RunKind::Batch {
            runs.push((row, state));
        }
    }
    if runs.is_empty() {
        return Err(none_chosen());
    }
    runs.reverse();
    Ok(runs)
}

fn read(
    world: &World,
    common: &Common,
    (root, journal): (&Path, &Journal),
    row: RunRow,
    state: RunState,
) -> Result<RunData, Diagnostic> {
    let Some(outline) = journal.runs().outline(row.id).map_err(broken)? else { return Err(no_outline(row.id)) };
    let events = journal.events().of(row.id).map_err(broken)?;
    let summary = RunSummary::of(&events);
    let resume = resume_line(world, common, root, row.id);
    let why = match (summary.totals.outcome, state) {
        (Some(outcome), _) => reason(outcome, &summary.totals, &outline),
        (None, RunState::Running) => "it is still running".into(),
        (None, _) => "its process died".into(),
    };
    let mut ended: HashMap<(u32, u32), &Finished> = HashMap::new();
    for event in &events {
        if let EventKind::AttemptFinished { at, finished, .. } = &event.event {
            ended.insert((at.step, at.attempt), finished);
        }
    }
    let mut papers = Vec::new();
    for event in &events {
        if let EventKind::AttemptPlanned { at, .. } = &event.event {
            papers.push(paper(world, journal, &outline, (row.id, at), ended.get(&(at.step, at.attempt)).copied())?);
        }
    }
    let (store, trees) = trees_of(journal, &row, summary.trees.clone())?;
    let (changes, patch) = (store.files_of_run(&trees), patch(&store, &trees));
    let (at_work, part) = (state == RunState::Running, next_of_part(&row, state));
    Ok(RunData { row, summary, outline, events, reason: why, resume, part, at_work, changes, patch, papers })
}

impl RunData {
    fn document(&self) -> Document<'_> {
        Document {
            summary: &self.summary,
            outline: &self.outline,
            events: &self.events,
            reason: &self.reason,
            at_work: self.at_work,
            resume: &self.resume,
            part: self.row.batch.map(|_| self.part.as_deref().unwrap_or_default()),
            changes: self.changes.as_deref(),
            patch: &self.patch,
            papers: &self.papers,
        }
    }
}

/// Writes the report and returns its path; `None` if it is for standard output.
fn written(
    world: &World,
    common: &Common,
    args: &ReportArgs,
    journal: &Journal,
    run: Option<i64>,
    text: &str,
) -> Result<Option<PathBuf>, Stopped> {
    match &args.out {
        Some(out) if out.as_os_str() == "-" => Ok(None),
        Some(out) => {
            let path = shell(world, common).join(out);
            world.disk().write(&path, text).map_err(|error| not_written(&path, &error.to_string()))?;
            Ok(Some(path))
        }
        None => {
            let ending = if args.format == "junit" { "xml" } else { args.format.as_str() };
            Ok(Some(journal.files().keep_report(run, ending, text)?))
        }
    }
}

/// The changes of a run as a patch; empty if there are none.
fn patch(store: &TreeStore, trees: &RunTrees) -> String {
    let trees = trees.began.as_deref().zip(trees.last()).filter(|(began, last)| began != last);
    let mut patch = trees.and_then(|(began, last)| store.patch(began, last)).unwrap_or_default();
    if patch.len() > LONGEST {
        let end = patch[..patch.floor_char_boundary(LONGEST)].rfind('\n').map_or(0, |end| end + 1);
        patch.truncate(end);
    }
    patch
}

/// The prompt and the output of an attempt, decoded as on the terminal.
fn paper(
    world: &World,
    journal: &Journal,
    outline: &Outline,
    (run, at): (i64, &At),
    ended: Option<&Finished>,
) -> Result<AttemptTexts, Diagnostic> {
    let folder = journal.files().attempt_folder(run, at.step, &at.name, at.attempt);
    let read = |name: &str| folder.beginning(name, LONGEST as u64).map_err(|error| broken_journal(&error));
    let ((stdout, cut), (errors, cut_too)) = (read("stdout.log")?, read("stderr.log")?);
    let output = match reader_of(journal, outline, run, (at.step, at.attempt)) {
        None => String::from_utf8_lossy(&stdout).into_owned(),
        Some(mut reader) => {
            let mut text = String::new();
            reader.feed(&stdout, &mut |shown| text.push_str(shown));
            let _ = reader.finish(&mut |shown| text.push_str(shown));
            text
        }
    };
    Ok(AttemptTexts {
        prompt: folder.prompt(),
        output,
        errors: String::from_utf8_lossy(&errors).into_owned(),
        folder: world.relative(folder.path()),
        at: at.clone(),
        cut: cut || cut_too,
        missing: ended.and_then(|finished| folder.missing(finished.stdout_bytes, finished.stderr_bytes)),
    })
}

fn no_outline(run: i64) -> Diagnostic {
    Diagnostic::error("report/too-old", format!("run {run} was recorded by a version that stored no outline"))
        .help(format!("`forkhestra runs show {run}` shows what is known"))
}

fn not_written(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("report/write", format!("cannot write {}: {why}", path.display()))
        .help("name another file; `-o -` writes to standard output")
}

fn followed_junit() -> Diagnostic {
    Diagnostic::error("report/follow", "`--follow` cannot be used with `--format junit`, which writes no page")
        .help("leave out --follow: the file has what is known now. `forkhestra runs log --follow` waits for the end of the run")
}

fn not_xml(why: &str) -> Diagnostic {
    Diagnostic::error("report/xml", format!("the report cannot be written as XML: {why}"))
        .help("this is an internal error; `--format md` does not need XML")
}

fn none_chosen() -> Diagnostic {
    Diagnostic::error("report/none", "no run matches these options").help("`forkhestra runs` lists all runs")
}
