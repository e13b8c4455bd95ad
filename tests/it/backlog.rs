//! Where tasks come from, what is run for them, and what their audit trail contains.

use super::support::Place;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn tasks_are_imported_from_lines_of_json_all_of_them_or_none() {
    let place = Place::new();
    place.write("docs/login.md", "Log in.");
    let lines = r#"{"title": "Log in", "spec": "docs/login.md", "id": "login", "tests": "true"}

{"title": "Log out", "after": "login"}
{"title": "Both", "after": ["login"], "id": "1"}
"#;
    let mut child = place.command(&["task", "import", "-", "--json"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(json(&String::from_utf8(output.stdout).unwrap())["tasks"], serde_json::json!(["login", "2", "1"]));
    let tasks = json(&place.run(&["task", "list", "--json"]).code(0).stdout);
    assert_eq!((&tasks[0]["spec"], &tasks[1]["after"][0]), (&"docs/login.md".into(), &"login".into()));
    place.write(
        "bad.ndjson",
        "{\"title\": \"Good\"}\n{\"titel\": \"A\"}\n{\"title\": \"B\", \"after\": [\"none\"]}\n{\"title\": \"C\", \"id\": \"login\"}\n{\"title\": \"D\", \"spec\": \"no.md\"}\nnot json\n",
    );
    let words = place.run(&["task", "import", "bad.ndjson"]).code(2).words();
    for fault in [
        "unknown field `titel`",
        "no task none",
        "already a task login",
        "no.md is not a readable file",
        "this line is not valid JSON",
        "[bad.ndjson:6:2]",
    ] {
        assert!(words.contains(fault), "{fault}: {words}");
    }
    assert_eq!(json(&place.run(&["task", "list", "--json"]).code(0).stdout).as_array().unwrap().len(), 3);
}

/// Makes a project whose build and tests succeed or fail by files.
fn project(place: &mut Place) {
    place.write("Makefile", "build:\n\ttest ! -e no-build\ntest:\n\ttest ! -e no-test\n");
    place.agent("mine", "sh date +%N > work");
    let approves = r#"print {"type":"result","result":"VERDICT: approve","is_error":false,"usage":{"input_tokens":9}}"#;
    place.agent("claude", approves);
    place.config(
        r#"{"agents": {"coder": {"command": "mine"}, "reviewer": {"backend": "claude", "model": "o9"}}, "chains":
            {"task": "(coder -> verify -> reviewer):2"}}"#,
    );
}

#[test]
fn the_tests_of_a_task_are_run_by_verify_for_it() {
    let mut place = Place::new();
    project(&mut place);
    place.run(&["task", "add", "A", "--tests", "echo ran >> tests-ran; test -e shown"]).code(0);
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(1).stderr.contains("test -e shown"), "{}", ran.stderr);
    assert_eq!(place.read("tests-ran"), "ran\nran\n");
    assert!(!place.run(&["(coder -> verify):1", "-p", "x"]).stderr.contains("tests-ran"));
    let trail = json(&place.run(&["task", "show", "1", "--json"]).code(0).stdout)["audit"].to_string();
    assert!(trail.contains("`verify`: the task's tests failed"), "{trail}");
}

#[test]
fn a_trail_says_what_failed_and_who_approved_with_which_model() {
    let mut place = Place::new();
    project(&mut place);
    place.run(&["task", "add", "A"]).code(0);
    place.write("no-test", "");
    place.run(&["task", "run"]).code(1);
    place.write("no-build", "");
    place.run(&["task", "run"]).code(1);
    std::fs::remove_file(place.work("no-test")).unwrap();
    std::fs::remove_file(place.work("no-build")).unwrap();
    place.run(&["task", "run"]).code(0);
    let trail = json(&place.run(&["task", "show", "1", "--json"]).code(0).stdout)["audit"].to_string();
    for words in ["`verify`: tests failed", "`verify`: build failed", "\"reviewer (claude, o9)\"", "\"coder\""] {
        assert!(trail.contains(words), "{words}: {trail}");
    }
}

#[test]
fn a_plan_without_a_task_says_so_and_does_not_succeed() {
    let place = Place::new();
    let plan =
        r#"{"tasks": [{"title": "A", "after": null, "needs": null}, {"title": "B", "after": "A"}, {"name": "C"}]}"#;
    place.agent("p", &format!("print I wrote PLAN.md.\nnext\nprint {plan}"));
    place.config(r#"{"agents": {"planner": {"command": "p", "template": "planner"}}, "chains": {}}"#);
    let ran = place.run(&["plan"]);
    assert!(
        ran.code(0).stderr.contains("no task was proposed: its final message has no JSON object"),
        "{}",
        ran.stderr
    );
    assert!(
        place.call("p", 2).contains("End your last message with the tasks as one JSON object"),
        "{}",
        place.call("p", 2)
    );
    assert!(ran.stderr.contains("2 tasks proposed") && ran.stderr.contains("left out: task 3: missing field `title`"));
    let tasks = json(&place.run(&["task", "list", "--json"]).code(0).stdout);
    assert_eq!((tasks.as_array().unwrap().len(), &tasks[1]["after"][0]), (2, &"1".into()));
    place.agent("p", "print I wrote PLAN.md.");
    place.run(&["plan"]).code(3);
}

#[test]
fn a_task_is_picked_after_the_wait_for_another_run() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_STILL_CLOCK", "0");
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.agent(
        "a",
        &format!("sh touch {0}; while [ ! -e {1} ]; do sleep 0.01; done\nnext\nprint ok", up.display(), go.display()),
    );
    place.config(r#"{"chains": {"task": "a"}}"#);
    place.run(&["task", "add", "A"]).code(0);
    place.run(&["task", "add", "B"]).code(0);
    let first = place.start(&["task", "run"]);
    place.wait_for(&up);
    let said = place.path("tmp/second");
    let mut second = place.command(&["task", "run", "--wait"]);
    let mut second = second.stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap()).spawn().unwrap();
    while !std::fs::read_to_string(&said).unwrap().contains("waiting for another run here") {
        std::thread::yield_now();
    }
    std::fs::write(&go, "").unwrap();
    assert!(second.wait().unwrap().success(), "{}", std::fs::read_to_string(&said).unwrap());
    first.end().code(0);
    let tasks = json(&place.run(&["task", "list", "--json"]).code(0).stdout);
    assert!(tasks.as_array().unwrap().iter().all(|task| task["status"] == "completed"), "{tasks}");
}
