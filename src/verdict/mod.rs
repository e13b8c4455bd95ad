//! Verdicts: reads each accepted form of a decision by an agent, and brings it into one normal form. Pure: no I/O.

mod calls;
mod doubt;
mod echo;
mod evaluation;
mod finding;
mod findings;
mod handoff;
mod ledger;
mod line;
mod object;
mod preference;
mod proposed_task;
mod read;
mod span;
mod substance;

use crate::chain::Role;
use crate::source::names;
use serde::{Deserialize, Serialize};

use substance::substance;

pub use calls::{RecordedCall, recorded_calls};
pub use echo::without_echo;
pub use evaluation::{BadEvaluation, Evaluation, ScoreMode, evaluation, issue_words, read_evaluation, without_quoted};
pub use finding::{Finding, Severity};
pub use findings::{Answer, answers, findings};
pub use handoff::{HandoffError, handoff};
pub use ledger::{FindingRow, Ledger};
pub use object::{VerdictObject, proposal_of_calls, proposed_tasks};
pub use preference::{Preference, preference};
pub use proposed_task::ProposedTask;
pub use read::{Quotable, VerdictSources, read, stated};

/// A decision about the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// From a worker: the work is ready to be checked and judged.
    Submit,
    /// From a judge: the work is accepted.
    Approve,
    /// From a judge: something has to be fixed.
    Reject,
    /// From a worker or a judge: a human has to decide.
    Dispute,
    /// From a worker or a judge: there is nothing to do.
    Skip,
    /// From a worker: its loop is complete.
    Done,
}

names!(Decision {
    Submit = "submit",
    Approve = "approve",
    Reject = "reject",
    Dispute = "dispute",
    Skip = "skip",
    Done = "done",
});

impl Decision {
    /// Returns the decision that a word means, in upper or lower case. Other forms, such as `approved` and
    /// `changes_requested`, are read as well.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        let word = word.to_lowercase();
        Self::named(&word).or(match word.as_str() {
            "approved" => Some(Self::Approve),
            "rejected" | "changes_requested" => Some(Self::Reject),
            "disputed" => Some(Self::Dispute),
            "skipped" => Some(Self::Skip),
            "submitted" | "review" => Some(Self::Submit),
            _ => None,
        })
    }

    /// Returns whether it lets the work pass: an approval, or a skip by a judge or a worker.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Approve | Self::Skip)
    }

    /// Returns whether an agent with this role may decide this.
    #[must_use]
    pub fn is_open_to(self, role: Role) -> bool {
        match self {
            Self::Submit | Self::Done => role == Role::Worker,
            Self::Approve | Self::Reject => role == Role::Judge,
            Self::Dispute | Self::Skip => true,
        }
    }
}

/// Where a verdict was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ReadFrom {
    /// A call of one of forkhestra's commands, such as `forkhestra approve`.
    Call,
    /// The result file.
    File,
    /// A JSON object in the final message.
    Object,
    /// A line of the final message.
    Line,
    /// A line of the final message that contains the secret word of its attempt.
    Word,
    /// A person's command: `resume --approve`, `resume --reject`.
    Person,
}

/// A verdict in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What was decided.
    pub decision: Decision,
    /// The agent's own text: what was done, or what has to be fixed.
    pub notes: String,
    /// The findings: what has to be fixed, and minor remarks.
    pub findings: Vec<Finding>,
    /// Where the verdict was read.
    pub from: ReadFrom,
    /// For a reject: whether it contains only items marked minor.
    #[serde(default)]
    pub minor: bool,
}

impl Verdict {
    /// Creates a verdict. A reject is minor if its notes and its findings contain only items marked minor.
    #[must_use]
    pub fn new(decision: Decision, notes: String, findings: Vec<Finding>, from: ReadFrom) -> Self {
        let is_minor = |finding: &Finding| finding.severity == Severity::Minor;
        let words = substance(&notes);
        let something = words.minor > 0 || !findings.is_empty();
        let minor =
            decision == Decision::Reject && something && words.blocks.is_empty() && findings.iter().all(is_minor);
        Self { decision, notes, findings, from, minor }
    }

    /// Returns whether it sends the work back. `converged` says that its findings block nothing.
    #[must_use]
    pub fn rejects(&self, converged: bool) -> bool {
        self.decision == Decision::Reject && !converged
    }

    /// Returns whether it counts toward `limits.rejections`. A person's reject does not: it starts the work
    /// again instead.
    #[must_use]
    pub fn is_a_rejection(&self, converged: bool) -> bool {
        self.rejects(converged) && self.from != ReadFrom::Person
    }

