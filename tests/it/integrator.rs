//! `task run --hub`: one batch at a time, wherever it runs, works on the tasks that several people share.

use crate::batch::{CHAINS, WRITES};
use crate::support::{Place, Running, git, is_dead};
use std::fs;

/// Waits for the file `go` after it has said that it is up.
pub(crate) const WAITS: &str = "sh touch $TMPDIR/up-$FORKHESTRA_TASK; while [ ! -e $TMPDIR/go ]; do sleep 0.02; done; \
                     echo work > file-$FORKHESTRA_TASK.txt";
pub(crate) const RUN: [&str; 6] = ["task", "run", "--jobs", "2", "--hub", "origin"];

/// A project with shared tasks, whose remote is their hub, and a clone of it in `tmp/other`. Returns the hub, too.
pub(crate) fn place(tasks: u32, worker: &str) -> (Place, String) {
    let mut place = crate::batch::place(0, worker, "ls file-*.txt > /dev/null");
    for (name, time) in [("BEAT", "100"), ("NEXT", "50"), ("TAKE_OVER", "1500")] {
        place.set(&format!("FORKHESTRA_TEST_{name}_MS"), time);
    }
    let hub = place.path("tmp/team.git").display().to_string();
    git(&place, &["init", "-q", "--bare", "-b", "main", &hub]);
    git(&place, &["remote", "add", "origin", &hub]);
    git(&place, &["push", "-q", "origin", "HEAD:main"]);
    git(&place, &["clone", "-q", &hub, &place.path("tmp/other").display().to_string()]);
    for number in 1..=tasks {
        place.run(&["task", "add", &format!("Task {number}"), "--hub", "origin"]).code(0);
    }
    (place, hub)
}

/// Makes the hub something that git does not know. A git that is writing there at the moment can finish: if the
/// directory were moved, its lock file would stay.
pub(crate) fn take_away(hub: &str) {
    fs::rename(format!("{hub}/HEAD"), format!("{hub}/HEAD.gone")).unwrap();
}

pub(crate) fn bring_back(hub: &str) {
    fs::rename(format!("{hub}/HEAD.gone"), format!("{hub}/HEAD")).unwrap();
}

/// Starts the program in the other clone.
pub(crate) fn there<'a>(place: &'a Place, words: &[&str]) -> Running<'a> {
    Running::of(place.command(words).current_dir(place.path("tmp/other")).spawn().unwrap(), place)
}

pub(crate) fn of_hub(place: &Place, words: &[&str]) -> String {
    let hub = place.path("tmp/team.git").display().to_string();
    git(place, &[&["--git-dir", hub.as_str()], words].concat()).trim_end().to_string()
}

/// The files that have landed in the hub.
pub(crate) fn landed(place: &Place) -> Vec<String> {
    let names = of_hub(place, &["ls-tree", "--name-only", "forkhestra/line"]);
    names.lines().filter(|name| name.starts_with("file-")).map(str::to_string).collect()
}

pub(crate) fn statuses(place: &Place) -> Vec<String> {
    let (code, text) = place.beside(&["task", "list", "--json", "--hub", "origin"]);
    assert_eq!(code, Some(0), "{text}");
    let tasks: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    tasks.iter().map(|task| task["status"].as_str().unwrap().to_string()).collect()
}

#[test]
fn tasks_of_a_hub_are_worked_on_in_any_clone_and_land_in_the_hub() {
    let (place, _) = place(2, WRITES);
    there(&place, &RUN).end().code(0);
    assert_eq!(
        (landed(&place), statuses(&place)),
        (vec!["file-1.txt".into(), "file-2.txt".into()], vec!["completed".to_string(); 2])
    );
    let shown = place.run(&["task", "show", "2", "--hub", "origin"]).code(0).stdout.clone();
    assert!(shown.contains("pending → in_progress  by worker"), "{shown}");
    // Another clone continues from there.
    place.run(&["task", "add", "Task 3", "--hub", "origin"]).code(0);
    place.run(&RUN).code(0);
    assert_eq!(landed(&place).len(), 3);
    assert_eq!(place.run(&["task", "land", "--into", "main"]).code(0).stdout.split(' ').next(), Some("main"));
    assert!(place.work("file-1.txt").exists() && place.work("file-3.txt").exists());
    assert!(there(&place, &RUN).end().code(2).stderr.contains("task/none"));
    let claim = of_hub(&place, &["log", "--format=%B", "refs/forkhestra/integrator"]);
    assert!(claim.contains("Forkhestra-Stage: done") && claim.contains("Forkhestra-Fence: 3"), "{claim}");
}

