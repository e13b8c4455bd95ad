//! Front matter: a few `key: value` lines between two lines of three dashes.

use super::errors;
use super::parse::Syntax;
use crate::source::{Diagnostic, Place, Source, nearest};
use std::sync::Arc;

const KEYS: [&str; 2] = ["description", "syntax"];

/// The front matter of a file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) description: Option<String>,
    pub(super) syntax: Option<Syntax>,
    /// Where the text after it starts, in bytes.
    pub(super) end: usize,
}

/// Parses the front matter of a file.
///
/// # Errors
/// Unknown keys and values, and front matter that is never closed.
pub(super) fn front(source: &Arc<Source>) -> Result<FrontMatter, Vec<Diagnostic>> {
    let text = &source.text;
    let Some(after) = text.strip_prefix("---\n") else { return Ok(FrontMatter::default()) };
    let (mut front, mut faults, mut at) = (FrontMatter::default(), Vec::new(), 4);
    for line in after.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        if line.trim_end() == "---" {
            front.end = at;
            return if faults.is_empty() { Ok(front) } else { Err(faults) };
        }
        let place = Place::new(source, span);
        match line.split_once(':').map(|(key, value)| (key.trim(), value.trim().trim_matches(['"', '\'']))) {
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            Some(("description", value)) => front.description = Some(value.to_string()),
            Some(("syntax", "mustache")) => front.syntax = Some(Syntax::Mustache),
            Some(("syntax", "braces")) => front.syntax = Some(Syntax::Braces),
            Some(("syntax", value)) => faults.push(errors::unknown_syntax(&place, value)),
            Some((key, _)) => faults.push(errors::unknown_front_key(&place, key, nearest(key, KEYS))),
            None => faults.push(errors::unknown_front_key(&place, line.trim(), None)),
        }
    }
    Err(vec![errors::unclosed_front(&Place::new(source, 0..3))])
}
