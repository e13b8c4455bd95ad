//! Counts beforehand how much work it is to check a value against a JSON Schema. Branches that apply to one value
//! (`oneOf`) multiply with every level at which they recur: small schemas and values can take longer than a night.

use serde_json::Value;

/// The most subschemas that are applied to one output: about a second of work.
const MOST: u32 = 1_000_000;
/// Deeper than any value that is parsed; stops at cyclic references.
const DEEPEST: u32 = 512;

/// Keywords whose subschema applies to the same value (JSON Schema 2020-12, section 10.2).
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of such subschemas.
const SAME_EACH: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose subschema applies to every element or member (section 10.3).
const EVERY: [&str; 6] =
    ["items", "contains", "additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties"];

/// Whether checking a value against a schema stays within bounds.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let mut steps = 0;
    Count { root: schema, steps: &mut steps }.apply(schema, value, 0).is_some()
}

struct Count<'a> {
    root: &'a Value,
    steps: &'a mut u32,
}

impl<'a> Count<'a> {
    /// Returns `None` when it is too much work.
    fn apply(&mut self, schema: &Value, value: &Value, depth: u32) -> Option<()> {
        *self.steps += 1;
        if *self.steps > MOST || depth > DEEPEST {
            return None;
        }
        let Value::Object(keys) = schema else { return Some(()) };
        for name in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(target) = keys.get(name).and_then(Value::as_str).and_then(|name| self.target(name)) {
                self.apply(target, value, depth + 1)?;
            }
        }
        for name in SAME {
            keys.get(name).map_or(Some(()), |inner| self.apply(inner, value, depth + 1))?;
        }
        for inner in SAME_EACH.iter().filter_map(|name| keys.get(*name)?.as_array()).flatten() {
            self.apply(inner, value, depth + 1)?;
        }
        for inner in keys.get("dependentSchemas").and_then(Value::as_object).into_iter().flat_map(|map| map.values()) {
            self.apply(inner, value, depth + 1)?;
        }
        match value {
            Value::Array(elements) => {
                let first = keys.get("prefixItems").or_else(|| keys.get("items")).and_then(Value::as_array);
                for (inner, element) in first.into_iter().flatten().zip(elements) {
                    self.apply(inner, element, depth + 1)?;
                }
                self.every(keys, elements.iter(), depth)
            }
            Value::Object(members) => {
                for (name, member) in members {
                    if let Some(inner) = keys.get("properties").and_then(|inner| inner.get(name)) {
                        self.apply(inner, member, depth + 1)?;
                    }
                    // Matching the patterns is not worthwhile here: all of them count.
                    let patterns = keys.get("patternProperties").and_then(Value::as_object);
                    for inner in patterns.into_iter().flat_map(|map| map.values()) {
                        self.apply(inner, member, depth + 1)?;
                    }
                }
                self.every(keys, members.values(), depth)
            }
            _ => Some(()),
        }
    }

    fn every<'v>(
        &mut self,
        keys: &serde_json::Map<String, Value>,
        values: impl Iterator<Item = &'v Value>,
        depth: u32,
    ) -> Option<()> {
        let schemas: Vec<&Value> =
            EVERY.iter().filter_map(|name| keys.get(*name)).filter(|inner| !inner.is_array()).collect();
        for value in values {
            for inner in &schemas {
                self.apply(inner, value, depth + 1)?;
            }
        }
        Some(())
    }

    /// Returns the target of a reference within the schema; other references are not followed.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn branches_that_recur_on_one_value_multiply_and_are_refused() {
        let tree = json!({
            "oneOf": [{ "properties": { "next": { "$ref": "#" } } }, { "properties": { "next": { "$ref": "#" } } }],
        });
        let chain = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({ "next": inner }));
        assert!(is_bounded(&tree, &chain(10)));
        assert!(!is_bounded(&tree, &chain(100)));
        // Two branches each, a hundred levels deep, for a value without any depth.
        let both = |n: usize| json!([{ "$ref": format!("#/$defs/d{n}") }, { "$ref": format!("#/$defs/d{n}") }]);
        let names = (0..100).map(|n| (format!("d{n}"), json!({ "anyOf": both(n + 1) })));
        let defs: serde_json::Map<String, Value> = names.chain([("d100".into(), json!(true))]).collect();
        assert!(!is_bounded(&json!({ "$defs": defs, "$ref": "#/$defs/d0" }), &json!(1)));
    }

    #[test]
    fn a_usual_schema_of_a_large_value_is_checked() {
        let schema = json!({ "type": "array", "items": { "$ref": "#/$defs/one" }, "$defs": { "one": {
            "type": "object", "properties": { "name": { "type": "string" }, "kind": { "enum": ["a", "b"] } }, "additionalProperties": false,
        } } });
        let value: Vec<Value> = (0..20_000).map(|n| json!({ "name": n.to_string(), "kind": "a" })).collect();
        assert!(is_bounded(&schema, &json!(value)));
        // A cycle that consumes nothing is an error in the schema, and is not followed forever.
        assert!(!is_bounded(&json!({ "$ref": "#" }), &json!(1)));
    }
}
