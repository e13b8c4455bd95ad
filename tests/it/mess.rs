//! `task run --jobs`: whatever agents and users have in their directories and repositories, no work is lost.

use crate::batch::{hub, place, user_git};
use crate::support::git;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_repository_that_an_agent_makes_inside_of_its_workspace_lands_as_its_files() {
    let makes = "git init -q lib && echo code > lib/a.txt && cd lib && git add -A";
    for commit in ["true", "git -c user.name=n -c user.email=e commit -q -m inner"] {
        let place = place(1, &format!("sh {makes} && {commit}"), "test -f lib/a.txt");
        let ran = place.run(&["task", "run", "-j", "1"]);
        assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
        let landed = hub(&place, &["ls-tree", "-r", "--name-only", "forkhestra/line", "lib"]);
        assert_eq!(landed, "lib/a.txt", "{commit}");
    }
}

#[test]
fn files_that_git_cannot_add_do_not_lose_the_others() {
    for mess in [
        "rm shared.txt && mkfifo shared.txt",
        "mkdir d && echo x > d/f && git add -A && rm -r d && ln -s /tmp d",
        "echo '*.bad working-tree-encoding=UTF-16' > .gitattributes && printf 'odd' > a.bad",
    ] {
        let place = place(1, &format!("sh {mess}\nsh echo work > file-1.txt"), "ls file-1.txt");
        let ran = place.run(&["task", "run", "-j", "1"]);
        assert_eq!(ran.code, Some(0), "{mess}: {}", ran.stderr);
        assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "work");
    }
}

#[test]
fn work_is_not_handed_over_in_part_if_git_is_killed_while_it_adds_the_files() {
    let place = place(1, "sh echo work > file-1.txt", "ls file-1.txt");
    let kill = place.path("tmp/kill");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'add --all'*) [ ! -e {} ] || kill -KILL $$ ;; esac\nexec /usr/bin/git \"$@\"\n",
        kill.display()
    );
    fs::write(place.path("bin/git"), script).unwrap();
    fs::set_permissions(place.path("bin/git"), fs::Permissions::from_mode(0o755)).unwrap();
    place.agent("worker", &format!("sh echo work > file-1.txt; touch {}", kill.display()));
    let ran = place.run(&["task", "run", "-j", "1"]);
    assert!(ran.code(1).stderr.contains("0 of 1 task landed"), "{}", ran.stderr);
    fs::remove_file(&kill).unwrap();
    place.agent("worker", "sh true");
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(
        hub(&place, &["ls-tree", "--name-only", "forkhestra/line", "shared.txt", "file-1.txt"]),
        "file-1.txt\nshared.txt"
    );
}

#[test]
fn commits_on_other_branches_of_a_workspace_and_its_stashes_stay_in_the_hub() {
    let works = "git checkout -q -b side && echo aside > side.txt && git add -A && git commit -q -m aside && \
                 git checkout -q - && echo later > shared.txt && git stash -q && echo work > file-1.txt";
    let works = format!("sh git config user.name n; git config user.email e; {works}");
    let place = place(1, &works, "ls file-1.txt");
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "refs/forkhestra/kept/1-1-1/heads/side:side.txt"]), "aside");
    assert_eq!(hub(&place, &["show", "refs/forkhestra/kept/1-1-1/stash:shared.txt"]), "later");
}

#[test]
fn branches_of_the_user_that_are_named_like_ours_are_not_taken_for_ours() {
    for branch in ["forkhestra", "forkhestra/line"] {
        let place = place(1, "sh echo work > file-1.txt", "ls file-1.txt");
        git(&place, &["checkout", "-q", "-b", branch]);
        git(&place, &["commit", "-q", "--allow-empty", "-m", "unverified"]);
        git(&place, &["checkout", "-q", "main"]);
        place.run(&["task", "run", "-j", "1"]).code(0);
        let line = hub(&place, &["log", "--format=%s", "refs/heads/forkhestra/line"]);
        assert_eq!(line, "Task 1\nbegin", "{branch}");
    }
}

#[test]
fn land_does_not_overwrite_a_file_that_git_ignores() {
    let place = place(1, "sh rm .gitignore; echo theirs > notes.txt; echo work > file-1.txt", "ls file-1.txt");
    place.write(".gitignore", "notes.txt\n").write("notes.txt", "mine\n");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "ignore"]);
    place.run(&["task", "run", "-j", "1"]).code(0);
    let ran = place.run(&["task", "land", "--into", "main"]);
    insta::assert_snapshot!(ran.code(2).stderr, @"
    land/ignored

      × files that git ignores here would be overwritten: notes.txt
      help: the tasks have added files of these names; move your own aside first
    ");
    assert_eq!(place.read("notes.txt"), "mine\n");
}

#[test]
fn git_lfs_is_refused_wherever_it_is_configured() {
    let place = place(1, "", "true");
    place.write("media/.gitattributes", "*.bin filter=lfs\n");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "lfs"]);
    let ran = place.run(&["task", "run", "-j", "1"]);
    assert!(ran.code(2).stderr.contains("a workspace would lack: *.bin (Git LFS)"), "{}", ran.stderr);
}

