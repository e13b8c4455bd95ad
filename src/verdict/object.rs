//! A verdict as a JSON object (schemas/verdict.schema.json), alone or within other text.

use super::calls::RecordedCall;
use super::proposed_task::ProposedTask;
use super::span::object_at;
use super::{Decision, Finding};
use crate::marker::{FenceLine, Fences};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The verdict that an agent writes to its result file, or prints in its final message.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictObject {
    /// What the agent decided.
    #[serde(alias = "decision", deserialize_with = "decision")]
    pub verdict: Decision,
    /// The agent's own text: what was done, or what has to be fixed.
    #[serde(default, alias = "reason")]
    pub notes: Option<String>,
    /// The findings: what has to be fixed, and minor remarks.
    #[serde(default)]
    pub findings: Option<Vec<Finding>>,
    /// The first finding that the object itself calls blocking, or a key that states an objection.
    #[serde(skip)]
    pub(super) severe: Option<String>,
    /// The first unknown key with a value that is not empty. It cannot be known to be minor.
    #[serde(skip)]
    pub(super) more: Option<String>,
}

fn decision<'de, D: Deserializer<'de>>(from: D) -> Result<Decision, D::Error> {
    let word = String::deserialize(from)?;
    Decision::of_word(&word).ok_or_else(|| serde::de::Error::custom(format!("`{word}` is not a verdict")))
}

/// What a planner proposes, and which parts of it cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The tasks, in the planner's order.
    pub tasks: Vec<ProposedTask>,
    /// Why parts of it are left out, one line each: `task 2 needs a title of one line`.
    pub unread: Vec<String>,
}

/// Returns the tasks in a planner's text: the one object with a list `tasks`. `None` if there is no such object.
#[must_use]
pub fn proposed_tasks(text: &str) -> Option<Proposal> {
    let read = objects(text).into_iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let mut found: Vec<Value> = distinct(read.filter(|value| !value["tasks"].is_null()));
    let value = match found.len() {
        0 => return None,
        1 => found.pop()?,
        many => {
            let unread = vec![format!("there are {many} different objects with `tasks`")];
            return Some(Proposal { tasks: Vec::new(), unread });
        }
    };
    let Some(list) = value["tasks"].as_array() else {
        return Some(Proposal { tasks: Vec::new(), unread: vec!["`tasks` is not a list".into()] });
    };
    Some(proposal_of(list))
}

/// Returns the tasks that a planner has recorded by calls, one each; `None` if there are none.
#[must_use]
pub fn proposal_of_calls(calls: &[RecordedCall]) -> Option<Proposal> {
    let task = |call: &RecordedCall| match call {
        RecordedCall::Task { task } => serde_json::to_value(task).ok(),
        _ => None,
    };
    let list: Vec<Value> = calls.iter().filter_map(task).collect();
    (!list.is_empty()).then(|| proposal_of(&list))
}

/// Reads a list of proposed tasks.
fn proposal_of(list: &[Value]) -> Proposal {
    let mut proposal = Proposal::default();
    for (index, one) in list.iter().enumerate() {
        match serde_json::from_value::<ProposedTask>(one.clone()) {
            // `task add` would refuse such a title.
            Ok(task) if task.title.trim().is_empty() || task.title.contains('\n') => {
                proposal.unread.push(format!("task {} needs a title of one line", index + 1));
            }
            Ok(mut task) => {
                // A specification must be a file of the project.
                let outside = |spec: &String| spec.starts_with('/') || spec.split('/').any(|part| part == "..");
                if let Some(spec) = task.spec.take_if(|spec| outside(spec)) {
                    proposal
                        .unread
                        .push(format!("the specification of task {} is not a file of the project: {spec}", index + 1));
                }
                proposal.tasks.push(task);
            }
            Err(error) => proposal.unread.push(format!("task {}: {error}", index + 1)),
        }
    }
    for task in &mut proposal.tasks {
        let titles: Vec<&str> = list.iter().filter_map(|one| one["title"].as_str()).collect();
        for before in task.after.iter().filter(|before| !titles.contains(&before.as_str())) {
            proposal.unread.push(format!("`{}` comes after `{before}`, which is not a task of this plan", task.title));
        }
    }
    proposal
}

