//! Commands of other tools, and alternative spellings, do what they say.

use super::support::Place;

#[test]
fn runs_list_and_runs_report_are_runs_and_report() {
    let place = Place::new();
    place.agent("a", "print hi");
    place.run(&["a"]).code(0);
    assert_eq!(place.run(&["runs", "list"]).code(0).stdout, place.run(&["runs"]).code(0).stdout);
    let written = |typed: &[&str]| place.run(&[typed, &["--out", "page.html"]].concat()).code(0).all();
    assert_eq!(written(&["runs", "report", "1"]), written(&["report", "1"]));
}

#[test]
fn verify_is_the_profile_and_wait_lock_is_wait() {
    let place = Place::new();
    place.agent("a", "print hi");
    // Without a linter and a build, the strictest profile is refused.
    let refused = |option: &str| place.run(&["run", "verify", option, "strict", "--dry-run"]).code(2).stderr.clone();
    assert_eq!(refused("--verify"), refused("--profile"));
    place.run(&["a", "--wait-lock"]).code(0);
}

#[test]
fn limits_are_understood_in_kebab_case_too() {
    let place = Place::new();
    place.agent("a", "print hi");
    let limits = |options: &[&str]| {
        let ran = place.run(&[&["a", "--dry-run", "--json"], options].concat());
        serde_json::from_str::<serde_json::Value>(&ran.code(0).stdout).unwrap()["limits"].clone()
    };
    let typed = limits(&["--limit", "stalled-after=7", "--limit", "usage-wait=2h"]);
    assert_eq!(typed, limits(&["--limit", "stalledAfter=7", "--limit", "wait=2h"]));
    assert_ne!(typed, limits(&[]));
}

#[test]
fn tasks_are_created_listed_started_and_removed_by_the_words_of_other_tools() {
    let place = Place::new();
    place.config(r#"{"agents": {"coder": {"command": "c"}}, "chains": {"task": "coder"}}"#).agent("c", "print hi");
    for (index, verb) in ["create", "new", "add"].into_iter().enumerate() {
        place.run(&["task", verb, "one"]).code(0);
        assert_eq!(place.run(&["task", "ls"]).code(0).stdout.matches("one").count(), index + 1);
    }
    place.run(&["task", "rm", "2"]).code(0);
    place.run(&["task", "remove", "3"]).code(0);
    assert!(place.run(&["task", "show", "2"]).code(2).words().contains("no task"));
    place.run(&["task", "start", "1"]).code(0);
    assert!(place.run(&["tasks", "list"]).code(0).stdout.contains("completed"));
}

#[test]
fn task_run_takes_backend_and_model() {
    let place = Place::new();
    place.agent("codex", "exit 1");
    place.run(&["task", "add", "one"]).code(0);
    let ran = place.run(&["task", "run", "1", "--backend", "codex", "--model", "o9", "--dry-run"]);
    assert!(ran.code(0).stdout.contains("--model o9"), "{}", ran.stdout);
}

#[test]
fn task_run_takes_timeout_idle_timeout_and_base() {
    let place = Place::new();
    place.config(r#"{"chains": {"task": "a:1"}}"#).agent("a", "marker");
    place.run(&["task", "add", "Fix it"]).code(0);
    let words = ["--timeout", "7m", "--idle-timeout", "3m", "--dry-run", "--json"];
    let plan = place.run(&[&["task", "run"], &words[..]].concat());
    let plan: serde_json::Value = serde_json::from_str(&plan.code(0).stdout).unwrap();
    assert_eq!([&plan["steps"][0]["timeout"], &plan["steps"][0]["idleTimeout"]], ["7m", "3m"]);
    let ran = place.run(&["task", "run", "--base", "nowhere"]);
    assert!(ran.code(2).words().contains("--base needs a git repository"), "{}", ran.stderr);
}
