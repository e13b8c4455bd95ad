//! What commands print for programs: each has one documented form (schemas/cli.schema.json). Empty lists are not
//! errors, and reading writes nothing.

use super::support::Place;
use serde_json::Value;

/// Fails unless the answer is valid for the definition.
pub(crate) fn check(definition: &str, answer: &str) {
    let schema: Value = serde_json::from_str(include_str!("../../schemas/cli.schema.json")).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("mem:///cli.json", schema).unwrap();
    let index = compiler.compile(&format!("mem:///cli.json#/$defs/{definition}"), &mut schemas).unwrap();
    let last = answer.lines().last().unwrap_or_default();
    let value: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{definition}: {error}: {answer}"));
    if let Err(error) = schemas.validate(&value, index) {
        panic!("{definition}: {error}\n{last}");
    }
}

#[test]
fn every_verb_that_tells_something_has_a_documented_form() {
    let place = Place::new();
    std::process::Command::new("git").args(["init", "-q"]).current_dir(place.work("")).status().unwrap();
    place.agent("a", "sh date +%N > w\nnext\nexit 3");
    place.config(
        r#"{"agents": {"a": {"command": "a"}}, "checks": {"t": "true"}, "chains": {"one": {"prompt": "P", "vars": {"V": "1"}, "steps": "a -> t"}, "task": "a"}}"#,
    );
    place.run(&["task", "add", "A"]).code(0);
    check("summary", &place.run(&["one", "--json"]).code(0).stdout);
    place.run(&["task", "run"]).code(1);
    for (definition, typed) in [
        ("list", &["list"][..]),
        ("show", &["show", "one"]),
        ("validate", &["validate"]),
        ("codes", &["explain"]),
        ("explain", &["explain", "chain/arrow"]),
        ("runs", &["runs"]),
        ("diff", &["diff"]),
        ("status", &["status"]),
        ("run", &["runs", "show", "2"]),
        ("log", &["runs", "log", "1", "1"]),
        ("plan", &["one", "--dry-run"]),
        ("resume", &["resume", "--dry-run"]),
        ("added", &["task", "add", "B"]),
        ("tasks", &["task", "list"]),
        ("task", &["task", "show", "1"]),
        ("disputes", &["dispute", "list"]),
        ("detect", &["detect"]),
        ("unavailable", &["diagnose"]),
        ("prompt", &["render", "a", "-p", "x"]),
        ("report", &["report"]),
        ("report", &["report", "--all"]),
        ("pruned", &["runs", "prune", "--older-than", "30d"]),
    ] {
        let typed: Vec<&str> = typed.iter().copied().chain(["--json"]).collect();
        check(definition, &place.run(&typed).code(0).stdout);
    }
    let then = place.path("then").display().to_string();
    check("restored", &place.run(&["runs", "restore", "1", "--to", &then, "--json"]).code(0).stdout);
    let doctor = place.run(&["doctor", "--json"]);
    check("doctor", &doctor.stdout);
    place.config(r#"{"chains": {"a": "->"}}"#);
    let wrong = place.run(&["validate", "--json"]);
    check("validate", &wrong.code(2).stdout);
    let wrong: Value = serde_json::from_str(&wrong.stdout).unwrap();
    assert_eq!(
        (&wrong["errors"][0]["code"], &wrong["errors"][0]["places"][0]["line"]),
        (&"chain/arrow".into(), &1.into())
    );
}

#[test]
fn empty_lists_are_no_errors_and_looking_never_writes() {
    let place = Place::new();
    for typed in [&["runs"][..], &["task", "list"], &["dispute", "list"]] {
        place.run(typed).code(0);
        let typed: Vec<&str> = typed.iter().copied().chain(["--json"]).collect();
        assert_eq!(place.run(&typed).code(0).stdout, "[]\n");
    }
    place.run(&["task", "show", "1"]).code(2);
    place.run(&["dispute", "show", "1"]).code(2);
    assert!(!place.work(".forkhestra").exists());
}

#[test]
fn backend_and_model_can_be_chosen_on_the_command_line_and_a_resume_keeps_them() {
    let place = Place::new();
    for cli in ["claude", "codex"] {
        place.agent(cli, "exit 1");
    }
    place
        .config(r#"{"agents": {"r": {"backend": "claude", "model": "old"}, "p": {"command": "codex"}}, "chains": {}}"#);
    let plan = place.run(&["coder -> r -> p", "-p", "x", "--backend", "codex", "--model", "o9", "--dry-run"]);
    let text = &plan.code(0).stdout;
    assert!(text.contains("run by codex") && text.contains("--model o9") && !text.contains("--model old"), "{text}");
    let words = place.run(&["coder", "-p", "x", "--backend", "codx", "--dry-run"]).code(2).words();
    assert!(words.contains("did you mean `codex`?"), "{words}");
    place.run(&["coder", "-p", "x", "--backend", "codex", "--model", "o9"]).code(1);
    place.run(&["resume"]).code(1);
    assert!(place.call("codex", 2).contains("arg --model\narg o9\n"), "{}", place.call("codex", 2));
}

#[test]
fn colour_is_what_the_command_line_says_then_what_the_environment_says() {
    let mut place = Place::new();
    let has = |place: &Place, typed: &[&str]| place.run(typed).code(0).stdout.contains('\u{1b}');
    assert!(!has(&place, &["list"]) && has(&place, &["list", "--color", "always"]));
    place.set("FORCE_COLOR", "1");
    assert!(has(&place, &["list"]) && !has(&place, &["--color=never", "list"]));
    place.set("NO_COLOR", "1");
    assert!(!has(&place, &["list"]) && has(&place, &["list", "--color", "always"]));
}

#[test]
fn c_is_short_for_the_folder_to_work_in() {
    let place = Place::new();
    place.agent("a", "print hi");
    place.write("sub/x", "");
    place.run(&["-C", "sub", "a"]).code(0);
    assert!(place.work("sub/.forkhestra").exists());
}
