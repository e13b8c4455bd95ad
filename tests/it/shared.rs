//! `task … --hub`: tasks that several people share, as refs of a git repository.

use crate::support::{Place, git};
use std::fs;

/// A project whose remote `origin` is an empty bare repository. Returns its path, too.
pub(crate) fn place() -> (Place, String) {
    let place = Place::new();
    place.config(r#"{ "chains": {} }"#).write("docs/login.md", "Log in.\n");
    git(&place, &["init", "-q", "-b", "main"]);
    git(&place, &["config", "user.name", "Ana"]);
    let hub = place.path("tmp/team.git").display().to_string();
    git(&place, &["init", "-q", "--bare", &hub]);
    git(&place, &["remote", "add", "origin", &hub]);
    (place, hub)
}

#[test]
fn tasks_of_a_hub_are_added_listed_and_decided_about_by_whoever_reaches_it() {
    let (place, hub) = place();
    assert_eq!(
        place.run(&["task", "list", "--hub", "origin"]).code(0).stdout,
        "no tasks yet; `forkhestra task add \"…\"` adds one\n"
    );
    let added = place.run(&["task", "add", "Log in", "--spec", "docs/login.md", "--tests", "true", "--hub", "origin"]);
    assert_eq!(added.code(0).stdout, "task 1 added\n");
    place.write(
        "more.ndjson",
        "{\"title\": \"Log out\", \"after\": \"1\"}\n{\"title\": \"Reset\", \"id\": \"reset\"}\n",
    );
    let url = format!("file://{hub}");
    assert_eq!(
        place.run(&["task", "import", "more.ndjson", "--hub", &url]).code(0).stdout,
        "2 tasks added: 2, reset\n"
    );
    let ran = place.run(&["task", "approve", "1", "--notes", "done by hand", "--hub", &hub]);
    assert_eq!(ran.code(0).stdout, "the status of task 1 is now completed\n");
    place.run(&["task", "skip", "reset", "--hub", "origin"]).code(0);
    place.run(&["task", "reset", "reset", "--hub", "origin"]).code(0);
    place.run(&["task", "reject", "2", "--notes", "again", "--hub", &url]).code(0);
    insta::assert_snapshot!(place.run(&["task", "list", "--hub", &url]).code(0).stdout, @"
    task   status       title
    1      completed    Log in
    2      in_progress  Log out
    reset  pending      Reset
    ");
    assert_eq!(place.run(&["task", "list"]).code(0).stdout, "no tasks yet; `forkhestra task add \"…\"` adds one\n");
    let shown = place.run(&["task", "show", "1", "--hub", "origin"]).code(0).stdout.clone();
    assert!(shown.contains("pending → completed  by Ana: done by hand"), "{shown}");
    let shown = place.run(&["task", "show", "1", "--json", "--hub", "origin"]).code(0).stdout.clone();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["task"]["spec"], &shown["audit"][0]["by"]), (&"docs/login.md".into(), &"Ana".into()));
    let log = git(&place, &["--git-dir", &hub, "log", "--format=%an: %s", "refs/forkhestra/tasks/reset"]);
    assert_eq!(
        log,
        "Ana: task reset: skipped to pending\nAna: task reset: pending to skipped\nAna: task reset: added\n"
    );
}

