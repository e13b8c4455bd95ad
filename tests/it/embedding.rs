//! The library inside another program: examples/embed.rs, with an observer of its own.

use super::support::Place;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The example, which cargo builds next to the tests.
fn embed() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/embed")
}

#[test]
fn an_observer_of_another_program_receives_exactly_the_events_of_the_journal() {
    let place = Place::new();
    place.agent("worker", "print one\nnext\nprint two\nmarker");
    let mut program = Command::new(embed());
    program.args(["worker:3 -> false", place.work("").to_str().unwrap()]);
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let output = program.env("PATH", path).env("FAKE_AGENT_DIR", place.path("agents")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let event = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let collected: Vec<Value> = place.plain(&output.stdout).lines().map(event).collect();
    let kinds: Vec<&str> = collected.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let attempt = ["attemptPlanned", "attemptStarted", "attemptFinished"];
    let second = ["attemptPlanned", "attemptStarted", "markerSeen", "attemptFinished", "stepSucceeded"];
    assert_eq!(kinds, [&["runStarted"], &attempt[..], &second, &attempt, &["runFinished"]].concat());
    let journal = place.run(&["runs", "events", "1"]);
    let journal: Vec<Value> = journal.code(0).stdout.lines().map(|line| event(line)["event"].clone()).collect();
    assert_eq!(collected, journal);
}
