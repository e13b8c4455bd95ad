//! `resume` continues a run that ended without success: at the failed step, with more iterations, or within a limit.

use super::support::Place;

/// A failed step is tried again. Steps that succeeded are not repeated.
#[test]
fn a_run_with_a_failed_step_goes_on_with_that_step() {
    let place = Place::new();
    place.agent("a", "print done").agent("b", "exit 3\nnext\nprint done");
    let ran = place.run(&["a -> b"]);
    assert!(
        ran.code(1).stderr.contains("next: forkhestra runs log 1.2.1, then forkhestra resume 1\n"),
        "{}",
        ran.stderr
    );
    place.run(&["resume"]).code(0);
    assert_eq!((place.calls("a"), place.calls("b")), (1, 2));
}

#[test]
fn a_loop_that_has_used_up_its_iterations_goes_on_with_more_of_them() {
    let place = Place::new();
    place.agent("a", "sh date +%N\nnext\nsh date +%N\nnext\nmarker");
    place.run(&["a:2"]).code(1);
    let ran = place.run(&["resume"]);
    assert!(
        ran.code(2).words().contains("run 1 has used up its count: forkhestra resume 1 --more N"),
        "{}",
        ran.stderr
    );
    assert!(place.run(&["resume", "1", "--more", "2", "--dry-run"]).code(0).stdout.contains("iteration 3"));
    let ran = place.run(&["resume", "--more", "2"]);
    assert!(!ran.code(0).stderr.contains("of 2") && ran.stderr.contains("iteration 3 of 4"), "{}", ran.stderr);
    let words = place.run(&["resume", "1", "--more", "2"]).code(2).words();
    assert!(words.contains("run 1 has not used up its rounds (or iterations)"), "{words}");
    let words = place.run(&["resume", "--more", "2"]).code(2).words();
    assert!(words.contains("run 1 is complete"), "{words}");
}

#[test]
fn a_group_that_has_used_up_its_rounds_goes_on_with_more_of_them() {
    let place = Place::new();
    place
        .agent("c", "sh date +%N > work")
        .agent("j", "print a: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    place.config(
        r#"{"agents": {"j": {"command": "j", "role": "judge"}}, "checks": {"t": {"run": "test -e ok"}}, "chains": {}}"#,
    );
    let ran = place.run(&["(c -> t):2", "-p", "Work."]);
    assert!(ran.code(1).stderr.contains("forkhestra resume 1 --more 3"), "{}", ran.stderr);
    place.write("ok", "");
    let ran = place.run(&["resume", "1", "--more", "1"]);
    assert!(ran.code(0).stderr.contains("round 3 of 3"), "{}", ran.stderr);
    place.run(&["(c -> j):1", "-p", "Work."]).code(3);
    let ran = place.run(&["resume", "--more", "1"]);
    assert!(ran.code(0).stderr.contains("round 2 of 2"), "{}", ran.stderr);
}

/// The tokens of an attempt that was running when forkhestra was killed are known from the journal.
#[test]
fn what_an_attempt_had_used_when_we_were_killed_counts_after_a_resume() {
    let place = Place::new();
    let up = place.path("tmp/up");
    let message = r#"print {"type":"assistant","message":{"id":"m1","content":[],"usage":{"input_tokens":100}}}"#;
    let result =
        r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":0.5,"usage":{"input_tokens":20}}"#;
    place.agent("claude", &format!("{message}\nhang {}\nnext\n{result}", up.display()));
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "chains": {}}"#);
    let running = place.start(&["a"]);
    place.wait_for(&up);
    while !place.events(1).iter().any(|event| event["event"]["type"] == "usageReported") {
        std::thread::yield_now();
    }
    let _ = running.end_by("KILL");
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stderr.contains("120 tokens, at least $0.50"), "{}", ran.stderr);
}

/// A limit does not change what runs, although claude is told of it.
#[test]
fn a_limit_on_cost_can_be_given_to_a_run_that_began_without_one() {
    let place = Place::new();
    let result =
        r#"print {"type":"result","result":"x","is_error":false,"total_cost_usd":0.1,"usage":{"input_tokens":9}}"#;
    place.agent("claude", &format!("{result}\nexit 1\nnext\n{result}"));
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "chains": {}}"#);
    place.run(&["a"]).code(1);
    place.run(&["resume", "1", "--limit", "cost=5"]).code(0);
    assert!(place.call("claude", 2).contains("arg --max-budget-usd\narg 4.9000\n"), "{}", place.call("claude", 2));
}
