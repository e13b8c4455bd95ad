//! `task run --jobs N --tries N`: several tries at one task, of which a judge chooses one.

use crate::batch::{assert_line_is_green, hub, user_git};
use crate::support::{Place, git};

const CHAINS: &str = r#"
    "agents": {
      "worker": { "command": "worker", "deliver": "stdin" },
      "judge": { "command": "judge", "deliver": "stdin", "role": "judge" }
    },
    "checks": { "check": { "run": "sh check.sh" } },
    "chains": { "task": "worker -> check -> judge", "plain": "worker -> check" }"#;

/// Approves a single work, and chooses the try of this number where there are several.
fn judge(choice: &str) -> String {
    format!("sh if [ -n \"$FORKHESTRA_TASK\" ]; then echo 'VERDICT: approve'; else printf '{choice}\\n'; fi")
}

/// Makes a repository with one task. Each try writes its number.
fn place(worker: &str, judge: &str) -> Place {
    let place = Place::new();
    place
        .config(&format!("{{{CHAINS}}}"))
        .write("check.sh", "! grep -q broken answer.txt")
        .write("answer.txt", "none\n")
        .agent("worker", worker)
        .agent("judge", judge);
    git(&place, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "n"), ("user.email", "a@b.c")] {
        git(&place, &["config", key, value]);
    }
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "begin"]);
    place.run(&["task", "add", "Find the answer"]).code(0);
    place
}

const WRITES: &str = "sh echo try $FORKHESTRA_TRY > answer.txt";

