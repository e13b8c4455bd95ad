//! Where a verdict is read: the recorded call, the result file, an object in the final message, a line of it (C23). What disagrees
//! is unclear, wherever it stands.

use super::handoff::Handoff;
use super::line::Line;
use super::object::{distinct, verdict_objects};
use super::{Decision, Finding, ReadFrom, Said, Severity, Unclear, Verdict, Word, decision_lines, findings, handoff};
use crate::chain::Role;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest notes that are kept, in Unicode scalars (C10).
const NOTES: usize = 8_000;

/// Everything in which a verdict may stand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heard<'a> {
    /// The recorded calls, a JSON object a line.
    pub calls: &'a str,
    /// The result file.
    pub file: Option<&'a str>,
    /// The final message; for a plain program the end of its output, without echoes.
    pub message: &'a str,
}

/// One recorded call.
#[derive(Serialize, Deserialize)]
struct Call {
    verdict: Decision,
    notes: String,
}

/// A recorded call as a line of its file.
#[must_use]
pub fn note_call(decision: Decision, notes: &str) -> String {
    serde_json::to_string(&Call { verdict: decision, notes: notes.into() }).unwrap_or_default() + "\n"
}

/// Reads what an agent decided.
#[must_use]
pub fn read(role: Role, heard: Heard<'_>) -> Said {
    match gather(role, heard) {
        Ok(verdict) => judged(role, verdict),
        Err(unclear) => Said::Unclear(unclear),
    }
}

/// What its role may decide, and a reject that says why.
fn judged(role: Role, mut verdict: Verdict) -> Said {
    if !verdict.decision.is_open_to(role) {
        return Said::Unclear(Unclear::NotItsRight { decision: verdict.decision });
    }
    if verdict.decision == Decision::Reject && verdict.notes.trim().is_empty() && verdict.findings.is_empty() {
        return Said::Unclear(Unclear::NoNotes);
    }
    verdict.notes = last_of(verdict.notes.trim(), NOTES).to_string();
    Said::Clear(verdict)
}

/// The end of a text, from a line's beginning: what is concluded stands last.
fn last_of(text: &str, most: usize) -> &str {
    let Some((cut, _)) = text.char_indices().rev().nth(most.saturating_sub(1)).filter(|(cut, _)| *cut > 0) else {
        return text;
    };
    let end = &text[cut..];
    end.find('\n').map_or(end, |newline| &end[newline + 1..])
}

fn gather(role: Role, heard: Heard<'_>) -> Result<Verdict, Unclear> {
    let mut all: Vec<Verdict> = Vec::new();
    for call in heard.calls.lines().filter_map(|line| serde_json::from_str::<Call>(line).ok()) {
        let findings = findings(&call.notes);
        all.push(Verdict { decision: call.verdict, notes: call.notes, findings, from: ReadFrom::Call });
    }
    // A worker's call is what it means; what else it prints may be anybody's words.
    if all.is_empty() || role == Role::Judge {
        all.extend(elsewhere(role, heard, all.is_empty())?);
    }
    let decisions = distinct(all.iter().map(|verdict| verdict.decision));
    // Whoever asks for a human among other things gets one.
    if role == Role::Worker && decisions.contains(&Decision::Dispute) {
        all.retain(|verdict| verdict.decision == Decision::Dispute);
    } else if decisions.len() > 1 {
        return Err(Unclear::Several { decisions });
    }
    // The last call, else the first of the others: the order is that of DESIGN.md.
    let calls = all.iter().filter(|verdict| verdict.from == ReadFrom::Call).count();
    all.into_iter().nth(calls.saturating_sub(1)).ok_or(Unclear::Nothing)
}

