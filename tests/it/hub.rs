//! The hub: claims of units by several workers at once, and what it refuses.

use crate::batch::{WRITES, hub, place};
use crate::batch_faults::scenarios;
use forkhestra::hub::{Hub, KeptUnit};
use forkhestra::unit::{Bundle, UnitStage};
use std::sync::Barrier;
use std::thread;

/// How many units are raced for, and by how many workers at once.
const ROUNDS: u64 = 25;
const WORKERS: usize = 8;

/// Of several workers that claim a unit at the same moment, exactly one gets it. Claims only count up, and after the
/// result nobody gets the unit any more.
#[test]
fn exactly_one_of_eight_workers_gets_a_unit_and_a_late_one_changes_nothing() {
    let place = place(1, WRITES, "ls file-*.txt > /dev/null");
    place.run(&["task", "run", "-j", "1"]).code(0);
    let hub = Hub::existing(&place.path("project")).unwrap();
    let first = hub.units().bundle("1-1-1").unwrap();
    let (rounds, _) = scenarios("FORKHESTRA_RACES", ROUNDS);
    for round in 0..rounds {
        let unit = format!("race-{round}");
        assert!(hub.units().queue(&Bundle { unit: unit.clone(), ..first.clone() }).unwrap());
        let other = Bundle { unit: unit.clone(), base: first.start.clone() + "0", ..first.clone() };
        assert!(!hub.units().queue(&other).unwrap(), "the same name twice");
        let start = Barrier::new(WORKERS);
        let claims: Vec<_> = thread::scope(|scope| {
            let claim = |worker: usize| {
                start.wait();
                hub.units().claim(&unit, &worker.to_string()).unwrap()
            };
            let workers: Vec<_> = (0..WORKERS).map(|worker| scope.spawn(move || claim(worker))).collect();
            workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
        });
        // A worker that came after another one may have taken the unit over; then the earlier claim is void.
        let mut fences: Vec<u32> = claims.iter().map(|claim| claim.fence).collect();
        fences.sort_unstable();
        assert_eq!(fences, (1..=u32::try_from(claims.len()).unwrap()).collect::<Vec<_>>());
        let mut winners = 0;
        for mut claim in claims {
            winners += usize::from(
                hub.kept()
                    .hand_over(&mut claim, KeptUnit { work: &first.base, run: None, error: None }, Some(0))
                    .unwrap(),
            );
        }
        assert_eq!(winners, 1, "unit {unit}");
        let found = hub.units().get(&unit).unwrap().unwrap();
        assert_eq!((found.record.stage, found.record.exit), (UnitStage::Done, Some(0)));
        assert_eq!(hub.units().claim(&unit, "late").unwrap(), None);
    }
}

/// The network may fail after the hub has taken a change, so that the worker does not know it.
#[test]
fn a_worker_whose_change_was_taken_without_an_answer_keeps_its_claim() {
    let place = place(1, WRITES, "ls file-*.txt > /dev/null");
    place.run(&["task", "run", "-j", "1"]).code(0);
    let hub = Hub::existing(&place.path("project")).unwrap();
    let first = hub.units().bundle("1-1-1").unwrap();
    assert!(hub.units().queue(&Bundle { unit: "9-1-1".into(), ..first.clone() }).unwrap());
    let mut claim = hub.units().claim("9-1-1", "me").unwrap().unwrap();
    let kept = KeptUnit { work: &first.base, run: None, error: None };
    assert!(hub.kept().hand_over(&mut claim.clone(), kept, None).unwrap());
    assert!(hub.kept().hand_over(&mut claim.clone(), kept, Some(0)).unwrap(), "after a checkpoint");
    assert!(hub.kept().hand_over(&mut claim, kept, Some(0)).unwrap(), "after the result");
    let log = crate::batch::hub(&place, &["log", "--first-parent", "--format=%s", "refs/forkhestra/units/9-1-1"]);
    assert_eq!(log.lines().filter(|line| line.contains("done")).count(), 1, "{log}");
}

/// What a person has configured for git, such as signed commits or a template with hooks, does not matter to the hub.
#[test]
fn the_hub_needs_no_git_identity_and_runs_no_hook_of_the_user() {
    let place = place(1, WRITES, "ls file-*.txt > /dev/null");
    let marker = place.path("tmp/hook-ran");
    place.write("hooks/post-checkout", format!("#!/bin/sh\ntouch {}\n", marker.display()));
    place.write(
        ".gitconfig",
        "[commit]\n\tgpgSign = true\n[core]\n\thooksPath = hooks\n[init]\n\ttemplateDir = hooks\n[gc]\n\tauto = 1\n",
    );
    std::fs::rename(place.work(".gitconfig"), place.path("home/.gitconfig")).unwrap();
    std::fs::remove_dir_all(place.work("hooks")).unwrap();
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "work");
    assert!(!marker.exists());
}

/// Every object of the hub, as text.
fn everything(place: &crate::support::Place) -> String {
    let ids = hub(place, &["cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"]);
    let named = ids.lines().filter_map(|line| line.split_once(' ')).filter(|(kind, _)| *kind != "tree");
    named.map(|(kind, id)| hub(place, &["cat-file", kind, id])).collect()
}

#[test]
fn no_value_of_the_environment_is_in_the_hub() {
    let mut place = place(1, WRITES, "ls file-*.txt > /dev/null");
    place.set("SERVICE_TOKEN", "canary-4711");
    place.run(&["task", "run", "-j", "1"]).code(0);
    let text = everything(&place);
    assert!(text.contains("Task 1") && !text.contains("canary-4711"));
}