#[test]
fn tries_are_made_at_once_and_the_judge_chooses_the_one_that_lands() {
    let place = place(WRITES, &judge("Two is simpler.\\n\\nCHOICE: 2"));
    let before = user_git(&place);
    let ran = place.run(&["task", "run", "-j", "3", "--tries", "3"]);
    let commit = hub(&place, &["rev-parse", "--short=8", "forkhestra/line"]);
    let run = hub(&place, &["log", "-1", "--format=%(trailers:key=Forkhestra-Run,valueonly)", "forkhestra/line"]);
    assert_eq!(run.trim(), "3", "the run of the chosen try");
    // They end in any order.
    let stderr = ran.code(0).stderr.replace(&commit, "COMMIT");
    let (accepted, others): (Vec<&str>, Vec<&str>) = stderr.lines().partition(|line| line.contains("is accepted"));
    assert_eq!(accepted.len(), 3);
    assert!(accepted.contains(&"  ✓ 1, try 2  is accepted (run 3)"), "{stderr}");
    insta::assert_snapshot!(others.join("\n"), @"
    ● batch 1 begins: 1 task, 3 tries per task, 3 lanes, verified by check
      ▶ 1  Find the answer, try 1 (run 2)
      ▶ 1  Find the answer, try 2 (run 3)
      ▶ 1  Find the answer, try 3 (run 4)
      ▶ 1  judge chooses one of 3 accepted tries (run 5)
      → 1  try 2 is taken: Two is simpler.
      ✓ 1  landed as COMMIT: Find the answer

      task   title            status      attempts         tokens      cost sent back
      1      Find the answer  landed            10              -         -         -
    1 of 1 task landed (11 attempts, 1 of them to verify)
      next: forkhestra task land --into main
    ");
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "try 2");
    assert_line_is_green(&place);
    assert_eq!(user_git(&place), before);
    // The other tries stay as refs of the hub.
    for number in 1..=3 {
        let work = hub(&place, &["show", &format!("refs/forkhestra/units/1-1+{number}-1^2:answer.txt")]);
        assert_eq!(work, format!("try {number}"));
    }
    let shown = place.run(&["task", "show", "1"]).code(0).stdout.clone();
    assert!(shown.contains("try 2 of 3 was chosen: Two is simpler."), "{shown}");
    assert!(place.run(&["runs", "show", "1"]).code(0).stdout.contains("try 2 is taken: Two is simpler."));
    let runs = place.run(&["runs"]).code(0).stdout.clone();
    assert!(runs.contains("1, try 3: Find the answer") && runs.contains("  1, choice "), "{runs}");
    assert_eq!((place.calls("worker"), place.calls("judge")), (3, 4));
    let workspaces = place.path("home/.cache/forkhestra/workspaces");
    let left: Vec<_> = std::fs::read_dir(workspaces).unwrap().flatten().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn tries_that_fail_their_checks_are_out_and_the_last_one_is_taken_without_a_judge() {
    let worker = "sh if [ $FORKHESTRA_TRY = 2 ]; then echo good > answer.txt; else echo broken > answer.txt; fi";
    let place = place(worker, &judge("CHOICE: 1"));
    let ran = place.run(&["task", "run", "-j", "2", "--tries", "3", "--json"]);
    assert!(ran.code(0).stderr.contains("1, try 1  is out: a step failed (run 2)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("try 2 is taken: it is the only try that was accepted"), "{}", ran.stderr);
    assert_eq!(place.calls("judge"), 1, "only the work that passed its check was judged");
    crate::answers::check("batch", &ran.stdout);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let task = &json["tasks"][0];
    let statuses: Vec<_> = task["tries"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(
        (task["chosen"].as_u64(), statuses),
        (Some(2), vec!["not accepted".into(), "accepted".into(), "not accepted".into()])
    );
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "good");
}

#[test]
fn tries_of_which_none_is_accepted_stop_the_task_and_leave_it_open() {
    let place = place("sh echo broken > answer.txt", "");
    let ran = place.run(&["task", "run", "-j", "2", "--tries", "2"]);
    let reason = "stopped: no try was accepted (try 1: a step failed; try 2: a step failed)";
    assert!(ran.code(1).stderr.contains(reason), "{}", ran.stderr);
    assert!(place.run(&["task", "list"]).stdout.contains("in_progress"));
    // The next batch begins anew.
    place.agent("worker", WRITES).agent("judge", &judge("CHOICE: 1"));
    place.run(&["task", "run", "-j", "2", "--tries", "2"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "try 1");
}

#[test]
fn tries_without_a_valid_choice_are_compared_once_more_before_the_task_stops() {
    for (answer, reason) in [
        ("I like them all.", "no try is chosen: the judge's answer has no line `CHOICE: N`"),
        ("CHOICE: 3", "no try is chosen: the judge chose try 3, which is not one of those to choose from"),
    ] {
        let place = place(WRITES, &judge(answer));
        let ran = place.run(&["task", "run", "-j", "2", "--tries", "2"]);
        assert_eq!(ran.code(1).stderr.matches(reason).count(), 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("✗ 1  stopped: the judge chose none of tries 1 and 2"), "{}", ran.stderr);
        assert_eq!(place.calls("judge"), 4);
    }
}

#[test]
fn tries_that_were_killed_continue_where_they_were() {
    let place = place("", &judge("CHOICE: 1"));
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    let waits = format!("sh touch {}-$FORKHESTRA_TRY\nwait-for {}\n{WRITES}", up.display(), go.display());
    place.agent("worker", &waits);
    let run = place.start(&["task", "run", "-j", "2", "--tries", "2"]);
    for number in 1..=2 {
        place.wait_for(&place.path(&format!("tmp/up-{number}")));
    }
    assert_eq!(run.end_by("KILL").code, None);
    std::fs::write(go, "").unwrap();
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stderr.contains("1 of 1 task landed"), "{}", ran.stderr);
    let calls = (place.calls("worker"), place.calls("judge"));
    assert_eq!(calls, (4, 3), "two attempts were interrupted: {}", ran.stderr);
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "try 1");
}

#[test]
fn tries_that_cannot_be_made_are_refused_before_anything_starts() {
    let place = place(WRITES, "");
    for (words, code, says) in [
        (&["task", "run", "-j", "2", "--tries", "1"][..], 2, "it must be a number from 2 to 9, or 2 to 9"),
        (&["task", "run", "-j", "2", "--tries", "claude,"], 2, "it must be a number from 2 to 9"),
        (&["task", "run", "--tries", "2"], 2, "--jobs <N>"),
        (&["task", "run", "-j", "2", "--tries", "2", "--chain", "plain"], 2, "batch/no-judge"),
        (&["task", "run", "-j", "2", "--tries", "claude,cloude"], 2, "[--tries:1:1]"),
        (&["task", "run", "-j", "2", "--tries", "claude,codex"], 2, "no agent of the chain `task` would use claude"),
    ] {
        let ran = place.run(words);
        assert!(ran.code(code).stderr.contains(says), "{words:?}: {}", ran.stderr);
    }
    assert_eq!(place.calls("worker"), 0);
    let shown = place.run(&["task", "run", "-j", "2", "--tries", "3", "--dry-run"]).code(0).stdout.clone();
    assert!(shown.contains("tries        3 at each task; judge chooses one"), "{shown}");
    crate::answers::check(
        "batch-plan",
        &place.run(&["task", "run", "-j", "2", "--tries", "3", "--dry-run", "--json"]).stdout,
    );
}

#[test]
fn tries_by_named_backends_use_one_each_and_the_judge_is_shown_what_each_has_changed() {
    let place = place("", "");
    let backend = |name: &str| format!(r#""{name}": {{ "program": "{name}", "permissions": {{ "edit": {{}} }} }}"#);
    let config = CHAINS.replace(
        r#""worker": { "command": "worker", "deliver": "stdin" }"#,
        r#""worker": { "systemPromptText": "Work." }"#,
    );
    place.config(&format!(r#"{{ "backends": {{ {}, {} }}, {config} }}"#, backend("first"), backend("second")));
    git(&place, &["commit", "-q", "-am", "backends"]);
    for name in ["first", "second"] {
        place.agent(name, &format!("sh echo {name} > answer.txt"));
    }
    place.agent("judge", &judge("The second one.\\nCHOICE: 2"));
    let shown = place.run(&["task", "run", "-j", "2", "--tries", "first,second", "--dry-run"]).code(0).stdout.clone();
    assert!(shown.contains("tries        2 at each task (first, second); judge chooses one"), "{shown}");
    let ran = place.run(&["task", "run", "-j", "2", "--tries", "first,second"]);
    assert!(ran.code(0).stderr.contains("1  try 2 by second is taken: The second one."), "{}", ran.stderr);
    assert_eq!((place.calls("first"), place.calls("second")), (1, 1));
    let asked = std::fs::read_to_string(place.path("agents/judge.3.stdin")).unwrap();
    for part in ["## Try 1, by first", "## Try 2, by second", "+second", "Find the answer", "CHOICE: N"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[test]
fn tries_that_were_not_chosen_stay_in_the_hub_until_their_batch_is_pruned() {
    let place = place(WRITES, &judge("CHOICE: 2"));
    place.run(&["task", "run", "-j", "2", "--tries", "2"]).code(0);
    let units = || hub(&place, &["for-each-ref", "--format=%(refname)", "refs/forkhestra/units"]).lines().count();
    assert_eq!(units(), 4, "two tries, a choice and a verification");
    assert!(place.run(&["diff", "2"]).code(0).stdout.contains("+try 1"));
    place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0);
    assert_eq!(units(), 4);
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z'");
    place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0);
    assert_eq!(units(), 0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "try 2", "what has landed stays");
}

#[test]
fn prune_keeps_a_batch_whose_completed_work_has_not_landed() {
    let place = place(WRITES, &judge("CHOICE: 2"));
    // The check passes in the task's run. The batch is interrupted while it verifies the merge.
    let up = place.path("tmp/up");
    place.write("check.sh", format!("[ -n \"$FORKHESTRA_TASK\" ] || {{ touch {}; sleep 60; }}", up.display()));
    git(&place, &["commit", "-q", "-am", "check"]);
    let run = place.start(&["task", "run", "-j", "2"]);
    place.wait_for(&up);
    assert_eq!(run.end_by("INT").code, Some(130));
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z'");
    let pruned = place.run(&["runs", "prune", "--older-than", "30d", "--yes"]);
    assert!(pruned.code(0).words().contains("run 1 is kept: work of its tasks has not landed"), "{}", pruned.stderr);
    place.write("check.sh", "true");
    git(&place, &["commit", "-q", "-am", "check again"]);
    place.run(&["task", "run", "-j", "2", "1"]).code(0);
    assert!(place.run(&["task", "list"]).stdout.contains("landed as"));
}

#[test]
fn a_task_whose_judge_chose_no_try_lands_with_the_first_accepted_one_once_it_is_approved() {
    let place = place(WRITES, &judge("Both are good."));
    let ran = place.run(&["task", "run", "-j", "3", "--tries", "2"]);
    assert!(ran.code(1).stderr.contains("the judge chose none of tries 1 and 2, which were all accepted"));
    assert!(ran.stderr.contains("next: forkhestra task approve 1"), "{}", ran.stderr);
    place.run(&["task", "approve", "1"]).code(0);
    place.run(&["task", "run", "-j", "1"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "try 1");
    assert_eq!(place.calls("worker"), 2);
}

#[test]
fn a_task_of_which_no_try_was_accepted_lands_with_the_first_one_once_it_is_approved() {
    let place = place("sh echo broken $FORKHESTRA_TRY > answer.txt", &judge("CHOICE: 1"));
    place.run(&["task", "run", "-j", "2", "--tries", "2"]).code(1);
    place.run(&["task", "approve", "1"]).code(0);
    place.run(&["task", "run", "-j", "1", "--unverified"]).code(0);
    assert_eq!(hub(&place, &["show", "forkhestra/line:answer.txt"]), "broken 1");
}
