//! Parses a source, except for the members of one object, which are parsed when they are needed.

use super::parse::parse;
use super::places::{place, span_in};
use super::read::NodeVisitor;
use super::tree::{Member, Node, Value};
use crate::source::{Diagnostic, Source, Span};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
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
    key: &'static str,
) -> Result<(Node<'s>, Vec<UnreadMember<'s>>), Diagnostic> {
    let text = source.text.as_str();
    let Ok((members, unread)) = RootVisitor { key }.deserialize(&mut serde_json::Deserializer::from_str(text)) else {
        return Ok((parse(source)?, Vec::new()));
    };
    let mut root = Node { value: Value::Object(members), span: 0..0 };
    place(&mut root, text, 0..0);
    let spans = |(key, value): (&'s str, &'s RawValue)| {
        Some(UnreadMember { key, key_span: span_in(text, key)?, value: span_in(text, value.get())? })
    };
    Ok((root, unread.0.into_iter().filter_map(spans).collect()))
}

/// Reads the members of the root, and those of one object as text.
struct RootVisitor {
    key: &'static str,
}

impl<'de> DeserializeSeed<'de> for RootVisitor {
    type Value = (Vec<Member<'de>>, Unread<'de>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RootVisitor {
    type Value = (Vec<Member<'de>>, Unread<'de>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut members, mut unread) = (Vec::new(), Unread::default());
        while let Some(key) = entries.next_key::<&str>()? {
            if key == self.key {
                unread = entries.next_value()?;
            } else {
                let node = entries.next_value_seed(NodeVisitor::MEMBER)?;
                members.push(Member { key: Cow::Borrowed(key), key_span: 0..0, node, duplicates: None });
            }
        }
        Ok((members, unread))
    }
}

/// The members of an object, as text.
#[derive(Default)]
struct Unread<'s>(Vec<(&'s str, &'s RawValue)>);

impl<'de> Deserialize<'de> for Unread<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UnreadVisitor)
    }
}

struct UnreadVisitor;

impl<'de> Visitor<'de> for UnreadVisitor {
    type Value = Unread<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unread<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = entries.next_entry()? {
            members.push(member);
        }
        Ok(Unread(members))
    }
}
