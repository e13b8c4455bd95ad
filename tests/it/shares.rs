//! The limits of a whole batch: each run gets a share, and more of it while something is left.

use crate::batch::{CHAINS, assert_line_is_green, hub, place};
use crate::support::{Place, git};

/// A batch of two tasks. The first one needs five iterations, the second one needs one.
fn uneven() -> Place {
    let place = place(2, "", "ls file-*.txt > /dev/null");
    place.config(&format!(
        "{{{}}}",
        CHAINS.replace(r#"{ "agent": "worker" }"#, r#"{ "agent": "worker", "iterations": 9 }"#)
    ));
    git(&place, &["commit", "-q", "-am", "config"]);
    let works = "sh echo $FORKHESTRA_ITERATION >> file-$FORKHESTRA_TASK.txt\n\
                 sh if [ $FORKHESTRA_TASK = 2 ] || [ $(wc -l < file-1.txt) = 5 ]; then echo FORKHESTRA_COMPLETE; fi";
    place.agent("worker", works);
    place
}

#[test]
fn limit_shares_that_are_used_up_get_what_others_have_left() {
    let place = uneven();
    let ran = place.run(&["task", "run", "-j", "2", "--limit", "attempts=10"]);
    assert!(ran.code(0).stderr.contains("1  has used up its share of the limit attempts"), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 of 2 tasks landed"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 6, "no iteration is repeated");
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "1\n2\n3\n4\n5");
    assert_line_is_green(&place);
}

#[test]
fn limit_of_a_batch_that_is_used_up_pauses_its_tasks_and_resume_raises_it() {
    let place = uneven();
    let ran = place.run(&["task", "run", "-j", "1", "1", "--limit", "attempts=3"]);
    assert!(ran.code(4).stderr.contains("0 of 1 task landed"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 3);
    let ran = place.run(&["resume", "--limit", "attempts=9"]);
    assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 5, "the run continues with its fourth iteration");
}

#[test]
fn limit_each_stops_a_task_for_good_and_keeps_its_work() {
    let place = uneven();
    let ran = place.run(&["task", "run", "-j", "2", "--limit", "attempts=20", "--limit-each", "attempts=3"]);
    assert!(ran.code(1).stderr.contains("✗ 1  stopped: a limit was reached"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 2 tasks landed"), "{}", ran.stderr);
    place.run(&["task", "run", "-j", "2"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]).lines().count(), 5, "the next batch has its work");
}

#[test]
fn limit_that_is_used_up_in_a_verification_pauses_it_and_resume_raises_it() {
    let place = place(1, "sh echo work > file-$FORKHESTRA_TASK.txt", "ls file-*.txt > /dev/null");
    let chains = CHAINS.replace(r#"{ "check": "check" }"#, r#"{ "check": "check" }, { "check": "second" }"#);
    let chains = chains.replace(r#""check": { "run""#, r#""second": { "run": "true" }, "check": { "run""#);
    place.config(&format!("{{{chains}}}"));
    git(&place, &["commit", "-q", "-am", "config"]);
    let ran = place.run(&["task", "run", "-j", "2", "--limit", "attempts=4"]);
    assert!(ran.code(4).stderr.contains("0 of 1 task landed"), "{}", ran.stderr);
    let ran = place.run(&["resume", "--limit", "attempts=40"]);
    assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 1);
}
