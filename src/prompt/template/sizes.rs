//! How much of what was gathered goes into a prompt (S0-21, C9, C10): limits for each, one for all, in Unicode scalars.

use super::render::{TemplateError, Value};
use indexmap::IndexMap;

/// The most of each value, in characters.
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
/// The most of all of them and the template together.
const ALL: usize = 50_000;
/// What gives way first when all together are too much; instructions never do.
const GIVES_WAY: [&str; 5] =
    ["relevant_files_summary", "agents_md_content", "git_diff_output", "source_file_content", "spec"];

/// A text that was perhaps cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateCut<'a> {
    /// What is left of it.
    pub text: &'a str,
    /// Whether anything is missing.
    pub is_cut: bool,
}

/// At most so many characters, up to the end of a line where there is one in the second half.
#[must_use]
pub fn cut(text: &str, most: usize) -> TemplateCut<'_> {
    let Some((end, _)) = text.char_indices().nth(most) else { return TemplateCut { text, is_cut: false } };
    let whole = &text[..end];
    let line = whole.rfind('\n').map(|newline| newline + 1).filter(|line| *line > end / 2);
    TemplateCut { text: &whole[..line.unwrap_or(end)], is_cut: true }
}

/// Cuts gathered values to their limits, then, in order, as much as all together need. `fixed` are the characters of the
/// template. `whole` says where all of a value is.
///
/// # Errors
/// When what cannot be cut is too much.
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
