//! The other ways to run an agent: another backend while a usage limit lasts, a stronger model after rejects, and a
//! session that is continued.

use crate::support::Place;
use std::time::{SystemTime, UNIX_EPOCH};

/// What claude prints: a message in a session, with tokens.
fn said(session: &str, text: &str) -> String {
    format!(
        r#"print {{"type":"result","session_id":"{session}","result":"{text}","is_error":false,"total_cost_usd":0.5,"usage":{{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":85}}}}"#
    )
}

/// What claude prints at a usage limit that ends in so many seconds.
fn limited(seconds: u64) -> String {
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    format!(
        "print {{\"type\":\"result\",\"result\":\"Claude AI usage limit reached|{end}\",\"is_error\":true}}\nexit 1"
    )
}

const CODEX: &str = "sh date +%N >> work.txt\nprint {\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n\
                     print {\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"Done by codex.\"}}\n\
                     print {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}";

fn events(place: &Place, kind: &str) -> Vec<serde_json::Value> {
    place.events(1).into_iter().map(|event| event["event"].clone()).filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_usage_limit_lets_the_next_backend_go_on_and_its_end_brings_the_first_one_back() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_FALLBACK_MS", "100");
    place.config(
        r#"{ "agents": { "w": { "backend": ["claude", "codex"], "model": "opus" }, "j": { "command": "j", "role": "judge" } },
             "chains": {} }"#,
    );
    let done = format!("sh date +%N >> work.txt\n{}", said("s", "Done by claude."));
    place.agent("claude", &format!("{}\nnext\n{done}", limited(3))).agent("codex", CODEX);
    // The judge takes until the limit has ended.
    place.agent("j", "sh sleep 3.2\nprint - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let ran = place.run(&["(w -> j):3", "-p", "Work.", "--limit", "attempts=4"]);
    ran.code(0);
    assert!(ran.stderr.contains("  run by codex: claude has reached a usage limit, which ends at "), "{}", ran.stderr);
    assert!(ran.stderr.contains("  run by claude, opus: its usage limit has ended\n"), "{}", ran.stderr);
    assert_eq!((place.calls("claude"), place.calls("codex")), (2, 1));
    assert!(!place.call("codex", 1).contains("opus"), "{}", place.call("codex", 1));
    let report = place.run(&["report", "1", "--format", "md", "-o", "-"]);
    let report = &report.code(0).stdout;
    assert!(report.contains("codex: 1 attempt, 10 tokens, cost unknown"), "{report}");
    assert!(report.contains("claude, opus: 2 attempts, 100 tokens, $0.50 and more"), "{report}");
    let prepared = events(&place, "attemptPrepared");
    assert_eq!((&prepared[0]["how"]["backend"], &prepared[1]["how"]["variant"]), (&"codex".into(), &0.into()));
}

#[test]
fn a_backend_without_a_required_permission_level_is_refused_as_fallback() {
    let place = Place::new();
    place.agent("claude", "print x").agent("pi", "print x");
    place.config(r#"{ "agents": { "w": { "backend": ["claude", "pi"] } }, "chains": {} }"#);
    let words = place.run(&["w", "-p", "x"]).code(2).words();
    assert!(words.contains("`pi` has no permission level `edit`") || words.contains("edit"), "{words}");
    assert_eq!(place.calls("claude"), 0);
}

#[test]
fn a_model_of_several_is_stronger_after_each_round_that_did_not_pass() {
    let place = Place::new();
    place.config(
        r#"{ "agents": { "w": { "backend": "claude", "model": ["haiku", "sonnet"] }, "j": { "command": "j", "role": "judge" } },
             "chains": {} }"#,
    );
    place.agent("claude", &format!("sh date +%N >> work.txt\n{}", said("s", "Done.")));
    place.agent("j", "print - a.txt:1: no\nprint VERDICT: reject\nnext\nprint - b.txt:1: no\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let ran = place.run(&["(w -> j):4", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("  run by claude, sonnet: 1 rounds have not passed\n"), "{}", ran.stderr);
    let models: Vec<String> = (1..=3)
        .map(|call| {
            let call = place.call("claude", call);
            call.split("arg --model\narg ").nth(1).unwrap().lines().next().unwrap().to_string()
        })
        .collect();
    assert_eq!(models, ["haiku", "sonnet", "sonnet"]);
    let report = place.run(&["report", "1", "--format", "md", "-o", "-"]);
    assert!(report.code(0).stdout.contains("claude, haiku: 1 attempt"), "{}", report.stdout);
}

const CONTINUES: &str = r#"{
  "agents": { "w": { "backend": "claude", "session": "continue" }, "j": { "command": "j", "role": "judge" } },
  "chains": {}
}"#;

