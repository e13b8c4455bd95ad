//! `selectBest`: an agent compares the outputs of every two columns, in both orders.

use crate::evaluations::calls;
use crate::support::Place;

const CONFIG: &str = r#"{
  "agents": {
    "loud": { "command": ["sh", "-c", "grep '^Repeat' | sed 's/Repeat //' | tr a-z A-Z"], "deliver": "stdin" },
    "quiet": { "command": ["sh", "-c", "grep '^Repeat' | sed 's/Repeat //'"], "deliver": "stdin" },
    "judge": { "command": "sh judge.sh", "deliver": "stdin" }
  },
  "chains": {}
}"#;

/// Counts its calls, and prefers capital letters.
const FAIR: &str = r#"
echo x >> calls.txt
first=$(cat | sed -n '/^First output:/{n;p;}')
case $first in *[a-z]*) better=second;; *) better=first;; esac
echo "The first is $first: {\"better\": \"$better\"}"
"#;

/// A project with a suite of these cases, and an agent that compares.
fn place(cases: &[&str], judge: &str) -> Place {
    let place = Place::new();
    let cases = cases.iter().map(|text| format!(r#"{{ "id": "{text}", "text": "{text}" }}"#));
    let cases = cases.collect::<Vec<_>>().join(", ");
    let agents = r#""executors": ["quiet", "loud"], "selectBest": "judge""#;
    let suite = format!(r#"{{ "taskType": "shouting", "prompt": "Repeat {{text}}", {agents}, "cases": [{cases}] }}"#);
    place.config(CONFIG).write("suite.json", suite).write("judge.sh", judge);
    place
}

#[test]
fn select_best_compares_the_outputs_of_two_columns_in_both_orders() {
    let place = place(&["one", "two", "three", "four", "five", "UP"], FAIR);
    let preview = place.run(&["eval", "run", "suite.json", "--dry-run"]);
    assert!(preview.code(0).stdout.contains("at most    24 attempts"), "{}", preview.stdout);
    let ran = place.run(&["eval", "run", "suite.json", "-j", "2"]);
    let words = "loud is preferred to quiet in 5 of 6 cases, and quiet in 0; by chance, it looks as clear in 6 % of \
                 evaluations, so that is not proven";
    assert!(ran.code(0).stdout.contains(words), "{}", ran.stdout);
    assert!(ran.stderr.contains("  one  quiet or loud: loud is better\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("  UP  loud or quiet: equally good\n"), "{}", ran.stderr);
    assert_eq!(calls(&place), 10, "equal outputs are not compared by an agent");
    let shown = place.run(&["eval", "show", "--json"]).code(0).json();
    assert_eq!((&shown["preferences"][0]["losses"], &shown["preferences"][0]["ties"]), (&5.into(), &1.into()));
    // What was said is known.
    place.run(&["eval", "run", "suite.json"]).code(0);
    assert_eq!(calls(&place), 10);
}

#[test]
fn select_best_prefers_nothing_if_the_agent_always_takes_the_first_output() {
    let place = place(&["one", "two"], r#"echo '{"better": "first"}'"#);
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(0).stdout.contains("neither quiet nor loud is preferred: 0 to 0 of 2 cases"), "{}", ran.stdout);
}

#[test]
fn select_best_that_cannot_be_read_needs_a_human_and_a_resume_asks_again() {
    let place = place(&["one"], "echo The first one.");
    let ran = place.run(&["eval", "run", "suite.json"]);
    let words = "0 to 0 of 0 cases; 1 comparison failed: it contains no JSON object";
    assert!(ran.code(3).stdout.contains(words), "{}", ran.stdout);
    place.write("judge.sh", FAIR);
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stdout.contains("loud is preferred to quiet in 1 of 1 case,"), "{}", ran.stdout);
}

#[test]
fn select_best_goes_on_where_it_was_interrupted() {
    let hangs = "[ -e calls.txt ] && [ ! -e up ] && touch up && sleep 600";
    let place = place(&["one", "two"], &format!("{hangs}\n{FAIR}"));
    let up = place.work("up");
    let run = place.start(&["eval", "run", "suite.json"]);
    place.wait_for(&up);
    run.signal("INT");
    run.end().code(130);
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stdout.contains("loud is preferred to quiet in 2 of 2 cases"), "{}", ran.stdout);
    assert_eq!(calls(&place), 4, "what was said is known");
}

#[test]
fn select_best_needs_two_columns_of_texts() {
    let place = place(&["one"], FAIR);
    let suite = place.read("suite.json").replace(r#""executors": ["quiet", "loud"]"#, r#""executor": "loud""#);
    place.write("suite.json", suite);
    let ran = place.run(&["eval", "run", "suite.json"]);
    assert!(ran.code(2).stderr.contains("suite/select-best"), "{}", ran.stderr);
}
