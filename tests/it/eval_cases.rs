//! Cases in a file of their own, their variables and tags.

use crate::evaluations::CONFIG;
use crate::support::Place;

/// The input, the expected output, and any other columns as variables.
const ROWS: &str = "id,text,expected,tone,tags
greeting,hello,HELLO,capital letters,short; loud
farewell,goodbye,goodbye,small letters,short
thanks,thank you,THANK YOU,capital letters,loud
";

#[test]
fn cases_come_from_a_csv_file_and_their_other_columns_are_variables() {
    let place = Place::new();
    let suite = r#"{ "taskType": "shouting", "prompt": "Repeat {text} in {tone}.", "executor": "shouter",
        "casesFile": "cases.csv", "defaults": { "criteria": [{ "type": "exact" }], "tags": ["all"] } }"#;
    let shouter = r#"
        prompt=$(grep '^Repeat')
        input=$(echo "$prompt" | sed 's/Repeat \(.*\) in .*/\1/')
        case "$prompt" in *capital*) echo "$input" | tr a-z A-Z ;; *) echo "$input" ;; esac
    "#;
    place.config(CONFIG).write("shouter.sh", shouter).write("suite.json", suite).write("cases.csv", ROWS);
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(0).stdout.contains("all 3 cases passed"), "{}", ran.all());
    for (tag, count) in [("all", "all 3 cases passed"), ("loud", "all 2 cases passed")] {
        let ran = place.run(&["eval", "run", "suite.json", "--only", tag]);
        assert!(ran.code(0).stdout.contains(count), "{tag}: {}", ran.stdout);
    }
    let ran = place.run(&["eval", "run", "suite.json", "--only", "loud", "--case", "thanks"]);
    assert!(ran.code(0).stdout.contains("the case passed"), "{}", ran.stdout);
    let lines = r#"{ "id": "a", "text": "one", "expected": "ONE", "vars": { "tone": "capital letters" } }
        { "id": "b", "text": "two", "expected": "two", "vars": { "tone": "small letters" } }"#;
    let array = format!("[{}] // as in a suite", lines.replace('\n', ",\n"));
    for (file, text) in [("cases.jsonl", lines), ("cases.json5", &array)] {
        place.write(file, text).write("suite.json", suite.replace("cases.csv", file));
        let ran = place.run(&["eval", "run", "suite.json"]);
        assert!(ran.code(0).stdout.contains("all 2 cases passed"), "{file}: {}", ran.all());
    }
}

#[test]
fn errors_in_a_file_of_cases_are_shown_at_their_line() {
    let place = Place::new();
    let suite = r#"{ "taskType": "t", "prompt": "Repeat {text} in {tone}.", "executor": "shouter",
        "casesFile": "cases.csv", "defaults": { "criteria": [{ "type": "exact" }] } }"#;
    let rows = "id,text,expected,tone,repeat\na,one,ONE,x,\na,two,TWO,,\nc,three,,x,often\n";
    place.config(CONFIG).write("suite.json", suite).write("cases.csv", rows);
    let ran = place.run(&["eval", "run", "suite.json"]);
    insta::assert_snapshot!("evaluation_cases_file", ran.code(2).stderr);
    for (cases, why) in [
        (r#""casesFile": "none.csv""#, "cannot read none.csv: it does not exist"),
        (r#""casesFile": "suite.json", "cases": []"#, "`cases` and `casesFile` are both set"),
        (r#""taskType2": 1"#, "the suite has no cases"),
        (r#""cases": [{ "id": "a", "criteria": [{ "type": "json" }] }]"#, "the case `a` has no input"),
    ] {
        place.write("suite.json", format!(r#"{{ "taskType": "t", "prompt": "p", "executor": "shouter", {cases} }}"#));
        let ran = place.run(&["eval", "run", "suite.json"]);
        assert!(ran.code(2).stderr.contains(why), "{}", ran.stderr);
    }
    place.write("suite.json", suite).write("cases.csv", ROWS);
    let ran = place.run(&["eval", "run", "suite.json", "--only", "lout"]);
    assert!(ran.code(2).stderr.contains("did you mean `loud`? its tags: loud, short"), "{}", ran.stderr);
}

#[test]
fn events_of_an_evaluation_go_to_standard_output_or_to_a_file_also_on_resume() {
    let place = Place::new();
    let suite = r#"{ "taskType": "shouting", "prompt": "Repeat {text}", "executor": "shouter",
        "casesFile": "cases.csv", "defaults": { "criteria": [{ "type": "exact" }] } }"#;
    place.config(CONFIG).write("shouter.sh", "grep '^Repeat' | sed 's/Repeat //' | tr a-z A-Z");
    place.write("suite.json", suite).write("cases.csv", "id,text,expected\na,one,ONE\nb,two,TWO\n");
    let types = |text: &str| -> Vec<String> {
        let event = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["event"].clone();
        let name =
            |event: serde_json::Value| event["event"]["type"].as_str().or(event["type"].as_str()).unwrap().into();
        text.lines().map(event).map(name).collect()
    };
    let ran = place.run(&["eval", "run", "suite.json", "--events", "ndjson", "--limit", "attempts=1"]);
    let first = types(&ran.code(4).stdout);
    assert_eq!(first[..2], ["runStarted", "started"]);
    assert_eq!(first.iter().filter(|name| *name == "caseJudged").count(), 1, "{first:?}");
    assert_eq!(first.last().unwrap(), "runFinished");
    let ran = place.run(&["resume", "--limit", "attempts=9", "--events", "ndjson=events.ndjson"]);
    assert!(ran.code(0).stdout.contains("all 2 cases passed"), "{}", ran.all());
    let second = types(&place.read("events.ndjson"));
    assert_eq!(second.iter().filter(|name| *name == "caseJudged").count(), 1, "{second:?}");
    let ran = place.run(&["eval", "run", "suite.json", "--events", "ndjson", "--json"]);
    assert!(ran.code(2).words().contains("standard output"), "{}", ran.stderr);
}
