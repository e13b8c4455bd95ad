//! The tools of an attempt: an agent's verdicts, answers and proposed tasks as typed calls. They record what the
//! commands `approve`, `reject` and so on record, and the host reads it when the attempt has ended.

use super::protocol::{Tool, ToolAnswer, ToolBox};
use crate::agent::{AttemptTool, tools_of};
use crate::cli::verdict::{CallingAttempt, attempt_of, record_in};
use crate::source::{Diagnostic, counted};
use crate::verdict::{Answer, Decision, Finding, ProposedTask, RecordedCall, Severity};
use crate::world::World;
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest text of an argument, in bytes.
const LONGEST: usize = 64 << 10;
/// The most findings of a call.
const MOST_FINDINGS: usize = 50;

/// The tools of the attempt that this process was started by.
pub(super) struct AttemptTools<'a> {
    world: &'a World,
    /// The tools of its role. They do not change during the attempt.
    tools: &'static [AttemptTool],
}

impl<'a> AttemptTools<'a> {
    /// Finds the attempt by its token in the environment.
    ///
    /// # Errors
    /// Outside an attempt, or after its end.
    pub(super) fn new(world: &'a World) -> Result<Self, Diagnostic> {
        let CallingAttempt { caller, .. } = attempt_of(world, "mcp")?;
        Ok(Self { world, tools: tools_of(caller.role, caller.proposes) })
    }

    fn record(&self, tool: AttemptTool, arguments: &Value) -> Result<String, String> {
        let call = call_of(tool, arguments)?;
        // Looked up again: the attempt may have ended since the server was started.
        let attempt = attempt_of(self.world, tool.name()).map_err(|fault| words(&fault))?;
        if !tools_of(attempt.caller.role, attempt.caller.proposes).contains(&tool) {
            return Err(format!("a {} may not call {}", attempt.caller.role.name(), tool.name()));
        }
        record_in(&attempt, tool.name(), &call).map_err(|fault| words(&fault))?;
        Ok(recorded_words(&call))
    }
}

impl ToolBox for AttemptTools<'_> {
    fn instructions(&self) -> &'static str {
        "You run in a chain of forkhestra. These tools record your decision; it takes effect when you have finished."
    }

    fn tools(&self) -> Vec<Tool> {
        self.tools.iter().map(|tool| described(*tool)).collect()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> ToolAnswer {
        let tool = self.tools.iter().copied().find(|tool| tool.name() == name);
        let answered =
            tool.ok_or_else(|| format!("unknown tool: {name}")).and_then(|tool| self.record(tool, arguments));
        match answered {
            Ok(text) => ToolAnswer { text, failed: false },
            Err(text) => ToolAnswer { text, failed: true },
        }
    }
}

/// Returns an error in words for an agent.
fn words(fault: &Diagnostic) -> String {
    match &fault.help {
        Some(help) => format!("{}: {help}", fault.message),
        None => fault.message.clone(),
    }
}

fn recorded_words(call: &RecordedCall) -> String {
    let what = match call {
        RecordedCall::Decision { verdict, findings, .. } if !findings.is_empty() => {
            format!(
                "{}, with {}",
                verdict.name(),
                counted(u32::try_from(findings.len()).unwrap_or(u32::MAX), "finding")
            )
        }
        RecordedCall::Decision { verdict, .. } => verdict.name().to_string(),
        RecordedCall::Answer { answer } => format!("answer to F{}", answer.finding),
        RecordedCall::Task { task } => format!("task \"{}\"", task.title),
    };
    format!("recorded: {what}. It takes effect when you have finished.")
}