/// Returns the parts of a text that are JSON objects: the whole text, or every outermost balanced object in it. Braces
/// in strings do not count.
pub(super) fn objects(text: &str) -> Vec<&str> {
    let whole = text.trim();
    if serde_json::from_str::<Value>(whole).is_ok_and(|value| value.is_object()) {
        return vec![whole];
    }
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('{').map(|at| from + at) {
        // What begins here may not be JSON. Then the next brace is tried.
        match object_at(text, start) {
            Some(end) => {
                found.push(&text[start..end]);
                from = end;
            }
            None => from = start + 1,
        }
        if found.len() >= MOST {
            break;
        }
    }
    found
}

/// How many objects are examined at most.
const MOST: usize = 10_000;

/// Returns every different value once, in order.
pub(super) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

/// Returns every object of a text that stands alone: at the beginning of its line, with nothing after it. In a code
/// fence, it stands alone only if the fence has no other text and none follows it. Any other object is an example.
pub(super) fn objects_alone(text: &str) -> Vec<&str> {
    placed_objects(text).into_iter().filter(|placed| placed.counts).map(|placed| placed.text).collect()
}

/// An object on lines of its own.
struct Placed<'a> {
    text: &'a str,
    lines: (usize, usize),
    counts: bool,
}

/// Returns every object on lines of its own, with its lines. Linear in the text, except for the depth of nesting.
fn placed_objects(text: &str) -> Vec<Placed<'_>> {
    let whole = text.trim();
    if whole.starts_with('{') && serde_json::from_str::<Value>(whole).is_ok_and(|value| value.is_object()) {
        let before = text.len() - text.trim_start().len();
        let first = text[..before].matches('\n').count();
        return vec![Placed { text: whole, lines: (first, first + whole.matches('\n').count() + 1), counts: true }];
    }
    let (mut found, mut fences): (Vec<Placed<'_>>, Fences) = (Vec::new(), Fences::default());
    let (mut at, mut index, mut skip_to) = (0, 0, 0);
    // The objects of the last fence, and whether it contains anything else.
    let (mut after_fence, mut others) = (Vec::new(), false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        index += 1;
        if start < skip_to {
            continue;
        }
        let place = fences.line(line.trim_end().as_bytes());
        let inside = place == FenceLine::Inside;
        let words = !line.trim().is_empty();
        others = match place {
            FenceLine::Opens => false,
            _ => others || inside && words && !line.starts_with('{'),
        };
        if place == FenceLine::Outside && words || place == FenceLine::Closes && others {
            // There is other text in the fence or after it: its objects are examples.
            for known in after_fence.drain(..) {
                if let Some(known) = found.get_mut::<usize>(known) {
                    known.counts = false;
                }
            }
        }
        if !line.starts_with('{') || !(inside || place == FenceLine::Outside) || found.len() >= MOST {
            continue;
        }
        if let Some(end) = object_at(text, start) {
            let rest = text[end..].split('\n').next().unwrap_or_default();
            if rest.trim().is_empty() {
                let lines = (index - 1, index + text[start..end].matches('\n').count());
                if inside {
                    after_fence.push(found.len());
                }
                found.push(Placed { text: &text[start..end], lines, counts: true });
            }
            skip_to = end;
        }
    }
    // A fence that is never closed contains no verdict.
    if fences.is_open() {
        for known in after_fence {
            if let Some(known) = found.get_mut(known) {
                known.counts = false;
            }
        }
    }
    found
}

