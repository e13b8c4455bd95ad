//! A verdict as a JSON object (schemas/verdict.schema.json), also one among other words.

use super::span::object_at;
use super::{Decision, Finding};
use crate::marker::{FenceLine, Fences};
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
    /// The first finding that it calls blocking itself, or a key by which it objects.
    #[serde(skip)]
    pub(super) severe: Option<String>,
    /// A key with something in it that we do not know: nobody can say that it is minor.
    #[serde(skip)]
    pub(super) more: Option<String>,
}

fn decision<'de, D: Deserializer<'de>>(from: D) -> Result<Decision, D::Error> {
    let word = String::deserialize(from)?;
    Decision::named(&word).ok_or_else(|| serde::de::Error::custom(format!("`{word}` is no verdict")))
}

/// A task that a planner proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProposedTask {
    /// What is to be done, in a line.
    pub title: String,
    /// The file that says it whole, from the root.
    #[serde(default)]
    pub spec: Option<String>,
    /// Titles of tasks that come first.
    #[serde(default, deserialize_with = "texts")]
    pub after: Vec<String>,
    /// What it needs.
    #[serde(default, deserialize_with = "or_default")]
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

/// What a planner proposes, and what of it cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The tasks, in its order.
    pub tasks: Vec<ProposedTask>,
    /// Why something of it is left out, a line each: `task 2 has no title`.
    pub unread: Vec<String>,
}

/// The tasks of a planner's words: the one object with a list `tasks`. None when there is none.
#[must_use]
pub fn proposed_tasks(text: &str) -> Option<Proposal> {
    let read = objects(text).into_iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let mut found: Vec<Value> = distinct(read.filter(|value| !value["tasks"].is_null()));
    let value = match found.len() {
        0 => return None,
        1 => found.pop()?,
        many => {
            let unread = vec![format!("there are {many} objects with `tasks`, and they differ")];
            return Some(Proposal { tasks: Vec::new(), unread });
        }
    };
    let mut proposal = Proposal::default();
    let Some(list) = value["tasks"].as_array() else {
        proposal.unread.push("`tasks` is no list".into());
        return Some(proposal);
    };
    for (index, one) in list.iter().enumerate() {
        match serde_json::from_value::<ProposedTask>(one.clone()) {
            // What `task add` would refuse is none.
            Ok(task) if task.title.trim().is_empty() || task.title.contains('\n') => {
                proposal.unread.push(format!("task {} has no title of one line", index + 1));
            }
            Ok(mut task) => {
                // A specification is a file of the project.
                let outside = |spec: &String| spec.starts_with('/') || spec.split('/').any(|part| part == "..");
                if let Some(spec) = task.spec.take_if(|spec| outside(spec)) {
                    proposal
                        .unread
                        .push(format!("the specification of task {} is no file of the project: {spec}", index + 1));
                }
                proposal.tasks.push(task);
            }
            Err(error) => proposal.unread.push(format!("task {}: {error}", index + 1)),
        }
    }
    for task in &mut proposal.tasks {
        let titles: Vec<&str> = list.iter().filter_map(|one| one["title"].as_str()).collect();
        for before in task.after.iter().filter(|before| !titles.contains(&before.as_str())) {
            proposal.unread.push(format!("`{}` comes after `{before}`, which is no task of this plan", task.title));
        }
    }
    Some(proposal)
}

/// A list of texts; one text is a list of it, and null none.
fn texts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        Many(Vec<String>),
        One(String),
    }
    Ok(match Option::<Texts>::deserialize(deserializer)? {
        Some(Texts::Many(texts)) => texts,
        Some(Texts::One(text)) => vec![text],
        None => Vec::new(),
    })
}

/// A value, or its default for null.
fn or_default<'de, D: serde::Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
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
/// words follow the fence. One in the midst of a line, quoted, or followed by words behind its fence is somebody's example.
pub(super) fn objects_alone(text: &str) -> Vec<&str> {
    placed_objects(text).into_iter().filter(|placed| placed.counts).map(|placed| placed.text).collect()
}

/// An object that stands on lines of its own.
struct Placed<'a> {
    text: &'a str,
    lines: (usize, usize),
    counts: bool,
}

