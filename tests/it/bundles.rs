//! Units as files: `task bundle`, `work --bundle`, `task sync`, for machines that reach no network.

use crate::batch::{WRITES, assert_line_is_green, place};
use crate::checkpoints::with_unit;
use crate::support::Place;
use forkhestra::hub::Hub;
use forkhestra::unit::UnitStage;
use std::fs;
use std::process::Command;

fn path(place: &Place, name: &str) -> String {
    place.path(name).display().to_string()
}

/// Works on the unit in `there/unit.bundle`, without the project and its hub.
fn work_there(place: &Place) {
    work_there_with(place, |arguments| {
        place.run(arguments).code(0);
    });
}

fn work_there_with(place: &Place, work: impl Fn(&[&str])) {
    let (project, away) = (place.work(""), place.path("away"));
    fs::rename(&project, &away).unwrap();
    fs::create_dir(&project).unwrap();
    let (unit, done) = (path(place, "there/unit.bundle"), path(place, "there/done.bundle"));
    work(&["work", "--bundle", &unit, "--out", &done]);
    fs::remove_dir_all(&project).unwrap();
    fs::rename(&away, &project).unwrap();
}

#[test]
fn a_unit_travels_as_a_file_and_comes_back_with_its_work_and_its_run() {
    let place = with_unit();
    fs::create_dir(place.path("there")).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    let (unit, done) = (path(&place, "there/unit.bundle"), path(&place, "there/done.bundle"));
    let ran = place.run(&["task", "bundle", "9-1-1", "--out", &unit]);
    assert!(ran.code(0).stdout.contains("wrote unit 9-1-1 to "), "{}", ran.stdout);
    let calls = place.calls("worker");
    work_there(&place);
    assert_eq!(place.calls("worker") - calls, 3);
    let ran = place.run(&["task", "sync", &done]);
    assert_eq!(ran.code(0).stdout, "unit 9-1-1 is done\n");
    let hub = Hub::at(&place.work(".forkhestra/hub.git"));
    let found = hub.units().get("9-1-1").unwrap().unwrap();
    assert_eq!((found.record.stage, found.record.exit), (UnitStage::Done, Some(0)));
    assert!(hub.kept().run(&found).unwrap().1.contains("runFinished"));
    assert_eq!(place.run(&["task", "sync", &done]).code(0).stdout, "unit 9-1-1 has nothing new\n");
    let ran = place.run(&["work", "--bundle", &done, "--out", &path(&place, "there/more.bundle")]);
    assert!(ran.code(69).words().contains("it has a result, not a unit to work on"), "{}", ran.stderr);
    let ran = place.run(&["task", "bundle", "9-1-1", "--out", "nowhere/unit.bundle"]);
    assert!(ran.code(2).words().contains("cannot write nowhere/unit.bundle: its directory does not exist"));
    let ran = place.run(&["task", "bundle", "abc", "--out", &unit]);
    assert!(ran.code(2).words().contains("git --git-dir .forkhestra/hub.git for-each-ref refs/forkhestra/units"));
    // An older file changes nothing, either.
    assert_eq!(place.run(&["task", "sync", &unit]).code(0).stdout, "unit 9-1-1 has nothing new\n");
}

