//! Prompts that are measured by suites and improved, and what can go wrong on the way.

use crate::support::{LONG, Place};
use std::fs;
use std::time::Instant;

pub(crate) const CONFIG: &str = r#"{
  "agents": {
    "shouter": { "command": "sh shouter.sh", "deliver": "stdin" },
    "judge": { "command": "judge", "deliver": "stdin" },
    "rewriter": { "command": "rewriter", "deliver": "stdin" }
  },
  "chains": {}
}"#;

/// An agent that repeats the input, in capital letters if the prompt asks for them, and counts its calls.
const SHOUTER: &str = r#"
echo x >> calls.txt
prompt=$(cat)
input=$(echo "$prompt" | tail -1)
case "$prompt" in
  *"only short"*) [ ${#input} -lt 8 ] && echo "$input" | tr a-z A-Z || echo "$input" ;;
  *capital*) echo "$input" | tr a-z A-Z ;;
  *) echo "$input" ;;
esac
"#;

pub(crate) const CASES: &str = r#"[
    { "id": "greeting", "text": "hello", "expected": "HELLO", "criteria": [{ "type": "exact" }] },
    { "id": "farewell", "text": "goodbye", "expected": "GOODBYE", "criteria": [{ "type": "exact" }] },
    { "id": "thanks", "text": "thank you very much", "expected": "THANK YOU VERY MUCH", "criteria": [{ "type": "exact" }] },
    { "id": "number", "text": "42", "expected": "42", "criteria": [{ "type": "exact" }] }
  ]"#;

pub(crate) fn suite(more: &str, cases: &str) -> String {
    format!(
        r#"{{ "taskType": "shouting", "prompt": "Repeat the text.", "executor": "shouter", {more} "cases": {cases} }}"#
    )
}