#[test]
fn one_batch_at_a_time_works_on_the_tasks_of_a_hub_and_wait_takes_over_when_it_ends() {
    let (place, _) = place(1, WAITS);
    let first = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    let mut second = place.command(&RUN);
    let refused = second.current_dir(place.path("tmp/other")).output().unwrap();
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(75) && words.contains("a batch of n on "), "{words}");
    place.until(|| statuses(&place) == ["in_progress"]);
    let (code, text) = place.beside(&["task", "add", "Another", "--hub", "origin"]);
    assert_eq!(code, Some(0), "{text}");
    let waiting = there(&place, &[&RUN[..], &["--wait"]].concat());
    fs::write(place.path("tmp/go"), "").unwrap();
    let mut first = first;
    assert_eq!(first.child.wait().unwrap().code(), Some(0));
    let ran = waiting.end();
    assert!(ran.code(0).stderr.contains("works on the tasks of the hub origin"), "{}", ran.stderr);
    assert_eq!((landed(&place).len(), statuses(&place)), (2, vec!["completed".to_string(); 2]));
}

#[test]
fn a_batch_that_was_killed_is_replaced_and_cannot_continue_what_another_one_has_landed() {
    let (place, _) = place(2, WAITS);
    let killed = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    assert_eq!(killed.end_alone_by("KILL"), None);
    fs::write(place.path("tmp/go"), "").unwrap();
    there(&place, &[&RUN[..], &["--wait"]].concat()).end().code(0);
    assert_eq!((landed(&place).len(), statuses(&place)), (2, vec!["completed".to_string(); 2]));
    assert!(place.run(&["resume", "1"]).code(2).stderr.contains("hub/overtaken"));
}

#[test]
fn work_that_was_complete_when_its_batch_was_killed_lands_in_another_clone_without_being_repeated() {
    let (place, _) = place(1, WRITES);
    // It passes in the chain of the task, and the verification waits.
    let check = "[ ! -e $TMPDIR/checked ] || while [ ! -e $TMPDIR/go ]; do touch $TMPDIR/verifying; sleep 0.02; done\n\
                 touch $TMPDIR/checked; ls file-*.txt > /dev/null";
    place.write("check.sh", check);
    git(&place, &["commit", "-qam", "check"]);
    git(&place, &["push", "-q", "origin", "HEAD:main"]);
    git(&place, &["-C", &place.path("tmp/other").display().to_string(), "pull", "-q"]);
    let killed = place.start(&RUN);
    place.wait_for(&place.path("tmp/verifying"));
    place.until(|| statuses(&place) == ["completed"]);
    assert_eq!(killed.end_alone_by("KILL"), None);
    fs::write(place.path("tmp/go"), "").unwrap();
    there(&place, &[&RUN[..], &["--wait"]].concat()).end().code(0);
    assert_eq!((landed(&place), place.calls("worker")), (vec!["file-1.txt".into()], 1));
    let shown = place.run(&["task", "list", "--hub", "origin"]).code(0).stdout.clone();
    assert!(shown.contains("(landed as "), "{shown}");
}

