//! `work`: a unit that a worker has left is continued from its last checkpoint, in a workspace elsewhere.

use crate::batch::{CHAINS, hub, place};
use crate::support::{Place, git};
use forkhestra::hub::Hub;
use forkhestra::unit::{Bundle, UnitStage};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A place with the unit `9-1-1`. Its worker needs three iterations, and waits in the third one.
pub(crate) fn with_unit() -> Place {
    with_unit_of("worker")
}

/// Like [`with_unit`], with this command of the worker.
fn with_unit_of(command: &str) -> Place {
    let place = place(1, "", "ls file-*.txt > /dev/null");
    let chains = CHAINS.replace(r#"{ "agent": "worker" }"#, r#"{ "agent": "worker", "iterations": 9 }"#);
    place.config(&format!("{{{}}}", chains.replace(r#""command": "worker""#, &format!(r#""command": "{command}""#))));
    place.write("worker.sh", "#!/bin/sh\nexec worker\n");
    fs::set_permissions(place.work("worker.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "config"]);
    // A batch that has nothing to do but to make the hub and a bundle.
    place.agent("worker", "marker");
    place.run(&["task", "run", "-j", "1"]).code(1);
    let made = Hub::existing(&place.path("project")).unwrap();
    let bundle = made.units().bundle("1-1-1").unwrap();
    let bundle = Bundle { unit: "9-1-1".into(), workspace: "9-1".into(), ..bundle };
    assert!(made.units().queue(&bundle).unwrap());
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    let works = format!(
        "sh echo $FORKHESTRA_ITERATION >> file-1.txt\n\
         sh [ $(wc -l < file-1.txt) = 3 ] && echo FORKHESTRA_COMPLETE && touch {0} && while [ ! -e {1} ]; do sleep 0.02; done",
        up.display(),
        go.display()
    );
    place.agent("worker", &works);
    place
}

/// The command line of a worker whose workspaces are in this directory of the place.
fn worker<'a>(hub: &'a str, workspaces: &'a str) -> [&'a str; 7] {
    ["work", "--hub", hub, "--unit", "9-1-1", "--workspaces", workspaces]
}

#[test]
fn a_unit_is_continued_elsewhere_from_its_last_checkpoint() {
    let place = with_unit();
    let (before, made) = (place.calls("worker"), place.work(".forkhestra/hub.git").display().to_string());
    let (here, there) = (place.path("here").display().to_string(), place.path("there").display().to_string());
    let run = place.start(&worker(&made, &here));
    place.wait_for(&place.path("tmp/up"));
    let unit = || Hub::at(&place.work(".forkhestra/hub.git")).units().get("9-1-1").unwrap().unwrap();
    assert_eq!((unit().record.stage, unit().record.fence), (UnitStage::Checkpoint, 1));
    assert_eq!(hub(&place, &["show", "refs/forkhestra/units/9-1-1^2:file-1.txt"]), "1\n2");
    assert_eq!(run.end_by("KILL").code, None);
    // The machine is gone.
    fs::remove_dir_all(&here).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = place.run(&worker(&made, &there));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(place.calls("worker") - before, 4, "the first two iterations do not run again: {}", ran.stdout);
    assert_eq!((unit().record.stage, unit().record.fence), (UnitStage::Done, 2));
    assert_eq!(hub(&place, &["show", "refs/forkhestra/units/9-1-1^2:file-1.txt"]), "1\n2\n3");
    // Its events are those of one run.
    let numbers: Vec<u64> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(ran.stdout.contains("runResumed"));
    place.run(&worker(&made, &there)).code(75);
}

#[test]
fn a_worker_whose_unit_was_claimed_by_another_one_ends_after_its_attempt() {
    let place = with_unit();
    let made = place.work(".forkhestra/hub.git").display().to_string();
    let here = place.path("here").display().to_string();
    let run = place.start(&worker(&made, &here));
    place.wait_for(&place.path("tmp/up"));
    assert!(Hub::at(&place.work(".forkhestra/hub.git")).units().claim("9-1-1", "another").unwrap().is_some());
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = run.end();
    assert_eq!(ran.code, Some(75), "{}", ran.stderr);
    assert!(ran.stderr.contains("another process has claimed unit 9-1-1"), "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("attemptStarted").count(), 3, "no step begins after it: {}", ran.stdout);
}

#[test]
fn a_unit_whose_agent_is_a_program_of_the_project_is_continued_in_another_directory() {
    let place = with_unit_of("./worker.sh");
    let made = ".forkhestra/hub.git";
    let (here, there) = (place.path("here").display().to_string(), place.path("there").display().to_string());
    let run = place.start(&worker(made, &here));
    place.wait_for(&place.path("tmp/up"));
    assert_eq!(run.end_by("KILL").code, None);
    fs::remove_dir_all(&here).unwrap();
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = place.run(&worker(made, &there));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("runResumed"), "{}", ran.stdout);
}

#[test]
fn a_batch_that_is_resumed_knows_what_another_worker_of_its_unit_has_done() {
    let place = crate::batch::waiting(1);
    let run = place.start(&["task", "run", "-j", "1"]);
    crate::batch::wait_for_workers(&place, &[1]);
    assert_eq!(run.end_by("KILL").code, None);
    place.agent("worker", "sh echo work > file-$FORKHESTRA_TASK.txt");
    place.run(&["work", "--hub", ".forkhestra/hub.git", "--unit", "1-1-1"]).code(0);
    place.run(&["resume"]).code(0);
    let listed = place.run(&["task", "list"]).code(0).stdout.clone();
    assert!(listed.contains("completed") && listed.contains("landed as"), "{listed}");
}
