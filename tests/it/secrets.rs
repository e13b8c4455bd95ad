//! `vars` with `"secret": true`: values that reach a program through its environment and are not stored anywhere.

use super::support::Place;
use std::fs;
use std::path::Path;

const SECRET: &str = "hunter2-and-more";

fn place(more: &str) -> Place {
    let place = Place::new();
    place.config(&format!(
        r#"{{ "agents": {{ "w": {{ "command": ["sh", "-c", "test $(printf %s \"$KEY\" | wc -c) = 16 && echo has it; test -e ok"], "env": {{ "KEY": "${{TOKEN}}" }} }} }},
             "checks": {{ "c": "test $(printf %s \"$TOKEN\" | wc -c) = 16 && echo too" }},
             "chains": {{ "ship": {{ "vars": {{ "TOKEN": {{ "secret": true }}, "OTHER": "x" }}, {more} "steps": "w -> c" }} }} }}"#
    ));
    place
}

/// Returns every file below a directory that contains the secret.
fn holding(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path));
        } else if fs::read(&path).unwrap().windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_secret_reaches_agents_and_checks_and_is_nowhere_kept() {
    for typed in [true, false] {
        let mut place = place("");
        place.write("ok", "");
        let word = format!("TOKEN={SECRET}");
        let words: &[&str] = if typed {
            &["ship", "-v", &word]
        } else {
            place.set("TOKEN", SECRET);
            &["ship", "-v"]
        };
        let ran = place.run(words);
        assert_eq!(ran.code(0).stdout, "has it\ntoo\n", "{}", ran.stderr);
        assert_eq!(holding(&place.work(".forkhestra")), Vec::<String>::new());
        let shown = [
            &["runs", "events", "1"][..],
            &["report", "-o", "-"],
            &["ship", "--dry-run", "-v"],
            &["ship", "--dry-run", "--json"],
        ];
        for words in shown {
            let ran = place.run(words);
            assert!(!ran.code(0).all().contains(SECRET), "{}", ran.all());
        }
    }
}

#[test]
fn resume_asks_for_a_secret_again() {
    let mut place = place("");
    place.write("ok", "");
    let _ = place.run(&["ship", &format!("TOKEN={SECRET}"), "--limit", "attempts=1"]).code(4);
    let ran = place.run(&["resume"]);
    assert!(
        ran.code(2).words().contains("the secret `TOKEN` has no value, and secrets are never stored"),
        "{}",
        ran.stderr
    );
    place.set("TOKEN", SECRET);
    assert_eq!(place.run(&["resume", "--limit", "attempts=5"]).code(0).stdout, "too\n");
    assert_eq!(holding(&place.work(".forkhestra")), Vec::<String>::new());
}

#[test]
fn a_secret_in_a_prompt_an_argument_or_a_hook_is_refused() {
    for more in [r#""prompt": "use ${TOKEN}","#, r#""prompt": "x", "promptFile": "p.md","#] {
        let place = place(more);
        place.write("p.md", "use ${TOKEN}");
        let ran = place.run(&["ship", "TOKEN=x", "--dry-run"]);
        let refused = more.contains("use $");
        assert_eq!(ran.words().contains("a secret variable is used in a prompt"), refused, "{}", ran.stderr);
    }
    let place = place("");
    let ran = place.run(&["ship", "TOKEN=x", "-p", "use ${TOKEN}"]);
    assert!(ran.code(2).words().contains("a secret variable is used in a prompt"), "{}", ran.stderr);
    for (agents, hooks, what) in [
        (r#""command": "true", "args": ["--key=${env:TOKEN}"]"#, "{}", "an argument"),
        (r#""command": "true", "args": ["--key=${TOKEN}"]"#, "{}", "an argument"),
        (r#""command": "true""#, r#"{ "onFinish": ["echo", "${TOKEN}"] }"#, "a hook"),
    ] {
        place.config(&format!(
            r#"{{ "agents": {{ "w": {{ {agents} }} }}, "hooks": {hooks}, "chains": {{ "ship": {{ "vars": {{ "TOKEN": {{ "secret": true }} }}, "steps": "w" }} }} }}"#
        ));
        let ran = place.run(&["ship", "TOKEN=x"]);
        assert!(ran.code(2).words().contains(&format!("a secret variable is used in {what}")), "{}", ran.stderr);
    }
}

#[test]
fn a_secret_is_shown_by_its_name() {
    let place = place("");
    assert!(place.run(&["show", "ship"]).code(0).stdout.contains("TOKEN, a secret"));
    let json: serde_json::Value = serde_json::from_str(&place.run(&["show", "ship", "--json"]).code(0).stdout).unwrap();
    assert_eq!(json["entry"]["vars"]["TOKEN"]["secret"], true);
    let ran = place.run(&["ship"]);
    assert!(ran.code(2).words().contains("the secret `TOKEN` has no value"), "{}", ran.stderr);
}
