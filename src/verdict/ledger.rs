//! The findings of a run over its rounds: which are new, open, fixed or reopened.

use super::{Answer, Finding, Severity};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The state of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum FindingState {
    /// Named for the first time.
    New,
    /// Named again.
    Open,
    /// No longer named by its judge.
    Fixed,
    /// Named again after it was fixed.
    Reopened,
    /// The worker says why it is not fixed.
    Answered,
}

impl FindingState {
    /// Returns the name that reports and prompts show.
    #[must_use]
    fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Open => "open",
            Self::Fixed => "fixed",
            Self::Reopened => "reopened",
            Self::Answered => "answered",
        }
    }

    fn is_open(self) -> bool {
        matches!(self, Self::New | Self::Open | Self::Reopened)
    }
}

/// A finding with its number and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LedgerEntry {
    /// Its number, from 1, shown as `F1`.
    pub number: u32,
    /// The number of the judge's step that named it.
    pub judge: u32,
    /// The finding as it was last named.
    pub finding: Finding,
    /// Its current state.
    pub state: FindingState,
    /// The worker's answer to it.
    pub answer: Option<String>,
}

/// A finding and its state, as reports show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingRow {
    /// Its number, from 1, shown as `F1`.
    pub number: u32,
    /// The name of its current state.
    pub state: &'static str,
    /// The finding as it was last named.
    pub finding: Finding,
    /// The worker's answer to it.
    pub answer: Option<String>,
}

impl FindingRow {
    /// Returns its file and line, such as `src/a.rs:12`; empty without a file.
    #[must_use]
    pub fn place(&self) -> String {
        let line = self.finding.line.map_or_else(String::new, |line| format!(":{line}"));
        self.finding.file.as_ref().map_or_else(String::new, |file| format!("{file}{line}"))
    }
}

/// After how much text no further findings are listed, in Unicode scalars.
const ROOM: usize = 8_000;

/// How many findings of a run are kept at most.
const MOST: usize = 500;

/// All findings of a run, as a fold over verdicts and answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: Vec<LedgerEntry>,
}

impl Ledger {
    /// Returns all findings, for reports.
    #[must_use]
    pub fn rows(&self) -> Vec<FindingRow> {
        let row = |entry: &LedgerEntry| FindingRow {
            number: entry.number,
            state: entry.state.name(),
            finding: entry.finding.clone(),
            answer: entry.answer.clone(),
        };
        self.entries.iter().map(row).collect()
    }

    /// Records what a judge found. What it named earlier and no longer names is fixed.
    pub fn judged(&mut self, judge: u32, findings: &[Finding]) {
        let mut named = Vec::new();
        for finding in findings {
            let known = self.entries.iter_mut().find(|entry| entry.judge == judge && same(entry, finding));
            if let Some(entry) = known {
                entry.state =
                    if entry.state == FindingState::Fixed { FindingState::Reopened } else { FindingState::Open };
                // A mere `F2: still open` says less than what is recorded.
                if finding.file.is_some() || entry.finding.file.is_none() {
                    entry.finding = Finding { rule: entry.finding.rule.clone(), ..finding.clone() };
                }
                let again = named.contains(&entry.number);
                // If one verdict names it twice, the higher severity counts.
                if !(again && entry.finding.severity == Severity::Blocking) {
                    entry.finding.severity = finding.severity;
                }
                named.push(entry.number);
            } else if self.entries.len() < MOST {
                let number = u32::try_from(self.entries.len()).unwrap_or(u32::MAX).saturating_add(1);
                let rule = finding.rule.clone().filter(|rule| number_of(rule).is_none());
                let finding = Finding { rule, ..finding.clone() };
                self.entries.push(LedgerEntry { number, judge, finding, state: FindingState::New, answer: None });
                named.push(number);
            }
        }
        for entry in self.entries.iter_mut().filter(|entry| entry.judge == judge) {
            if !named.contains(&entry.number) && entry.state.is_open() {
                entry.state = FindingState::Fixed;
            }
        }
    }

    /// Records a worker's answers to findings.
    pub fn answered(&mut self, answers: &[Answer]) {
        for answer in answers {
            let entry = self.entries.iter_mut().find(|entry| entry.number == answer.finding && entry.state.is_open());
            if let Some(entry) = entry {
                entry.answer = Some(answer.words.clone());
                if !answer.fixed {
                    entry.state = FindingState::Answered;
                }
            }
        }
    }

    /// Returns one line for each finding, for prompts: fixed ones last, and as many as fit.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let open = self.entries.iter().filter(|entry| entry.state != FindingState::Fixed);
        let fixed = self.entries.iter().filter(|entry| entry.state == FindingState::Fixed);
        for (index, entry) in open.chain(fixed).enumerate() {
            if text.chars().count() > ROOM {
                let _ = writeln!(text, "- … and {} more", self.entries.len() - index);
                break;
            }
            let finding = &entry.finding;
            let minor = if finding.severity == Severity::Minor { ", minor" } else { "" };
            let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
            let place = finding.file.as_ref().map_or_else(String::new, |file| format!(" {file}{line}"));
            let answer = entry.answer.as_ref().map_or_else(String::new, |answer| format!(" (the worker: {answer})"));
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "- F{} ({}{minor}){place}: {}{answer}",
                entry.number,
                entry.state.name(),
                finding.title.lines().next().unwrap_or_default()
            );
        }
        text
    }
}

/// Returns whether a finding is a known one: by its number, or by its file and its rule or title.
fn same(entry: &LedgerEntry, finding: &Finding) -> bool {
    if let Some(number) = finding.rule.as_deref().and_then(number_of) {
        return number == entry.number;
    }
    if entry.finding.file != finding.file {
        return false;
    }
    let rule = entry.finding.rule.is_some() && entry.finding.rule == finding.rule;
    key(&entry.finding.title) == key(&finding.title) || rule && entry.finding.line == finding.line
}

fn number_of(rule: &str) -> Option<u32> {
    rule.strip_prefix('F')?.parse().ok()
}

/// Returns the words of a title, whatever is between them.
fn key(title: &str) -> Vec<String> {
    title.split(|next: char| !next.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::findings;

    #[test]
    fn a_finding_keeps_its_number_over_the_rounds_and_its_state_says_what_became_of_it() {
        let mut ledger = Ledger::default();
        ledger.judged(4, &findings("- a.rs:1: sum is wrong\n- b.rs:2: leaks\n- minor: c.rs: a name"));
        ledger.answered(&[
            Answer { finding: 1, fixed: true, words: "fixed".into() },
            Answer { finding: 2, fixed: false, words: "not fixed, because it must".into() },
        ]);
        ledger.judged(4, &findings("- a.rs:9: Sum is *wrong*!\n- minor: c.rs: a name"));
        ledger.judged(5, &[]);
        assert_eq!(
            ledger.text(),
            "- F1 (open) a.rs:9: Sum is *wrong*! (the worker: fixed)\n\
             - F2 (answered) b.rs:2: leaks (the worker: not fixed, because it must)\n\
             - F3 (open, minor) c.rs: a name\n"
        );
        ledger.judged(4, &findings("- minor: c.rs: a name"));
        ledger.judged(4, &findings("- F1: it is back"));
        assert!(ledger.text().starts_with("- F1 (reopened)"), "{}", ledger.text());
    }
}
