//! The tree: values, and where they are in their source.

use crate::source::Span;
use std::borrow::Cow;

/// A value of a source, and its place there.
#[derive(Debug, Clone)]
pub struct Node<'s> {
    /// The value.
    pub value: Value<'s>,
    /// The place of the value itself, or of its key.
    pub span: Span,
}

/// A JSON5 value. A string without escapes is borrowed from the source.
#[derive(Debug, Clone)]
pub enum Value<'s> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// Any number.
    Number(f64),
    /// A string.
    Text(Cow<'s, str>),
    /// An array.
    List(Vec<Node<'s>>),
    /// An object.
    Object(Vec<Member<'s>>),
}

/// A member of an object. Duplicates are kept.
#[derive(Debug, Clone)]
pub struct Member<'s> {
    /// The key.
    pub key: Cow<'s, str>,
    /// The place of the key.
    pub key_span: Span,
    /// The value of the key.
    pub node: Node<'s>,
    /// The place of the first occurrence of the same key in the same object, if this is a duplicate.
    pub(in crate::chain) duplicates: Option<Span>,
}

impl Node<'_> {
    /// Converts the node to JSON without places. Whole numbers stay integers.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within what a float holds exactly")]
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => (*number as i64).into(),
            Value::Number(number) => (*number).into(),
            Value::Text(text) => text.as_ref().into(),
            Value::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Value::Object(members) => members
                .iter()
                .map(|member| (member.key.to_string(), member.node.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

impl Value<'_> {
    /// Returns the type of the value, with its article.
    pub(in crate::chain) fn kind(&self) -> &'static str {
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
