//! Tasks: what is to be done, how far it is, and what people and agents have decided about it. A fold over the events of runs and
//! the human's commands; no second engine. Pure.

mod choose;
mod follow;
mod id;

use serde::{Deserialize, Serialize};

pub use choose::{next, waits_for};
pub use follow::{Follower, Resolution, resolve};
pub use id::{BadId, check_id};

/// How far a task is (seed 000, "Status").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nobody has begun.
    #[default]
    Pending,
    /// A worker has begun.
    InProgress,
    /// Its work is to be judged.
    Review,
    /// It is done.
    Completed,
    /// A human has to decide.
    Disputed,
    /// It was rejected too often.
    Failed,
    /// There was nothing to do, or somebody said so.
    Skipped,
}

impl Status {
    /// Every one by its name.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("pending", Self::Pending),
        ("in_progress", Self::InProgress),
        ("review", Self::Review),
        ("completed", Self::Completed),
        ("disputed", Self::Disputed),
        ("failed", Self::Failed),
        ("skipped", Self::Skipped),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, status)| *status == self).map_or("", |(name, _)| name)
    }

    /// The status of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, status)| *status)
    }

    /// Whether no agent works on it any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Disputed | Self::Failed | Self::Skipped)
    }
}

/// A task as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its name.
    pub id: String,
    /// What is to be done, in a line.
    pub title: String,
    /// The file that says it whole, from the root.
    pub spec: Option<String>,
    /// What shows that it is done.
    pub tests: Option<String>,
    /// Tasks that come first.
    pub after: Vec<String>,
    /// When it was added, in UTC (RFC 3339).
    pub added: String,
    /// How far it is.
    pub status: Status,
    /// How often it was rejected since it was added or reset.
    pub rejections: u32,
    /// The words of the last reject.
    pub notes: Option<String>,
    /// Whether a worker was cut off in it.
    pub cut_off: bool,
}

/// One transition, as it is kept for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// From here.
    pub from: Status,
    /// To here; the same for a reject that is noted and does not move it.
    pub to: Status,
    /// Who: an agent's step, `host`, or `human`.
    pub actor: String,
    /// Why, in their words.
    pub notes: String,
    /// Whether it counts as a rejection.
    #[serde(default)]
    pub rejection: bool,
}

/// One row of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// When, in UTC (RFC 3339).
    pub at: String,
    /// In which run; none for a human's command.
    pub run: Option<i64>,
    /// What.
    #[serde(flatten)]
    pub change: Change,
}

/// Who disputes (S0-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisputeKind {
    /// A worker; the task is blocked.
    Coder,
    /// A judge; the task is blocked.
    Reviewer,
    /// A judge that approved and had something to say; blocks nothing.
    Minor,
    /// We, after the last rejection; the task has failed.
    System,
}

impl DisputeKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Coder => "coder",
            Self::Reviewer => "reviewer",
            Self::Minor => "minor",
            Self::System => "system",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Coder, Self::Reviewer, Self::Minor, Self::System].into_iter().find(|kind| kind.name() == name)
    }
}

/// A dispute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dispute {
    /// Its number in the root.
    pub id: i64,
    /// Its task.
    pub task: String,
    /// Who disputes.
    pub kind: DisputeKind,
    /// Why.
    pub reason: String,
    /// Since when, in UTC (RFC 3339).
    pub opened: String,
    /// What a human decided, if one did: `coder`, `reviewer` or `custom`.
    pub decision: Option<String>,
    /// In their words.
    pub notes: Option<String>,
    /// When.
    pub resolved: Option<String>,
}

impl Dispute {
    /// Whether it waits for a human.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.resolved.is_none() && self.kind != DisputeKind::Minor
    }
}

/// What happens to a task all at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Its transitions, in order.
    pub changes: Vec<Change>,
    /// Disputes that are opened, with their reasons.
    pub disputes: Vec<(DisputeKind, String)>,
    /// How a person has resolved the one that was open, and in which words.
    pub resolved: Option<(Resolution, String)>,
}

/// The status and the rejections that an audit trail comes to.
#[must_use]
pub fn replay<'a>(trail: impl IntoIterator<Item = &'a Change>) -> (Status, u32) {
    let mut now = (Status::Pending, 0);
    for change in trail {
        now.0 = change.to;
        // A reset begins anew, and so does what a human has brought back from failure.
        let anew = change.to == Status::Pending || change.from == Status::Failed && change.to != Status::Failed;
        now.1 = if anew { 0 } else { now.1 + u32::from(change.rejection) };
    }
    now
}
