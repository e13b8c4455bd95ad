//! JSON and JSON5 as one tree with places, so that all errors other than syntax errors can be reported at once.
//!
//! `json5` reports places only in its errors, but it borrows strings from the source. The address of a key or a value
//! without escapes therefore tells where it is. The places of all other values are found from the key before them.

use super::errors;
use super::raw::{DEEPEST, Raw};
use crate::source::{Diagnostic, Place, Source, Span};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The largest file that is parsed, in bytes.
pub(super) const LARGEST: usize = 1 << 20;

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The place of the value itself, or of its key.
    pub span: Span,
}

/// A JSON5 value.
#[derive(Debug, Clone)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// Any number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object.
    Object(Vec<Member>),
}

/// A member of an object. Duplicates are kept.
#[derive(Debug, Clone)]
pub struct Member {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    /// The value of the key.
    pub node: Node,
    /// The place of the first occurrence of the same key in the same object, if this is a duplicate.
    pub(super) duplicates: Option<Span>,
}

impl Node {
    /// Converts the node to JSON without places. Whole numbers stay integers.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within what a float holds exactly")]
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => (*number as i64).into(),
            Value::Number(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Value::Object(members) => members
                .iter()
                .map(|member| (member.key.clone(), member.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl Value {
    /// Returns the type of the value, with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Flag(_) => "a Boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Parses a config.
///
/// # Errors
/// The first syntax error, or a source that is too large or nested too deeply.
pub(super) fn parse(source: &Arc<Source>) -> Result<Node, Diagnostic> {
    parse_within(source, LARGEST)
}

/// Parses a source of at most `largest` bytes.
///
/// # Errors
/// The first syntax error, or a source that is too large or nested too deeply.
pub fn parse_within(source: &Arc<Source>, largest: usize) -> Result<Node, Diagnostic> {
    if source.text.len() > largest {
        return Err(errors::too_large(&source.name, source.text.len(), largest));
    }
    match parsed(&source.text) {
        Ok(raw) => Ok(place(raw, &source.text, 0..0)),
        Err(error) => Err(syntax_fault(source, &source.text, 0, &error)),
    }
}

/// Parses one value in a part of a source, such as a line.
///
/// # Errors
/// The first syntax error, or a value that is nested too deeply.
pub fn parse_part(source: &Arc<Source>, part: Span) -> Result<Node, Diagnostic> {
    let (text, start) = (source.text.get(part.clone()).unwrap_or_default(), part.start);
    match parsed(text) {
        Ok(raw) => Ok(place(raw, &source.text, part)),
        Err(error) => Err(syntax_fault(source, text, start, &error)),
    }
}

/// Parses a text. Most configs are plain JSON, whose parser is ten times as fast.
fn parsed(text: &str) -> Result<Raw<'_>, json5::Error> {
    serde_json::from_str(text).or_else(|_| json5::from_str(text))
}

/// Reports a syntax error in a part of a source, which begins at `start`.
fn syntax_fault(source: &Arc<Source>, text: &str, start: usize, error: &json5::Error) -> Diagnostic {
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
fn parser_message(error: &json5::Error) -> String {
    use json5::ErrorCode::{EofParsingArray, EofParsingComment, EofParsingObject, EofParsingString, EofParsingValue};
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

/// Returns the offset of the quote that ends the string beginning at `start`, or the end of the text.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != bytes[start] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

/// Returns the offset after the comment that begins at `start`, or `start` if there is no comment.
fn comment_end(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    if rest.starts_with(b"//") {
        // In JSON5 a line also ends at CR, U+2028 and U+2029.
        let ends = |at: &usize| {
            matches!(rest[*at], b'\n' | b'\r')
                || rest[*at..].starts_with(b"\xe2\x80\xa8")
                || rest[*at..].starts_with(b"\xe2\x80\xa9")
        };
        start + (0..rest.len()).find(ends).unwrap_or(rest.len())
    } else if rest.starts_with(b"/*") {
        let close = rest.windows(2).skip(2).position(|pair| pair == b"*/");
        start + close.map_or(rest.len(), |found| found + 4)
    } else {
        start
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

/// Returns the place of the value after a key, or after an element of an array, if it is a scalar. `end` is where the
/// one before ends, and `separator` is the sign between them.
fn scalar_after(text: &str, end: usize, separator: u8) -> Option<Span> {
    let bytes = text.as_bytes();
    let mut at = end;
    if matches!(bytes.get(at), Some(b'"' | b'\'')) {
        at += 1;
    }
    let mut is_past = false;
    loop {
        match *bytes.get(at)? {
            byte if byte == separator && !is_past => {
                is_past = true;
                at += 1;
            }
            b'/' => {
                let end = comment_end(bytes, at);
                if end == at {
                    return None;
                }
                at = end;
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            b'{' | b'[' => return None,
            b'"' | b'\'' => return Some(at + 1..string_end(bytes, at)),
            _ => {
                let rest = &text[at..];
                let length = rest.find(|next: char| next.is_whitespace() || matches!(next, ',' | '}' | ']' | '/'));
                return Some(at..length.map_or(text.len(), |length| at + length));
            }
        }
    }
}

/// Returns the place of a slice within the source, from its address.
fn span_in(source: &str, slice: &str) -> Option<Span> {
    let start = (slice.as_ptr() as usize).checked_sub(source.as_ptr() as usize)?;
    let span = start..start + slice.len();
    (source.get(span.clone()) == Some(slice)).then_some(span)
}

/// Gives every value its place; `fallback` is for a value that has none of its own.
fn place(raw: Raw<'_>, source: &str, fallback: Span) -> Node {
    let mut span = fallback.clone();
    let value = match raw {
        Raw::Null => Value::Null,
        Raw::Flag(flag) => Value::Flag(flag),
        Raw::Number(number) => Value::Number(number),
        Raw::Text(text) => {
            if let Cow::Borrowed(slice) = text {
                span = span_in(source, slice).unwrap_or(fallback);
            }
            Value::Text(text.into_owned())
        }
        Raw::List(raws) => Value::List(elements(raws, source, &fallback)),
        Raw::Object(raws) => {
            let mut members: Vec<Member> =
                raws.into_iter().map(|(key, raw)| member(key, raw, source, &fallback)).collect();
            mark_duplicates(&mut members);
            // An object in an array has no place of its own except that of its first key.
            if let Some(first) = members.first() {
                span = first.key_span.clone();
            }
            Value::Object(members)
        }
    };
    Node { value, span }
}

/// Gives every element of an array its place. A scalar that is not a string has one after a scalar.
fn elements(raws: Vec<Raw<'_>>, source: &str, fallback: &Span) -> Vec<Node> {
    let mut end: Option<usize> = None;
    let mut nodes = Vec::new();
    for raw in raws {
        let is_scalar = !matches!(raw, Raw::List(_) | Raw::Object(_));
        // The place of a string without escapes is that of the slice itself.
        let is_slice = matches!(raw, Raw::Text(Cow::Borrowed(_)));
        let own = end.filter(|_| is_scalar && !is_slice).and_then(|end| scalar_after(source, end, b','));
        let is_known = own.is_some() || is_slice;
        let node = place(raw, source, own.unwrap_or_else(|| fallback.clone()));
        end = is_known.then_some(node.span.end);
        nodes.push(node);
    }
    nodes
}

fn mark_duplicates(members: &mut [Member]) {
    let mut first: HashMap<&str, &Span> = HashMap::with_capacity(members.len());
    for Member { key, key_span, duplicates, .. } in members {
        match first.entry(key) {
            Entry::Occupied(first) => *duplicates = Some((*first.get()).clone()),
            Entry::Vacant(new) => drop(new.insert(key_span)),
        }
    }
}

fn member(key: Cow<'_, str>, raw: Raw<'_>, source: &str, fallback: &Span) -> Member {
    let own = match key {
        Cow::Borrowed(slice) => span_in(source, slice),
        Cow::Owned(_) => None,
    };
    // The place of a string without escapes is that of the slice itself; a list or an object has that of its key.
    let needs_place = !matches!(raw, Raw::Text(Cow::Borrowed(_)) | Raw::List(_) | Raw::Object(_));
    let scalar = own.as_ref().filter(|_| needs_place).and_then(|span| scalar_after(source, span.end, b':'));
    let key_span = own.unwrap_or_else(|| fallback.clone());
    Member {
        key: key.into_owned(),
        node: place(raw, source, scalar.unwrap_or_else(|| key_span.clone())),
        key_span,
        duplicates: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parsed(text: &str) -> Result<Node, Diagnostic> {
        parse(&Source::new("t", text, Path::new("/")))
    }

    fn member<'a>(node: &'a Node, key: &str) -> &'a Member {
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
