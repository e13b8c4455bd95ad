//! Tasks: added, worked on by runs, decided by people.

use crate::support::Place;

const CONFIG: &str = r#"{
  "agents": { "j": { "command": "j", "role": "judge" } },
  "checks": { "t": { "run": "sh check.sh" } },
  "chains": { "task": { "steps": [{ "group": [{ "agent": "c" }, { "check": "t" }, { "agent": "j" }], "iterations": 15 }] } }
}"#;

const WORKS: &str = "sh date +%N >> work.txt";

fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG).write("check.sh", "exit 0\n").agent("c", WORKS).agent("j", "print VERDICT: approve");
    place
}

#[test]
fn a_task_is_added_worked_on_and_completed() {
    let place = place();
    place.write("docs/login.md", "Users log in.\n");
    place.run(&["task", "add", "Log in", "--spec", "docs/login.md", "--tests", "cargo test login"]).code(0);
    place.run(&["task", "add", "Log out", "--after", "1"]).code(0);
    insta::assert_snapshot!("task_list_before", place.run(&["task", "list"]).code(0).stdout);
    place.agent(
        "j",
        "print - a.rs:1: no test\nprint VERDICT: reject\nnext\nprint - minor: a.rs:2: a name\nprint VERDICT: approve",
    );
    insta::assert_snapshot!("task_run", place.run(&["task", "run"]).code(0).stderr);
    insta::assert_snapshot!("dispute_minor", place.run(&["dispute", "list"]).code(0).stdout);
    insta::assert_snapshot!("task_show", place.run(&["task", "show", "1"]).code(0).stdout);
    let told = place.call("c", 1);
    assert!(
        told.contains(
            "Log in\n\nThe specification is in `docs/login.md`.\n\nEvidence that it is done: cargo test login"
        ),
        "{told}"
    );
    assert!(told.contains("FORKHESTRA_TASK=1"), "{told}");
    let again = place.run(&["task", "run", "1"]);
    assert!(again.code(2).words().contains("task 1 is completed: there is nothing left to run"), "{}", again.stderr);
}

#[test]
fn all_tasks_are_worked_on_in_their_order_and_one_that_needs_a_human_holds_only_what_waits_for_it() {
    let place = place();
    for (title, more) in [("one", &[][..]), ("two", &["--after", "1"]), ("three", &[]), ("four", &["--after", "3"])] {
        place.run(&[&["task", "add", title], more].concat()).code(0);
    }
    place.agent(
        "c",
        "sh date +%N >> work.txt\nprint It cannot be.\nprint VERDICT: dispute\nnext\nsh date +%N >> work.txt",
    );
    let ran = place.run(&["task", "run", "--all"]);
    ran.code(3);
    insta::assert_snapshot!("task_list_after_all", place.run(&["task", "list"]).code(0).stdout);
    insta::assert_snapshot!("dispute_list", place.run(&["dispute", "list"]).code(0).stdout);
    // Resolved in favor of the worker, and only once.
    place.run(&["dispute", "resolve", "1", "coder", "--notes", "it is right"]).code(0);
    let twice = place.run(&["dispute", "resolve", "1", "reviewer"]);
    assert!(twice.code(2).words().contains("dispute 1 is already resolved"), "{}", twice.stderr);
    place.run(&["task", "run", "--all"]).code(0);
    assert_eq!(place.run(&["task", "list"]).code(0).stdout.matches("completed").count(), 4);
}

#[test]
fn the_fifteenth_reject_fails_the_task_and_opens_a_dispute_with_its_history() {
    let place = place();
    place.run(&["task", "add", "Hard"]).code(0);
    place.agent("j", "print - a.rs:1: wrong\nprint VERDICT: reject");
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(3).stderr.contains("j rejected the work 15 times, and no rounds are left"), "{}", ran.stderr);
    let told = place.run(&["dispute", "show", "1"]);
    assert!(
        told.code(0).stdout.contains("Exceeded 15 rejections without resolution\n\n1. j: wrong\n2. j: wrong"),
        "{}",
        told.stdout
    );
    assert!(place.run(&["task", "list"]).code(0).stdout.contains("failed"));
    // A human resets it.
    place.run(&["task", "reset", "1"]).code(0);
    place.agent("j", "print VERDICT: approve");
    place.run(&["task", "run", "1"]).code(0);
    assert!(place.run(&["dispute", "list"]).code(0).stdout.contains("resolved: custom"));
}

