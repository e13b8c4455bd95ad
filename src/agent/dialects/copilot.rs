//! `copilot --output-format json`. It reports neither tokens nor cost.

use super::shared::{Dialect, say, tool};
use crate::agent::output::{Report, ToolCall};
use serde_json::Value;

/// The state between two lines.
#[derive(Debug, Default)]
pub(in crate::agent) struct Copilot {
    /// The last text, unless a tool call has followed it.
    text: Option<String>,
    /// Tool calls by id.
    tools: Vec<ToolCall>,
}

impl Dialect for Copilot {
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        let data = &event["data"];
        let word = |key: &str| data[key].as_str().unwrap_or_default().to_string();
        // Messages of a subagent are for its parent only.
        if data["parentToolCallId"].is_string() {
            return;
        }
        match event["type"].as_str() {
            Some("assistant.message") => {
                let text = word("content");
                say(&text, show);
                let calls = data["toolRequests"].as_array().is_some_and(|calls| !calls.is_empty());
                self.text = Some(text).filter(|_| !calls);
            }
            Some("tool.execution_start") => {
                tool(&word("toolName"), &data["arguments"], show);
                self.tools.push((word("toolCallId"), word("toolName"), data["arguments"].clone()));
            }
            Some("tool.execution_complete") if data["success"] == false => self.failed_tool(data, report),
            Some("assistant.turn_retry") => {
                report.waits = true;
                show(&format!("[copilot is waiting to retry after {}]\n", word("reason")));
            }
            Some("session.error") => report.fail(data["statusCode"].as_u64(), &word("message")),
            Some("result") => {
                report.session = event["sessionId"].as_str().map(str::to_string);
                if event["exitCode"] == 0 {
                    report.recover();
                }
                report.final_message = self.text.take();
            }
            _ => {}
        }
    }
}

impl Copilot {
    fn failed_tool(&self, data: &Value, report: &mut Report) {
        let id = data["toolCallId"].as_str().unwrap_or_default();
        let words = format!("{} {}", data["error"], data["result"]).to_ascii_lowercase();
        if words.contains("denied") || words.contains("permission") {
            report.deny_call(&self.tools, id);
        }
    }
}
