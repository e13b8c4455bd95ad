//! The settings `workspace` and `landing` of `task run --jobs`, and its dry run.

use crate::batch::{CHAINS, WRITES, hub, place, user_git};
use crate::support::{Place, git};
use std::fs;

/// A place whose config has these settings, too. `secret.env` and `cache/` are ignored by git.
fn with_settings(tasks: u32, settings: &str, worker: &str, check: &str) -> Place {
    let place = place(tasks, worker, check);
    place.config(&format!("{{{settings}, {CHAINS}}}"));
    place
        .write(".gitignore", "secret.env\ncache/\nnode/\n")
        .write("secret.env", "KEY=1\n")
        .write("cache/a", "cached\n");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "settings"]);
    place
}

#[test]
fn workspace_copy_and_share_fill_a_workspace_and_do_not_land() {
    let settings = r#""workspace": { "copy": ["secret.env"], "share": ["cache"] }"#;
    let worker = "sh cat secret.env cache/a > file-$FORKHESTRA_TASK.txt; echo more >> secret.env; echo x > cache/b; \
                  git status --porcelain > status-$FORKHESTRA_TASK.txt";
    let place = with_settings(1, settings, worker, "ls file-*.txt");
    place.run(&["task", "run", "-j", "2"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "KEY=1\ncached");
    assert_eq!(hub(&place, &["show", "forkhestra/line:status-1.txt"]), "?? file-1.txt\n?? status-1.txt");
    let landed = hub(&place, &["ls-tree", "--name-only", "forkhestra/line"]);
    assert!(!landed.contains("secret") && !landed.contains("cache"), "{landed}");
    assert_eq!((place.read("secret.env").as_str(), place.read("cache/b").as_str()), ("KEY=1\n", "x\n"));
}

#[test]
fn workspace_setup_is_the_first_step_of_each_run_and_its_failure_stops_the_task() {
    let settings = r#""workspace": { "setup": "mkdir -p node && echo installed > node/made" }"#;
    let place = with_settings(1, settings, "sh cp node/made file-$FORKHESTRA_TASK.txt", "test -f node/made");
    place.run(&["task", "run", "-j", "2"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:file-1.txt"]), "installed");
    assert!(place.run(&["runs", "show", "2"]).code(0).stdout.contains("workspace-setup"));
    let place = with_settings(1, r#""workspace": { "setup": "echo no network; exit 1" }"#, WRITES, "true");
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(1).stderr.contains("✗ 1  stopped: a step failed"), "{}", ran.stderr);
    assert_eq!(place.calls("worker"), 0);
}

#[test]
fn workspace_ports_gives_each_lane_a_block_of_its_own() {
    let settings = r#""workspace": { "ports": 15 }"#;
    let worker = "sh echo $FORKHESTRA_PORT $FORKHESTRA_LANE > file-$FORKHESTRA_TASK.txt\n\
                  sh touch \"$(dirname $FORKHESTRA_WORKSPACE)/up-$FORKHESTRA_TASK\"\n\
                  sh while [ $(ls $(dirname $FORKHESTRA_WORKSPACE) | grep -c '^up-') -lt 2 ]; do sleep 0.05; done";
    let place = with_settings(2, settings, worker, "ls file-*.txt");
    place.run(&["task", "run", "-j", "2"]).code(0);
    let told = |task: u32| hub(&place, &["show", &format!("forkhestra/line:file-{task}.txt")]);
    let parse = |text: String| text.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<u32>>();
    let (one, two) = (parse(told(1)), parse(told(2)));
    assert!(one[0] >= 20_000 && one[0].abs_diff(two[0]) >= 20, "{one:?} {two:?}");
    assert_ne!(one[1], two[1]);
}

#[test]
fn workspace_root_and_keep_say_where_workspaces_are_and_whether_they_stay() {
    let place = place(1, WRITES, "ls file-*.txt");
    let root = place.path("tmp/agents").display().to_string();
    let relative = "../tmp/agents";
    place.config(&format!(r#"{{ "workspace": {{ "root": "{relative}", "keep": true }}, {CHAINS} }}"#));
    git(&place, &["commit", "-q", "-am", "settings"]);
    place.run(&["task", "run", "-j", "2"]).code(0);
    let project = fs::read_dir(&root).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_to_string(project.join("1-1/file-1.txt")).unwrap(), "work\n");
}

#[test]
fn landing_checks_verify_what_lands_and_landing_together_bounds_a_merge() {
    let settings = r#""landing": { "checks": ["check", "strict"], "together": 1 }"#;
    let place = with_settings(2, settings, WRITES, "ls file-*.txt");
    let config = CHAINS.replace(r#""checks": {"#, r#""checks": { "strict": { "run": "sh strict.sh" },"#);
    place.config(&format!("{{{settings}, {config}}}")).write("strict.sh", "ls file-*.txt >> seen.log\n");
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "strict"]);
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(0).stderr.contains("verified by check -> strict"), "{}", ran.stderr);
    assert_eq!(hub(&place, &["rev-list", "--count", "--first-parent", "main..forkhestra/line"]), "2");
}

#[test]
fn wrong_settings_of_workspaces_are_refused_all_at_once() {
    let settings = r#""workspace": { "copy": ["../x", "shared.txt", "gone.env"], "root": "here" },
        "landing": { "checks": ["worker", "unknown"] }"#;
    let place = with_settings(1, settings, WRITES, "true");
    let stderr = place.run(&["task", "run", "-j", "2"]).code(2).stderr.clone();
    for words in [
        "`../x` must be a path inside of the project",
        "`shared.txt` is tracked by git",
        "`gone.env` does not exist",
        "batch/workspace-root",
        "landing/check",
        "unknown",
    ] {
        assert!(stderr.contains(words), "{words} is missing: {stderr}");
    }
    assert!(!place.work(".forkhestra/hub.git").exists());
    let settings = r#""workspace": { "setup": "true" }"#;
    let place = with_settings(1, settings, WRITES, "true");
    let config = CHAINS.replace(r#""checks": {"#, r#""checks": { "workspace-setup": "true","#);
    place.config(&format!("{{{settings}, {config}}}"));
    let stderr = place.run(&["task", "run", "-j", "2", "--with-changes"]).code(2).stderr.clone();
    assert!(stderr.contains("workspace/setup-name"), "{stderr}");
}

#[test]
fn validate_reports_what_a_batch_would_refuse() {
    let settings = r#""workspace": { "copy": ["../x"], "root": "here" }, "landing": { "checks": ["worker", "chekc"] },
        "engines": { "c": { "submit": ["qsub", "${WROK}"], "hub": "hub.git" }, "d": { "submit": ["qsub"] } }"#;
    let place = with_settings(1, settings, WRITES, "true");
    let ran = place.run(&["validate"]);
    let messages: Vec<&str> = ran.code(2).stderr.lines().filter_map(|line| line.strip_prefix("  × ")).collect();
    assert_eq!(
        messages,
        [
            "`../x` must be a path inside of the project",
            "the directory of the workspaces,",
            "`worker` is an agent, not a check",
            "no check is named `chekc`",
            "the variable `WROK` has no value",
            "`hub.git` is neither a URL nor an absolute path",
            "the job would not know its work: `submit` contains neither ${WORK} nor",
        ]
    );
    for help in ["did you mean `check`? `forkhestra list` shows the checks", "did you mean `${WORK}`?"] {
        assert!(ran.words().contains(help), "{}", ran.stderr);
    }
    place.config(&format!(r#"{{{CHAINS}, "landing": {{ "checks": [] }} }}"#));
    let words = place.run(&["validate"]).code(2).words();
    assert!(words.contains("name a check in `landing.checks`, remove the key"), "{words}");
    // Whether a variable of the environment is set is known where the batch runs.
    let fine = r#""engines": { "c": { "submit": ["qsub", "${WORK}"], "hub": "${env:NO_SUCH_HUB}" } }"#;
    place.config(&format!("{{{CHAINS}, {fine}}}"));
    place.run(&["validate"]).code(0);
}

#[test]
fn a_dry_run_with_jobs_shows_the_whole_batch_and_writes_nothing() {
    let settings = r#""workspace": { "setup": "npm ci", "copy": ["secret.env"], "ports": 10 }"#;
    let place = with_settings(1, settings, WRITES, "true");
    place.run(&["task", "add", "Second", "--after", "1"]).code(0);
    let before = user_git(&place);
    let ran = place.run(&["task", "run", "-j", "3", "--limit", "time=5h", "--dry-run"]);
    let commit = git(&place, &["rev-parse", "--short=8", "HEAD"]);
    let text = ran.code(0).stdout.replace(commit.trim(), "COMMIT");
    let folder = text.split_whitespace().find(|word| word.ends_with("/BATCH-TASK")).unwrap().to_string();
    assert!(folder.contains("/forkhestra/workspaces/"), "{folder}");
    insta::assert_snapshot!(text.replace(&folder, "FOLDER"), @r"
    2 tasks, 3 at a time, chain task

      1  Task 1
      2  Second  (after 1 has landed)

      begin with   main (COMMIT)
      workspaces   FOLDER
      setup        npm ci
      copies       secret.env
      ports        10 each
      verified by  check
      limits       time=5h

    Nothing was run. The plan of one task: forkhestra task run 1 --dry-run
    ");
    let json = place.run(&["task", "run", "-j", "3", "--dry-run", "--json"]).code(0).stdout.clone();
    crate::answers::check("batch-plan", &json);
    assert!(before == user_git(&place), "the user's .git has changed");
    assert!(!place.work(".forkhestra/hub.git").exists());
    assert_eq!(place.calls("worker"), 0);
}

#[test]
fn workspace_changes_are_seen_whatever_git_believes_about_a_fresh_checkout() {
    // The same size, in place and in the second of the checkout: git must compare the content.
    let worker = "sh printf 'new\\n' > same.txt; touch file-$FORKHESTRA_TASK.txt";
    for file in ["NOTES", ".gitattributes"] {
        let place = with_settings(1, r#""workspace": { "keep": true }"#, worker, "grep -q new same.txt");
        place.write("same.txt", "old\n").write(file, "*.txt text eol=lf\n");
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-q", "-m", "attributes"]);
        place.run(&["task", "run", "-j", "2"]).code(0);
        assert_eq!(hub(&place, &["show", "forkhestra/line:same.txt"]), "new");
        let ran = place.run(&["diff", "2"]);
        let diff = &ran.code(0).stdout;
        assert!(diff.contains("-old\n+new\n") && !diff.contains("settings"), "{diff}");
        // The objects of the commit are borrowed from the hub.
        let store = place.path("home/.cache/forkhestra/workspaces");
        let project = fs::read_dir(store).unwrap().next().unwrap().unwrap().path();
        let packs = project.join("1-1/.forkhestra/snapshots/objects/pack");
        assert!(fs::read_dir(packs).unwrap().next().is_none());
    }
}

#[test]
fn landing_checks_may_name_a_program() {
    let place = with_settings(1, r#""landing": { "checks": ["ls"] }"#, WRITES, "true");
    let ran = place.run(&["task", "run", "-j", "2"]);
    assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
}

#[test]
fn landing_clean_verifies_without_what_an_earlier_verification_has_built() {
    // The check builds a file while the mark is there. The second task needs that file, and removes the mark.
    let worker = "sh if [ $FORKHESTRA_TASK = 1 ]; then touch mark; else git rm -q mark; touch need; fi; \
                  mkdir -p cache; touch cache/made file-$FORKHESTRA_TASK.txt";
    let check = "if [ -f mark ]; then mkdir -p cache; touch cache/made; fi; [ ! -f need ] || test -f cache/made";
    for (settings, landed) in [("{}", true), (r#"{ "clean": true }"#, false)] {
        let place = with_settings(1, &format!(r#""landing": {settings}"#), worker, check);
        place.run(&["task", "add", "Second", "--after", "1"]).code(0);
        let ran = place.run(&["task", "run", "-j", "1", "--limit", "attempts=8"]);
        assert_eq!(ran.stderr.contains("2 of 2 tasks landed"), landed, "{settings}: {}", ran.stderr);
    }
}
