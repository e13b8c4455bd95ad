//! What an agent records by a command or by a tool, as one line of JSON for each call.

use super::{Answer, Decision, Finding, ProposedTask, Severity};
use serde::{Deserialize, Serialize};

/// A recorded call of a command, such as `forkhestra approve`, or of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedCall {
    /// A decision.
    Decision {
        /// What was decided.
        verdict: Decision,
        /// The agent's own text.
        notes: String,
        /// The findings, if they were given one by one; otherwise they are read from the notes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<Finding>,
    },
    /// A worker's answer to a finding.
    Answer {
        /// The answer.
        answer: Answer,
    },
    /// A task that a planner proposes.
    Task {
        /// The task.
        task: ProposedTask,
    },
}

impl RecordedCall {
    /// Returns the call of a verdict command.
    #[must_use]
    pub fn decision(verdict: Decision, notes: &str) -> Self {
        Self::Decision { verdict, notes: notes.into(), findings: Vec::new() }
    }

    /// Returns the call as a line of its file.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Reads recorded calls. Lines that are not calls are skipped.
#[must_use]
pub fn recorded_calls(text: &str) -> Vec<RecordedCall> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns findings as a list for people and agents: `- src/a.rs:12: what happens`.
pub(super) fn list_of(findings: &[Finding]) -> String {
    findings.iter().map(line_of).collect::<Vec<_>>().join("\n")
}

/// Returns a finding as an item of a list.
pub(super) fn line_of(finding: &Finding) -> String {
    let minor = if finding.severity == Severity::Minor { "minor: " } else { "" };
    let number = finding.rule.as_ref().map_or_else(String::new, |rule| format!("{rule}: "));
    let place = match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        (None, _) => String::new(),
    };
    format!("- {minor}{number}{place}{}", finding.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::findings;

    #[test]
    fn a_call_is_read_as_it_was_recorded() {
        let calls = [
            RecordedCall::decision(Decision::Approve, "fine\nand short"),
            RecordedCall::Answer { answer: Answer { finding: 3, fixed: true, words: "fixed".into() } },
            RecordedCall::Task { task: serde_json::from_str(r#"{"title": "T", "after": ["S"]}"#).unwrap() },
        ];
        let text: String = calls.iter().map(RecordedCall::line).collect();
        assert_eq!(recorded_calls(&(text + "not a call\n{}\n")), calls);
    }

    #[test]
    fn a_finding_as_a_line_is_read_as_the_same_finding() {
        let all = [
            Finding { title: "leaks".into(), file: Some("src/a.rs".into()), line: Some(3), ..Finding::default() },
            Finding { title: "still open".into(), rule: Some("F2".into()), ..Finding::default() },
            Finding {
                title: "a name".into(),
                file: Some("b/c".into()),
                severity: Severity::Minor,
                ..Finding::default()
            },
        ];
        assert_eq!(findings(&list_of(&all)), all);
    }
}
