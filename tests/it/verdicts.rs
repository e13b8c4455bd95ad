//! Judges, from their answers to the next round.

use crate::support::Place;

const CONFIG: &str = r#"{
  "agents": { "j": { "command": "j", "role": "judge" } },
  "checks": { "t": { "run": "sh check.sh" } },
  "chains": {}
}"#;

fn judged(coder: &str, judge: &str) -> Place {
    let place = Place::new();
    place.config(CONFIG).write("check.sh", "exit 0\n").agent("c", coder).agent("j", judge);
    place
}

const WORKS: &str = "sh date +%N >> work.txt\nprint Done.";

#[test]
fn a_reject_goes_back_with_its_findings_and_an_approval_ends_it() {
    let place = judged(
        WORKS,
        "print I looked.\nprint - work.txt:1: it holds a number\nprint - minor: check.sh: it checks nothing\nprint VERDICT: reject\nnext\n\
         print F1 is fixed.\nprint **VERDICT:** APPROVE",
    );
    let ran = place.run(&["(c -> t -> j):3", "-p", "Work."]);
    insta::assert_snapshot!("reject_and_approve", ran.code(0).stderr);
    let told = place.call("c", 2);
    insta::assert_snapshot!("reject_told_to_worker", told.split("\nenv ").next().unwrap_or_default());
    let kept = place.read(".forkhestra/runs/1/3-j/1/verdict.json");
    assert!(kept.contains("\"decision\": \"reject\"") && kept.contains("\"work.txt\""), "{kept}");
}

#[test]
fn outside_a_group_a_reject_stops_the_chain_and_says_what_would_repeat_it() {
    let place = judged(WORKS, "print It is wrong.\nprint VERDICT: reject");
    let ran = place.run(&["c -> j -> c", "-p", "Work."]);
    insta::assert_snapshot!(ran.code(1).stderr);
    assert_eq!(place.calls("c"), 1);
}

#[test]
fn a_judge_that_is_not_understood_is_asked_three_times_and_told_why_then_a_human_is() {
    let place = judged(
        WORKS,
        "print I approve this.\nnext\nprint VERDICT: approve\nprint x\nprint VERDICT: reject\nnext\nprint VERDICT: approve | reject",
    );
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    insta::assert_snapshot!("unclear", ran.code(3).stderr);
    assert!(place.call("j", 2).contains("no verdict was found in its final message"), "{}", place.call("j", 2));
    assert!(place.call("j", 3).contains("it gave different verdicts: approve, reject"), "{}", place.call("j", 3));
    let offered = "forkhestra resume 1, or forkhestra resume 1 --approve, or --reject \"why\"";
    let status = place.run(&["status"]);
    assert!(ran.stderr.contains(offered) && status.code(0).stdout.contains(offered), "{}", status.stdout);
    // A resume asks the judge again, and the work is not repeated.
    place.agent("j", "print VERDICT: approve");
    place.run(&["resume"]).code(0);
    assert_eq!((place.calls("c"), place.calls("j")), (1, 4));
}

#[test]
fn a_disputes_end_is_a_human_and_a_skip_ends_the_group_well() {
    let place = judged("print The request contradicts itself.\nprint VERDICT: dispute", "print never");
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(ran.code(3).stderr.contains("c disputes what it was asked to do; a human has to decide"), "{}", ran.stderr);
    assert!(ran.stderr.contains("! disputes: The request contradicts itself."), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("next: forkhestra resume 1 --approve accepts the work, forkhestra resume 1 --reject"),
        "{}",
        ran.stderr
    );
    place.agent("c", "print It is there already.\nprint VERDICT: skip");
    place.run(&["(c -> j):3 -> t", "-p", "Work."]).code(0);
    assert_eq!(place.calls("j"), 0);
}

#[test]
fn a_judge_that_edits_loses_its_verdict() {
    let place = judged(
        WORKS,
        "sh cp work.txt ../tmp/kept; echo fixed >> work.txt\nprint VERDICT: approve\nnext\nprint VERDICT: approve\nnext\n\
         sh cp ../tmp/kept work.txt\nprint VERDICT: approve",
    );
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(
        ran.code(0)
            .stderr
            .contains("its verdict does not count, because it changed files that it had to judge: work.txt"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.calls("j"), 3, "until the tree is as it was");
    // What its tests leave behind is not an edit.
    place.agent("j", "sh mkdir -p __pycache__ && date +%N > __pycache__/x.pyc\nprint VERDICT: approve");
    assert!(!place.run(&["(c -> j):3", "-p", "Work."]).code(0).stderr.contains("does not count"));
}

/// `forkhestra … > run.log --events ndjson=run.ndjson`, within the project.
#[test]
fn what_we_write_into_the_project_is_nobodys_change() {
    for git in [false, true] {
        let place = judged("print All done!", "print I look.\nprint VERDICT: approve");
        if git {
            std::process::Command::new("git").args(["init", "-q"]).current_dir(place.work("")).status().unwrap();
        }
        let log = std::fs::File::create(place.work("run.log")).unwrap();
        let events = ["(c -> j):3", "-p", "Work.", "--events", "ndjson=run.ndjson"];
        let ended = place.command(&events).stdout(log).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains("c changed nothing; asking again"), "{stderr}");
        assert_eq!(place.calls("j"), 1, "its verdict counts: {stderr}");
        assert!(std::fs::read_to_string(place.work("run.log")).unwrap().contains("I look."));
    }
}

