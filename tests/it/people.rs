//! A person can always decide, and only a person.

use crate::support::Place;

const CONFIG: &str = r#"{
  "agents": { "j": { "command": "j", "role": "judge" } },
  "chains": { "task": { "steps": [{ "group": [{ "agent": "c" }, { "agent": "j" }], "iterations": 2 }] } }
}"#;

const WORKS: &str = "sh date +%N >> work.txt\nprint Done.";

fn place(coder: &str, judge: &str) -> Place {
    let place = Place::new();
    place.config(CONFIG).agent("c", coder).agent("j", judge);
    place
}

fn program() -> String {
    assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string()
}

#[test]
fn resume_approve_lets_the_work_stand_wherever_a_person_is_waited_for() {
    for judge in [
        "print I am not sure.",
        "print It is unclear what is wanted.\nprint VERDICT: dispute",
        "print It is wrong.\nprint VERDICT: reject",
    ] {
        let place = place(WORKS, judge);
        place.run(&["(c -> j):2 -> c", "-p", "Work."]).code(3);
        let calls = place.calls("c");
        let ran = place.run(&["resume", "--approve", "--notes", "I looked at it."]);
        assert!(ran.code(0).stderr.contains("a human approves: I looked at it."), "{judge}: {}", ran.stderr);
        assert_eq!(place.calls("c"), calls + 1, "the steps behind it run");
    }
    // A worker's dispute, and a rejection by an agent that is not a judge.
    let disputed = place("print It contradicts itself.\nprint VERDICT: dispute", "print VERDICT: approve");
    disputed.run(&["(c -> j):2", "-p", "Work."]).code(3);
    disputed.run(&["resume", "1", "--approve"]).code(0);
    assert_eq!(disputed.calls("j"), 0);
    let objected = place("print It is wrong.\nprint VERDICT: reject", "print never");
    objected.run(&["c", "-p", "Work."]).code(3);
    objected.run(&["resume", "--approve"]).code(0);
    assert_eq!(objected.calls("c"), 1);
}