/// Returns a tool as the model sees it. Short, because every request of the model may carry it.
fn described(tool: AttemptTool) -> Tool {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let findings = |about: &str| {
        let properties = json!({
            "file": text("Path from the root"),
            "line": { "type": "integer", "minimum": 1 },
            "what": text("What happens, and what would fix it"),
            "minor": { "type": "boolean", "description": "Need not be fixed" },
        });
        json!({ "type": "array", "description": about, "items": object(properties, &["what"]) })
    };
    let (description, schema) = match tool {
        AttemptTool::Approve => (
            "Accept the work: what was asked is done and harms nothing.",
            object(json!({ "notes": text("What you checked"), "findings": findings("Minor remarks") }), &[]),
        ),
        AttemptTool::Reject => (
            "Send the work back: something has to be fixed.",
            object(json!({ "findings": findings("The worst first"), "notes": text("A summary") }), &["findings"]),
        ),
        AttemptTool::Submit => {
            ("Hand in your work to be checked and judged.", object(json!({ "notes": text("What you did") }), &[]))
        }
        AttemptTool::Answer => (
            "Answer a finding of a judge.",
            object(
                json!({
                    "finding": { "type": "integer", "minimum": 1, "description": "Its number: 3 for F3" },
                    "fixed": { "type": "boolean" },
                    "text": text("What you did, or why not"),
                }),
                &["finding", "fixed", "text"],
            ),
        ),
        AttemptTool::ProposeTask => (
            "Propose one task of the plan. Call it once for each task, in order.",
            object(
                json!({
                    "title": text("What is to be done, in one line"),
                    "spec": text("Path of a file with the specification, from the root"),
                    "after": { "type": "array", "items": { "type": "string" }, "description": "Titles of tasks that come first" },
                    "tests": text("What shows that it is done, described or as a command"),
                }),
                &["title"],
            ),
        ),
        AttemptTool::Dispute => (
            "Ask a person: a question or a contradiction that you cannot decide. The work stops until somebody answers.",
            object(json!({ "reason": text("The question, with all that is needed to answer it") }), &["reason"]),
        ),
        AttemptTool::Skip => ("There is nothing to do.", object(json!({ "reason": text("Why") }), &["reason"])),
    };
    Tool { name: tool.name(), description: description.into(), schema, reads_only: false }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenFinding {
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<u32>,
    what: String,
    #[serde(default)]
    minor: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictArguments {
    #[serde(default)]
    notes: String,
    #[serde(default)]
    findings: Vec<GivenFinding>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenAnswer {
    finding: u32,
    fixed: bool,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenTask {
    title: String,
    #[serde(default)]
    spec: Option<String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    tests: Option<String>,
}

/// Returns the call that the arguments of a tool stand for, or what is wrong with them.
fn call_of(tool: AttemptTool, arguments: &Value) -> Result<RecordedCall, String> {
    let none = json!({});
    let arguments = if arguments.is_null() { &none } else { arguments };
    if arguments.to_string().len() > LONGEST {
        return Err(format!("the arguments are longer than {} KiB: give only what is needed", LONGEST >> 10));
    }
    match tool {
        AttemptTool::Approve => decision(Decision::Approve, read(arguments)?),
        AttemptTool::Reject => decision(Decision::Reject, read(arguments)?),
        AttemptTool::Submit => {
            let VerdictArguments { notes, findings } = read(arguments)?;
            if findings.is_empty() {
                Ok(RecordedCall::decision(Decision::Submit, &notes))
            } else {
                Err("`findings` are for judges".into())
            }
        }
        AttemptTool::Dispute | AttemptTool::Skip => {
            let Reason { reason } = read(arguments)?;
            let reason = not_blank("reason", &reason)?;
            let decision = if tool == AttemptTool::Skip { Decision::Skip } else { Decision::Dispute };
            Ok(RecordedCall::decision(decision, reason))
        }
        AttemptTool::Answer => {
            let GivenAnswer { finding, fixed, text } = read(arguments)?;
            let words = one_line("text", &text)?;
            if finding == 0 {
                return Err("`finding` is a number from 1".into());
            }
            Ok(RecordedCall::Answer { answer: Answer { finding, fixed, words } })
        }
        AttemptTool::ProposeTask => {
            let GivenTask { title, spec, after, tests } = read(arguments)?;
            if title.trim().is_empty() || title.contains('\n') {
                return Err("`title` is one line".into());
            }
            Ok(RecordedCall::Task { task: ProposedTask::new(title, spec, after, tests) })
        }
    }
}

fn read<'a, T: Deserialize<'a>>(arguments: &'a Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("the arguments cannot be read: {error}"))
}

fn not_blank<'a>(name: &str, text: &'a str) -> Result<&'a str, String> {
    if text.trim().is_empty() { Err(format!("`{name}` is empty")) } else { Ok(text.trim()) }
}

/// Returns a text as one line.
fn one_line(name: &str, text: &str) -> Result<String, String> {
    Ok(not_blank(name, text)?.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn decision(verdict: Decision, given: VerdictArguments) -> Result<RecordedCall, String> {
    let VerdictArguments { notes, findings } = given;
    if findings.len() > MOST_FINDINGS {
        return Err(format!("at most {MOST_FINDINGS} findings, the worst first"));
    }
    let findings: Vec<Finding> = findings.into_iter().map(finding).collect::<Result<_, _>>()?;
    let is_minor = |finding: &Finding| finding.severity == Severity::Minor;
    match verdict {
        Decision::Approve if !findings.iter().all(is_minor) => {
            Err("an approval has only findings with `minor`: true; call reject if something has to be fixed".into())
        }
        Decision::Reject if findings.is_empty() && notes.trim().is_empty() => {
            Err("a rejection needs at least one finding: what has to be fixed?".into())
        }
        _ => Ok(RecordedCall::Decision { verdict, notes: notes.trim().into(), findings }),
    }
}

fn finding(given: GivenFinding) -> Result<Finding, String> {
    let severity = if given.minor { Severity::Minor } else { Severity::Blocking };
    let file = given.file.map(|file| file.split_whitespace().collect::<Vec<_>>().join(" "));
    let file = file.filter(|file| !file.is_empty());
    Ok(Finding { title: one_line("what", &given.what)?, file, line: given.line, rule: None, severity })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Role;

    fn refused(tool: AttemptTool, arguments: &Value) -> String {
        call_of(tool, arguments).unwrap_err()
    }

    #[test]
    fn findings_are_arguments_of_their_own() {
        let arguments = json!({ "findings": [
            { "file": "src/a.rs", "line": 3, "what": "leaks\nalways" },
            { "what": "no test", "minor": true },
        ]});
        let Ok(RecordedCall::Decision { verdict, findings, notes }) = call_of(AttemptTool::Reject, &arguments) else {
            panic!("a reject with findings is recorded")
        };
        assert_eq!((verdict, notes.as_str()), (Decision::Reject, ""));
        assert_eq!((findings[0].title.as_str(), findings[0].line), ("leaks always", Some(3)));
        assert_eq!(findings[1].severity, Severity::Minor);
    }

    #[test]
    fn arguments_that_say_too_little_or_too_much_are_refused_in_words() {
        assert!(refused(AttemptTool::Reject, &json!({})).contains("at least one finding"));
        assert!(refused(AttemptTool::Reject, &json!({ "findings": [{ "what": " " }] })).contains("`what` is empty"));
        let blocking = json!({ "findings": [{ "what": "leaks" }] });
        assert!(refused(AttemptTool::Approve, &blocking).contains("call reject"));
        assert!(refused(AttemptTool::Approve, &json!({ "score": 1 })).contains("unknown field `score`"));
        assert!(refused(AttemptTool::Dispute, &json!({})).contains("missing field `reason`"));
        assert!(refused(AttemptTool::Answer, &json!({ "finding": 0, "fixed": true, "text": "t" })).contains("from 1"));
        assert!(refused(AttemptTool::ProposeTask, &json!({ "title": "a\nb" })).contains("one line"));
        assert!(refused(AttemptTool::Submit, &json!({ "notes": "x".repeat(LONGEST) })).contains("64 KiB"));
    }

    #[test]
    fn the_tools_of_a_role_take_less_than_two_kilobytes_of_a_request() {
        for (role, proposes) in [(Role::Judge, false), (Role::Worker, false), (Role::Worker, true)] {
            let schema =
                |tool: &AttemptTool| described(*tool).schema.to_string().len() + described(*tool).description.len();
            let bytes: usize = tools_of(role, proposes).iter().map(schema).sum();
            assert!(bytes < 2_000, "{bytes}");
        }
    }
}
