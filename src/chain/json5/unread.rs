//! Parses a source, except for the members of one object, which are parsed when they are needed.

use super::parse::parse;
use super::places::{place, span_in};
use super::tree::{Member, Node, Value};
use crate::source::{Diagnostic, Source, Span};
use indexmap::IndexMap;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// A member of an object whose value is still text, for `parse_part`.
#[derive(Debug)]
pub(in crate::chain) struct UnreadMember<'s> {
    /// The key.
    pub(in crate::chain) key: &'s str,
    /// The place of the key.
    pub(in crate::chain) key_span: Span,
    /// The place of the value.
    pub(in crate::chain) value: Span,
}

/// Parses a config without the object at `key`, and returns the members of that object. A source that is not plain
/// JSON is parsed as a whole.
///
/// # Errors
/// The first syntax error, or a source that is too large or nested too deeply.
pub(in crate::chain) fn parse_without<'s>(
    source: &'s Arc<Source>,
    key: &str,
) -> Result<(Node<'s>, Vec<UnreadMember<'s>>), Diagnostic> {
    without(&source.text, key).map_or_else(|| Ok((parse(source)?, Vec::new())), Ok)
}

fn without<'s>(text: &'s str, skipped: &str) -> Option<(Node<'s>, Vec<UnreadMember<'s>>)> {
    let (mut members, mut unread) = (Vec::new(), Vec::new());
    for (key, value) in members_of(text)? {
        if key == skipped {
            let spans = |(key, value): (&'s str, &'s RawValue)| {
                Some(UnreadMember { key, key_span: span_in(text, key)?, value: span_in(text, value.get())? })
            };
            unread = members_of(value.get())?.into_iter().map(spans).collect::<Option<_>>()?;
        } else {
            let node = serde_json::from_str(value.get()).ok()?;
            members.push(Member { key: Cow::Borrowed(key), key_span: 0..0, node, duplicates: None });
        }
    }
    let mut root = Node { value: Value::Object(members), span: 0..0 };
    place(&mut root, text, 0..0);
    Some((root, unread))
}

/// Returns the members of an object of plain JSON as text, if none of their keys has an escape.
fn members_of(text: &str) -> Option<IndexMap<&str, &RawValue>> {
    serde_json::from_str(text).ok()
}