/// Whatever an agent says, forkhestra runs the check itself. A failed check is not a rejection.
#[test]
fn a_failed_check_sends_the_work_back_and_is_no_rejection() {
    let place = place();
    place.run(&["task", "add", "Build it"]).code(0);
    place.agent("c", "sh date +%N >> work.txt\nprint All tests pass!\nnext\nsh echo exit 0 > check.sh");
    place.write("check.sh", "echo 'a.rs:1: broken'; exit 1\n");
    place.run(&["task", "run"]).code(0);
    assert_eq!(place.calls("j"), 1, "the judge is paid once");
    let shown = place.run(&["task", "show", "1"]);
    assert!(
        shown.code(0).stdout.contains("review → in_progress  by forkhestra, run 1: `t` failed"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("rejections 0\n"), "{}", shown.stdout);
}

/// A crash, then a resume through the task.
#[test]
fn a_task_that_was_cut_off_goes_on_and_one_in_review_is_judged_first() {
    let place = place();
    place.run(&["task", "add", "Long"]).code(0);
    let up = place.path("tmp/up");
    place.agent("c", &format!("hang {}\nnext\n{WORKS}", up.display()));
    let running = place.start(&["task", "run"]);
    place.wait_for(&up);
    let busy = place.command(&["task", "approve", "1"]).output().unwrap();
    assert!(String::from_utf8_lossy(&busy.stderr).contains("run 1 is working on task 1"));
    assert_eq!(running.end_by("KILL").code, None);
    assert!(place.run(&["task", "list"]).code(0).stdout.contains("in_progress"));
    place.agent("j", "print hm");
    place.run(&["task", "run", "1"]).code(3);
    assert!(place.run(&["task", "list"]).code(0).stdout.contains("review"));
    place.agent("j", "print VERDICT: approve");
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(0).stderr.contains("c: skipped, its work already exists and is judged first"), "{}", ran.stderr);
    assert_eq!(place.calls("c"), 2);
}

/// A container hides the process of a run from the outside, but not its lock.
#[test]
fn a_person_does_not_decide_while_a_run_that_is_not_seen_works() {
    let place = place();
    place.agent("j", "print - a.rs:1: wrong\nprint VERDICT: reject");
    place.run(&["task", "add", "One"]).code(0);
    place.run(&["task", "run"]).code(3);
    let lock = std::fs::File::open(place.work(".forkhestra/lock")).unwrap();
    lock.lock().unwrap();
    let busy = place.run(&["task", "reject", "1", "--notes", "Again."]);
    assert!(busy.code(2).words().contains("run 1 is working on task 1"), "{}", busy.stderr);
    lock.unlock().unwrap();
    place.run(&["task", "reject", "1", "--notes", "Again."]).code(0);
}

/// Everything that is refused before anything happens.
#[test]
fn what_makes_no_sense_is_refused() {
    let place = place();
    place.write("../outside.md", "x");
    place.run(&["task", "add", "One"]).code(0);
    for (words, expected) in [
        (&["task", "add", "x", "--id", "a/b"][..], "`a/b` cannot be the ID of a task"),
        (&["task", "add", "x", "--id", "1"], "there is already a task `1`"),
        (&["task", "add", " "], "a title must be one line"),
        (&["task", "add", "x", "--spec", "none.md"], "is not a readable file"),
        (&["task", "add", "x", "--spec", "../outside.md"], "is outside the project"),
        (&["task", "add", "x", "--after", "9"], "there is no task `9`"),
        (&["task", "show", "9"], "there is no task `9`"),
        (&["task", "run", "9"], "there is no task `9`"),
        (&["task", "reject", "1"], "a rejection must say what has to be fixed"),
        (&["task", "reset", "1"], "task 1 is already pending"),
        (&["task", "run", "1", "2"], "name one task, or use --all"),
        (&["dispute", "show", "3"], "there is no dispute 3"),
        (&["dispute", "--reason", "x"], "is only for an agent that forkhestra runs"),
        (&["c", "--task", "9"], "there is no task `9`"),
    ] {
        let ran = place.run(words);
        assert!(ran.code(2).words().contains(expected), "{words:?}: {}", ran.stderr);
    }
    place.run(&["task", "add", "Two", "--after", "1"]).code(0);
    assert!(place.run(&["task", "run", "2"]).code(2).words().contains("task 2 waits for: 1"));
    place.run(&["task", "delete", "1"]).code(0);
    place.run(&["task", "approve", "2"]).code(0);
    assert!(place.run(&["task", "run"]).code(2).words().contains("there is no task that can be worked on"));
}

