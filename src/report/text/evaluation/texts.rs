//! The output of a case, next to what was expected.

use crate::engine::CaseResult;
use crate::report::paint::{Paint, printable};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// At most this many lines of a text are shown, and at most this many characters of a line.
const LINES: usize = 12;
const CHARACTERS: usize = 160;

/// The texts of cases, as far as they are known.
#[derive(Debug, Default)]
pub struct CaseTexts {
    /// The outputs, by generation, id and repetition.
    pub outputs: HashMap<(u32, Arc<str>, u32), String>,
    /// The expected outputs, by id.
    pub expected: HashMap<Arc<str>, String>,
}

impl CaseTexts {
    /// Returns what was expected of a case, and its output.
    pub(super) fn of(&self, result: &CaseResult, paint: Paint) -> String {
        let key = (result.generation, result.case.clone(), result.repetition);
        let texts = [("expected", self.expected.get(&result.case)), ("output", self.outputs.get(&key))];
        let mut shown = String::new();
        for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text?))) {
            let _ = writeln!(shown, "    {}", paint.dim(&format!("{name}:")));
            let lines: Vec<&str> = text.trim_end().lines().collect();
            for line in lines.iter().take(LINES) {
                let line: String = match line.char_indices().nth(CHARACTERS) {
                    Some((end, _)) => format!("{}…", &line[..end]),
                    None => (*line).to_string(),
                };
                let _ = writeln!(shown, "      {}", printable(&line));
            }
            if lines.len() > LINES {
                let _ = writeln!(shown, "      {}", paint.dim(&format!("and {} more lines", lines.len() - LINES)));
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened() {
        let long = format!("{}\n", "x".repeat(200)).repeat(14);
        let texts = CaseTexts { expected: [("a".into(), long)].into(), ..CaseTexts::default() };
        let result = CaseResult {
            generation: 0,
            case: "a".into(),
            repetition: 1,
            held_out: false,
            pass: false,
            score: 0.0,
            closeness: None,
            judged_by: crate::engine::JudgedBy::Criteria,
            remarks: crate::engine::Remarks::default(),
            cached: false,
            answer: None,
            cost_usd: None,
            took_ms: None,
        };
        let shown = texts.of(&result, Paint::plain());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines[0], lines.len(), lines[13]), ("    expected:", 14, "      and 2 more lines"));
        assert_eq!(lines[1].chars().count(), 6 + 160 + 1);
    }
}
