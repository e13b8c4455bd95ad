//! The MCP servers: the tools of an attempt for its agent, and the tools of a project for a person's session.

use crate::support::{Place, Ran};
use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const CONFIG: &str = r#"{
  "agents": { "j": { "command": "j", "role": "judge" }, "w": { "command": "w" } },
  "chains": { "night": { "steps": "(w -> j):3" }, "long": { "steps": "slow" } }
}"#;

fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG);
    std::os::unix::fs::symlink(cargo_bin!("forkhestra"), place.path("bin").join("forkhestra")).unwrap();
    place
}

fn call(id: u32, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// A line of an agent's script that calls these tools, and keeps the answers in a file.
fn calls(answers: &str, calls: &[String]) -> String {
    let lines: Vec<String> = calls.iter().map(|call| format!("'{}'", call.replace('\'', "'\\''"))).collect();
    format!("sh printf '%s\\n' {} | forkhestra mcp --attempt > $FAKE_AGENT_DIR/{answers}", lines.join(" "))
}

fn answers(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Talks to `forkhestra mcp` as a client of a person's session does.
fn session(place: &Place, lines: &[String]) -> (Ran, Vec<Value>) {
    let mut command = place.command(&["mcp"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let ran =
        Ran { code: output.status.code(), stdout: place.plain(&output.stdout), stderr: place.plain(&output.stderr) };
    let answers = answers(&ran.stdout);
    (ran, answers)
}

#[test]
fn findings_of_a_reject_by_tool_reach_the_worker_whose_answer_by_tool_reaches_the_judge() {
    let place = place();
    let reject = json!({ "findings": [
        { "file": "work.txt", "line": 1, "what": "it holds a number" }, { "what": "no test", "minor": true },
    ]});
    let answer = json!({ "finding": 1, "fixed": false, "text": "the spec wants it" });
    place.agent(
        "w",
        &format!(
            "sh date +%N >> work.txt\nprint Done.\nnext\nsh date +%N >> work.txt\n{}",
            calls("w", &[call(1, "answer", &answer)])
        ),
    );
    place.agent(
        "j",
        &format!(
            "{}\nprint I looked.\nnext\n{}\nprint Fine now.",
            calls("reject", &[call(1, "reject", &reject)]),
            calls("approve", &[call(1, "approve", &json!({}))])
        ),
    );
    let ran = place.run(&["--chain", "night", "-p", "Work."]);
    let shown = ran
        .code(0)
        .stderr
        .contains("  ✗ rejects (rejection 1)\n    work.txt:1: it holds a number\n    minor: no test\n");
    assert!(shown, "{}", ran.stderr);
    let told = String::from_utf8(place.stdin_of("w", 2)).unwrap() + &place.call("w", 2);
    assert!(told.contains("> - work.txt:1: it holds a number\n> - minor: no test"), "{told}");
    let shown = place.run(&["runs", "show", "--json"]);
    let found = &shown.code(0).json()["findings"];
    let brief =
        |index: usize| (found[index]["state"].clone(), found[index]["file"].clone(), found[index]["answer"].clone());
    assert_eq!(brief(0), (json!("answered"), json!("work.txt"), json!("the spec wants it")));
    assert_eq!(found[1]["severity"], "minor");
    let recorded = std::fs::read_to_string(place.path("agents").join("reject")).unwrap();
    assert_eq!(
        text_of(&answers(&recorded)[0]),
        "recorded: reject, with 2 findings. It takes effect when you have finished."
    );
}

#[test]
fn a_worker_has_no_tool_to_approve_with_and_cannot_call_it() {
    let place = place();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    place.agent("w", &(calls("w", &[list, call(2, "approve", &json!({}))]) + "\nprint Done."));
    place.agent("j", "print VERDICT: reject\nprint - it is wrong");
    place.run(&["w -> j", "-p", "Work."]).code(1);
    let said = answers(&std::fs::read_to_string(place.path("agents").join("w")).unwrap());
    let names: Vec<&str> =
        said[0]["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["submit", "answer", "dispute", "skip"]);
    assert_eq!(said[1]["error"]["message"], "unknown tool: approve");
}

#[test]
fn a_call_after_the_attempt_or_with_a_forged_token_is_refused_and_changes_nothing() {
    let mut place = place();
    place.agent(
        "j",
        &format!(
            "sh echo $FORKHESTRA_TOKEN > $FAKE_AGENT_DIR/token; echo $FORKHESTRA_RESULT > $FAKE_AGENT_DIR/result\n\
             {}\nprint - a.txt:1: wrong\nprint VERDICT: reject",
            calls("answers", &[call(1, "reject", &json!({ "findings": [] }))])
        ),
    );
    place.run(&["j", "-p", "Judge."]).code(1);
    let kept = |name: &str| std::fs::read_to_string(place.path("agents").join(name)).unwrap();
    assert!(kept("answers").contains("a rejection needs at least one finding"), "{}", kept("answers"));
    let (token, result) = (kept("token"), kept("result"));
    for token in [token.trim(), "0123456789abcdef"] {
        place.set("FORKHESTRA_TOKEN", token).set("FORKHESTRA_RESULT", result.trim());
        let ran = place.run(&["mcp", "--attempt"]);
        assert!(ran.code(2).words().contains("the attempt that this `mcp` belongs to has ended"), "{}", ran.stderr);
    }
    let verdict = place.read(".forkhestra/runs/1/1-j/1/verdict.json");
    assert!(verdict.contains("\"reject\""), "{verdict}");
}

#[test]
fn a_server_that_outlives_the_decision_of_its_attempt_records_nothing() {
    let place = place();
    // The server is started, the attempt's calls are taken away as they are at its end, and only then it is called.
    let line = call(1, "approve", &json!({}));
    place.agent(
        "j",
        &format!(
            "sh (sleep 0.3; printf '%s\\n' '{line}') | forkhestra mcp --attempt > $FAKE_AGENT_DIR/late & \
             sleep 0.1; rm $(dirname $FORKHESTRA_RESULT)/calls-*.jsonl; wait\nprint VERDICT: dispute",
        ),
    );
    place.run(&["j", "-p", "Judge."]).code(3);
    let said = answers(&std::fs::read_to_string(place.path("agents").join("late")).unwrap());
    assert_eq!(said[0]["result"]["isError"], true);
    assert!(text_of(&said[0]).contains("the attempt that this `approve` belongs to has ended"), "{}", said[0]);
}

#[test]
fn a_planner_proposes_tasks_by_tool() {
    let place = place();
    let task = |id, title: &str, after: &[&str]| call(id, "propose_task", &json!({ "title": title, "after": after }));
    place.agent("p", &(calls("p", &[task(1, "Draw it", &[]), task(2, "Print it", &["Draw it"])]) + "\nprint Planned."));
    place.config(r#"{ "agents": { "planner": { "command": "p" } }, "chains": {} }"#);
    place.run(&["--chain", "plan", "-p", "A drawing."]).code(0);
    let tasks = place.run(&["task", "list", "--json"]);
    let tasks = tasks.code(0).json();
    let brief: Vec<(&str, Value)> =
        tasks.as_array().unwrap().iter().map(|task| (task["title"].as_str().unwrap(), task["after"].clone())).collect();
    assert_eq!(brief, [("Draw it", json!([])), ("Print it", json!(["1"]))]);
}

#[test]
fn a_session_plans_runs_and_waits_for_a_chain_and_reads_its_findings() {
    let place = place();
    place.agent("w", "sh date +%N >> work.txt\nprint Done.");
    place.agent("j", "print - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let limits = json!({ "time": "10m", "attempts": 20 });
    let run = json!({ "chain": "night", "prompt": "Work.", "limits": limits });
    let (ran, said) = session(
        &place,
        &[
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } })
                .to_string(),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            call(1, "chains", &json!({})),
            call(2, "plan", &json!({ "chain": "night", "prompt": "Work." })),
            call(3, "run", &run),
            call(4, "wait", &json!({ "run": 1 })),
            call(5, "findings", &json!({ "run": 1 })),
            call(6, "report", &json!({ "run": 1 })),
            call(7, "task_add", &json!({ "title": "--help is a title" })),
            call(8, "status", &json!({})),
        ],
    );
    ran.code(0);
    assert!(text_of(&said[1]).contains("\"night\""), "{}", said[1]);
    assert!(text_of(&said[2]).contains("   digest       "), "{}", said[2]);
    assert!(text_of(&said[3]).contains("run 1 is running in the background"), "{}", said[3]);
    let waited: Value = serde_json::from_str(text_of(&said[4])).unwrap();
    assert_eq!((&waited["ended"], &waited["summary"]["state"]), (&json!(true), &json!("complete")), "{waited}");
    let found: Value = serde_json::from_str(text_of(&said[5])).unwrap();
    assert_eq!(found["findings"][0]["file"], "work.txt");
    assert!(text_of(&said[6]).starts_with("# Run 1: night"), "{}", said[6]);
    assert_eq!(text_of(&said[7]), "{\"version\":1,\"task\":\"1\"}\n");
    assert!(said[3..].iter().all(|answer| answer["result"]["isError"] == false), "{}", ran.stdout);
    place.assert_nothing_is_left();
}

#[test]
fn a_session_cannot_exceed_what_a_person_has_allowed() {
    let mut place = place();
    place.config(
        r#"{ "agents": { "w": { "command": "w" }, "all": { "backend": "fake", "permissions": "full" },
                         "sly": { "backend": "fake", "args": ["--all"] } },
             "backends": { "fake": { "program": "w", "permissions": { "full": { "arguments": ["--all"] }, "edit": {} } } },
             "chains": { "any": { "steps": "all" }, "one": { "steps": "w" }, "sly": { "steps": "sly" } }, "limits": { "time": "1h", "attempts": 5 } }"#,
    );
    place.agent("w", "print never");
    let run = |id, chain: &str, attempts: u32| {
        call(id, "run", &json!({ "chain": chain, "prompt": "x", "limits": { "time": "30m", "attempts": attempts } }))
    };
    let (_, said) = session(
        &place,
        &[
            call(1, "run", &json!({ "chain": "one", "prompt": "x" })),
            run(2, "any", 2),
            run(3, "one", 9),
            run(4, "w -> w", 2),
            run(6, "sly", 2),
            call(5, "stop", &json!({ "run": 1 })),
        ],
    );
    let words: Vec<&str> = said.iter().map(text_of).collect();
    assert!(words[0].contains("`limits` is missing"), "{}", words[0]);
    assert!(words[1].contains("only a person may start this chain"), "{}", words[1]);
    assert!(words[2].contains("`attempts` is above that of the config, 5"), "{}", words[2]);
    assert!(words[3].contains("no chain is called `w -> w`"), "{}", words[3]);
    assert!(words[4].contains("only a person may start this chain"), "{}", words[4]);
    assert!(said.iter().all(|answer| answer["result"]["isError"] == true));
    assert_eq!(place.calls("w"), 0);
    // An agent of a chain may not start chains.
    place.set("FORKHESTRA_TOKEN", "t");
    assert!(place.run(&["mcp"]).code(2).words().contains("only for humans"));
}

#[test]
fn an_agent_cannot_start_chains_of_another_project_although_it_clears_its_environment() {
    let place = place();
    place.write(
        "other/forge/chains.json",
        r#"{ "agents": { "x": { "command": "x" } }, "chains": { "c": { "steps": "x" } } }"#,
    );
    place.agent("w", "sh env -u FORKHESTRA_TOKEN -u FORKHESTRA_RESULT forkhestra mcp -C other < /dev/null 2> $FAKE_AGENT_DIR/said; true\nprint Done.");
    place.run(&["w", "-p", "Work."]).code(0);
    let said = std::fs::read_to_string(place.path("agents").join("said")).unwrap();
    assert!(said.contains("this is only for humans"), "{said}");
}

#[test]
fn a_message_that_is_too_long_is_answered_and_the_server_continues() {
    let place = place();
    let long = "x".repeat(5 << 20);
    let (ran, said) = session(&place, &[long, json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string()]);
    ran.code(0);
    assert_eq!((said[0]["error"]["code"].as_i64(), &said[1]["result"]), (Some(-32600), &json!({})));
}

#[test]
fn init_skill_writes_a_skill_for_a_persons_own_agent_and_keeps_one_that_exists() {
    let place = place();
    assert_eq!(place.run(&["init", "--skill"]).code(0).stdout, "wrote .claude/skills/forkhestra/SKILL.md\n");
    assert!(place.read(".claude/skills/forkhestra/SKILL.md").starts_with("---\nname: forkhestra\n"));
    let again = place.run(&["init", "--skill"]);
    assert_eq!(again.code(0).stdout, "kept  .claude/skills/forkhestra/SKILL.md, which already exists\n");
}