#[test]
fn resume_reject_goes_on_with_a_persons_words() {
    let place = place(
        WORKS,
        "print It is wrong.\nprint VERDICT: reject\nnext\nprint It is wrong.\nprint VERDICT: reject\nnext\nprint VERDICT: approve",
    );
    place.run(&["(c -> j):2", "-p", "Work."]).code(3);
    let ran = place.run(&["resume", "--reject", "- work.txt:1: leave the number out"]);
    assert!(ran.code(0).stderr.contains("a human rejects"), "{}", ran.stderr);
    assert!(ran.stderr.contains("round 2 ends: a human rejected\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("round 3 of 3"), "a person asks for one more: {}", ran.stderr);
    let told = place.call("c", 3);
    assert!(told.contains("A person rejected round 2") && told.contains("leave the number out"), "{told}");
    // Outside of a group, no round follows.
    let alone = self::place(WORKS, "print I am not sure.");
    alone.run(&["c -> j", "-p", "Work."]).code(3);
    let ran = alone.run(&["resume", "--reject", "It is wrong."]);
    assert!(ran.code(1).stderr.contains("stopped at step 2 of 2: a human rejected the work"), "{}", ran.stderr);
    let shown = alone.run(&["runs", "show"]);
    assert!(shown.code(0).stdout.contains("a human rejected the work"), "{}", shown.stdout);
    assert!(!ran.stderr.contains("j rejected") && !shown.stdout.contains("j rejected"), "{}", shown.stdout);
    let page = alone.run(&["report", "--format", "md", "-o", "-"]);
    assert!(page.code(0).stdout.contains("a human rejects: It is wrong."), "{}", page.stdout);
}

#[test]
fn a_persons_decision_moves_the_task_and_settles_its_dispute() {
    let disputes = "print The specification contradicts itself.\nprint VERDICT: dispute";
    let place = place(WORKS, disputes);
    place.run(&["task", "add", "T"]).code(0);
    place.run(&["task", "run"]).code(3);
    place.run(&["resume", "--approve", "--notes", "It is as I want it."]).code(0);
    let shown = place.run(&["task", "show", "1"]);
    assert!(shown.code(0).stdout.contains("disputed → completed  by a human"), "{}", shown.stdout);
    assert!(place.run(&["dispute", "list"]).code(0).stdout.contains("coder"), "resolved for the coder");
    let rejected = self::place(WORKS, &format!("{disputes}\nnext\nprint VERDICT: approve"));
    rejected.run(&["task", "add", "T"]).code(0);
    rejected.run(&["task", "run"]).code(3);
    rejected.run(&["resume", "--reject", "Use the newer part of it."]).code(0);
    let shown = rejected.run(&["task", "show", "1"]);
    assert!(
        shown.code(0).stdout.contains("disputed → in_progress  by a human") && shown.stdout.contains("completed"),
        "{}",
        shown.stdout
    );
}

#[test]
fn a_decision_where_nobody_waits_for_one_is_refused() {
    let place = place(WORKS, "print VERDICT: approve");
    place.run(&["(c -> j):2", "-p", "Work."]).code(0);
    let ran = place.run(&["resume", "1", "--approve"]);
    assert!(ran.code(2).words().contains("run 1 is not waiting for a human decision"), "{}", ran.stderr);
    assert!(
        place.run(&["resume", "--approve"]).code(2).words().contains("no run that is waiting for a human decision")
    );
    place.agent("j", "print It is wrong.\nprint VERDICT: reject");
    place.run(&["(c -> j):1", "-p", "Work."]).code(3);
    let listed = place.run(&["dispute", "list"]);
    assert!(listed.code(0).stdout.contains("run 2 waits for your decision: forkhestra resume 2 --approve, or"));
    assert!(place.run(&["resume", "2", "--reject", " "]).code(2).words().contains("--reject needs a reason"));
    let plain = place.run(&["resume", "2"]);
    assert!(plain.code(2).words().contains("or decide: --approve"), "{}", plain.stderr);
}

#[test]
fn a_dispute_can_be_deleted_and_its_task_goes_on() {
    let place = place("print I do not like it.\nprint VERDICT: dispute", "print VERDICT: approve");
    place.run(&["task", "add", "T"]).code(0);
    place.run(&["task", "run"]).code(3);
    let ran = place.run(&["dispute", "delete", "1"]);
    assert_eq!(ran.code(0).stdout, "dispute 1 is deleted; the status of task 1 is now in_progress\n");
    assert!(!place.run(&["dispute", "list"]).code(0).stdout.contains("I do not like it"));
    assert!(place.run(&["dispute", "delete", "1"]).code(2).words().contains("no dispute 1"));
    place.agent("c", WORKS);
    place.run(&["task", "run", "1"]).code(0);
}

/// Commands for people, run by an agent, even by one that clears its environment.
#[test]
fn an_agent_cannot_decide_in_a_persons_place() {
    let program = program();
    let verbs = [
        "task approve 1",
        "task reset 1",
        "task delete 1",
        "dispute resolve 1 coder",
        "dispute delete 1",
        "resume --approve",
        "runs prune --older-than 1d --yes",
    ];
    let tries: Vec<String> = verbs
        .iter()
        .map(|verb| format!("sh env -i PATH=/usr/bin:/bin HOME=$HOME {program} {verb} >> ../tmp/said 2>&1; echo \"{verb}: $?\" >> ../tmp/codes"))
        .collect();
    let place = place(&format!("{WORKS}\n{}", tries.join("\n")), "print It is wrong.\nprint VERDICT: reject");
    place.run(&["task", "add", "T"]).code(0);
    place.run(&["task", "run"]).code(3);
    let codes = place.read("../tmp/codes");
    assert_eq!(codes.lines().filter(|line| line.ends_with(": 2")).count(), verbs.len() * 2, "{codes}");
    let said = place.read("../tmp/said").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said.matches("this is only for humans").count(), verbs.len() * 2, "{said}");
}

/// Its parents have exited, its session is another one, and nothing of the run is in its environment.
#[test]
fn an_agent_cannot_decide_through_a_process_that_it_has_cut_off() {
    let place = Place::new();
    let (said, code) = (place.path("tmp/said"), place.path("tmp/code"));
    let (said, code, program) = (said.display(), code.display(), program());
    // It waits until its parent is the lifeline.
    let script = format!(
        "until p=$(sed -n 's/^PPid:.//p' /proc/$$/status); grep -q fk-lifeline /proc/$p/comm; do :; done\n\
         {program} -C {} tell approved > {said} 2>&1\necho $? > {code}\n",
        place.work("").display()
    );
    std::fs::write(place.path("tmp/cut-off"), script).unwrap();
    let start = format!("(env -i PATH=$PATH setsid sh {} &)", place.path("tmp/cut-off").display());
    place.agent("c", &format!("sh {start}\nwait-for {code}\nmarker"));
    let ran = place.run(&["c:2", "-p", "Work."]);
    let said = std::fs::read_to_string(place.path("tmp/said")).unwrap();
    assert!(said.contains("this is only for humans"), "{said}\n{}", ran.code(0).stderr);
}

#[test]
fn a_judge_starts_no_run() {
    let program = program();
    let place =
        place(WORKS, &format!("sh {program} c -p x 2> ../tmp/said; echo $? > ../tmp/code\nprint VERDICT: approve"));
    place.run(&["(c -> j):1", "-p", "Work."]).code(0);
    assert_eq!((place.read("../tmp/code").trim(), place.calls("c")), ("2", 1));
    assert!(place.read("../tmp/said").contains("a judge may not start runs"));
    place.agent("j", &format!("sh {program} eval run suite.json 2> ../tmp/said\nprint VERDICT: approve"));
    place.run(&["(c -> j):1", "-p", "Work."]).code(0);
    assert!(place.read("../tmp/said").contains("a judge may not start runs"), "{}", place.read("../tmp/said"));
}