#[test]
fn what_is_wrong_with_a_hub_or_a_shared_task_is_refused_and_nothing_is_added() {
    let (place, hub) = place();
    let ran = place.run(&["task", "list", "--hub", "upstream"]);
    insta::assert_snapshot!(ran.code(2).stderr, @"
    hub/unknown

      × `upstream` is not a hub: no URL, no git repository, and no remote of this
      │ one
      help: create one where everybody reaches it: git init --bare DIR; or name a
            remote that `git remote` lists
    ");
    let add = |words: &[&str]| place.run(&[&["task", "add", "--hub", "origin"], words].concat());
    assert!(add(&["A", "--after", "9"]).code(2).stderr.contains("there is no task `9`"));
    assert!(add(&["A", "--id", "x.lock"]).code(2).stderr.contains("git allows no ref of this name"));
    assert!(add(&["A", "--spec", "no.md"]).code(2).stderr.contains("task/spec"));
    add(&["A", "--id", "a"]).code(0);
    assert!(add(&["A", "--id", "a"]).code(2).stderr.contains("there is already a task `a`"));
    let decide = |words: &[&str]| place.run(&[&["task"], words, &["--hub", "origin"]].concat());
    assert!(decide(&["approve", "b"]).code(2).stderr.contains("there is no task `b`"));
    assert!(decide(&["reject", "a"]).code(2).stderr.contains("task/notes"));
    decide(&["approve", "a"]).code(0);
    assert!(decide(&["approve", "a"]).code(2).stderr.contains("already completed"));
    fs::remove_dir_all(&hub).unwrap();
    let gone = place.run(&["task", "list", "--hub", &format!("file://{hub}")]);
    assert!(gone.code(2).stderr.contains("cannot reach the hub"), "{}", gone.stderr);
}

#[test]
fn a_task_that_a_newer_version_has_written_is_refused_and_stays() {
    let (place, hub) = place();
    place.run(&["task", "add", "A", "--hub", "origin"]).code(0);
    let name = "refs/forkhestra/tasks/1";
    let of = |words: &[&str]| git(&place, &[&["--git-dir", hub.as_str()], words].concat()).trim().to_string();
    place.write("newer.json", "{ \"format\": 99, \"id\": \"1\" }");
    let blob = of(&["hash-object", "-w", &place.work("newer.json").display().to_string()]);
    fs::write(place.path("tmp/tree"), format!("100644 blob {blob}\ttask.json\n")).unwrap();
    let mktree = format!("git --git-dir '{hub}' mktree < '{}'", place.path("tmp/tree").display());
    let tree =
        String::from_utf8(std::process::Command::new("sh").args(["-c", &mktree]).output().unwrap().stdout).unwrap();
    let commit = of(&["-c", "user.name=n", "-c", "user.email=e", "commit-tree", tree.trim(), "-m", "newer"]);
    of(&["update-ref", name, &commit]);
    let ran = place.run(&["task", "approve", "1", "--hub", "origin"]);
    assert!(
        ran.code(2).words().contains("the hub's task `1` cannot be used: its format is 99, and this version knows 1")
    );
    assert_eq!(of(&["rev-parse", name]), commit);
}

#[test]
fn people_who_add_and_decide_at_the_same_moment_lose_nothing() {
    let (place, hub) = place();
    let url = format!("file://{hub}");
    place.run(&["task", "add", "First", "--hub", &url]).code(0);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (place, url, hub) = (&place, &url, &hub);
            scope.spawn(move || {
                place.run(&["task", "add", &format!("Task {number}"), "--hub", url]).code(0);
                place.run(&["task", "reject", "1", "--notes", &format!("note {number}"), "--hub", hub]).code(0);
            });
        }
    });
    let tasks = place.run(&["task", "list", "--json", "--hub", &url]).code(0).stdout.clone();
    let tasks: Vec<serde_json::Value> = serde_json::from_str(&tasks).unwrap();
    let mut names: Vec<&str> = tasks.iter().map(|task| task["id"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["1", "2", "3", "4", "5"]);
    let shown = place.run(&["task", "show", "1", "--hub", &hub]).code(0).stdout.clone();
    for number in 0..4 {
        assert!(shown.contains(&format!("note {number}")), "{shown}");
    }
}

#[test]
fn an_agent_may_read_shared_tasks_through_no_command_that_decides() {
    let (place, hub) = place();
    place.run(&["task", "add", "A", "--hub", &hub]).code(0);
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    place.agent("worker", &format!("sh '{program}' task approve 1 --hub '{hub}' > said.txt 2>&1 || true"));
    place.run(&["worker", "-p", "x"]).code(0);
    let said = place.read("said.txt");
    assert!(said.contains("task/human"), "{said}");
    let status = place.run(&["task", "list", "--hub", &hub]).code(0).stdout.clone();
    assert!(status.contains("pending"), "{status}");
}
