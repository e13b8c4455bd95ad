//! Backends that forkhestra does not know, as data: their JSON output is read by the rules of a `reader`.

use crate::support::Place;

const READER: &str = r#""text": { "when": { "/type": "message" }, "at": "/content" },
    "tool": { "when": { "/type": "tool" }, "name": "/name", "input": "/input" },
    "final": { "when": { "/type": "result" }, "at": "/text" },
    "session": "/session",
    "usage": { "when": { "/type": "result" }, "input": "/usage/in", "output": "/usage/out", "cost": "/usd" },
    "error": { "when": { "/type": "error" }, "at": "/message", "status": "/status" }"#;

fn config(reader: &str) -> String {
    format!(
        r#"{{ "backends": {{ "acme": {{ "program": "acme", "deliver": "file", "last": ["--prompt-file"],
              "permissions": {{ "edit": {{}} }}, "reader": {{ {reader} }} }} }},
             "agents": {{ "w": {{ "backend": "acme" }} }}, "chains": {{}} }}"#
    )
}

fn line(json: &str) -> String {
    format!("print {json}\n")
}

#[test]
fn a_reader_finds_text_tools_final_message_usage_and_session_in_json_lines() {
    let place = Place::new();
    place.config(&config(READER));
    let first = [
        r#"{"type":"message","content":"I read a file."}"#,
        // What a tool shows is not the agent's word.
        r#"{"type":"tool","name":"read","input":{"path":"a.txt"},"output":"FORKHESTRA_COMPLETE"}"#,
        r#"{"type":"toolOutput","text":"FORKHESTRA_COMPLETE"}"#,
        r#"{"type":"result","text":"Not yet.","session":"s1","usage":{"in":7,"out":3},"usd":0.25}"#,
    ];
    let second =
        [r#"{"type":"result","text":"FORKHESTRA_COMPLETE","session":"s2","usage":{"in":1,"out":1},"usd":0.25}"#];
    let script = |lines: &[&str]| lines.iter().map(|json| line(json)).collect::<String>();
    place.agent("acme", &format!("sh date +%N > n\n{}next\n{}", script(&first), script(&second)));
    let ran = place.run(&["w:3", "-p", "Work."]);
    assert!(ran.code(0).stdout.contains("I read a file.\n[read] a.txt\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("complete (2 attempts, 0.0 s, 12 tokens, $0.50)"), "{}", ran.stderr);
    assert_eq!(place.calls("acme"), 2);
    assert_eq!(place.read(".forkhestra/runs/1/1-w/1/final.md"), "Not yet.");
    let shown = place.run(&["runs", "show", "--json"]);
    assert_eq!(shown.code(0).json()["attempts"][1]["session"], "s2");
    // It is read in the same way later.
    assert!(place.run(&["runs", "log", "1.1.1"]).code(0).stdout.contains("[read] a.txt\n"));
}

#[test]
fn the_error_of_a_reader_says_what_kind_it_is() {
    let place = Place::new();
    place.config(&config(READER));
    place.agent("acme", &(line(r#"{"type":"error","message":"bad key","status":401}"#) + "exit 1"));
    let ran = place.run(&["w:3", "-p", "Work."]);
    assert_eq!((place.calls("acme"), ran.code(1).stderr.contains("bad key")), (1, true), "{}", ran.stderr);
}

#[test]
fn json_whole_reads_an_output_that_is_one_value_on_many_lines() {
    let place = Place::new();
    place.config(&config(r#""json": "whole", "final": { "at": "/answer/0/text" }"#));
    place.agent("acme", "print {\nprint   \"answer\": [{ \"text\": \"FORKHESTRA_COMPLETE\" }]\nprint }");
    assert!(place.run(&["w:1", "-p", "Work."]).code(0).stderr.contains("marker seen"));
}

#[test]
fn json_whole_reads_a_list_and_a_reader_that_nobody_uses_is_checked_too() {
    let place = Place::new();
    place.config(&config(r#""json": "whole", "final": { "at": "/0/result" }"#));
    place.agent("acme", "print [{ \"result\": \"FORKHESTRA_COMPLETE\" }]");
    place.run(&["w:1", "-p", "Work."]).code(0);
    place.config(
        r#"{ "backends": { "acme": { "program": "acme", "reader": { "final": { "at": "/text" } } } }, "chains": {} }"#,
    );
    assert!(place.run(&["validate"]).code(2).words().contains("any line could be the final message"));
}

#[test]
fn a_message_either_calls_tools_or_is_the_last_one() {
    let place = Place::new();
    let rules = r#""tool": { "when": { "/role": "assistant", "/tool_calls/0/type": "function" }, "name": "/tool_calls/0/function/name" },
                   "final": { "when": { "/role": "assistant", "/tool_calls": "null" }, "at": "/content" }"#;
    place.config(&config(rules));
    let calls = r#"{"role":"assistant","content":"FORKHESTRA_COMPLETE","tool_calls":[{"type":"function","function":{"name":"ls"}}]}"#;
    place.agent("acme", &format!("{}{}", line(calls), line(r#"{"role":"assistant","content":"Not yet."}"#)));
    let ran = place.run(&["w:1", "-p", "Work."]);
    assert!(ran.code(1).stdout.contains("[ls] \nNot yet.\n"), "{}", ran.all());
}

#[test]
fn a_reader_by_which_the_output_of_a_tool_could_be_the_final_message_is_refused() {
    for (reader, words) in [
        (r#""final": { "at": "/text" }"#, "any line could be the final message"),
        (
            r#""tool": { "when": { "/type": "tool" } }, "final": { "when": { "/done": "true" }, "at": "/text" }"#,
            "`final` and `tool` can match the same line",
        ),
        (
            r#""text": { "when": { "/type": "message" }, "at": "/text" }, "final": { "when": { "/type": "end" } }"#,
            "nothing says what a tool call is",
        ),
        (r#""final": { "when": { "type": "end" }, "at": "text" }"#, "`text` is not a JSON Pointer"),
        (r#""text": { "at": "/a" }"#, "`final`"),
    ] {
        let place = Place::new();
        place.config(&config(reader)).agent("acme", "print x");
        let ran = place.run(&["w", "-p", "x"]);
        assert!(ran.code(2).words().contains(words), "{reader}\n{}", ran.stderr);
        assert_eq!(place.calls("acme"), 0);
    }
}

#[test]
fn init_backend_writes_an_entry_from_the_help_of_a_program() {
    let place = Place::new();
    place.agent("acme", "print Usage: acme [options]\\n  --print\\n  --model NAME\\n  --auto-edit\\n  --yolo");
    assert!(place.run(&["init", "--backend", "acme"]).code(0).stdout.starts_with("wrote forge/chains.json\n"));
    place.run(&["validate"]).code(0);
    place.agent("acme", "print x");
    let shown = place.run(&["coder", "-p", "x", "--permissions", "full", "--dry-run"]);
    assert!(shown.code(0).stdout.contains("/bin/acme --print --yolo"), "{}", shown.stdout);
    assert!(place.run(&["init", "--backend", "claude"]).code(2).words().contains("`claude` is a backend already"));
    assert!(place.run(&["init", "--backend", "nobody"]).code(2).words().contains("there is no program `nobody`"));
}

#[test]
fn every_example_of_the_page_about_backends_is_a_valid_config() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/backends.md")).unwrap();
    let examples: Vec<&str> = page.split("```json5\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let place = Place::new();
        for program in ["acme", "droid", "cn", "grok", "kilo", "agy", "cursor-agent", "cline"] {
            place.agent(program, "print x");
        }
        place.config(example);
        place.run(&["validate"]).code(0);
    }
}
