//! `report --format junit`: the checks and the verdicts of runs as JUnit XML, for CI systems.

use super::support::Place;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};

/// Reads a report back, and fails if it is no valid XML 1.0.
#[track_caller]
fn parsed(text: &str) -> Report {
    let forbidden = |next: char| (next < ' ' && !"\n\t\r".contains(next)) || ('\u{fffe}'..='\u{ffff}').contains(&next);
    assert!(!text.contains(forbidden), "{text:?}");
    Report::deserialize_from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn junit(place: &Place, words: &[&str]) -> Report {
    let words = [&["report"], words, &["--format", "junit", "-o", "-"]].concat();
    // Not `Place::run`, because a run may be in progress.
    parsed(&String::from_utf8(place.command(&words).output().unwrap().stdout).unwrap())
}

/// Returns a test case in words: its name, its status, its message and its text, and the messages of its reruns.
fn told(case: &TestCase) -> String {
    let (status, reruns) = match &case.status {
        TestCaseStatus::Success { flaky_runs } => ("passed".to_string(), flaky_runs),
        TestCaseStatus::NonSuccess { kind, message, ty, description, reruns } => {
            let kind = if *kind == NonSuccessKind::Failure { "failure" } else { "error" };
            let [message, ty, text] = [message, ty, description].map(|text| text.as_deref().unwrap_or("-"));
            (format!("{kind} ({ty}): {message}\n    {}", text.replace('\n', "\n    ")), &reruns.runs)
        }
        TestCaseStatus::Skipped { message, .. } => {
            return format!("{}: skipped: {}", case.name.as_str(), message.as_deref().unwrap_or("-"));
        }
    };
    let mut words = format!("{}: {status}", case.name.as_str());
    for rerun in reruns {
        let [message, text] = [&rerun.message, &rerun.description].map(|text| text.as_deref().unwrap_or("-"));
        words = format!("{words}\n  before: {message}: {}", text.replace('\n', " | "));
    }
    words
}

fn cases(report: &Report) -> String {
    let suite = &report.test_suites[0];
    suite.test_cases.iter().map(told).collect::<Vec<_>>().join("\n")
}

/// A chain whose check fails in the first round, whose judge rejects in the second, and that ends at a failing check.
fn shipped() -> Place {
    let place = Place::new();
    place.agent("writer", "sh echo 1 >> n");
    place.agent("judge", "print - app.txt:1: not what was asked\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
    place.write(
        "test.sh",
        "test $(wc -l < n) -gt 1 || { echo 'a.py:3: error: no one'; echo 'b.py:4: error: no two' >&2; exit 1; }\n",
    );
    place.config(
        r#"{"agents": {"judge": {"command": "judge", "role": "judge"}},
            "checks": {"test": "sh test.sh", "late": "echo something; exit 3", "never": "true",
                       "extra": {"run": "echo c.py:1: error: three; exit 1", "optional": true}},
            "chains": {"ship": "(writer -> test -> judge):5 -> extra -> test -> late -> never"}}"#,
    );
    place.run(&["--chain", "ship", "-p", "x"]).code(1);
    place
}

#[test]
fn a_check_is_a_test_case_that_its_last_attempt_decides_and_a_judge_one_with_its_findings() {
    let place = shipped();
    let report = junit(&place, &[]);
    insta::assert_snapshot!(cases(&report), @r"
    test, step 2: passed
      before: failed with exit code 1: a.py:3: no one | b.py:4: no two
    judge: passed
      before: rejects: app.txt:1: not what was asked: app.txt:1: not what was asked
    extra: skipped: optional: failed with exit code 1
    test, step 5: passed
    late: failure (failed): failed with exit code 3
        something
    never: skipped: not reached
    the run: failure (incomplete): stopped at step 6 of 7: late failed with exit code 3
        stopped at step 6 of 7: late failed with exit code 3
        next: forkhestra resume 1
    ");
    let suite = &report.test_suites[0];
    assert_eq!(
        (suite.name.as_str(), suite.timestamp.unwrap().to_rfc3339().as_str()),
        ("ship", "2026-01-01T00:00:00+00:00")
    );
    assert_eq!((suite.tests, suite.failures, suite.errors, suite.skipped), (7, 2, 0, 2));
    assert_eq!((report.tests, report.failures), (7, 2), "the totals are those of the suites");
    let late = &suite.test_cases[4];
    assert_eq!(late.classname.as_deref(), Some("ship"));
    assert_eq!(late.system_out.as_deref(), Some("something"));
    let commands: Vec<&str> =
        suite.test_cases.iter().flat_map(|case| &case.properties).map(|property| property.value.as_str()).collect();
    assert_eq!(commands[0], "sh test.sh");
}

#[test]
fn a_judge_that_rejects_in_the_end_fails_with_its_findings_and_names_their_place() {
    let place = Place::new();
    place.agent("lazy", "sh date +%N >> notes.txt");
    place.agent("judge", "print - app.txt:7: not <what> was asked\nprint - nit: a name\nprint VERDICT: reject");
    place.config(r#"{"agents": {"judge": {"command": "judge", "role": "judge"}}, "chains": {}}"#);
    place.run(&["(lazy -> judge):2", "-p", "x"]).code(3);
    let report = junit(&place, &[]);
    insta::assert_snapshot!(cases(&report), @r#"
    judge: failure (reject): rejects: app.txt:7: not <what> was asked
        app.txt:7: not <what> was asked
      before: rejects: app.txt:7: not <what> was asked: app.txt:7: not <what> was asked
    the run: failure (needsHuman): stopped at step 2 of 2: judge rejected the work 2 times, and no rounds are left
        stopped at step 2 of 2: judge rejected the work 2 times, and no rounds are left
        next: forkhestra resume 1 --more 3, or decide with --approve or --reject "why"
    "#);
    let judge = &report.test_suites[0].test_cases[0];
    assert_eq!((&*judge.extra["file"], &*judge.extra["line"]), ("app.txt", "7"));
}

#[test]
fn what_a_check_prints_cannot_make_the_file_invalid() {
    let place = Place::new();
    let printed = b"a.py:3: error: no <b> & ]]> \x1b[31mred\x1b[0m \x00\x01\x0b end\n\tindented\r\n50 %\r100 %\n\xff\xef\xbf\xbf\xe2\x80\xae.\n";
    place.write("printed", printed);
    place.config(r#"{"checks": {"t": "cat printed; exit 1"}, "chains": {}}"#);
    place.run(&["t"]).code(1);
    let report = junit(&place, &[]);
    let case = &report.test_suites[0].test_cases[0];
    assert_eq!(told(case), "t: failure (failed): failed with exit code 1\n    a.py:3: no <b> & ]]> red  end");
    let output = "a.py:3: error: no <b> & ]]> red  end\n    indented\n50 %\n100 %\n\u{fffd}\u{fffd}\\u{202e}.";
    assert_eq!(case.system_out.as_deref(), Some(output));
}

#[test]
fn a_file_of_several_runs_has_a_suite_for_each() {
    let place = shipped();
    place.config(r#"{"checks": {"t": "true"}, "chains": {}}"#);
    place.run(&["t"]).code(0);
    let report = junit(&place, &["--all"]);
    let suites: Vec<&str> = report.test_suites.iter().map(|suite| suite.name.as_str()).collect();
    assert_eq!(suites, ["run 1: ship", "run 2: t"]);
    assert_eq!(report.test_suites[1].test_cases.iter().map(told).collect::<Vec<_>>(), ["t: passed", "the run: passed"]);
    assert_eq!(place.run(&["report", "--format", "junit"]).code(0).stdout, ".forkhestra/runs/2/report.xml\n");
    assert_eq!(parsed(&place.read(".forkhestra/runs/2/report.xml")).tests, 2);
    assert_eq!(place.run(&["report", "--all", "--format", "junit"]).code(0).stdout, ".forkhestra/runs/report.xml\n");
    place.run(&["report", "1", "--format", "junit", "-o", "junit.xml"]).code(0);
    assert_eq!(parsed(&place.read("junit.xml")).tests, 7);
}

#[test]
fn a_run_that_is_killed_is_an_error_and_a_run_without_checks_has_a_test_case_too() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.write("wait.sh", format!("touch {}; sleep 1000", up.display()));
    place.config(r#"{"checks": {"t": "sh wait.sh"}, "chains": {}}"#);
    let running = place.start(&["t"]);
    place.wait_for(&up);
    assert_eq!(cases(&junit(&place, &[])), "t: skipped: running\nthe run: skipped: it is still running");
    let _ = running.end_by("KILL");
    insta::assert_snapshot!(cases(&junit(&place, &[])), @r"
    t: error (interrupted): interrupted
        -
    the run: error (crashed): its process died
        its process died
        next: forkhestra resume 1
    ");
    place.agent("a", "print x");
    place.run(&["a", "-p", "x"]).code(0);
    assert_eq!(cases(&junit(&place, &[])), "the run: passed");
}

#[test]
fn the_cases_of_an_evaluation_are_test_cases() {
    let place = Place::new();
    place.agent("a", "print 4");
    let case = |id: &str, expected: &str| {
        format!(r#"{{ "id": "{id}", "text": "2 + 2", "expected": "{expected}", "criteria": [{{ "type": "exact" }}] }}"#)
    };
    place.write(
        "suite.json",
        format!(
            r#"{{ "taskType": "sums", "prompt": "p", "executor": "a", "cases": [{}, {}] }}"#,
            case("four", "4"),
            case("five", "5")
        ),
    );
    place.run(&["eval", "run", "suite.json"]).code(1);
    insta::assert_snapshot!(cases(&junit(&place, &[])), @r"
    four: passed
    five: failure (failed): score 0.00
        the output is not exactly what was expected
    the run: failure (casesFailed): not every case passed
        not every case passed
    ");
}

#[test]
fn junit_xml_cannot_follow_a_run() {
    let place = shipped();
    let refused = place.run(&["report", "--format", "junit", "--follow"]);
    insta::assert_snapshot!(refused.code(2).stderr, @r"
    report/follow

      × `--follow` cannot be used with `--format junit`, which writes no page
      help: leave out --follow: the file has what is known now. `forkhestra runs
            log --follow` waits for the end of the run
    ");
}
