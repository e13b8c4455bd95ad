//! Chains and checks as text in chains.json.

use super::support::Place;

/// Returns the plan of a chain, without the places at which it is written.
fn plan(place: &Place, chain: &str) -> serde_json::Value {
    let ran = place.run(&["--chain", chain, "--dry-run", "--json"]);
    let mut plan: serde_json::Value = serde_json::from_str(&ran.code(0).stdout).unwrap();
    for key in ["name", "digest", "earlier"] {
        plan.as_object_mut().unwrap().remove(key);
    }
    plan
}

#[test]
fn a_chain_is_text_or_steps_and_means_the_same() {
    let place = Place::new();
    place.agent("w", "print hi");
    place.config(
        r#"{"checks": {"t": "true"}, "chains": {
            "long": {"steps": [{"group": [{"agent": "w", "iterations": 3}, {"check": "t"}], "iterations": 5}, {"agent": "w"}]},
            "text": "(w:3 -> t):5 -> w",
            "steps": {"steps": "(w:3 -> t):5 -> w"},
            "mixed": {"steps": [{"group": "w:3 -> t", "iterations": 5}, "w"]}}}"#,
    );
    for chain in ["text", "steps", "mixed"] {
        assert_eq!(plan(&place, chain), plan(&place, "long"), "{chain}");
    }
    place.run(&["text"]).code(1);
}

#[test]
fn a_fault_in_such_a_text_has_its_place_in_the_string() {
    let place = Place::new();
    place.config("{\n  \"checks\": {\"t\": \"\"},\n  \"chains\": {\n    \"a\": \"w:3 -> test:x:\",\n    \"b\": {\"steps\": [\"w\", \"(v\"]}, \"c\": {\"steps\": []}, \"d\": 3\n  }\n}\n");
    insta::assert_snapshot!(place.run(&["validate"]).code(2).stderr);
}

#[test]
fn show_json_prints_the_long_form_which_is_a_config_again() {
    let place = Place::new();
    place.agent("w", "print hi");
    place.config(
        r#"{"checks": {"t": "true"}, "chains": {"one": {"prompt": "P", "vars": {"V": "1"}, "description": "D", "steps":
            ["(w:3 -> t):5 -> test", {"agent": "w", "args": ["x"], "prompt": "Q", "timeout": "90s", "idleTimeout": "60s"}]}}}"#,
    );
    let shown: serde_json::Value = serde_json::from_str(&place.run(&["show", "one", "--json"]).code(0).stdout).unwrap();
    let before = plan_without_places(&place);
    let config = serde_json::json!({ "checks": { "t": "true" }, "chains": { "one": shown["entry"] } });
    assert_eq!(shown["entry"]["steps"][1], serde_json::json!({ "check": "test" }));
    place.config(&config.to_string());
    assert_eq!(plan_without_places(&place), before);
}

fn plan_without_places(place: &Place) -> String {
    place.write("package.json", r#"{"scripts": {"test": "true"}}"#);
    let ran = place.run(&["show", "one"]);
    ran.code(0).stdout.lines().skip(1).filter(|line| !line.contains("found")).collect()
}

#[test]
fn a_list_of_texts_is_a_chain() {
    let place = Place::new();
    place.agent("w", "print hi").config(r#"{"chains": {"list": ["w", "(w -> w):2"], "text": "w -> (w -> w):2"}}"#);
    assert_eq!(plan(&place, "list"), plan(&place, "text"));
}