#[test]
#[ignore = "needs root: it makes a network namespace"]
fn a_unit_in_a_file_is_worked_on_in_a_network_namespace_without_any_route() {
    let place = with_unit();
    fs::create_dir(place.path("there")).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    place.run(&["task", "bundle", "9-1-1", "--out", &path(&place, "there/unit.bundle")]).code(0);
    work_there_with(&place, |arguments| {
        let here = place.command(arguments);
        let mut there = Command::new("unshare");
        there.args(["--net", "sh", "-c", "[ \"$(wc -l < /proc/net/route)\" -le 1 ] && exec \"$0\" \"$@\""]);
        there.arg(here.get_program()).args(here.get_args()).env_clear().current_dir(place.work(""));
        there.envs(here.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let done = there.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    });
    let done = path(&place, "there/done.bundle");
    assert_eq!(place.run(&["task", "sync", &done]).code(0).stdout, "unit 9-1-1 is done\n");
    assert_eq!(place.run(&["task", "sync", &done]).code(0).stdout, "unit 9-1-1 has nothing new\n");
}

#[test]
fn a_file_that_comes_back_after_another_worker_has_claimed_the_unit_is_refused() {
    let place = with_unit();
    fs::create_dir(place.path("there")).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    let unit = path(&place, "there/unit.bundle");
    place.run(&["task", "bundle", "9-1-1", "--out", &unit]).code(0);
    work_there(&place);
    assert!(Hub::at(&place.work(".forkhestra/hub.git")).units().claim("9-1-1", "another").unwrap().is_some());
    let ran = place.run(&["task", "sync", &path(&place, "there/done.bundle")]);
    assert!(ran.code(1).stdout.contains("another worker has claimed unit 9-1-1"), "{}", ran.stdout);
    let found = Hub::at(&place.work(".forkhestra/hub.git")).units().get("9-1-1").unwrap().unwrap();
    assert_eq!(found.record.stage, UnitStage::Claimed);
}

#[test]
fn work_on_a_file_that_was_interrupted_continues_after_its_last_attempt() {
    let place = with_unit();
    fs::create_dir(place.path("there")).unwrap();
    let (unit, done) = (path(&place, "there/unit.bundle"), path(&place, "there/done.bundle"));
    place.run(&["task", "bundle", "9-1-1", "--out", &unit]).code(0);
    let calls = place.calls("worker");
    let run = place.start(&["work", "--bundle", &unit, "--out", &done]);
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(run.end_by("KILL").code, None);
    fs::remove_dir_all(place.path("home/.cache/forkhestra/workspaces")).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    place.run(&["work", "--bundle", &unit, "--out", &done]).code(0);
    assert_eq!(place.calls("worker") - calls, 4);
    assert_eq!(place.run(&["task", "sync", &done]).code(0).stdout, "unit 9-1-1 is done\n");
}

#[test]
fn work_on_a_file_that_was_written_again_begins_with_the_newer_one() {
    let place = with_unit();
    fs::create_dir(place.path("there")).unwrap();
    let (unit, done) = (path(&place, "there/unit.bundle"), path(&place, "there/done.bundle"));
    place.run(&["task", "bundle", "9-1-1", "--out", &unit]).code(0);
    let run = place.start(&["work", "--bundle", &unit, "--out", &done]);
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(run.end_by("KILL").code, None);
    place.agent("worker", "sh echo more >> file-1.txt\nsh echo FORKHESTRA_COMPLETE");
    // Meanwhile, the batch has offered the unit again.
    let hub = Hub::at(&place.work(".forkhestra/hub.git"));
    assert!(hub.units().claim("9-1-1", "lost").unwrap().is_some());
    hub.kept().queue_again("9-1-1", &[]).unwrap();
    place.run(&["task", "bundle", "9-1-1", "--out", &unit]).code(0);
    place.run(&["work", "--bundle", &unit, "--out", &done]).code(0);
    assert_eq!(place.run(&["task", "sync", &done]).code(0).stdout, "unit 9-1-1 is done\n");
}

#[test]
fn a_batch_lands_what_a_file_brings_back() {
    let place = place(1, WRITES, "ls file-*.txt > /dev/null");
    fs::create_dir(place.path("there")).unwrap();
    let run = place.start(&["task", "run", "--on", "workers", "-j", "1"]);
    place.wait_for(&place.work(".forkhestra/hub.git/refs/forkhestra/units/1-1-1"));
    let (unit, done) = (path(&place, "there/unit.bundle"), path(&place, "there/done.bundle"));
    assert_eq!(place.beside(&["task", "bundle", "1-1-1", "--out", &unit]).0, Some(0));
    assert_eq!(place.beside(&["work", "--bundle", &unit, "--out", &done]).0, Some(0));
    assert_eq!(place.beside(&["task", "sync", &done]).0, Some(0));
    place.wait_for(&place.work(".forkhestra/hub.git/refs/forkhestra/units/1-verify-1"));
    let hub = path(&place, "project/.forkhestra/hub.git");
    assert_eq!(place.beside(&["work", "--next", "--hub", &hub]).0, Some(0));
    let ran = run.end();
    assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
    assert!(place.run(&["runs", "log", "2"]).code(0).stdout.contains("worker"));
    assert_line_is_green(&place);
}

#[test]
fn bundle_and_sync_refuse_what_is_no_unit_and_no_bundle() {
    let place = with_unit();
    let out = path(&place, "unit.bundle");
    let ran = place.run(&["task", "bundle", "9-9-9", "--out", &out]);
    assert!(ran.code(2).stderr.contains("has no unit `9-9-9`"), "{}", ran.stderr);
    fs::write(place.path("text"), "no bundle\n").unwrap();
    let text = path(&place, "text");
    for (words, code) in [(&["task", "sync", &text][..], 2), (&["work", "--bundle", &text, "--out", &out], 69)] {
        let ran = place.run(words);
        assert!(ran.code(code).stderr.contains("bundle/unreadable"), "{}", ran.stderr);
    }
}
