//! `task run --jobs N`: several tasks at once, each in a workspace of its own, landed by a queue that verifies.

use crate::support::{Place, git};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

pub(crate) const CHAINS: &str = r#"
    "agents": { "worker": { "command": "worker", "deliver": "stdin" } },
    "checks": { "check": { "run": "sh check.sh" } },
    "chains": { "task": { "steps": [{ "agent": "worker" }, { "check": "check" }] } }"#;

/// Makes a repository with a config, a check and some tasks. The worker writes a file with the name of its task.
pub(crate) fn place(tasks: u32, worker: &str, check: &str) -> Place {
    let place = Place::new();
    place
        .config(&format!("{{{CHAINS}}}"))
        .write("check.sh", check)
        .write("shared.txt", "base\n")
        .agent("worker", worker);
    git(&place, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "n"), ("user.email", "a@b.c")] {
        git(&place, &["config", key, value]);
    }
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "begin"]);
    for task in 1..=tasks {
        place.run(&["task", "add", &format!("Task {task}")]).code(0);
    }
    place
}

#[test]
fn events_have_the_unit_of_their_run_and_json_says_where_each_task_has_landed() {
    let place = place(2, WRITES, "ls file-*.txt > /dev/null");
    let events = place.run(&["task", "run", "-j", "2", "1", "--events", "ndjson"]).code(0).stdout.clone();
    let events: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_task: Vec<_> = events.iter().filter(|event| event["unit"] == "1-1-1").collect();
    assert!(of_task.iter().all(|event| event["run"] == 2) && of_task.len() > 5, "{events:?}");
    assert!(events.iter().any(|event| event["event"]["event"]["type"] == "landed"), "{events:?}");
    let json = place.run(&["task", "run", "-j", "2", "--json"]).code(0).stdout.clone();
    crate::answers::check("batch", &json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["tasks"][0]["commit"], json["line"]);
    crate::answers::check("landed", &place.run(&["task", "land", "--json"]).code(0).stdout);
    crate::answers::check("advanced", &place.run(&["task", "land", "--into", "main", "--json"]).code(0).stdout);
}

pub(crate) const WRITES: &str = "sh echo work > file-$FORKHESTRA_TASK.txt";

/// Asks git about the hub.
pub(crate) fn hub(place: &Place, words: &[&str]) -> String {
    let hub = place.work(".forkhestra/hub.git").display().to_string();
    git(place, &[&["--git-dir", &hub], words].concat()).trim_end().to_string()
}

/// Every file below `.git`, with its size, time and content.
fn fingerprint(folder: &Path, found: &mut Vec<(String, u64, i64, i64, Vec<u8>)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let facts = path.symlink_metadata().unwrap();
        let bytes = if facts.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.push((path.display().to_string(), facts.len(), facts.mtime(), facts.mtime_nsec(), bytes));
        if facts.is_dir() {
            fingerprint(&path, found);
        }
    }
}

pub(crate) fn user_git(place: &Place) -> Vec<(String, u64, i64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    fingerprint(&place.work(".git"), &mut found);
    found
}

/// Checks what holds for every line: it is linear along first parents, and each commit on it passes the check.
pub(crate) fn assert_line_is_green(place: &Place) {
    let commits = hub(place, &["rev-list", "--first-parent", "forkhestra/line", "^main"]);
    for commit in commits.lines() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().display().to_string();
        hub(place, &["--work-tree", &folder, "checkout", "-q", "-f", commit, "--", "."]);
        let check = std::process::Command::new("sh").arg("check.sh").current_dir(tree.path()).output().unwrap();
        assert!(check.status.success(), "{commit} is on the line and fails its check");
    }
}