/// What the result file and the final message say; `alone` says whether there is no recorded call.
fn elsewhere(role: Role, heard: Heard<'_>, alone: bool) -> Result<Vec<Verdict>, Unclear> {
    let mut all: Vec<Verdict> = Vec::new();
    if let Some(file) = heard.file.filter(|file| !file.trim().is_empty()) {
        all.extend(of_file(file)?);
    }
    let message = plain(heard.message);
    for object in
        verdict_objects(&message).map_err(|why| Unclear::BadFile { why: format!("in its final message {why}") })?
    {
        let notes = object.notes.unwrap_or_default();
        let found = object.findings.unwrap_or_default();
        let findings = if found.is_empty() { findings(&notes) } else { found };
        all.push(Verdict { decision: object.verdict, notes, findings, from: ReadFrom::Object });
    }
    let lines = decision_lines(&message);
    match of_lines(role, &lines) {
        Ok(Some(decision)) => {
            let notes = notes_before(&message);
            let mut findings = findings(&notes);
            // Of an approval only what it calls minor is a finding; the rest is what it looked at.
            findings.retain(|finding| decision == Decision::Reject || finding.severity == Severity::Minor);
            all.push(Verdict { decision, notes, findings, from: ReadFrom::Line });
        }
        Err(unclear) if alone && all.is_empty() => return Err(unclear),
        Err(several @ Unclear::Several { .. }) => return Err(several),
        Ok(None) | Err(_) => {}
    }
    Ok(all)
}

/// Without colours and a byte order mark.
fn plain(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(escape) = rest.find("\u{1b}[") {
        kept.push_str(&rest[..escape]);
        let after = &rest[escape + 2..];
        let end = after.find(|next: char| next.is_ascii_alphabetic()).map_or(after.len(), |end| end + 1);
        rest = &after[end..];
    }
    kept + rest
}

/// The lines' decision. One in a fence counts for a judge when the fence holds nothing else and no line stands outside.
fn of_lines(role: Role, lines: &[Line]) -> Result<Option<Decision>, Unclear> {
    let outside: Vec<&Line> = lines.iter().filter(|line| !line.fenced).collect();
    let counted: Vec<&Line> = if outside.is_empty() {
        lines.iter().filter(|line| line.alone && line.last && role == Role::Judge).collect()
    } else {
        outside
    };
    let decisions = distinct(counted.iter().filter_map(|line| match line.word {
        Word::Decided(decision) => Some(decision),
        Word::NotDone(_) => None,
    }));
    match decisions.as_slice() {
        [one] => Ok(Some(*one)),
        [] => {
            let not_done = counted.iter().find_map(|line| match &line.word {
                Word::NotDone(line) => Some(line.clone()),
                Word::Decided(_) => None,
            });
            match not_done {
                Some(line) => Err(Unclear::NotDone { line }),
                None if counted.is_empty() && !lines.is_empty() => Err(Unclear::Fenced),
                None => Ok(None),
            }
        }
        _ => Err(Unclear::Several { decisions }),
    }
}

/// The words of the message without its verdict lines.
fn notes_before(message: &str) -> String {
    let kept = message.lines().filter(|line| decision_lines(line).is_empty());
    kept.collect::<Vec<_>>().join("\n").trim().to_string()
}

/// A result file: a verdict, or a handoff.
fn of_file(text: &str) -> Result<Option<Verdict>, Unclear> {
    let bad = |why: String| Unclear::BadFile { why };
    let value: Value = serde_json::from_str(text).map_err(|error| bad(format!("it is no JSON: {error}")))?;
    if value.get("tasks").is_some() && value.get("verdict").is_none() {
        return Ok(None);
    }
    let verdict = |decision, notes, findings| Some(Verdict { decision, notes, findings, from: ReadFrom::File });
    match handoff(&value) {
        Some(Ok(Handoff::Built { summary })) => return Ok(verdict(Decision::Submit, summary, Vec::new())),
        Some(Ok(Handoff::Inspected { decision, issues, next_tasks })) => {
            let mut notes: Vec<String> = issues.iter().map(line_of).collect();
            notes.extend(next_tasks.iter().map(|task| format!("- next: {task}")));
            return Ok(verdict(decision, notes.join("\n"), issues));
        }
        Some(Ok(Handoff::Failed { error })) => return Err(Unclear::Stopped { error }),
        Some(Err(faults)) => {
            let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
            return Err(bad(all.join("; ")));
        }
        None => {}
    }
    let objects = verdict_objects(text).map_err(bad)?;
    let [object] = objects.as_slice() else {
        return Err(bad("it holds no verdict (schemas/verdict.schema.json)".into()));
    };
    let notes = object.notes.clone().unwrap_or_default();
    let found = object.findings.clone().unwrap_or_default();
    Ok(verdict(object.verdict, notes.clone(), if found.is_empty() { findings(&notes) } else { found }))
}

/// A finding as a line of notes.
fn line_of(finding: &Finding) -> String {
    let place = finding.file.as_ref().map_or_else(String::new, |file| format!("{file}: "));
    format!("- {place}{}", finding.title)
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