pub(crate) fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG).write("shouter.sh", SHOUTER).write("suite.json", suite(r#""improver": "rewriter","#, CASES));
    place.agent("rewriter", "print nothing new");
    place
}

/// Moves the prompt into a file, to which `--write` writes.
pub(crate) fn with_prompt_file(place: &Place) {
    let suite = place.read("suite.json").replace(r#""prompt": "Repeat the text.""#, r#""promptFile": "prompt.md""#);
    place.write("prompt.md", "Repeat the text.\n").write("suite.json", suite);
}

pub(crate) fn calls(place: &Place) -> usize {
    fs::read_to_string(place.work("calls.txt")).unwrap_or_default().lines().count()
}

#[test]
fn a_suite_measures_a_prompt_and_knows_its_answers_the_next_time() {
    let place = place();
    let ran = place.run(&["eval", "run", "suite.json"]);
    insta::assert_snapshot!("evaluation_run", ran.code(1).all());
    assert_eq!(calls(&place), 4);
    let again = place.run(&["eval", "run", "suite.json", "-j", "3", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&again.code(1).stdout).unwrap();
    assert_eq!((&json["generations"][0]["training"]["passed"], &json["attempts"]), (&1.into(), &0.into()));
    assert_eq!(calls(&place), 4, "the same prompt, case and agent");
    place.run(&["eval", "run", "suite.json", "--fresh", "--case", "number"]).code(0);
    assert_eq!(calls(&place), 5);
    let shown = place.run(&["eval", "show", "1"]);
    let table = ran.stdout.trim_start().to_string();
    assert_eq!(shown.code(0).stdout, table);
    let run = place.run(&["runs", "show", "1"]);
    assert!(run.code(0).stdout.contains("forkhestra eval show 1"), "{}", run.stdout);
}

#[test]
fn eval_show_still_has_the_outputs_of_an_evaluation_after_another_one_with_fresh() {
    let place = place();
    place.run(&["eval", "run", "suite.json"]).code(1);
    let before = place.run(&["eval", "show", "1", "-v"]).code(0).stdout.clone();
    assert!(before.contains("    output:\n"), "{before}");
    place.run(&["eval", "run", "suite.json", "--fresh"]).code(1);
    assert_eq!(calls(&place), 8);
    assert_eq!(place.run(&["eval", "show", "1", "-v"]).code(0).stdout, before);
}

#[test]
fn a_dry_run_shows_the_exact_first_prompt_and_asks_nobody() {
    let place = place();
    let ran = place.run(&["eval", "improve", "suite.json", "--holdout", "0.3", "--dry-run"]);
    insta::assert_snapshot!("evaluation_dry_run", ran.code(0).all());
    assert!(calls(&place) == 0 && !place.work(".forkhestra").exists());
}

#[test]
fn a_candidate_that_passes_wins_and_its_prompt_is_written_where_it_was_asked_to_be() {
    let place = place();
    place.agent("rewriter", "print Here it is:\nprint ```text\nprint Repeat the text in capital letters.\nprint ```\nprint Bye.\nnext\nprint Repeat the text in capital letters, please.");
    with_prompt_file(&place);
    let ran = place.run(&["eval", "improve", "suite.json", "--repeat", "3", "--write"]);
    insta::assert_snapshot!("evaluation_improve", ran.code(0).all());
    assert_eq!(place.read("prompt.md"), "Repeat the text in capital letters.\n");
    assert_eq!(place.run(&["eval", "show", "--prompt"]).code(0).stdout, "Repeat the text in capital letters.\n");
    // It learns that something is wrong with the cases, but not what is in them.
    let told = String::from_utf8(place.stdin_of("rewriter", 1)).unwrap();
    insta::assert_snapshot!("evaluation_told_to_improver", told);
    // The answers are known: nothing is asked, and nothing is left to improve.
    let ran = place.run(&["eval", "improve", "suite.json", "--out", "best.md"]);
    assert!(
        ran.code(0).stdout.contains("the original prompt is kept: all training cases pass (0 attempts)"),
        "{}",
        ran.stdout
    );
    assert_eq!(place.read("best.md"), "Repeat the text in capital letters.\n");
    assert!(
        place.run(&["eval", "improve", "suite.json", "--out", "best.md"]).code(2).stderr.contains("already exists")
    );
}

/// No executor is asked about such a candidate.
#[test]
fn a_candidate_that_is_too_long_or_gives_a_case_away_is_never_tried() {
    let place = place();
    let long = "word ".repeat(400);
    place.agent(
        "rewriter",
        &format!("print {long}\nnext\nprint Repeat in capital letters, as in: thank you very much\nnext\nprint Repeat the text."),
    );
    let ran = place.run(&["eval", "improve", "suite.json", "--generations", "3"]);
    assert!(ran.code(1).stderr.contains("gen 1 was not tried: it is too long"), "{}", ran.stderr);
    assert!(ran.stderr.contains("gen 2 was not tried: it reveals a case or an example\n"), "{}", ran.stderr);
    assert!(ran.stdout.contains("the original prompt is kept: the last candidate revealed a case"), "{}", ran.stdout);
    assert_eq!((calls(&place), place.calls("rewriter")), (4, 2));
}

/// The held-out cases decide. A candidate that has memorized the other cases does not win.
#[test]
fn a_candidate_that_is_better_only_on_the_cases_it_was_improved_by_does_not_win() {
    let place = Place::new();
    let cases = r#"[
      { "id": "a", "text": "one", "expected": "ONE", "criteria": [{ "type": "exact" }] },
      { "id": "b", "text": "two", "expected": "TWO", "criteria": [{ "type": "exact" }] },
      { "id": "c", "text": "a long sentence", "criteria": [{ "type": "regex", "pattern": "^a long" }] }
    ]"#;
    place.config(CONFIG).write("shouter.sh", SHOUTER).write("suite.json", suite(r#""improver": "rewriter","#, cases));
    place.agent("rewriter", "print Say the text again, nicely.\nnext\nprint Repeat the text in capital letters.");
    // Found by trying: with this seed, `c` is held out.
    let seed = "2";
    let ran = place.run(&["eval", "improve", "suite.json", "--holdout", "0.3", "--seed", seed]);
    insta::assert_snapshot!("evaluation_held_out", ran.code(1).all());
    let told = String::from_utf8(place.stdin_of("rewriter", 1)).unwrap();
    assert!(!told.contains("pattern"), "the improver never hears of a held-out case: {told}");
}

/// The evaluation fails, not the prompt.
#[test]
fn an_evaluator_that_cannot_be_read_is_asked_again_and_never_fed_on() {
    let place = place();
    let cases = r#"[{ "id": "x", "text": "hello" }, { "id": "y", "text": "world" }]"#;
    place.write("suite.json", suite(r#""evaluator": "judge","#, cases));
    place.agent(
        "judge",
        "print Looks fine to me!\nnext\nprint {\"pass\": \"yes\"}\nnext\nprint {\"pass\": true, \"score\": 0.9, \"issues\": [], \"suggestions\": []}\n\
         next\nprint no\nnext\nprint no\nnext\nprint {\"pass\": \"yes\"}\nnext\nprint {\"pass\": true, \"score\": 1, \"issues\": [], \"suggestions\": []}",
    );
    let ran = place.run(&["eval", "run", "suite.json"]);
    insta::assert_snapshot!("evaluator_not_understood", ran.code(3).all());
    assert!(String::from_utf8(place.stdin_of("judge", 2)).unwrap().contains("Your last answer could not be used"));
    let record = serde_json::Value::from(place.events(1)).to_string();
    assert!(record.contains(r#""issues":["schema_validation_error: "#), "{record}");
    // A resume asks only for what was not answered.
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stdout.contains("all 2 cases passed"), "{}", ran.stdout);
    assert_eq!((calls(&place), place.calls("judge")), (2, 7));
}

#[test]
fn feedback_that_quotes_the_expected_output_never_reaches_the_improver() {
    let place = place();
    let expected = "The quarterly revenue fell by nine percent.";
    let cases = format!(r#"[{{ "id": "x", "text": "some report", "expected": "{expected}" }}]"#);
    place.write("suite.json", suite(r#""evaluator": "judge", "improver": "rewriter","#, &cases));
    place.agent(
        "judge",
        &format!(
            "print {{\"pass\": false, \"score\": 0.2, \"issues\": [\"It is not: {}\", \"It names no number\"], \"suggestions\": [\"Ask for numbers\"]}}",
            expected.to_uppercase()
        ),
    );
    place.agent("rewriter", "print Name every number.\nnext\nprint Name all numbers.");
    let ran = place.run(&["eval", "improve", "suite.json"]);
    assert!(ran.code(1).stderr.contains("dropped 1 remark that quoted a case"), "{}", ran.stderr);
    let told = String::from_utf8(place.stdin_of("rewriter", 1)).unwrap();
    assert!(told.contains("- It names no number\n") && told.contains("- Ask for numbers\n"), "{told}");
    assert!(!told.to_lowercase().contains("nine percent"), "{told}");
    // Without an improver, people see all of it.
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(1).stdout.contains("It is not: THE QUARTERLY REVENUE FELL"), "{}", ran.stdout);
}

#[test]
fn a_suite_with_faults_is_refused_with_all_of_them_and_nothing_runs() {
    let place = place();
    place.write(
        "bad.json5",
        r#"{
  taskType: " ",
  promt: "x",
  executor: "nobody",
  cases: [
    { id: "a", text: "x" },
    { id: "a", text: "y", criteria: [{ type: "vibes" }] },
    { id: "b", criteria: [{ type: "exact" }] },
    { id: "c", text: "x", criteria: [{ type: "regex", pattern: "(" }, { type: "length" }, { type: "keywords", pattern: "x" }] },
    { id: "d", textFile: "missing.txt", criteria: [{ type: "json", schema: { type: 7 } }, { type: "length", min: 5, max: 2 }] },
  ],
}"#,
    );
    let ran = place.run(&["eval", "run", "bad.json5"]);
    insta::assert_snapshot!("suite_faults", ran.code(2).stderr);
    let others: [&[&str]; 6] = [
        &["eval", "run", "missing.json"],
        &["eval", "run", "suite.json", "--case", "greting"],
        &["eval", "run", "suite.json", "--limit", "tokens=3"],
        &["eval", "improve", "suite.json", "--max-tokens", "3"],
        &["eval", "improve", "suite.json", "--write"],
        &["eval", "run", "suite.json", "--prompts", "forge"],
    ];
    // The agents and the ids of a suite, each with what is wrong about it.
    let fine = suite("", CASES);
    for (from, to, expected) in [
        (r#""shouter""#, r#""shouter -> judge""#, "suite/agent × `shouter -> judge` is not a single agent"),
        (r#""shouter""#, r#""shouter:3""#, "suite/agent × `shouter:3` is not a single agent"),
        (r#""greeting""#, r#"" greeting""#, "an id must not start or end with a space"),
        (r#""exact" }]"#, r#""regxe", "pattern": "x" }]"#, "did you mean `regex`? It is one of"),
    ] {
        place.write("other.json", fine.replacen(from, to, 1));
        let words = place.run(&["eval", "run", "other.json"]).code(2).words();
        assert!(words.contains(expected) && !words.contains("suite/criterion-key"), "{words}");
    }
    place.write("other.json", suite("", "[]"));
    assert!(place.run(&["eval", "run", "other.json"]).code(2).words().contains("help: add a case"));
    let mut all = String::new();
    for line in others {
        let ran = place.run(line);
        all.extend(["$ forkhestra ", &line.join(" "), "\n", &ran.code(2).stderr, "\n"]);
    }
    insta::assert_snapshot!("suite_refusals", all);
    assert!(calls(&place) == 0 && !place.work(".forkhestra").exists());
}

#[test]
fn an_evaluator_in_the_session_of_the_executor_is_refused() {
    let place = Place::new();
    place.agent("claude", "print x");
    place.config(
        r#"{ "agents": {
          "writer": { "systemPromptText": "Write.", "backend": "claude", "args": ["--resume", "abc"] },
          "critic": { "systemPromptText": "Judge.", "backend": "claude", "args": ["--resume=abc"] },
          "other": { "systemPromptText": "Judge.", "backend": "claude", "args": ["--resume=def"] }
        }, "chains": {} }"#,
    );
    let suite = |evaluator: &str| {
        suite(&format!(r#""evaluator": "{evaluator}","#), r#"[{ "id": "x", "text": "y" }]"#)
            .replace("shouter", "writer")
    };
    place.write("suite.json", suite("critic"));
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(
        ran.code(2).stderr.contains("the evaluator `critic` would continue the session of the executor `writer`"),
        "{}",
        ran.stderr
    );
    place.write("suite.json", suite("other"));
    let ran = place.run(&["eval", "run", "suite.json", "--dry-run"]);
    assert!(ran.code(0).stdout.contains("permissions read"), "{}", ran.stdout);
}

#[test]
fn a_limit_ends_an_evaluation_and_a_resume_under_a_higher_one_goes_on() {
    let place = place();
    place.write("suite.json", suite("", CASES));
    let ran = place.run(&["eval", "run", "suite.json", "--limit", "attempts=2"]);
    assert_eq!((ran.code(4).code, calls(&place)), (Some(4), 2));
    place.run(&["resume", "--limit", "attempts=9"]).code(1);
    assert_eq!(calls(&place), 4);
    place.write("shouter.sh", SHOUTER.replace("echo x", "echo changed"));
    place.write("suite.json", suite("", CASES).replace("hello", "hallo"));
    assert!(place.run(&["resume", "1"]).code(2).stderr.contains("has ended"));
}

/// Each answer costs 0.1: with three lanes, the fourth and fifth would begin before the third is paid for.
#[test]
fn a_limit_counts_what_is_under_way_in_other_lanes() {
    let place = Place::new();
    let case = |number| {
        format!(r#"{{ "id": "{number}", "text": "{number}", "criteria": [{{ "type": "length", "max": 9 }}] }}"#)
    };
    let cases: Vec<String> = (0..12).map(case).collect();
    place.config(r#"{ "chains": {} }"#);
    place.write("suite.json", suite("", &format!("[{}]", cases.join(","))).replace("shouter", "claude"));
    place.agent(
        "claude",
        r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":0.1,"usage":{"input_tokens":9}}"#,
    );
    let ran = place.run(&["eval", "run", "suite.json", "-j", "3", "--limit", "cost=0.45"]);
    assert!(ran.code(4).stdout.contains("the limit `cost` was reached"), "{}", ran.all());
    assert_eq!(place.calls("claude"), 5);
}

#[test]
fn equal_questions_at_once_are_asked_once() {
    let place = place();
    let case = |id| format!(r#"{{ "id": "{id}", "text": "same", "criteria": [{{ "type": "length", "max": 9 }}] }}"#);
    place.write("suite.json", suite("", &format!("[{}, {}, {}]", case("a"), case("b"), case("c"))));
    let ran = place.run(&["eval", "run", "suite.json", "-j", "3"]);
    assert!(ran.code(0).stdout.contains("all 3 cases passed"), "{}", ran.all());
    assert_eq!(calls(&place), 1);
}

#[test]
fn an_executor_that_fails_is_tried_again_and_is_nobodys_bad_prompt() {
    let place = place();
    place.write("shouter.sh", "echo x >> calls.txt\nexit 3\n");
    place.write(
        "suite.json",
        suite("", r#"[{ "id": "x", "text": "y", "criteria": [{ "type": "length", "min": 1 }] }]"#),
    );
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(1).stderr.contains("the executor gave no answer: exit code 3"), "{}", ran.stderr);
    assert!(ran.stdout.contains("0 of 1 case passed, 1 could not be judged"), "{}", ran.stdout);
    assert_eq!(calls(&place), 4);
}

#[test]
fn a_prompt_that_holds_the_placeholder_gets_the_text_there_and_the_text_is_never_read_as_a_template() {
    let place = place();
    let cases = r#"[{ "id": "x", "text": "braces {prompt} {text}", "criteria": [{ "type": "length", "min": 1 }] }]"#;
    place.write(
        "suite.json",
        suite("", cases).replace("Repeat the text.", "Repeat <{text}> twice.").replace("shouter", "judge"),
    );
    place.agent("judge", "print yes");
    place.run(&["eval", "run", "suite.json"]).code(0);
    let told = String::from_utf8(place.stdin_of("judge", 1)).unwrap();
    assert!(
        told.contains("Repeat <braces {prompt} {text}> twice.") && told.ends_with("braces {prompt} {text}\n"),
        "{told}"
    );
}

#[test]
fn a_lifeline_that_is_killed_takes_no_other_case_with_it() {
    let place = place();
    place.config(r#"{ "agents": { "shouter": { "command": "sh slow.sh", "deliver": "stdin" } }, "chains": {} }"#);
    place.write(
        "slow.sh",
        "echo $PPID >> lifelines\ninput=$(tail -1)\nuntil [ -f go ]; do sleep 0.02; done\necho \"$input\"\n",
    );
    let cases = r#"[
      { "id": "a", "text": "x", "criteria": [{ "type": "length", "min": 1 }] },
      { "id": "b", "text": "y", "criteria": [{ "type": "length", "min": 1 }] }
    ]"#;
    place.write("suite.json", suite("", cases));
    let running = place.start(&["eval", "run", "suite.json", "-j", "2"]);
    let lifelines = || fs::read_to_string(place.work("lifelines")).unwrap_or_default();
    let deadline = Instant::now() + LONG;
    while lifelines().lines().count() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    crate::support::send("KILL", lifelines().lines().next().unwrap());
    while lifelines().lines().count() < 3 {
        assert!(Instant::now() < deadline, "it is tried again");
        std::thread::yield_now();
    }
    place.write("go", "");
    let ran = running.end();
    assert!(ran.code(0).stdout.contains("all 2 cases passed (3 attempts)"), "{}", ran.all());
}

#[test]
fn what_judges_is_part_of_what_a_resume_goes_on_with() {
    let place = place();
    let suite = |kind: &str| {
        let case = |id: &str| {
            format!(
                r#"{{ "id": "{id}", "text": "{{}}", "criteria": [{{ "type": "json", "schema": {{ "type": "{kind}" }} }}] }}"#
            )
        };
        suite("", &format!("[{}, {}]", case("a"), case("b").replace("{}", "{ }")))
    };
    place.write("suite.json", suite("object"));
    let ran = place.run(&["eval", "run", "suite.json", "--limit", "attempts=1"]);
    assert!(
        ran.code(4).stdout.contains("the limit `attempts` was reached; 1 of 2 results are available"),
        "{}",
        ran.stdout
    );
    place.write("suite.json", suite("array"));
    let ran = place.run(&["resume", "--limit", "attempts=9"]);
    assert!(ran.code(2).stderr.contains("the suite, its prompts or its agents have changed since"), "{}", ran.stderr);
    place.write("suite.json", suite("object"));
    place.run(&["resume", "--limit", "attempts=9"]).code(0);
}

#[test]
fn an_evaluation_that_cannot_be_used_now_is_asked_for_again_and_not_remembered() {
    let place = place();
    let cases = r#"[{ "id": "x", "text": "hello" }]"#;
    let over = "print {\"pass\": true, \"score\": 1.5, \"issues\": [], \"suggestions\": []}";
    place.agent("judge", &format!("{over}\nnext\n{over}\nnext\n{over}\nnext\n{over}\nnext\nprint {{\"pass\": true, \"score\": 1, \"issues\": [], \"suggestions\": []}}"));
    place.write("suite.json", suite(r#""evaluator": "judge", "scoreMode": "clamp","#, cases));
    place.run(&["eval", "run", "suite.json"]).code(0);
    place.write("suite.json", suite(r#""evaluator": "judge","#, cases));
    place.run(&["eval", "run", "suite.json"]).code(3);
    place.run(&["eval", "run", "suite.json"]).code(0);
    assert_eq!(place.calls("judge"), 5);
}

#[test]
fn a_signal_is_heard_while_answers_are_known_from_before() {
    let place = place();
    let cases: Vec<String> = (0..2000)
        .map(|number| format!(r#"{{ "id": "{number}", "text": "x", "criteria": [{{ "type": "length", "min": 1 }}] }}"#))
        .collect();
    place.write("suite.json", suite("", &format!("[{}]", cases.join(","))));
    place.run(&["eval", "run", "suite.json", "--case", "0"]).code(0);
    let mut running = place.start(&["eval", "run", "suite.json"]);
    let mut line = [0; 1];
    std::io::Read::read_exact(running.child.stderr.as_mut().unwrap(), &mut line).unwrap();
    let ran = running.end_by("TERM");
    assert!(ran.code(143).stdout.contains("interrupted by SIGTERM"), "{}", ran.stdout);
}

/// As for a run: it may have come with a checkout.
#[test]
fn an_evaluation_of_another_folder_goes_on_only_with_accept_changes() {
    let place = place();
    place.write("suite.json", suite(r#""evaluator": "judge","#, r#"[{ "id": "x", "text": "hello" }]"#));
    place.agent("judge", "print no\nnext\nprint no\nnext\nprint no");
    place.run(&["eval", "run", "suite.json"]).code(3);
    fs::rename(place.path("project"), place.path("tmp/moved")).unwrap();
    let resume = place.command(&["resume"]).current_dir(place.path("tmp/moved")).output().unwrap();
    let words = place.plain(&resume.stderr).replace(['\n', '│'], " ");
    assert!(resume.status.code() == Some(2) && words.contains("directory: it ran"), "{words}");
    fs::rename(place.path("tmp/moved"), place.path("project")).unwrap();
}

#[test]
fn the_events_of_an_attempt_are_printed_while_its_agent_works() {
    let place = place();
    place.write("shouter.sh", "exec sleep 1000");
    let running = place.start(&["eval", "run", "suite.json", "--events", "ndjson=events"]);
    place.until(|| fs::read_to_string(place.work("events")).is_ok_and(|said| said.contains("attemptStarted")));
    running.end_by("INT").code(130);
}