#[test]
fn work_in_progress_of_a_lost_batch_continues_with_the_files_of_its_last_attempt_on_another_machine() {
    let script = "sh echo $FORKHESTRA_ITERATION >> file-1.txt; [ $(wc -l < file-1.txt) -lt 2 ] || \
                  { while [ ! -e $TMPDIR/go ]; do sleep 0.02; done; echo FORKHESTRA_COMPLETE; }";
    let (place, _) = place(1, script);
    place.config(&format!("{{{}}}", CHAINS.replace(r#""agent": "worker""#, r#""agent": "worker", "iterations": 5"#)));
    git(&place, &["commit", "-qam", "loop"]);
    git(&place, &["push", "-q", "origin", "HEAD:main"]);
    git(&place, &["-C", &place.path("tmp/other").display().to_string(), "pull", "-q"]);
    let batch = place.start(&["task", "run", "--on", "workers", "--hub", "origin"]);
    place.until(|| place.work(".forkhestra/hub.git/refs/forkhestra/units/1-1-1").exists());
    let url = format!("file://{}", place.work(".forkhestra/hub.git").display());
    let worker = place.start(&["work", "--hub", &url, "--next"]);
    place.until(|| !of_hub(&place, &["for-each-ref", "refs/forkhestra/work/1"]).is_empty());
    place.until(|| statuses(&place) == ["in_progress"]);
    assert_eq!((batch.end_alone_by("KILL"), worker.end_alone_by("KILL")), (None, None));
    fs::write(place.path("tmp/go"), "").unwrap();
    there(&place, &[&RUN[..], &["--wait"]].concat()).end().code(0);
    assert_eq!(of_hub(&place, &["show", "forkhestra/line:file-1.txt"]), "1\n1");
}

#[test]
fn one_that_waits_ends_if_its_project_is_removed() {
    let (place, _) = place(1, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    let (other, log) = (place.path("tmp/other"), place.path("tmp/waiting.log"));
    let words = [&RUN[..], &["--wait"]].concat();
    let mut waiting = place.command(&words);
    let mut waiting = waiting.current_dir(&other).stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let said = |words: &str| fs::read_to_string(&log).unwrap().contains(words);
    place.until(|| said("waiting: a batch of n on"));
    fs::remove_dir_all(&other).unwrap();
    place.until(|| is_dead(&waiting.id().to_string()));
    assert_eq!(waiting.wait().unwrap().code(), Some(2));
    assert!(said("tmp/other does not"), "{}", fs::read_to_string(&log).unwrap());
    fs::write(place.path("tmp/go"), "").unwrap();
    batch.end().code(0);
}

#[test]
fn a_batch_that_was_killed_continues_at_once_where_it_ran() {
    let (place, _) = place(2, WAITS);
    let killed = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    assert_eq!(killed.end_alone_by("KILL"), None);
    fs::write(place.path("tmp/go"), "").unwrap();
    place.run(&["resume", "1"]).code(0);
    assert_eq!((landed(&place).len(), statuses(&place)), (2, vec!["completed".to_string(); 2]));
}

#[test]
fn a_batch_that_stood_still_ends_when_another_one_has_taken_over_and_changes_nothing() {
    let (place, _) = place(1, WAITS);
    let still = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    place.until(|| statuses(&place) == ["in_progress"]);
    still.signal("STOP");
    let second = there(&place, &[&RUN[..], &["--wait"]].concat());
    place.until(|| {
        of_hub(&place, &["log", "--format=%B", "refs/forkhestra/integrator"]).contains("Forkhestra-Fence: 2")
    });
    still.signal("CONT");
    let mut still = still;
    assert_eq!(still.child.wait().unwrap().code(), Some(143));
    fs::write(place.path("tmp/go"), "").unwrap();
    second.end().code(0);
    assert_eq!((landed(&place).len(), statuses(&place)), (1, vec!["completed".to_string()]));
}

#[test]
fn what_people_decide_in_the_hub_counts_for_a_batch_that_is_running() {
    let (place, _) = place(3, WAITS);
    let batch = place.start(&["task", "run", "--jobs", "1", "--hub", "origin"]);
    place.wait_for(&place.path("tmp/up-1"));
    let (code, text) = place.beside(&["task", "skip", "2", "--notes", "not now", "--hub", "origin"]);
    assert_eq!(code, Some(0), "{text}");
    place.until(|| place.beside(&["task", "show", "2"]).1.contains("not now"));
    fs::write(place.path("tmp/go"), "").unwrap();
    batch.end().code(1);
    assert_eq!(landed(&place), ["file-1.txt", "file-3.txt"]);
    assert_eq!(statuses(&place), ["completed", "skipped", "completed"]);
}

#[test]
fn a_hub_that_cannot_be_reached_for_a_while_gets_everything_later() {
    let (place, hub) = place(2, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    take_away(&hub);
    fs::write(place.path("tmp/go"), "").unwrap();
    place.until(|| crate::batch::hub(&place, &["log", "--oneline", "forkhestra/line"]).lines().count() > 1);
    bring_back(&hub);
    batch.end().code(0);
    assert_eq!((landed(&place).len(), statuses(&place)), (2, vec!["completed".to_string(); 2]));
}

#[test]
fn a_batch_whose_hub_stays_unreachable_says_so_and_the_next_one_brings_its_work() {
    let (place, hub) = place(1, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    take_away(&hub);
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = batch.end();
    assert!(
        ran.code(1).stderr.contains("the hub origin does not have everything of this batch: cannot reach"),
        "{}",
        ran.stderr
    );
    bring_back(&hub);
    // A push that was under way when the hub went away may still hold a lock.
    place.until(|| {
        let ran = place.command(&RUN).output().unwrap();
        String::from_utf8_lossy(&ran.stderr).contains("task/none")
    });
    assert_eq!((landed(&place).len(), statuses(&place)), (1, vec!["completed".to_string()]));
}

#[test]
fn ctrl_c_gives_the_tasks_back_at_once() {
    let (place, _) = place(1, WAITS);
    let batch = place.start(&RUN);
    place.wait_for(&place.path("tmp/up-1"));
    batch.end_by("INT").code(130);
    fs::write(place.path("tmp/go"), "").unwrap();
    there(&place, &RUN).end().code(0);
    assert_eq!(landed(&place).len(), 1);
}

#[test]
fn a_task_of_the_project_with_the_id_of_a_shared_one_is_refused_and_a_dry_run_claims_nothing() {
    let (place, _) = place(1, WRITES);
    let ran = place.run(&[&RUN[..], &["--dry-run"]].concat());
    assert!(ran.code(0).stdout.contains("Task 1"), "{}", ran.stdout);
    assert_eq!(of_hub(&place, &["for-each-ref", "refs/forkhestra/integrator"]), "");
    place.run(&["task", "add", "Mine"]).code(0);
    assert!(place.run(&RUN).code(2).stderr.contains("task/clash"));
    place.run(&["task", "delete", "1"]).code(0);
    place.run(&["task", "add", "Mine", "--id", "mine"]).code(0);
    place.run(&RUN).code(0);
    assert!(place.run(&["task", "show", "mine"]).code(0).stdout.contains("pending"), "only shared tasks are worked on");
}

/// Batches in two clones wait for each other, and are killed at times that come from a seed
/// (`FORKHESTRA_SOAK_SEED`, `FORKHESTRA_INTEGRATOR_FAULTS` kills).
#[test]
fn whatever_batch_is_killed_whenever_every_shared_task_lands_once() {
    let number =
        |name: &str, otherwise: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (kills, mut seed) = (number("FORKHESTRA_INTEGRATOR_FAULTS", 4), number("FORKHESTRA_SOAK_SEED", 1));
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let (place, _) = place(6, "sh sleep 0.5; echo work > file-$FORKHESTRA_TASK.txt");
    let words = [&RUN[..], &["--wait", "--quiet"]].concat();
    for _ in 0..kills {
        let batch = if random(2) == 0 { place.start(&words) } else { there(&place, &words) };
        std::thread::sleep(std::time::Duration::from_millis(1500 + random(2500)));
        // It may have ended, because nothing is left.
        batch.try_signal("KILL");
        let mut batch = batch;
        let _ = batch.child.wait().unwrap();
    }
    place.until(|| {
        let ran = place.command(&words).output().unwrap();
        ran.status.code() == Some(2) || ran.status.code() == Some(0)
    });
    assert_eq!(landed(&place).len(), 6);
    assert_eq!(statuses(&place), vec!["completed".to_string(); 6]);
    let titles = of_hub(&place, &["log", "--first-parent", "--format=%s", "forkhestra/line"]);
    // `Task 3`, or `Land tasks 1, 2` if two land together.
    let words = titles.split(|sign: char| !sign.is_ascii_digit()).filter_map(|word| word.parse::<u32>().ok());
    let mut ids: Vec<u32> = words.collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6], "{titles}");
}
