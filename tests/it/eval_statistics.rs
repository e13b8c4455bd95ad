//! What is luck in an evaluation, and what is not: repetitions, proof, `--min-pass`, `--baseline`.

use crate::evaluations::{CASES, CONFIG, calls, place, suite, with_prompt_file};
use crate::support::{Place, git};
use std::fs;

/// With one result for each case, it could be luck.
#[test]
fn a_candidate_that_is_not_proven_to_be_better_is_shown_and_not_written() {
    let place = place();
    place.agent("rewriter", "print Repeat the text in capital letters.\nnext\nprint Repeat it in capital letters.");
    with_prompt_file(&place);
    let ran = place.run(&["eval", "improve", "suite.json"]);
    insta::assert_snapshot!("evaluation_unproven", ran.code(0).stdout);
    let ran = place.run(&["eval", "improve", "suite.json", "--write"]);
    let told = ran.code(1).stderr.lines().filter(|line| !line.contains("] ")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(told, @"
    suite.json: 4 cases (executor shouter, improver rewriter)
    gen 1: 6 tokens
    gen 2 was not tried: it is the same as an earlier prompt
    eval/unproven

      × the prompt was not written to $PLACE/project/prompt.md: it is not
      │ proven to be better than the original
      help: --repeat 13 tells a gain of 0.30 from chance; `forkhestra eval show
            --prompt` prints the prompt
    ");
    assert_eq!(place.read("prompt.md"), "Repeat the text.\n");
    // At a level as high as this, it is proven.
    let ran = place.run(&["eval", "improve", "suite.json", "--level", "0.4", "--write"]);
    assert!(ran.code(0).stdout.contains("generation 1 is better"), "{}", ran.all());
    assert_eq!(place.read("prompt.md"), "Repeat it in capital letters.\n");
}

/// An agent that changes its mind: each of its answers is asked for, and known the next time.
#[test]
fn repeat_runs_every_case_several_times_and_tells_the_spread() {
    let place = Place::new();
    let cases = r#"[
      { "id": "sure", "text": "ONE", "expected": "ONE", "criteria": [{ "type": "exact" }] },
      { "id": "unsure", "text": "two", "expected": "TWO", "criteria": [{ "type": "exact" }], "repeat": 5 },
      { "id": "hopeless", "text": "three", "expected": "3", "criteria": [{ "type": "exact" }], "repeat": 2 }
    ]"#;
    place.config(CONFIG).write("suite.json", suite(r#""repeat": 3,"#, cases));
    place.write(
        "shouter.sh",
        r#"
        echo x >> calls.txt
        input=$(tail -1)
        [ "$input" = two ] && [ $(($(wc -l < calls.txt) % 2)) = 0 ] && input=TWO
        echo "$input"
        "#,
    );
    let ran = place.run(&["eval", "run", "suite.json"]);
    insta::assert_snapshot!("evaluation_repeated", ran.code(1).all());
    assert_eq!(calls(&place), 10);
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(1).stdout.contains("every answer is from an earlier evaluation; --fresh"), "{}", ran.stdout);
    assert_eq!(calls(&place), 10, "the answer to each repetition is known");
    place.run(&["eval", "run", "suite.json", "--repeat", "6"]).code(1);
    assert_eq!(calls(&place), 18, "--repeat overrides the suite");
    let shown: serde_json::Value = serde_json::from_str(&place.run(&["eval", "show", "1", "--json"]).stdout).unwrap();
    let unsure = &shown["generations"][0]["perCase"]["unsure"];
    assert_eq!((&unsure["passed"], &unsure["cases"]), (&3.into(), &5.into()), "{unsure}");
    for times in ["0", "1001"] {
        let ran = place.run(&["eval", "run", "suite.json", "--repeat", times]);
        assert!(ran.code(2).stderr.contains("a number from 1 to 1000"), "{}", ran.stderr);
    }
}

#[test]
fn min_pass_is_the_share_of_the_results_that_has_to_pass() {
    let place = place();
    for (share, code, sign) in [("0.25", 0, '✓'), ("0.26", 1, '✗'), ("1", 1, '✗'), ("0", 0, '✓')] {
        let ran = place.run(&["eval", "run", "suite.json", "--min-pass", share]);
        let line = format!("{sign} 1 of 4 cases passed; --min-pass {share} is the least");
        assert!(ran.code(code).stdout.contains(&line), "{}", ran.stdout);
    }
    let ran = place.run(&["eval", "run", "suite.json", "--min-pass", "90"]);
    assert!(ran.code(2).stderr.contains("a share from 0 to 1, such as 0.9"), "{}", ran.stderr);
}

#[test]
fn a_baseline_fails_an_evaluation_in_which_a_case_is_worse_beyond_chance() {
    let place = place();
    place.run(&["eval", "run", "suite.json", "--repeat", "5"]).code(1);
    let ran = place.run(&["eval", "run", "suite.json", "--repeat", "5", "--baseline", "1"]);
    assert!(ran.code(0).stdout.contains("compared with run 1 (4 cases): no difference"), "{}", ran.stdout);
    // Now it does something else with the number, which passed before.
    place.write("shouter.sh", "cat > input.txt; echo x >> calls.txt; echo nothing");
    let ran = place.run(&["eval", "run", "suite.json", "--repeat", "5", "--baseline", "1", "--fresh"]);
    let told: Vec<&str> =
        ran.code(1).stdout.lines().skip_while(|line| !line.contains("compared")).take(2).map(str::trim).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    compared with run 1 (4 cases): worse by 0.25; by chance, it looks as bad in 0.4 % of evaluations
    worse beyond chance: number
    ");
    // A single answer proves nothing, and says what would.
    let ran = place.run(&["eval", "run", "suite.json", "--baseline", "1", "--fresh"]);
    let told: Vec<&str> =
        ran.code(0).stdout.lines().skip_while(|line| !line.contains("compared")).take(2).map(str::trim).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    compared with run 1 (4 cases): worse by 0.25; by chance, it looks as bad in 17 % of evaluations
    worse, which can be chance: number (--repeat 5 in both evaluations would tell)
    ");
}

#[test]
fn a_baseline_of_no_evaluation_or_of_another_suite_is_refused() {
    let place = place();
    place.agent("worker", "print done");
    place.run(&["eval", "run", "suite.json"]).code(1);
    place.write("other.json", suite("", CASES));
    place.run(&["worker", "-p", "x"]).code(0);
    for (suite, run, why) in [
        ("other.json", "1", "run 1 evaluated another suite: suite.json"),
        ("suite.json", "2", "run 2 is not an evaluation"),
        ("suite.json", "9", "there is no run 9 to compare with"),
    ] {
        let ran = place.run(&["eval", "run", suite, "--baseline", run]);
        assert!(ran.code(2).stderr.contains(why), "{}", ran.stderr);
    }
}

/// The same answer in ten cases is one answer.
#[test]
fn cases_that_ask_the_same_prove_nothing_together() {
    let place = place();
    place.agent("rewriter", "print Repeat the text in capital letters.");
    let case = |id| {
        format!(r#"{{ "id": "{id}", "text": "hello", "expected": "HELLO", "criteria": [{{ "type": "exact" }}] }}"#)
    };
    let cases: Vec<String> = (0..10).map(case).collect();
    place.write("suite.json", suite(r#""improver": "rewriter","#, &format!("[{}]", cases.join(","))));
    let ran = place.run(&["eval", "improve", "suite.json", "--generations", "1"]);
    assert!(ran.code(0).stdout.contains("? generation 1 did better, but that is not proven"), "{}", ran.stdout);
    assert!(ran.stdout.contains("look as good in 50 % of evaluations"), "{}", ran.stdout);
}

/// A case that is run four times does not count for four.
#[test]
fn a_prompt_with_more_passes_and_no_gain_never_wins() {
    let place = place();
    place.agent("rewriter", "print Repeat the text in capital letters.");
    let cases = r#"[
      { "id": "once", "text": "a", "expected": "a", "criteria": [{ "type": "exact" }] },
      { "id": "often", "text": "b", "expected": "B", "criteria": [{ "type": "exact" }], "repeat": 4 }
    ]"#;
    place.write("suite.json", suite(r#""improver": "rewriter","#, cases));
    let ran = place.run(&["eval", "improve", "suite.json", "--generations", "1", "--out", "best.md"]);
    assert!(ran.code(1).stdout.contains("the original prompt is kept"), "{}", ran.stdout);
    assert!(!place.work("best.md").exists());
}

#[test]
fn a_baseline_and_a_resume_hold_from_any_directory() {
    let mut place = place();
    place.run(&["eval", "run", "suite.json"]).code(1);
    git(&place, &["init", "-q"]);
    fs::create_dir(place.work("sub")).unwrap();
    let from_below = |place: &Place, words: &[&str]| {
        let output = place.command(words).current_dir(place.work("sub")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains("compared with run 1 (4 cases): no difference"), "{stdout}");
    };
    from_below(&place, &["eval", "run", "../suite.json", "--baseline", "1"]);
    place.set("FORKHESTRA_TEST_ABORT_AFTER_WRITES", "5");
    let _ = place.command(&["eval", "run", "suite.json", "--fresh", "--baseline", "1"]).output().unwrap();
    place.set("FORKHESTRA_TEST_ABORT_AFTER_WRITES", "0");
    from_below(&place, &["resume"]);
}