/// An object of our shape, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatedObject {
    /// Its lines, from 0: the first, and the one after the last.
    pub(super) lines: (usize, usize),
    /// Whether its place makes it a verdict. Otherwise it may be an example.
    pub(super) counts: bool,
    /// The verdict, or what is wrong with it.
    pub(super) verdict: Result<VerdictObject, String>,
}

/// Returns every object of our shape on lines of its own. Other objects are not verdicts, whatever their keys.
pub(super) fn stated_objects(text: &str) -> Vec<StatedObject> {
    let stated = |placed: Placed<'_>| {
        let verdict = of_object(placed.text).transpose()?;
        Some(StatedObject { lines: placed.lines, counts: placed.counts, verdict })
    };
    placed_objects(text).into_iter().filter_map(stated).collect()
}

/// Returns the verdict of a result file.
///
/// # Errors
/// When an object is meant to be a verdict but is not valid, or several verdicts differ.
pub(super) fn file_object(text: &str) -> Result<Option<VerdictObject>, String> {
    let mut found = Vec::new();
    for object in objects_alone(text) {
        found.extend(of_object(object)?);
    }
    let mut found = distinct(found.into_iter());
    if found.len() > 1 { Err("it contains several different verdicts".into()) } else { Ok(found.pop()) }
}

/// Reads one object as a verdict; `None` for an object about something else. Models write numbers as strings and lists
/// as lines.
fn of_object(text: &str) -> Result<Option<VerdictObject>, String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let Some(decided) = value.get("verdict").or_else(|| value.get("decision")) else { return Ok(None) };
    let word = decided.as_str().unwrap_or_default();
    let known = Decision::of_word(word);
    // Hooks and logs of tools have such keys, too. Our objects also have notes or findings.
    let beside = ["notes", "reason", "findings"].iter().any(|key| value.get(key).is_some());
    if known.is_none() && (!beside || decided.as_str().is_none_or(is_foreign)) {
        return Ok(None);
    }
    // serde reports a duplicate key.
    if let Err(error) = serde_json::from_str::<VerdictObject>(text)
        && error.to_string().starts_with("duplicate field")
    {
        return Err("its object has a duplicate key".into());
    }
    let verdict = known.ok_or_else(|| format!("`verdict` is {decided}, which is not a known verdict"))?;
    let lines = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let notes = value.get("notes").or_else(|| value.get("reason")).map(lines);
    let findings = match value.get("findings") {
        None | Some(Value::Null) => None,
        Some(Value::Array(list)) => Some(list.iter().filter_map(finding_of).collect()),
        Some(other) => return Err(format!("`findings` is {other}, but must be a list")),
    };
    let severe = value.get("findings").and_then(Value::as_array).into_iter().flatten().find_map(|finding| {
        let severity = finding.get("severity")?.as_str()?.to_lowercase();
        let named = matches!(severity.as_str(), "blocking" | "blocker" | "critical" | "major" | "high");
        named.then(|| finding_of(finding).map_or(severity.clone(), |finding| format!("{severity}: {}", finding.title)))
    });
    let mut unknown = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| !KNOWN.contains(&key.as_str()) && says_something(value));
    let more: Option<String> = unknown.clone().map(|(key, value)| format!("{key}: {value}")).next();
    let objects = |(key, value): (&String, &Value)| {
        let object = OBJECTING.iter().any(|word| key.to_lowercase().contains(word));
        let nested = value.get("verdict").or_else(|| value.get("decision")).is_some();
        (object || nested).then(|| format!("{key}: {value}"))
    };
    let severe = severe.or_else(|| unknown.find_map(objects));
    Ok(Some(VerdictObject { verdict, notes, findings, severe, more }))
}

/// Our own keys, and those for a confidence, a score or metadata.
const KNOWN: [&str; 11] =
    ["verdict", "decision", "notes", "reason", "findings", "confidence", "score", "model", "version", "$schema", "id"];

