//! `eval run --on ENGINE`: the cases of a suite are asked on other machines, a slice of them at a time.

use crate::batch::hub;
use crate::engines::cluster;
use crate::support::{Place, git, send};
use std::fmt::Write;
use std::fs;

/// A place with the engine `cluster` and a suite of this many cases. The agent `echo` repeats its input, and counts its
/// calls; half of the cases expect something else.
fn with_suite(cases: u32, more: &str) -> Place {
    let place = cluster(1, "", "");
    let config = place.read("forge/chains.json");
    let agents = r#""agents": { "echo": { "command": "sh echo.sh", "deliver": "stdin" }, "#;
    place.config(&config.replacen(r#""agents": {"#, agents, 1));
    let calls = place.path("tmp/calls");
    place.write("echo.sh", format!("echo x >> {}\ntail -1\n", calls.display()));
    let mut text = String::new();
    for number in 1..=cases {
        let expected = if number % 2 == 0 { "other".to_string() } else { format!("text {number}") };
        let _ = write!(
            text,
            r#"{{ "id": "case {number}", "text": "text {number}", "expected": "{expected}", "criteria": [{{ "type": "exact" }}] }},"#
        );
    }
    let text = text.trim_end_matches(',');
    place.write(
        "suite.json",
        format!(
            r#"{{ "taskType": "echo", "prompt": "Repeat the text.", "executor": "echo", {more} "cases": [{text}] }}"#
        ),
    );
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-q", "-m", "suite"]);
    place
}

fn calls(place: &Place) -> usize {
    fs::read_to_string(place.path("tmp/calls")).unwrap_or_default().lines().count()
}

/// The table of an evaluation, without its number.
fn table(place: &Place, run: &str) -> String {
    let shown = place.run(&["eval", "show", run]).code(0).stdout.clone();
    shown.replace(&format!("runs/{run}"), "runs/N")
}

#[test]
fn eval_run_on_an_engine_asks_each_case_once_and_ends_with_the_same_table() {
    let place = with_suite(12, "");
    let ran = place.run(&["eval", "run", "suite.json", "--on", "cluster", "--slice", "5", "-j", "2"]);
    assert_eq!(calls(&place), 12, "{}", ran.all());
    assert!(ran.code(1).stderr.contains("→ 1-slice1-1 is at work on "), "{}", ran.stderr);
    let units = hub(&place, &["for-each-ref", "--format=%(refname:lstrip=3)", "refs/forkhestra/units"]);
    assert_eq!(units, "1-slice1-1\n1-slice2-1\n1-slice3-1");
    place.run(&["eval", "run", "suite.json", "--fresh", "-j", "2"]).code(1);
    assert_eq!(table(&place, "1"), table(&place, "2"));
    // Its answers are stored, and its attempts are in the journal.
    place.run(&["eval", "run", "suite.json"]).code(1);
    assert_eq!(calls(&place), 24);
    assert!(place.run(&["runs", "log", "1"]).code(0).stdout.contains("text 12"));
}

#[test]
fn repeat_runs_each_case_several_times_on_an_engine_too() {
    let place = with_suite(4, "");
    let ran = place.run(&["eval", "run", "suite.json", "--on", "cluster", "--slice", "2", "-j", "2", "--repeat", "3"]);
    assert_eq!(calls(&place), 12, "{}", ran.all());
    assert!(
        ran.code(1).stdout.contains("6 of 12 results passed: 2 cases always, 0 sometimes, 2 never"),
        "{}",
        ran.stdout
    );
    place.run(&["eval", "run", "suite.json", "--repeat", "3"]).code(1);
    assert_eq!(calls(&place), 12, "each answer is stored with its repetition");
}

#[test]
fn the_evaluators_of_a_suite_answer_in_the_slices_too() {
    let place = with_suite(3, r#""evaluator": "strict","#);
    let config = place.read("forge/chains.json");
    let strict = r#""agents": { "strict": { "command": "sh strict.sh", "deliver": "stdin" }, "#;
    place.config(&config.replacen(r#""agents": {"#, strict, 1));
    let evaluation = r#"{"pass":false,"score":0.25,"issues":["dull"],"suggestions":[]}"#;
    place.write(
        "strict.sh",
        format!("cat > /dev/null; echo x >> {}; echo '{evaluation}'\n", place.path("tmp/judged").display()),
    );
    // What is not committed travels, too.
    place.run(&["eval", "run", "suite.json", "--on", "cluster", "--slice", "2"]).code(1);
    place.run(&["eval", "run", "suite.json", "--fresh"]).code(1);
    let (there, here) = (table(&place, "1"), table(&place, "2"));
    assert!(there.contains("fail 0.25"), "{there}");
    assert_eq!(there, here);
    assert_eq!(
        fs::read_to_string(place.path("tmp/judged")).unwrap().lines().count(),
        4,
        "of those that pass the criteria"
    );
}

/// A suite whose case 7 waits for the file `go` when it is asked for the first time.
fn with_slow_case() -> Place {
    let place = with_suite(12, "");
    let (calls, tmp) = (place.path("tmp/calls"), place.path("tmp"));
    let script = format!(
        "echo x >> {}\ncd {}\ninput=$(tail -1)\n\
         if [ \"$input\" = 'text 7' ] && mkdir first 2> /dev/null; then touch up; while [ ! -e go ]; do sleep 0.02; done; fi\n\
         echo \"$input\"\n",
        calls.display(),
        tmp.display()
    );
    place.write("echo.sh", script);
    git(&place, &["commit", "-q", "-a", "-m", "slow"]);
    place
}

/// The name of the job of a unit.
fn job(place: &Place, unit: &str) -> String {
    let jobs = fs::read_dir(place.path("cluster/jobs")).unwrap().map(|entry| entry.unwrap().file_name());
    jobs.filter_map(|name| name.into_string().ok()).find(|name| name.ends_with(&format!("-{unit}"))).unwrap()
}

const ON: [&str; 9] = ["eval", "run", "suite.json", "--on", "cluster", "--slice", "4", "-j", "2"];

#[test]
fn a_slice_whose_job_is_killed_is_asked_again_and_the_table_stays_the_same() {
    let place = with_slow_case();
    let run = place.start(&ON);
    place.wait_for(&place.path("tmp/up"));
    let group = fs::read_to_string(place.path("cluster/jobs").join(job(&place, "1-slice2-1"))).unwrap();
    send("KILL", &format!("-{}", group.trim()));
    run.end().code(1);
    let asked = calls(&place);
    assert!((13..=15).contains(&asked), "only what the killed worker had not handed over: {asked}");
    place.run(&["eval", "run", "suite.json", "--fresh"]).code(1);
    // An attempt that was killed counts.
    let there = table(&place, "1").replace(&format!("({asked} attempts)"), "(12 attempts)");
    assert_eq!(there, table(&place, "2"));
}

#[test]
fn a_slice_whose_job_the_engine_ends_is_asked_again() {
    let place = with_slow_case();
    let run = place.start(&ON);
    place.wait_for(&place.path("tmp/up"));
    let group = fs::read_to_string(place.path("cluster/jobs").join(job(&place, "1-slice2-1"))).unwrap();
    send("TERM", &format!("-{}", group.trim()));
    assert!(run.end().code(1).stdout.contains("6 of 12 cases passed"));
}

#[test]
fn an_evaluation_on_an_engine_that_was_interrupted_resumes() {
    let place = with_slow_case();
    let run = place.start(&ON);
    place.wait_for(&place.path("tmp/up"));
    let ran = run.end_by("INT");
    assert!(ran.code(130).stderr.contains("next: forkhestra resume 1"), "{}", ran.stderr);
    let ran = place.run(&["resume"]);
    assert!(ran.code(1).stdout.contains("6 of 12 cases passed"), "{}", ran.all());
    let asked = calls(&place);
    assert!((12..=15).contains(&asked), "{asked}");
}

#[test]
fn cases_that_every_worker_refused_are_asked_again_by_resume() {
    let place = with_suite(6, "");
    let config = place.read("forge/chains.json");
    let needs = r#""workspace": { "needs": { "programs": ["special-tool"] } }, "agents": {"#;
    place.config(&config.replacen(r#""agents": {"#, needs, 1));
    git(&place, &["commit", "-q", "-a", "-m", "needs"]);
    let ran = place.run(&ON);
    assert_eq!((ran.code(1).code, calls(&place)), (Some(1), 0), "{}", ran.all());
    place.agent("special-tool", "");
    let ran = place.run(&["resume"]);
    assert!(ran.code(1).stdout.contains("3 of 6 cases passed"), "{}", ran.all());
    assert_eq!(calls(&place), 6);
}

#[test]
fn the_limits_of_an_evaluation_hold_on_an_engine() {
    let place = with_suite(12, "");
    let ran = place.run(&[&ON[..], &["--limit", "attempts=6"]].concat());
    assert_eq!((ran.code(4).code, calls(&place)), (Some(4), 6), "{}", ran.all());
    let ran = place.run(&["resume", "--limit", "attempts=100"]);
    assert!(ran.code(1).stdout.contains("6 of 12 cases passed"), "{}", ran.all());
    assert_eq!(calls(&place), 12);
}

#[test]
fn a_suite_that_other_machines_do_not_get_is_refused() {
    let place = with_suite(2, "");
    fs::copy(place.work("suite.json"), place.path("tmp/suite.json")).unwrap();
    let outside = place.path("tmp/suite.json").display().to_string();
    let ran = place.run(&["eval", "run", &outside, "--on", "cluster"]);
    assert!(ran.code(2).stderr.contains("is not in the project"), "{}", ran.stderr);
    place.write(".gitignore", "*.local.json\n");
    fs::copy(place.work("suite.json"), place.work("suite.local.json")).unwrap();
    let ran = place.run(&["eval", "run", "suite.local.json", "--on", "cluster"]);
    assert!(ran.code(2).stderr.contains("git ignores suite.local.json"), "{}", ran.stderr);
    let ran = place.run(&["eval", "run", "suite.json", "--on", "clutser", "--dry-run"]);
    assert!(ran.code(2).stderr.contains("clutser"), "{}", ran.stderr);
    assert_eq!(calls(&place), 0);
}
