//! Claude Code's `--output-format stream-json --verbose`. Qwen Code's `stream-json` has the same format.

use super::shared::{Dialect, count, say, tool};
use crate::agent::limit_end::LimitEnd;
use crate::agent::output::{Report, Usage, UsageLimit};
use serde_json::Value;

/// The state between two lines.
#[derive(Debug, Default)]
pub(in crate::agent) struct Claude {
    /// The usage of earlier messages.
    earlier: Usage,
    /// The id and usage of the last message, which can be reported in several lines.
    last: Option<(String, Usage)>,
    /// When the limit that was reached ends, in seconds since 1970.
    resets_at: Option<i64>,
    /// Whether a result was the last event.
    over: bool,
    /// The text of the agent's last message; none if the message called a tool.
    text: Option<String>,
    /// Whether a result has reported the total, which later messages do not lower.
    told: bool,
}

impl Dialect for Claude {
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
        if let Some(session) = event["session_id"].as_str() {
            report.session.get_or_insert_with(|| session.to_string());
        }
        if event["type"] == "assistant" && !self.told {
            self.message_usage(&event["message"]);
            if let Some((_, usage)) = self.last.as_ref().filter(|_| event["parent_tool_use_id"].is_null()) {
                report.requested(usage);
            }
            let last = self.last.as_ref().map(|(_, usage)| self.earlier.plus(usage));
            report.usage = last.or(report.usage);
        }
        // Messages of a subagent are for its parent only.
        if !event["parent_tool_use_id"].is_null() {
            return;
        }
        match event["type"].as_str() {
            Some("assistant") => {
                // It continues after a result when its background work is done.
                if std::mem::take(&mut self.over) {
                    report.final_message = None;
                }
                self.text = last_text(&event["message"]["content"]);
                assistant(&event["message"]["content"], show);
            }
            Some("system") => retry(event, report, show),
            Some("result") => self.result(event, report),
            Some("rate_limit_event") => {
                let info = &event["rate_limit_info"];
                if info["status"] == "rejected" {
                    self.resets_at = info["resetsAt"].as_i64();
                    report.usage_limit = Some(UsageLimit { end: self.resets_at.map(LimitEnd::At) });
                }
            }
            _ => {}
        }
    }
}

impl Claude {
    fn message_usage(&mut self, message: &Value) {
        let Some(id) = message["id"].as_str().filter(|_| message["usage"].is_object()) else { return };
        let usage = usage_of(&message["usage"], None);
        match &mut self.last {
            Some((last, known)) if last == id => *known = usage,
            last => {
                if let Some((_, known)) = last.replace((id.to_string(), usage)) {
                    self.earlier = self.earlier.plus(&known);
                }
            }
        }
    }

    fn result(&mut self, event: &Value, report: &mut Report) {
        (self.over, self.told) = (true, true);
        let said = event["result"].as_str();
        report.final_message = said.map(str::to_string);
        // `modelUsage` is the sum of everything, with subagents and earlier results; `usage` is only for this result.
        let cost = event["total_cost_usd"].as_f64();
        match event["modelUsage"].as_object().filter(|models| !models.is_empty()) {
            Some(models) => {
                let sum = models.values().fold(Usage::default(), |sum, model| sum.plus(&usage_by_model(model)));
                report.usage = Some(Usage { cost_usd: cost, ..sum });
            }
            None if event["usage"].is_object() => report.usage = Some(usage_of(&event["usage"], cost)),
            None => {}
        }
        let denials = event["permission_denials"].as_array();
        report.denials.clear();
        for denial in denials.into_iter().flatten() {
            if let Some(name) = denial["tool_name"].as_str() {
                report.deny(name, &denial["tool_input"]);
            }
        }
        // It checks its budget after each message, including the last one.
        let ended = event["subtype"] == "error_max_budget_usd" && event["stop_reason"] == "end_turn";
        if let Some(text) = self.text.take().filter(|_| ended) {
            report.final_message = Some(text);
            report.recover();
            report.over_budget = true;
            return;
        }
        if event["is_error"] == true {
            let first = event["errors"].as_array().and_then(|errors| errors.first()).and_then(Value::as_str);
            let own = event["error"]["message"].as_str();
            let subtype = event["subtype"].as_str().unwrap_or("error");
            let words = said.filter(|said| !said.is_empty()).or(own).or(first).unwrap_or(subtype);
            // A message for its own developers, printed after an interruption.
            let words = if words.starts_with("[ede_diagnostic]") { "it was interrupted" } else { words };
            report.fail(event["api_error_status"].as_u64(), words);
            if let Some(resets_at) = self.resets_at {
                report.usage_limit = Some(UsageLimit { end: Some(LimitEnd::At(resets_at)) });
            }
        } else {
            self.resets_at = None;
            report.recover();
        }
    }
}

