//! Real configs load unchanged, and each of their chains can be planned.

use super::support::Place;
use serde_json::Value;

const FORKHESTRA: &str = include_str!("fixtures/forkhestra-chains.json");
const ORCHESTRA: &str = include_str!("fixtures/orchestra-chains.json");

fn place(config: &str) -> (Place, Vec<String>) {
    let place = Place::new();
    place.config(config);
    let parsed: Value = serde_json::from_str(config).unwrap();
    for name in parsed["agents"].as_object().unwrap().values().filter_map(|agent| agent["systemPrompt"].as_str()) {
        place.write(name, "You are an agent.\n");
    }
    for name in [
        "claude",
        "tasks:manager",
        "tasks:coordinator",
        "tasks:worker",
        "build:tdd",
        "plan:riff",
        "git:pr",
        "review:pr",
        "git:fix",
    ] {
        place.agent(name, "print x");
    }
    let chains = parsed["chains"].as_object().unwrap().keys().cloned().collect();
    (place, chains)
}

#[test]
fn every_chain_of_the_originals_configs_has_a_dry_run() {
    for (config, count) in [(FORKHESTRA, 14), (ORCHESTRA, 4)] {
        let (place, chains) = place(config);
        assert_eq!(chains.len(), count);
        place.run(&["validate"]).code(0);
        for chain in chains {
            let variables = ["TASK_ID=T-1", "FEATURE_NAME=auth", "PLAN_FILE=plan.md"];
            let ran = place.run(&[&["--chain", &chain, "--dry-run"], &variables[..]].concat());
            assert!(ran.code(0).stdout.contains("Nothing was run"), "{chain}");
        }
    }
}

#[test]
fn a_chain_with_a_missing_variable_is_refused_with_the_place() {
    let (place, _) = place(FORKHESTRA);
    insta::assert_snapshot!(place.run(&["--chain", "targeted-work", "--dry-run"]).code(2).stderr);
}

#[test]
fn an_agent_with_a_colon_runs_with_its_default_prompt() {
    let (place, _) = place(FORKHESTRA);
    place.agent("tasks:manager", "marker").agent("tasks:coordinator", "marker");
    place.run(&["--chain", "plan-and-build"]).code(0);
    assert!(place.call("tasks:manager", 1).starts_with("arg Review existing plans and create well-structured tasks"));
    assert!(place.work(".forkhestra/runs/1/1-tasks:manager/1/prompt.md").exists());
}