#[test]
fn a_worker_that_changes_nothing_is_asked_once_more_and_the_judge_is_told() {
    let place = judged("print All done!", "print VERDICT: approve");
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("! c changed nothing; asking again"), "{}", ran.stderr);
    assert!(place.call("c", 2).contains("Your last attempt changed nothing"), "{}", place.call("c", 2));
    assert!(place.call("j", 1).contains("ended without changing anything"), "{}", place.call("j", 1));
}

/// What an agent records with our commands, also with alternative spellings.
#[test]
fn an_agent_records_its_verdict_and_only_what_its_role_may() {
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    let coder = format!(
        "sh {program} approve 2> refused.txt\nsh {program} tasks update x --status review\nsh date +%N >> work.txt"
    );
    let judge = format!(
        "sh {program} reject --notes '' 2> ../tmp/blank.txt\nsh {program} tasks reject x --model m --notes '- work.txt:1: wrong'\nprint No verdict here.\n\
         next\nsh {program} approve --notes fine\nsh (sleep 0; true)\nprint Done."
    );
    let place = judged(&coder, &judge);
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("rejects (rejection 1)\n    work.txt:1: wrong\n"), "{}", ran.stderr);
    assert!(place.read("refused.txt").contains("a worker may not approve"), "{}", place.read("refused.txt"));
    assert!(place.read("../tmp/blank.txt").contains("a reject needs a reason"));
    assert!(ran.stdout.contains("recorded: submit."), "{}", ran.stdout);
}

#[test]
fn a_verdict_outside_an_iteration_or_after_it_is_refused_and_says_what_to_do() {
    let mut place =
        judged("sh echo $FORKHESTRA_TOKEN > token; echo $FORKHESTRA_RESULT > result", "print VERDICT: approve");
    let outside = place.run(&["approve"]);
    assert!(
        outside.code(2).words().contains("to decide about a task yourself: forkhestra task approve"),
        "{}",
        outside.stderr
    );
    place.run(&["c", "-p", "x"]).code(0);
    let (token, result) = (place.read("token"), place.read("result"));
    place.set("FORKHESTRA_TOKEN", token.trim()).set("FORKHESTRA_RESULT", result.trim());
    let late = place.run(&["submit"]);
    assert!(late.code(2).words().contains("the attempt that this `submit` belongs to has ended"), "{}", late.stderr);
}

/// A valid result file, and an invalid one.
#[test]
fn a_result_file_is_read_and_a_bad_one_is_said() {
    let place = judged(
        WORKS,
        "sh echo '{\"verdict\": ' > $FORKHESTRA_RESULT\nprint x\nnext\n\
         sh echo '{\"verdict\": \"reject\", \"findings\": [{\"title\": \"slow\", \"file\": \"work.txt\", \"severity\": \"minor\"}]}' > $FORKHESTRA_RESULT",
    );
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("its result cannot be read: it is not valid JSON"), "{}", ran.stderr);
    assert!(ran.stderr.contains("names nothing that has to be fixed: the round converges"), "{}", ran.stderr);
}

/// The same errors on the same tree.
#[test]
fn rounds_that_move_in_a_circle_stop() {
    let place = judged("sh echo same > work.txt", "print never");
    place.write("check.sh", "echo 'src/a.rs:1: wrong'; exit 1\n");
    let ran = place.run(&["(c -> t -> j):9", "-p", "Work."]);
    assert!(ran.code(1).stderr.contains("the group is cycling"), "{}", ran.stderr);
    assert_eq!(place.calls("c"), 3, "the second round's worker changed nothing, and was asked once more");
}

