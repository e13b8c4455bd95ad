//! Reads a verdict from a recorded call, the result file, and an object or a line in the final message. One rule
//! applies to all of them: when in doubt, it is not an approval.

use super::calls::{RecordedCall, line_of, list_of};
use super::doubt::{announcement, blocking_item, forbids, retraction};
use super::handoff::Handoff;
use super::line::{VerdictLine, Word, decision_lines};
use super::object::{StatedObject, distinct, file_object, stated_objects};
use super::substance::substance;
use super::{Decision, ReadFrom, Severity, Unclear, Verdict, VerdictReading, findings, handoff};
use crate::chain::Role;
use serde_json::Value;
use std::collections::HashSet;

/// Maximum length of the notes, in Unicode scalars.
const NOTES: usize = 8_000;
/// Maximum length of a line that is quoted as a reason, in Unicode scalars.
const QUOTED: usize = 200;

/// Everything that may contain a verdict.
#[derive(Clone, Copy, Default)]
pub struct VerdictSources<'a> {
    /// The recorded calls.
    pub calls: &'a [RecordedCall],
    /// The content of the result file.
    pub file: Option<&'a str>,
    /// The final message. For a plain program, the end of its output without echoes of the prompt.
    pub message: &'a str,
    /// The secret word of the attempt: a line that contains it is the agent's own.
    pub nonce: Option<&'a str>,
    /// For a plain program: the verdicts in the text that it was given. Its output may only repeat them.
    pub given: &'a [Quotable],
    /// For a plain program: whether an approval counts only with the nonce, as a call or in a file.
    pub strict: bool,
}

/// Reads what an agent decided.
#[must_use]
pub fn read(role: Role, heard: VerdictSources<'_>) -> VerdictReading {
    match gather(role, heard) {
        Ok(verdict) => judged(role, verdict),
        Err(unclear) => VerdictReading::Unclear(unclear),
    }
}

/// A verdict in a text, whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotable {
    /// What it decides.
    pub decision: Decision,
    /// The whole verdict, if it is an object. A line has only a decision.
    pub object: Option<super::VerdictObject>,
}

/// Returns the verdicts that a text contains as a whole line or a whole object, whoever wrote them.
#[must_use]
pub fn stated(text: &str) -> Vec<Quotable> {
    // Hardly any text contains a verdict.
    let holds = |word: &[u8]| text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    if !holds(b"verdict") && !holds(b"decision") && !holds(b"status") {
        return Vec::new();
    }
    let text = plain(text);
    let lines = decision_lines(&text, None).into_iter().filter_map(|line| line.decision());
    let lines = lines.map(|decision| Quotable { decision, object: None });
    let objects = stated_objects(&text).into_iter().filter_map(|stated| stated.verdict.ok());
    let objects = objects.map(|object| Quotable { decision: object.verdict, object: Some(object) });
    distinct(lines.chain(objects))
}

/// Accepts a verdict only if an agent with this role may decide that, and a reject only if it gives a reason.
fn judged(role: Role, mut verdict: Verdict) -> VerdictReading {
    if !verdict.decision.is_open_to(role) {
        return VerdictReading::Unclear(Unclear::NotItsRight { decision: verdict.decision, minor: verdict.minor });
    }
    if verdict.decision == Decision::Reject && verdict.findings.is_empty() && substance(&verdict.notes).is_nothing() {
        return VerdictReading::Unclear(Unclear::NoNotes);
    }
    verdict.notes = last_of(verdict.notes.trim(), NOTES).to_string();
    VerdictReading::Clear(verdict)
}

/// Returns the end of a text, from the beginning of a line: the conclusion comes last.
fn last_of(text: &str, most: usize) -> &str {
    let Some((cut, _)) = text.char_indices().rev().nth(most.saturating_sub(1)).filter(|(cut, _)| *cut > 0) else {
        return text;
    };
    let end = &text[cut..];
    end.find('\n').map_or(end, |newline| &end[newline + 1..])
}

fn gather(role: Role, heard: VerdictSources<'_>) -> Result<Verdict, Unclear> {
    let mut all: Vec<Verdict> = Vec::new();
    all.extend(heard.calls.iter().filter_map(of_call));
    // For a worker, a call takes precedence: what it prints may come from anywhere.
    if all.is_empty() || role == Role::Judge {
        all.extend(elsewhere(role, heard, all.is_empty())?);
    }
    let decisions = distinct(all.iter().map(|verdict| verdict.decision));
    // A worker that opens a dispute gets a person's decision, whatever else it decided.
    if role == Role::Worker && decisions.contains(&Decision::Dispute) {
        all.retain(|verdict| verdict.decision == Decision::Dispute);
    } else if decisions.len() > 1 {
        return Err(Unclear::Several { decisions });
    }
    // The last call, or else the first of the others, in the order in which they are read.
    let calls = all.iter().filter(|verdict| verdict.from == ReadFrom::Call).count();
    all.into_iter().nth(calls.saturating_sub(1)).ok_or(Unclear::Nothing)
}

