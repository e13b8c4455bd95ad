//! The first screen of a report: what was asked, how it ended and why, what changed, what it cost, and what to do now.

use crate::chain::Role;
use crate::engine::{AttemptOutcome, Containment, Event, EventKind, RunOutcome, RunState, RunSummary, Sum};
use crate::report::closing::used_words;
use crate::report::format::{first_line, fitted, local_time, seconds};
use crate::report::page::Document;
use crate::report::page::backends::backend_facts;
use crate::report::page::timeline::first_errors;
use crate::report::reasons::go_on;
use crate::report::text::changes::changes_line;
use crate::report::text::history::state_label;
use crate::report::verdicts::finding_line;
use crate::source::counted;
use crate::verdict::{Decision, ReadFrom};

/// How much of a prompt is quoted, in characters.
const QUOTED: usize = 600;

/// How much of a cause fits into a table, in columns.
const CAUSE: usize = 160;

/// A line of the first screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct Fact {
    pub(in crate::report) name: &'static str,
    pub(in crate::report) words: String,
    /// Whether it needs attention.
    pub(in crate::report) bad: bool,
}

/// A run in one line, for a page with several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct OverviewRow {
    pub(in crate::report) run: i64,
    pub(in crate::report) asked: String,
    pub(in crate::report) outcome: String,
    /// What explains the outcome, in the words of an agent or a check.
    pub(in crate::report) cause: Option<String>,
    pub(in crate::report) changed: String,
    pub(in crate::report) used: String,
    /// How tests were weakened, in one line each.
    pub(in crate::report) weakened: Vec<String>,
    pub(in crate::report) next: String,
    /// Whether the run has ended and is not complete.
    pub(in crate::report) bad: bool,
}

impl OverviewRow {
    fn of(document: &Document<'_>) -> Self {
        let summary = document.summary;
        Self {
            run: summary.run,
            asked: first_line(&asked(document).unwrap_or_else(|| match document.part {
                Some(_) => format!("verify: {}", summary.chain),
                None => summary.chain.clone(),
            })),
            outcome: document.reason.to_string(),
            cause: cause(document).or_else(|| verified(document)).map(|words| fitted(&words, CAUSE)),
            changed: document.changes.map_or_else(|| "not known".into(), changes_line),
            weakened: summary.weakened.clone(),
            used: used(summary),
            next: next(document).unwrap_or_default(),
            bad: summary.totals.outcome.is_some_and(|outcome| outcome != RunOutcome::Succeeded),
        }
    }
}

