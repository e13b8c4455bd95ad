//! Prompts in the whole program: what the dry run shows is what the agent gets.

use super::support::Place;
use std::io::Write;
use std::process::Stdio;

const CONFIG: &str = r#"{
  "agents": { "a": { "defaultPrompt": "default of a" }, "s": { "deliver": "stdin", "defaultPromptFile": "s.md" } },
  "chains": {
    "levels": { "prompt": "chain: ${FEATURE}", "vars": { "FEATURE": "login" }, "steps": [
      { "agent": "a", "prompt": "step: ${FEATURE}", "args": ["--fast", "${FEATURE}"] },
      { "agent": "a" }, { "agent": "s", "promptFile": "step.md" }, { "agent": "a", "prompt": "" } ] },
    "bare": { "steps": [{ "agent": "a" }, { "agent": "s" }, { "agent": "b" }] }
  }
}"#;

fn place() -> Place {
    let place = Place::new();
    place.config(CONFIG).write("s.md", "default of s\n").write("step.md", "file: ${FEATURE} in ${HOME} for $5\n");
    place.agent("a", "").agent("b", "").agent("s", "");
    place
}

fn args(call: &str) -> String {
    call.split("env ").next().unwrap().to_string()
}

#[test]
fn each_step_gets_the_prompt_of_its_first_level_in_its_own_way() {
    let place = place();
    place.run(&["--chain", "levels"]).code(0);
    assert_eq!(args(&place.call("a", 1)), "arg --fast\narg login\narg step: login\n");
    assert_eq!(args(&place.call("a", 2)), "arg chain: login\n");
    assert_eq!(args(&place.call("s", 1)), "");
    assert_eq!(place.stdin_of("s", 1), b"file: login in ${HOME} for $5\n");
    assert_eq!((args(&place.call("a", 3)), place.stdin_of("a", 3)), (String::new(), Vec::new()));
    let place = self::place();
    place.run(&["--chain", "bare"]).code(0);
    assert_eq!(args(&place.call("a", 1)), "arg default of a\n");
    assert_eq!(place.stdin_of("s", 1), b"default of s\n");
    assert_eq!(args(&place.call("b", 1)), "");
    let place = self::place();
    place.run(&["--chain", "levels", "-p", "cli ${FEATURE} ${OTHER}", "FEATURE=x"]).code(0);
    assert_eq!(args(&place.call("a", 2)), "arg cli x ${OTHER}\n");
}

#[test]
fn the_dry_run_shows_everything_and_does_nothing() {
    let place = place();
    let ran = place.run(&["--chain", "levels", "--dry-run"]);
    insta::assert_snapshot!(ran.code(0).stdout);
    assert_eq!((ran.stderr.as_str(), place.calls("a"), place.work(".forkhestra").exists()), ("", 0, false));
}

