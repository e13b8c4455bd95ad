//! Limits of a whole run, usage limits, crash loops and stalled loops.

use super::support::{LONG, Place};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns a line of `claude --output-format stream-json`.
fn result(message: &str, more: &str) -> String {
    format!(
        r#"print {{"type":"result","result":"{message}","is_error":false,"total_cost_usd":0.5,"usage":{{"input_tokens":100,"output_tokens":20}}{more}}}"#
    )
}

const LIMITED: &str = r#"print {"type":"result","result":"API Error: 429","is_error":true,"api_error_status":429,"usage":{}}
exit 1"#;

fn claude(place: &Place, script: &str) {
    place.agent("claude", script).config(r#"{"agents": {"a": {"backend": "claude"}}, "chains": {}}"#);
}

/// While the agent runs, not only between iterations.
#[test]
fn the_limit_on_time_ends_a_run_in_the_middle_of_an_iteration() {
    let place = Place::new();
    let daemon = place.path("tmp/daemon");
    place.agent("a", &format!("print x\nnext\ndaemon {}\nhang", daemon.display()));
    let ran = place.run(&["a:9", "--limit", "time=700ms"]);
    // A process that is just dying may still be named.
    let words = ran.code(4).stderr.lines().filter(|line| !line.starts_with("  left running"));
    insta::assert_snapshot!(words.collect::<Vec<_>>().join("\n"));
    let last = place.events(1).pop().unwrap();
    assert_eq!(last["event"]["outcome"], serde_json::json!({"type": "limitReached", "limit": "time"}));
}

/// Also in the last allowed iteration.
#[test]
fn a_marker_before_the_limit_counts() {
    let place = Place::new();
    place.agent("a", "marker\nhang").agent("b", "");
    place.run(&["a:1", "--limit", "time=500ms"]).code(0);
    let ran = place.run(&["a:1 -> b", "--limit", "time=500ms"]);
    assert!(ran.code(4).stderr.contains("done, marker seen"), "{}", ran.stderr);
    assert_eq!(place.calls("b"), 0);
    place.agent("c", "print x\nnext\nmarker");
    place.run(&["c:9", "--limit", "attempts=2"]).code(0);
}

#[test]
fn the_limit_on_attempts_counts_those_of_all_steps() {
    let place = Place::new();
    place.agent("a", "sh date +%N\nnext\nmarker").agent("b", "sh date +%N");
    let ran = place.run(&["a:5 -> b:5", "--limit", "attempts=4"]);
    assert!(ran.code(4).stderr.contains("the limit `attempts` of 4 was reached"), "{}", ran.stderr);
    assert_eq!((place.calls("a"), place.calls("b")), (2, 2));
}

#[test]
fn iterations_is_another_name_of_the_limit_on_attempts_but_not_both_at_once() {
    let place = Place::new();
    place.agent("a", "sh date +%N").config(r#"{"limits": {"iterations": 3}, "chains": {}}"#);
    let ran = place.run(&["a:9"]);
    assert!(ran.code(4).stderr.contains("the limit `attempts` of 3 was reached"), "{}", ran.stderr);
    place.run(&["resume", "--limit", "iterations=4"]).code(4);
    place.run(&["resume", "--limit", "Attempts=5", "--limit", "stalled-after=9"]).code(4);
    assert_eq!(place.calls("a"), 5);
    place.config(r#"{"limits": {"iterations": 3, "attempts": 5}, "chains": {}}"#);
    let words = place.run(&["a:9"]).code(2).words();
    assert!(words.contains("`attempts` and `iterations` are two names of the same key"), "{words}");
    assert!(words.contains("keep `attempts`, and remove `iterations`"), "{words}");
}

#[test]
fn cost_and_tokens_are_limited_by_what_the_agent_cli_reports() {
    let place = Place::new();
    claude(&place, &format!("{}\nsh date +%N", result("not yet", "")));
    let ran = place.run(&["a:9", "--limit", "cost=1"]);
    assert!(ran.code(4).stderr.contains("the limit `cost` of $1 was reached"), "{}", ran.stderr);
    assert_eq!(place.calls("claude"), 2);
    place.config(r#"{"limits": {"tokens": 240}, "agents": {"a": {"backend": "claude"}}, "chains": {}}"#);
    let ran = place.run(&["a:9"]);
    assert!(ran.code(4).stderr.contains("the limit `tokens` of 240 was reached"), "{}", ran.stderr);
    assert_eq!(place.calls("claude"), 4);
}

/// Also while the agent works.
#[test]
fn an_agent_that_has_used_its_tokens_is_ended_in_its_iteration() {
    let place = Place::new();
    let message = |id: u32| {
        format!(
            r#"print {{"type":"assistant","message":{{"id":"m{id}","content":[],"usage":{{"input_tokens":100}}}}}}"#
        )
    };
    // The same message counts only once.
    claude(&place, &format!("{}\n{}\n{}\nhang", message(1), message(1), message(2)));
    place.run(&["a", "--limit", "tokens=200"]).code(4);
    claude(&place, &format!("{}\n{}\nsh true", message(1), message(1)));
    place.run(&["a", "--limit", "tokens=200"]).code(0);
}

#[test]
fn a_limit_that_cannot_be_kept_is_refused() {
    let place = Place::new();
    place.agent("a", "");
    let words = place.run(&["a", "--limit", "cost=5"]).code(2).words();
    assert!(words.contains("the limit `cost` cannot be enforced: `a` does not report what it costs"), "{words}");
    for (limit, words) in [
        ("time=90", "for 90 seconds write `90s`"),
        ("time=0s", "must be more than zero"),
        ("attempts=0", "a positive whole number"),
        ("iterations=0", "a positive whole number"),
        ("cost=-1", "a number above zero"),
        ("tme=5m", "did you mean `time`?"),
        ("5m", "a limit is written as NAME=VALUE"),
    ] {
        let ran = place.run(&["a", "--limit", limit]);
        assert!(ran.code(2).words().contains(words), "{limit}: {}", ran.stderr);
    }
}

#[test]
fn a_usage_limit_is_waited_out_and_charges_no_iteration() {
    let place = Place::new();
    claude(&place, &format!("{LIMITED}\nnext\n{}", result("FORKHESTRA_COMPLETE", "")));
    let ran = place.run(&["a:1"]);
    insta::assert_snapshot!(ran.code(0).stderr);
    assert_eq!(place.calls("claude"), 2);
}

#[test]
fn a_service_that_is_down_is_waited_for_and_charges_no_iteration() {
    for error in [
        r#""result":"API Error: 500 overheated","is_error":true,"api_error_status":500"#,
        r#""result":"API Error: Unable to connect to API (ECONNREFUSED)","is_error":true"#,
    ] {
        let place = Place::new();
        let down = format!("print {{\"type\":\"result\",{error}}}\nexit 1");
        claude(&place, &format!("{down}\nnext\n{down}\nnext\n{}", result("FORKHESTRA_COMPLETE", "")));
        let ran = place.run(&["a:1", "--limit", "attempts=1"]);
        assert!(ran.code(0).stderr.contains("a: waiting for the service, 2.0 s, then the same iteration again"));
        assert_eq!(place.calls("claude"), 3);
    }
}

#[test]
fn a_program_that_says_nothing_at_its_start_is_started_again() {
    let place = Place::new();
    place.agent("mute", &format!("hang\nnext\n{}", result("FORKHESTRA_COMPLETE", "")));
    place.config(
        r#"{"backends": {"mine": {"program": "mute", "output": "claude-stream", "startTimeout": "300ms", "permissions": {"edit": {}}}},
            "agents": {"a": {"backend": "mine"}}, "chains": {}}"#,
    );
    let ran = place.run(&["a:1", "--limit", "attempts=1"]);
    assert!(ran.code(0).stderr.contains("the start timeout of 300ms has expired: no output yet"), "{}", ran.stderr);
    assert_eq!(place.calls("mute"), 2);
}

/// forkhestra waits until the named end of a usage limit, if the limits of the run allow it.
#[test]
fn a_usage_limit_that_ends_too_late_ends_the_run_and_a_signal_ends_the_wait() {
    let place = Place::new();
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3 * 24 * 3600;
    let limited = format!(r#"{{"type":"result","result":"Claude AI usage limit reached|{end}","is_error":true}}"#);
    claude(&place, &format!("print {limited}\nexit 1"));
    let ran = place.run(&["a:1"]);
    assert!(
        ran.code(4).stderr.contains("the limit `wait` of 6h was reached; the usage limit ends at 20")
            && ran.stderr.contains("next: forkhestra resume 1 --limit wait=72h\n"),
        "{}",
        ran.stderr
    );
    let running = place.start(&["a:1", "--limit", "wait=100h"]);
    place.wait_for_event(2, "waitStarted");
    running.signal("INT");
    running.end().code(130);
    place.run(&["a:1", "--limit", "wait=100h", "--limit", "time=600ms"]).code(4);
}

#[test]
fn an_agent_that_fails_at_once_again_and_again_is_given_up_with_its_last_words() {
    let place = Place::new();
    place.agent("a", "eprint cannot log in\nexit 7");
    let ran = place.run(&["a:50"]);
    insta::assert_snapshot!(ran.code(1).stderr);
    assert_eq!(place.calls("a"), 3);
}

#[test]
fn a_loop_that_changes_nothing_and_says_the_same_is_given_up() {
    let place = Place::new();
    place.agent("a", "print nothing to do").agent("b", "print x\nsh date +%N > news").agent("c", "sh date +%N");
    place.run(&["a:9"]).code(1);
    assert_eq!(place.calls("a"), 3);
    let ran = place.run(&["a:9", "--limit", "stalledAfter=2"]);
    assert!(
        ran.code(1).stderr.contains("a changed nothing and said the same thing in 2 iterations in a row"),
        "{}",
        ran.stderr
    );
    place.run(&["b:5"]).code(1);
    place.run(&["c:5"]).code(1);
    assert_eq!((place.calls("b"), place.calls("c")), (5, 5), "a change, or other words, are news");
}

#[test]
fn an_agent_that_lingers_after_its_marker_is_ended_and_complete() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_LINGER_MS", "300");
    place.agent("a", "marker\nhang");
    insta::assert_snapshot!(place.run(&["a:1"]).code(0).stderr);
    // A structured final message is also known before the exit.
    claude(&place, &format!("{}\nhang", result("FORKHESTRA_COMPLETE", "")));
    place.run(&["a:1"]).code(0);
}

/// The program gets what is left of the budget as its own limit. What it has finished counts.
#[test]
fn claude_is_told_what_is_left_of_the_cost_and_a_finished_attempt_counts() {
    let place = Place::new();
    claude(&place, &format!("{}\nsh date +%N\nnext\n{}", result("not yet", ""), result("FORKHESTRA_COMPLETE", "")));
    let ran = place.run(&["a:3", "--limit", "cost=0.7"]);
    assert!(ran.code(0).stderr.contains("the limit `cost` of $0.7 was exceeded by $0.30"), "{}", ran.stderr);
    assert!(place.call("claude", 1).contains("arg --max-budget-usd\narg 0.7000\n"), "{}", place.call("claude", 1));
    assert!(place.call("claude", 2).contains("arg --max-budget-usd\narg 0.2000\n"), "{}", place.call("claude", 2));
    let over = r#"print {"type":"result","subtype":"error_max_budget_usd","errors":["Reached maximum budget ($0.7)"],"is_error":true,"total_cost_usd":0.7,"usage":{"input_tokens":100,"output_tokens":20}}"#;
    claude(&place, &format!("{over}\nexit 1"));
    let ran = place.run(&["a", "--limit", "cost=0.7"]);
    assert!(ran.code(4).stderr.contains("the limit `cost` of $0.7 was reached"), "{}", ran.stderr);
}

#[test]
fn a_plain_program_costs_nothing_beside_one_that_says_what_it_costs() {
    let place = Place::new();
    place.agent("free", "");
    claude(&place, &result("done", ""));
    place.run(&["free -> a", "--limit", "cost=5"]).code(0);
    place.config(r#"{"limits": {"cost": 5}, "agents": {}, "chains": {}}"#);
    place.run(&["free"]).code(0);
    place.run(&["free", "--limit", "cost=5"]).code(2);
}

#[test]
fn a_limit_that_is_measured_late_is_said_before_the_run() {
    let place = Place::new();
    place.agent("codex", r#"print {"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":2}}"#);
    place.config(r#"{"agents": {"c": {"backend": "codex"}}, "chains": {}}"#);
    let words = place.run(&["c", "--limit", "tokens=5"]).code(0).words();
    assert!(words.contains("`c` reports how many tokens it used only when an attempt ends"), "{words}");
    assert!(words.contains("the limit `tokens` of 5 was exceeded by 7"), "{words}");
}

#[test]
fn what_an_interrupted_attempt_used_is_called_unknown() {
    let place = Place::new();
    place.agent("codex", "hang");
    place.config(r#"{"agents": {"c": {"backend": "codex"}}, "chains": {}}"#);
    let ran = place.run(&["c", "--limit", "time=300ms"]);
    assert!(ran.code(4).stderr.contains("tokens unknown, cost unknown"), "{}", ran.stderr);
}

/// While the machine sleeps, waits and the time of the run continue, but the timeouts of an attempt do not.
#[test]
fn a_sleep_of_the_machine_counts_for_waits_and_for_the_limit_on_time_and_not_for_a_timeout() {
    let mut place = Place::new();
    let slept = place.path("tmp/slept");
    place.set("FORKHESTRA_TEST_SLEPT_FILE", &slept.display().to_string());
    let limited = r#"print {"type":"result","result":"limit reached, try again in 2 hours","is_error":true,"api_error_status":429}"#;
    claude(&place, &format!("{limited}\nexit 1\nnext\n{}", result("FORKHESTRA_COMPLETE", "")));
    let mut running = place.start(&["a:1", "--timeout", "1h"]);
    let waits = || place.events(1).iter().any(|event| event["event"]["type"] == "waitStarted");
    let begun = Instant::now();
    while !place.path("project/.forkhestra/state.db").exists() || !waits() {
        assert!(begun.elapsed() < LONG);
        std::thread::yield_now();
    }
    // It may not be waiting yet when the journal says so, so the machine sleeps repeatedly.
    for hours in (8..).step_by(8) {
        if running.child.try_wait().unwrap().is_some() {
            break;
        }
        assert!(begun.elapsed() < LONG);
        std::fs::write(&slept, (hours * 3_600_000_u64).to_string()).unwrap();
        std::thread::yield_now();
    }
    running.end().code(0);
    let up = place.path("tmp/up");
    place.agent("b", &format!("hang {}", up.display()));
    std::fs::write(&slept, "0").unwrap();
    let running = place.start(&["b", "--timeout", "1h", "--limit", "time=5h"]);
    place.wait_for(&up);
    std::fs::write(&slept, (8 * 3_600_000).to_string()).unwrap();
    let ran = running.end();
    assert!(ran.code(4).stderr.contains("the limit `time` of 5h was reached"), "{}", ran.stderr);
}

/// File descriptors run out while the pipes of an agent are created.
#[test]
fn a_machine_without_room_for_an_agent_is_waited_for_and_the_run_can_go_on() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_WAIT_MS", "5");
    place.agent("a", "");
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    // How many are open before that depends on the system.
    let met = (16..40).find_map(|most: u32| {
        let line = format!("ulimit -n {most}; exec '{program}' a");
        let mut command = place.command(&[]);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &line]).current_dir(place.path("project")).env_clear();
        shell.envs(
            command.stdin(std::process::Stdio::null()).get_envs().filter_map(|(name, value)| Some((name, value?))),
        );
        let answer = shell.output().unwrap();
        let words = String::from_utf8_lossy(&answer.stderr).into_owned();
        words.contains("a: waiting for free resources").then_some((answer.status.code(), words))
    });
    let (code, words) = met.expect("no number of descriptors stops it there");
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("a could not be started: the machine lacks the resources for another process"), "{words}");
    assert!(words.contains("forkhestra resume"), "{words}");
    place.run(&["resume"]).code(0);
}

/// As in a container with few processes or files: reported before anything is started, and never a panic.
#[test]
fn too_few_open_files_are_named_and_never_a_panic() {
    let place = Place::new();
    place.agent("a", "print hi");
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    for most in (4..24).chain([32, 64]) {
        let command = place.command(&[]);
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("ulimit -n {most}; exec '{program}' a")])
            .current_dir(place.path("project"))
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .output()
            .unwrap();
        let (code, words) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
        let expected = if most < 16 { code == Some(2) } else { code.is_some_and(|code| code < 5) };
        assert!(expected && !words.contains("panicked"), "{most}: {code:?} {words}");
    }
    assert!(place.calls("a") > 0);
}

#[test]
fn a_file_that_may_grow_no_more_is_an_error_and_no_death_without_a_word() {
    let place = Place::new();
    place.agent("a", "print hi");
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    let command = place.command(&[]);
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("ulimit -f 40; exec '{program}' a")])
        .current_dir(place.path("project"))
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(1 | 2)) && words.contains("help:"), "{:?} {words}", output.status);
}

#[test]
fn the_limit_that_is_suggested_is_more_than_what_was_used() {
    let place = Place::new();
    let result =
        r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":3.5,"usage":{"input_tokens":900}}"#;
    for (limit, suggested) in [("cost=1", "cost=4.5"), ("tokens=100", "tokens=1000")] {
        claude(&place, result);
        let ran = place.run(&["a:3", "--limit", limit]);
        let run = place.run(&["runs", "--json"]).stdout;
        let run = serde_json::from_str::<serde_json::Value>(&run).unwrap()[0]["id"].to_string();
        let next = format!("next: forkhestra resume {run} --limit {suggested}\n");
        assert!(ran.code(4).stderr.contains(&next), "{}", ran.stderr);
    }
}
