//! `codex exec --json`.

use super::shared::{Dialect, count, say, tool};
use crate::agent::output::{Report, Usage};
use serde_json::Value;

/// The state between two lines.
#[derive(Debug, Default)]
pub(in crate::agent) struct Codex {
    /// The last message of the agent, unless work has followed it.
    text: Option<String>,
}

impl Dialect for Codex {
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        match event["type"].as_str() {
            Some("thread.started") => report.session = event["thread_id"].as_str().map(str::to_string),
            Some("item.started") => self.started(&event["item"], show),
            Some("item.completed") => self.completed(&event["item"], report, show),
            // A message while it retries; the final error is in `turn.failed`.
            Some("error") => {
                let words = event["message"].as_str().unwrap_or_default();
                report.waits = words.starts_with("Reconnecting");
                show(&format!("[codex: {words}]\n"));
            }
            Some("turn.completed") => {
                report.recover();
                report.final_message = self.text.take();
                report.add(&usage_of(&event["usage"]));
            }
            Some("turn.failed") => report.fail(None, &plain(&event["error"]["message"])),
            _ => {}
        }
    }
}

impl Codex {
    fn started(&mut self, item: &Value, show: &mut dyn FnMut(&str)) {
        match item["type"].as_str() {
            Some("command_execution") => tool("shell", item, show),
            Some("mcp_tool_call") => tool(item["tool"].as_str().unwrap_or("tool"), &item["arguments"], show),
            Some("web_search") => tool("web_search", item, show),
            _ => return,
        }
        self.text = None;
    }

    fn completed(&mut self, item: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        match item["type"].as_str() {
            Some("agent_message") => {
                let text = item["text"].as_str().unwrap_or_default();
                say(text, show);
                self.text = Some(text.to_string());
            }
            Some("file_change") => {
                for change in item["changes"].as_array().into_iter().flatten() {
                    tool(change["kind"].as_str().unwrap_or("change"), change, show);
                }
                self.text = None;
                deny(item, "edit", report);
            }
            Some("command_execution") => deny(item, "shell", report),
            // Warnings are reported this way too.
            Some("error") => show(&format!("[codex: {}]\n", item["message"].as_str().unwrap_or_default())),
            _ => {}
        }
    }
}

fn deny(item: &Value, tool: &str, report: &mut Report) {
    if item["status"] == "declined" {
        report.deny(tool, item);
    }
}

/// Returns the message of an error. Messages of the service are JSON in a string.
fn plain(message: &Value) -> String {
    let words = message.as_str().unwrap_or("it failed without a message");
    let inner = serde_json::from_str::<Value>(words).ok();
    inner.as_ref().and_then(|inner| inner["error"]["message"].as_str()).unwrap_or(words).to_string()
}

/// Converts a usage report. Its input includes cached tokens, and its output includes reasoning.
fn usage_of(usage: &Value) -> Usage {
    let (read, write) = (count(usage, "cached_input_tokens"), count(usage, "cache_write_input_tokens"));
    Usage {
        input_tokens: count(usage, "input_tokens").saturating_sub(read).saturating_sub(write),
        output_tokens: count(usage, "output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: write,
        cost_usd: None,
    }
}
