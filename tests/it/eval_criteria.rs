//! Criteria of a suite: what an answer has to be, judged without a model.

use crate::evaluations::CONFIG;
use crate::support::{Place, Ran};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A suite of one case, "hello", whose answer is "HELLO", with these criteria.
fn suite(criteria: &str) -> String {
    format!(
        r#"{{ "taskType": "shouting", "prompt": "Repeat {{text}}", "executor": "shouter",
        "cases": [{{ "id": "greeting", "text": "hello", "expected": "HELLO", "vars": {{ "tone": "loud" }},
        "criteria": [{criteria}] }}] }}"#
    )
}

const SHOUTER: &str = "grep '^Repeat' | sed 's/Repeat //' | tr a-z A-Z";

/// The result of the case.
fn result(ran: &Ran) -> serde_json::Value {
    ran.json()["generations"][0]["cases"][0].clone()
}

fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG).write("shouter.sh", SHOUTER);
    place
}

#[test]
fn a_command_judges_the_output_on_its_input_in_the_suites_directory() {
    let place = place();
    place.write("suites/right.sh", "#!/bin/sh\ntest \"$(cat)\" = \"$1\"");
    fs::set_permissions(place.work("suites/right.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    place.write("suites/score.py", "import json, sys\nprint('at work')\nprint(json.dumps({'score': 0.75}))\n");
    for (criterion, expected) in [
        (r#"{ "type": "command", "run": ["./right.sh", "HELLO"] }"#, "1 1.00"),
        (r#"{ "type": "command", "run": ["./right.sh", "hello"] }"#, "0 0.00"),
        (r#"{ "type": "command", "run": "grep -q HELLO && test -e right.sh" }"#, "1 1.00"),
        (r#"{ "type": "command", "run": ["python3", "score.py"] }"#, "1 0.75"),
        // Several criteria: the mean score, and each has to pass.
        (r#"{ "type": "exact" }, { "type": "command", "run": "exit 3" }"#, "0 0.50"),
    ] {
        place.write("suites/suite.json", suite(criterion));
        let ran = place.run(&["eval", "run", "suites/suite.json", "--json"]);
        let result = result(&ran);
        let found = format!("{} {:.2}", u8::from(result["pass"] == true), result["score"].as_f64().unwrap());
        assert_eq!(found, expected, "{criterion}: {}", ran.all());
    }
}

#[test]
fn a_command_finds_the_files_of_its_case_in_a_directory_that_is_gone_afterwards() {
    let place = place();
    let run = "cd $FORKHESTRA_CASE && pwd > $OUT && cat text expected output case.json >> $OUT";
    let run = run.replace("$OUT", &place.work("seen").display().to_string());
    place.write("suite.json", suite(&format!(r#"{{ "type": "command", "run": "{run}" }}"#)));
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(0).stdout.contains("the case passed"), "{}", ran.all());
    let seen = place.read("seen");
    let (folder, files) = seen.split_once('\n').unwrap();
    assert_eq!(
        files,
        "helloHELLOHELLO{\"id\":\"greeting\",\"output\":\"HELLO\",\"text\":\"hello\",\"expected\":\"HELLO\",\
         \"vars\":{\"tone\":\"loud\"},\"tags\":[],\"generation\":0,\"repetition\":1}\n"
    );
    assert!(!std::path::Path::new(folder).exists(), "{folder}");
}

#[test]
fn a_command_that_hangs_or_says_nonsense_is_an_error_of_the_case_and_no_verdict() {
    let place = place();
    for (criterion, why) in [
        (r#"{ "type": "command", "run": "sleep 3600", "timeout": "1s" }"#, "criterion_error: it timed out"),
        (r#"{ "type": "command", "run": "echo '{\"score\": 7}'" }"#, "criterion_error: `score` of its JSON is not"),
        (r#"{ "type": "command", "run": "kill -9 $$" }"#, "criterion_error: killed by signal 9"),
    ] {
        place.write("suite.json", suite(criterion));
        let ran = place.run(&["eval", "run", "suite.json", "--json"]);
        let result = result(ran.code(1));
        let error = result["error"].as_str().unwrap_or_default();
        assert!(error.starts_with(why), "{criterion}: {}", ran.all());
    }
}

#[test]
fn a_command_is_run_again_each_time_and_the_answer_is_not() {
    let place = place();
    let seen = place.work("seen").display().to_string();
    place.write("suite.json", suite(&format!(r#"{{ "type": "command", "run": "echo . >> {seen}" }}"#)));
    for times in 1..=2 {
        let ran = place.run(&["eval", "run", "suite.json"]);
        assert!(ran.code(0).stdout.contains("the case passed"), "{}", ran.all());
        assert_eq!(place.read("seen").lines().count(), times);
    }
    let ran = place.run(&["eval", "run", "suite.json", "--json"]);
    assert_eq!(result(&ran)["cached"], true);
}

#[test]
fn criteria_with_errors_are_refused_before_anything_runs() {
    let place = place();
    place.write(
        "suite.json",
        suite(
            r#"{ "type": "command", "run": ["./none.sh"] }, { "type": "command" }, { "type": "jsonPath", "path": "a[" },
            { "type": "jsonPath", "path": "$.a", "equals": 1, "pattern": "1" }, { "type": "cost" }, { "type": "time" },
            { "type": "similar" }, { "type": "regex", "pattern": "a", "not": "yes" }"#,
        ),
    );
    let ran = place.run(&["eval", "run", "suite.json"]);
    insta::assert_snapshot!("evaluation_criteria_refused", ran.code(2).stderr);
    place.write("suite.json", suite(r#"{ "type": "command", "run": ["./none.sh"] }"#));
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(2).stderr.contains("./none.sh"), "{}", ran.stderr);
    assert!(!place.work(".forkhestra").exists());
}

#[test]
fn cost_and_time_of_an_answer_are_judged_also_if_it_is_stored() {
    let place = Place::new();
    let line =
        r#"{"type":"result","result":"HELLO","is_error":false,"total_cost_usd":0.03,"usage":{"input_tokens":10}}"#;
    place.config(
        r#"{ "agents": { "shouter": { "command": ["sh", "shouter.sh"], "output": "claude-stream" } }, "chains": {} }"#,
    );
    place.write("shouter.sh", format!("cat > /dev/null\necho '{line}'"));
    for (most, code) in [("0.05", 0), ("0.01", 1)] {
        let criteria = format!(r#"{{ "type": "cost", "maxCost": {most} }}, {{ "type": "time", "maxTime": "1m" }}"#);
        place.write("suite.json", suite(&criteria));
        let ran = place.run(&["eval", "run", "suite.json", "--json"]);
        assert_eq!(result(ran.code(code))["cached"], code == 1, "{}", ran.all());
    }
    let ran = place.run(&["eval", "show"]);
    assert!(ran.stdout.contains("the answer cost $0.0300; the maximum is $0.01"), "{}", ran.stdout);
}

/// Returns the content of the first block of a document in this language.
fn block<'a>(document: &'a str, language: &str) -> &'a str {
    let rest = document.split_once(&format!("```{language}\n")).unwrap().1;
    rest.split_once("\n```").unwrap().0
}

#[test]
fn the_suite_in_the_document_about_promptfoo_runs() {
    let document = include_str!("../../docs/promptfoo.md");
    let place = Place::new();
    place.write("summaries.json5", block(document, "json5")).write("cases.csv", block(document, "csv"));
    let prompt = document.lines().find_map(|line| line.strip_prefix("forkhestra   ")).unwrap();
    place.write("summary.txt", prompt).config(block(document, "json"));
    let asked = r#"case "$(cat)" in *"for managers, in a plain tone: At 04:12"*|*"for engineers, in a plain tone: Version 12"*) ;; *) exit 9 ;; esac"#;
    let line = r#"{"type":"result","result":"In short: it is over.","is_error":false,"total_cost_usd":0.003,"usage":{"input_tokens":10}}"#;
    let claude = format!("#!/bin/sh\n{asked}\necho '{line}'\n");
    let item = r#"{"type":"item.completed","item":{"type":"agent_message","text":"{\"pass\": true, \"score\": 0.9, \"issues\": [], \"suggestions\": []}"}}"#;
    let codex =
        format!("#!/bin/sh\ncat > /dev/null\necho '{item}'\necho '{{\"type\":\"turn.completed\",\"usage\":{{}}}}'\n");
    for (name, script) in [("claude", claude), ("codex", codex)] {
        fs::write(place.path("bin").join(name), script).unwrap();
        fs::set_permissions(place.path("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = place.run(&["eval", "run", "summaries.json5"]);
    assert!(ran.code(0).stdout.contains("all 2 cases passed"), "{}", ran.all());
}
