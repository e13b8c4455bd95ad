//! `report`: a run as a self-contained document.

use crate::agent::{Format, Reader};
use crate::cli::args::{Common, ReportArgs};
use crate::cli::config::shell;
use crate::cli::respond::{Answered, answer, broken_journal, json_line};
use crate::cli::run::execute::resume_line;
use crate::cli::runs::history::{journal, meant};
use crate::engine::{At, EventKind, RunState, RunSummary};
use crate::journal::{Journal, JournalError};
use crate::plan::Outline;
use crate::report::{AttemptTexts, Document, html_page, markdown, reason};
use crate::source::Diagnostic;
use crate::world::World;
use serde_json::json;
use std::path::Path;

/// The size up to which a log of an attempt is included, in bytes.
const LONGEST: usize = 5 << 20;

/// Writes the report and prints its path.
pub(super) fn report(world: &World, common: &Common, args: &ReportArgs) -> Answered {
    Ok(answer(&written(world, common, args)?))
}

fn written(world: &World, common: &Common, args: &ReportArgs) -> Result<String, Diagnostic> {
    let broken = |error: JournalError| broken_journal(&error);
    let (project, journal) = journal(world, common)?;
    let (row, state) = meant(&journal, args.run, |_, _| true, "yet")?;
    let Some(outline) = journal.outline(row.id).map_err(broken)? else { return Err(no_outline(row.id)) };
    let events = journal.events(row.id).map_err(broken)?;
    let summary = RunSummary::of(&events);
    let resume = resume_line(world, common, &project.root, row.id);
    let why = match (summary.totals.outcome, state) {
        (Some(outcome), _) => reason(outcome, &summary.totals, &outline),
        (None, RunState::Running) => "it is still running".into(),
        (None, _) => format!("its process died; {resume} continues it"),
    };
    let mut papers = Vec::new();
    for event in &events {
        if let EventKind::AttemptPlanned { at, .. } = &event.event {
            papers.push(paper(world, &journal, &outline, row.id, at)?);
        }
    }
    let document = Document {
        summary: &summary,
        outline: &outline,
        events: &events,
        reason: &why,
        at_work: state == RunState::Running,
        papers,
    };
    let text = if args.format == "md" { markdown(&document) } else { html_page(&document) };
    let file = match &args.out {
        Some(out) if out.as_os_str() == "-" => return Ok(text),
        Some(out) => {
            let shell = shell(world, common);
            let path = shell.join(out);
            world.write(&path, &text).map_err(|error| not_written(&path, &error.to_string()))?;
            path
        }
        None => journal.keep_report(row.id, args.format.as_str(), &text).map_err(broken)?,
    };
    if args.json {
        return Ok(json_line(json!({ "run": row.id, "path": file })));
    }
    Ok(format!("{}\n", world.relative(&file)))
}

/// The prompt and the output of an attempt, decoded as on the terminal.
fn paper(world: &World, journal: &Journal, outline: &Outline, run: i64, at: &At) -> Result<AttemptTexts, Diagnostic> {
    let folder = journal.attempt_folder(run, at.step, &at.name, at.attempt);
    let step = outline.step(at.step);
    let (stdout, cut) = whole(journal, &folder.path().join("stdout.log"))?;
    let (errors, cut_too) = whole(journal, &folder.path().join("stderr.log"))?;
    let output = match Reader::new(step.map_or(Format::Plain, |step| step.format)) {
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
        of: (at.step, at.attempt),
        cut: cut || cut_too,
        missing: journal.missing_output(run, at.step, &at.name, at.attempt).map_err(|error| broken_journal(&error))?,
    })
}

/// The part of a file that is included, and whether there is more of it.
fn whole(journal: &Journal, path: &Path) -> Result<(Vec<u8>, bool), Diagnostic> {
    let mut bytes = Vec::new();
    loop {
        let piece = journal.piece(path, bytes.len() as u64).map_err(|error| broken_journal(&error))?;
        if piece.is_empty() {
            return Ok((bytes, false));
        }
        bytes.extend(piece);
        if bytes.len() > LONGEST {
            bytes.truncate(LONGEST);
            return Ok((bytes, true));
        }
    }
}

fn no_outline(run: i64) -> Diagnostic {
    Diagnostic::error("report/too-old", format!("run {run} was recorded by a version that stored no outline"))
        .help(format!("`forkhestra runs show {run}` shows what is known"))
}

fn not_written(path: &Path, why: &str) -> Diagnostic {
    Diagnostic::error("report/write", format!("cannot write {}: {why}", path.display()))
        .help("name another file; `-o -` writes to standard output")
}
