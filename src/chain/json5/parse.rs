//! Parses JSON and JSON5 into a tree with places.

use super::places::place;
use super::read::DEEPEST;
use super::tree::Node;
use crate::chain::errors;
use crate::source::{Diagnostic, Place, Source, Span};
use std::sync::Arc;

/// The largest file that is parsed, in bytes.
const LARGEST: usize = 1 << 20;

/// Parses a config.
///
/// # Errors
/// The first syntax error, or a source that is too large or nested too deeply.
pub(in crate::chain) fn parse(source: &Arc<Source>) -> Result<Node<'_>, Diagnostic> {
    parse_within(source, LARGEST)
}

/// Parses a source of at most `largest` bytes.
///
/// # Errors
/// The first syntax error, or a source that is too large or nested too deeply.
pub fn parse_within(source: &Arc<Source>, largest: usize) -> Result<Node<'_>, Diagnostic> {
    if source.text.len() > largest {
        return Err(errors::too_large(&source.name, source.text.len(), largest));
    }
    parsed(&source.text, &source.text, 0..0).map_err(|error| syntax_fault(source, &source.text, 0, &error))
}

/// Parses one value in a part of a source, such as a line.
///
/// # Errors
/// The first syntax error, or a value that is nested too deeply.
pub fn parse_part(source: &Arc<Source>, part: Span) -> Result<Node<'_>, Diagnostic> {
    let (text, start) = (source.text.get(part.clone()).unwrap_or_default(), part.start);
    parsed(&source.text, text, part).map_err(|error| syntax_fault(source, text, start, &error))
}

/// Parses a text in a source. Most configs are plain JSON, whose parser is ten times as fast.
fn parsed<'s>(source: &'s str, text: &'s str, fallback: Span) -> Result<Node<'s>, ::json5::Error> {
    let mut node = serde_json::from_str(text).or_else(|_| ::json5::from_str(text))?;
    place(&mut node, source, fallback);
    Ok(node)
}

/// Reports a syntax error in a part of a source, which begins at `start`.
fn syntax_fault(source: &Arc<Source>, text: &str, start: usize, error: &::json5::Error) -> Diagnostic {
    let offset = error.position().map_or(text.len(), |position| offset_of(text, position.line, position.column));
    let offset = start + offset;
    let end = source.text[offset..].chars().next().map_or(offset, |next| offset + next.len_utf8());
    let place = Place::new(source, offset..end);
    // The parser has no depth limit of its own: an error without a code is ours, passed through it.
    if error.code().is_none() {
        errors::nested_too_deep(&place, DEEPEST)
    } else {
        errors::syntax(&place, &parser_message(error))
    }
}

/// Returns the parser's message without its position.
fn parser_message(error: &::json5::Error) -> String {
    use ::json5::ErrorCode::{EofParsingArray, EofParsingComment, EofParsingObject, EofParsingString, EofParsingValue};
    match error.code() {
        Some(EofParsingObject) => "this object is never closed".into(),
        Some(EofParsingArray) => "this array is never closed".into(),
        Some(EofParsingString) => "this string is never closed".into(),
        Some(EofParsingComment) => "this comment is never closed".into(),
        Some(EofParsingValue) => "the file ends where a value should be".into(),
        Some(code) => code.to_string().replace("EOF parsing", "the file ends inside a"),
        None => error.to_string(),
    }
}

/// Returns the byte offset of a line and a character column, both from 0, by the parser's own definition of a line.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let mut start = 0;
    for _ in 0..line {
        let Some(found) = text[start..].find(['\n', '\r', '\u{2028}', '\u{2029}']) else {
            return text.len();
        };
        let at = start + found;
        start = if text[at..].starts_with("\r\n") {
            at + 2
        } else {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        };
    }
    text[start..].char_indices().nth(column).map_or(text.len(), |(offset, _)| start + offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::json5::{Member, Value};
    use std::path::Path;

    /// Parses a text whose source lives until the tests end.
    fn parsed(text: &str) -> Result<Node<'static>, Diagnostic> {
        parse(Box::leak(Box::new(Source::new("t", text, Path::new("/")))))
    }

    fn member<'a>(node: &'a Node<'a>, key: &str) -> &'a Member<'a> {
        let Value::Object(members) = &node.value else { panic!("not an object: {node:?}") };
        members.iter().find(|member| member.key == key).unwrap()
    }

    #[test]
    fn keys_and_scalars_know_their_places() {
        let text =
            "{\n // é comment\n chains: {'plan-é': {n /* x */ : 12, s: \"a\\tb\", f: false, l: [ 'x', /* y */ 5 ]}}}";
        let tree = parsed(text).unwrap();
        let plan = member(&member(&tree, "chains").node, "plan-é");
        assert_eq!(&text[plan.key_span.clone()], "plan-é");
        for (key, written) in [("n", "12"), ("s", "a\\tb"), ("f", "false"), ("l", "l")] {
            assert_eq!(&text[member(&plan.node, key).node.span.clone()], written, "{key}");
        }
        let Value::List(items) = &member(&plan.node, "l").node.value else { panic!() };
        assert_eq!((&text[items[0].span.clone()], &text[items[1].span.clone()]), ("x", "5"));
    }

    #[test]
    fn plain_json_gives_the_same_tree_as_json5_although_another_parser_reads_it() {
        let text =
            r#"{"a": [1, -1, 2.5e3, "x", null, [], {}], "a": {"b\n": "c\td", "é": true}, "n": 9007199254740993}"#;
        // Only JSON5 has comments. Behind everything else, they move no place.
        let (json, json5) = (parsed(text).unwrap(), parsed(&format!("{text}//")).unwrap());
        assert_eq!(format!("{json:?}"), format!("{json5:?}"));
        assert!(format!("{json:?}").contains("duplicates: Some(2..3)"));
    }

    #[test]
    fn a_syntax_fault_has_its_place() {
        let fault = parsed("{\r\n é: 1,\r\n b 2}").unwrap_err();
        assert_eq!(fault.places[0].0.source.line_column(fault.places[0].0.span.start), (3, 4));
        let fault = parsed("{a: [1, ").unwrap_err();
        assert_eq!((fault.message.contains("ends where a value"), fault.places[0].0.span.clone()), (true, 4..5));
    }

    #[test]
    fn deep_nesting_is_an_error_and_brackets_in_strings_do_not_count() {
        for comment in ["", "//x\r", "//x\u{2028}", "/* ] */", "// \" \n"] {
            let text = format!("{comment}{}", "[".repeat(100_000));
            assert!(parsed(&text).unwrap_err().message.contains("140"), "{comment:?}");
            assert!(parsed(&text.replace('[', "{a:")).unwrap_err().message.contains("140"), "{comment:?}");
        }
        assert!(parsed(&format!("['{}' /* {} */]", "[".repeat(500), "{".repeat(500))).is_ok());
        assert!(parsed(&format!("{}{}", "[".repeat(140), "]".repeat(140))).is_ok());
    }

    #[test]
    fn a_file_over_one_mebibyte_is_refused() {
        assert!(parsed(&" ".repeat(LARGEST + 1)).unwrap_err().message.contains("1 MiB"));
    }
}