fn retry(event: &Value, report: &mut Report, show: &mut dyn FnMut(&str)) {
    let (attempt, most, why) = match event["subtype"].as_str() {
        Some("api_retry") => (&event["attempt"], &event["max_retries"], format!("error {}", event["error_status"])),
        Some("retry") => (&event["data"]["attempt"], &event["data"]["maxRetries"], "an error".into()),
        _ => return,
    };
    report.waits = true;
    show(&format!("[waiting to retry after {why}, attempt {attempt} of {most}]\n"));
}

/// Returns the text of a message, if the message calls no tool.
fn last_text(content: &Value) -> Option<String> {
    let blocks = content.as_array()?;
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    let asks = blocks.iter().any(|block| block["type"] == "tool_use");
    (!asks && !texts.is_empty()).then(|| texts.join("\n"))
}

fn assistant(content: &Value, show: &mut dyn FnMut(&str)) {
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => say(block["text"].as_str().unwrap_or_default(), show),
            Some("tool_use") => tool(block["name"].as_str().unwrap_or("tool"), &block["input"], show),
            _ => {}
        }
    }
}

fn usage_by_model(model: &Value) -> Usage {
    Usage {
        input_tokens: count(model, "inputTokens"),
        output_tokens: count(model, "outputTokens"),
        cache_read_tokens: count(model, "cacheReadInputTokens"),
        cache_write_tokens: count(model, "cacheCreationInputTokens"),
        cost_usd: None,
    }
}

fn usage_of(usage: &Value, cost_usd: Option<f64>) -> Usage {
    let (input, output) = (count(usage, "input_tokens"), count(usage, "output_tokens"));
    let cached = count(usage, "cache_read_input_tokens");
    // Qwen Code includes cached tokens in its input and reports a total, which reveals this. Claude Code does neither.
    let is_included = usage["total_tokens"].as_u64() == Some(input.saturating_add(output));
    Usage {
        input_tokens: if is_included { input.saturating_sub(cached) } else { input },
        output_tokens: output,
        cache_read_tokens: cached,
        cache_write_tokens: count(usage, "cache_creation_input_tokens"),
        cost_usd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_last_message_counts_although_it_cost_more_than_was_left() {
        let over = |stop: &str| {
            let said =
                json!({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Done."}]}});
            let end = json!({"type": "result", "subtype": "error_max_budget_usd", "stop_reason": stop, "is_error": true,
                             "errors": ["Reached maximum budget ($1)"], "total_cost_usd": 3.0});
            let (mut claude, mut report) = (Claude::default(), Report::default());
            for event in [said, end] {
                claude.event(&event, &mut report, &mut |_| {});
            }
            (report.final_message, report.over_budget, report.error.is_some())
        };
        assert_eq!(over("end_turn"), (Some("Done.".into()), true, false));
        assert_eq!(over("tool_use"), (None, false, true));
    }

    #[test]
    fn input_from_the_cache_is_counted_once() {
        let qwen = json!({"input_tokens": 24122, "cache_read_input_tokens": 20111, "output_tokens": 711, "total_tokens": 24833});
        let usage = usage_of(&qwen, None);
        assert_eq!((usage.input_tokens, usage.cache_read_tokens, usage.output_tokens), (4011, 20111, 711));
        let claude = json!({"input_tokens": 10, "cache_read_input_tokens": 20111, "output_tokens": 711});
        assert_eq!(usage_of(&claude, None).input_tokens, 10);
    }
}
