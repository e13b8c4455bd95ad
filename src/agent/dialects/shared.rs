//! What all output formats have in common.

use crate::agent::output::Report;
use serde_json::Value;
use std::fmt::Debug;

/// A structured output format.
pub(in crate::agent) trait Dialect: Debug {
    /// Whether a line is skipped without parsing, because it repeats others and can be long.
    fn skips(&self, _line: &[u8]) -> bool {
        false
    }

    /// Handles one line, which is a JSON object.
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str));

    /// Handles the end of the stream, which may be premature.
    fn end(&mut self, _report: &mut Report) {}
}

/// Shows text of the agent as whole lines.
pub(super) fn say(text: &str, show: &mut dyn FnMut(&str)) {
    if !text.is_empty() {
        show(text);
        if !text.ends_with('\n') {
            show("\n");
        }
    }
}

/// Shows a tool call in one line.
pub(super) fn tool(name: &str, input: &Value, show: &mut dyn FnMut(&str)) {
    show(&format!("[{name}] {}\n", gist(input)));
}

/// Returns the most telling line of a tool call's input, shortened.
fn gist(input: &Value) -> String {
    const WIDTH: usize = 100;
    let telling =
        ["command", "file_path", "filePath", "path", "pattern", "description", "prompt", "url", "query", "content"];
    let text = telling.iter().find_map(|key| input[key].as_str()).or(input.as_str()).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(WIDTH) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None if text.lines().count() > 1 => format!("{line} …"),
        None => line.to_string(),
    }
}

/// Returns the number at this key, or 0 if there is none.
pub(super) fn count(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or(0)
}