#[test]
fn session_continue_sends_a_later_round_only_the_feedback_in_the_same_session() {
    let place = Place::new();
    place.config(CONTINUES).agent("claude", &format!("sh date +%N >> work.txt\n{}", said("s1", "Done.")));
    place.agent("j", "print - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let ran = place.run(&["(w -> j):3", "-p", "The whole task."]);
    assert!(ran.code(0).stderr.contains("  run by claude, continuing the session s1\n"), "{}", ran.stderr);
    assert!(place.call("claude", 2).contains("arg --resume\narg s1\n"), "{}", place.call("claude", 2));
    let first = |call: u32| {
        place
            .call("claude", call)
            .split("arg --append-system-prompt\n")
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .to_string()
    };
    assert_eq!(first(1), first(2), "the system prompt is the same, byte for byte");
    let told = String::from_utf8(place.stdin_of("claude", 2)).unwrap();
    assert!(told.starts_with("## Feedback from the last round") && !told.contains("The whole task."), "{told}");
    let report = place.run(&["report", "1", "--format", "md", "-o", "-"]);
    assert!(
        report.code(0).stdout.contains("1 attempt continued one; 89 % of their 95 input tokens came from the cache"),
        "{}",
        report.stdout
    );
}

#[test]
fn a_session_that_its_service_does_not_know_is_begun_anew_and_charges_nothing() {
    let place = Place::new();
    let unknown = "print {\"type\":\"result\",\"is_error\":true,\"total_cost_usd\":0,\"usage\":{\"input_tokens\":0,\"output_tokens\":0},\"errors\":[\"No conversation found\"]}\nexit 1";
    let works = format!("sh date +%N >> work.txt\n{}", said("s1", "Done."));
    place.config(CONTINUES).agent("claude", &format!("{works}\nnext\n{unknown}\nnext\n{works}"));
    place.agent("j", "print - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let ran = place.run(&["(w -> j):3", "-p", "The whole task.", "--limit", "attempts=4"]);
    assert!(ran.code(0).stderr.contains("could not continue its session"), "{}", ran.stderr);
    let told = String::from_utf8(place.stdin_of("claude", 3)).unwrap();
    assert!(told.contains("The whole task.") && told.contains("## Feedback from the last round"), "{told}");
    assert!(!place.call("claude", 3).contains("--resume"), "{}", place.call("claude", 3));
}

#[test]
fn an_attempt_that_did_not_end_well_is_not_continued_and_says_why() {
    let place = Place::new();
    let fails = format!("sh date +%N >> work.txt\n{}\nexit 3", said("s1", "Half done."));
    let works = format!("sh date +%N >> work.txt\n{}", said("s2", "Done."));
    place.config(CONTINUES).write("check.sh", "exit 1\n").agent("claude", &format!("{fails}\nnext\n{works}"));
    place.agent("j", "print - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let ran = place.run(&["(w:1 -> j):3", "-p", "Work."]);
    assert!(ran.stderr.contains("begins a new session: the attempt before did not end well"), "{}", ran.stderr);
}

#[test]
fn session_is_refused_for_judges_and_for_backends_that_cannot_continue() {
    let place = Place::new();
    place.agent("claude", "print x").agent("gemini", "print x");
    place.config(
        r#"{ "agents": { "j": { "backend": "claude", "role": "judge", "session": "continue" },
                         "g": { "backend": "gemini", "session": "continue" } }, "chains": {} }"#,
    );
    assert!(place.run(&["j", "-p", "x"]).code(2).words().contains("`session` is only for an agent that works"));
    assert!(place.run(&["g", "-p", "x"]).code(2).words().contains("does not support `session`"));
}

#[test]
fn a_continued_attempt_that_said_something_and_died_is_a_failed_attempt() {
    let place = Place::new();
    let works = format!("sh date +%N >> work.txt\n{}", said("s1", "Done."));
    let dies = "print {\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"I begin.\"}]}}\nexit 3";
    place.config(CONTINUES).agent("claude", &format!("{works}\nnext\n{dies}\nnext\n{works}"));
    place.agent("j", "print - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    let ran = place.run(&["(w -> j):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("✗ 1.2 w: failed with exit code 3"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("could not continue"), "{}", ran.stderr);
}

#[test]
fn if_all_backends_are_limited_the_run_waits_for_the_one_that_is_free_first() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_FALLBACK_MS", "100");
    place.config(r#"{ "agents": { "w": { "backend": ["claude", "codex"] } }, "chains": {} }"#);
    place.agent("claude", &format!("{}\nnext\n{}", limited(3), said("s", "FORKHESTRA_COMPLETE")));
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 7200;
    let codex =
        format!("print {{\"type\":\"turn.failed\",\"error\":{{\"message\":\"usage limit reached|{end}\"}}}}\nexit 1");
    place.agent("codex", &codex);
    let ran = place.run(&["w:1", "-p", "Work.", "--limit", "wait=1m"]);
    ran.code(0);
    assert_eq!((place.calls("claude"), place.calls("codex")), (2, 1), "{}", ran.stderr);
}

#[test]
fn runs_show_names_the_program_that_has_the_session() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_FALLBACK_MS", "100");
    place.config(r#"{ "agents": { "w": { "backend": ["claude", "codex"] } }, "chains": {} }"#);
    place.agent("claude", &limited(600)).agent("codex", CODEX);
    place.run(&["w", "-p", "Work."]).code(0);
    let shown = place.run(&["runs", "show"]);
    assert!(shown.code(0).stdout.contains("to continue its session: codex resume t1"), "{}", shown.stdout);
    assert!(place.run(&["runs", "log", "1.1.2"]).code(0).stdout.contains("Done by codex."));
}