#[test]
fn with_changes_a_split_index_of_the_user_is_not_written() {
    let place = place(1, "sh echo work > file-1.txt", "ls file-1.txt");
    git(&place, &["config", "core.splitIndex", "true"]);
    git(&place, &["update-index", "--split-index"]);
    place.write("shared.txt", "changed\n");
    let names = |place: &crate::support::Place| {
        let entries = fs::read_dir(place.work(".git")).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let before = (names(&place), fs::read(place.work(".git/index")).unwrap());
    place.run(&["task", "run", "-j", "1", "--with-changes"]).code(0);
    assert_eq!((names(&place), fs::read(place.work(".git/index")).unwrap()), before);
    assert_eq!(hub(&place, &["show", "forkhestra/line:shared.txt"]), "changed");
    assert!(!user_git(&place).is_empty());
}

#[test]
fn work_that_only_passes_after_the_checks_have_changed_it_does_not_land() {
    let works = "sh if [ -e ../seen ]; then echo tidy > shared.txt; fi; touch ../seen; echo w > file-1.txt";
    let place = place(1, works, "case $PWD in *-verify) echo tidy > shared.txt;; esac");
    let ran = place.run(&["task", "run", "-j", "1", "--limit", "attempts=12"]);
    assert!(ran.stderr.contains("↺ 1  goes back: the checks changed shared.txt"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
    assert_eq!(hub(&place, &["show", "forkhestra/line:shared.txt"]), "tidy");
}

#[test]
fn a_line_that_an_agent_has_moved_is_neither_landed_nor_worked_on() {
    let forges = "H=$(sed s,/objects,, .git/objects/info/alternates) && git --git-dir=$H update-ref \
                  refs/heads/forkhestra/line $(git --git-dir=$H -c user.name=n -c user.email=e commit-tree \
                  -p $(git rev-parse HEAD) -m evil $(git --git-dir=$H mktree < /dev/null))";
    let place = place(2, &format!("sh {forges}"), "true");
    place.run(&["task", "run", "-j", "1", "1"]).code(1);
    let before = git(&place, &["rev-parse", "main"]);
    assert!(place.run(&["task", "land", "--into", "main"]).code(2).stderr.contains("land/moved"));
    assert!(place.run(&["task", "run", "-j", "1", "2"]).code(2).stderr.contains("land/moved"));
    assert_eq!((git(&place, &["rev-parse", "main"]), place.calls("worker")), (before, 1));
}

#[test]
fn a_task_that_is_deleted_or_decided_while_a_batch_runs_stops_and_the_others_land() {
    let place = crate::batch::waiting(3);
    let run = place.start(&["task", "run", "-j", "1"]);
    crate::batch::wait_for_workers(&place, &[1]);
    assert_eq!(place.beside(&["task", "delete", "2"]).0, Some(0));
    assert_eq!(place.beside(&["task", "approve", "3"]).0, Some(0));
    fs::write(place.path("tmp/go"), "").unwrap();
    let ran = run.end();
    assert!(ran.stderr.contains("✗ 2  stopped: it was deleted"), "{}", ran.stderr);
    assert!(ran.stderr.contains("✗ 3  stopped: its status is completed now"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 3 tasks landed"), "{}", ran.stderr);
}

#[test]
fn a_lock_that_a_killed_git_has_left_does_not_stop_a_task() {
    let place = place(1, "sh echo work > file-1.txt", "ls file-1.txt");
    place.agent(
        "worker",
        "sh touch $(sed s,/objects,, .git/objects/info/alternates)/indexes/1-1.lock; echo work > file-1.txt",
    );
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "work");
}

#[test]
fn a_damaged_ref_of_an_agent_does_not_lose_its_other_commits() {
    let works = "git config user.name n; git config user.email e; echo a > side.txt; git add -A; git commit -q -m mine; \
                 git branch side; echo 1234 > .git/refs/heads/bad; echo work > file-1.txt";
    let place = place(1, &format!("sh {works}"), "ls file-1.txt");
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "refs/forkhestra/kept/1-1-1/heads/side:side.txt"]), "a");
}

#[test]
fn the_hub_of_a_clone_that_borrows_objects_has_its_own() {
    let place = place(1, "sh echo work > file-1.txt", "ls file-1.txt");
    let (origin, clone) = (place.path("project"), place.path("tmp/clone"));
    git(&place, &["clone", "-q", "--shared", origin.to_str().unwrap(), clone.to_str().unwrap()]);
    fs::rename(&origin, place.path("tmp/origin")).unwrap();
    fs::rename(&clone, &origin).unwrap();
    fs::write(origin.join(".git/objects/info/alternates"), place.path("tmp/origin/.git/objects").to_str().unwrap())
        .unwrap();
    place.run(&["task", "add", "Task"]).code(0);
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert!(!place.work(".forkhestra/hub.git/objects/info/alternates").exists());
}
