//! The first screen of a report: what was asked, how it ended and why, what changed, what it cost, and what to do now.

use crate::engine::{EventKind, RunOutcome, RunState, RunSummary};
use crate::report::closing::used_words;
use crate::report::format::{first_line, local_time, seconds};
use crate::report::page::Document;
use crate::report::reasons::go_on;
use crate::report::text::changes::changes_line;
use crate::source::counted;

/// How much of a prompt is quoted, in characters.
const QUOTED: usize = 600;

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
    pub(in crate::report) changed: String,
    pub(in crate::report) used: String,
    pub(in crate::report) next: String,
    /// Whether the run has ended and is not complete.
    pub(in crate::report) bad: bool,
}

impl OverviewRow {
    pub(in crate::report) fn of(document: &Document<'_>) -> Self {
        let summary = document.summary;
        let weakened = summary.weakened.iter().map(|words| format!("; {words}"));
        Self {
            run: summary.run,
            asked: first_line(&asked(document).unwrap_or_else(|| summary.chain.clone())),
            outcome: document.reason.to_string(),
            changed: document.changes.map_or_else(|| "not known".into(), changes_line) + &weakened.collect::<String>(),
            used: used(summary),
            next: next(document).unwrap_or_default(),
            bad: summary.totals.outcome.is_some_and(|outcome| outcome != RunOutcome::Succeeded),
        }
    }
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
    if let Some(files) = document.changes {
        facts.push(fact("changed", changes_line(files)));
    }
    facts.extend(summary.weakened.iter().map(|words| Fact { name: "weakened", words: words.clone(), bad: true }));
    facts.push(fact("used", used(summary)));
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
    facts.push(fact("time", format!("{} to {}", local_time(&summary.started), local_time(&summary.ended))));
    facts
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

/// Returns how long a run took and what it used.
pub(in crate::report) fn used(summary: &RunSummary) -> String {
    let mut used = vec![counted(summary.totals.all.attempts, "attempt"), seconds(summary.watch.milliseconds())];
    used.extend(used_words(&summary.totals.all));
    used.join(", ")
}

/// Returns what a person can do now.
pub(in crate::report) fn next(document: &Document<'_>) -> Option<String> {
    let Some(outcome) = document.summary.totals.outcome else {
        return (!document.at_work).then(|| document.resume.to_string());
    };
    if RunState::of(Some(outcome), false) == RunState::Complete {
        let changed = document.changes.is_some_and(|files| !files.is_empty());
        return changed.then(|| format!("forkhestra diff {}", document.summary.run));
    }
    go_on(outcome, &document.summary.totals, document.outline, document.resume)
}