/// Returns the verdict of a call, if it holds one.
fn of_call(call: &RecordedCall) -> Option<Verdict> {
    let RecordedCall::Decision { verdict, notes, findings: given } = call else { return None };
    if given.is_empty() {
        return Some(Verdict::new(*verdict, notes.clone(), findings(notes), ReadFrom::Call));
    }
    let notes = format!("{}\n\n{notes}", list_of(given)).trim_end().to_string();
    Some(Verdict::new(*verdict, notes, given.clone(), ReadFrom::Call))
}

/// Reads the result file and the final message. `alone` says that there is no recorded call.
fn elsewhere(role: Role, heard: VerdictSources<'_>, alone: bool) -> Result<Vec<Verdict>, Unclear> {
    let mut all: Vec<Verdict> = Vec::new();
    if let Some(file) = heard.file.filter(|file| !file.trim().is_empty()) {
        all.extend(of_file(file)?);
    }
    let alone = alone && all.is_empty();
    match of_message(role, heard) {
        Ok(said) => all.extend(said),
        // A message without a verdict does not invalidate a call or a file. From a judge, a message with several
        // verdicts or with doubt does.
        Err(unclear) if alone => return Err(unclear),
        Err(unclear @ (Unclear::Several { .. } | Unclear::Doubted { .. })) if role == Role::Judge => {
            return Err(unclear);
        }
        Err(_) => {}
    }
    Ok(all)
}

/// A verdict in the final message, and its place.
struct Statement {
    /// Its lines: the first, and the one after the last.
    lines: (usize, usize),
    decision: Decision,
    object: Option<super::VerdictObject>,
    reason: Option<String>,
    /// Whether it contains the secret word of the attempt.
    vouched: bool,
}

/// Reads the verdict of the final message, from an object or a line.
fn of_message(role: Role, heard: VerdictSources<'_>) -> Result<Option<Verdict>, Unclear> {
    let message = plain(heard.message);
    let lines = decision_lines(&message, heard.nonce);
    let objects = stated_objects(&message);
    if let Some(why) = objects.iter().filter(|stated| stated.counts).find_map(|stated| stated.verdict.as_ref().err()) {
        return Err(Unclear::BadFile { why: format!("in its final message, {why}") });
    }
    let mut said = statements(role, &lines, &objects);
    // A line with the attempt's secret word is the agent's own. Other verdicts may be quoted.
    if said.iter().any(|statement| statement.vouched) {
        said.retain(|statement| statement.vouched || statement.decision == Decision::Reject && role == Role::Judge);
    }
    let mut discounted = None;
    said.retain(|statement| {
        let own = statement.vouched || role == Role::Judge && !statement.decision.passes();
        let quoted = |given: &Quotable| given.decision == statement.decision && given.object == statement.object;
        let kept = own || !heard.given.iter().any(quoted);
        if !kept {
            discounted = Some(statement.decision);
        }
        kept
    });
    let decisions = distinct(said.iter().map(|statement| statement.decision));
    let Some(decision) = decisions.first().copied() else { return nothing(role, &lines, discounted) };
    if decisions.len() > 1 {
        return Err(Unclear::Several { decisions });
    }
    let vouched = said.iter().any(|statement| statement.vouched);
    if decision.passes() {
        doubt(role, &message, &said, &lines, &objects)?;
        if heard.strict && !vouched && role == Role::Judge {
            return Err(Unclear::NoWord { decision });
        }
    }
    Ok(Some(verdict_of(role, &message, &said, &lines, vouched)))
}

/// Returns every statement in a message that decides something.
fn statements(role: Role, lines: &[VerdictLine], objects: &[StatedObject]) -> Vec<Statement> {
    let decided = |line: &&VerdictLine| line.decision().is_some();
    let outside = lines.iter().filter(|line| !line.fenced || line.vouched).filter(decided);
    let mut counted: Vec<&VerdictLine> = outside.collect();
    // For a judge, a line in a fence counts if the fence contains nothing else, no text follows it, and no such line is
    // outside of a fence.
    if !lines.iter().any(|line| !line.fenced) {
        counted = lines.iter().filter(|line| line.alone && line.last && role == Role::Judge).filter(decided).collect();
    }
    let of_line = |line: &VerdictLine| {
        let reason = match &line.word {
            Word::WithReason(_, reason) => Some(reason.clone()),
            _ => None,
        };
        let lines = (line.index, line.index + 1);
        Some(Statement { lines, decision: line.decision()?, object: None, reason, vouched: line.vouched })
    };
    let of_object = |stated: &StatedObject| {
        let object = stated.verdict.clone().ok().filter(|_| stated.counts)?;
        let (lines, decision) = (stated.lines, object.verdict);
        Some(Statement { lines, decision, object: Some(object), reason: None, vouched: false })
    };
    let mut said: Vec<Statement> =
        counted.into_iter().filter_map(of_line).chain(objects.iter().filter_map(of_object)).collect();
    said.sort_by_key(|statement| statement.lines);
    said
}

