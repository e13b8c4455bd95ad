//! What `status`, `runs`, `tell` and `task` say about `task run --jobs`, while it is running and later.

use crate::answers::check;
use crate::batch::{CHAINS, WRITES, hub, place, wait_for_workers, waiting};
use crate::signals::wait_for_state;
use crate::support::{Place, git};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

fn json(place: &Place, schema: &str, words: &[&str]) -> serde_json::Value {
    let text = place.run(words).code(0).stdout.clone();
    check(schema, &text);
    serde_json::from_str(&text).unwrap()
}

/// Runs a command beside a batch, and returns what it printed, in one line.
#[track_caller]
fn beside(place: &Place, words: &[&str], code: i32) -> String {
    let (exit, text) = place.beside(words);
    assert_eq!(exit, Some(code), "{text}");
    text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn status_shows_what_each_lane_is_working_on_and_task_list_where_each_task_is() {
    let place = waiting(3);
    let run = place.start(&["task", "run", "-j", "2"]);
    wait_for_workers(&place, &[1, 2]);
    let status = beside(&place, &["status"], 0);
    for words in ["1 1 Task 1 (run 2) 1.1 worker for", "2 2 Task 2 (run 3)", "3 tasks: 2 running, 1 waiting"] {
        assert!(status.contains(words), "{words} is missing: {status}");
    }
    let told = beside(&place, &["status", "--json"], 0);
    check("status", &told);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["roots"][0]["run"]["lanes"][1]["task"], "2");
    let list = beside(&place, &["task", "list"], 0);
    assert!(list.contains("Task 2 (in lane 2 of batch 1)"), "{list}");
    assert!(beside(&place, &["task", "approve", "1"], 2).contains("run 1 is working on task 1"));
    fs::write(place.path("tmp/go"), "").unwrap();
    run.end().code(0);
    let list = json(&place, "tasks", &["task", "list", "--json"]);
    assert!(list[0]["place"].as_str().unwrap().starts_with("landed as "), "{list}");
    json(&place, "task", &["task", "show", "1", "--json"]);
}

#[test]
fn tell_reaches_one_run_of_a_batch_and_refuses_the_whole() {
    let place = waiting(2);
    let run = place.start(&["task", "run", "-j", "2"]);
    wait_for_workers(&place, &[1, 2]);
    let refused = beside(&place, &["tell", "be brief"], 2);
    assert!(refused.contains("tell/batch") && refused.contains("Running: 2 (task 1), 3 (task 2)"), "{refused}");
    assert!(beside(&place, &["tell", "3", "be brief"], 0).starts_with("run 3 has your message"));
    fs::write(place.path("tmp/go"), "").unwrap();
    run.end().code(0);
}

#[test]
fn runs_shows_the_runs_of_a_batch_below_it_and_a_batch_as_what_happened_to_its_tasks() {
    let place = place(2, WRITES, "ls file-*.txt > /dev/null");
    place.run(&["task", "run", "-j", "2"]).code(0);
    let list = place.run(&["runs"]).code(0).stdout.clone();
    let lines: Vec<&str> = list.lines().skip(1).collect();
    assert!(lines[0].contains("1  task run --jobs 2") && lines[0].contains("complete"), "{list}");
    let is_below =
        |line: &&str| ["  1: Task 1", "  2: Task 2", "  verify: check"].iter().any(|words| line.contains(words));
    assert!(lines.len() >= 4 && lines[1..].iter().all(is_below), "{list}");
    let rows = json(&place, "runs", &["runs", "--json"]);
    let batch = rows.as_array().unwrap().iter().find(|row| row["kind"] == "batch").unwrap();
    assert!(batch["attemptCount"].as_u64().unwrap() >= 5, "{batch}");
    let shown = place.run(&["runs", "show"]).code(0).stdout.clone();
    assert!(shown.contains("● batch 1 begins: 2 tasks") && shown.contains("2 of 2 tasks landed"), "{shown}");
    let shown = json(&place, "run", &["runs", "show", "--json"]);
    assert_eq!(shown["tasks"][0]["status"], "landed");
    assert_eq!(shown["line"], hub(&place, &["rev-parse", "forkhestra/line"]));
    let log = place.run(&["runs", "log"]).code(0).stdout.clone();
    assert!(log.starts_with("● batch 1 begins") && log.contains("✓ 1  landed as"), "{log}");
}

