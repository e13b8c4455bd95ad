//! `pi --mode json`. It repeats the whole message in every update, so those lines are skipped.

use super::shared::{Dialect, count, say, tool};
use crate::agent::output::{Report, Usage};
use serde_json::Value;

/// The state between two lines.
#[derive(Debug, Default)]
pub(in crate::agent) struct Pi;

impl Dialect for Pi {
    fn skips(&self, line: &[u8]) -> bool {
        [&b"{\"type\":\"message_update\""[..], b"{\"type\":\"turn_end\"", b"{\"type\":\"agent_end\""]
            .iter()
            .any(|start| line.starts_with(start))
    }

    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        match event["type"].as_str() {
            Some("session") => report.session = event["id"].as_str().map(str::to_string),
            Some("message_end") if event["message"]["role"] == "assistant" => message(&event["message"], report, show),
            Some("auto_retry_start") => {
                report.waits = true;
                let (attempt, most) = (&event["attempt"], &event["maxAttempts"]);
                let why = event["errorMessage"].as_str().unwrap_or("an error");
                show(&format!("[pi is waiting to retry after {why}, attempt {attempt} of {most}]\n"));
            }
            _ => {}
        }
    }
}

fn message(message: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
    let mut said = String::new();
    for block in message["content"].as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => {
                let text = block["text"].as_str().unwrap_or_default();
                say(text, show);
                said.push_str(text);
            }
            Some("toolCall") => tool(block["name"].as_str().unwrap_or("tool"), &block["arguments"], show),
            _ => {}
        }
    }
    if message["usage"].is_object() {
        report.add(&usage_of(&message["usage"]));
    }
    match message["stopReason"].as_str() {
        // It exits with code 0 even so.
        Some("error" | "aborted") => {
            report.fail(None, message["errorMessage"].as_str().unwrap_or("it was aborted"));
        }
        Some("toolUse") => report.recover(),
        _ => {
            report.recover();
            report.final_message = Some(said);
        }
    }
}

/// Converts the usage of one message. Messages are added up.
fn usage_of(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(usage, "input"),
        output_tokens: count(usage, "output"),
        cache_read_tokens: count(usage, "cacheRead"),
        cache_write_tokens: count(usage, "cacheWrite"),
        cost_usd: usage["cost"]["total"].as_f64(),
    }
}
