//! The demo, which is the first thing that a newcomer runs.

use super::support::Place;

#[test]
fn the_demo_runs_without_any_agent_cli_and_shows_a_loop_a_marker_and_a_check_that_fails_once() {
    let place = Place::new();
    let ran = place.run(&["--chain", "demo"]);
    ran.code(0);
    let folder = std::fs::read_dir(place.path("tmp")).unwrap().next().unwrap().unwrap().file_name();
    insta::assert_snapshot!(ran.all().replace(folder.to_str().unwrap(), "forkhestra-demo-XXXXXX"));
    assert!(!place.work(".forkhestra").exists(), "it leaves the current folder alone");
}

#[test]
fn the_demo_has_a_dry_run() {
    let place = Place::new();
    let ran = place.run(&["--chain", "demo", "--dry-run"]);
    assert!(ran.code(0).stdout.contains("a new temporary directory"), "{}", ran.stdout);
}

#[test]
fn the_demo_of_several_tasks_lands_all_after_a_conflict_and_a_failure_of_two_together() {
    let place = Place::new();
    let ran = place.run(&["--chain", "demo-batch"]);
    ran.code(0);
    for words in [
        "● batch 1 begins: 6 tasks, 3 lanes, verified by test",
        "goes back: conflicts in title with what has landed",
        "goes back: fails `test` together with what has landed",
        "6 of 6 tasks landed",
        "main is now ",
    ] {
        assert!(ran.stdout.contains(words), "{words} is missing: {}", ran.all());
    }
    assert!(!place.work(".forkhestra").exists(), "it leaves the current folder alone");
    assert_eq!(place.processes(), Vec::<String>::new());
}
