//! The places of values in a source.
//!
//! The parsers report places only in their errors, but they borrow strings from the source. The address of a key or a
//! value without escapes therefore tells where it is. The places of all other values are found from what is before
//! them.

use super::tree::{Member, Node, Value};
use crate::source::Span;
use std::borrow::Cow;

/// Gives a node and everything in it their places. `fallback` is for a value that has none of its own.
pub(super) fn place(node: &mut Node<'_>, source: &str, fallback: Span) {
    node.span = match &mut node.value {
        Value::Text(Cow::Borrowed(slice)) => span_in(source, slice).unwrap_or(fallback),
        Value::Null | Value::Flag(_) | Value::Number(_) | Value::Text(Cow::Owned(_)) => fallback,
        Value::List(nodes) => {
            place_elements(nodes, source, &fallback);
            fallback
        }
        Value::Object(members) => {
            for member in &mut *members {
                place_member(member, source, &fallback);
            }
            mark_duplicates(members);
            // An object in a list has no place of its own except that of its first key.
            members.first().map_or(fallback, |first| first.key_span.clone())
        }
    };
}

/// Gives every element of a list its place. A scalar that is not a string has one after a scalar.
fn place_elements(nodes: &mut [Node<'_>], source: &str, fallback: &Span) {
    let mut end: Option<usize> = None;
    for node in nodes {
        let own = end.filter(|_| needs_search(node)).and_then(|end| scalar_after(source, end, b','));
        let is_known = own.is_some() || matches!(node.value, Value::Text(Cow::Borrowed(_)));
        place(node, source, own.unwrap_or_else(|| fallback.clone()));
        end = is_known.then_some(node.span.end);
    }
}

fn place_member(member: &mut Member<'_>, source: &str, fallback: &Span) {
    let own = match member.key {
        Cow::Borrowed(slice) => span_in(source, slice),
        Cow::Owned(_) => None,
    };
    let key = own.as_ref().filter(|_| needs_search(&member.node));
    let value = key.and_then(|span| scalar_after(source, span.end, b':'));
    member.key_span = own.unwrap_or_else(|| fallback.clone());
    place(&mut member.node, source, value.unwrap_or_else(|| member.key_span.clone()));
}

/// Whether a value is found only from what is before it. The place of a string without escapes is that of the slice;
/// a list or an object has that of its key.
fn needs_search(node: &Node<'_>) -> bool {
    !matches!(node.value, Value::Text(Cow::Borrowed(_)) | Value::List(_) | Value::Object(_))
}

/// Gives each repeated key the place of its first occurrence.
fn mark_duplicates(members: &mut [Member<'_>]) {
    let mut order: Vec<usize> = (0..members.len()).collect();
    // Stable, so that the first of equal keys stays the first.
    order.sort_by(|&a, &b| members[a].key.cmp(&members[b].key));
    let mut first = 0;
    for at in 1..order.len() {
        if members[order[at]].key == members[order[first]].key {
            members[order[at]].duplicates = Some(members[order[first]].key_span.clone());
        } else {
            first = at;
        }
    }
}

/// Returns the place of a slice within the source, from its address.
pub(super) fn span_in(source: &str, slice: &str) -> Option<Span> {
    let start = (slice.as_ptr() as usize).checked_sub(source.as_ptr() as usize)?;
    let span = start..start + slice.len();
    (source.get(span.clone()) == Some(slice)).then_some(span)
}

/// Returns the place of the value after a key, or after an element of a list, if it is a scalar. `end` is where the
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