#[test]
fn a_task_of_a_batch_that_needs_a_human_is_decided_with_task_approve() {
    let place = place(1, "sh echo work > file-1.txt", "true");
    place.agent("judge", "print It contradicts itself.\nprint VERDICT: dispute");
    let config = CHAINS.replace(r#""agents": {"#, r#""agents": { "judge": { "command": "judge", "role": "judge" },"#);
    let config = config.replace(
        r#""steps": [{ "agent": "worker" }, { "check": "check" }]"#,
        r#""steps": "(worker -> check -> judge):3""#,
    );
    place.config(&format!("{{{config}}}"));
    git(&place, &["commit", "-qam", "judge"]);
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let status = place.run(&["status"]).code(0).stdout.clone();
    assert!(status.contains("waits for your decision"), "{status}");
    place.run(&["task", "approve", "1"]).code(0);
    place.run(&["task", "run", "-j", "2", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "work");
}

#[test]
fn diff_and_restore_show_what_a_run_of_a_batch_changed_with_and_without_its_workspace() {
    let place = place(1, WRITES, "ls file-*.txt > /dev/null");
    place.run(&["task", "run", "-j", "2"]).code(0);
    assert!(place.run(&["diff", "2", "--stat"]).code(0).stdout.starts_with("A file-1.txt"));
    let refused = place.run(&["diff", "2.1.1"]).code(2).words();
    assert!(refused.contains("the workspace of the run was removed"), "{refused}");
    let there = place.path("tmp/there");
    place.run(&["runs", "restore", "2", "--to", &there.display().to_string()]).code(0);
    assert_eq!(std::fs::read_to_string(there.join("file-1.txt")).unwrap(), "work\n");
    assert!(place.run(&["runs", "show", "2"]).code(0).stdout.contains("1 file changed (+1 -0): file-1.txt"));
    place.run(&["task", "land", "--into", "main"]).code(0);
    place.config(&format!(r#"{{ "workspace": {{ "keep": true }}, {CHAINS} }}"#));
    place.run(&["task", "add", "Another"]).code(0);
    place.run(&["task", "run", "-j", "2", "--with-changes"]).code(0);
    let run = place.run(&["task", "show", "2"]).code(0).stdout.clone();
    assert!(run.contains("workspace  $PLACE/home/.cache/forkhestra/workspaces/") && run.contains("/4-2\n"), "{run}");
}

#[test]
fn the_report_of_a_batch_has_its_tasks_its_lanes_over_time_and_every_run() {
    let place = place(2, WRITES, "ls file-*.txt > /dev/null");
    place.run(&["task", "run", "-j", "2"]).code(0);
    let page = place.run(&["report", "-o", "-"]).code(0).stdout.clone();
    for words in [
        "<h1>Run 1: 2 tasks</h1>",
        "landed as ",
        "Lanes over time",
        "href=\"#run-2\"",
        "What happened",
        "verify: check",
    ] {
        assert!(page.contains(words), "{words} is missing");
    }
    assert!(
        page.contains("<svg role=\"img\"") && !page.contains("forkhestra resume"),
        "runs of a batch are not resumed"
    );
    let text = place.run(&["report", "1", "--format", "md", "-o", "-"]).code(0).stdout.clone();
    assert!(text.starts_with("# Run 1: 2 tasks\n\ncomplete\n") && text.contains("✓ 1  landed as"), "{text}");
}

/// A usage limit holds everything that uses the same backend: tasks that have not begun, and runs of other lanes.
#[test]
fn a_usage_limit_that_one_lane_reaches_holds_the_others_and_nothing_is_begun_before_it_ends() {
    let place = place(3, "", "ls file-*.txt > /dev/null");
    let (limited, times) = (place.path("tmp/limited"), place.path("tmp/times"));
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 4;
    let result = format!(r#"print {{"type":"result","result":"Claude AI usage limit reached|{end}","is_error":true}}"#);
    let good = r#"print {"type":"result","result":"done","is_error":false,"usage":{"input_tokens":100}}"#;
    let works = format!("sh date +%s >> {}\nsh echo work > file-$FORKHESTRA_TASK.txt\n{good}", times.display());
    place.agent("mine", &format!("{result}\nsh touch {}\nexit 1\nnext\n{works}", limited.display()));
    // The second task is in its first step while the first one reaches the limit.
    place.agent(
        "before",
        &format!("sh [ $FORKHESTRA_TASK = 1 ] || while [ ! -e {} ]; do sleep 0.02; done; sleep 0.3", limited.display()),
    );
    place.config(
        r#"{ "backends": { "mine": { "program": "mine", "output": "claude-stream", "permissions": { "edit": {} } } },
             "agents": { "before": { "command": "before" }, "m": { "backend": "mine" } },
             "checks": { "check": { "run": "sh check.sh" } }, "chains": { "task": "before -> m -> check" } }"#,
    );
    git(&place, &["commit", "-qam", "config"]);
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(0).stderr.contains("⏸ mine  usage limit"), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 of 3 tasks landed"), "{}", ran.stderr);
    let times = fs::read_to_string(times).unwrap();
    assert!(
        times.lines().count() == 3 && times.lines().all(|time| time.parse::<u64>().unwrap() >= end),
        "{end}: {times}"
    );
    assert_eq!(place.calls("mine"), 4, "only one call has met the limit");
}

/// Ctrl-Z and `fg`: all lanes with their agents.
#[test]
fn a_pause_stops_all_lanes_and_their_agents_and_they_continue_together() {
    let place = waiting(2);
    let run = place.start(&["task", "run", "-j", "2"]);
    wait_for_workers(&place, &[1, 2]);
    let ours = || {
        let lines = place.processes().into_iter().filter(|line| !line.contains("__lifeline"));
        let pids = lines.filter_map(|line| Some(line.split(' ').next()?.trim_start_matches("/proc/").to_string()));
        pids.collect::<Vec<String>>()
    };
    // The batch, two workers and two agents. What has told that an agent is up may not have ended yet.
    place.until(|| ours().len() == 5);
    let pids = ours();
    let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
    run.signal("TSTP");
    wait_for_state(&pids, "T");
    // Nothing happens while they are paused.
    fs::write(place.path("tmp/go"), "").unwrap();
    wait_for_state(&pids, "T");
    run.signal("CONT");
    assert!(run.end().code(0).stderr.contains("2 of 2 tasks landed"));
}
