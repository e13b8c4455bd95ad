//! Gemini CLI's `--output-format stream-json`. A message arrives in pieces.

use super::shared::{Dialect, count, tool};
use crate::agent::output::{Report, ToolCall, Usage};
use serde_json::Value;

/// The state between two lines.
#[derive(Debug, Default)]
pub(in crate::agent) struct Gemini {
    /// The text since the last tool call.
    text: String,
    /// Tool calls by id.
    tools: Vec<ToolCall>,
}

impl Dialect for Gemini {
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        match event["type"].as_str() {
            Some("init") => report.session = event["session_id"].as_str().map(str::to_string),
            Some("message") if event["role"] == "assistant" => {
                let text = event["content"].as_str().unwrap_or_default();
                show(text);
                self.text.push_str(text);
            }
            Some("tool_use") => {
                self.end_text(show);
                self.text.clear();
                let word = |key: &str| event[key].as_str().unwrap_or("tool").to_string();
                self.tools.push((word("tool_id"), word("tool_name"), event["parameters"].clone()));
                tool(&word("tool_name"), &event["parameters"], show);
            }
            Some("tool_result") if event["status"] == "error" => self.failed_tool(event, report),
            Some("error") => {
                let words = event["message"].as_str().unwrap_or_default();
                show(&format!("[gemini: {words}]\n"));
            }
            Some("result") => {
                self.end_text(show);
                report.usage = event["stats"].is_object().then(|| usage_of(&event["stats"])).or(report.usage);
                if event["status"] == "error" {
                    report.fail(None, &words_of(event["error"]["message"].as_str().unwrap_or("it failed")));
                } else {
                    report.recover();
                    report.final_message = Some(std::mem::take(&mut self.text));
                }
            }
            _ => {}
        }
    }

    /// Uses the last text if there was no result: Gemini CLI may exit before its last lines are written.
    fn end(&mut self, report: &mut Report) {
        if report.final_message.is_none() && !self.text.is_empty() {
            report.final_message = Some(std::mem::take(&mut self.text));
        }
    }
}

impl Gemini {
    fn end_text(&self, show: &mut dyn FnMut(&str)) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            show("\n");
        }
    }

    fn failed_tool(&self, event: &Value, report: &mut Report) {
        let id = event["tool_id"].as_str().unwrap_or_default();
        let words = format!("{} {}", event["output"], event["error"]).to_ascii_lowercase();
        let refusals = ["denied", "not allowed", "non-interactive", "requires user confirmation", "policy"];
        if refusals.iter().any(|refusal| words.contains(refusal)) {
            report.deny_call(&self.tools, id);
        }
    }
}

/// Returns the message inside `[API Error: {"error":{"message":…}}]`, preceded by its status.
fn words_of(message: &str) -> String {
    let inner = message
        .strip_prefix("[API Error: ")
        .and_then(|rest| rest.split_once("]\n").map(|(inner, _)| inner).or(rest.strip_suffix(']')));
    let Some(inner) = inner else { return message.to_string() };
    match serde_json::from_str::<Value>(inner) {
        Ok(error) => {
            let words = error["error"]["message"].as_str().unwrap_or(inner);
            error["error"]["code"].as_u64().map_or_else(|| words.to_string(), |code| format!("{code} {words}"))
        }
        Err(_) => message.trim_start_matches("[API Error: ").replace("]\n", "\n").trim_end_matches(']').to_string(),
    }
}

/// Converts a usage report. Its input includes cached tokens, and thoughts are only in the total.
fn usage_of(stats: &Value) -> Usage {
    let (input, cached) = (count(stats, "input_tokens"), count(stats, "cached"));
    let output = count(stats, "total_tokens").saturating_sub(input).max(count(stats, "output_tokens"));
    Usage {
        input_tokens: input.saturating_sub(cached),
        output_tokens: output,
        cache_read_tokens: cached,
        cache_write_tokens: 0,
        cost_usd: None,
    }
}
