//! Claude Code's `--output-format stream-json --verbose`: one JSON object a line. Unknown lines are passed over, broken
//! ones are shown as text; nothing in them can fail a run.

use super::output::{Report, Usage, UsageLimit};
use serde_json::Value;

/// A longer line is given up, so that memory stays bounded; the longest seen is 3 MB.
const LONGEST_LINE: usize = 32 << 20;

/// The state between two chunks.
#[derive(Debug, Default)]
pub(super) struct ClaudeReader {
    line: Vec<u8>,
    given_up: bool,
    report: Report,
    /// What earlier messages used, and the last one with its id: a message is told in several lines.
    earlier: Usage,
    last: Option<(String, Usage)>,
    /// The end of a limit that was met, in seconds after 1970.
    resets_at: Option<i64>,
}

impl ClaudeReader {
    pub(super) fn feed(&mut self, bytes: &[u8], show: &mut dyn FnMut(&str)) {
        let mut rest = bytes;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..newline]);
            self.end_line(show);
            rest = &rest[newline + 1..];
        }
        self.extend(rest);
    }

    pub(super) fn finish(mut self, show: &mut dyn FnMut(&str)) -> Report {
        self.end_line(show);
        self.report.usage = self.usage();
        self.report
    }

    /// The result's own sum, else that of the messages so far, whose cost nobody says.
    pub(super) fn usage(&self) -> Option<Usage> {
        let last = self.last.as_ref().map(|(_, usage)| self.earlier.plus(usage));
        self.report.usage.or(last)
    }

    pub(super) fn final_message(&self) -> Option<&str> {
        self.report.final_message.as_deref()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() > LONGEST_LINE {
            self.given_up = true;
            self.line.clear();
        }
        if !self.given_up {
            self.line.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self, show: &mut dyn FnMut(&str)) {
        if std::mem::take(&mut self.given_up) {
            show("[a line of more than 32 MiB is not shown; it is in the log]\n");
        }
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(event) if event.is_object() => self.event(&event, show),
            _ => show(&(String::from_utf8_lossy(&line).into_owned() + "\n")),
        }
        // The buffer is kept for the next line, unless this one was of unusual size.
        if line.capacity() <= 1 << 20 {
            self.line = line;
            self.line.clear();
        }
    }

    fn event(&mut self, event: &Value, show: &mut dyn FnMut(&str)) {
        if let Some(session) = event["session_id"].as_str() {
            self.report.session.get_or_insert_with(|| session.to_string());
        }
        if event["type"] == "assistant" {
            self.message_usage(&event["message"]);
        }
        // A sub-agent's words are its parent's business.
        if !event["parent_tool_use_id"].is_null() {
            return;
        }
        match event["type"].as_str() {
            Some("assistant") => assistant(&event["message"]["content"], show),
            Some("system") if event["subtype"] == "api_retry" => {
                show(&format!(
                    "[claude waits: error {}, attempt {} of {}]\n",
                    event["error_status"], event["attempt"], event["max_retries"]
                ));
            }
            Some("result") => self.result(event),
            Some("rate_limit_event") => self.rate_limit(&event["rate_limit_info"]),
            _ => {}
        }
    }

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

    fn rate_limit(&mut self, info: &Value) {
        if info["status"] == "rejected" {
            self.resets_at = info["resetsAt"].as_i64();
            self.report.usage_limit = Some(UsageLimit { resets_at: self.resets_at });
        }
    }

    fn result(&mut self, event: &Value) {
        let said = event["result"].as_str();
        self.report.final_message = said.map(str::to_string);
        let usage = &event["usage"];
        self.report.usage = usage.is_object().then(|| usage_of(usage, event["total_cost_usd"].as_f64()));
        let denials = event["permission_denials"].as_array();
        let tools = denials.into_iter().flatten().filter_map(|denial| denial["tool_name"].as_str());
        self.report.denials = tools.map(str::to_string).collect();
        if event["is_error"] == true {
            let subtype = event["subtype"].as_str().unwrap_or("error");
            let errors = event["errors"].as_array().and_then(|errors| errors.first()).and_then(Value::as_str);
            let error = said.filter(|said| !said.is_empty()).or(errors).unwrap_or(subtype);
            let limited = matches!(event["api_error_status"].as_u64(), Some(429 | 529)) || said_reset(error).is_some();
            self.report.usage_limit = (limited || self.resets_at.is_some())
                .then(|| UsageLimit { resets_at: self.resets_at.or(said_reset(error)) });
            self.report.error = Some(error.to_string());
        } else {
            // It got past whatever it met.
            (self.report.error, self.report.usage_limit, self.resets_at) = (None, None, None);
        }
    }
}

fn usage_of(usage: &Value, cost_usd: Option<f64>) -> Usage {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Usage {
        input_tokens: count("input_tokens"),
        output_tokens: count("output_tokens"),
        cache_read_tokens: count("cache_read_input_tokens"),
        cache_write_tokens: count("cache_creation_input_tokens"),
        cost_usd,
    }
}

/// The end of a limit as older versions name it: `Claude AI usage limit reached|1753980000`.
fn said_reset(error: &str) -> Option<i64> {
    let (words, seconds) = error.trim().rsplit_once('|')?;
    seconds.parse().ok().filter(|_| words.ends_with("limit reached"))
}

fn assistant(content: &Value, show: &mut dyn FnMut(&str)) {
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => {
                let text = block["text"].as_str().unwrap_or_default();
                show(text);
                if !text.ends_with('\n') {
                    show("\n");
                }
            }
            Some("tool_use") => {
                show(&format!("[{}] {}\n", block["name"].as_str().unwrap_or("tool"), gist(&block["input"])));
            }
            _ => {}
        }
    }
}

/// One line of a tool call's input: what it is about, shortened.
fn gist(input: &Value) -> String {
    const WIDTH: usize = 100;
    let telling = ["command", "file_path", "path", "pattern", "description", "prompt", "url", "query"];
    let text = telling.iter().find_map(|key| input[key].as_str()).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(WIDTH) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None if text.lines().count() > 1 => format!("{line} …"),
        None => line.to_string(),
    }
}

#[cfg(test)]
#[path = "claude_tests.rs"]
mod tests;
