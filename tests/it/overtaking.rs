//! What must not happen to shared tasks when batches are refused, lost, cut off from the hub, or come back.

use crate::batch::WRITES;
use crate::integrator::{RUN, WAITS, bring_back, landed, of_hub, place, statuses, take_away, there};
use crate::support::{Place, git};
use std::fs;

/// What the hub says about a task.
fn task(place: &Place, id: &str) -> serde_json::Value {
    serde_json::from_str(&of_hub(place, &["show", &format!("refs/forkhestra/tasks/{id}:task.json")])).unwrap()
}

/// Makes the agent fail, or succeed, in both clones.
fn script(place: &Place, text: &str) {
    place.agent("worker", text);
}

#[test]
fn a_start_that_is_refused_does_not_bring_back_what_another_batch_has_replaced() {
    let (place, _) = place(1, "sh echo bad > file-bad.txt\nexit 1");
    place.run(&RUN).code(1);
    place.run(&["task", "reset", "1", "--hub", "origin"]).code(0);
    script(&place, WRITES);
    there(&place, &RUN).end().code(0);
    place.write("shared.txt", "mine\n");
    assert!(place.run(&RUN).code(2).stderr.contains("uncommitted"));
    git(&place, &["checkout", "-q", "--", "shared.txt"]);
    assert!(place.run(&RUN).code(2).stderr.contains("task/none"));
    assert_eq!(landed(&place), ["file-1.txt"]);
    assert!(task(&place, "1")["landed"].is_string());
}