#[test]
fn a_planner_proposes_tasks_and_any_chain_can_have_a_task() {
    let place = place();
    place.agent(
        "p",
        "print Here is the plan:\nprint {\"tasks\": [{\"title\": \"First\", \"needs\": {\"tests\": \"make test\"}}, {\"title\": \"Second\", \"after\": [\"First\"]}]}",
    );
    let ran = place.run(&["p", "-p", "Plan."]);
    assert!(ran.code(0).stderr.contains("2 tasks proposed"), "{}", ran.stderr);
    place.run(&["p", "-p", "Plan."]).code(0);
    let told: serde_json::Value = serde_json::from_str(&place.run(&["task", "list", "--json"]).code(0).stdout).unwrap();
    assert_eq!(told.as_array().unwrap().len(), 2, "the same plan twice is one");
    assert_eq!(told[1]["after"][0], "1");
    assert_eq!(told[0]["tests"], "proposed: make test");
    place.run(&["c", "--task", "1", "-p", "Other words."]).code(0);
    assert!(place.call("c", 1).contains("Other words."));
    assert!(place.run(&["task", "list"]).code(0).stdout.contains("completed"));
}

/// `fix` and `task` start with the project's own errors.
#[test]
fn what_is_wrong_is_found_first_unless_the_work_is_tiny() {
    let place = Place::new();
    place.write("Makefile", "build:\n\t@echo 'a.c:1:2: error: broken'; exit 1\ntest:\n\ttrue\n");
    let plan = |words: &[&str]| {
        let shown = place.run(&[&["run", "diagnose", "--dry-run"], words].concat());
        shown.code(0).stdout.lines().find(|line| line.starts_with("1. diagnose")).unwrap_or_default().to_string()
    };
    assert!(plan(&["-p", "Add a button"]).contains("optional check"));
    assert!(plan(&["-p", "Fix a typo"]).contains("skipped: the work is tiny"));
    assert!(plan(&["-p", "Fix a typo", "--scope", "normal"]).contains("optional check"));
    assert!(plan(&["-p", "Fix a typo", "--profile", "strict"]).contains("optional check"));
    let strict = place.run(&["verify", "--profile", "strict"]);
    assert!(
        strict.code(2).words().contains("requires checks that this project does not have: lint"),
        "{}",
        strict.stderr
    );
}

