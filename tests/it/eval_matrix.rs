//! Several executors and prompts side by side, and several evaluations.

use crate::support::Place;

const CONFIG: &str = r#"{
  "agents": {
    "loud": { "command": ["sh", "-c", "grep '^Repeat' | sed 's/Repeat [a-z]* //' | tr a-z A-Z"], "deliver": "stdin" },
    "quiet": { "command": ["sh", "-c", "grep '^Repeat' | sed 's/Repeat [a-z]* //'"], "deliver": "stdin" }
  },
  "chains": {}
}"#;

/// A suite of four cases with these keys.
fn suite(keys: &str) -> String {
    let case = |text: &str| {
        let expected = text.to_uppercase();
        format!(
            r#"{{ "id": "{text}", "text": "{text}", "expected": "{expected}", "criteria": [{{ "type": "exact" }}] }}"#
        )
    };
    let cases = ["one", "two", "three", "UP"].map(case).join(", ");
    format!(r#"{{ "taskType": "shouting", {keys}, "cases": [{cases}] }}"#)
}

fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG);
    place
}

#[test]
fn every_executor_with_every_prompt_is_a_column() {
    let place = place();
    place.write("a.md", "Repeat now {text}\n").write("b.md", "Repeat later {text}\n");
    place.write("suite.json", suite(r#""executors": ["quiet", "loud"], "promptFiles": ["a.md", "b.md"]"#));
    let ran = place.run(&["eval", "run", "suite.json", "-j", "2"]);
    let shown: Vec<&str> = ran.code(1).stdout.lines().filter(|line| !line.starts_with("time")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    case      quiet, a.md  quiet, b.md  loud, a.md  loud, b.md
    one         fail 0.00    fail 0.00   pass 1.00   pass 1.00
    two         fail 0.00    fail 0.00   pass 1.00   pass 1.00
    three       fail 0.00    fail 0.00   pass 1.00   pass 1.00
    UP          pass 1.00    pass 1.00   pass 1.00   pass 1.00
    all          1/4 0.25     1/4 0.25    4/4 1.00    4/4 1.00

    ✗ 10 of 16 results passed in 4 columns (16 attempts)
      loud, a.md is better than quiet, a.md by 0.75; by chance, it looks as good in 33 % of evaluations, so that is not proven
      loud, a.md is better than quiet, b.md by 0.75; by chance, it looks as good in 33 % of evaluations, so that is not proven
      loud, a.md and loud, b.md do not differ
      transcripts: .forkhestra/runs/1
    ");
    let ran = place.run(&["eval", "run", "suite.json", "--json"]);
    let answer = ran.code(1).json();
    assert_eq!(answer["columns"][3]["name"], "loud, b.md");
    assert_eq!(answer["generations"][3]["training"]["passed"], 4);
    assert!(answer["generations"][3]["cases"][0]["tookMs"].is_u64(), "{answer}");
}

#[test]
fn the_best_column_is_proven_with_enough_results() {
    let place = place();
    place.write("suite.json", suite(r#""executors": ["quiet", "loud"], "prompt": "Repeat now {text}", "repeat": 3"#));
    let ran = place.run(&["eval", "run", "suite.json"]);
    let words = "loud is better than quiet by 0.75; by chance, it looks as good in < 0.1 % of evaluations\n";
    assert!(ran.code(1).stdout.contains(words), "{}", ran.stdout);
    // An interrupted one continues with the next column.
    let ran = place.run(&["eval", "run", "suite.json", "--fresh", "--limit", "attempts=14"]);
    assert!(ran.code(4).stdout.contains("14 of 24 results are available"), "{}", ran.stdout);
    let ran = place.run(&["resume", "--limit", "attempts=100"]);
    assert!(ran.code(1).stdout.contains(words), "{}", ran.stdout);
}

#[test]
fn compare_shows_evaluations_side_by_side() {
    let place = place();
    for executor in ["quiet", "loud"] {
        let keys = format!(r#""executor": "{executor}", "prompt": "Repeat now {{text}}", "repeat": 3"#);
        place.write("suite.json", suite(&keys));
        let _ = place.run(&["eval", "run", "suite.json"]);
    }
    let ran = place.run(&["eval", "compare", "1", "2"]);
    let shown: Vec<&str> = ran.code(0).stdout.lines().filter(|line| !line.starts_with("time")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r"
    case       1: quiet    2: loud
    one        0/3 0.00   3/3 1.00
    two        0/3 0.00   3/3 1.00
    three      0/3 0.00   3/3 1.00
    UP         3/3 1.00   3/3 1.00
    all       3/12 0.25  12/12 1.00

    2: loud is better than 1: quiet by 0.75; by chance, it looks as good in < 0.1 % of evaluations
    ");
    let ran = place.run(&["eval", "compare", "1", "2", "--json"]);
    assert_eq!(ran.code(0).json()["comparisons"][0]["best"], 1, "{}", ran.stdout);
    for (runs, why) in [(["1", "1"], "run 1 is named twice"), (["1", "9"], "there is no run 9")] {
        let ran = place.run(&["eval", "compare", runs[0], runs[1]]);
        assert!(ran.code(2).words().contains(why), "{}", ran.stderr);
    }
}

#[test]
fn a_matrix_is_refused_where_only_one_prompt_can_be_meant() {
    let place = place();
    place.write("suite.json", suite(r#""executors": ["quiet", "loud"], "prompt": "Repeat now {text}""#));
    for words in [&["improve", "suite.json"][..], &["run", "suite.json", "--baseline", "1"]] {
        let ran = place.run(&[&["eval"], words].concat());
        assert!(ran.code(2).stderr.contains("eval/matrix"), "{}", ran.stderr);
    }
    for (keys, why) in [
        (r#""executors": ["loud", "loud"], "prompt": "p""#, "the executor `loud` is named twice"),
        (r#""executor": "loud", "executors": ["quiet"], "prompt": "p""#, "`executor` and `executors` are both set"),
        (r#""prompt": "p""#, "the suite has no executor"),
        (r#""executors": ["loud", "nobody"], "prompt": "p""#, "nobody"),
    ] {
        place.write("suite.json", suite(keys));
        let ran = place.run(&["eval", "run", "suite.json"]);
        assert!(ran.code(2).words().contains(why), "{}", ran.stderr);
    }
}
