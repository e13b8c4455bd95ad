//! Everything that a worker needs to do a unit of work. A bundle holds sources and no plan: the worker plans in its own
//! workspace.

use super::needs::Needs;
use crate::plan::{Outline, Overrides};
use crate::source::sha256;
use crate::task::Change;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// The version of the format of bundles. It increases when the meaning of a field changes.
pub const BUNDLE_FORMAT: u32 = 1;

/// Everything that a worker needs to do a unit of work, as the file `bundle.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// The version of the format.
    pub format: u32,
    /// The version of forkhestra that made the bundle.
    pub forkhestra: String,
    /// The name of the unit.
    pub unit: String,
    /// The name of the workspace. The units of a task use the same one.
    pub workspace: String,
    /// The project's directory, relative to the top of the repository; empty if they are the same.
    pub folder: String,
    /// The commit that is checked out, and that the work is compared with.
    pub base: String,
    /// The commit whose tree the workspace starts with. It differs from `base` if work is continued.
    pub start: String,
    /// The name of the chain in the config; `None` if `steps` is the chain.
    pub chain: Option<String>,
    /// The chain in the chain language, if it has no name.
    pub steps: Option<String>,
    /// The variables of the chain, as `NAME=value`.
    pub vars: Vec<String>,
    /// The options of the run.
    pub overrides: Overrides,
    /// The plan that was made for the unit; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<BundledPlan>,
    /// The program and the arguments that prepare the workspace; empty for none.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Ignored files that the workspace gets a copy of; paths from the project's directory.
    #[serde(default)]
    pub copy: Vec<String>,
    /// Ignored directories that the workspace gets a link to; paths from the project's directory.
    #[serde(default)]
    pub share: Vec<String>,
    /// Whether the workspace must be a fresh one, without what earlier units have built in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean: bool,
    /// How many ports the workspace gets; 0 for none.
    #[serde(default)]
    pub ports: u16,
    /// What the machine must have in addition.
    #[serde(default, skip_serializing_if = "Needs::is_empty")]
    pub needs: Needs,
    /// The task that the unit works on; `None` for a verification and for a choice.
    pub task: Option<BundledTask>,
    /// The number of this try at the task, if several are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub try_number: Option<u32>,
    /// The choice that the unit makes; `None` for other units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<BundledChoice>,
    /// The part of an evaluation that the unit does; `None` for other units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<BundledSlice>,
}

/// Some cases of a suite, whose answers are wanted. Paths are relative to the project's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundledSlice {
    /// The path of the suite.
    pub suite: String,
    /// The directory with prompts of the user's own, if there is one.
    pub prompts: Option<String>,
    /// The IDs of the cases.
    pub cases: Vec<String>,
    /// How often each case is run, if not as the suite says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<NonZeroU32>,
}

/// The plan of a unit as it was made on the machine of its batch. A worker on another machine must come to the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundledPlan {
    /// The digest of the project's config; `None` if it has none. With another config, another plan is right.
    pub config: Option<String>,
    /// The plan in brief, as it holds on any machine.
    pub outline: Outline,
}

/// A choice among several tries at a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundledChoice {
    /// The name of the judge.
    pub judge: String,
    /// What it is asked.
    pub prompt: String,
}

/// A task with its history, as the worker gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BundledTask {
    /// The ID of the task.
    pub id: String,
    /// What is to be done, in one line.
    pub title: String,
    /// The path of the file that specifies the task in full, from the root.
    pub spec: Option<String>,
    /// What shows that it is done, such as a test command.
    pub tests: Option<String>,
    /// When it was added, in UTC (RFC 3339).
    pub added: String,
    /// What has happened to it so far, in order.
    pub trail: Vec<TrailEntry>,
}

/// One change of a task's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrailEntry {
    /// When it happened, in UTC (RFC 3339).
    pub at: String,
    /// The change that was made.
    #[serde(flatten)]
    pub change: Change,
    /// The name of the human who made it, in a hub that several people share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// Why the text of a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadBundle {
    /// It is not a bundle.
    #[error("it is not a bundle: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A newer version of forkhestra made it.
    #[error("it has the format {found}, and this version of forkhestra knows the formats up to {BUNDLE_FORMAT}")]
    Newer {
        /// The format of the bundle.
        found: u64,
    },
}

impl Bundle {
    /// Returns a text that no other unit has, not even one of the same name in another history of the project.
    #[must_use]
    pub fn identity(&self) -> String {
        sha256(self.text())
    }

    /// Returns the bundle as text.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Parses the text of a bundle.
    ///
    /// # Errors
    /// When it is not a bundle, or a newer version made it.
    pub fn parse(text: &str) -> Result<Self, BadBundle> {
        // First, because a newer format may lack what this version needs.
        let value: serde_json::Value = serde_json::from_str(text)?;
        match value["format"].as_u64() {
            Some(found) if found > BUNDLE_FORMAT.into() => Err(BadBundle::Newer { found }),
            _ => Ok(serde_json::from_value(value)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Status;

    fn bundle() -> Bundle {
        let change = Change {
            from: Status::Pending,
            to: Status::InProgress,
            actor: "coder".into(),
            notes: String::new(),
            rejection: false,
        };
        Bundle {
            format: BUNDLE_FORMAT,
            forkhestra: "1".into(),
            unit: "31-5".into(),
            workspace: "31-5".into(),
            folder: String::new(),
            base: "a".into(),
            start: "b".into(),
            chain: Some("task".into()),
            steps: None,
            vars: vec!["A=b".into()],
            overrides: Overrides::default(),
            plan: None,
            setup: vec!["make".into()],
            copy: vec![".env".into()],
            share: Vec::new(),
            clean: false,
            ports: 10,
            needs: Needs { labels: vec!["gpu".into()], ..Needs::default() },
            task: Some(BundledTask {
                id: "5".into(),
                title: "Fix\nit".into(),
                spec: None,
                tests: Some("make".into()),
                added: "then".into(),
                trail: vec![TrailEntry { at: "now".into(), change, by: None }],
            }),
            try_number: Some(2),
            choice: Some(BundledChoice { judge: "judge".into(), prompt: "Choose\none".into() }),
            slice: Some(BundledSlice {
                suite: "s.json".into(),
                prompts: None,
                cases: vec!["a b".into()],
                repeat: None,
            }),
        }
    }

    #[test]
    fn a_bundle_is_parsed_from_its_own_text() {
        assert_eq!(Bundle::parse(&bundle().text()).unwrap(), bundle());
    }

    #[test]
    fn a_bundle_of_a_newer_version_is_refused() {
        assert!(matches!(Bundle::parse(r#"{"format": 2}"#), Err(BadBundle::Newer { found: 2 })));
        assert!(matches!(Bundle::parse("{}"), Err(BadBundle::Unreadable(_))));
    }
}
