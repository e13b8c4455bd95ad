//! What reaches an agent: standard input, and variables without a value.

use super::support::Place;
use std::io::Write;
use std::process::Stdio;

/// Runs the program with this text on its standard input, through a pipe.
fn piped(place: &Place, arguments: &[&str], input: &str) -> (Option<i32>, String) {
    let mut child =
        place.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The pipe stays open, so nothing may wait for its end.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let kept = if arguments.contains(&"-") {
        drop(stdin);
        None
    } else {
        Some(stdin)
    };
    let output = child.wait_with_output().unwrap();
    drop(kept);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_prompt_that_is_a_dash_is_standard_input() {
    let place = Place::new();
    place.agent("a", "print ok");
    assert_eq!(piped(&place, &["a", "-p", "-"], "From the pipe.").0, Some(0));
    assert!(place.call("a", 1).contains("arg From the pipe.\n"), "{}", place.call("a", 1));
    let (code, words) = piped(&place, &["render", "a", "-p", "-"], "Seen.");
    assert_eq!(code, Some(0), "{words}");
}

#[test]
fn a_pipe_with_data_that_nobody_reads_gets_one_warning() {
    let place = Place::new();
    place.agent("a", "print ok");
    let (code, words) = piped(&place, &["a", "-p", "Work."], "A diff.");
    assert_eq!((code, words.matches("standard input has data that is not read").count()), (Some(0), 1), "{words}");
    assert!(!piped(&place, &["a", "-p", "Work."], "").1.contains("standard input"));
    assert!(!piped(&place, &["a", "-p", "-"], "Work.").1.contains("that is not read"));
}

#[test]
fn what_stays_unsubstituted_gets_one_warning_in_a_run_too() {
    let place = Place::new();
    place.agent("a", "print ok");
    place.write("p.md", "Work on ${FEATURE}, and ${x} is code.");
    place.write("forge/agents/t/prompt.md", "{task_prompt} of {task_id}, as ${task_id} and {this_is} {text}");
    place.config(
        r#"{"agents": {"t": {"command": "a"}}, "chains": {
            "file": {"promptFile": "p.md", "steps": "a -> a"},
            "tags": {"prompt": "Work on {{FEATURE}}.", "steps": "a"},
            "home": {"prompt": "${HOME}", "steps": "a"}}}"#,
    );
    let words = |typed: &[&str]| place.run(typed).code(0).words();
    let file = words(&["file"]);
    assert_eq!(file.matches("`${FEATURE}` in ").count(), 1, "{file}");
    assert!(file.contains("set it on the command line: FEATURE=value") && !file.contains("`${x}`"), "{file}");
    assert!(!words(&["file", "FEATURE=x"]).contains("as written"));
    let tags = words(&["tags"]);
    assert!(
        tags.contains("`{{FEATURE}}` in") && tags.contains("in a prompt, write a variable as ${FEATURE}"),
        "{tags}"
    );
    let other = words(&["t", "-p", "Work on ${FEATURE} and {{X}}."]);
    assert!(
        other.contains("`{task_prompt}`, `{task_id}` in forge/agents/t/prompt.md will reach the agent as plain text"),
        "{other}"
    );
    assert!(other.contains("`syntax: braces`") && !other.contains("FEATURE"), "{other}");
    let home = place.run(&["home"]).code(2).words();
    assert!(home.contains("the environment has a variable with this name: ${env:HOME}"), "{home}");
}

#[test]
fn a_base_commit_that_does_not_exist_is_refused() {
    let place = Place::new();
    place.agent("a", "print ok");
    let words = place.run(&["a", "--base", "nope"]).code(2).words();
    assert!(words.contains("--base needs a git repository") && words.contains("or run `git init`"), "{words}");
    crate::support::git(&place, &["init", "-q"]);
    for typed in [&["a", "--base", "nope"][..], &["a", "--base", "nope", "--dry-run"]] {
        assert!(place.run(typed).code(2).words().contains("there is no commit `nope` here"));
    }
    assert_eq!(place.calls("a"), 0);
}
