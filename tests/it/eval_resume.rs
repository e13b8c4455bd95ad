//! An evaluation that was interrupted goes on where it was, and nothing is paid for twice.

use crate::evaluations::{CASES, calls, place, suite};
use crate::support::LONG;
use std::fs;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[test]
fn a_signal_ends_all_cases_that_are_under_way_and_a_resume_asks_only_what_is_open() {
    let place = place();
    place.config(r#"{ "agents": { "shouter": { "command": "sh slow.sh", "deliver": "stdin" } }, "chains": {} }"#);
    place.write(
        "slow.sh",
        "echo x >> calls.txt\ninput=$(tail -1)\ncase \"$input\" in *you*|goodbye) [ -f go ] || { echo $$ >> hanging; exec sleep 1000; } ;; esac\n\
         echo \"$input\" | tr a-z A-Z\n",
    );
    place.write("suite.json", suite("", CASES));
    let running = place.start(&["eval", "run", "suite.json", "-j", "2"]);
    let deadline = Instant::now() + LONG;
    while fs::read_to_string(place.work("hanging")).unwrap_or_default().lines().count() < 2 {
        assert!(Instant::now() < deadline, "two cases at once");
        std::thread::yield_now();
    }
    let ran = running.end_by("INT");
    assert!(ran.code(130).stderr.contains("next: forkhestra resume 1\n"), "{}", ran.stderr);
    place.write("go", "");
    let before = calls(&place);
    let ran = place.run(&["resume", "1"]);
    assert!(ran.code(0).stdout.contains("all 4 cases passed"), "{}", ran.all());
    assert_eq!(calls(&place) - before, 4 - (before - 2), "what was answered is not asked again");
    let last = place.events(1).pop().unwrap();
    assert_eq!(last["event"]["type"], "runFinished");
    let numbers: Vec<u64> = place.events(1).iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

/// Wherever it was interrupted, a resume has the same result.
#[test]
fn an_improvement_that_is_killed_at_any_write_goes_on_to_the_same_prompt() {
    for writes in [1, 2, 5, 12, 19, 20, 21, 30, 40] {
        let mut place = place();
        place.agent(
            "rewriter",
            "print Repeat the text in capital letters.\nnext\nprint Write the text in capital letters only.",
        );
        place.set("FORKHESTRA_TEST_ABORT_AFTER_WRITES", &writes.to_string());
        let mut command = place.command(&["eval", "improve", "suite.json"]);
        let _ = command.output().unwrap();
        place.assert_nothing_is_left();
        place.set("FORKHESTRA_TEST_ABORT_AFTER_WRITES", "0");
        let ran = place.run(&["resume", "1"]);
        assert!(ran.code(0).stdout.contains("generation 1 did better"), "{writes}: {}", ran.all());
    }
}

/// An answer is stored in the commit of its attempt's end. Here, the test build aborts after the k-th commit.
#[test]
fn an_attempt_that_has_ended_is_not_asked_again_wherever_the_evaluation_was_killed() {
    for writes in 1..=14 {
        let mut place = place();
        place.set("FORKHESTRA_TEST_ABORT_AFTER_WRITES", &writes.to_string());
        let _ = place.command(&["eval", "run", "suite.json"]).output().unwrap();
        let events = place.events(1);
        let of = |kind: &str| events.iter().filter(|event| event["event"]["type"] == kind).count();
        place.assert_nothing_is_left();
        // One to begin, for each case its plan, its start and its end, and one for the end of the run.
        assert_eq!(of("runFinished"), usize::from(writes == 14), "after {writes} commits");
        if writes == 14 {
            return;
        }
        let before = calls(&place);
        place.set("FORKHESTRA_TEST_ABORT_AFTER_WRITES", "0");
        place.run(&["resume", "1"]).code(1);
        assert_eq!(calls(&place) - before, 4 - of("attemptFinished"), "after {writes} commits");
    }
}

/// The attempt before the wait has failed, but the case has not been judged.
#[test]
fn a_case_whose_agent_waits_when_the_evaluation_is_interrupted_is_open_and_not_an_error() {
    let place = place();
    place.config(
        r#"{ "backends": { "mine": { "program": "mine", "output": "claude-stream", "permissions": { "edit": {} } } },
             "agents": { "shouter": { "backend": "mine" } }, "chains": {} }"#,
    );
    let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600;
    let limited = format!(r#"{{"type":"result","result":"Claude AI usage limit reached|{end}","is_error":true}}"#);
    place.agent("mine", &format!("print {limited}\nexit 1"));
    let running = place.start(&["eval", "run", "suite.json", "--limit", "wait=2h", "--events", "ndjson=events"]);
    place.until(|| fs::read_to_string(place.work("events")).is_ok_and(|said| said.contains("waitStarted")));
    running.end_by("INT").code(130);
    let judged = place.events(1).iter().filter(|event| event["event"]["event"]["type"] == "caseJudged").count();
    assert_eq!(judged, 0, "{:?}", place.events(1));
}
