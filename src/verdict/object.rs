//! A verdict as a JSON object (schemas/verdict.schema.json), also one in the midst of other words (C40).

use super::{Decision, Finding};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// What an agent writes to its result file, or says in its final message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictObject {
    /// What it decided.
    #[serde(alias = "decision", deserialize_with = "decision")]
    pub verdict: Decision,
    /// Its words: what was done, or what is to be mended.
    #[serde(default, alias = "reason")]
    pub notes: Option<String>,
    /// What it found.
    #[serde(default)]
    pub findings: Option<Vec<Finding>>,
}

fn decision<'de, D: Deserializer<'de>>(from: D) -> Result<Decision, D::Error> {
    let word = String::deserialize(from)?;
    Decision::named(&word).ok_or_else(|| serde::de::Error::custom(format!("`{word}` is no verdict")))
}

/// A task that a planner proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Task {
    /// What is to be done, in a line.
    pub title: String,
    /// The file that says it whole, from the root.
    #[serde(default)]
    pub spec: Option<String>,
    /// Titles of tasks that come first.
    #[serde(default)]
    pub after: Vec<String>,
    /// What it needs.
    #[serde(default)]
    pub needs: Needs,
}

/// What a task needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needs {
    /// The tests that show that it is done, in words or as a command.
    #[serde(default)]
    pub tests: Option<String>,
}

/// The tasks of a planner's words: the one object with a list `tasks`. None when there is none, or several that differ.
#[must_use]
pub fn proposed_tasks(text: &str) -> Option<Vec<Task>> {
    #[derive(Deserialize, PartialEq)]
    struct Tasks {
        tasks: Vec<Task>,
    }
    let mut found: Vec<Tasks> = distinct(objects(text).iter().filter_map(|text| serde_json::from_str(text).ok()));
    let mut tasks = if found.len() == 1 { found.pop()?.tasks } else { return None };
    // What `task add` would refuse is none; a specification is a file of the project.
    tasks.retain(|task| !task.title.trim().is_empty() && !task.title.contains('\n'));
    for task in &mut tasks {
        let inside = |spec: &String| !spec.starts_with('/') && !spec.split('/').any(|part| part == "..");
        task.spec = task.spec.take().filter(inside);
    }
    Some(tasks).filter(|tasks| !tasks.is_empty())
}

/// The texts that are JSON objects: the whole, or every balanced object that stands in it, outermost only. Strings are minded.
pub(super) fn objects(text: &str) -> Vec<&str> {
    let whole = text.trim();
    if serde_json::from_str::<Value>(whole).is_ok_and(|value| value.is_object()) {
        return vec![whole];
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('{').map(|at| from + at) {
        // What begins here may be no JSON at all; then the next brace is tried.
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if value.is_object() => {
                let end = start + values.byte_offset();
                found.push(&text[start..end]);
                from = end;
            }
            _ => from = start + 1,
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}

/// The most objects that are looked at.
const MOST: usize = 100;

/// Every different one, in order.
pub(super) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// Every different verdict object of a text. One in the midst of a line, or quoted, is somebody's example.
pub(super) fn verdict_objects(text: &str) -> Vec<VerdictObject> {
    let stands_alone = |object: &&&str| {
        let start = object.as_ptr() as usize - text.as_ptr() as usize;
        let before = text[..start].rsplit('\n').next().unwrap_or_default();
        let after = text[start + object.len()..].split('\n').next().unwrap_or_default();
        before.is_empty() && after.trim().is_empty() || text.trim() == **object
    };
    distinct(objects(text).iter().filter(stands_alone).filter_map(|text| serde_json::from_str(text).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(text: &str) -> Vec<&'static str> {
        verdict_objects(text).iter().map(|object| object.verdict.name()).collect()
    }

    #[test]
    fn an_object_is_found_in_messy_text_and_never_mended() {
        let approve = r#"{"verdict": "approve", "notes": "a } in a string"}"#;
        assert_eq!(decisions(approve), ["approve"]);
        assert_eq!(decisions(&format!("I say {{so}}:\n```json\n{approve}\n```\nDone.")), ["approve"]);
        assert_eq!(decisions(&format!("{approve}\nand again\n{approve}")), ["approve"], "the same twice is one");
        assert_eq!(decisions(&format!("{approve}\n{{\"verdict\": \"reject\"}}")), ["approve", "reject"]);
        for quoted in [format!("> {approve}"), format!("say `{approve}`"), format!("such as {approve} if it is good")] {
            assert_eq!(decisions(&quoted), [""; 0], "{quoted}");
        }
        assert_eq!(decisions(r#"{"verdict": "APPROVED", "notes": null, "findings": null, "more": 1}"#), ["approve"]);
        for broken in [
            r#"{"verdict": "maybe"}"#,
            r#"{"verdict": "approve",}"#,
            r#"{"verdict": "approve"#,
            r#"{"verdict": "approve", "verdict": "reject"}"#,
            r#"{"log": {"verdict": "approve"}}"#,
            r#"{"findings": []}"#,
        ] {
            assert_eq!(decisions(broken), [""; 0], "{broken}");
        }
        assert!(objects(&"{".repeat(20_000)).is_empty());
    }

    #[test]
    fn a_plan_is_one_list_of_tasks() {
        let text =
            r#"Here: {"tasks": [{"title": "a", "needs": {"tests": "cargo test a"}}, {"title": "b", "after": ["a"]}]}"#;
        let tasks = proposed_tasks(text).unwrap();
        assert_eq!(tasks[0].needs.tests.as_deref(), Some("cargo test a"));
        assert_eq!(tasks[1].after, ["a"]);
        assert_eq!(proposed_tasks("no plan"), None);
        let odd =
            proposed_tasks(r#"{"tasks": [{"title": " "}, {"title": "a\nb"}, {"title": "c", "spec": "/etc/passwd"}]}"#)
                .unwrap();
        assert_eq!((odd.len(), odd[0].title.as_str(), &odd[0].spec), (1, "c", &None));
        assert_eq!(proposed_tasks(r#"{"tasks": []}"#), None);
    }
}
