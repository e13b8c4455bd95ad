//! `status` and `stop`: what is running now, from another terminal.

use super::support::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// An agent that says what it does, and works until the file exists.
fn at_work() -> (Place, std::path::PathBuf) {
    let mut place = Place::new();
    place.set("NO_COLOR", "1");
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.agent(
        "worker",
        &format!(
            "print half of it\nnext\nprint Reading src/main.rs\ntouch {}\nwait-for {}\nmarker",
            up.display(),
            go.display()
        ),
    );
    (place, go)
}

#[test]
fn status_says_what_is_at_work_what_it_does_and_what_waits() {
    let (place, go) = at_work();
    assert_eq!(place.run(&["status"]).code(0).stdout, "nothing is running here\n");
    place.agent("judge", "print VERDICT: dispute");
    place.config(r#"{"agents": {"judge": {"command": "judge", "role": "judge"}}, "chains": {}}"#);
    place.run(&["judge"]).code(3);
    place.run(&["task", "add", "A"]).code(0);
    place.run(&["task", "add", "B"]).code(0);
    let run = place.start(&["-q", "worker:3"]);
    place.wait_for(&place.path("tmp/up"));
    insta::assert_snapshot!(place.beside(&["status"]).1, @r#"
    ● run 2 worker:3 (for 0 s, attempt 2)
      1.2 worker, iteration 2 of 3 for 0 s
      Reading src/main.rs
    ! run 1 (judge) waits for your decision: forkhestra resume 1 --approve, or --reject "why"
    tasks: 2 pending
    "#);
    let json: Value = serde_json::from_str(&place.beside(&["status", "--json"]).1).unwrap();
    let found = &json["roots"][0]["run"];
    assert_eq!((&found["run"], &found["attempt"]["lastLine"]), (&2.into(), &"Reading src/main.rs".into()));
    let all = place.beside(&["status", "--all"]).1;
    assert!(all.contains("$PLACE/project\n"), "{all}");
    std::fs::write(&go, "").unwrap();
    run.end().code(0);
    assert!(place.run(&["status"]).code(0).stdout.starts_with("nothing is running here\n"));
    assert!(place.run(&["status", "--watch"]).code(2).words().contains("--watch needs a terminal"));
}

#[test]
fn stop_ends_the_run_at_work_gracefully_and_says_how_to_continue() {
    let (place, _) = at_work();
    let refused = place.run(&["stop"]);
    assert!(refused.code(2).words().contains("there are no runs in"), "{}", refused.stderr);
    let run = place.start(&["-q", "worker:3"]);
    place.wait_for(&place.path("tmp/up"));
    let (code, wrong) = place.beside(&["stop", "7"]);
    assert!(code == Some(2) && wrong.contains("there is no run 7"), "{wrong}");
    let (code, stopped) = place.beside(&["stop"]);
    assert_eq!(code, Some(0));
    assert!(stopped.starts_with("run 1 has ended; next: forkhestra resume 1\n"), "{stopped}");
    assert_eq!(run.end().code, Some(143));
    place.assert_nothing_is_left();
    let again = place.run(&["stop"]);
    assert!(again.code(2).words().contains("no run is in progress here"), "{}", again.stderr);
}

#[test]
fn stop_ends_a_run_that_is_paused() {
    let (place, _) = at_work();
    let run = place.start(&["-q", "worker:3"]);
    place.wait_for(&place.path("tmp/up"));
    run.signal("TSTP");
    place.wait_for_event(1, "runPaused");
    let (code, stopped) = place.beside(&["stop"]);
    assert!(code == Some(0) && stopped.starts_with("run 1 has ended"), "{stopped}");
    assert_eq!(run.end().code, Some(143));
}

/// An upgrade of forkhestra while a run of the older version is in progress.
#[test]
fn status_all_leaves_the_journal_of_an_older_version_at_work_alone_and_shows_the_other_roots() {
    let (place, go) = at_work();
    let run = place.start(&["-q", "worker:3"]);
    place.wait_for(&place.path("tmp/up"));
    let older = place.path("older");
    std::fs::create_dir_all(older.join(".forkhestra")).unwrap();
    for file in ["state.db", "state.db-wal"] {
        std::fs::copy(place.work(".forkhestra").join(file), older.join(".forkhestra").join(file)).unwrap();
    }
    let database = rusqlite::Connection::open(older.join(".forkhestra/state.db")).unwrap();
    let newer = "DROP TABLE messages; ALTER TABLE runs DROP COLUMN parent; ALTER TABLE runs DROP COLUMN unit;
                 ALTER TABLE answers DROP COLUMN cost; ALTER TABLE answers DROP COLUMN took_ms; PRAGMA user_version = 5";
    database.execute_batch(newer).unwrap();
    let mut lock = std::fs::File::create(older.join(".forkhestra/lock")).unwrap();
    std::io::Write::write_all(&mut lock, b"a chain, process 1, since then").unwrap();
    lock.lock().unwrap();
    let (code, all) = place.beside(&["status", "--all"]);
    assert_eq!(code, Some(0));
    assert!(all.contains("is in use by an older forkhestra (format 5, this version uses 8)"), "{all}");
    assert!(all.contains("run 1 worker:3"), "{all}");
    let format: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(format, 5);
    std::fs::write(&go, "").unwrap();
    run.end().code(0);
}

#[test]
fn attach_follows_the_run_at_work_from_its_current_attempt_and_exits_with_its_code() {
    let (place, go) = at_work();
    let refused = place.run(&["attach"]);
    assert!(refused.code(2).words().contains("there are no runs in"), "{}", refused.stderr);
    let run = place.start(&["-q", "worker:2 -> false"]);
    place.wait_for(&place.path("tmp/up"));
    let mut attached = place.command(&["attach"]);
    let mut attached = attached.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It is attached once it has shown what the attempt has printed so far.
    let mut lines = BufReader::new(attached.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first: Vec<String> = lines.by_ref().take(3).collect();
    assert_eq!(
        first,
        ["● worker:2 -> false (run 1, 2 steps)", "▶ 1.2 worker, iteration 2 of 2", "Reading src/main.rs"]
    );
    std::fs::write(&go, "").unwrap();
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("▶ 2.1 false")), "{rest:?}");
    assert!(rest.iter().any(|line| line.starts_with("✗ worker:2 -> false")), "{rest:?}");
    assert_eq!(attached.wait().unwrap().code(), Some(1));
    run.end().code(1);
}
