//! Reads structured output: lines of JSON from any backend. Unknown lines are skipped, and malformed lines are shown as
//! text. Nothing in them can fail a run.

use super::dialects::{Claude, Codex, Copilot, Custom, Dialect, Gemini, Opencode, Pi};
use super::output::{Format, Report, Usage};
use crate::chain::OutputRules;
use serde_json::Value;
use std::fmt::Debug;

/// The longest line that is read, in bytes, so that memory stays bounded. The longest line seen has 3 MB.
const LONGEST_LINE: usize = 32 << 20;
/// The largest buffer that is kept after a line, in bytes.
const KEPT_BUFFER: usize = 1 << 20;

/// Reads the standard output of one attempt in a structured format. The bytes may arrive in pieces of any size.
#[derive(Debug)]
pub struct Reader {
    line: Vec<u8>,
    given_up: bool,
    /// Whether all of the output is one value.
    is_whole: bool,
    dialect: Box<dyn Dialect>,
    report: Report,
}

impl Reader {
    /// Creates a reader for this format; none for plain text, which is passed on unchanged. `rules` describe a format
    /// that is not known.
    #[must_use]
    pub fn new(format: Format, rules: Option<&OutputRules>) -> Option<Self> {
        let dialect: Box<dyn Dialect> = match format {
            Format::Plain => return None,
            Format::Custom => Box::new(Custom::new(rules.cloned().unwrap_or_default())),
            Format::ClaudeStream => Box::<Claude>::default(),
            Format::CodexJson => Box::<Codex>::default(),
            Format::GeminiStream => Box::<Gemini>::default(),
            Format::OpencodeJson => Box::<Opencode>::default(),
            Format::PiJson => Box::<Pi>::default(),
            Format::CopilotJson => Box::<Copilot>::default(),
        };
        let is_whole = rules.is_some_and(|rules| rules.whole && format == Format::Custom);
        Some(Self { line: Vec::new(), given_up: false, is_whole, dialect, report: Report::default() })
    }

    /// Reads the next bytes and passes the text for people to `show`.
    pub fn feed(&mut self, bytes: &[u8], show: &mut dyn FnMut(&str)) {
        let mut rest = bytes;
        if self.is_whole {
            return self.extend(rest);
        }
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            self.extend(&rest[..newline]);
            self.end_line(show);
            rest = &rest[newline + 1..];
        }
        self.extend(rest);
    }

    /// Returns the usage that was reported so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.report.usage
    }

    /// Returns the final message, once there is one.
    #[must_use]
    pub fn final_message(&self) -> Option<&str> {
        self.report.final_message.as_deref()
    }

    /// Whether the last output says only that the program is waiting for its service.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.report.waits
    }

    /// Ends the stream and returns everything that was read.
    #[must_use]
    pub fn finish(mut self, show: &mut dyn FnMut(&str)) -> Report {
        self.end_line(show);
        self.dialect.end(&mut self.report);
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
            show("[a line of more than 32 MiB is not shown; it is in the transcript]\n");
        }
        let line = std::mem::take(&mut self.line);
        if !line.trim_ascii().is_empty() && !self.dialect.skips(&line) {
            match parsed(&line).filter(|value| self.is_whole || value.is_object()) {
                Some(event) => {
                    self.report.waits = false;
                    self.dialect.event(&event, &mut self.report, show);
                }
                None => show(&(String::from_utf8_lossy(&line).into_owned() + "\n")),
            }
        }
        if line.capacity() <= KEPT_BUFFER {
            self.line = line;
            self.line.clear();
        }
    }
}

/// Parses the value in a line. Output of JavaScript programs that JSON forbids is repaired once: lone surrogates,
/// invalid UTF-8, a byte order mark.
fn parsed(line: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Value>(line).ok().or_else(|| {
        let text = String::from_utf8_lossy(line);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        serde_json::from_str(&whole_characters(text)).ok()
    })
}

/// Replaces escapes of lone surrogates, such as a single `\ud83d`, by the replacement character.
fn whole_characters(text: &str) -> String {
    let half = |text: &str, low: bool| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        (if low { 0xDC00..0xE000 } else { 0xD800..0xDC00 }).contains(&unit).then_some(6)
    };
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        let escape = &rest[at..];
        let length = match (half(escape, false), half(escape, true)) {
            (Some(_), _) if escape.get(6..).and_then(|next| half(next, true)).is_some() => 12,
            (Some(length), _) | (None, Some(length)) => {
                whole.push_str("\\ufffd");
                rest = &escape[length..];
                continue;
            }
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole + rest
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
