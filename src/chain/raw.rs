//! JSON or JSON5 as its parser returns it. Only this module reads JSON5 through serde.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The deepest nesting that is read. 64 levels of groups need less.
pub(super) const DEEPEST: usize = 140;

/// The tree as the parser returns it. A string without escapes is borrowed from the source.
pub(super) enum Raw<'a> {
    Null,
    Flag(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Raw<'a>>),
    Object(Vec<(Cow<'a, str>, Raw<'a>)>),
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawVisitor { depth: 0 }.deserialize(deserializer)
    }
}

/// Reads one value at this depth. It refuses to go deeper where the parser would overflow the stack.
#[derive(Clone, Copy)]
struct RawVisitor {
    depth: usize,
}

impl RawVisitor {
    fn inside<E: Error>(self) -> Result<Self, E> {
        if self.depth >= DEEPEST { Err(E::custom("nested too deep")) } else { Ok(Self { depth: self.depth + 1 }) }
    }
}

impl<'de> DeserializeSeed<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Raw<'de>, E> {
        Ok(Raw::Flag(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "the numbers in a config are small; a large one is refused")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "the numbers in a config are small; a large one is refused")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(value as f64))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Owned(value.to_string())))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Borrowed(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Raw<'de>, A::Error> {
        let (inside, mut raws) = (self.inside()?, Vec::new());
        while let Some(raw) = elements.next_element_seed(inside)? {
            raws.push(raw);
        }
        Ok(Raw::List(raws))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw<'de>, A::Error> {
        let (inside, mut raws) = (self.inside()?, Vec::new());
        while let Some(RawKey(key)) = entries.next_key()? {
            raws.push((key, entries.next_value_seed(inside)?));
        }
        Ok(Raw::Object(raws))
    }
}

struct RawKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for RawKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = RawKey<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: Error>(self, key: &str) -> Result<RawKey<'de>, E> {
                Ok(RawKey(Cow::Owned(key.to_string())))
            }

            fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<RawKey<'de>, E> {
                Ok(RawKey(Cow::Borrowed(key)))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}
