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
const MOST: usize = 10_000;

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

/// Every object of a text that stands alone: at the beginning of its line, with nothing behind it; in a code fence only where no
/// words follow the fence. One in the midst of a line, quoted, or followed by second thoughts is somebody's example.
pub(super) fn objects_alone(text: &str) -> Vec<&str> {
    let alone = |object: &&str| {
        let start = object.as_ptr() as usize - text.as_ptr() as usize;
        let (before, after) = (&text[..start], &text[start + object.len()..]);
        let line_before = before.rsplit('\n').next().unwrap_or_default();
        let line_after = after.split('\n').next().unwrap_or_default();
        let marks = |text: &str| text.lines().filter(|line| line.starts_with("```") || line.starts_with("~~~")).count();
        let inside = marks(before) % 2 == 1;
        let words =
            after.lines().any(|line| !line.trim().is_empty() && !line.starts_with("```") && !line.starts_with("~~~"));
        text.trim() == *object || line_before.is_empty() && line_after.trim().is_empty() && !(inside && words)
    };
    objects(text).into_iter().filter(alone).collect()
}

/// Every different verdict object of a text.
///
/// # Errors
/// What is wrong with one that is meant to be a verdict.
pub(super) fn verdict_objects(text: &str) -> Result<Vec<VerdictObject>, String> {
    let mut found = Vec::new();
    for object in objects_alone(text) {
        found.extend(of_object(object)?);
    }
    Ok(distinct(found.into_iter()))
}

/// One object as a verdict; none for one that is about something else. Models write numbers as words and lists as lines.
fn of_object(text: &str) -> Result<Option<VerdictObject>, String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let Some(decided) = value.get("verdict").or_else(|| value.get("decision")) else { return Ok(None) };
    // serde names a key that stands there twice.
    if let Err(error) = serde_json::from_str::<VerdictObject>(text)
        && error.to_string().starts_with("duplicate field")
    {
        return Err("its object has a key twice".into());
    }
    let word = decided.as_str().unwrap_or_default();
    let verdict = Decision::named(word).ok_or_else(|| format!("`verdict` is {decided}, and none of ours"))?;
    let lines = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let notes = value.get("notes").or_else(|| value.get("reason")).map(lines);
    let findings = match value.get("findings") {
        None | Some(Value::Null) => None,
        Some(Value::Array(list)) => Some(list.iter().filter_map(finding_of).collect()),
        Some(other) => return Err(format!("`findings` is {other}, and no list")),
    };
    Ok(Some(VerdictObject { verdict, notes, findings }))
}

/// A finding as an object, or as a line of words.
fn finding_of(value: &Value) -> Option<Finding> {
    let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str()).map(str::to_string);
    if let Some(words) = value.as_str() {
        let read = super::findings(&format!("- {words}")).pop();
        return Some(read.unwrap_or_else(|| Finding { title: words.into(), ..Finding::default() }));
    }
    let line = value.get("line").and_then(|line| line.as_u64().or_else(|| line.as_str()?.trim().parse().ok()));
    let severity = text(&["severity"]).unwrap_or_default().to_lowercase();
    let minor = matches!(severity.as_str(), "minor" | "nit" | "low" | "info" | "suggestion");
    Some(Finding {
        title: text(&["title", "description", "message", "issue"])?,
        file: text(&["file", "path"]),
        line: line.and_then(|line| u32::try_from(line).ok()),
        rule: text(&["rule", "id"]),
        severity: if minor { super::Severity::Minor } else { super::Severity::Blocking },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(text: &str) -> Vec<&'static str> {
        match verdict_objects(text) {
            Ok(found) => found.iter().map(|object| object.verdict.name()).collect(),
            Err(_) => vec!["bad"],
        }
    }

    #[test]
    fn an_object_is_found_in_messy_text_and_never_mended() {
        let approve = r#"{"verdict": "approve", "notes": "a } in a string"}"#;
        assert_eq!(decisions(approve), ["approve"]);
        assert_eq!(decisions(&format!("I say {{so}}:\n```json\n{approve}\n```\n")), ["approve"]);
        assert_eq!(decisions(&format!("If it were so:\n```json\n{approve}\n```\nBut no.")), [""; 0]);
        let loose = r#"{"verdict": "reject", "notes": ["a", "b"], "findings": ["a.rs:3: bad", {"title": "t", "severity": "High", "line": "3"}]}"#;
        let found = verdict_objects(loose).unwrap().remove(0);
        assert_eq!((found.notes.as_deref(), found.findings.map(|all| all.len())), (Some("a\nb"), Some(2)));
        for bad in [
            r#"{"verdict": "maybe"}"#,
            r#"{"verdict": "approve", "verdict": "reject"}"#,
            r#"{"verdict": "reject", "findings": 3}"#,
        ] {
            assert_eq!(decisions(bad), ["bad"], "{bad}");
        }
        assert_eq!(decisions(&format!("{approve}\nand again\n{approve}")), ["approve"], "the same twice is one");
        assert_eq!(decisions(&format!("{approve}\n{{\"verdict\": \"reject\"}}")), ["approve", "reject"]);
        for quoted in [format!("> {approve}"), format!("say `{approve}`"), format!("such as {approve} if it is good")] {
            assert_eq!(decisions(&quoted), [""; 0], "{quoted}");
        }
        assert_eq!(decisions(r#"{"verdict": "APPROVED", "notes": null, "findings": null, "more": 1}"#), ["approve"]);
        for broken in [
            r#"{"verdict": "approve",}"#,
            r#"{"verdict": "approve"#,
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
