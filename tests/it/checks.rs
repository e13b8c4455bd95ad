//! The built-in checks: the project's own commands, in a chain and by hand.

use super::support::Place;
use serde_json::Value;

/// Makes a project whose build is a script that prints like rustc.
fn project(place: &Place) {
    place.write("Makefile", "build:\n\t@sh ./build.sh\ntest:\n\t@true\n");
    place.write("build.sh", "test -f fixed && exit 0\nprintf 'error[E0308]: mismatched types\\n  --> src/a.rs:3:9\\n' >&2; seq 3000; exit 1\n");
}

/// The first errors reach the agent, not the last lines. A failing diagnosis does not stop the chain.
#[test]
fn a_diagnosis_is_in_the_prompt_of_the_coder_and_the_same_command_verifies() {
    let place = Place::new();
    project(&place);
    place.write(
        "forge/agents/coder/prompt.md",
        "{{task_prompt}}\n{{#if diagnostics}}\nFirst:\n{{diagnostics}}\n{{/if}}\n",
    );
    place
        .agent("coder", "sh true\nnext\ntouch fixed")
        .config(r#"{"agents": {"coder": {"command": "coder"}}, "chains": {}}"#);
    let ran = place.run(&["diagnose -> (coder -> verify):3", "-p", "Fix it."]);
    ran.code(0);
    assert_eq!(
        place.read(".forkhestra/runs/1/2-coder/1/prompt.md"),
        "Fix it.\nFirst:\nsrc/a.rs:3: [E0308] mismatched types\n"
    );
    let second = place.read(".forkhestra/runs/1/2-coder/2/prompt.md");
    assert!(second.contains("The first errors:\n\n```\nsrc/a.rs:3: [E0308] mismatched types\n```"), "{second}");
    insta::assert_snapshot!(ran.stderr);
}

/// A check without a command is neither passed nor failed.
#[test]
fn a_check_without_a_command_is_named_and_not_passed() {
    let place = Place::new();
    place.agent("a", "print x");
    let planned = place.run(&["a -> lint", "--dry-run"]);
    assert!(
        planned.code(0).stdout.contains("2. lint, a check without a command; forkhestra looks again"),
        "{}",
        planned.stdout
    );
    let json: Value = serde_json::from_str(&place.run(&["diagnose", "--json"]).code(0).stdout).unwrap();
    assert_eq!((&json["kind"], &json["passed"]), (&"diagnostic_unavailable".into(), &Value::Null));
    let strict = place.run(&["verify", "--profile", "strict"]);
    assert!(
        strict.code(2).words().contains("requires checks that this project does not have: build, test, lint"),
        "{}",
        strict.stderr
    );
}

#[test]
fn a_built_in_check_that_a_chain_names_as_an_agent_is_shown_as_a_check() {
    let place = Place::new();
    place.config(r#"{"chains": {"ship": [{"agent": "verify"}]}}"#);
    let words = place.run(&["--chain", "ship"]).code(2).words();
    assert!(words.contains("`verify` is a check, not an agent"), "{words}");
    assert!(words.contains(r#"write { "check": "verify" }"#), "{words}");
}

#[test]
fn detect_names_what_was_found_and_the_config_stands_before_it() {
    let place = Place::new();
    place.write("package.json", r#"{"scripts": {"build": "b", "test": "t"}}"#).write("Cargo.toml", "");
    place.config(r#"{"checks": {"test": {"run": "make quick"}}, "chains": {}}"#);
    insta::assert_snapshot!("detected", place.run(&["detect"]).code(0).stdout);
    let json: Value = serde_json::from_str(&place.run(&["detect", "--json"]).code(0).stdout).unwrap();
    assert_eq!(
        (&json["stacks"][0], &json["lint"]),
        (&"node".into(), &"cargo clippy --all-targets -- -D warnings".into())
    );
}

#[test]
fn verify_and_diagnose_by_hand_end_as_the_project_does() {
    let place = Place::new();
    project(&place);
    let ran = place.run(&["diagnose"]);
    assert!(
        ran.code(1).stderr.ends_with("failed with exit code 2\nsrc/a.rs:3: [E0308] mismatched types\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("2999\n3000\n"));
    let json: Value =
        serde_json::from_str(&place.run(&["diagnose", "--json", "--kind", "build"]).code(1).stdout).unwrap();
    assert_eq!(
        (&json["passed"], &json["failures"][0]["line"], &json["failures"][0]["code"]),
        (&false.into(), &3.into(), &"E0308".into())
    );
    place.write("fixed", "");
    assert!(place.run(&["verify"]).code(0).stderr.ends_with("passed\n"));
    assert!(!place.work(".forkhestra").exists(), "nothing is kept");
}

/// By hand: with the output of each stream, and with a timeout.
#[test]
fn a_command_by_hand_tells_its_streams_its_code_and_whether_its_time_was_over() {
    let place = Place::new();
    let told = |line: &str| -> Value {
        place.config(&serde_json::json!({ "checks": { "build": { "run": line } }, "chains": {} }).to_string());
        serde_json::from_str(&place.run(&["diagnose", "--kind", "build", "--json"]).stdout).unwrap()
    };
    let echo = told("echo out; echo err >&2");
    assert_eq!((&echo["exitCode"], &echo["stdout"], &echo["stderr"]), (&0.into(), &"out\n".into(), &"err\n".into()));
    let failed = told("exit 1");
    assert_eq!(
        (&failed["exitCode"], &failed["passed"], &failed["timedOut"]),
        (&1.into(), &false.into(), &false.into())
    );
}

/// What the user typed is either run or refused.
#[test]
fn a_check_without_a_command_is_refused_where_nothing_could_make_one() {
    let place = Place::new();
    place.agent("c", "marker");
    let ran = place.run(&["test -> c", "-p", "Work."]);
    assert!(ran.code(2).words().contains("no command was found for `test` in the project's files"), "{}", ran.stderr);
    assert_eq!(place.calls("c"), 0);
    assert!(place.run(&["verify"]).code(2).words().contains("nothing to run"));
    assert!(place.run(&["verify", "--json"]).code(2).stdout.contains("diagnostic_unavailable"));
}

#[test]
fn a_check_without_a_command_is_looked_for_again_behind_a_worker() {
    let place = Place::new();
    place.agent("c", "print Nothing.");
    let ran = place.run(&["c -> test", "-p", "Work."]);
    assert!(ran.code(3).words().contains("no command was found for test; add it to `checks`"), "{}", ran.stderr);
    let log = place.run(&["runs", "log", "1.2"]);
    assert!(log.code(0).stdout.contains("name one in `checks`"), "the advice is for a person: {}", log.stdout);
    assert!(
        place
            .run(&["resume", "--approve"])
            .code(2)
            .stderr
            .contains("there is no run that is waiting for a human decision")
    );
    place.write("Makefile", "test:\n\t@echo it ran\n");
    let ran = place.run(&["resume", "--accept-changes"]);
    assert!(ran.code(0).stdout.contains("it ran"), "{}", ran.stdout);
    // The worker adds the command, and it fails at first.
    let place = Place::new();
    place.agent("c", "sh printf 'test:\\n\\t@test -e done\\n' > Makefile\nnext\nsh touch done");
    let ran = place.run(&["(c -> test):3", "-p", "Work."]);
    assert!(ran.code(0).stderr.contains("round 2 of 3"), "{}", ran.stderr);
    assert_eq!(place.calls("c"), 2);
}

#[test]
fn a_built_in_chain_without_commands_is_complete_and_unverified() {
    let place = Place::new();
    place.config(r#"{"agents": {"coder": {"command": "c"}, "reviewer": {"command": "j"}}, "chains": {}}"#);
    place.agent("c", "sh date +%N >> work.txt").agent("j", "print VERDICT: approve");
    place.run(&["task", "add", "T"]).code(0);
    let ran = place.run(&["task", "run"]);
    assert!(ran.code(0).stderr.contains("complete, unverified: no command for verify"), "{}", ran.stderr);
    let shown = place.run(&["task", "show", "1"]);
    assert!(shown.code(0).stdout.contains("unverified: no command for verify"), "{}", shown.stdout);
    let report = place.run(&["report", "-o", "-"]);
    assert!(report.stdout.contains("unverified"), "{}", report.stdout);
}

/// An agent gets the diagnosis that forkhestra made. What an agent leaves in `.forkhestra/` is neither read nor written
/// through.
#[test]
fn what_the_host_diagnosed_is_known_to_an_agent_on_the_same_tree() {
    let place = Place::new();
    place.write("Makefile", "build:\n\t@echo ran >> ../ran; exit 1\n");
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    place.agent("a", &format!("sh {program} diagnose\nnext\nsh ln -s ../victim .forkhestra/diagnosis"));
    let ran = place.run(&["diagnose -> a", "-p", "x"]);
    assert!(ran.stdout.contains("already executed on this tree") && ran.stdout.contains("it failed"), "{}", ran.all());
    let ran = place.run(&["diagnose -> a", "-p", "x"]);
    assert!(ran.all().contains(".forkhestra/diagnosis"), "{}", ran.all());
    assert!(!place.work("victim").exists());
}

#[test]
fn verify_runs_no_filter_that_a_repository_brings() {
    let place = Place::new();
    place.write("Makefile", "build:\n\t@true\n").write("a.txt", "one").write(".gitattributes", "* filter=x\n");
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words).current_dir(place.work(""));
        assert!(command.output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "x"]);
    git(&["config", "filter.x.clean", "touch ../ran; cat"]);
    place.write("a.txt", "two");
    place.run(&["verify"]).code(0);
    assert!(!place.path("ran").exists());
}