/// Returns the runs of a page, line by line: first those that are waiting for a person, then those that are not
/// complete.
pub(in crate::report) fn overview_rows(documents: &[Document<'_>]) -> Vec<OverviewRow> {
    let mut sorted: Vec<&Document<'_>> = documents.iter().collect();
    sorted.sort_by_key(|document| {
        let state = RunState::of(document.summary.totals.outcome, document.at_work);
        (!state.waits(), state == RunState::Complete)
    });
    sorted.into_iter().map(OverviewRow::of).collect()
}

/// Returns the first screen of a run, line by line.
pub(in crate::report) fn overview(document: &Document<'_>) -> Vec<Fact> {
    let summary = document.summary;
    let complete = summary.totals.outcome == Some(RunOutcome::Succeeded);
    let ended = summary.totals.outcome.is_some();
    let fact = |name, words: String| Fact { name, words, bad: false };
    let mut facts = Vec::new();
    facts.extend(asked(document).map(|words| fact("asked", words)));
    facts.push(Fact { name: "outcome", words: document.reason.to_string(), bad: ended && !complete });
    facts.extend(cause(document).map(|words| fact("why", words)));
    facts.extend(verified(document).map(|words| fact("verified", words)));
    if let Some(files) = document.changes {
        facts.push(fact("changed", changes_line(files)));
    }
    facts.extend(summary.weakened.iter().map(|words| Fact { name: "weakened", words: words.clone(), bad: true }));
    facts.push(fact("used", used(summary)));
    facts.extend(backend_facts(document).into_iter().map(|(name, words)| fact(name, words)));
    if summary.totals.rejections > 0 {
        let rework = &summary.totals.rework;
        let words = format!(
            "{}; then {}, {}",
            counted(summary.totals.rejections, "rejection"),
            counted(rework.attempts, "attempt"),
            seconds(rework.took_ms)
        );
        facts.push(fact("rework", words));
    }
    facts.extend(next(document).map(|words| fact("next", words)));
    facts.push(fact("chain", summary.chain.clone()));
    facts.extend(weaker(document).map(|words| fact("processes", words.into())));
    facts.push(fact("time", format!("{} to {}", local_time(&summary.started), local_time(&summary.ended))));
    facts
}

/// Returns what the system could not guarantee, if it was less than usual.
fn weaker(document: &Document<'_>) -> Option<&'static str> {
    let began = |event: &Event| matches!(event.event, EventKind::RunStarted { containment: Containment::Lineage, .. });
    document.events.iter().any(began).then_some(
        "this system has no way to keep all processes of an agent; one that detached itself may have been missed",
    )
}

/// Returns what was asked: the task, or the prompt that was given; `None` if the chain has its own prompts.
pub(in crate::report) fn asked(document: &Document<'_>) -> Option<String> {
    let task = document.events.iter().find_map(|event| match &event.event {
        EventKind::RunStarted { task, .. } => task.as_ref().map(|task| format!("task {}: {}", task.id, task.title)),
        _ => None,
    });
    let words = task.or_else(|| document.summary.prompt.clone())?;
    let words = words.trim();
    Some(match words.char_indices().nth(QUOTED) {
        Some((cut, _)) => format!("{}…", words[..cut].trim_end()),
        None => words.to_string(),
    })
}

/// Returns what explains why a run is not complete, in the words of the judge that rejected the work, the program that
/// failed, or the check.
fn cause(document: &Document<'_>) -> Option<String> {
    let told = document.summary.totals.outcome?;
    if matches!(told, RunOutcome::Succeeded | RunOutcome::Interrupted { .. } | RunOutcome::LimitReached { .. }) {
        return None;
    }
    document.events.iter().rev().find_map(|event| match &event.event {
        EventKind::VerdictGiven { at, verdict, .. } => {
            let finding = verdict.effective_findings().first().map(finding_line);
            let words = finding.unwrap_or_else(|| first_line(verdict.notes.trim()));
            Some((!words.is_empty()).then(|| format!("{}: {words}", at.name)))
        }
        EventKind::AttemptFinished { at, finished, .. } => {
            let error = finished.error.as_deref().map(first_line);
            let paper = document.papers.iter().find(|paper| (paper.at.step, paper.at.attempt) == (at.step, at.attempt));
            let is_check = document.outline.step(at.step).is_some_and(|step| step.check.is_some());
            let words = error.or_else(|| first_errors(paper.filter(|_| is_check).as_ref()).next());
            let root = format!("{}/", document.summary.root);
            let words = words.map(|words| words.replace(&root, ""));
            Some(words.map(|words| format!("{}: {words}", at.name)))
        }
        _ => None,
    })?
}

/// Returns what verified the work of a complete run: the checks that passed, and the judges that approved.
fn verified(document: &Document<'_>) -> Option<String> {
    document.summary.totals.outcome.filter(|outcome| *outcome == RunOutcome::Succeeded)?;
    // An evaluation has cases instead.
    document.events.iter().find(|event| matches!(event.event, EventKind::RunStarted { .. }))?;
    let mut words: Vec<(u32, String)> = Vec::new();
    let mut note = |step: u32, word: Option<String>| {
        words.retain(|(known, _)| *known != step);
        words.extend(word.map(|word| (step, word)));
    };
    for event in document.events {
        match &event.event {
            EventKind::AttemptFinished { at, outcome, .. }
                if document.outline.step(at.step).is_some_and(|step| step.check.is_some()) =>
            {
                note(at.step, (*outcome == AttemptOutcome::Completed).then(|| format!("{} passed", at.name)));
            }
            EventKind::VerdictGiven { at, verdict, .. } if verdict.from == ReadFrom::Person => {
                note(at.step, (verdict.decision == Decision::Approve).then(|| "a person approved".into()));
            }
            EventKind::VerdictGiven { at, verdict, .. }
                if document.outline.step(at.step).is_some_and(|step| step.role == Some(Role::Judge)) =>
            {
                note(at.step, (verdict.decision == Decision::Approve).then(|| format!("{} approved", at.name)));
            }
            _ => {}
        }
    }
    let words: Vec<String> = words.into_iter().map(|(_, word)| word).collect();
    Some(if words.is_empty() { "no check, no judge".into() } else { words.join(", ") })
}

/// Returns the sum of several runs in one line: how many ended how, and what they used.
pub(in crate::report) fn sum_line(documents: &[Document<'_>]) -> String {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for document in documents {
        let label = state_label(RunState::of(document.summary.totals.outcome, document.at_work));
        match counts.iter_mut().find(|(known, _)| *known == label) {
            Some((_, count)) => *count += 1,
            None => counts.push((label, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut used = Sum::default();
    for document in documents {
        used.join(&document.summary.totals.all);
    }
    let counts: Vec<String> = counts.into_iter().map(|(label, count)| format!("{count} {label}")).collect();
    let used: Vec<String> = std::iter::once(counted(used.attempts, "attempt")).chain(used_words(&used)).collect();
    let order = if counts.len() > 1 { " Those that need you come first." } else { "" };
    let mut roots: Vec<&str> = documents.iter().map(|document| document.summary.root.as_str()).collect();
    roots.dedup();
    let place = if let [root] = roots[..] { format!(" Their work is in {root}.") } else { String::new() };
    format!("{} ({}).{order}{place}", counts.join(", "), used.join(", "))
}

/// Returns how long a run took and what it used.
pub(in crate::report) fn used(summary: &RunSummary) -> String {
    let mut used = vec![counted(summary.totals.all.attempts, "attempt"), seconds(summary.watch.milliseconds())];
    used.extend(used_words(&summary.totals.all));
    used.join(", ")
}

/// Returns what a person can do now.
pub(in crate::report) fn next(document: &Document<'_>) -> Option<String> {
    let Some(outcome) = document.summary.totals.outcome else {
        return (!document.at_work && document.part.is_none()).then(|| document.resume.to_string());
    };
    if RunState::of(Some(outcome), false) == RunState::Complete {
        let changed = document.changes.is_some_and(|files| !files.is_empty());
        return changed.then(|| format!("forkhestra diff {}", document.summary.run));
    }
    match document.part {
        Some(next) => Some(next.to_string()).filter(|next| !next.is_empty()),
        None => go_on(outcome, &document.summary.totals, document.outline, document.resume),
    }
}
