//! Limits on how much gathered text goes into a prompt: one per value and one for all, in Unicode scalar values.

use super::render::{TemplateError, Value};
use indexmap::IndexMap;

/// The limit of each value, in characters.
const EACH: [(&str, usize); 11] = [
    ("source_file_content", 10_000),
    ("spec", 10_000),
    ("agents_md_content", 5_000),
    ("git_diff_output", 20_000),
    ("relevant_files_summary", 10_000),
    ("reviewer_notes", 20_000),
    ("feedback", 20_000),
    ("issues", 20_000),
    ("diagnostics", 8_000),
    ("git_status_output", 4_000),
    ("modified_files_list", 4_000),
];
/// The limit of all values and the template together, in characters.
const ALL: usize = 50_000;
/// The values that are cut, in this order, when all together exceed the limit. Instructions are never cut.
const GIVES_WAY: [&str; 5] =
    ["relevant_files_summary", "agents_md_content", "git_diff_output", "source_file_content", "spec"];

/// A text that may have been cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCut<'a> {
    /// The text that is left.
    pub text: &'a str,
    /// Whether anything was cut.
    pub is_cut: bool,
}

/// Returns at most `most` characters, up to the end of a line if there is one in the second half.
#[must_use]
pub fn cut(text: &str, most: usize) -> TemplateCut<'_> {
    let Some((end, _)) = text.char_indices().nth(most) else { return TemplateCut { text, is_cut: false } };
    let whole = &text[..end];
    let line = whole.rfind('\n').map(|newline| newline + 1).filter(|line| *line > end / 2);
    TemplateCut { text: &whole[..line.unwrap_or(end)], is_cut: true }
}

/// Cuts gathered values to their limits, then cuts more of them, in order, until all fit together. `fixed` is the
/// number of characters in the template. `whole` returns where the full text of a value is.
///
/// # Errors
/// When the parts that cannot be cut exceed the limit.
pub fn fit(
    gathered: &mut IndexMap<String, Value>,
    fixed: usize,
    whole: &dyn Fn(&str) -> String,
) -> Result<(), TemplateError> {
    for (name, value) in gathered.iter_mut() {
        if let Some((_, most)) = EACH.iter().find(|(known, _)| known == name) {
            shorten(value, *most, &whole(name));
        }
    }
    let length = |value: &Value| value.text.chars().count();
    let mut sum = fixed + gathered.values().map(length).sum::<usize>();
    for name in GIVES_WAY {
        if sum <= ALL {
            return Ok(());
        }
        if let Some(value) = gathered.get_mut(name) {
            let before = length(value);
            shorten(value, before.saturating_sub(sum - ALL), &whole(name));
            sum = sum - before + length(value);
        }
    }
    if sum <= ALL { Ok(()) } else { Err(TemplateError::ContextTooLarge(fixed)) }
}

fn shorten(value: &mut Value, most: usize, whole: &str) {
    let cut = cut(&value.text, most);
    if cut.is_cut {
        *value =
            Value { text: cut.text.to_string(), note: Some(format!("[Content truncated. Full file at: {whole}]")) };
    }
}