/// Returns why nothing was decided, if that is known.
fn nothing(role: Role, lines: &[VerdictLine], discounted: Option<Decision>) -> Result<Option<Verdict>, Unclear> {
    if let Some(decision) = discounted {
        return if role == Role::Judge { Err(Unclear::Quoted { decision }) } else { Ok(None) };
    }
    let not_done = lines.iter().filter(|line| !line.fenced).find_map(|line| match &line.word {
        Word::NotDone(line) => Some(line.clone()),
        _ => None,
    });
    if let Some(line) = not_done {
        return Err(Unclear::NotDone { line });
    }
    let loose = lines.iter().filter(|line| !line.fenced).find_map(|line| match &line.word {
        Word::Loose(line) => Some(short(line)),
        _ => None,
    });
    match loose {
        Some(line) if role == Role::Judge => Err(Unclear::Doubted { line }),
        None if lines.iter().any(|line| line.decision().is_some()) => Err(Unclear::Fenced),
        _ => Ok(None),
    }
}

/// Returns an error if something casts doubt on an approval or a skip.
fn doubt(
    role: Role,
    message: &str,
    said: &[Statement],
    lines: &[VerdictLine],
    objects: &[StatedObject],
) -> Result<(), Unclear> {
    let doubted = |line: &str| Err(Unclear::Doubted { line: short(line) });
    let text: Vec<&str> = message.lines().collect();
    let first = said.iter().map(|statement| statement.lines.0).min().unwrap_or(0);
    let last = said.iter().map(|statement| statement.lines.1).max().unwrap_or(0);
    let vouched = said.iter().any(|statement| statement.vouched);
    for line in lines.iter().filter(|line| line.index >= last) {
        match &line.word {
            Word::Loose(words) | Word::WithReason(_, words) => return doubted(words),
            // A line in a later fence contains another verdict.
            Word::Decided(other) if said.iter().all(|statement| statement.decision != *other) => {
                return doubted(text.get(line.index).copied().unwrap_or_default());
            }
            Word::Decided(_) | Word::NotDone(_) => {}
        }
    }
    let disagrees = |stated: &&StatedObject| match &stated.verdict {
        Ok(object) => said.iter().all(|statement| statement.decision != object.verdict),
        Err(_) => false,
    };
    if let Some(other) = objects.iter().filter(|stated| stated.lines.0 >= last).find(disagrees) {
        return doubted(text.get(other.lines.0).copied().unwrap_or_default());
    }
    let after: Vec<&str> = text.iter().skip(last).copied().collect();
    if role == Role::Judge
        && let Some(line) = retraction(&after.join("\n"), said.iter().all(|one| one.decision == Decision::Skip))
    {
        return doubted(line);
    }
    if !vouched && let Some(line) = announcement(&text[..first.min(text.len())].join("\n")) {
        return doubted(line);
    }
    let severe = |object: &super::VerdictObject| object.severe.clone();
    if let Some(title) = said.iter().filter_map(|statement| statement.object.as_ref()).find_map(severe) {
        return doubted(&title);
    }
    let notes = said.iter().filter_map(|statement| statement.object.as_ref()?.notes.as_deref());
    if let Some(line) = notes.into_iter().find_map(forbids) {
        return doubted(line);
    }
    match blocking_item(message) {
        Some(line) if role == Role::Judge => doubted(line),
        _ => Ok(()),
    }
}

