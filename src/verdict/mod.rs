//! What an agent decided: every accepted form becomes one normal form. Pure.

mod doubt;
mod echo;
mod evaluation;
mod findings;
mod handoff;
mod ledger;
mod line;
mod object;
mod read;
mod span;
mod substance;

use crate::chain::Role;
use serde::{Deserialize, Serialize};

use substance::substance;

pub use echo::without_echo;
pub use evaluation::{BadEvaluation, Evaluation, ScoreMode, evaluation, read_evaluation, without_quoted};
pub use findings::{Answer, answers, findings};
pub use handoff::{HandoffFault, handoff};
pub use ledger::{FindingRow, Ledger};
pub use object::{ProposedTask, VerdictObject, proposed_tasks};
pub use read::{Heard, Quotable, note_call, read, stated};

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

    /// Whether it lets the work pass: an approval, and a judge's or a worker's skip.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Approve | Self::Skip)
    }

    /// Whether one of this role may decide so.
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
    /// A line of the final message that bears the word of its attempt, which nobody else knows.
    Word,
    /// A person's command: `resume --approve`, `resume --reject`.
    Person,
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
    /// Of a reject: whether nothing but items marked minor stands beside it.
    #[serde(default)]
    pub minor: bool,
}

impl Verdict {
    /// A verdict of these words. Of a reject the findings that they name are looked at, and whether all of it is minor.
    #[must_use]
    pub fn new(decision: Decision, notes: String, findings: Vec<Finding>, from: ReadFrom) -> Self {
        let is_minor = |finding: &Finding| finding.severity == Severity::Minor;
        let words = substance(&notes);
        let something = words.minor > 0 || !findings.is_empty();
        let minor =
            decision == Decision::Reject && something && words.blocks.is_empty() && findings.iter().all(is_minor);
        Self { decision, notes, findings, from, minor }
    }

    /// Whether it sends the work back. `converged` says that its findings block nothing.
    #[must_use]
    pub fn rejects(&self, converged: bool) -> bool {
        self.decision == Decision::Reject && !converged
    }

    /// Whether it counts for `limits.rejections`: a person's reject begins the work anew instead.
    #[must_use]
    pub fn is_a_rejection(&self, converged: bool) -> bool {
        self.rejects(converged) && self.from != ReadFrom::Person
    }

    /// Its findings. Of a full reject what has to be fixed is among them: items without a place, or its last words.
    #[must_use]
    pub fn weighed(&self) -> Vec<Finding> {
        let has_blocking = self.findings.iter().any(|finding| finding.severity == Severity::Blocking);
        if self.decision != Decision::Reject || self.minor || has_blocking {
            return self.findings.clone();
        }
        let unplaced = substance(&self.notes).findings();
        if unplaced.is_empty() && self.findings.is_empty() {
            // Only a heading: better than nothing.
            let title = self.notes.lines().map(|line| line.trim_matches(['#', '*', ' '])).find(|line| !line.is_empty());
            let title = title.unwrap_or("no reason was named").chars().take(200).collect();
            return vec![Finding { title, ..Finding::default() }];
        }
        self.findings.iter().cloned().chain(unplaced).collect()
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
        /// Of a reject: whether nothing but items marked minor stands beside it.
        #[serde(default)]
        minor: bool,
    },
    /// A reject that does not say what is to be mended.
    NoNotes,
    /// A planner that proposes no task, where the plan is made for it.
    NoTasks {
        /// What of its proposal could not be read.
        unread: Vec<String>,
    },
    /// It stands in a code fence, where it may be a quotation.
    Fenced,
    /// An approval or a skip that is not certain: other words stand on its line, or take it back.
    Doubted {
        /// The line that makes it uncertain.
        line: String,
    },
    /// A plain program printed a line that also stands in what it was given to read.
    Quoted {
        /// What the line says.
        decision: Decision,
    },
    /// A plain program has to vouch for it with the word of its attempt.
    NoWord {
        /// What it said.
        decision: Decision,
    },
    /// An approval or a skip of a program that failed.
    ExitCode {
        /// What it said.
        decision: Decision,
        /// Its exit code; above 128 for a signal.
        code: i32,
    },
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
            Self::NotItsRight { decision, .. } => format!("it may not {}, so that does not count", decision.name()),
            Self::NoNotes => "it rejected without saying what has to be fixed".into(),
            Self::NoTasks { unread } if unread.is_empty() => {
                "no task was proposed: its final message has no JSON object with `tasks`".into()
            }
            Self::NoTasks { unread } => format!("no task was proposed that can be read: {}", unread.join("; ")),
            Self::Fenced => "its verdict stands in a code fence, where it may be a quotation".into(),
            Self::Doubted { line } => format!("its verdict is not certain, because of this line: {line}"),
            Self::Quoted { decision } => {
                format!("its line `VERDICT: {}` also stands in what it was given to read", decision.name())
            }
            Self::NoWord { decision } => {
                format!("its `VERDICT: {}` does not name the word of its attempt", decision.name())
            }
            Self::ExitCode { decision, code } => {
                format!("it says {}, and its program failed with exit code {code}", decision.name())
            }
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

#[cfg(test)]
mod corpus_tests;