/// Returns the transitions of the task, without their times.
fn transitions(place: &Place) -> Vec<String> {
    let told = place.run(&["task", "show", "1", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told.code(0).stdout).unwrap();
    let rows = told["audit"].as_array().unwrap().iter();
    rows.map(|row| format!("{} {} {}", row["from"], row["to"], row["actor"])).collect()
}

/// The process dies after the k-th write to the journal, for every k. The flow then continues to the same end.
#[test]
fn a_flow_that_dies_after_any_write_goes_on_to_the_same_end() {
    let flow = || {
        let place = place();
        place.agent("c", "sh echo $FORKHESTRA_ROUND > work.txt");
        place.write("check.sh", "grep -q 1 work.txt && echo 'work.txt:1: one' && exit 1; exit 0\n");
        place.agent("j", "sh [ $FORKHESTRA_ROUND = 3 ] && echo VERDICT: approve || printf -- '- work.txt:1: two\\nVERDICT: reject\\n'");
        place.run(&["task", "add", "Three rounds"]).code(0);
        place
    };
    let whole = flow();
    whole.run(&["-q", "task", "run"]).code(0);
    let expected = transitions(&whole);
    assert_eq!(expected.len(), 7, "{expected:?}");
    let mut writes = 0;
    loop {
        writes += 1;
        let place = flow();
        let mut command = place.command(&["-q", "task", "run"]);
        let died = command.env("FORKHESTRA_TEST_ABORT_AFTER_WRITES", writes.to_string()).status().unwrap();
        place.assert_nothing_is_left();
        if died.code() == Some(0) {
            break;
        }
        let ran = place.run(&["-q", "resume"]);
        let over =
            ran.code == Some(2) && ran.words().contains("run 1 has ended") || ran.words().contains("no run to resume");
        assert!(ran.code == Some(0) || over, "after {writes} writes: {}", ran.all());
        assert_eq!(transitions(&place), expected, "after {writes} writes");
    }
    assert!(writes > 15, "{writes}");
}

#[test]
fn a_diagnosis_of_the_same_tree_is_not_made_twice() {
    let mut place = Place::new();
    place.write("Makefile", "build:\n\t@echo 'a.c:1:2: error: broken'; exit 1\n");
    // An agent of a run may get a stored diagnosis. A person always gets a new one.
    let result = place.path("tmp/result.json");
    place.set("FORKHESTRA_TOKEN", "x");
    place.set("FORKHESTRA_RESULT", result.to_str().unwrap());
    assert!(place.run(&["diagnose"]).code(1).stdout.contains("broken"));
    let again = place.run(&["diagnose"]);
    assert!(again.code(1).stdout.contains("already executed on this tree"), "{}", again.all());
    let told: serde_json::Value = serde_json::from_str(&place.run(&["diagnose", "--json"]).code(1).stdout).unwrap();
    assert_eq!(told["kind"], "already_executed");
    assert!(
        place.run(&["diagnose", "--kind", "build"]).code(1).stdout.contains("broken"),
        "one that is asked for is run"
    );
    assert!(place.run(&["diagnose", "--force"]).code(1).stdout.contains("broken"));
    place.write("a.c", "int a;\n");
    assert!(place.run(&["diagnose"]).code(1).stdout.contains("broken"), "another tree");
}

/// A judge of a later run sees everything that was done for the task, not only the work of its own run.
#[test]
fn changes_are_shown_since_the_task_was_begun_and_errors_are_counted_from_round_to_round() {
    let place = Place::new();
    let git = |words: &str| {
        let line = format!("git -c user.name=x -c user.email=x@x {words}");
        assert!(
            std::process::Command::new("sh")
                .args(["-c", &line])
                .current_dir(place.work(""))
                .status()
                .unwrap()
                .success()
        );
    };
    place.config(&CONFIG.replace("\"command\": \"j\"", "\"command\": \"j\", \"deliver\": \"stdin\""));
    place
        .write("check.sh", "sh ./errors.sh")
        .write("errors.sh", "echo a.c:1:1: error: one; echo a.c:2:1: error: two; exit 1\n");
    place.write("forge/agents/j/prompt.md", "{{git_diff_output}}\n").write(".gitignore", "errors.sh\n");
    git("init -q && git add . && git -c user.name=x -c user.email=x@x commit -qm first");
    place.run(&["task", "add", "Long"]).code(0);
    place.agent(
        "c",
        "sh echo 'first run' > one.txt; git add one.txt; git -c user.name=x -c user.email=x@x commit -qm one\n\
         sh printf 'echo a.c:2:1: error: two; echo a.c:3:1: error: three; exit 1' > errors.sh; date +%N > n.txt\nnext\nsh date +%N > n.txt; printf 'exit 0' > errors.sh",
    );
    place.agent("j", "print VERDICT: dispute\nprint no\nnext\nprint VERDICT: approve");
    place.write("errors.sh", "echo a.c:1:1: error: one; echo a.c:2:1: error: two; exit 1\n");
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(3).stderr.contains("done, 0.0 s, errors: 2 fixed, 0 new, 0 same"), "{}", ran.stderr);
    place.run(&["dispute", "resolve", "1", "reviewer"]).code(0);
    place.run(&["task", "run", "1"]).code(0);
    assert!(String::from_utf8(place.stdin_of("j", 2)).unwrap().contains("+first run"), "what the first run committed");
}

