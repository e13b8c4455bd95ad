//! Several evaluators, and how far they agree with people.

use crate::support::Place;

/// The evaluator `NAME` passes an output with the word NAME, and gives it its score.
const CONFIG: &str = r#"{
  "agents": {
    "writer": { "command": ["sh", "-c", "cat > /dev/null; echo alpha beta"], "deliver": "stdin" },
    "alpha": { "command": ["sh", "judge.sh", "alpha", "0.9"], "deliver": "stdin", "role": "judge" },
    "beta": { "command": ["sh", "judge.sh", "beta", "0.6"], "deliver": "stdin", "role": "judge" },
    "gamma": { "command": ["sh", "judge.sh", "gamma", "0.1"], "deliver": "stdin", "role": "judge" }
  },
  "chains": {}
}"#;

const JUDGE: &str = r#"
    if sed -n '/utput/,$p' | grep -qw "$1"; then pass=true; issues='[]'; else pass=false; issues="[\"no $1\"]"; fi
    echo "{\"pass\": $pass, \"score\": $2, \"issues\": $issues, \"suggestions\": []}"
"#;

fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG).write("judge.sh", JUDGE);
    place
}

#[test]
fn several_evaluators_decide_by_majority_by_all_or_by_the_mean_of_their_scores() {
    let place = place();
    for (evaluators, decide, expected) in [
        (r#""alpha", "beta", "gamma""#, r#""decide": "majority","#, r#"true 0.53 ["no gamma"]"#),
        (r#""alpha", "beta", "gamma""#, "", r#"true 0.53 ["no gamma"]"#),
        (r#""alpha", "gamma""#, "", r#"false 0.50 ["no gamma"]"#),
        (r#""alpha", "beta", "gamma""#, r#""decide": "all","#, r#"false 0.53 ["no gamma"]"#),
        (r#""alpha", "beta", "gamma""#, r#""decide": "mean","#, r#"true 0.53 ["no gamma"]"#),
        (r#""gamma""#, "", r#"false 0.10 ["no gamma"]"#),
    ] {
        let suite = format!(
            r#"{{ "taskType": "t", "prompt": "Write {{text}}", "executor": "writer", "evaluators": [{evaluators}], {decide}
            "cases": [{{ "id": "a", "text": "it" }}] }}"#
        );
        place.write("suite.json", suite);
        let ran = place.run(&["eval", "run", "suite.json", "--json"]);
        let result = ran.json()["generations"][0]["cases"][0].clone();
        let issues: Vec<&str> =
            result["issues"].as_array().unwrap().iter().filter_map(|issue| issue.as_str()).collect();
        let found = format!("{} {:.2} {issues:?}", result["pass"], result["score"].as_f64().unwrap());
        assert_eq!(found, expected, "{evaluators} {decide}: {}", ran.all());
    }
}

/// Recorded outputs, and whether a person has found them good.
const RECORDED: &str = "id,text,output,label
good,x,alpha,pass
better,x,alpha beta,pass
bad,x,nothing,fail
lucky,x,alpha is wrong here,fail
missed,x,right,pass
";

#[test]
fn judges_are_compared_with_the_labels_of_recorded_outputs() {
    let place = place();
    let suite = r#"{ "taskType": "t", "prompt": "Write {text}", "evaluator": "alpha", "casesFile": "cases.csv" }"#;
    place.write("suite.json", suite).write("cases.csv", RECORDED);
    let ran = place.run(&["eval", "run", "suite.json"]);
    // Only the judge was asked.
    let words = "✗ the judges agree with 3 of 5 labels (kappa 0.17): \
                 1 passed and should fail, 1 failed and should pass (5 attempts)\n";
    assert!(ran.code(1).stdout.contains(words), "{}", ran.all());
    let ran = place.run(&["eval", "run", "suite.json", "--json", "--min-pass", "0.6"]);
    assert_eq!(ran.code(0).json()["calibration"]["passedWrongly"], 1, "{}", ran.stdout);
    // A bad output that fails is right.
    let ran = place.run(&["eval", "run", "suite.json", "--case", "good", "--case", "better", "--case", "bad"]);
    assert!(ran.code(0).stdout.contains("✓ the judges agree with 3 of 3 labels (kappa 1.00) ("), "{}", ran.all());
}

#[test]
fn a_recorded_output_can_be_empty_and_is_not_judged_by_its_cost_and_time() {
    let place = place();
    let suite = r#"{ "taskType": "t", "prompt": "Write {text}", "evaluator": "alpha", "casesFile": "cases.csv",
        "defaults": { "criteria": [{ "type": "cost", "maxCost": 1 }, { "type": "time", "maxTime": "1s" }] } }"#;
    place.write("suite.json", suite).write("cases.csv", "id,text,output,label\ngood,x,alpha,pass\nempty,x,,fail\n");
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(0).stdout.contains("✓ the judges agree with 2 of 2 labels (kappa 1.00) ("), "{}", ran.all());
}

#[test]
fn labels_without_outputs_and_improvements_of_recorded_outputs_are_refused() {
    let place = place();
    let suite = |case: &str| {
        format!(
            r#"{{ "taskType": "t", "prompt": "Write {{text}}", "evaluator": "alpha", "executor": "writer",
            "cases": [{{ "id": "a", "text": "x", {case} }}] }}"#
        )
    };
    for (case, verb, why) in [
        (r#""label": "pass""#, "run", "a `label` says whether a recorded output is good, and there is none"),
        (r#""output": "x", "label": "maybe""#, "run", "use `pass` or `fail`"),
        (r#""output": "x", "outputFile": "y""#, "run", "`output` and `outputFile` are both set"),
        (r#""output": "x""#, "improve", "cases have a recorded output"),
    ] {
        place.write("suite.json", suite(case));
        let ran = place.run(&["eval", verb, "suite.json"]);
        assert!(ran.code(2).words().contains(why), "{case}: {}", ran.stderr);
    }
}

#[test]
fn show_v_has_the_output_next_to_what_was_expected_also_of_a_stored_answer() {
    let place = place();
    let suite = r#"{ "taskType": "t", "prompt": "Write {text}", "executor": "writer",
        "cases": [{ "id": "a", "text": "it", "expected": "gamma", "criteria": [{ "type": "exact" }] }] }"#;
    place.write("suite.json", suite);
    for run in ["1", "2"] {
        let _ = place.run(&["eval", "run", "suite.json"]);
        let ran = place.run(&["-v", "eval", "show", run]);
        let shown = ran.code(0).stdout.split_once("Why cases failed").unwrap().1.split_once("\n\n").unwrap().0;
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown, @r"

            a
              the output is not exactly what was expected
              expected:
                gamma
              output:
                alpha beta
            ");
        }
    }
    let report = place.run(&["report", "1", "--format", "md", "--out", "report.md"]);
    let _ = report.code(0);
    assert!(place.read("report.md").contains("output:\n      alpha beta"), "{}", place.read("report.md"));
}

#[test]
fn the_page_of_an_improvement_has_plots_of_its_generations() {
    let place = place();
    let suite = r#"{ "taskType": "t", "prompts": ["Write {text}", "Write now {text}"], "executor": "writer",
        "cases": [{ "id": "a", "text": "it", "criteria": [{ "type": "keywords", "all": ["alpha"] }] }] }"#;
    place.write("suite.json", suite);
    place.run(&["eval", "run", "suite.json"]).code(0);
    place.run(&["report", "1", "--out", "report.html"]).code(0);
    let page = place.read("report.html");
    for words in ["Side by side", "<svg", "Length of the prompt in tokens", "prompt 2"] {
        assert!(page.contains(words), "{words}");
    }
}

/// Both programs are `claude`: the first and third call execute, the others evaluate.
#[test]
fn an_evaluation_in_the_executors_session_does_not_count_for_a_case_with_the_same_output() {
    let place = Place::new();
    place.config(r#"{ "agents": { "judge": { "backend": "claude", "role": "judge" } }, "chains": {} }"#);
    let said = |session: &str, result: &str| {
        let result =
            serde_json::json!({ "type": "result", "result": result, "is_error": false, "session_id": session });
        format!("print {result}")
    };
    let passes = r#"{"pass": true, "score": 1, "issues": [], "suggestions": []}"#;
    let calls = [said("s1", "yes"), said("s1", passes), said("s2", "yes"), said("s3", passes)];
    place.agent("claude", &calls.join("\nnext\n"));
    let suite = r#"{ "taskType": "t", "prompt": "Answer", "executor": "claude", "evaluator": "judge",
        "cases": [{ "id": "a", "text": "one" }, { "id": "b", "text": "two" }] }"#;
    place.write("suite.json", suite);
    let ran = place.run(&["eval", "run", "suite.json", "--json"]);
    let cases = ran.json()["generations"][0]["cases"].clone();
    assert!(cases[0]["error"].as_str().is_some_and(|why| why.contains("in the executor's session")), "{}", ran.all());
    assert_eq!((&cases[1]["pass"], place.calls("claude")), (&true.into(), 4), "{}", ran.all());
}