/// Parts of keys that state an objection, whatever the verdict is.
const OBJECTING: [&str; 9] = ["block", "issue", "problem", "condition", "must", "error", "concern", "fix", "defect"];

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) | Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(list) => list.iter().any(says_something),
        Value::Object(keys) => keys.values().any(says_something),
    }
}

/// Returns whether a word is one that hooks, linters and test runners use in keys that we have, too.
fn is_foreign(word: &str) -> bool {
    matches!(
        word.to_lowercase().as_str(),
        "allow"
            | "ask"
            | "block"
            | "deny"
            | "pass"
            | "passed"
            | "fail"
            | "failed"
            | "ok"
            | "warn"
            | "error"
            | "none"
            | ""
    )
}

/// Reads a finding from an object or a line of text.
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
        let said = stated_objects(text).into_iter().filter(|stated| stated.counts);
        said.map(|stated| stated.verdict.map_or("bad", |object| object.verdict.name())).collect()
    }

    #[test]
    fn an_object_is_found_in_messy_text_and_never_fixed() {
        let approve = r#"{"verdict": "approve", "notes": "a } in a string"}"#;
        assert_eq!(decisions(approve), ["approve"]);
        assert_eq!(decisions(&format!("I say {{so}}:\n```json\n{approve}\n```\n")), ["approve"]);
        assert_eq!(decisions(&format!("If it were so:\n```json\n{approve}\n```\nBut no.")), [""; 0]);
        let loose = r#"{"verdict": "reject", "notes": ["a", "b"], "findings": ["a.rs:3: bad", {"title": "t", "severity": "High", "line": "3"}]}"#;
        let found = file_object(loose).unwrap().unwrap();
        assert_eq!((found.notes.as_deref(), found.findings.map(|all| all.len())), (Some("a\nb"), Some(2)));
        for bad in [
            r#"{"verdict": "maybe", "notes": "x"}"#,
            r#"{"verdict": "approve", "verdict": "reject"}"#,
            r#"{"verdict": "reject", "findings": 3}"#,
        ] {
            assert_eq!(decisions(bad), ["bad"], "{bad}");
        }
        assert_eq!(decisions(&format!("{approve}\nand again\n{approve}")), ["approve", "approve"]);
        for foreign in
            [r#"{"decision": "deny", "rule": 4}"#, r#"{"verdict":"pass"}"#, r#"{"decision": "block", "reason": "x"}"#]
        {
            assert_eq!(decisions(foreign), [""; 0], "{foreign}");
        }
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
        let tasks = proposed_tasks(text).unwrap().tasks;
        assert_eq!(tasks[0].needs.tests.as_deref(), Some("cargo test a"));
        assert_eq!(tasks[1].after, ["a"]);
        assert_eq!(proposed_tasks("no plan"), None);
        let odd =
            proposed_tasks(r#"{"tasks": [{"title": " "}, {"title": "a\nb"}, {"title": "c", "spec": "/etc/passwd"}]}"#)
                .unwrap();
        assert_eq!((odd.tasks.len(), odd.tasks[0].title.as_str(), &odd.tasks[0].spec), (1, "c", &None));
        assert_eq!(odd.unread.len(), 3, "{:?}", odd.unread);
        assert_eq!(proposed_tasks(r#"{"tasks": []}"#), Some(Proposal::default()));
        let loose = proposed_tasks(
            r#"{"tasks": [{"title": "A", "after": null, "needs": null}, {"title": "B", "after": "A"}, {"title": "C", "after": ["X"]}, {"name": "D"}]}"#,
        )
        .unwrap();
        let after: Vec<&[String]> = loose.tasks.iter().map(|task| task.after.as_slice()).collect();
        assert_eq!(after, [&[][..], &["A".to_string()], &["X".to_string()]]);
        assert_eq!(
            loose.unread,
            ["task 4: missing field `title`", "`C` comes after `X`, which is not a task of this plan"]
        );
    }
}
