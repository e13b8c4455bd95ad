//! Claude Code's `--output-format stream-json --verbose`: one JSON object a line. Unknown lines are passed over, broken
//! ones are shown as text; nothing in them can fail a run.

use super::output::{Report, Usage};
use serde_json::Value;

/// A longer line is given up, so that memory stays bounded; the longest seen is 3 MB.
const LONGEST_LINE: usize = 32 << 20;

/// The state between two chunks.
#[derive(Debug, Default)]
pub(super) struct ClaudeReader {
    line: Vec<u8>,
    given_up: bool,
    report: Report,
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
        self.report
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
            _ => {}
        }
    }

    fn result(&mut self, event: &Value) {
        let said = event["result"].as_str();
        self.report.final_message = said.map(str::to_string);
        let count = |key: &str| event["usage"][key].as_u64().unwrap_or(0);
        self.report.usage = event["usage"].is_object().then(|| Usage {
            input_tokens: count("input_tokens"),
            output_tokens: count("output_tokens"),
            cache_read_tokens: count("cache_read_input_tokens"),
            cache_write_tokens: count("cache_creation_input_tokens"),
            cost_usd: event["total_cost_usd"].as_f64(),
        });
        let denials = event["permission_denials"].as_array();
        let tools = denials.into_iter().flatten().filter_map(|denial| denial["tool_name"].as_str());
        self.report.denials = tools.map(str::to_string).collect();
        if event["is_error"] == true {
            let subtype = event["subtype"].as_str().unwrap_or("error");
            let errors = event["errors"].as_array().and_then(|errors| errors.first()).and_then(Value::as_str);
            self.report.error = Some(said.filter(|said| !said.is_empty()).or(errors).unwrap_or(subtype).to_string());
        }
    }
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
