//! What all of them have in common.

use crate::agent::output::Report;
use serde_json::Value;
use std::fmt::Debug;

/// What a program means by its lines.
pub(in crate::agent) trait Dialect: Debug {
    /// Whether a line is passed over without being read: a repetition that could be long.
    fn skips(&self, _line: &[u8]) -> bool {
        false
    }

    /// Takes one line, an object.
    fn event(&mut self, event: &Value, report: &mut Report, show: &mut dyn FnMut(&str));

    /// The stream is over, perhaps before its time.
    fn end(&mut self, _report: &mut Report) {}
}

/// Text of the agent, as whole lines.
pub(super) fn say(text: &str, show: &mut dyn FnMut(&str)) {
    if !text.is_empty() {
        show(text);
        if !text.ends_with('\n') {
            show("\n");
        }
    }
}

/// A tool call in one line.
pub(super) fn tool(name: &str, input: &Value, show: &mut dyn FnMut(&str)) {
    show(&format!("[{name}] {}\n", gist(input)));
}

/// One line of a tool call's input: what it is about, shortened.
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

/// The number of this key; 0 without one.
pub(super) fn count(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or(0)
}
