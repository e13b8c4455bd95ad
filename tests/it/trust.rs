//! `"trust": "ask"`, `--trust`, `--digest` and `doctor --try`: a checkout runs only what a person has agreed to.

use super::support::Place;
use std::fs;

fn asking() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("home/.config/forkhestra")).unwrap();
    fs::write(place.path("home/.config/forkhestra/chains.json"), r#"{ "trust": "ask", "chains": {} }"#).unwrap();
    place.config(
        r#"{ "agents": { "w": { "command": "echo ran" } }, "checks": { "test": "echo tested" }, "chains": {} }"#,
    );
    place
}

#[test]
fn an_unknown_config_is_run_only_with_trust_where_ones_own_config_says_ask() {
    let place = asking();
    for verb in [&["w"][..], &["verify", "test"], &["diagnose"], &["doctor", "--try"]] {
        let ran = place.run(verb);
        assert!(ran.code(2).words().contains("is new to you or has changed"), "{}", ran.stderr);
    }
    assert!(!place.work(".forkhestra").exists());
    for verb in [&["list"][..], &["w", "--dry-run"], &["validate"], &["detect"], &["doctor"]] {
        let _ = place.run(verb).code(0);
    }
    assert_eq!(place.run(&["w", "--trust"]).code(0).stdout, "ran\n");
    // It is trusted from then on, until it changes.
    assert_eq!(place.run(&["w"]).code(0).stdout, "ran\n");
    place.config(r#"{ "agents": { "w": { "command": "echo else" } }, "chains": {} }"#);
    assert!(place.run(&["w"]).code(2).words().contains("or has changed"));
    assert_eq!(fs::read_to_string(place.path("home/.local/state/forkhestra/trusted")).unwrap().lines().count(), 1);
}

#[test]
fn a_config_that_is_known_in_one_folder_is_not_in_another() {
    let place = asking();
    let _ = place.run(&["w", "--trust"]).code(0);
    fs::create_dir_all(place.path("tmp/other/forge")).unwrap();
    fs::copy(place.work("forge/chains.json"), place.path("tmp/other/forge/chains.json")).unwrap();
    let other = place.path("tmp/other");
    assert!(place.run(&["w", "-C", other.to_str().unwrap()]).code(2).words().contains("is new to you"));
}

#[test]
fn resume_asks_for_trust_too() {
    let place = asking();
    place.config(r#"{ "agents": { "w": { "command": ["sh", "-c", "test -e ok"] } }, "chains": {} }"#);
    let _ = place.run(&["w -> w", "--trust", "--limit", "attempts=1"]);
    place.config(r#"{ "agents": { "w": { "command": ["sh", "-c", "test -e ok || true"] } }, "chains": {} }"#);
    let ran = place.run(&["resume", "--accept-changes"]);
    assert!(ran.code(2).words().contains("or has changed"), "{}", ran.stderr);
}

#[test]
fn a_project_has_no_say_in_trust() {
    let place = Place::new();
    place.config(r#"{ "trust": "always", "agents": { "w": { "command": "true" } }, "chains": {} }"#);
    assert!(place.run(&["w"]).code(2).words().contains("a project cannot decide how far it is trusted"));
}

#[test]
fn digest_runs_what_the_dry_run_showed_or_nothing() {
    let place = Place::new();
    let config = |line: &str, hook: &str| {
        place.config(&format!(
            r#"{{ "agents": {{ "w": {{ "command": "echo {line}" }} }}, "hooks": {{ "onFinish": "{hook}" }}, "chains": {{}} }}"#
        ));
    };
    config("one", "true");
    let plan: serde_json::Value =
        serde_json::from_str(&place.run(&["w", "-p", "go", "--dry-run", "--json"]).code(0).stdout).unwrap();
    let digest = plan["digest"].as_str().unwrap();
    assert_eq!(place.run(&["w", "-p", "go", "--digest", digest]).code(0).stdout, "one go\n");
    let refused = |words: &[&str]| {
        let ran = place.run(&[words, &["--digest", digest]].concat());
        assert!(ran.code(2).words().contains("the plan does not have the digest"), "{}", ran.stderr);
    };
    refused(&["w", "-p", "other"]);
    config("one", "touch evil");
    refused(&["w", "-p", "go"]);
    config("two", "true");
    refused(&["w", "-p", "go"]);
    place.config(r#"{ "agents": { "w": { "command": "touch one" } }, "hooks": { "onFinish": "true" }, "chains": {} }"#);
    refused(&["w", "-p", "go"]);
    refused(&["w", "-p", "go", "--dry-run"]);
    assert!(!place.work("evil").exists());
}

#[test]
fn doctor_starts_what_a_projects_config_names_only_with_try() {
    let place = Place::new();
    place.agent("mine", "touch started\nprint 1.2.3");
    place.config(r#"{ "backends": { "mine": { "program": "mine" } }, "chains": {} }"#);
    let ran = place.run(&["doctor"]);
    assert!(ran.stdout.contains("`doctor --try` gets its version"), "{}", ran.stdout);
    assert!(!place.work("started").exists());
    assert!(place.run(&["doctor", "--try"]).stdout.contains("1.2.3"));
    assert!(place.work("started").exists());
}
