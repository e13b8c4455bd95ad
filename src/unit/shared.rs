//! A task in a hub that several people share: what is to be done, and everything that was decided about it.

use super::TrailEntry;
use crate::task::{Change, Status, Task};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format of shared tasks. It increases when the meaning of a field changes.
pub const SHARED_TASK_FORMAT: u32 = 1;

/// A task as a shared hub has it, as the file `task.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SharedTask {
    /// The version of the format.
    pub format: u32,
    /// The ID of the task.
    pub id: String,
    /// What is to be done, in one line.
    pub title: String,
    /// The path of the file that specifies the task in full, from the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// What shows that it is done, such as a test command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
    /// The IDs of tasks that must be completed first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// When it was added, in UTC (RFC 3339).
    pub added: String,
    /// The commit with the work on it so far, which the hub has, too; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Whether that work does not count any more, because the task was reset.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
    /// Whether a batch works on it now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_work: bool,
    /// The commit with which its work has landed; `None` if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed: Option<String>,
    /// Everything that has happened to it, in order.
    #[serde(default)]
    pub trail: Vec<TrailEntry>,
}

/// Why the text of a shared task cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadSharedTask {
    /// It is not a task.
    #[error("it is not a task: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A newer version of forkhestra wrote it.
    #[error("its format is {0}, and this version knows {SHARED_TASK_FORMAT}")]
    Newer(u32),
}

impl SharedTask {
    /// Returns its text, as `task.json` has it.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Parses its text.
    ///
    /// # Errors
    /// When it is not a task, or a newer version wrote it.
    pub fn parse(text: &str) -> Result<Self, BadSharedTask> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        let format = value["format"].as_u64().and_then(|format| u32::try_from(format).ok()).unwrap_or(0);
        if format > SHARED_TASK_FORMAT {
            return Err(BadSharedTask::Newer(format));
        }
        Ok(serde_json::from_value(value)?)
    }

    /// Returns the task as it is now.
    #[must_use]
    pub fn task(&self) -> Task {
        let mut task = Task {
            id: self.id.clone(),
            title: self.title.clone(),
            spec: self.spec.clone(),
            tests: self.tests.clone(),
            after: self.after.clone(),
            added: self.added.clone(),
            status: Status::Pending,
            rejections: 0,
            sent_back: 0,
            notes: None,
            cut_off: false,
        };
        let trail: Vec<Change> = self.trail.iter().map(|entry| entry.change.clone()).collect();
        task.follow(&trail);
        task
    }

    /// Adds what another trail has and this one has not, and that `counts`, in order at the end.
    pub fn take(&mut self, trail: &[TrailEntry], counts: impl Fn(&TrailEntry) -> bool) {
        let mut known: BTreeMap<_, u32> = BTreeMap::new();
        for entry in &self.trail {
            *known.entry(key(entry)).or_default() += 1;
        }
        let mut new = Vec::new();
        for entry in trail {
            match known.get_mut(&key(entry)) {
                Some(count @ 1..) => *count -= 1,
                _ if counts(entry) => new.push(entry.clone()),
                _ => {}
            }
        }
        self.trail.extend(new);
    }
}

/// Whether two entries are about the same change.
#[must_use]
pub fn is_same_entry(one: &TrailEntry, other: &TrailEntry) -> bool {
    key(one) == key(other)
}

/// What distinguishes an entry from all others. The status before it depends on what else was known.
fn key(entry: &TrailEntry) -> (&str, &'static str, &str, &str) {
    (&entry.at, entry.change.to.name(), &entry.change.actor, &entry.change.notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u32, to: Status, actor: &str) -> TrailEntry {
        let change = Change { from: Status::Pending, to, actor: actor.into(), notes: String::new(), rejection: false };
        TrailEntry { at: format!("2026-01-01T00:00:{at:02}Z"), change, by: None }
    }

    fn with(trail: Vec<TrailEntry>) -> SharedTask {
        let added = "2026-01-01T00:00:00Z".into();
        let (id, title) = ("1".into(), "One".into());
        SharedTask {
            format: SHARED_TASK_FORMAT,
            id,
            title,
            spec: None,
            tests: None,
            after: vec![],
            added,
            work: None,
            discarded: false,
            at_work: false,
            landed: None,
            trail,
        }
    }

    #[test]
    fn what_another_trail_has_in_addition_comes_last_once_and_the_order_of_the_hub_stays() {
        let begun = entry(1, Status::InProgress, "coder");
        let skipped = TrailEntry { by: Some("Ana".into()), ..entry(3, Status::Skipped, "human") };
        let mut shared = with(vec![begun.clone(), skipped.clone()]);
        let journal = [begun, entry(2, Status::Review, "coder"), entry(4, Status::Completed, "host")];
        shared.take(&journal, |entry| entry.change.actor != "host");
        shared.take(&journal, |entry| entry.change.actor != "host");
        let order: Vec<Status> = shared.trail.iter().map(|entry| entry.change.to).collect();
        assert_eq!(order, [Status::InProgress, Status::Skipped, Status::Review]);
        assert!(shared.trail.contains(&skipped));
    }

    #[test]
    fn a_task_of_a_newer_version_is_refused_and_others_survive_as_text() {
        let task = with(vec![entry(1, Status::Completed, "human")]);
        assert_eq!(SharedTask::parse(&task.text()).unwrap(), task);
        let newer = task.text().replace("\"format\": 1", "\"format\": 2");
        assert!(matches!(SharedTask::parse(&newer), Err(BadSharedTask::Newer(2))));
        assert!(matches!(SharedTask::parse("{}"), Err(BadSharedTask::Unreadable(_))));
    }
}
