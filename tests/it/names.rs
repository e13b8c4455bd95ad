//! What an argument on the command line and a name in a chain refer to.

use super::support::Place;

/// Returns what a dry run shows for each step of what was typed.
fn steps(place: &Place, typed: &str) -> Vec<(String, bool, String)> {
    let ran = place.run(&[typed, "-p", "x", "--dry-run", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&ran.code(0).stdout).unwrap();
    let step = |step: &serde_json::Value| {
        let backend = step["backend"].as_str().unwrap_or_default().to_string();
        (step["name"].as_str().unwrap().to_string(), step["kind"] == "check", backend)
    };
    plan["steps"].as_array().unwrap().iter().map(step).collect()
}

#[test]
fn a_bare_word_that_is_a_chain_runs_it() {
    let place = Place::new();
    place.agent("a", "print I am a").agent("coder", "print I am a program");
    place.config(r#"{"chains": {"ship": "a -> a", "coder": {"steps": [{"agent": "a"}]}}}"#);
    assert_eq!(place.run(&["ship"]).code(0).stdout, "I am a\nI am a\n");
    assert_eq!(
        place.run(&["coder"]).code(0).stdout,
        "I am a\n",
        "a chain of the config stands before a built-in agent"
    );
    assert_eq!(place.run(&["demo", "--dry-run"]).code(0).stdout, place.run(&["--chain", "demo", "--dry-run"]).stdout);
    place.config(r#"{"agents": {"ship": {"command": "a"}}, "chains": {"ship": "a -> a"}}"#);
    assert_eq!(steps(&place, "ship").len(), 1, "an agent of the config stands before its chain");
}

#[test]
fn the_bare_name_of_an_agent_cli_is_an_agent_of_it() {
    let place = Place::new();
    place.agent("codex", r#"print {"type":"item.completed","item":{"type":"agent_message","text":"hi"}}"#);
    assert_eq!(steps(&place, "codex:3"), [("codex".to_string(), false, "codex".to_string())]);
    assert_eq!(place.run(&["codex", "-p", "Say hi."]).code(0).stdout, "hi\n");
    assert!(place.call("codex", 1).contains("arg exec\n"), "{}", place.call("codex", 1));
    place.config(r#"{"agents": {"codex": {"model": "o9"}}, "chains": {}}"#);
    assert!(place.run(&["codex", "-p", "x", "--dry-run"]).code(0).stdout.contains("--model o9"));
    place.agent("mine", "print I am mine");
    place.config(r#"{"agents": {"codex": {"command": "mine"}}, "chains": {}}"#);
    assert_eq!(place.run(&["codex"]).code(0).stdout, "I am mine\n");
}

#[test]
fn a_program_on_path_still_runs_by_its_bare_name() {
    let place = Place::new();
    place.agent("my-agent", "print hi");
    assert_eq!(place.run(&["my-agent"]).code(0).stdout, "hi\n");
}

#[test]
fn words_of_other_tools_and_slips_of_verbs_are_answered_with_ours() {
    let place = Place::new();
    place.config(r#"{"chains": {"ship": "coder -> test"}}"#);
    for (typed, answer) in [
        (&["ps"][..], "`forkhestra runs` lists runs"),
        (&["logs"], "`forkhestra runs log -f` follows"),
        (&["kill", "3"], "`forkhestra stop` stops the current run here"),
        (&["top"], "`forkhestra runs log -f`"),
        (&["reset", "--dry-run"], "tasks are under `forkhestra task`"),
        (&["docter"], "did you mean `forkhestra doctor`?"),
        (&["resum"], "did you mean `forkhestra resume`?"),
        (&["reprot"], "did you mean `forkhestra report`?"),
        (&["completion", "bash"], "did you mean `forkhestra completions`?"),
        (&["tsak", "list"], "did you mean `forkhestra task`?"),
        (&["shp"], "did you mean `ship`?"),
        (&["coder", "test"], "put the whole chain in quotes: forkhestra \"coder -> test\""),
        (&["coder", "->", "test"], "put one pair of quotes around all of it"),
        (&["coder", "-"], "has just created a file named after the next step: remove it"),
        (&["claude", "fix the test"], "pass a prompt with -p: forkhestra claude -p \"fix the test\""),
        (&["npm", "test"], "Run a command as a check: \"checks\": { \"unit\": \"npm test\" }"),
        (&["claude"], "`claude` has nothing to do: no prompt was given"),
        (&["coder", "--yolo"], "--permissions full"),
        (&["coder", "--max-cost", "5"], "--limit cost=5"),
        (&["deploy"], "`forkhestra init` writes a config with the chain `ship`"),
        (&["codre"], "did you mean `coder`?"),
        (&["hello"], "configure it in `agents`"),
        (&["show", "12"], "`forkhestra runs show 12` shows run 12"),
        (&["show", "coder"], "`coder` is an agent: `forkhestra coder` runs it"),
    ] {
        let ran = place.run(typed);
        assert!(ran.code(2).words().contains(answer), "{typed:?}: {}", ran.stderr);
    }
    assert!(!place.work(".forkhestra").exists());
}

#[test]
fn a_chain_as_a_step_leads_to_what_works() {
    let place = Place::new();
    place.config(r#"{"chains": {"a": "coder -> test", "b": [], "c": {"steps": [{"agent": "a"}]}, "d": {"steps": [{"chain": "a"}]}}}"#);
    for chain in ["a:3", "test -> a"] {
        let words = place.run(&[chain]).code(2).words();
        assert!(words.contains("run it by itself, `forkhestra a`, or write its steps: `(coder -> test)`"), "{words}");
    }
    assert!(place.run(&["c"]).code(2).words().contains("`a` is a chain, and a chain cannot be a step"));
    assert!(place.run(&["d"]).code(2).words().contains("a chain cannot be a step: write its steps here, as text"));
}

#[test]
fn a_word_after_a_colon_is_answered_with_a_count() {
    let place = Place::new();
    place.agent("good", "marker");
    let words = place.run(&["good:x -> good", "-p", "x"]).code(2).words();
    assert!(words.contains("nothing is named `good:x`") && words.contains("number: `good:3`"), "{words}");
}

#[test]
fn one_name_for_an_agent_and_a_check_of_one_config_is_refused() {
    let place = Place::new();
    place
        .config(r#"{"agents": {"w": {"command": "w"}, "t": {"command": "w"}}, "checks": {"t": "true"}, "chains": {}}"#);
    let words = place.run(&["validate"]).code(2).words();
    assert!(words.contains("`t` is both an agent and a check") && words.contains("rename one of them"), "{words}");
}

#[test]
fn steps_that_were_meant_to_run_at_once_are_told_that_they_do_not() {
    let place = Place::new();
    for typed in ["a & b", "a , b", "a | b", "a, b", "a,b", "a|b"] {
        let words = place.run(&[typed]).code(2).words();
        assert!(words.contains("steps cannot run at the same time"), "{typed}: {words}");
    }
    assert!(place.run(&["a && b"]).code(2).words().contains("write the arrow as `->`"));
}

/// In someone else's checkout, these names run what that checkout specifies.
#[test]
fn a_run_names_the_built_in_names_that_the_project_gives_another_meaning() {
    let place = Place::new();
    place.agent("c", "print x").agent("a", "print x");
    place.config(r#"{"agents": {"coder": {"command": "c"}, "mine": {"command": "a"}}, "checks": {"test": "true"}, "chains": {}}"#);
    let ran = place.run(&["coder -> test -> mine"]);
    assert!(
        ran.code(0).stderr.starts_with("defined in forge/chains.json, not built in: coder, test\n"),
        "{}",
        ran.stderr
    );
    assert!(!place.run(&["mine -> a"]).code(0).stderr.contains("defined in forge"));
}