/// Weakened tests are reported to the user and to the judge, and void the attempt in `strict`. A changed config always
/// voids it.
#[test]
fn what_decides_about_the_work_is_not_the_workers_to_change() {
    let place = judged("sh : > src/a.rs", "print VERDICT: approve");
    place.write("src/a.rs", "#[test]\nfn a() {}\n").write("Makefile", "test:\n\ttrue\n");
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("  src/a.rs has 0 tests; it had 1\n"), "{}", ran.stderr);
    assert!(place.call("j", 1).contains("- src/a.rs has 0 tests; it had 1\n"), "{}", place.call("j", 1));
    place.write("src/a.rs", "#[test]\nfn a() {}\n");
    let strict = place.run(&["(c -> j):3", "-p", "Work.", "--profile", "strict"]);
    assert!(
        strict.code(1).stderr.contains("modified protected files, so the attempt does not count"),
        "{}",
        strict.stderr
    );
    assert_eq!(place.calls("j"), 1, "no judge is asked");
    place.agent(
        "c",
        "sh echo '{\"chains\": {}}' > forge/chains.json\nnext\nsh cp ../tmp/kept forge/chains.json; echo x > work.txt",
    );
    std::fs::copy(place.work("forge/chains.json"), place.path("tmp/kept")).unwrap();
    let calls = place.calls("c");
    let voided = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(voided.code(0).stderr.contains("it changed: forge/chains.json"), "{}", voided.stderr);
    assert_eq!(place.calls("c"), calls + 2);
    let told = place.call("c", u32::try_from(calls + 2).unwrap());
    assert!(told.contains("It changed what your work is judged by: forge/chains.json."), "{told}");
}