#[test]
fn a_batch_that_was_cut_off_and_overtaken_calls_nothing_completed_that_the_hub_lacks() {
    let (place, hub) = place(1, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    place.until(|| statuses(&place) == ["in_progress"]);
    take_away(&hub);
    fs::write(place.path("tmp/go"), "").unwrap();
    batch.end().code(1);
    bring_back(&hub);
    place.run(&["task", "add", "Task 2", "--hub", "origin"]).code(0);
    // The other batch lands the second task alone.
    there(&place, &[&RUN[..], &["--wait", "2"]].concat()).end().code(0);
    assert!(place.run(&RUN).code(2).stderr.contains("batch/apart"));
    assert_eq!(
        (landed(&place), statuses(&place)),
        (vec!["file-2.txt".into()], vec!["in_progress".into(), "completed".into()])
    );
}

#[test]
fn a_line_that_somebody_else_has_pushed_to_ends_in_an_error_and_no_task_counts_as_landed() {
    let (place, _) = place(1, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    place.until(|| !of_hub(&place, &["for-each-ref", "refs/heads/forkhestra/line"]).is_empty());
    let other = place.path("tmp/other").display().to_string();
    git(&place, &["-C", &other, "commit", "-q", "--allow-empty", "-m", "theirs"]);
    git(&place, &["-C", &other, "push", "-q", "origin", "HEAD:forkhestra/line"]);
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = batch.end();
    assert!(ran.code(1).stderr.contains("does not have everything of this batch"), "{}", ran.stderr);
    let found = task(&place, "1");
    assert!(found["landed"].is_null() && found["work"].is_string(), "{found}");
    // It lands with the next batch, and its agents are not called again.
    let calls = place.calls("worker");
    there(&place, &[&RUN[..], &["--wait"]].concat()).end().code(0);
    assert_eq!((landed(&place), place.calls("worker")), (vec!["file-1.txt".into()], calls));
}

#[test]
fn a_line_that_the_server_protects_is_an_error_and_no_reason_to_take_over() {
    let (place, hub) = place(1, WAITS);
    let hook = format!("{hub}/hooks/update");
    fs::write(&hook, "#!/bin/sh\ncase $1 in */line) echo protected >&2; exit 1;; esac\n").unwrap();
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    place.until(|| statuses(&place) == ["in_progress"]);
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = batch.end();
    assert!(ran.code(1).stderr.contains("does not have everything of this batch"), "{}", ran.stderr);
    let claim = of_hub(&place, &["log", "--format=%B", "refs/forkhestra/integrator"]);
    assert!(claim.contains("Forkhestra-Fence: 1\nForkhestra-Stage: done"), "{claim}");
    assert!(task(&place, "1")["work"].is_string());
}

#[test]
fn a_decision_about_a_task_at_work_is_refused_with_who_works_on_it() {
    let (place, _) = place(1, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    place.until(|| statuses(&place) == ["in_progress"] && task(&place, "1")["atWork"] == true);
    let (code, text) = place.beside(&["task", "skip", "1", "--hub", "origin"]);
    assert!(code == Some(2) && text.contains("a batch of n on"), "{text}");
    fs::write(place.path("tmp/go"), "").unwrap();
    batch.end().code(0);
    place.run(&["task", "reject", "1", "--notes", "again", "--hub", "origin"]).code(0);
}

#[test]
fn the_machine_of_an_overtaken_batch_works_on_after_a_refused_resume() {
    let (place, _) = place(2, WAITS);
    let killed = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    assert_eq!(killed.end_alone_by("KILL"), None);
    fs::write(place.path("tmp/go"), "").unwrap();
    there(&place, &[&RUN[..], &["--wait"]].concat()).end().code(0);
    assert!(place.run(&["resume", "1"]).code(2).stderr.contains("hub/overtaken"));
    assert!(place.run(&RUN).code(2).stderr.contains("task/none"));
    place.run(&["task", "add", "Task 3", "--hub", "origin"]).code(0);
    place.run(&RUN).code(0);
    assert_eq!((landed(&place).len(), statuses(&place)), (3, vec!["completed".to_string(); 3]));
}

#[test]
fn a_task_whose_ref_was_deleted_in_the_hub_is_forgotten() {
    let (place, _) = place(2, WRITES);
    place.run(&[&RUN[..], &["1"]].concat()).code(0);
    of_hub(&place, &["update-ref", "-d", "refs/forkhestra/tasks/2"]);
    place.run(&["task", "add", "Task 3", "--id", "3", "--hub", "origin"]).code(0);
    place.run(&RUN).code(0);
    assert_eq!(landed(&place), ["file-1.txt", "file-3.txt"]);
}

#[test]
fn a_batch_that_waits_outlives_a_hub_that_is_away_for_a_moment() {
    let (place, hub) = place(1, WAITS);
    let first = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    let log = place.path("tmp/waiting.log");
    let waiting = place
        .command(&[&RUN[..], &["--wait"]].concat())
        .current_dir(place.path("tmp/other"))
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let waiting = crate::support::Running::of(waiting, &place);
    let said = |words: &str| fs::read_to_string(&log).unwrap().contains(words);
    place.until(|| said("waiting: a batch of n on"));
    take_away(&hub);
    place.until(|| said("cannot") || said("failed"));
    bring_back(&hub);
    fs::write(place.path("tmp/go"), "").unwrap();
    let mut first = first;
    let _ = first.child.wait().unwrap();
    // What was left is nothing.
    let ended = waiting.end();
    assert!(
        ended.code == Some(2) && said("task/none") || ended.code == Some(0),
        "{}",
        fs::read_to_string(&log).unwrap()
    );
    assert_eq!(landed(&place), ["file-1.txt"]);
}

#[test]
fn a_task_that_is_reset_begins_without_its_earlier_work() {
    let (place, _) = place(1, "sh echo old > file-old.txt\nexit 1");
    place.run(&RUN).code(1);
    assert!(task(&place, "1")["work"].is_string());
    place.run(&["task", "reset", "1", "--hub", "origin"]).code(0);
    script(&place, WAITS);
    let killed = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    place.until(|| statuses(&place) == ["in_progress"]);
    assert_eq!(killed.end_alone_by("KILL"), None);
    fs::write(place.path("tmp/go"), "").unwrap();
    there(&place, &[&RUN[..], &["--wait"]].concat()).end().code(0);
    assert_eq!(landed(&place), ["file-1.txt"]);
}

#[test]
fn a_task_of_a_hub_is_worked_on_with_hub_only() {
    let (place, _) = place(2, WRITES);
    place.run(&[&RUN[..], &["1"]].concat()).code(0);
    for words in [&["task", "run", "--jobs", "2", "2"][..], &["task", "run", "2"]] {
        assert!(place.run(words).code(2).stderr.contains("task/shared"), "{words:?}");
    }
    for words in [&["task", "run", "--jobs", "2"][..], &["task", "run"], &["task", "run", "--all"]] {
        assert!(place.run(words).code(2).stderr.contains("task/none"), "{words:?}");
    }
    place.run(&["task", "add", "Mine", "--id", "mine"]).code(0);
    place.run(&["task", "run", "--all"]).code(0);
    assert_eq!(statuses(&place), ["completed", "pending"]);
}
