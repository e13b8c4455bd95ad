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
