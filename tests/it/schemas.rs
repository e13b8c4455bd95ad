//! The committed schemas match the code. `UPDATE_SCHEMAS=1 cargo test` writes them again.

use serde_json::Value;
use std::fs;
use std::path::Path;

fn same(name: &str, generated: &Value) {
    for definition in references(generated) {
        assert!(
            generated["$defs"].get(definition).is_some(),
            "schemas/{name} refers to `{definition}`, which it lacks"
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name);
    let text = serde_json::to_string_pretty(generated).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "schemas/{name} is stale: UPDATE_SCHEMAS=1 cargo test --test it schemas");
}

/// The definitions of its own that a schema refers to.
fn references(schema: &Value) -> Vec<&str> {
    match schema {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix("#/$defs/"));
            own.into_iter().chain(map.values().flat_map(references)).collect()
        }
        Value::Array(values) => values.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_schema_of_chains_json_is_that_of_the_keys() {
    same("chains.schema.json", &forkhestra::chain::schema());
}

#[test]
fn the_schema_of_suites_is_that_of_the_keys() {
    same("suite.schema.json", &forkhestra::eval::suite_schema());
}

#[test]
fn the_schema_of_verdicts_is_that_of_what_is_read() {
    let mut schema = serde_json::to_value(schemars::schema_for!(forkhestra::verdict::VerdictObject)).unwrap();
    schema["title"] = "forkhestra verdict".into();
    same("verdict.schema.json", &schema);
}

#[test]
fn the_schema_of_evaluations_is_that_of_what_is_read() {
    let mut schema = serde_json::to_value(schemars::schema_for!(forkhestra::verdict::Evaluation)).unwrap();
    schema["title"] = "forkhestra evaluation".into();
    same("evaluation.schema.json", &schema);
}

#[test]
fn the_schema_of_events_is_that_of_the_types() {
    let mut schema = serde_json::to_value(schemars::schema_for!(forkhestra::engine::Event)).unwrap();
    schema["title"] = "forkhestra event".into();
    same("event.schema.json", &schema);
}
