//! Builds a tree while a parser reads, without places.

use super::tree::{Member, Node, Value};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The deepest nesting that is read. 64 levels of groups need less. Deeper, the parser would overflow the stack.
pub(super) const DEEPEST: usize = 140;

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NodeVisitor { depth: 0 }.deserialize(deserializer)
    }
}

/// Reads one value at this depth.
#[derive(Clone, Copy)]
struct NodeVisitor {
    depth: usize,
}

impl NodeVisitor {
    fn inside<E: Error>(self) -> Result<Self, E> {
        if self.depth >= DEEPEST { Err(E::custom("nested too deep")) } else { Ok(Self { depth: self.depth + 1 }) }
    }
}

/// A node without a place.
fn node(value: Value<'_>) -> Node<'_> {
    Node { value, span: 0..0 }
}

impl<'de> DeserializeSeed<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'de>, E> {
        Ok(node(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(node(Value::Flag(value)))
    }

    #[expect(clippy::cast_precision_loss, reason = "the numbers in a config are small; a large one is refused")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(node(Value::Number(value as f64)))
    }

    #[expect(clippy::cast_precision_loss, reason = "the numbers in a config are small; a large one is refused")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(node(Value::Number(value as f64)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(node(Value::Number(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(node(Value::Text(Cow::Owned(value.to_string()))))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(node(Value::Text(Cow::Borrowed(value))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node<'de>, A::Error> {
        let (inside, mut nodes) = (self.inside()?, Vec::new());
        while let Some(node) = elements.next_element_seed(inside)? {
            nodes.push(node);
        }
        Ok(node(Value::List(nodes)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node<'de>, A::Error> {
        let (inside, mut members) = (self.inside()?, Vec::new());
        while let Some(key) = entries.next_key_seed(KeyVisitor)? {
            let node = entries.next_value_seed(inside)?;
            members.push(Member { key, key_span: 0..0, node, duplicates: None });
        }
        Ok(node(Value::Object(members)))
    }
}

struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(key.to_string()))
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(key))
    }
}