    /// Returns its findings. A reject that is not minor always has something that has to be fixed: if none of its
    /// findings is blocking, what has to be fixed is taken from its notes: their items without a place, or else their
    /// last paragraph.
    #[must_use]
    pub fn effective_findings(&self) -> Vec<Finding> {
        let has_blocking = self.findings.iter().any(|finding| finding.severity == Severity::Blocking);
        if self.decision != Decision::Reject || self.minor || has_blocking {
            return self.findings.clone();
        }
        let unplaced = substance(&self.notes).findings();
        if unplaced.is_empty() && self.findings.is_empty() {
            // Only a heading is left, which is better than nothing.
            let title = self.notes.lines().map(|line| line.trim_matches(['#', '*', ' '])).find(|line| !line.is_empty());
            let title = title.unwrap_or("no reason was given").chars().take(200).collect();
            return vec![Finding { title, ..Finding::default() }];
        }
        self.findings.iter().cloned().chain(unplaced).collect()
    }
}

/// Why there is no clear verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Unclear {
    /// No verdict was found.
    Nothing,
    /// Several verdicts were found that contradict each other.
    Several {
        /// The different decisions.
        decisions: Vec<Decision>,
    },
    /// The role of the agent does not allow its decision.
    NotItsRight {
        /// The decision that is not allowed.
        decision: Decision,
        /// For a reject: whether it contains only items marked minor.
        #[serde(default)]
        minor: bool,
    },
    /// A reject does not say what has to be fixed.
    NoNotes,
    /// In a run that plans tasks, the planner proposed none.
    NoTasks {
        /// Why parts of its proposal could not be read, one line each.
        unread: Vec<String>,
    },
    /// The verdict is in a code fence, where it may be a quotation.
    Fenced,
    /// An approval or a skip is in doubt: there is other text on its line, or something takes it back.
    Doubted {
        /// The text that casts doubt on it, usually a line of the message.
        line: String,
    },
    /// A plain program printed a verdict that also appears in what it was given to read.
    Quoted {
        /// The decision that it printed.
        decision: Decision,
    },
    /// A plain program has to confirm its verdict with the secret word of its attempt.
    NoWord {
        /// The decision that it printed without that word.
        decision: Decision,
    },
    /// The program gave an approval or a skip, but failed.
    ExitCode {
        /// The decision that it gave.
        decision: Decision,
        /// Exit code of the program; above 128 for a signal.
        code: i32,
    },
    /// The result file or the verdict object is not valid.
    BadFile {
        /// What is wrong, and where.
        why: String,
    },
    /// The evaluation is not valid.
    BadEvaluation {
        /// What is wrong with it.
        why: String,
    },
    /// The judge changed what it was to judge.
    Edited {
        /// Paths of the first few changed files, relative to the root.
        files: Vec<String>,
    },
    /// The handoff file says that the agent could not do its work.
    Stopped {
        /// The step that failed, if it is named, and the error.
        error: String,
    },
    /// The agent says that it is not done.
    NotDone {
        /// The line that says so.
        line: String,
    },
}

/// What was read of the verdict of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerdictReading {
    /// A verdict that counts.
    Clear(Verdict),
    /// No verdict that counts, for this reason.
    Unclear(Unclear),
}

impl Unclear {
    /// Returns the reason in words, for people and, when the agent is asked again, for the agent.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Nothing => "no verdict was found in its final message".into(),
            Self::Several { decisions } => {
                let names: Vec<&str> = decisions.iter().map(|decision| decision.name()).collect();
                format!("it gave different verdicts: {}", names.join(", "))
            }
            Self::NotItsRight { decision, .. } => {
                format!("its role does not allow `{}`, so a judge or a person has to decide", decision.name())
            }
            Self::NoNotes => "it rejected without saying what has to be fixed".into(),
            Self::NoTasks { unread } if unread.is_empty() => {
                "no task was proposed: its final message has no JSON object with `tasks`".into()
            }
            Self::NoTasks { unread } => format!("no readable task was proposed: {}", unread.join("; ")),
            Self::Fenced => "its verdict is in a code fence, where it may be a quotation".into(),
            Self::Doubted { line } => format!("its verdict is in doubt because of this line: {line}"),
            Self::Quoted { decision } => {
                format!("its line `VERDICT: {}` also appears in what it was given to read", decision.name())
            }
            Self::NoWord { decision } => {
                format!("its `VERDICT: {}` does not contain the secret word of its attempt", decision.name())
            }
            Self::ExitCode { decision, code } => {
                format!("it says {}, but its program failed with exit code {code}", decision.name())
            }
            Self::BadFile { why } => format!("its result cannot be read: {why}"),
            Self::BadEvaluation { why } => format!("its evaluation cannot be read: {}", issue_words(why)),
            Self::Edited { files } => {
                format!(
                    "its verdict does not count, because it changed files that it had to judge: {}",
                    files.join(", ")
                )
            }
            Self::Stopped { error } => format!("its handoff file says that it could not do its work: {error}"),
            Self::NotDone { line } => format!("it says that it is not done: {line}"),
        }
    }
}

#[cfg(test)]
mod corpus_tests;
