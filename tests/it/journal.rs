//! The journal: events precede effects, transcripts are complete, and no agent runs without it.

use super::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_run_leaves_its_events_in_order_and_every_byte_of_its_attempts() {
    let place = Place::new();
    place.agent("a", "print one\neprint on the side\nnext\nprint two\nmarker");
    place.run(&["a:3", "-p", "go", "X=1"]).code(0);
    let kinds: Vec<String> =
        place.events(1).iter().map(|event| event["event"]["type"].as_str().unwrap().to_string()).collect();
    insta::assert_snapshot!(kinds.join("\n"));
    assert_eq!(place.read(".forkhestra/runs/1/1-a/1/prompt.md"), "go");
    assert_eq!(place.read(".forkhestra/runs/1/1-a/1/stdout.log"), "one\n");
    assert_eq!(place.read(".forkhestra/runs/1/1-a/1/stderr.log"), "on the side\n");
    assert_eq!(place.read(".forkhestra/runs/1/1-a/2/stdout.log"), "two\nFORKHESTRA_COMPLETE\n");
    assert_eq!(place.read(".forkhestra/.gitignore"), "*\n");
    place.run(&["a:1"]).code(0);
    assert!(place.work(".forkhestra/runs/2/1-a/1/stdout.log").exists(), "run numbers count up");
}

#[test]
fn values_of_the_environment_are_not_recorded() {
    let mut place = Place::new();
    place.set("SECRET_KEY", "hunter2").agent("a", "print x");
    place.config(r#"{"agents": {"a": {"env": {"KEY": "${env:SECRET_KEY}"}}}, "chains": {}}"#);
    place.run(&["a"]).code(0);
    let database = fs::read(place.work(".forkhestra/state.db")).unwrap();
    let log = fs::read(place.work(".forkhestra/state.db-wal")).unwrap_or_default();
    for bytes in [database, log] {
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
    }
    let shown = place.run(&["a", "--dry-run"]);
    assert!(shown.code(0).stdout.contains("KEY") && !shown.stdout.contains("hunter2"));
}

/// No agent is started without a journal.
#[test]
fn a_journal_that_cannot_be_written_stops_the_run_before_its_first_agent() {
    let place = Place::new();
    place.agent("a", "print x").write(".forkhestra", "a file, not a folder");
    let ran = place.run(&["a"]);
    assert_eq!((ran.code(2).stdout.as_str(), place.calls("a")), ("", 0));
    insta::assert_snapshot!(ran.stderr);
    fs::remove_file(place.work(".forkhestra")).unwrap();
    place.write(".forkhestra/state.db", "this is not a database, but it is long enough to be looked at as one");
    let ran = place.run(&["a"]);
    assert!(ran.code(2).words().contains("file is not a database"), "{}", ran.stderr);
}

/// The disk becomes full during the run.
#[test]
fn a_journal_that_fails_in_the_middle_ends_the_agent_and_says_so() {
    let place = Place::new();
    // The agent replaces the directory for the transcripts of its next attempt with a file.
    place.agent("a", "sh rm -rf $PWD/.forkhestra/runs/1/1-a; echo x > $PWD/.forkhestra/runs/1/1-a");
    let ran = place.run(&["a:3"]);
    assert!(ran.code(1).words().contains("/runs/1/1-a is a file"), "{}", ran.stderr);
    assert_eq!(place.calls("a"), 1);
}

#[test]
fn a_second_run_in_the_same_folder_is_refused_with_the_first_ones_name() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}", up.display())).agent("b", "print b");
    let first = place.start(&["a"]);
    place.wait_for(&up);
    let pid = first.child.id();
    let refused = place.command(&["b"]).output().unwrap();
    let words =
        String::from_utf8_lossy(&refused.stderr).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(refused.status.code(), Some(2), "{words}");
    assert!(words.contains(&format!("a, process {pid}, since 2026-")), "{words}");
    assert_eq!(place.calls("b"), 0);
    first.signal("KILL");
    assert_eq!(first.end().code, None);
    place.run(&["b"]).code(0);
}

#[test]
fn runs_that_wait_for_each_other_lose_no_events() {
    let place = Place::new();
    place.agent("a", "print x");
    let runs: Vec<_> = (0..4).map(|_| place.start(&["-q", "--wait", "a:20", "--limit", "stalledAfter=99"])).collect();
    for run in runs {
        run.end().code(1);
    }
    for run in 1..=4 {
        let events = place.events(run);
        assert_eq!(events.last().unwrap()["event"]["type"], "runFinished");
        assert_eq!(events.len(), 1 + 20 * 3 + 1);
    }
}

#[test]
fn transcripts_are_for_their_owner_only() {
    let place = Place::new();
    place.agent("a", "print x");
    place.run(&["a", "-p", "secret"]).code(0);
    for (name, mode) in [("", 0o700), ("state.db", 0o600), ("runs/1/1-a/1", 0o700), ("runs/1/1-a/1/prompt.md", 0o600)] {
        let found = place.work(".forkhestra").join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}");
    }
}

/// The advice for a damaged database works.
#[test]
fn a_database_that_was_moved_aside_leaves_its_transcripts_and_new_runs_count_on() {
    let place = Place::new();
    place.agent("a", "print x");
    place.run(&["a"]).code(0);
    for name in ["state.db", "state.db-wal", "state.db-shm"] {
        let _ = fs::remove_file(place.work(".forkhestra").join(name));
    }
    place.run(&["a"]).code(0);
    assert!(place.work(".forkhestra/runs/2/1-a/1/stdout.log").exists());
}

/// A power cut can lose output that was not on the disk yet.
#[test]
fn an_output_that_is_shorter_than_it_was_is_told_wherever_it_is_used() {
    let place = Place::new();
    place.agent("w", "print worked\nnext\nhang up\nnext\necho");
    place.config(r#"{ "checks": { "c": "echo one two three; exit 1" }, "chains": {} }"#);
    let running = place.start(&["(w -> c):2", "-p", "go"]);
    place.wait_for(&place.work("up"));
    running.signal("KILL");
    assert_eq!(running.end().code, None);
    let log = place.work(".forkhestra/runs/1/2-c/1/stdout.log");
    fs::File::options().write(true).open(&log).unwrap().set_len(4).unwrap();
    let missing = "stdout.log holds 4 of 14 bytes";
    let shown = place.run(&["runs", "log", "1", "2"]);
    assert_eq!(shown.code(0).stdout, "one ");
    assert!(shown.words().contains(&format!("the rest is lost: {missing}")), "{}", shown.stderr);
    for format in ["md", "html"] {
        let report = place.run(&["report", "--format", format, "-o", "-"]);
        assert!(report.code(0).stdout.contains(&format!("The rest is lost: {missing}")), "{}", report.stdout);
    }
    let resumed = place.run(&["resume"]);
    assert!(
        resumed.code(1).stdout.contains(&format!("(Its output is incomplete: {missing}. The rest is lost.)")),
        "{}",
        resumed.stdout
    );
}
