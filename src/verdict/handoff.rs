//! The handoff files of the carbon and helium templates. They are read strictly, with a typed error for each mistake.

use super::{Decision, Finding, Severity};
use serde_json::Value;

/// An error in a handoff file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffError {
    /// The place in the object: `work.issues[0].paths`.
    pub path: String,
    /// The kind of error: `missing`, `not_null`, `blank`, `unknown_value`, `empty`, `wrong_type`.
    pub code: &'static str,
    /// Description for people.
    pub message: String,
}

impl std::fmt::Display for HandoffError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

fn fault(path: impl Into<String>, code: &'static str, message: impl Into<String>) -> HandoffError {
    HandoffError { path: path.into(), code, message: message.into() }
}

/// The content of a handoff file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handoff {
    /// The work of a builder.
    Built {
        /// What was done.
        summary: String,
    },
    /// The result of an inspector.
    Inspected {
        /// The decision: `approved` means approve, `changes_requested` reject, and `rejected` dispute.
        decision: Decision,
        /// The issues that were found.
        issues: Vec<Finding>,
        /// What is to be done next.
        next_tasks: Vec<String>,
    },
    /// The agent could not do its work.
    Failed {
        /// The step that failed, if it is named, and the error.
        error: String,
    },
}

/// Reads a handoff object; `None` for an object without an object `run`, which is not a handoff.
///
/// # Errors
/// Returns everything that is wrong with it.
pub fn handoff(value: &Value) -> Option<Result<Handoff, Vec<HandoffError>>> {
    let run = value.get("run").filter(|run| run.is_object())?;
    let work = value.get("work").unwrap_or(&Value::Null);
    let mut faults = Vec::new();
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_string();
    let handoff = match run.get("status").and_then(Value::as_str) {
        Some("failed") => {
            if !work.is_null() {
                faults.push(fault("work", "not_null", "must be null if the run failed"));
            }
            let (step, error) = (text(run, "failed_step"), text(run, "error"));
            let step = if step.is_empty() { step } else { format!("{step}: ") };
            Some(Handoff::Failed { error: step + if error.is_empty() { "no error was given" } else { &error } })
        }
        Some("ok") if work.is_object() => work_of(work, &mut faults),
        Some("ok") => {
            faults.push(fault("work", "missing", "must be an object if the run is ok"));
            None
        }
        Some(other) => {
            faults.push(fault("run.status", "unknown_value", format!("`{other}` is neither `ok` nor `failed`")));
            None
        }
        None => {
            faults.push(fault("run.status", "missing", "missing (must be `ok` or `failed`)"));
            None
        }
    };
    Some(match handoff {
        Some(handoff) if faults.is_empty() => Ok(handoff),
        _ => Err(faults),
    })
}

fn work_of(work: &Value, faults: &mut Vec<HandoffError>) -> Option<Handoff> {
    let Some(decision) = work.get("decision") else {
        let summary = work.get("summary").and_then(Value::as_str).unwrap_or_default().trim();
        if summary.is_empty() {
            faults.push(fault("work.summary", "blank", "missing (say what was done)"));
        }
        match work.get("complexity").and_then(Value::as_str) {
            Some("low" | "medium" | "high") => {}
            Some(other) => faults.push(fault(
                "work.complexity",
                "unknown_value",
                format!("`{other}` is not one of low, medium, high"),
            )),
            None => faults.push(fault("work.complexity", "missing", "missing (must be low, medium or high)")),
        }
        return Some(Handoff::Built { summary: summary.to_string() });
    };
    let decision = match decision.as_str() {
        Some("approved") => Some(Decision::Approve),
        Some("changes_requested") => Some(Decision::Reject),
        // Only one of the three vocabularies of the original has this word. There it ends the task.
        Some("rejected") => Some(Decision::Dispute),
        other => {
            let other = other.unwrap_or("(not a string)");
            let message = format!("`{other}` is neither `approved` nor `changes_requested`");
            faults.push(fault("work.decision", "unknown_value", message));
            None
        }
    };
    let list = |key: &str| work.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let issues = list("issues");
    let issues: Vec<Finding> = issues.iter().enumerate().map(|(index, issue)| issue_of(index, issue, faults)).collect();
    if decision == Some(Decision::Reject) && issues.is_empty() {
        faults.push(fault("work.issues", "empty", "empty (list what has to be changed)"));
    }
    let next_tasks = list("next_tasks").iter().filter_map(|task| task.as_str().map(str::to_string)).collect();
    Some(Handoff::Inspected { decision: decision?, issues, next_tasks })
}

fn issue_of(index: usize, issue: &Value, faults: &mut Vec<HandoffError>) -> Finding {
    let at = |key: &str| format!("work.issues[{index}].{key}");
    let title = issue.get("description").and_then(Value::as_str).unwrap_or_default().trim().to_string();
    if title.is_empty() {
        faults.push(fault(at("description"), "blank", "missing (say what is wrong)"));
    }
    let severity = match issue.get("severity").and_then(Value::as_str) {
        Some("blocker" | "major") => Severity::Blocking,
        Some("minor") => Severity::Minor,
        Some(other) => {
            let message = format!("`{other}` is not one of blocker, major, minor");
            faults.push(fault(at("severity"), "unknown_value", message));
            Severity::Blocking
        }
        None => {
            faults.push(fault(at("severity"), "missing", "missing (must be blocker, major or minor)"));
            Severity::Blocking
        }
    };
    let paths = issue.get("paths").and_then(Value::as_array).cloned().unwrap_or_default();
    let file = paths.first().and_then(Value::as_str).map(str::to_string);
    if file.is_none() {
        faults.push(fault(at("paths"), "empty", "empty (list the files that the issue is about)"));
    }
    Finding { title, file, line: None, rule: None, severity }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> String {
        match handoff(&serde_json::from_str(text).unwrap()).unwrap() {
            Ok(_) => "ok".into(),
            Err(faults) => {
                faults.iter().map(|fault| format!("{} {}", fault.path, fault.code)).collect::<Vec<_>>().join(", ")
            }
        }
    }

    #[test]
    fn every_fault_of_a_handoff_file_is_typed_and_has_its_place() {
        let table = [
            (r#"{"run": {"status": "ok"}, "work": {"summary": "s", "complexity": "low"}}"#, "ok"),
            (r#"{"run": {"status": "failed", "error": "e"}, "work": null}"#, "ok"),
            (r#"{"run": {"status": "failed"}, "work": {"summary": "s"}}"#, "work not_null"),
            (r#"{"run": {"status": "ok"}, "work": null}"#, "work missing"),
            (r#"{"run": {"status": "ok"}, "work": {"summary": "  ", "complexity": "low"}}"#, "work.summary blank"),
            (
                r#"{"run": {"status": "ok"}, "work": {"summary": "s", "complexity": "huge"}}"#,
                "work.complexity unknown_value",
            ),
            (r#"{"run": {"status": "fine"}, "work": null}"#, "run.status unknown_value"),
            (r#"{"run": {"status": "ok"}, "work": {"decision": "changes_requested"}}"#, "work.issues empty"),
            (
                r#"{"run": {"status": "ok"}, "work": {"decision": "changes_requested",
                   "issues": [{"severity": "major", "description": "d", "paths": []}]}}"#,
                "work.issues[0].paths empty",
            ),
            (r#"{"run": {"status": "ok"}, "work": {"decision": "maybe"}}"#, "work.decision unknown_value"),
        ];
        for (text, expected) in table {
            assert_eq!(codes(text), expected, "{text}");
        }
        assert_eq!(handoff(&serde_json::json!({ "verdict": "approve" })), None);
    }
}