/// Returns the verdict that all statements of a message agree on, with its notes.
fn verdict_of(role: Role, message: &str, said: &[Statement], lines: &[VerdictLine], vouched: bool) -> Verdict {
    let decision = said.first().map_or(Decision::Submit, |statement| statement.decision);
    // An object has its notes and findings in its own keys.
    if let Some(object) = said.iter().find_map(|statement| statement.object.as_ref()) {
        let mut notes = object.notes.clone().unwrap_or_default();
        let found = object.findings.clone().unwrap_or_default();
        let found = if found.is_empty() { findings(&notes) } else { found };
        let stated: HashSet<usize> = said.iter().flat_map(|one| one.lines.0..one.lines.1).collect();
        let beside = message.lines().enumerate().filter(|(index, _)| !stated.contains(index)).map(|(_, line)| line);
        let beside = beside.collect::<Vec<_>>().join("\n");
        // Prose next to it counts as much as its notes.
        if decision == Decision::Reject && !substance(&beside).blocks.is_empty() {
            notes = format!("{}\n\n{notes}", beside.trim()).trim_end().to_string();
        }
        if let Some(more) = object.more.as_ref().filter(|_| decision == Decision::Reject) {
            notes = format!("{notes}\n\n{more}").trim_start().to_string();
        }
        return Verdict::new(decision, notes, found, ReadFrom::Object);
    }
    let verdicts = lines.iter().filter(|line| line.decision().is_some());
    let verdicts: HashSet<usize> = verdicts.map(|line| line.index).collect();
    let kept =
        message.lines().enumerate().filter(|(index, _)| !verdicts.contains(index)).map(|(_, line)| line.to_string());
    let reasons = said.iter().filter_map(|statement| statement.reason.clone());
    let notes = kept.chain(reasons).collect::<Vec<_>>().join("\n").trim().to_string();
    let mut found = findings(&notes);
    // Unless this is a reject, only what is marked minor is a finding. The rest describes what the judge looked at.
    found.retain(|finding| decision == Decision::Reject || finding.severity == Severity::Minor);
    let reason_only = said.iter().find_map(|statement| statement.reason.as_ref());
    if let Some(reason) = reason_only.filter(|_| role == Role::Judge && decision == Decision::Reject) {
        for finding in findings(&format!("- {reason}")) {
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    Verdict::new(decision, notes, found, if vouched { ReadFrom::Word } else { ReadFrom::Line })
}

fn short(line: &str) -> String {
    line.trim().chars().take(QUOTED).collect()
}

/// Removes colors and a byte order mark, and empties the lines of an HTML comment that begins a line. Every line keeps
/// its number.
fn plain(text: &str) -> String {
    let text = without_colours(text);
    if !text.contains("<!--") {
        return text;
    }
    let mut inside = false;
    let mut lines: Vec<&str> = Vec::new();
    for line in text.split('\n') {
        let begins = !inside && line.trim_start().starts_with("<!--");
        let hidden = inside || begins;
        inside = hidden && !line.contains("-->");
        lines.push(if hidden { "" } else { line });
    }
    lines.join("\n")
}

fn without_colours(text: &str) -> String {
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

/// Reads a result file: a verdict or a handoff.
fn of_file(text: &str) -> Result<Option<Verdict>, Unclear> {
    let bad = |why: String| Unclear::BadFile { why };
    let value: Value = serde_json::from_str(text).map_err(|error| bad(format!("it is not valid JSON: {error}")))?;
    if value.get("tasks").is_some() && value.get("verdict").is_none() {
        return Ok(None);
    }
    let verdict = |decision, notes, findings| Some(Verdict::new(decision, notes, findings, ReadFrom::File));
    match handoff(&value) {
        Some(Ok(Handoff::Built { summary })) => return Ok(verdict(Decision::Submit, summary, Vec::new())),
        Some(Ok(Handoff::Inspected { decision, issues, next_tasks })) => {
            let minor = decision == Decision::Reject && issues.iter().all(|issue| issue.severity == Severity::Minor);
            let mut notes: Vec<String> = issues.iter().map(line_of).collect();
            notes.extend(next_tasks.iter().map(|task| format!("- next: {task}")));
            return Ok(verdict(decision, notes.join("\n"), issues).map(|verdict| Verdict { minor, ..verdict }));
        }
        Some(Ok(Handoff::Failed { error })) => return Err(Unclear::Stopped { error }),
        Some(Err(faults)) => {
            let all: Vec<String> = faults.iter().map(ToString::to_string).collect();
            return Err(bad(all.join("; ")));
        }
        None => {}
    }
    let Some(object) = file_object(text).map_err(bad)? else {
        return Err(bad("it contains no verdict (see schemas/verdict.schema.json)".into()));
    };
    if let Some(line) = object.severe.clone().filter(|_| object.verdict.passes()) {
        return Err(Unclear::Doubted { line });
    }
    let mut notes = object.notes.clone().unwrap_or_default();
    if let Some(line) = forbids(&notes).filter(|_| object.verdict.passes()) {
        return Err(Unclear::Doubted { line: short(line) });
    }
    let found = object.findings.clone().unwrap_or_default();
    let found = if found.is_empty() { findings(&notes) } else { found };
    if let Some(more) = object.more.as_ref().filter(|_| object.verdict == Decision::Reject) {
        notes = format!("{notes}\n\n{more}").trim_start().to_string();
    }
    Ok(verdict(object.verdict, notes, found))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
