//! `task run --all`: a queue as a whole.

use crate::support::Place;
use std::io::{BufRead, BufReader};
use std::process::Command;

const CHAINS: &str =
    r#""chains": { "task": { "steps": [{ "group": [{ "agent": "c" }, { "agent": "j" }], "iterations": 3 }] } }"#;

/// Makes three tasks, a worker that writes a file with the name of its task, and a judge that approves.
fn place(more: &str) -> Place {
    let place = Place::new();
    place.config(&format!(r#"{{{more} "agents": {{ "j": {{ "command": "j", "role": "judge" }} }}, {CHAINS}}}"#));
    place.agent("c", "sh date +%N > work-$FORKHESTRA_TASK.txt").agent("j", "print VERDICT: approve");
    for title in ["One", "Two", "Three"] {
        place.run(&["task", "add", title]).code(0);
    }
    place
}

fn git(place: &Place, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(place.path("project")).args(["-c", "user.name=n", "-c", "user.email=a@b.c"]).args(words);
    let answer = git.output().unwrap();
    assert!(answer.status.success(), "{words:?}: {}", String::from_utf8_lossy(&answer.stderr));
    String::from_utf8_lossy(&answer.stdout).into_owned()
}

fn repository(place: &Place) {
    git(place, &["init", "-q"]);
    for (key, value) in [("user.name", "n"), ("user.email", "a@b.c")] {
        git(place, &["config", key, value]);
    }
    git(place, &["add", "-A"]);
    git(place, &["commit", "-q", "--allow-empty", "-m", "begin"]);
}

/// What refuses every task is said once, and nothing has run.
#[test]
fn a_queue_that_cannot_run_anything_says_why_once_and_is_refused() {
    let place = Place::new();
    for title in ["One", "Two", "Three"] {
        place.run(&["task", "add", title]).code(0);
    }
    let ran = place.run(&["task", "run", "--all"]);
    assert_eq!(ran.code(2).stderr.matches("agent/no-backend").count(), 2, "coder and reviewer: {}", ran.stderr);
    assert!(ran.stderr.ends_with("task 2\nrefused for the same reason; the other tasks wait\n"), "{}", ran.stderr);
    assert_eq!(place.run(&["task", "list"]).code(0).stdout.matches("pending").count(), 3);
}

#[test]
fn a_queue_ends_with_one_table_and_one_exit_code_that_says_the_worst() {
    let place = place("");
    place.agent("c", "sh date +%N > work\nprint It cannot be.\nprint VERDICT: dispute\nnext\nsh date +%N > work");
    let ran = place.run(&["task", "run", "--all"]);
    let table = ran.code(3).stderr.split("\n\n").last().unwrap();
    insta::assert_snapshot!(table, @r"
      task   title  status      attempts         tokens      cost   run
      1      One    disputed           1              -         -     1
      2      Two    completed          2              -         -     2
      3      Three  completed          2              -         -     3
    3 tasks: 1 disputed, 2 completed (5 attempts)
    ");
}

/// `--limit` holds for all tasks together, `--limit-each` for each of them.
#[test]
fn the_limits_of_a_queue_hold_for_all_of_it() {
    let place = place("");
    let ran = place.run(&["task", "run", "--all", "--limit", "attempts=3"]);
    assert!(ran.code(4).stderr.contains("the limit `attempts` of the queue was reached; the other tasks wait"));
    assert_eq!((place.calls("c"), place.calls("j")), (2, 1));
    let ran = place.run(&["task", "run", "--all", "--limit-each", "attempts=2", "--limit", "attempts=100"]);
    assert!(ran.code(0).stderr.contains("2 tasks: 2 completed"), "{}", ran.stderr);
}

#[test]
fn a_task_that_reaches_its_own_limit_stops_no_other_one() {
    let place = place("");
    let ran = place.run(&["task", "run", "--all", "--limit", "attempts=100", "--limit-each", "attempts=1"]);
    assert!(ran.code(4).stderr.contains("3 tasks: 3 review"), "{}", ran.stderr);
    // The limits of the config hold for each run, whatever holds for the whole queue.
    let place = self::place(r#""limits": {"attempts": 1},"#);
    let ran = place.run(&["task", "run", "--all", "--limit", "attempts=100"]);
    assert!(ran.code(4).stderr.contains("3 tasks: "), "{}", ran.stderr);
}

#[test]
fn a_queue_of_cost_stops_where_its_budget_is_used_up() {
    let place = Place::new();
    let result =
        r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":0.4,"usage":{"input_tokens":100}}"#;
    place.agent("claude", result);
    place.config(r#"{"agents": {"c": {"backend": "claude"}}, "chains": {"task": {"steps": [{"agent": "c"}]}}}"#);
    for title in ["One", "Two", "Three", "Four"] {
        place.run(&["task", "add", title]).code(0);
    }
    let ran = place.run(&["task", "run", "--all", "--limit", "cost=1"]);
    assert!(ran.code(4).stderr.contains("3 tasks: 3 completed (3 attempts, 300 tokens, $1.20)"), "{}", ran.stderr);
    assert!(place.call("claude", 3).contains("arg 0.2000\n"), "{}", place.call("claude", 3));
}

/// A signal that arrives when no agent is running, during the hook of the first task.
#[test]
fn a_signal_between_two_tasks_ends_a_queue() {
    let waits = r#""hooks": {"onTask": "touch \"$UP\"; while ! [ -e \"$GO\" ]; do sleep 0.01; done"},"#;
    let mut place = place(waits);
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.set("UP", &up.display().to_string());
    place.set("GO", &go.display().to_string());
    let queue = place.start(&["task", "run", "--all"]);
    place.wait_for(&up);
    queue.signal("INT");
    std::fs::write(&go, "").unwrap();
    let ran = queue.end();
    assert!(ran.code(130).stderr.contains("SIGINT received; the other tasks wait"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 task: 1 completed"), "{}", ran.stderr);
    assert_eq!(place.calls("c"), 1);
}

/// A place whose queue waits in the hook of each task until the file `GO` exists, and the file that says so.
fn between() -> (Place, std::path::PathBuf, std::path::PathBuf) {
    let mut place = place(r#""hooks": {"onTask": "touch \"$UP\"; while ! [ -e \"$GO\" ]; do sleep 0.01; done"},"#);
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.set("NO_COLOR", "1");
    place.set("UP", &up.display().to_string());
    place.set("GO", &go.display().to_string());
    (place, up, go)
}

#[test]
fn a_queue_between_two_tasks_is_at_work_and_keeps_its_place() {
    let (place, up, _) = between();
    let queue = place.start(&["task", "run", "--all"]);
    place.wait_for(&up);
    let (_, status) = place.beside(&["status"]);
    assert!(status.contains("run 1 task") && status.contains("  ended; the queue runs its hooks"), "{status}");
    let (code, other) = place.beside(&["c"]);
    assert!(code == Some(2) && other.contains("another run is working in"), "{other}");
    let (code, told) = place.beside(&["tell", "Use tabs."]);
    assert!(code == Some(2) && told.contains("run 1 has ended, and its queue has not begun the next"), "{told}");
    let (code, stopped) = place.beside(&["stop"]);
    assert!(code == Some(0) && stopped.contains("the queue has ended after run 1; next: forkhestra task run --all"));
    assert!(queue.end().code(143).stderr.contains("SIGTERM received; the other tasks wait"));
    place.assert_nothing_is_left();
}

#[test]
fn attach_between_two_tasks_follows_the_rest_of_the_queue_and_ends_with_its_worst_exit_code() {
    let (place, up, go) = between();
    place.agent("c", "sh date +%N > a\nnext\nprint It cannot be.\nprint VERDICT: dispute\nnext\nsh date +%N > c");
    let queue = place.start(&["task", "run", "--all"]);
    place.wait_for(&up);
    let mut attached = place.start(&["attach"]);
    let mut line = String::new();
    BufReader::new(attached.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "attached to the queue of run 1; Ctrl-C detaches, and the run continues\n");
    std::fs::write(&go, "").unwrap();
    let attached = attached.end();
    assert_eq!(queue.end().code, Some(3));
    let shown = &attached.code(3).stdout;
    assert!(!shown.contains("run 1") && shown.contains("It cannot be."), "{shown}");
    assert!(shown.contains("forkhestra report 3"), "the third run ended well: {shown}");
}

const REFUSED: &str = r#"print {"type":"result","result":"Invalid API key · Please run /login","is_error":true,"api_error_status":401}
exit 1"#;
const WORKED: &str =
    r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":0.4,"usage":{"input_tokens":100}}"#;

/// Makes two tasks for claude, and a hook that writes its input to a file.
fn logins(script: &str) -> Place {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_WAIT_MS", "50");
    let told = place.path("tmp/told");
    place.agent("claude", script);
    place.config(&format!(
        r#"{{"hooks": {{"onHuman": "cat >> {0}", "onTask": "cat > {0}-task"}}, "agents": {{"c": {{"backend": "claude"}}}},
            "chains": {{"task": {{"steps": [{{"agent": "c"}}]}}}}}}"#,
        told.display()
    ));
    place.run(&["task", "add", "One"]).code(0);
    place.run(&["task", "add", "Two"]).code(0);
    place
}

#[test]
fn a_login_that_expires_in_a_queue_wakes_somebody_and_is_waited_for() {
    let place = logins(&format!("{WORKED}\nnext\n{REFUSED}\nnext\n{REFUSED}\nnext\n{WORKED}"));
    let ran = place.run(&["task", "run", "--all"]);
    assert!(ran.code(0).stderr.contains("c: waiting for a login, 5 min 0 s"), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 tasks: 2 completed"), "{}", ran.stderr);
    let told = std::fs::read_to_string(place.path("tmp/told")).unwrap();
    assert_eq!(told.matches("\"reason\":\"login\"").count(), 1, "once in a row: {told}");
    let task = std::fs::read_to_string(place.path("tmp/told-task")).unwrap();
    assert!(task.contains("\"task\":\"2\"") && task.contains("\"taskStatus\":\"completed\""), "{task}");
}

#[test]
fn a_login_that_never_worked_stops_a_queue_at_its_first_task() {
    let place = logins(REFUSED);
    let ran = place.run(&["task", "run", "--all"]);
    assert!(ran.code(1).stderr.contains("what stopped this task would stop the others; they wait"), "{}", ran.stderr);
    assert_eq!(place.calls("claude"), 1);
    place.agent("claude", WORKED);
    place.run(&["resume"]).code(0);
}

#[test]
fn a_queue_that_is_stopped_still_says_the_worst() {
    let place = logins(&format!("{WORKED}\nnext\n{REFUSED}"));
    place.agent("claude", REFUSED);
    place.config(
        r#"{"agents": {"c": {"backend": "claude"}, "d": {"command": "d"}}, "chains": {"task": {"steps": [{"agent": "d"}, {"agent": "c"}]}}}"#,
    );
    place.agent("d", "print It cannot be.\nprint VERDICT: dispute\nnext\n# nothing");
    let ran = place.run(&["task", "run", "--all"]);
    assert!(ran.code(3).stderr.contains("what stopped this task would stop the others"), "{}", ran.stderr);
}

#[test]
fn a_login_that_nobody_renews_ends_a_queue_with_exit_code_3_and_the_run_can_go_on() {
    let place = logins(&format!("{WORKED}\nnext\n{REFUSED}"));
    let ran = place.run(&["task", "run", "--all", "--limit", "wait=12m"]);
    assert!(ran.code(3).stderr.contains("the login of c was refused; log in again"), "{}", ran.stderr);
    assert_eq!(place.calls("claude"), 1 + 3);
    place.agent("claude", WORKED);
    place.run(&["resume"]).code(0);
}

#[test]
fn a_hook_is_called_when_a_run_begins_to_wait_for_long() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_WAIT_MS", "50");
    let told = place.path("tmp/told");
    let limited = r#"print {"type":"result","result":"limit reached, try again in 2 hours","is_error":true,"api_error_status":429}"#;
    place.agent(
        "claude",
        &format!("{limited}\nexit 1\nnext\n{WORKED}\nsh while ! [ -s {} ]; do sleep 0.01; done", told.display()),
    );
    place.config(&format!(
        r#"{{"hooks": {{"onWait": "cat >> {}"}}, "agents": {{"c": {{"backend": "claude"}}}}, "chains": {{}}}}"#,
        told.display()
    ));
    place.run(&["c"]).code(0);
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.contains("\"reason\":\"usageLimit\"") && told.contains("\"waitMs\":7200000"), "{told}");
}

/// The judge of a task sees what was changed for it, and nothing that the previous task has left in the tree.
#[test]
fn each_task_is_judged_on_its_own_changes() {
    let place = Place::new();
    place.config(&format!(
        r#"{{ "agents": {{ "j": {{ "command": "j", "role": "judge", "template": "reviewer", "deliver": "stdin" }} }}, {CHAINS}}}"#
    ));
    place.agent("c", "sh date +%N > work-$FORKHESTRA_TASK.txt").agent("j", "print VERDICT: approve");
    repository(&place);
    place.run(&["task", "add", "One"]).code(0);
    place.run(&["task", "add", "Two"]).code(0);
    let ran = place.run(&["task", "run", "--all"]);
    let told = String::from_utf8(place.stdin_of("j", 2)).unwrap();
    assert!(told.contains("work-2.txt") && !told.contains("work-1.txt"), "{told}");
    assert!(
        ran.code(0).stderr.contains(
            "1 file had uncommitted changes when this work began; those changes are not part of it: work-1.txt"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_completed_task_is_committed_where_the_config_says_so_and_nothing_else_is() {
    let place = place(r#""commit": "task","#);
    place.agent("c", "sh date +%N > work-$FORKHESTRA_TASK.txt; rm -f old");
    place.write("mine.txt", "mine").write("old", "old");
    repository(&place);
    place.write("mine.txt", "changed by me").write("new by me.txt", "x");
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(0).stderr.contains("committed 2 files of task 1 as "), "{}", ran.stderr);
    assert_eq!(
        git(&place, &["log", "-1", "--format=%s%n%b", "--name-status"]).trim(),
        "task 1: One\nCompleted in run 1 of forkhestra.\n\n\nD\told\nA\twork-1.txt"
    );
    let status = git(&place, &["status", "--porcelain"]);
    assert_eq!(status, " M mine.txt\n?? \"new by me.txt\"\n");
    place.agent("j", "print - a: wrong\nprint VERDICT: reject");
    place.run(&["task", "run"]).code(3);
    assert_eq!(git(&place, &["log", "--format=%s"]).lines().next(), Some("task 1: One"), "a rejected task is not");
}

/// A hook of the user refuses the commit. This is reported, and does not change the outcome of the run.
#[test]
fn a_commit_that_is_refused_is_said() {
    let place = place(r#""commit": "task","#);
    repository(&place);
    place.write(".git/hooks/pre-commit", "#!/bin/sh\necho no tabs, please >&2\nexit 1\n");
    std::fs::set_permissions(place.work(".git/hooks/pre-commit"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let ran = place.run(&["task", "run"]);
    assert!(
        ran.code(0).stderr.contains("! task 1 is completed, but was not committed: no tabs, please"),
        "{}",
        ran.stderr
    );
}

/// Task 1 is interrupted, task 2 is completed, and the judge of task 1 sees only the changes of task 1.
#[test]
fn a_task_that_goes_on_after_another_one_is_judged_on_its_own_changes() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_STILL_CLOCK", "0");
    place.config(&format!(
        r#"{{ "agents": {{ "j": {{ "command": "j", "role": "judge", "template": "reviewer", "deliver": "stdin" }} }}, {CHAINS}}}"#
    ));
    place.agent("c", "sh date +%N > work-$FORKHESTRA_TASK.txt; rm -f old-$FORKHESTRA_TASK");
    place.agent("j", "exit 3\nnext\nexit 3\nnext\nexit 3\nnext\nexit 3\nnext\nprint VERDICT: approve");
    place.write("old-1", "x").write("old-2", "x");
    repository(&place);
    place.run(&["task", "add", "One"]).code(0);
    place.run(&["task", "add", "Two"]).code(0);
    let first = place.run(&["task", "run", "1"]);
    assert_ne!(first.code, Some(0), "{}", first.stderr);
    place.agent("j", "print VERDICT: approve");
    place.run(&["task", "run", "2"]).code(0);
    let before = place.calls("j");
    place.run(&["resume", "1"]).code(0);
    let told = String::from_utf8(place.stdin_of("j", u32::try_from(before).unwrap() + 1)).unwrap();
    assert!(told.contains("work-1.txt") && told.contains("old-1"), "{told}");
    assert!(!told.contains("work-2.txt") && !told.contains("old-2"), "{told}");
}

/// The commit of a task excludes changes by others: another task, a person before the run, a person during the run.
#[test]
fn a_commit_of_a_task_holds_only_what_its_own_runs_have_changed() {
    let mut place = place(r#""commit": "task","#);
    place.set("FORKHESTRA_TEST_STILL_CLOCK", "0");
    place.agent("c", "sh date +%N > work-$FORKHESTRA_TASK; date +%N >> mine.txt");
    place.write("mine.txt", "mine");
    repository(&place);
    place.write("mine.txt", "changed by me");
    place.agent("j", "exit 3");
    assert_ne!(place.run(&["task", "run", "1"]).code, Some(0));
    place.agent("c", "sh date +%N > work-$FORKHESTRA_TASK");
    assert_ne!(place.run(&["task", "run", "2"]).code, Some(0));
    place.agent("j", "print VERDICT: approve");
    let ran = place.run(&["resume", "1"]);
    assert!(ran.code(0).stderr.contains("committed 1 file of task 1 as "), "{}", ran.stderr);
    assert!(ran.stderr.contains("! left out, changed before the work began: mine.txt"), "{}", ran.stderr);
    assert_eq!(git(&place, &["show", "--format=", "--name-only", "HEAD"]), "work-1\n");
}

#[test]
fn a_task_without_a_judge_is_committed_too() {
    let place = Place::new();
    place.config(r#"{"commit": "task", "agents": {}, "chains": {"task": {"steps": [{"agent": "c"}]}}}"#);
    place.agent("c", "sh date +%N > work");
    repository(&place);
    place.run(&["task", "add", "One"]).code(0);
    assert!(place.run(&["task", "run"]).code(0).stderr.contains("committed 1 file of task 1 as "));
}