#[test]
fn tasks_run_at_once_and_land_verified_and_the_users_repository_is_not_changed() {
    let place = place(4, WRITES, "ls file-*.txt > /dev/null");
    let before = user_git(&place);
    let ran = place.run(&["task", "run", "--jobs", "3"]);
    let words = ran.code(0).words();
    assert!(words.starts_with("● batch 1 begins: 4 tasks, 3 lanes, verified by check"), "{words}");
    let changed = place.run(&["diff", "1", "--stat"]).code(0).stdout.clone();
    assert!((1..=4).all(|task| changed.contains(&format!("file-{task}.txt"))), "{changed}");
    assert!(words.contains("4 of 4 tasks landed (") && words.ends_with("next: forkhestra task land --into main"));
    assert!(before == user_git(&place), "the user's .git has changed");
    assert_eq!(git(&place, &["status", "--porcelain"]), "");
    assert_line_is_green(&place);
    let landed = hub(&place, &["ls-tree", "--name-only", "forkhestra/line"]);
    for task in 1..=4 {
        assert!(landed.contains(&format!("file-{task}.txt")), "{landed}");
        assert!(place.run(&["task", "show", &task.to_string()]).stdout.contains("completed"));
    }
}

#[test]
fn task_land_shows_what_has_landed_and_advances_a_branch_only_by_a_fast_forward() {
    let place = place(1, WRITES, "ls file-*.txt > /dev/null");
    assert!(place.run(&["task", "land"]).code(2).stderr.contains("land/nothing"));
    place.run(&["task", "run", "-j", "2"]).code(0);
    assert!(place.run(&["task", "land"]).code(0).stdout.contains("Task 1\n\n1 commit landed."));
    assert!(place.run(&["task", "land", "--into", "mian"]).code(2).stderr.contains("land/branch"));
    place.write("shared.txt", "mine\n");
    assert!(place.run(&["task", "land", "--into", "main"]).code(2).stderr.contains("land/uncommitted"));
    git(&place, &["checkout", "-q", "--", "shared.txt"]);
    git(&place, &["branch", "other"]);
    let told = place.path("tmp/hooks");
    for hook in
        ["pre-push", "pre-receive", "update", "post-receive", "post-update", "reference-transaction", "post-merge"]
    {
        let path = format!(".git/hooks/{hook}");
        place.write(&path, format!("#!/bin/sh\necho {hook} >> '{}'\n", told.display()));
        fs::set_permissions(place.work(&path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let ran = place.run(&["task", "land", "--into", "other"]);
    assert!(ran.code(0).stdout.starts_with("other is now at "), "{}", ran.stdout);
    let new = git(&place, &["rev-list", "--count", "main..other"]);
    assert!(ran.stdout.contains(&format!("({} new commit", new.trim())), "{}", ran.stdout);
    assert!(!place.work("file-1.txt").exists(), "another branch is checked out");
    assert_eq!(fs::read_to_string(&told).unwrap_or_default(), "", "no hook of the repository runs");
    let elsewhere = place.path("tmp/elsewhere").display().to_string();
    git(&place, &["-c", "core.hooksPath=", "worktree", "add", "-q", "-b", "third", &elsewhere]);
    let ran = place.run(&["task", "land", "--into", "third"]);
    assert!(ran.code(2).stderr.contains("checked out"), "{}", ran.stderr);
    assert_eq!(git(&place, &["rev-parse", "third"]), git(&place, &["rev-parse", "main"]));
    assert!(place.run(&["task", "land", "--into", "main"]).code(0).stdout.starts_with("main is now "));
    assert_eq!(fs::read_to_string(&told).unwrap_or_default(), "", "no hook of the repository runs");
    fs::remove_dir_all(place.work(".git/hooks")).unwrap();
    assert_eq!(place.read("file-1.txt"), "work\n");
    assert_eq!(place.run(&["task", "land", "--into", "main"]).code(0).stdout, "main has everything that has landed.\n");
    git(&place, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    place.run(&["task", "add", "Another"]).code(0);
    place.run(&["task", "run", "-j", "2"]).code(0);
    git(&place, &["commit", "-q", "--allow-empty", "--amend", "-m", "apart"]);
    assert!(place.run(&["task", "land", "--into", "main"]).code(2).stderr.contains("land/apart"));
    place.run(&["task", "add", "Third"]).code(0);
    assert!(place.run(&["task", "run", "-j", "2"]).code(2).stderr.contains("batch/apart"));
}

#[test]
fn tasks_that_conflict_land_one_after_the_other_and_the_second_is_told_of_both_sides() {
    let resolves = "if grep -q '<<<<' shared.txt; then sed -i '/^[<=>]\\{7\\}/d' shared.txt; \
                    else echo line of $FORKHESTRA_TASK > shared.txt; fi";
    let place = place(2, &format!("sh {resolves}"), "! grep -q '<<<<' shared.txt");
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(0).stderr.contains("goes back: conflicts in shared.txt with what has landed"), "{}", ran.stderr);
    let text = hub(&place, &["show", "forkhestra/line:shared.txt"]);
    assert!(text.contains("line of 1") && text.contains("line of 2"), "{text}");
    let prompt = String::from_utf8(place.stdin_of("worker", 3)).unwrap();
    for words in ["Earlier notes on this task", "<<<<<<<", "line of 1", "line of 2", "shared.txt:1:"] {
        assert!(prompt.contains(words), "{words} is missing: {prompt}");
    }
    assert_line_is_green(&place);
    let shown = place.run(&["task", "list"]).stdout;
    assert_eq!(shown.matches("completed").count(), 2, "{shown}");
}

/// Each is green alone, and both together are red.
#[test]
fn tasks_that_fail_only_together_are_split_and_the_guilty_one_goes_back_with_the_errors() {
    let work = "if [ $(ls r 2>/dev/null | wc -l) -gt 1 ]; then rm r/$FORKHESTRA_TASK; touch ok; \
                else mkdir -p r; touch r/$FORKHESTRA_TASK; fi";
    let check = "[ $(ls r 2>/dev/null | wc -l) -lt 2 ] || { echo 'error: two rivals in r'; exit 1; }";
    let place = place(2, &format!("sh {work}"), check);
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(0).stderr.contains("goes back: fails `check` together with what has landed"), "{}", ran.stderr);
    let prompt = String::from_utf8(place.stdin_of("worker", 3)).unwrap();
    assert!(prompt.contains("two rivals in r"), "{prompt}");
    assert_line_is_green(&place);
}

#[test]
fn a_batch_is_refused_with_all_errors_at_once_before_anything_starts() {
    let place = Place::new();
    place.config(r#"{ "agents": { "worker": { "command": "worker" } }, "chains": { "task": "worker" } }"#);
    place.agent("worker", "exit 0");
    place.run(&["task", "add", "One"]).code(0);
    place.run(&["task", "add", "Two", "--after", "1"]).code(0);
    let stderr = place.run(&["task", "run", "-j", "2", "2", "--limit", "cost=x"]).code(2).stderr.clone();
    for code in ["batch/waits", "batch/no-repository", "config/limit"] {
        assert!(stderr.contains(code), "{code} is missing: {stderr}");
    }
    git(&place, &["init", "-q"]);
    assert!(place.run(&["task", "run", "-j", "2", "--unverified"]).code(2).stderr.contains("batch/no-commit"));
    git(&place, &["commit", "-q", "--allow-empty", "-m", "begin"]);
    assert!(place.run(&["task", "run", "-j", "2", "--unverified"]).code(2).stderr.contains("batch/uncommitted"));
    assert!(place.run(&["task", "run", "-j", "2"]).code(2).stderr.contains("batch/no-check"));
    assert!(place.run(&["task", "run", "-j", "1001"]).code(2).stderr.contains("usage/value"));
    assert_eq!(place.calls("worker"), 0);
    assert!(!place.work(".forkhestra/hub.git").exists());
    place.run(&["task", "run", "-j", "2", "--unverified", "--with-changes"]).code(0);
    assert_eq!(place.calls("worker"), 2);
}

#[test]
fn with_changes_the_workspaces_begin_with_the_files_as_they_are() {
    let place = place(1, "sh cp mine.txt copy.txt", "test -f copy.txt");
    place.write("mine.txt", "uncommitted\n");
    let before = user_git(&place);
    place.run(&["task", "run", "-j", "2", "--with-changes"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:copy.txt"]), "uncommitted");
    assert!(before == user_git(&place), "the user's .git has changed");
}

/// Starts a batch whose workers wait until the file `tmp/go` is there.
pub(crate) fn waiting(tasks: u32) -> Place {
    let place = place(tasks, "", "ls file-*.txt > /dev/null");
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    let script = format!(
        "sh echo up > {}-$FORKHESTRA_TASK\nwait-for {}\nsh echo work > file-$FORKHESTRA_TASK.txt",
        up.display(),
        go.display()
    );
    place.agent("worker", &script);
    place
}

pub(crate) fn wait_for_workers(place: &Place, tasks: &[u32]) {
    for task in tasks {
        place.wait_for(&place.path(&format!("tmp/up-{task}")));
    }
}

#[test]
fn a_batch_that_was_killed_leaves_nothing_behind_and_goes_on_where_it_was() {
    let place = waiting(3);
    let run = place.start(&["task", "run", "-j", "2"]);
    wait_for_workers(&place, &[1, 2]);
    // The batch copies what its workers report.
    for run in [2, 3] {
        place.wait_for_event(run, "attemptStarted");
    }
    assert_eq!(run.end_by("KILL").code, None);
    let runs = place.run(&["runs"]);
    assert_eq!(runs.stdout.matches("crashed").count(), 3, "{}", runs.all());
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stderr.starts_with("● batch 1 continues"), "{}", ran.stderr);
    assert!(ran.stderr.contains("3 of 3 tasks landed"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 5, "two attempts were interrupted, and each task was done once");
    assert_line_is_green(&place);
}

#[test]
fn one_signal_ends_all_lanes_gracefully_and_a_resume_continues_them() {
    let place = waiting(3);
    let run = place.start(&["task", "run", "-j", "3"]);
    wait_for_workers(&place, &[1, 2, 3]);
    let ran = run.end_by("INT");
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("0 of 3 tasks landed (3 attempts)\n  next: forkhestra resume 1\n"), "{}", ran.stderr);
    let status = place.run(&["status"]).code(0).stdout.clone();
    assert!(status.contains("! run 1 (task run --jobs 3) was interrupted: forkhestra resume 1"), "{status}");
    fs::write(place.path("tmp/go"), "").unwrap();
    assert!(place.run(&["resume", "2"]).code(2).stderr.contains("resume/batch"));
    assert!(place.run(&["resume"]).code(0).stderr.contains("3 of 3 tasks landed"));
}

#[test]
fn a_lane_that_is_killed_is_replaced_and_the_others_do_not_notice() {
    let place = waiting(2);
    let run = place.start(&["task", "run", "-j", "2"]);
    wait_for_workers(&place, &[1, 2]);
    let worker = place.processes().into_iter().find(|process| process.contains("--unit 1-1-1")).unwrap();
    crate::support::send("KILL", worker.split_whitespace().next().unwrap().trim_start_matches("/proc/"));
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = run.end();
    assert!(ran.code(0).stderr.contains("! 1  its process was lost"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 3);
    assert_line_is_green(&place);
}

#[test]
fn an_agent_that_destroys_its_repository_harms_nobody_and_loses_nothing() {
    let harm = "echo work > file-$FORKHESTRA_TASK.txt; case $FORKHESTRA_TASK in \
                1) git add -A; git stash -q; git stash pop -q; git gc -q --prune=now;; \
                2) git -c user.name=a -c user.email=b commit -q --allow-empty -m x; \
                   git push -q origin HEAD:refs/heads/forkhestra/line; git push -q origin HEAD:main -f;; \
                3) rm -rf .git;; \
                4) git config core.hooksPath $PWD; printf '#!/bin/sh\\ntouch /tmp/harmed' > post-checkout; \
                   chmod +x post-checkout; git config core.fsmonitor 'touch /tmp/harmed';; esac; exit 0";
    let place = place(4, &format!("sh {harm}"), "ls file-*.txt > /dev/null");
    let before = user_git(&place);
    let ran = place.run(&["task", "run", "-j", "4"]);
    assert!(ran.code(0).stderr.contains("4 of 4 tasks landed"), "{}", ran.stderr);
    assert!(before == user_git(&place), "the user's .git has changed");
    assert!(!Path::new("/tmp/harmed").exists());
    assert_line_is_green(&place);
}

/// A limit on the cost holds for all lanes together: at most one turn of each beyond it.
#[test]
fn limit_cost_holds_for_all_lanes_together() {
    let place = place(12, "", "true");
    place.config(&format!("{{{}}}", CHAINS.replace(r#""deliver": "stdin""#, r#""output": "claude-stream""#)));
    git(&place, &["commit", "-q", "-am", "config"]);
    let result =
        r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":0.1,"usage":{"input_tokens":100}}"#;
    place.agent("worker", &format!("{result}\nsh echo work > file-$FORKHESTRA_TASK.txt"));
    let ran = place.run(&["task", "run", "-j", "8", "--limit", "cost=1"]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let calls = place.calls("worker");
    assert!((8..=18).contains(&calls), "{calls} calls of $0.10");
}

/// Its run may have completed the task just before.
#[test]
fn a_task_whose_process_was_lost_three_times_is_taken_up_by_the_next_batch_with_its_work() {
    let place = waiting(1);
    let go = place.path("tmp/go").display().to_string();
    place.agent(
        "worker",
        &format!(
            "sh echo early > early.txt\nsh touch {}\nwait-for {go}\nsh echo work > file-1.txt",
            place.path("tmp/up-1").display()
        ),
    );
    let run = place.start(&["task", "run", "-j", "2"]);
    for _ in 0..3 {
        wait_for_workers(&place, &[1]);
        fs::remove_file(place.path("tmp/up-1")).unwrap();
        let worker = place.processes().into_iter().find(|process| process.contains("--unit 1-1-1")).unwrap();
        crate::support::send("KILL", worker.split_whitespace().next().unwrap().trim_start_matches("/proc/"));
    }
    let ran = run.end();
    assert!(
        ran.code(1).stderr.contains("✗ 1  stopped: its process was lost, or not started, 3 times"),
        "{}",
        ran.stderr
    );
    fs::write(&go, "").unwrap();
    place.agent("worker", "sh cp early.txt file-1.txt");
    place.run(&["task", "run", "-j", "2"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "early", "the work so far is not lost");
}

/// It is not offered again when its work is gone.
#[test]
fn a_completed_task_that_has_not_landed_is_left_alone_without_the_hub() {
    let place = place(1, "sh echo work > file-1.txt\nexit 1", "true");
    place.run(&["task", "run", "-j", "1"]).code(1);
    place.run(&["task", "approve", "1"]).code(0);
    let hub = place.work(".forkhestra/hub.git");
    fs::rename(&hub, place.path("tmp/hub.git")).unwrap();
    assert!(place.run(&["task", "run", "-j", "1"]).code(2).stderr.contains("task/none"));
    let _ = fs::remove_dir_all(&hub);
    fs::rename(place.path("tmp/hub.git"), &hub).unwrap();
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(self::hub(&place, &["show", "forkhestra/line:file-1.txt"]), "work", "its approved work lands");
}

#[test]
fn work_that_changes_nothing_lands_without_a_commit_and_says_so() {
    let place = place(1, "sh true", "true");
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(0).stderr.contains("✓ 1  needed no change: Task 1"), "{}", ran.stderr);
    assert_eq!(hub(&place, &["rev-parse", "forkhestra/line"]), git(&place, &["rev-parse", "main"]).trim());
    assert!(place.run(&["task", "land", "--into", "main"]).code(0).stdout.contains("has everything that has landed"));
}

#[test]
fn changes_that_were_taken_along_land_with_the_tasks_unless_they_have_changed_since() {
    let place = place(1, "sh echo work > file-$FORKHESTRA_TASK.txt", "ls file-*.txt > /dev/null");
    place.write("shared.txt", "changed\n").write("new.txt", "new\n");
    place.run(&["task", "run", "-j", "1", "--with-changes"]).code(0);
    place.write("new.txt", "newer\n");
    let ran = place.run(&["task", "land", "--into", "main"]);
    assert!(ran.code(2).stderr.contains("land/uncommitted"), "{}", ran.stderr);
    place.write("new.txt", "new\n");
    place.run(&["task", "land", "--into", "main"]).code(0);
    assert_eq!(git(&place, &["status", "--porcelain"]).trim(), "");
    assert_eq!((place.read("shared.txt").as_str(), place.read("file-1.txt").as_str()), ("changed\n", "work\n"));
    let log = git(&place, &["log", "--format=%s"]);
    assert_eq!(log.trim(), "Task 1\nUncommitted changes when the tasks began\nbegin");
}

#[test]
fn a_task_that_has_landed_is_refused_before_anything_starts() {
    let place = place(2, "sh echo work > file-$FORKHESTRA_TASK.txt", "true");
    place.run(&["task", "run", "-j", "1", "1"]).code(0);
    let ran = place.run(&["task", "run", "-j", "1", "1", "2"]);
    assert!(ran.code(2).stderr.contains("task 1 is completed: there is nothing left to run"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 1);
}

#[test]
fn work_whose_verification_two_batches_did_not_end_is_taken_up_by_a_third() {
    let place = place(1, "sh echo work > file-$FORKHESTRA_TASK.txt", "");
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    let waits = format!("touch {}; while [ ! -e {} ]; do sleep 0.02; done", up.display(), go.display());
    place.write("check.sh", format!("case $PWD in *-verify) {waits};; esac"));
    git(&place, &["commit", "-q", "-am", "check"]);
    for _ in 0..2 {
        let run = place.start(&["task", "run", "-j", "1"]);
        place.wait_for(&up);
        assert_eq!(run.end_by("INT").code, Some(130));
        fs::remove_file(&up).unwrap();
    }
    fs::write(&go, "").unwrap();
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "work");
    assert_eq!(place.calls("worker"), 1);
}

#[test]
fn the_workspace_of_another_history_of_the_project_is_not_taken_over() {
    let place = waiting(1);
    let run = place.start(&["task", "run", "-j", "1"]);
    wait_for_workers(&place, &[1]);
    assert_eq!(run.end_by("INT").code, Some(130));
    fs::remove_dir_all(place.work(".forkhestra")).unwrap();
    place.agent("worker", "sh echo new > file-$FORKHESTRA_TASK.txt");
    place.run(&["task", "add", "Another one"]).code(0);
    let ran = place.run(&["task", "run", "-j", "1"]);
    assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
    assert_eq!(hub(&place, &["log", "-1", "--format=%s", "forkhestra/line"]), "Another one");
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "new");
}

#[test]
fn nothing_of_a_batch_stays_among_the_workspaces_once_all_has_landed() {
    let place = place(2, "sh echo work > file-$FORKHESTRA_TASK.txt", "ls file-*.txt > /dev/null");
    place.run(&["task", "run", "-j", "2"]).code(0);
    let folders = fs::read_dir(place.path("home/.cache/forkhestra/workspaces")).unwrap().flatten();
    let left: Vec<_> = folders.flat_map(|folder| fs::read_dir(folder.path()).unwrap().flatten()).collect();
    assert!(left.is_empty(), "{left:?}");
}
