//! An iteration that takes too long is stopped while it runs.

use super::support::Place;

#[test]
fn an_agent_that_hangs_is_ended_by_its_timeout_and_everything_of_it() {
    let place = Place::new();
    let (child, daemon) = (place.path("tmp/child"), place.path("tmp/daemon"));
    place.agent("a", &format!("ignore TERM\nchild {}\ndaemon {}\nhang", child.display(), daemon.display()));
    let ran = place.run(&["a", "--timeout", "900ms"]);
    // A process that is just dying may still be named.
    let words = ran.code(1).stderr.lines().filter(|line| !line.starts_with("  left running"));
    insta::assert_snapshot!(words.collect::<Vec<_>>().join("\n"));
    let outcome = &place.events(1).into_iter().rev().find(|event| event["event"]["type"] == "attemptFinished").unwrap()
        ["event"]["outcome"];
    assert_eq!(*outcome, serde_json::json!({"type": "timedOut"}));
}

#[test]
fn a_loop_goes_on_after_an_iteration_that_timed_out() {
    let place = Place::new();
    place.config(r#"{"agents": {"a": {"timeout": "300ms", "idleTimeout": "300ms"}}, "chains": {}}"#);
    place.agent("a", "hang\nnext\nmarker");
    place.run(&["a:2"]).code(0);
    assert_eq!(place.calls("a"), 2);
}

#[test]
fn a_marker_before_the_timeout_counts() {
    let place = Place::new();
    place.agent("a", "marker\nhang");
    let ran = place.run(&["a:1", "--timeout", "300ms"]);
    assert!(ran.code(0).stderr.contains("done, marker seen"), "{}", ran.stderr);
}

#[test]
fn a_check_that_hangs_fails_its_round_with_its_reason() {
    let place = Place::new();
    place.config(r#"{"checks": {"slow": {"run": "test -e ok || sleep 1000", "timeout": "300ms"}}, "chains": {}}"#);
    place.agent("a", "print x\nnext\nsh touch ok");
    place.run(&["(a -> slow):2", "-p", "go"]).code(0);
    assert!(place.call("a", 2).contains("The check `slow` took longer than its timeout in round 1."));
}

#[test]
fn the_command_line_wins_over_the_step_and_the_step_over_the_agent() {
    let place = Place::new();
    place.agent("a", "");
    place.config(r#"{"agents": {"a": {"timeout": "1h30m"}}, "chains": {"c": {"steps": [{"agent": "a"}, {"agent": "a", "timeout": "90s"}]}}}"#);
    let timeouts = |arguments: &[&str]| {
        let plan: serde_json::Value = serde_json::from_str(&place.run(arguments).code(0).stdout).unwrap();
        [plan["steps"][0]["timeout"].clone(), plan["steps"][1]["timeout"].clone()]
    };
    assert_eq!(timeouts(&["--chain", "c", "--dry-run", "--json"]), ["1h30m", "1m30s"]);
    assert_eq!(timeouts(&["--chain", "c", "--dry-run", "--json", "--timeout", "5m"]), ["5m", "5m"]);
}

#[test]
fn a_time_without_a_unit_or_without_a_length_is_refused() {
    let place = Place::new();
    place.agent("a", "");
    for (timeout, words) in [
        ("90", "for 90 seconds write `90s`"),
        ("0s", "must be more than zero"),
        ("1.5h", "not a length of time"),
        ("-5m", "must be more than zero"),
    ] {
        assert!(place.run(&["a", &format!("--timeout={timeout}")]).code(2).words().contains(words), "{timeout}");
    }
    place.config(r#"{"agents": {"a": {"timeout": 90}, "b": {"timeout": "0m"}}, "chains": {}}"#);
    let words = place.run(&["validate"]).code(2).words();
    assert!(words.contains("for 90 seconds write `90s`") && words.contains("`timeout` cannot be `0m`"), "{words}");
}

/// Silent and idle; an agent that is busy or prints is not.
#[test]
fn a_silent_idle_agent_is_ended_and_a_talking_or_a_working_one_is_not() {
    let place = Place::new();
    place.agent("a", "print begun\nhang");
    let ran = place.run(&["a", "--idle-timeout", "400ms"]);
    assert!(
        ran.code(1).stderr.contains("idle timeout of 400ms has expired: no output and no CPU time"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("timed out (silent and idle for too long)"), "{}", ran.stderr);
    place.agent("b", "sh for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.1; done");
    place.run(&["b", "--idle-timeout", "1s"]).code(0);
    // Several at once: where other programs are busy too, one alone may get less than half of a processor.
    place.agent("c", "sh for i in 1 2 3 4; do timeout 2.5 sh -c 'while :; do :; done' & done; wait");
    place.run(&["c", "--idle-timeout", "2s"]).code(0);
}

#[test]
fn an_idle_timeout_longer_than_the_timeout_is_refused() {
    let place = Place::new();
    place.agent("a", "");
    let words = place.run(&["a", "--idle-timeout", "5m", "--timeout", "1m"]).code(2).words();
    assert!(words.contains("an idleTimeout of 5m is longer than the timeout of 1m"), "{words}");
}