/// Every object on lines of its own, with the lines that it takes; linear in the text but for the depth of nesting.
fn placed_objects(text: &str) -> Vec<Placed<'_>> {
    let whole = text.trim();
    if whole.starts_with('{') && serde_json::from_str::<Value>(whole).is_ok_and(|value| value.is_object()) {
        let before = text.len() - text.trim_start().len();
        let first = text[..before].matches('\n').count();
        return vec![Placed { text: whole, lines: (first, first + whole.matches('\n').count() + 1), counts: true }];
    }
    let (mut found, mut fences): (Vec<Placed<'_>>, Fences) = (Vec::new(), Fences::default());
    let (mut at, mut index, mut skip_to) = (0, 0, 0);
    // Objects of the last fence, and whether it holds anything else.
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
            // Words behind a fence or in it: what it holds is an example.
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
    // A fence that nobody closes holds no verdict.
    if fences.is_open() {
        for known in after_fence {
            if let Some(known) = found.get_mut(known) {
                known.counts = false;
            }
        }
    }
    found
}

/// An object of our shape, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stated {
    /// Its lines, from 0: the first, and the one behind the last.
    pub(super) lines: (usize, usize),
    /// Whether it is a verdict by its place; else it may be an example.
    pub(super) counts: bool,
    /// What it says, or what is wrong with it.
    pub(super) verdict: Result<VerdictObject, String>,
}

/// Every object of our shape on lines of its own. Objects of another shape are no verdicts, whatever keys they have.
pub(super) fn stated_objects(text: &str) -> Vec<Stated> {
    let stated = |placed: Placed<'_>| {
        let verdict = of_object(placed.text).transpose()?;
        Some(Stated { lines: placed.lines, counts: placed.counts, verdict })
    };
    placed_objects(text).into_iter().filter_map(stated).collect()
}

/// The verdict of a result file.
///
/// # Errors
/// What is wrong with one that is meant to be a verdict.
pub(super) fn file_object(text: &str) -> Result<Option<VerdictObject>, String> {
    let mut found = Vec::new();
    for object in objects_alone(text) {
        found.extend(of_object(object)?);
    }
    let mut found = distinct(found.into_iter());
    if found.len() > 1 { Err("it holds several different verdicts".into()) } else { Ok(found.pop()) }
}

/// One object as a verdict; none for one that is about something else. Models write numbers as words and lists as lines.
fn of_object(text: &str) -> Result<Option<VerdictObject>, String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let Some(decided) = value.get("verdict").or_else(|| value.get("decision")) else { return Ok(None) };
    let word = decided.as_str().unwrap_or_default();
    let known = Decision::named(word);
    // Hooks and logs of tools have such keys, too; ours have words or findings beside them.
    let beside = ["notes", "reason", "findings"].iter().any(|key| value.get(key).is_some());
    if known.is_none() && (!beside || decided.as_str().is_none_or(is_foreign)) {
        return Ok(None);
    }
    // serde names a key that stands there twice.
    if let Err(error) = serde_json::from_str::<VerdictObject>(text)
        && error.to_string().starts_with("duplicate field")
    {
        return Err("its object has a key twice".into());
    }
    let verdict = known.ok_or_else(|| format!("`verdict` is {decided}, and none of ours"))?;
    let lines = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let notes = value.get("notes").or_else(|| value.get("reason")).map(lines);
    let findings = match value.get("findings") {
        None | Some(Value::Null) => None,
        Some(Value::Array(list)) => Some(list.iter().filter_map(finding_of).collect()),
        Some(other) => return Err(format!("`findings` is {other}, and not a list")),
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

/// Our own keys, and those that say how sure or how good something is.
const KNOWN: [&str; 11] =
    ["verdict", "decision", "notes", "reason", "findings", "confidence", "score", "model", "version", "$schema", "id"];

/// Parts of keys by which an answer objects, whatever it decides.
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

/// Words of hooks, linters and test runners in keys that we have, too.
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
        let said = stated_objects(text).into_iter().filter(|stated| stated.counts);
        said.map(|stated| stated.verdict.map_or("bad", |object| object.verdict.name())).collect()
    }

    #[test]
    fn an_object_is_found_in_messy_text_and_never_mended() {
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
            ["task 4: missing field `title`", "`C` comes after `X`, which is no task of this plan"]
        );
    }
}
