//! A criterion on values within an output that is JSON.

use super::one_line;
use regex::Regex;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json_path::JsonPath;

/// What the values at a path must be (RFC 9535).
#[derive(Debug)]
pub struct JsonPathCriterion {
    path: JsonPath,
    wanted: Wanted,
}

/// What a value must be.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Anything: it only has to be there.
    Anything,
    /// Equal to this value.
    Equal(Value),
    /// A match of this pattern, anywhere in a string, or in the JSON of another value.
    Match(Box<Regex>),
}

impl Serialize for JsonPathCriterion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (equals, pattern) = match &self.wanted {
            Wanted::Anything => (None, None),
            Wanted::Equal(value) => (Some(value), None),
            Wanted::Match(pattern) => (None, Some(pattern.as_str())),
        };
        (self.path.to_string(), equals, pattern).serialize(serializer)
    }
}

impl JsonPathCriterion {
    /// Parses a path.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(super) fn new(path: &str, wanted: Wanted) -> Result<Self, String> {
        let path = JsonPath::parse(path).map_err(|error| one_line(&error.to_string()))?;
        Ok(Self { path, wanted })
    }

    /// Returns what is wrong with an output, if anything is. Each value at the path must be as wanted, and there must
    /// be one.
    pub(super) fn fault(&self, output: &str) -> Option<String> {
        let value: Value = match serde_json::from_str(output.trim()) {
            Ok(value) => value,
            Err(error) => return Some(format!("the output is not JSON: {error}")),
        };
        let found = self.path.query(&value).all();
        if found.is_empty() {
            return Some(format!("the output has nothing at {}", self.path));
        }
        let is_wanted = |value: &&Value| match &self.wanted {
            Wanted::Anything => true,
            Wanted::Equal(wanted) => equal(value, wanted),
            Wanted::Match(pattern) => match value {
                Value::String(text) => pattern.is_match(text),
                other => pattern.is_match(&other.to_string()),
            },
        };
        (!found.iter().all(is_wanted)).then(|| format!("the output is wrong at {}", self.path))
    }
}

/// Whether two values are equal; 1 and 1.0 are the same number.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern;
    use super::*;
    use serde_json::json;

    fn said(path: &str, wanted: Wanted, output: &str) -> String {
        JsonPathCriterion::new(path, wanted).unwrap().fault(output).unwrap_or_default()
    }

    #[test]
    fn every_value_at_a_path_must_be_as_wanted_and_there_must_be_one() {
        let output = r#"{ "items": [{ "price": 1.0, "name": "nut" }, { "price": 1, "name": "bolt" }] }"#;
        assert_eq!(said("$.items[0].name", Wanted::Anything, output), "");
        assert_eq!(said("$.items[*].price", Wanted::Equal(json!(1)), output), "");
        assert_eq!(
            said("$.items[*].name", Wanted::Equal(json!("nut")), output),
            "the output is wrong at $.items[*].name"
        );
        assert_eq!(said("$.items[*].name", Wanted::Match(Box::new(pattern("^[a-z]+$").unwrap())), output), "");
        assert_eq!(said("$.total", Wanted::Anything, output), "the output has nothing at $.total");
        assert_eq!(said("$", Wanted::Anything, "no"), "the output is not JSON: expected ident at line 1 column 2");
        assert!(JsonPathCriterion::new("items[", Wanted::Anything).is_err());
    }
}
