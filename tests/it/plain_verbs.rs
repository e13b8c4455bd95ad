//! `list`, `show`, `validate`, `init`: commands that answer on standard output.

use super::support::Place;

fn place() -> Place {
    let place = Place::new();
    place.agent("a", "marker").write("p.md", "p");
    place.config(
        r#"{"agents": {"mine": {"description": "My own", "command": "a --x"}}, "checks": {"test": {"run": "cargo test"}},
            "chains": {"ship": {"description": "Ships ${WHAT}", "prompt": "Ship\n${WHAT}", "vars": {"WHAT": "it"}, "steps": [
              {"group": [{"agent": "mine", "iterations": 3, "args": ["--y"]}, {"check": "test"}], "iterations": 5}, {"agent": "a", "promptFile": "p.md"}]}}}"#,
    );
    place
}

#[test]
fn list_shows_chains_agents_and_checks_with_their_layers() {
    let place = place();
    insta::assert_snapshot!(place.run(&["list"]).code(0).stdout);
    let json: serde_json::Value = serde_json::from_str(&place.run(&["list", "--json"]).code(0).stdout).unwrap();
    let ship = json["chains"].as_array().unwrap().iter().find(|chain| chain["name"] == "ship").unwrap();
    assert_eq!((&ship["layer"], &ship["chain"]), (&"project".into(), &"(mine:3 -> test):5 -> a".into()));
}

#[test]
fn show_shows_a_chain_as_text_and_in_the_language() {
    let place = place();
    insta::assert_snapshot!(place.run(&["show", "ship"]).code(0).stdout);
    let json: serde_json::Value = serde_json::from_str(&place.run(&["show", "ship", "--json"]).code(0).stdout).unwrap();
    assert_eq!(json["steps"][0]["group"][0]["args"][0], "--y");
    assert!(place.run(&["show", "shipp"]).code(2).words().contains("did you mean `ship`?"));
}

#[test]
fn validate_says_what_is_valid_and_reads_any_file() {
    let place = place();
    assert_eq!(place.run(&["validate"]).code(0).stdout, "forge/chains.json is valid (1 chain).\n");
    place.write("other.json", r#"{"chains": {"x": {"steps": [{"agent": "nobody"}]}}}"#);
    assert!(place.run(&["validate", "other.json"]).code(2).words().contains("nothing is named `nobody`"));
    assert!(place.run(&["validate", "gone.json"]).code(2).words().contains("there is no config"));
    let empty = Place::new();
    assert!(empty.run(&["validate"]).code(0).stdout.starts_with("No config here"));
}

#[test]
fn init_writes_a_config_that_runs_at_once_and_never_over_a_file() {
    let place = Place::new();
    place.agent("claude", "");
    insta::assert_snapshot!(place.run(&["init"]).code(0).stdout);
    place.run(&["validate"]).code(0);
    let ran = place.run(&["--chain", "hello"]);
    assert!(ran.code(0).stdout.starts_with("I was asked: Say hello.\n"), "{}", ran.stdout);
    place.run(&["--chain", "ship", "FEATURE=x", "--dry-run"]).code(0);
    place.write("forge/chains.json", "mine");
    let again = place.run(&["init"]);
    assert!(again.code(2).words().contains("nothing was written"), "{}", again.stderr);
    assert_eq!(place.read("forge/chains.json"), "mine");
}

#[test]
fn no_color_and_a_pipe_mean_no_escapes_and_clicolor_force_means_some() {
    let mut place = place();
    assert!(!place.run(&["list"]).code(0).stdout.contains('\x1b'));
    place.set("CLICOLOR_FORCE", "1");
    assert!(place.run(&["list"]).code(0).stdout.contains('\x1b'));
    place.set("NO_COLOR", "1");
    assert!(!place.run(&["list"]).code(0).stdout.contains('\x1b'));
}

#[test]
fn validate_finds_what_only_a_run_would_and_a_bad_folder_is_refused_by_every_verb() {
    let place = place();
    place.write("other.json", r#"{"agents": {"x": {"backend": "nope"}, "y": {"command": "./gone"}, "z": {"command": "a", "env": {"Q": "${}"}}},
        "chains": {"c": {"prompt": "${ NAME }", "steps": [{"agent": "a"}]}, "d": {"steps": [{"agent": "a", "promptFile": "gone.md"}]}, "v": {"prompt": "${LATER}", "steps": [{"agent": "a"}]}}}"#);
    let words = place.run(&["validate", "other.json"]).code(2).words();
    for fault in [
        "`nope` is not a known backend",
        "gone cannot be found",
        "this is not a valid variable",
        "prompt file not found",
    ] {
        assert!(words.contains(fault), "{fault}: {words}");
    }
    assert!(!words.contains("the variable `LATER`"), "a variable of the command line is no fault of the file");
    for verb in [&["list"][..], &["show", "demo"], &["validate"]] {
        place.run(&[verb, &["--cwd", "/nonexistent"]].concat()).code(2);
    }
}

#[test]
fn init_leaves_a_config_of_either_name_alone() {
    let place = Place::new();
    place.write("forge/chains.json5", "{chains: {}}");
    assert!(place.run(&["init"]).code(2).words().contains("forge/chains.json5 already exists"));
    assert!(!place.work("forge/chains.json").exists());
}

#[test]
fn validate_names_a_config_in_a_place_where_none_is_read() {
    for name in ["forge/chains.yaml", "chains.json"] {
        let place = Place::new();
        place.write(name, "{}");
        assert!(place.run(&["validate"]).code(2).words().contains(&format!("{name} is not read")));
    }
}

#[test]
fn validate_warns_of_a_chain_with_the_name_of_a_command() {
    let place = Place::new();
    place.config(r#"{"chains": {"status": "true", "task": "true", "ship": "true"}}"#);
    let ran = place.run(&["validate"]);
    insta::assert_snapshot!(ran.code(0).stderr, @r#"
    chain/verb

      ⚠ `forkhestra status` is a command, and does not run this chain
       ╭─[forge/chains.json:1:14]
     1 │ {"chains": {"status": "true", "task": "true", "ship": "true"}}
       ·              ───┬──
       ·                 ╰── this chain
       ╰────
      help: run it with --chain status, or give it another name
    "#);
    assert_eq!(ran.stdout, "forge/chains.json is valid (3 chains).\n");
    let json: serde_json::Value = serde_json::from_str(&place.run(&["validate", "--json"]).code(0).stdout).unwrap();
    assert_eq!((&json["valid"], &json["errors"][0]["code"]), (&true.into(), &"chain/verb".into()));
    place.run(&["--chain", "status"]).code(0);
}

#[test]
fn validate_warns_of_a_chain_with_the_name_of_an_agent_and_points_at_what_is_wrong() {
    let place = Place::new();
    place.config(r#"{"agents": {"fix": {"command": "true"}}, "chains": {"fix": "fix"}}"#);
    let words = place.run(&["validate"]).code(0).words();
    assert!(words.contains("chain/step ⚠ `forkhestra fix` runs the agent `fix`, not this chain"), "{words}");
    place.config(r#"{"chains": {"a": {"steps": ["true", 5]}, "b": {"steps": [{"check": "tset"}]}}}"#);
    let ran = place.run(&["validate"]);
    assert!(ran.code(2).stderr.contains("[forge/chains.json:1:37]"), "{}", ran.stderr);
    assert!(ran.words().contains("did you mean `test`?"), "{}", ran.stderr);
}
