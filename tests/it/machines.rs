//! `work --hub URL`: a unit of a hub on another machine, which is reached as git reaches any repository.

use crate::batch::{hub, place};
use crate::checkpoints::with_unit;
use crate::support::Place;
use forkhestra::hub::Hub;
use forkhestra::unit::UnitStage;
use std::fs;

/// The last commit of the unit `9-1-1` in the place's hub.
fn stage(place: &Place) -> (UnitStage, u32) {
    let unit = Hub::at(&place.work(".forkhestra/hub.git")).unit("9-1-1").unwrap().unwrap();
    (unit.record.stage, unit.record.fence)
}

/// A command line of a worker on another machine.
fn worker(url: &str) -> [&str; 5] {
    ["work", "--hub", url, "--unit", "9-1-1"]
}

#[test]
fn a_worker_needs_only_the_url_of_the_hub() {
    let place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let ran = place.run(&worker(&url));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(stage(&place), (UnitStage::Done, 1));
    assert_eq!(hub(&place, &["show", "refs/forkhestra/units/9-1-1^2:file-1.txt"]), "1\n2\n3");
    place.run(&worker(&url)).code(75);
}

#[test]
fn a_worker_reaches_a_hub_with_the_ssh_command_of_its_user() {
    let mut place = with_unit();
    fs::write(place.path("tmp/go"), "").unwrap();
    // It runs on this machine what it is told to run on the other one.
    fs::write(place.path("tmp/ssh"), "echo \"$*\" >> $0.log\nshift\nexec sh -c \"$*\"\n").unwrap();
    let url = format!("builder:{}", place.work(".forkhestra/hub.git").display());
    let ssh = format!("sh {}", place.path("tmp/ssh").display());
    place.set("GIT_SSH_COMMAND", &ssh);
    let ran = place.run(&worker(&url));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(stage(&place), (UnitStage::Done, 1));
    let log = fs::read_to_string(place.path("tmp/ssh.log")).unwrap();
    assert!(log.contains("builder git-upload-pack"), "{log}");
}

#[test]
fn a_worker_by_url_that_was_superseded_ends_after_its_attempt() {
    let place = with_unit();
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let run = place.start(&worker(&url));
    place.wait_for(&place.path("tmp/up"));
    assert!(Hub::at(&place.work(".forkhestra/hub.git")).claim("9-1-1", "another").unwrap().is_some());
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = run.end();
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    assert_eq!(stage(&place), (UnitStage::Claimed, 2));
}

#[test]
fn a_hub_that_cannot_be_reached_is_refused_with_what_git_says() {
    let place = place(1, "", "true");
    let ran = place.run(&["work", "--hub", "file:///nowhere/hub.git", "--unit", "9-1-1"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr, @"
    hub/failed

      × cannot reach the hub file:///nowhere/hub.git: '/nowhere/hub.git' does not
      │ appear to be a git repository
      help: `git ls-remote URL` on this machine shows whether it can be reached
    ");
    let url = format!("file://{}", place.work(".git").display());
    let ran = place.run(&worker(&url));
    assert!(ran.code(2).stderr.contains("has no unit `9-1-1`"), "{}", ran.stderr);
}
