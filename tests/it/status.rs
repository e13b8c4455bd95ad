//! `status` and `stop`: what is at work now, from another terminal.

use super::support::Place;
use serde_json::Value;

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

/// Runs a command while a run is at work. Returns its exit code and what it printed.
fn beside(place: &Place, words: &[&str]) -> (Option<i32>, String) {
    let output = place.command(words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
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
    insta::assert_snapshot!(beside(&place, &["status"]).1, @r#"
    ● run 2 worker:3 (for 0 s, attempt 2)
      1.2 worker, iteration 2 of 3 for 0 s
      Reading src/main.rs
    ! run 1 (judge) waits for your decision: forkhestra resume 1 --approve, or --reject "why"
    tasks: 2 pending
    "#);
    let json: Value = serde_json::from_str(&beside(&place, &["status", "--json"]).1).unwrap();
    let found = &json["roots"][0]["run"];
    assert_eq!((&found["run"], &found["attempt"]["lastLine"]), (&2.into(), &"Reading src/main.rs".into()));
    let all = beside(&place, &["status", "--all"]).1;
    let root = place.work("").display().to_string();
    assert!(all.contains(root.trim_end_matches('/')), "{all}");
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
    let (code, wrong) = beside(&place, &["stop", "7"]);
    assert!(code == Some(2) && wrong.contains("run 7 is not at work"), "{wrong}");
    let (code, stopped) = beside(&place, &["stop"]);
    assert_eq!(code, Some(0));
    assert!(stopped.starts_with("run 1 has ended; to continue: forkhestra resume 1\n"), "{stopped}");
    assert_eq!(run.end().code, Some(143));
    place.assert_nothing_is_left();
    let again = place.run(&["stop"]);
    assert!(again.code(2).words().contains("no run is at work here"), "{}", again.stderr);
}
