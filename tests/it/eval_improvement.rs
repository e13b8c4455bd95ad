//! How an improvement chooses what it rewrites, and what it may use.

use crate::evaluations::{calls, place, suite};
use crate::support::Place;

/// The prompts that the improver was given, one for each call.
fn rewritten(place: &Place) -> Vec<String> {
    let told = |call| String::from_utf8(place.stdin_of("rewriter", call)).unwrap();
    let prompts = ["Repeat the text.", "only short", "Repeat it in capital letters"];
    let of = |told: String| (*prompts.iter().find(|prompt| told.contains(**prompt)).unwrap()).to_string();
    (1..).take(place.calls("rewriter")).map(|call| of(told(call))).collect()
}

#[test]
fn minibatch_tries_a_candidate_on_a_few_cases_first() {
    let place = place();
    place.agent("rewriter", "print Say the text again.\nnext\nprint Repeat it in capital letters.");
    let ran = place.run(&["eval", "improve", "suite.json", "--minibatch", "2"]);
    assert!(ran.code(0).stdout.contains("2 results saved: candidates that were no better stopped early"), "{ran:?}");
    // Four with the original, two with the first candidate, all four with the second one.
    assert_eq!(calls(&place), 10);
    let shown = place.run(&["eval", "show", "--json"]).code(0).json();
    assert_eq!((&shown["generations"][1]["saved"], &shown["generations"][2]["saved"]), (&2.into(), &().into()));
}

/// A candidate that does best on a case stays in the pool, although it is no better on the whole.
#[test]
fn a_candidate_is_made_from_any_prompt_that_does_best_on_some_case() {
    let mut places = Vec::new();
    for seed in ["1", "2", "3", "4", "5", "6"] {
        let place = place();
        let cases = r#"[
          { "id": "short", "text": "hello", "expected": "HELLO", "criteria": [{ "type": "exact" }] },
          { "id": "same", "text": "oh", "expected": "oh", "criteria": [{ "type": "exact" }] }
        ]"#;
        place.write("suite.json", suite(r#""improver": "rewriter","#, cases));
        place.agent("rewriter", "print In capitals, but only short texts.\nnext\nprint Nothing new here.");
        place.run(&["eval", "improve", "suite.json", "--seed", seed]).code(1);
        places.push(rewritten(&place));
    }
    assert!(places.iter().all(|prompts| prompts[0] == "Repeat the text."), "{places:?}");
    let second: Vec<&str> = places.iter().map(|prompts| prompts[1].as_str()).collect();
    assert!(second.contains(&"Repeat the text.") && second.contains(&"only short"), "{second:?}");
}

#[test]
fn budget_ends_an_improvement_before_a_candidate_that_it_does_not_allow() {
    let place = place();
    place.agent("rewriter", "print Say the text again.\nnext\nprint Say it once more.");
    let ran = place.run(&["eval", "improve", "suite.json", "--budget", "attempts=9"]);
    let words = "the original prompt is kept: the budget allows no further candidate (9 attempts)";
    assert!(ran.code(1).stdout.contains(words), "{}", ran.stdout);
    assert_eq!((calls(&place), place.calls("rewriter")), (8, 1));
    // A budget is a limit, too.
    place.run(&["eval", "improve", "suite.json", "--budget", "attempts=3", "--fresh"]).code(4);
    assert_eq!(calls(&place), 11);
    let ran = place.run(&["resume", "--limit", "attempts=20"]);
    assert!(ran.code(1).stdout.contains("the budget allows no further candidate"), "{}", ran.stdout);
    assert_eq!(calls(&place), 12);
    // Known answers say nothing about what new ones take.
    let ran = place.run(&["eval", "improve", "suite.json", "--budget", "attempts=5"]);
    assert!(ran.code(1).stdout.contains("the budget allows no further candidate (5 attempts)"), "{}", ran.stdout);
    let ran = place.run(&["eval", "improve", "suite.json", "--budget", "cost=5"]);
    assert!(ran.code(2).stderr.contains("--budget"), "{}", ran.stderr);
    for wrong in ["attempts=0", "cost=-1", "cost=inf", "time=1h", "5"] {
        let ran = place.run(&["eval", "improve", "suite.json", "--budget", wrong]);
        assert!(ran.code(2).stderr.contains("attempts=N or cost=N"), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn budget_of_cost_allows_a_candidate_if_another_one_costs_as_much_as_the_results_so_far() {
    for (budget, tries) in [("0.75", 0), ("0.9", 1)] {
        let place = place();
        let says = |text: &str, cost: &str| {
            format!(
                r#"print {{"type":"result","result":"{text}","is_error":false,"total_cost_usd":{cost},"usage":{{}}}}"#
            )
        };
        place.agent("shouter", &says("no", "0.1"));
        place.agent("rewriter", &format!("{}\nnext\n{}", says("Say it again.", "0"), says("Say it once more.", "0")));
        let agent = |name: &str| {
            format!(r#""{name}": {{ "command": "{name}", "output": "claude-stream", "deliver": "stdin" }}"#)
        };
        place.config(&format!(r#"{{ "agents": {{ {}, {} }}, "chains": {{}} }}"#, agent("shouter"), agent("rewriter")));
        let ran = place.run(&["eval", "improve", "suite.json", "--budget", &format!("cost={budget}")]);
        assert!(ran.code(1).stdout.contains("the budget allows no further candidate"), "{budget}: {}", ran.stdout);
        assert_eq!(place.calls("rewriter"), tries, "{budget}");
    }
}
