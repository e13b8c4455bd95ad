//! What an agent decided: every accepted form becomes one normal form. Pure.

mod echo;
mod evaluation;
mod findings;
mod handoff;
mod ledger;
mod line;
mod object;
mod read;

use crate::chain::Role;
use serde::{Deserialize, Serialize};

pub use echo::without_echo;
pub use evaluation::{BadEvaluation, Evaluation, ScoreMode, evaluation, read_evaluation, without_quoted};
pub use findings::{Answer, answers, findings};
pub use handoff::{HandoffFault, handoff};
pub use ledger::{FindingRow, Ledger};
pub use line::{Word, decision_lines};
pub use object::{Task, VerdictObject, proposed_tasks};
pub use read::{Heard, note_call, read};

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// A worker: the work is ready to be checked and judged.
    Submit,
    /// A judge: accepted.
    Approve,
    /// A judge: to be mended.
    Reject,
    /// Anyone: a human has to decide.
    Dispute,
    /// Anyone: there is nothing to do.
    Skip,
    /// A worker: its loop is done.
    Done,
}

impl Decision {
    /// Every one by its name.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("submit", Self::Submit),
        ("approve", Self::Approve),
        ("reject", Self::Reject),
        ("dispute", Self::Dispute),
        ("skip", Self::Skip),
        ("done", Self::Done),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, decision)| *decision == self).map_or("", |(name, _)| name)
    }

    /// The decision that a word means, in any case: `approved` and `changes_requested` are read as well.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        let exact = Self::NAMES.iter().find(|(name, _)| *name == word).map(|(_, decision)| *decision);
        exact.or(match word.as_str() {
            "approved" => Some(Self::Approve),
            "rejected" | "changes_requested" => Some(Self::Reject),
            "disputed" => Some(Self::Dispute),
            "skipped" => Some(Self::Skip),
            "submitted" | "review" => Some(Self::Submit),
            _ => None,
        })
    }

    /// Whether one of this role may decide so (DESIGN.md, "The language").
    #[must_use]
    pub fn is_open_to(self, role: Role) -> bool {
        match self {
            Self::Submit | Self::Done => role == Role::Worker,
            Self::Approve | Self::Reject => role == Role::Judge,
            Self::Dispute | Self::Skip => true,
        }
    }
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It has to be mended.
    #[default]
    #[serde(alias = "blocker", alias = "major", alias = "critical", alias = "high", alias = "medium")]
    Blocking,
    /// It is only said.
    #[serde(alias = "nit", alias = "low", alias = "info")]
    Minor,
}

/// One thing that a judge found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What happens, in a line.
    #[serde(alias = "description")]
    pub title: String,
    /// The file, from the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The rule that it breaks, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How much it weighs.
    #[serde(default)]
    pub severity: Severity,
}

/// Where a verdict was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReadFrom {
    /// A call of one of our verbs.
    Call,
    /// The result file.
    File,
    /// A JSON object in the final message.
    Object,
    /// A line of the final message.
    Line,
}

/// The normal form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What was decided.
    pub decision: Decision,
    /// In the agent's words.
    pub notes: String,
    /// What it found.
    pub findings: Vec<Finding>,
    /// Where it was read.
    pub from: ReadFrom,
}

impl Verdict {
    /// Its findings; words without a place are one of their own.
    #[must_use]
    pub fn weighed(&self) -> Vec<Finding> {
        if self.decision != Decision::Reject || !self.findings.is_empty() {
            return self.findings.clone();
        }
        // What a program logs comes first, what it concludes comes last.
        let paragraphs = self.notes.trim_end().rsplit("\n\n").next().unwrap_or_default();
        let first = paragraphs.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let title: String = first.trim_matches(['#', '*', ' ']).chars().take(200).collect();
        vec![Finding { title, ..Finding::default() }]
    }
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase")]
pub enum Unclear {
    /// Nothing that could be read as one.
    Nothing,
    /// Different ones.
    Several {
        /// Them.
        decisions: Vec<Decision>,
    },
    /// One that its role may not give.
    NotItsRight {
        /// It.
        decision: Decision,
    },
    /// A reject that does not say what is to be mended.
    NoNotes,
    /// It stands in a code fence, where it may be a quotation.
    Fenced,
    /// A result file that does not hold what it should.
    BadFile {
        /// What is wrong, and where.
        why: String,
    },
    /// An evaluation that is none.
    BadEvaluation {
        /// What is wrong with it.
        why: String,
    },
    /// A judge that changed what it was to judge.
    Edited {
        /// Files, from the root; the first few.
        files: Vec<String>,
    },
    /// Its handoff file says that it could not do its work.
    Stopped {
        /// Where and why.
        error: String,
    },
    /// It says itself that it is not done.
    NotDone {
        /// Its line.
        line: String,
    },
}

/// What an attempt decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// This.
    Clear(Verdict),
    /// Nothing that counts.
    Unclear(Unclear),
}

impl Unclear {
    /// Why, as it is said to people and, when it is asked again, to the agent.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => "no verdict was found in its final message".into(),
            Self::Several { decisions } => {
                let names: Vec<&str> = decisions.iter().map(|decision| decision.name()).collect();
                format!("it gave different verdicts: {}", names.join(", "))
            }
            Self::NotItsRight { decision } => format!("it may not {}, so that does not count", decision.name()),
            Self::NoNotes => "it rejected without saying what is to be mended".into(),
            Self::Fenced => "its verdict stands in a code fence, where it may be a quotation".into(),
            Self::BadFile { why } => format!("its result cannot be read: {why}"),
            Self::BadEvaluation { why } => format!("its evaluation cannot be read: {why}"),
            Self::Edited { files } => {
                format!("it changed what it was to judge, so its verdict does not count: {}", files.join(", "))
            }
            Self::Stopped { error } => format!("its handoff file says that it could not do its work: {error}"),
            Self::NotDone { line } => format!("it says itself that it is not done: {line}"),
        }
    }
}
