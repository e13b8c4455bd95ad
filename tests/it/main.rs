//! The only integration-test binary: the whole program with real processes, for what only they can show.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests look at the world themselves")]

mod agents;
mod aliases;
mod answers;
mod backlog;
mod batch;
mod batch_faults;
mod bundles;
mod bytes;
mod chain_text;

mod changes;
mod checkpoints;
mod checks;
mod clis;
mod containment;
mod corpus;
mod demo;
mod detach;
mod discovered;
mod docs;
mod doctor;
mod embedding;
mod engine_faults;
mod engines;
mod eval_cases;
mod eval_criteria;
mod eval_engines;
mod eval_improvement;
mod eval_instructions;
mod eval_judges;
mod eval_matrix;
mod eval_resume;
mod eval_selection;
mod eval_statistics;
mod eval_trees;
mod evaluations;
mod export;
mod face;
mod files;
mod forging;
mod guarding;
mod history;
mod hub;
mod incomplete;
mod input;
mod integrator;
mod journal;
mod judgement;
mod junit;
mod kills;
mod lanes;
mod layering;
mod lifeline;
mod limits;
mod machines;
mod mcp;
mod mess;
mod names;
mod night;
mod notifications;
mod outputs;
mod overtaking;
mod people;
mod plain_verbs;
mod plots;
mod preflight;
mod promises;
mod prompts;
mod queue;
mod readers;
mod reports;
mod resume;
mod roles;
mod run;
mod sandbox;
mod schemas;
mod screens;
mod secrets;
mod shared;
mod shares;
mod signals;
mod soak;
mod start;
mod status;
mod support;
mod tasks;
mod tell;
mod templates;
mod terminal;
mod timeouts;
mod tries;
mod trust;
mod usage;
mod variants;
mod verdicts;
mod workspaces;

/// The tests of a file that is not named above would never run.
#[test]
fn no_test_file_is_forgotten() {
    let here = include_str!("main.rs");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        if !["main", "fixtures", "snapshots"].contains(&module) {
            assert!(here.contains(&format!("mod {module};")), "{name} is not a module of main.rs");
        }
    }
}