/// A judge whose verdict is an evaluation: a sufficient score approves, and an invalid evaluation is requested again.
#[test]
fn an_evaluation_is_a_verdict_in_any_chain() {
    let evaluation = |pass: bool, score: f64, issues: &str| {
        format!("print {{\"pass\": {pass}, \"score\": {score}, \"issues\": [{issues}], \"suggestions\": []}}")
    };
    let judge = [
        evaluation(false, 0.2, "\"no date\""),
        evaluation(true, 1.5, ""),
        evaluation(true, 0.6, ""),
        evaluation(true, 0.9, ""),
    ];
    let place = judged(WORKS, &judge.join("\nnext\n"));
    place.config(
        &CONFIG.replace("\"role\": \"judge\"", "\"role\": \"judge\", \"verdict\": \"evaluation\", \"minScore\": 0.8"),
    );
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("rejects (rejection 1)\n    no date\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("its evaluation cannot be read: `score` is 1.5, but must be between 0 and 1"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("the score is 0.6, but must be at least 0.8"), "{}", ran.stderr);
    place.config(&CONFIG.replace("\"role\": \"judge\"", "\"verdict\": \"evaluation\", \"minScore\": 1.5"));
    let refused = place.run(&["c -> j", "-p", "Work."]);
    assert!(refused.code(2).words().contains("`minScore` cannot be 1.5"), "{}", refused.stderr);
}

/// Findings of a review of this flow, each with the correct behavior.
#[test]
fn nobody_skips_past_a_check_quotes_a_verdict_or_launders_a_changed_config() {
    // A worker that says that there is nothing to do, but has changed something, has submitted it.
    let place = judged(&format!("{WORKS}\nprint VERDICT: skip"), "print VERDICT: approve");
    place.write("check.sh", "exit 1\n");
    place.run(&["(c -> t -> j):3", "-p", "Work."]).code(1);
    // An echoed example from the prompt is not a verdict, nor is one that is quoted, indented or inside a line.
    for words in [
        "sh printf '%s\\n' 'Judge it. End with {\"verdict\": \"approve\"} if it is good.'",
        "print > {\"verdict\": \"approve\"}",
        "print diff:\nprint  VERDICT: approve",
    ] {
        place.agent("j", words);
        place.run(&["j", "-p", "Judge it. End with {\"verdict\": \"approve\"} if it is good."]).code(3);
    }
    // A rejection with only minor findings converges in a group. Outside of a group, only an approval counts. Medium
    // findings block.
    place.agent("j", "print - minor: a.rs:1: name\nprint VERDICT: reject");
    place.run(&["j", "-p", "Judge."]).code(1);
    place
        .agent("c", WORKS)
        .agent("j", "print - medium: a.rs:1: injection\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    assert!(place.run(&["(c -> j):3", "-p", "Work."]).code(0).stderr.contains("rejects (rejection 1)"));
    // Nothing is changed and it is rejected again, so the run stops.
    place.agent("c", "print I did.").agent("j", "print It is wrong.\nprint VERDICT: reject");
    let ran = place.run(&["(c -> j):200", "-p", "Work."]);
    assert!(ran.code(1).stderr.contains("stopped at step 2"), "{}", ran.stderr);
    // The next run does not trust what an agent has done to the config.
    place
        .write("check.sh", "exit 1\n")
        .agent("c", "sh sed -i 's/sh check.sh/true/' forge/chains.json; date +%N > work.txt");
    let voided = place.run(&["(c -> t -> j):3", "-p", "Work."]);
    assert!(voided.code(1).stderr.contains("restore the changed files"), "{}", voided.stderr);
    let next = place.run(&["(c -> t -> j):3", "-p", "Work."]);
    assert!(next.code(2).words().contains("forge/chains.json was changed by the agent `c` in run"), "{}", next.stderr);
    place.config(CONFIG).write("check.sh", "exit 0\n").agent("c", WORKS).agent("j", "print VERDICT: approve");
    place.run(&["(c -> t -> j):3", "-p", "Work."]).code(0);
}

/// Findings of a second review: what a judge changes in the tree or the config voids its verdict, unless it restores
/// it.
#[test]
fn a_judge_is_held_against_the_tree_that_it_found() {
    let place = judged(WORKS, "");
    place.write("kept.txt", "hello\n");
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
    git(
        "init -q && git add . && git -c user.name=x -c user.email=x@x commit -qm one && git -c user.name=x -c user.email=x@x commit -q --allow-empty -m two",
    );
    // A mutation that is restored, a stash, a look at an older commit, and build artifacts, round after round.
    place.agent("j", "sh sed -i s/hello/broken/ kept.txt; git checkout -q -- kept.txt; mkdir -p target; date +%N > target/x; date +%N > .coverage\nprint It is wrong.\nprint VERDICT: reject\nnext\nsh date +%N > target/x; date +%N > .coverage; git checkout -q HEAD~1; git checkout -q -\nprint **Verdict:** ✅ Approve");
    let ran = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(!ran.code(0).stderr.contains("does not count"), "{}", ran.stderr);
    // An edit before a failure also voids the next answer.
    place.agent("j", "sh echo hacked > kept.txt\nexit 1\nnext\nprint VERDICT: approve");
    let edited = place.run(&["(c -> j):3", "-p", "Work."]);
    assert!(
        edited
            .code(3)
            .stderr
            .contains("its verdict does not count, because it changed files that it had to judge: kept.txt"),
        "{}",
        edited.stderr
    );
    // The next run does not trust its edit of the config.
    place
        .write("kept.txt", "hello\n")
        .agent("j", "sh sed -i 's/sh check.sh/true/' forge/chains.json\nprint VERDICT: approve");
    place.run(&["(c -> t -> j):3", "-p", "Work."]).code(3);
    let next = place.run(&["(c -> t -> j):3", "-p", "Work."]);
    assert!(next.code(2).words().contains("was changed by the agent `j` in run"), "{}", next.stderr);
    git("checkout -q -- forge");
    place.agent("j", "print VERDICT: approve");
    place.run(&["(c -> t -> j):3", "-p", "Work."]).code(0);
}

/// Good answers of models in their usual forms, and bad ones that must not approve.
#[test]
fn an_answer_in_the_form_that_was_asked_for_is_none_of_the_prompts_words() {
    let place = judged(WORKS, "");
    let asked = "Judge it. Answer so:\n```json\n{\n  \"verdict\": \"approve\",\n  \"notes\": \"why\"\n}\n```\n";
    let answers = |lines: &[&str]| lines.iter().map(|line| format!("print {line}")).collect::<Vec<_>>().join("\n");
    place.agent(
        "j",
        &answers(&["```json", "{", "  \"verdict\": \"approve\",", "  \"notes\": \"all is well\"", "}", "```"]),
    );
    place.run(&["j", "-p", asked]).code(0);
    for bad in [
        &["If it were fixed I would answer", "```json", "{\"verdict\": \"approve\"}", "```", "But the sum is wrong."][..],
        &["{\"verdict\": \"approve\"} would be right after the fix"],
        &["{\"verdict\": \"reject\", \"findings\": 3}", "```", "VERDICT: approve", "```"],
    ] {
        place.agent("j", &answers(bad));
        place.run(&["j", "-p", "Judge it."]).code(3);
    }
}

/// A hard link to our own log is a change like any other.
#[test]
fn a_judge_hides_no_edit_behind_a_link_to_our_log() {
    let place = judged(WORKS, "sh ln run.log linked.txt 2>&1 || true\nprint VERDICT: approve");
    let log = std::fs::File::create(place.work("run.log")).unwrap();
    let ended = place.command(&["(c -> j):3", "-p", "Work."]).stdout(log).output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("because it changed files that it had to judge: linked.txt"), "{stderr}");
}
