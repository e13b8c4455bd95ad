//! How processes are found where orphans do not come to forkhestra, as on macOS.

use crate::support::Place;
use std::fs;

fn weaker() -> Place {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_NO_SUBREAPER", "1");
    place
}

/// A daemon that leaves its session, and whose parents have ended before anybody looks.
fn daemon(place: &Place, how: &str, output: &str) {
    let script = format!("{how} setsid sh -c '(sleep 3600 {output} &)' {output}; echo FORKHESTRA_COMPLETE");
    place.write("forge/daemon.sh", script);
    place
        .write("forge/chains.json", r#"{ "chains": {}, "agents": { "a": { "command": ["sh", "forge/daemon.sh"] } } }"#);
}

#[test]
fn without_a_subreaper_a_daemon_is_found_by_its_token_and_by_the_output_that_it_holds() {
    for (how, output) in [("", ">/dev/null 2>&1"), ("env -i PATH=/usr/bin:/bin", "")] {
        let place = weaker();
        daemon(&place, how, output);
        // `run` asserts that nothing is left.
        let ran = place.run(&["a:1", "-p", "x", "--events", "ndjson=events.ndjson"]);
        assert!(ran.code(0).stderr.contains("left running by the agent, and then stopped: sleep"), "{}", ran.stderr);
        assert!(place.read("events.ndjson").contains(r#""containment":"lineage""#));
    }
}

#[test]
fn a_check_that_an_agent_runs_by_hand_does_not_end_the_agent() {
    let place = weaker();
    place.write("Makefile", "test:\n\t@sleep 0.2\n");
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    place.agent(
        "a",
        &format!("sh {} verify > seen.txt 2>&1; echo $? >> seen.txt\nprint FORKHESTRA_COMPLETE", program.display()),
    );
    let ran = place.run(&["a:1", "-p", "x"]);
    assert!(ran.code(0).stderr.contains("a:1: complete"), "{}\n{}", ran.stderr, place.read("seen.txt"));
    assert!(place.read("seen.txt").ends_with("0\n"), "{}", place.read("seen.txt"));
}

#[test]
fn the_report_and_doctor_say_that_orphans_do_not_come_to_us() {
    let place = weaker();
    place.agent("a", "print FORKHESTRA_COMPLETE");
    place.run(&["a:1", "-p", "x"]).code(0);
    let report = place.run(&["report", "--format", "md", "--out", "-"]);
    assert!(
        report.code(0).stdout.contains("this system has no way to keep all processes of an agent"),
        "{}",
        report.stdout
    );
    assert!(place.run(&["doctor"]).stdout.contains("are found by session, parent, token and pipes"));
    let usual = Place::new();
    usual.agent("a", "print FORKHESTRA_COMPLETE");
    usual.run(&["a:1", "-p", "x", "--events", "ndjson=events.ndjson"]).code(0);
    assert!(usual.read("events.ndjson").contains(r#""containment":"whole""#));
    assert!(!usual.run(&["report", "--format", "md", "--out", "-"]).code(0).stdout.contains("this system"));
}

#[test]
fn what_does_not_hold_on_macos_is_named_in_the_docs() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let gate = fs::read_to_string(format!("{root}.ci/run")).unwrap();
    let docs = fs::read_to_string(format!("{root}docs/signals.md")).unwrap();
    let mut skipped = gate.split("--skip ").skip(1).filter_map(|rest| rest.split_whitespace().next()).peekable();
    assert!(skipped.peek().is_some());
    for test in skipped {
        assert!(docs.contains(&format!("`{test}`")), "{test}");
    }
}
