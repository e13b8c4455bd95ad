//! The JSON Schema of chains.json (draft 2020-12), generated from the keys. A test compares it with the committed copy.

use super::keys::batch::{ENGINE, LANDING, NEEDS, WORKSPACE};
use super::keys::shape::{Key, Object, Shape};
use super::keys::{
    AGENT, BACKEND, CHAIN, CHECK, CONTINUATION, ERROR_RULE, HOOKS, LEVEL, LEVEL_ARGUMENTS, LIMITS, PERMISSIONS, READER,
    ROOT, STEP, TEXT_RULE, TOOL_RULE, TOOL_SERVER, USAGE_RULE, VARIABLE,
};
use serde_json::{Map, Value, json};

/// Returns the schema of chains.json, with its keys in a fixed order.
#[must_use]
pub fn schema() -> Value {
    let definitions = [
        &LIMITS,
        &HOOKS,
        &WORKSPACE,
        &NEEDS,
        &LANDING,
        &ENGINE,
        &BACKEND,
        &PERMISSIONS,
        &TOOL_SERVER,
        &CONTINUATION,
        &READER,
        &TEXT_RULE,
        &TOOL_RULE,
        &ERROR_RULE,
        &USAGE_RULE,
        &LEVEL_ARGUMENTS,
        &LEVEL,
        &AGENT,
        &CHECK,
        &CHAIN,
        &VARIABLE,
        &STEP,
    ];
    schema_of("forkhestra chains.json", &ROOT, &definitions)
}

/// Returns the schema of a file from its table of keys and the tables that it refers to.
#[must_use]
pub fn schema_of(title: &str, root: &Object, definitions: &[&Object]) -> Value {
    let mut root = object(root);
    let definitions: Map<String, Value> =
        definitions.iter().map(|definition| (definition.id.to_string(), object(definition))).collect();
    if let Value::Object(map) = &mut root {
        map.shift_insert(0, "$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        map.shift_insert(1, "title".into(), json!(title));
        map.insert("$defs".into(), Value::Object(definitions));
    }
    root
}

fn object(of: &Object) -> Value {
    let aliases = |key: &Key| {
        let alias = key.alias?;
        Some((alias.to_string(), property(key, &format!("Another name for `{}`.", key.name))))
    };
    let properties: Map<String, Value> = (of.keys.iter())
        .flat_map(|key| std::iter::once((key.name.to_string(), property(key, key.about))).chain(aliases(key)))
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !of.required.is_empty() {
        schema["required"] = json!(of.required);
    }
    if !of.one_of.is_empty() {
        schema["oneOf"] = of.one_of.iter().map(|key| json!({ "required": [key] })).collect();
    }
    schema
}

fn property(key: &Key, about: &str) -> Value {
    let mut schema = shape(key.shape);
    schema["description"] = json!(about);
    schema
}

fn shape(shape: Shape) -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Texts => texts,
        Shape::TextOrTexts => json!({ "oneOf": [
            { "type": "string", "minLength": 1 },
            { "type": "array", "items": { "type": "string" }, "minItems": 1 },
        ] }),
        Shape::TextMap => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": { "type": "string" },
        }),
        Shape::PointerMap => json!({
            "type": "object",
            "propertyNames": { "pattern": "^/" },
            "additionalProperties": { "type": "string" },
        }),
        Shape::Variables(object) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
            "additionalProperties": { "anyOf": [{ "type": "string" }, reference(object)] },
        }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Count(most) => json!({ "type": "integer", "minimum": 1, "maximum": most }),
        Shape::Duration => {
            json!({ "type": "string", "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$", "minLength": 2 })
        }
        Shape::Amount => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Shape::One(object) => reference(object),
        Shape::Choice(choices) => json!({ "enum": choices }),
        Shape::Named(object) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*(:[A-Za-z0-9][A-Za-z0-9_.-]*)*$" },
            "additionalProperties": reference(object),
        }),
        Shape::Objects(object) => json!({ "type": "array", "items": reference(object), "minItems": 1 }),
        Shape::Steps(object) => {
            let text = json!({ "type": "string", "minLength": 1 });
            let step = json!({ "anyOf": [text, reference(object)] });
            json!({ "anyOf": [text, { "type": "array", "items": step, "minItems": 1 }] })
        }
        Shape::Anything => json!({}),
    }
}

/// Returns the schema of a value of this object, including the string that it may be written as.
fn reference(to: &Object) -> Value {
    let object = json!({ "$ref": format!("#/$defs/{}", to.id) });
    match to.text {
        Some(about) => {
            let mut forms = vec![json!({ "type": "string", "minLength": 1, "description": about }), object];
            forms.extend(to.keys.iter().find(|key| matches!(key.shape, Shape::Steps(_))).map(|key| shape(key.shape)));
            json!({ "anyOf": forms })
        }
        None => object,
    }
}
