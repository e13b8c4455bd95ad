//! `opencode run --format json`.

use super::shared::{Dialect, count, say, tool};
use crate::agent::output::{Report, Usage};
use serde_json::Value;

/// The state between two lines.
#[derive(Debug, Default)]
pub(in crate::agent) struct Opencode {
    /// The last text, unless a tool call has followed it.
    text: Option<String>,
}

impl Dialect for Opencode {
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        if let Some(session) = event["sessionID"].as_str() {
            report.session.get_or_insert_with(|| session.to_string());
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                say(text, show);
                self.text = Some(text.to_string());
            }
            Some("tool_use") => {
                self.text = None;
                let name = part["tool"].as_str().unwrap_or("tool");
                tool(name, &part["state"]["input"], show);
                let error = part["state"]["error"].as_str().unwrap_or_default();
                if ["rejected permission", "prevents you from using", "permission denied"]
                    .iter()
                    .any(|no| error.contains(no))
                {
                    report.deny(name, &part["state"]["input"]);
                }
            }
            Some("step_finish") => {
                report.add(&usage_of(part));
                report.requested(&usage_of(part));
                if part["reason"] != "tool-calls" {
                    report.recover();
                    report.final_message.clone_from(&self.text);
                }
            }
            Some("error") => {
                let error = &event["error"];
                let words = error["data"]["message"].as_str().or(error["name"].as_str()).unwrap_or("it failed");
                report.fail(error["data"]["statusCode"].as_u64(), words);
            }
            _ => {}
        }
    }
}

/// Converts the usage of one step. Steps are added up.
fn usage_of(part: &Value) -> Usage {
    let tokens = &part["tokens"];
    Usage {
        input_tokens: count(tokens, "input"),
        output_tokens: count(tokens, "output").saturating_add(count(tokens, "reasoning")),
        cache_read_tokens: count(&tokens["cache"], "read"),
        cache_write_tokens: count(&tokens["cache"], "write"),
        cost_usd: part["cost"].as_f64(),
    }
}