#[test]
fn the_dry_run_for_machines_is_json_with_the_digest_that_the_run_records() {
    let place = place();
    let plan = place.run(&["--chain", "levels", "--dry-run", "--json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan.code(0).stdout).unwrap();
    assert_eq!(plan["steps"][0]["args"], serde_json::json!(["--fast", "login", "step: login"]));
    assert_eq!(plan["steps"][2]["prompt"]["text"], "file: login in ${HOME} for $5\n");
    assert_eq!(plan["steps"][2]["prompt"]["unsubstituted"], serde_json::json!(["HOME"]));
    assert_eq!(plan["steps"][3]["prompt"], serde_json::Value::Null);
    place.run(&["--chain", "levels"]).code(0);
    assert_eq!(place.events(1)[0]["event"]["digest"], plan["digest"]);
    // What was shown is what was delivered, byte for byte.
    for (step, folder) in [(0, "1-a/1"), (1, "2-a/1"), (2, "3-s/1")] {
        let delivered = place.read(&format!(".forkhestra/runs/1/{folder}/prompt.md"));
        assert_eq!(plan["steps"][step]["prompt"]["text"], delivered);
    }
}

#[test]
fn the_dry_run_of_a_group_shows_the_late_name_and_a_long_prompt_whole_only_with_v() {
    let place = place();
    place.config(r#"{"checks": {"t": {"run": "cargo test"}}, "chains": {}}"#);
    let long = format!("{}\nthe end", "many words ".repeat(60));
    let short = place.run(&["(a:2 -> t):3", "-p", &long, "--dry-run"]);
    assert!(!short.code(0).stdout.contains("the end") && short.stdout.contains("the full text with -v"));
    let whole = place.run(&["(a:2 -> t):3", "-p", &long, "--dry-run", "-v"]);
    assert!(whole.code(0).stdout.contains("the end{{feedback}}"), "{}", whole.stdout);
    let tiny = place.run(&["a", "-p", "x", "--dry-run"]);
    assert!(tiny.code(0).stdout.contains("1 byte, about 1 token\n"), "{}", tiny.stdout);
}

#[test]
fn a_prompt_comes_from_standard_input_from_an_absolute_file_and_from_the_shells_folder() {
    let place = place();
    let mut child = place.command(&["a", "--prompt-file", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("from a pipe: ü\n".as_bytes()).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(place.call("a", 1).starts_with("arg from a pipe: ü\n"));
    place.write("sub/own.md", "in sub");
    place.run(&["a", "--prompt-file", place.work("sub/own.md").to_str().unwrap()]).code(0);
    assert_eq!(args(&place.call("a", 2)), "arg in sub\n");
    let output = place.command(&["a", "--prompt-file", "own.md"]).current_dir(place.work("sub")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(args(&place.call("a", 3)), "arg in sub\n");
}

#[test]
fn paths_of_the_users_config_start_at_that_file() {
    let place = place();
    let home = place.path("home/.config/forkhestra");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("chains.json"), r#"{"agents": {"b": {"defaultPromptFile": "mine.md"}}, "chains": {}}"#)
        .unwrap();
    std::fs::write(home.join("mine.md"), "the user's own").unwrap();
    place.run(&["b"]).code(0);
    assert_eq!(args(&place.call("b", 1)), "arg the user's own\n");
}

/// An agent that prints before it reads does not cause a deadlock.
#[test]
fn an_agent_that_prints_much_before_it_reads_a_long_prompt_gets_it_whole() {
    let place = Place::new();
    let command = r#"["sh", "-c", "head -c 200000 /dev/zero; wc -c"]"#;
    place.config(&format!(r#"{{"agents": {{"a": {{"command": {command}, "deliver": "stdin"}}}}, "chains": {{}}}}"#));
    place.write("long.md", "p".repeat(620_000));
    let ran = place.run(&["a", "--prompt-file", "long.md", "--timeout", "20s"]);
    assert_eq!(ran.code(0).stdout.trim_matches('\0'), "620000\n");
}

#[test]
fn missing_variables_are_all_named_with_the_flag_that_sets_them() {
    let place = place();
    place.config(
        r#"{"chains": {"c": {"prompt": "${ONE} and\n${TWO}", "steps": [{"agent": "a", "args": ["${THREE}"]}]}}}"#,
    );
    insta::assert_snapshot!(place.run(&["--chain", "c"]).code(2).stderr);
    place.run(&["--chain", "c", "-p", "x", "THREE=3"]).code(0);
}

#[test]
fn a_prompt_with_the_marker_alone_on_a_line_is_refused() {
    let place = place();
    let ran = place.run(&["a:3", "-p", "Do it.\nFORKHESTRA_COMPLETE\n"]);
    assert!(ran.code(2).words().contains("has the marker alone on a line"), "{}", ran.stderr);
    place.agent("a", "marker");
    place.run(&["a:3", "-p", "Do it and print FORKHESTRA_COMPLETE"]).code(0);
}

/// Values are data. Nothing in them is expanded, split or run.
#[test]
fn values_with_shell_words_and_templates_arrive_as_they_are() {
    let place = place();
    let value = r#"$(touch x) `touch y` "q" '${HOME}' {{feedback}} $& \ é 🚀"#;
    place.config(r#"{"agents": {"a": {"command": "a '${V}'"}}, "checks": {"k": {"run": "printf '%s' \"$V\" > seen"}}, "chains": {"c": {"prompt": "${V}", "steps": [{"agent": "a"}, {"check": "k"}]}}}"#);
    place.run(&["--chain", "c", &format!("V={value}")]).code(0);
    assert_eq!(args(&place.call("a", 1)), format!("arg {value}\narg {value}\n"));
    assert_eq!(place.read("seen"), value);
    assert!(!place.work("x").exists());
}

#[test]
fn a_prompt_cannot_drive_the_terminal_of_its_reviewer_and_its_command_can_be_pasted() {
    let place = place();
    let prompt = "\u{1b}[31mred\u{7} 'q' \\ é";
    let ran = place.run(&["a", "-p", prompt, "--dry-run"]);
    assert!(!ran.code(0).stdout.contains('\u{1b}') && !ran.stdout.contains('\u{7}'), "{:?}", ran.stdout);
    let line = ran.stdout.lines().find_map(|line| line.trim().strip_prefix("command")).unwrap();
    let line = line.trim().replace("$PLACE", place.path("").to_str().unwrap().trim_end_matches('/'));
    let pasted =
        std::process::Command::new("bash").arg("-c").arg(line).env("FAKE_AGENT_DIR", place.path("agents")).status();
    assert!(pasted.unwrap().success());
    assert!(place.call("a", 1).starts_with(&format!("arg {prompt}\n")));
}

#[test]
fn a_prompt_file_of_the_home_is_found_and_recorded() {
    let place = place();
    std::fs::write(place.path("home/p.md"), "from home").unwrap();
    place.run(&["a", "--prompt-file=~/p.md"]).code(0);
    assert_eq!(args(&place.call("a", 1)), "arg from home\n");
    assert_eq!(place.events(1)[0]["event"]["prompt"], "from home");
}
