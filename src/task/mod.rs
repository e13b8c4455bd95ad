//! Tasks: what is to be done, its status, and what people and agents have decided about it. A fold over the events of
//! runs and the human's commands, not a second engine. Pure.

mod choose;
mod follow;
mod id;

use crate::source::names;
use serde::{Deserialize, Serialize};

pub use choose::{next, waits_for};
pub use follow::{Follower, Resolution, resolve};
pub use id::{BadId, check_id};

/// The status of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The work has not begun.
    #[default]
    Pending,
    /// A worker has begun.
    InProgress,
    /// The work is to be judged.
    Review,
    /// The task is done.
    Completed,
    /// A human has to decide.
    Disputed,
    /// The work was rejected too often.
    Failed,
    /// There was nothing to do, or an agent or human skipped it.
    Skipped,
}

names!(Status {
    Pending = "pending",
    InProgress = "in_progress",
    Review = "review",
    Completed = "completed",
    Disputed = "disputed",
    Failed = "failed",
    Skipped = "skipped",
});

impl Status {
    /// Whether agents no longer work on a task with this status.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Disputed | Self::Failed | Self::Skipped)
    }
}

/// A task as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// The ID of the task.
    pub id: String,
    /// What is to be done, in one line.
    pub title: String,
    /// The path of the file that specifies the task in full, from the root.
    pub spec: Option<String>,
    /// What shows that it is done, such as a test command.
    pub tests: Option<String>,
    /// The IDs of tasks that must be completed first.
    pub after: Vec<String>,
    /// When it was added, in UTC (RFC 3339).
    pub added: String,
    /// The current status.
    pub status: Status,
    /// How often it was rejected since it was added or reset.
    pub rejections: u32,
    /// How many of these rejections were by forkhestra, because the work could not land.
    #[serde(skip_serializing_if = "is_zero")]
    pub sent_back: u32,
    /// The notes of the last rejection or human decision.
    pub notes: Option<String>,
    /// Whether a worker was interrupted while it worked on the task.
    pub cut_off: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Task {
    /// Sets what follows from the changes of its status: all of them since it was added, in order.
    pub fn follow(&mut self, trail: &[Change]) {
        (self.status, self.rejections) = replay(trail);
        let since = trail.iter().rposition(|change| change.to == Status::Pending).map_or(0, |at| at + 1);
        let by_host = trail[since..].iter().filter(|change| change.rejection && change.actor == "host");
        self.sent_back = u32::try_from(by_host.count()).unwrap_or(u32::MAX).min(self.rejections);
        let told = |change: &&Change| change.rejection || change.actor == "human" && !change.notes.is_empty();
        self.notes = trail.iter().rev().find(told).map(|change| change.notes.clone());
        let by_worker = |change: &Change| !change.rejection && change.actor != "host" && change.actor != "human";
        self.cut_off = self.status == Status::InProgress && trail.last().is_some_and(by_worker);
    }
}

/// One change of status, as it is stored permanently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The status before.
    pub from: Status,
    /// The status after; the same for a rejection that is recorded and does not change it.
    pub to: Status,
    /// Who made the change: an agent's step, `host` or `human`.
    pub actor: String,
    /// The reason, in the words of the agent or human.
    pub notes: String,
    /// Whether it counts as a rejection.
    #[serde(default)]
    pub rejection: bool,
}

/// One row of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// When it happened, in UTC (RFC 3339).
    pub at: String,
    /// The number of the run; none for a human's command.
    pub run: Option<i64>,
    /// The change that was made.
    #[serde(flatten)]
    pub change: Change,
}

/// Who opened a dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DisputeKind {
    /// A worker; the task is blocked.
    Coder,
    /// A judge; the task is blocked.
    Reviewer,
    /// A judge that approved with comments; nothing is blocked.
    Minor,
    /// forkhestra, after the last allowed rejection; the task has failed.
    System,
}

names!(DisputeKind { Coder = "coder", Reviewer = "reviewer", Minor = "minor", System = "system" });

/// A dispute about a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Dispute {
    /// The number of the dispute in this root.
    pub id: i64,
    /// The ID of the task.
    pub task: String,
    /// Who opened the dispute.
    pub kind: DisputeKind,
    /// The reason for the dispute.
    pub reason: String,
    /// When it was opened, in UTC (RFC 3339).
    pub opened: String,
    /// What a human decided, if one did: `coder`, `reviewer` or `custom`.
    pub decision: Option<String>,
    /// The human's notes on the decision.
    pub notes: Option<String>,
    /// When it was resolved, in UTC (RFC 3339).
    pub resolved: Option<String>,
}

impl Dispute {
    /// Whether it is waiting for a human.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.resolved.is_none() && self.kind != DisputeKind::Minor
    }
}

/// What one event or command changes about a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The changes of status, in order.
    pub changes: Vec<Change>,
    /// Disputes that are opened, with their reasons.
    pub disputes: Vec<(DisputeKind, String)>,
    /// How a human resolved the open dispute, and the notes.
    pub resolved: Option<(Resolution, String)>,
}

/// Returns the status and the number of rejections that follow from an audit trail.
#[must_use]
pub fn replay<'a>(trail: impl IntoIterator<Item = &'a Change>) -> (Status, u32) {
    let mut now = (Status::Pending, 0);
    for change in trail {
        now.0 = change.to;
        // A reset starts the count again, and so does a human who brings a task back from failure.
        let anew = change.to == Status::Pending || change.from == Status::Failed && change.to != Status::Failed;
        now.1 = if anew { 0 } else { now.1 + u32::from(change.rejection) };
    }
    now
}
