//! The grammar's NAME: parts of ASCII letters, digits, `_`, `.` and `-`, joined by `:`. The last of several parts is
//! never a number.

use crate::source::Span;

/// What is wrong with a name, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameError {
    /// The name, or a part of it, is empty.
    Empty(Span),
    /// A part starts with something other than a letter or digit.
    Start(Span, char),
    /// A part contains a character that names cannot have.
    Character(Span, char),
    /// The name ends in `:digits`, which is always a count.
    EndsInCount(Span),
}

/// Checks a whole name (`tasks:manager`).
///
/// # Errors
/// The first error in the name.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let mut start = 0;
    let mut last = "";
    for part in name.split(':') {
        check_part(part, start)?;
        start += part.len() + 1;
        last = part;
    }
    if name.contains(':') && is_digits(last) {
        return Err(NameError::EndsInCount(name.len() - last.len()..name.len()));
    }
    Ok(())
}

/// Checks one PART that begins at `offset` of a longer text.
pub(super) fn check_part(part: &str, offset: usize) -> Result<(), NameError> {
    for (index, character) in part.char_indices() {
        let span = offset + index..offset + index + character.len_utf8();
        if index == 0 && !character.is_ascii_alphanumeric() {
            return Err(NameError::Start(span, character));
        }
        if !(character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-')) {
            return Err(NameError::Character(span, character));
        }
    }
    if part.is_empty() {
        return Err(NameError::Empty(offset..offset));
    }
    Ok(())
}

/// Whether a text consists of digits, as a COUNT does.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the last part of an unknown name was probably meant as a count: `a:1.5`, `a:3x`.
#[must_use]
pub fn looks_like_a_count(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, last)| last.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_original_and_of_the_grammar_are_accepted() {
        for name in ["a", "fk:builder", "tasks:manager", "a.b", "a_b-c", "9lives", "git:fix", "a:1.5", "A:b:c"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_fault_says_where_it_is() {
        assert_eq!(check_name(""), Err(NameError::Empty(0..0)));
        assert_eq!(check_name("a:"), Err(NameError::Empty(2..2)));
        assert_eq!(check_name("_a"), Err(NameError::Start(0..1, '_')));
        assert_eq!(check_name("é"), Err(NameError::Start(0..2, 'é')));
        assert_eq!(check_name("a:/b"), Err(NameError::Start(2..3, '/')));
        assert_eq!(check_name("a b"), Err(NameError::Character(1..2, ' ')));
        assert_eq!(check_name("a:12"), Err(NameError::EndsInCount(2..4)));
    }
}