/// A run resumes its task only if the status of the task has not been changed since.
#[test]
fn a_resume_looks_at_its_task_and_a_human_is_heard() {
    let place = place();
    let cut = |words: &[&str]| {
        place.agent("c", "hang ../tmp/up");
        let _ = std::fs::remove_file(place.path("tmp/up"));
        let running = place.start(words);
        place.wait_for(&place.path("tmp/up"));
        assert_eq!(running.end_by("KILL").code, None);
        place.assert_nothing_is_left();
        place.agent("c", WORKS);
    };
    place.run(&["task", "add", "One"]).code(0);
    cut(&["task", "run", "1"]);
    place.run(&["task", "approve", "1"]).code(0);
    assert!(place.run(&["resume", "1"]).code(2).words().contains("task 1 is completed"));
    place.run(&["task", "reset", "1"]).code(0);
    assert!(place.run(&["resume", "1"]).code(2).words().contains("task 1 has been changed since run 1 (by: human)"));
    place.run(&["task", "delete", "1"]).code(0);
    place.run(&["task", "add", "Another"]).code(0);
    assert!(place.run(&["resume", "1"]).code(2).words().contains("there is no task `1`"), "names are not given twice");
    // What a human says about a dispute reaches the worker, without any mention of a crash.
    place.agent("c", "print VERDICT: dispute\nnext\nsh date +%N >> work.txt");
    place.run(&["task", "run", "2"]).code(3);
    let silent = place.run(&["dispute", "resolve", "1", "custom", "--notes", " "]);
    assert!(silent.code(2).stderr.contains("dispute/no-notes"), "{}", silent.stderr);
    place.run(&["dispute", "resolve", "1", "custom", "--notes", "USE THE SECOND READING"]).code(0);
    place.run(&["task", "run", "2"]).code(0);
    assert!(
        place
            .call("c", u32::try_from(place.calls("c")).unwrap())
            .contains("A human resolved it as custom: USE THE SECOND READING")
    );
    assert!(place.call("j", 1).contains("USE THE SECOND READING"), "the judge learns of it, too");
    // A note that an approval left does not change the task when it is resolved.
    place.run(&["task", "add", "Third"]).code(0);
    place.agent("j", "print - minor: a.rs:1: a name\nprint VERDICT: approve");
    place.run(&["task", "run", "3"]).code(0);
    place.run(&["dispute", "resolve", "2", "reviewer"]).code(0);
    assert!(place.run(&["task", "show", "3"]).code(0).stdout.contains("completed"));
}

#[test]
fn a_run_that_was_cut_off_before_it_moved_its_task_goes_on() {
    let place = place();
    place.run(&["task", "add", "One"]).code(0);
    let up = place.path("tmp/up");
    place.agent("c", &format!("hang {}\nnext\nhang {}\nnext\n{WORKS}", up.display(), up.display()));
    for _ in 0..2 {
        let _ = std::fs::remove_file(&up);
        let running = place.start(&["task", "run", "1"]);
        place.wait_for(&up);
        assert_eq!(running.end_by("KILL").code, None);
        place.assert_nothing_is_left();
    }
    place.run(&["resume", "2"]).code(0);
}

/// A profile sets a budget only if it is given on the command line.
#[test]
fn a_profile_that_is_asked_for_holds_workers_to_its_budget() {
    let place = Place::new();
    place.agent("claude", "print x");
    let plan = |words: &[&str]| place.run(&[&["coder -> reviewer", "-p", "x", "--dry-run", "--json"], words].concat());
    let told: serde_json::Value = serde_json::from_str(&plan(&["--profile", "smoke"]).code(0).stdout).unwrap();
    let args = |step: usize| told["steps"][step]["args"].to_string();
    assert!(args(0).contains("\"--max-turns\",\"6\"") || args(0).contains("--max-turns=6"), "{}", args(0));
    assert!(args(0).contains("at most 3 commands, 1 of them a run of the tests, and install nothing"), "{}", args(0));
    assert!(!args(1).contains("Your budget"));
    assert!(!plan(&[]).code(0).stdout.contains("Your budget"));
}

/// A task that cannot be worked on is reported, and does not block other tasks.
#[test]
fn a_task_whose_specification_is_gone_is_named_and_the_others_go_on() {
    let place = place();
    place.write("s.md", "x\n");
    place.run(&["task", "add", "One", "--spec", "s.md"]).code(0);
    place.run(&["task", "add", "Two"]).code(0);
    std::fs::remove_file(place.work("s.md")).unwrap();
    let ran = place.run(&["task", "run", "--all"]);
    assert!(ran.code(1).words().contains("the specification of task 1, s.md, is no longer a file"), "{}", ran.stderr);
    assert!(place.run(&["task", "show", "2"]).code(0).stdout.contains("completed"));
}

#[test]
fn a_status_or_a_dispute_that_this_version_does_not_know_is_an_error_and_never_another() {
    let place = Place::new();
    place.run(&["task", "add", "T"]).code(0);
    place.run(&["task", "skip", "1"]).code(0);
    place.sql("UPDATE audit SET to_status = 'paused' WHERE to_status = 'skipped'");
    let ran = place.run(&["task", "show", "1"]);
    assert!(ran.code(2).words().contains("unknown value `paused`"), "{}", ran.all());
}
