//! Finds the end of a JSON object that begins in the middle of a text, without building its value.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Maximum nesting depth of values. In a text of only open braces, each of them is tried. The limit bounds the steps of
/// each try, which would otherwise read the whole rest of the text.
const DEEPEST: u8 = 32;

/// Returns where the object that begins with the brace at `start` ends; `None` if it is not JSON or nested too deeply.
pub(super) fn object_at(text: &str, start: usize) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Whole>();
    values.next()?.ok()?;
    Some(start + values.byte_offset())
}

/// A value of any allowed depth.
struct Whole;

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Passed { deeper: DEEPEST }.deserialize(from).map(|()| Self)
    }
}

/// A value of which nothing is kept.
#[derive(Clone, Copy)]
struct Passed {
    /// How many more levels of nesting are allowed.
    deeper: u8,
}

impl Passed {
    fn inside<E: Error>(self) -> Result<Self, E> {
        let deeper = self.deeper.checked_sub(1).ok_or_else(|| E::custom("nested too deeply"))?;
        Ok(Self { deeper })
    }
}

impl<'de> DeserializeSeed<'de> for Passed {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Passed {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while seq.next_element_seed(inside)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let inside = self.inside()?;
        while map.next_entry_seed(inside, inside)?.is_some() {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_ends_where_its_brace_closes_whatever_follows() {
        for (text, end) in [
            (r#"{"a": [1, {"b": "}"}]} and more"#, Some(22)),
            ("{}", Some(2)),
            (r#"{"a": 1"#, None),
            ("{a}", None),
            (r#"{"a": 1.5e3, "b": null, "c": -1, "d": true}{"#, Some(43)),
        ] {
            assert_eq!(object_at(text, 0), end, "{text}");
        }
        assert_eq!(object_at("x {}", 2), Some(4));
    }

    /// It would take minutes if each brace were read to the end of the text.
    #[test]
    fn a_text_of_open_braces_is_passed_over_brace_by_brace() {
        let text = "{\"a\":\n".repeat(50_000);
        assert!(text.match_indices('{').all(|(start, _)| object_at(&text, start).is_none()));
        let nested = format!("{}{}{}", "{\"a\":".repeat(31), "1", "}".repeat(31));
        assert_eq!(object_at(&nested, 0), Some(nested.len()));
    }
}
