//! The recipes of docs/notifications.md send what they say, and nothing in a message can do more.

use super::support::Place;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PAGE: &str = include_str!("../../docs/notifications.md");

/// A program that records its arguments, its standard input and the file after `--config`.
const RECORDER: &str = r#"#!/bin/sh
name=$TMPDIR/${0##*/}
for word in "$@"; do printf '%s\n' "$word" >> "$name.words"; done
case $0 in *curl) cat >> "$name.stdin" ;; esac
for word in "$@"; do case $before in --config) cat "$word" >> "$name.config" ;; esac; before=$word; done
"#;

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A place with the recipes of the page in the user's own config, and programs that record what they are told.
fn place() -> Place {
    let place = Place::new();
    let hooks = place.path("home/.config/forkhestra/hooks");
    let mut found = Vec::new();
    for block in PAGE.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        let second = text.lines().nth(1).unwrap_or_default();
        match language {
            "json5" => program(&place.path("home/.config/forkhestra/chains.json"), text),
            "sh" | "python" if text.starts_with("#!") => {
                let name = second.strip_prefix("# ").unwrap().split(':').next().unwrap();
                program(&hooks.join(name), &format!("{text}\n"));
                found.push(name);
            }
            _ => {}
        }
    }
    assert_eq!(found, ["words", "phone", "chat", "desktop"]);
    for name in ["phone", "slack", "discord", "matrix"] {
        fs::write(hooks.join(format!("{name}.curl")), format!("url = \"https://example.org/secret-{name}\"\n"))
            .unwrap();
    }
    for name in ["curl", "notify-send"] {
        program(&place.path("bin").join(name), RECORDER);
    }
    place
}

/// Returns what a program was told, and forgets it: `words`, `stdin` or `config`.
#[track_caller]
fn told(place: &Place, what: &str) -> String {
    let path = place.path("tmp").join(what);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
    fs::remove_file(path).unwrap();
    text.replace(place.path("home").to_str().unwrap(), "~")
}

/// Runs a recipe by hand.
#[track_caller]
fn by_hand(place: &Place, words: &[&str], stdin: &Value) {
    let ours = place.command(&[]);
    let mut recipe = Command::new(place.path("home/.config/forkhestra/hooks").join(words[0]));
    recipe.args(&words[1..]).current_dir(place.path("project")).env_clear().stdin(Stdio::piped());
    recipe.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = recipe.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&printed).as_ref()), (Some(0), ""));
}

#[test]
fn a_run_that_needs_a_person_calls_the_phone_and_the_desktop() {
    let place = place();
    place.agent("a", "print Which?\nprint VERDICT: dispute\nnext\nexit 3");
    place.run(&["a", "-p", "x"]).code(3);
    assert_eq!(
        told(&place, "curl.stdin"),
        "project, run 1: stopped at step 1 of 1: a disputes what it was asked to do; a human has to decide\n\
         next: forkhestra resume 1 --approve accepts the work, \
         forkhestra resume 1 --reject \"what has to be fixed\" rejects it\n"
    );
    insta::assert_snapshot!(told(&place, "curl.words"), @r"
    --silent
    --show-error
    --fail
    --max-time
    20
    --output
    /dev/null
    --config
    ~/.config/forkhestra/hooks/phone.curl
    --header
    Title: forkhestra
    --data-binary
    @-
    ");
    assert_eq!(told(&place, "curl.config"), "url = \"https://example.org/secret-phone\"\n");
    insta::assert_snapshot!(told(&place, "notify-send.words"), @r#"
    --app-name=forkhestra
    --
    forkhestra
    project, run 1: stopped at step 1 of 1: a disputes what it was asked to do; a human has to decide
    next: forkhestra resume 1 --approve accepts the work, forkhestra resume 1 --reject "what has to be fixed" rejects it
    "#);
    let failed = place.run(&["a", "-p", "x"]);
    assert!(!failed.code(1).stderr.contains("secret"), "{}", failed.stderr);
    let body: Value = serde_json::from_str(&told(&place, "curl.stdin")).unwrap();
    let expected = "project, run 2: stopped at step 1 of 1: a failed with exit code 3\nnext: forkhestra runs log 2.1.1";
    assert_eq!(body, json!({ "text": expected }));
    insta::assert_snapshot!(told(&place, "curl.words"), @r"
    --silent
    --show-error
    --fail
    --max-time
    20
    --output
    /dev/null
    --config
    ~/.config/forkhestra/hooks/slack.curl
    --header
    Content-Type: application/json
    --data-binary
    @-
    ");
}

#[test]
fn a_wait_is_told_with_its_reason_and_its_end() {
    let place = place();
    let event = |until: Value| {
        json!({ "version": 1, "run": 7, "seq": 3, "at": "2026-01-01T00:00:00Z", "event": {
        "type": "waitStarted", "reason": "usageLimit", "waitMs": 7_200_000, "until": until } })
    };
    by_hand(&place, &["phone"], &event(json!("2026-01-01T02:00:00Z")));
    assert_eq!(told(&place, "curl.stdin"), "project, run 7 waits (usageLimit) until 2026-01-01T02:00:00Z\n");
    by_hand(&place, &["phone"], &event(Value::Null));
    assert_eq!(told(&place, "curl.stdin"), "project, run 7 waits (usageLimit)\n");
}

#[test]
fn nothing_in_a_message_breaks_json_runs_in_a_shell_or_calls_a_whole_channel() {
    let place = place();
    let reason =
        "\"x\"; touch pwned $(touch pwned) `touch pwned` 'y' \\ %s\u{1b}[31m\0 <!channel> <b>@everyone</b> & ü\u{202e}";
    let summary = json!({ "run": 1, "reason": reason, "next": null });
    let plain =
        "project, run 1: \"x\"; touch pwned $(touch pwned) `touch pwned` 'y' \\ %s[31m <!channel> <b>@everyone</b> & ü";
    let escaped = plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    by_hand(&place, &["phone"], &summary);
    assert_eq!(told(&place, "curl.stdin"), format!("{plain}\n"));
    for (chat, expected) in [
        ("slack", json!({ "text": escaped })),
        ("discord", json!({ "content": plain, "allowed_mentions": { "parse": [] } })),
        ("matrix", json!({ "text": plain.replace('@', "@\u{200b}") })),
    ] {
        let _ = fs::remove_file(place.path("tmp/curl.config"));
        by_hand(&place, &["chat", chat], &summary);
        let body: Value = serde_json::from_str(&told(&place, "curl.stdin")).unwrap();
        assert_eq!(
            (body, told(&place, "curl.config")),
            (expected, format!("url = \"https://example.org/secret-{chat}\"\n"))
        );
    }
    assert!(!told(&place, "curl.words").contains("secret"), "other users can see a command line");
    by_hand(&place, &["desktop"], &summary);
    assert!(told(&place, "notify-send.words").ends_with(&format!("--\nforkhestra\n{escaped}\n")));
    assert!(!place.work("pwned").exists());
}
