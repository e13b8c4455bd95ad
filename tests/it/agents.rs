//! Backends as data, and the examples of docs/agents.md, run with stub programs.

use super::support::Place;

/// Returns the JSON blocks of a page, in order.
fn examples(page: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/");
    let text = std::fs::read_to_string(format!("{path}{page}")).unwrap();
    text.split("```json\n").skip(1).map(|rest| rest.split("\n```").next().unwrap().to_string()).collect()
}

#[test]
fn the_page_about_agent_clis_names_every_one_with_its_install_command_and_versions() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agents.md")).unwrap();
    let known: serde_json::Value = serde_json::from_str(include_str!("../../forge/backends.json")).unwrap();
    for (name, backend) in known["backends"].as_object().unwrap().iter().filter(|(name, _)| *name != "demo") {
        let row = text
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("no row for {name}"));
        assert!(row.contains(backend["install"].as_str().unwrap()), "{row}");
        for version in backend["knownGood"].as_array().unwrap() {
            assert!(row.contains(version.as_str().unwrap()), "{row}");
        }
    }
}

#[test]
fn every_example_of_the_page_is_a_valid_config() {
    let place = Place::new();
    for program in ["claude", "codex", "mycli", "gcloud", "gemini-cli", "openai"] {
        place.agent(program, "print x");
    }
    place.write(".claude/agents/code-reviewer.md", "---\nname: code-reviewer\n---\nYou review.\n");
    let examples = examples("agents.md");
    assert_eq!(examples.len(), 5);
    for example in examples {
        place.config(&example);
        place.run(&["validate"]).code(0);
    }
}

/// Other ways to run an agent, as a `command`.
#[test]
fn commands_of_any_kind_get_their_prompt_as_the_page_says() {
    let place = Place::new();
    let result = r#"print {"type":"result","result":"done","is_error":false,"usage":{"input_tokens":7}}"#;
    place.agent("gcloud", "print a").agent("gemini-cli", "print b").agent("openai", "print c");
    place.agent("claude", &format!("print d\nnext\n{result}"));
    place.config(examples("agents.md").last().unwrap());
    let prompt = "-p \"two\"\nlines $HOME `x`";
    let ran = place.run(&["--chain", "all", "-p", prompt]);
    ran.code(0);
    assert_eq!(place.stdin_of("gcloud", 1), prompt.as_bytes());
    assert!(place.call("gcloud", 1).contains("predict") && !place.call("gcloud", 1).contains("two"));
    assert_eq!(place.stdin_of("gemini-cli", 1), prompt.as_bytes());
    assert!(place.call("openai", 1).contains(prompt), "{}", place.call("openai", 1));
    assert!(place.call("claude", 1).contains(prompt), "{}", place.call("claude", 1));
    assert_eq!(place.stdin_of("claude", 2), prompt.as_bytes());
    assert!(ran.stderr.contains("wrapped-stream: done, 0.0 s, 7 tokens"), "{}", ran.stderr);
}

#[test]
fn the_permissions_of_the_command_line_win_and_are_shown() {
    let place = Place::new();
    place.agent("codex", "").agent("pi", "");
    place.config(
        r#"{"agents": {"a": {"backend": "codex", "permissions": "read"}, "b": {"backend": "pi"}}, "chains": {}}"#,
    );
    let shown = |words: &[&str]| place.run(words).code(0).stdout.clone();
    assert!(shown(&["a", "--dry-run"]).contains("--sandbox read-only"));
    let full = shown(&["a", "--dry-run", "--permissions", "full"]);
    assert!(
        full.contains("permissions  full") && full.contains("--dangerously-bypass-approvals-and-sandbox"),
        "{full}"
    );
    let refused = place.run(&["b"]);
    insta::assert_snapshot!(refused.code(2).stderr);
    assert!(shown(&["b", "--dry-run", "--permissions", "full"]).contains("PI_OFFLINE=1"));
}

/// A refused login is not tried again: a second try would say the same.
#[test]
fn refused_credentials_end_the_run_at_once_in_the_programs_words() {
    let place = Place::new();
    let refused =
        r#"print {"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: no such key"}}"#;
    place.agent("codex", &format!("{refused}\nexit 1")).agent("t", "");
    place.config(r#"{"agents": {"a": {"backend": "codex"}}, "chains": {}}"#);
    for chain in ["a:5", "(a -> t):3"] {
        let ran = place.run(&[chain, "-p", "x"]);
        assert!(ran.code(1).words().contains("no such key"), "{}", ran.stderr);
    }
    assert_eq!(place.calls("codex"), 2);
}

/// `codex` waits forever for a server that is down and reports that now and then. Such output does not count as
/// activity.
#[test]
fn an_agent_that_only_waits_for_its_service_is_idle() {
    let place = Place::new();
    let waits = r#"{"type":"error","message":"Reconnecting... waiting for network"}"#;
    place.agent("codex", &format!("sh while :; do echo '{waits}'; sleep 0.05; done"));
    place.config(r#"{"agents": {"a": {"backend": "codex"}}, "chains": {}}"#);
    let ran = place.run(&["a", "-p", "x", "--idle-timeout", "1s", "--limit", "wait=500ms"]);
    assert!(
        ran.code(4).stderr.contains("a: found its service unavailable; the iteration does not count"),
        "{}",
        ran.stderr
    );
}

/// The agent continues when its background work has ended, and then no longer claims to be complete.
#[test]
fn a_final_message_that_another_follows_without_the_marker_does_not_count() {
    let place = Place::new();
    let result = |text: &str| {
        format!(
            r#"print {{"type":"result","result":"{text}","is_error":false,"modelUsage":{{"m":{{"inputTokens":1000,"outputTokens":50}}}}}}"#
        )
    };
    let more = r#"print {"type":"assistant","parent_tool_use_id":null,"message":{"id":"m","content":[{"type":"text","text":"the tests failed"}],"usage":{"input_tokens":1}}}"#;
    place.agent(
        "claude",
        &format!(
            "{}\n{more}\n{}\nnext\n{}",
            result("FORKHESTRA_COMPLETE"),
            result("NOT finished"),
            result("FORKHESTRA_COMPLETE")
        ),
    );
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "chains": {}}"#);
    let ran = place.run(&["a:2", "-p", "x"]);
    assert!(
        ran.code(0).stderr.contains("iteration 1 of 2: exit 0, no marker yet, 0.0 s, 1,050 tokens"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.calls("claude"), 2);
}

#[test]
fn what_a_user_has_set_cannot_widen_permissions_and_what_exit_codes_mean_is_said() {
    let mut place = Place::new();
    place
        .set("OPENCODE_PERMISSION", r#"{"edit":"allow"}"#)
        .agent("opencode", "")
        .agent("gemini", "exit 41")
        .agent("claude", "");
    place.config(r#"{"agents": {"a": {"backend": "opencode", "permissions": "read"}, "g": {"backend": "gemini"}, "c": {"backend": "claude"}}, "chains": {}}"#);
    let shown = place.run(&["a", "--dry-run"]);
    assert!(shown.code(0).stdout.contains(r#"sets OPENCODE_PERMISSION='{"edit":"deny""#), "{}", shown.stdout);
    assert!(place.run(&["g", "-p", "x"]).code(1).words().contains("it has no valid credentials"));
    let slash = place.run(&["c", "-p", "/clear everything"]);
    assert!(slash.code(2).words().contains("starts with a slash command"), "{}", slash.stderr);
    place.run(&["c", "-p", "/etc/hosts is broken", "--dry-run"]).code(0);
}

/// Nobody is there to close an editor or to type a password.
#[test]
fn git_opens_no_editor_and_asks_for_nothing_in_an_agent_unless_somebody_has_set_one() {
    let mut place = Place::new();
    place.agent("a", "sh echo $GIT_EDITOR $GIT_TERMINAL_PROMPT");
    assert_eq!(place.run(&["a"]).code(0).stdout, "true 0\n");
    place.config(r#"{"agents": {"a": {"command": "a", "env": {"GIT_EDITOR": "ed"}}}, "chains": {}}"#);
    place.set("GIT_TERMINAL_PROMPT", "1");
    assert_eq!(place.run(&["a"]).code(0).stdout, "ed 1\n");
}

/// An agent that is stopped in the middle of a line does not leave an incomplete line before the next agent's output.
#[test]
fn the_decoded_words_of_an_attempt_end_with_a_line() {
    let place = Place::new();
    let said = |text: &str| format!(r#"print {{"type":"message","role":"assistant","content":"{text}","delta":true}}"#);
    place.agent("gemini", &format!("{}\nnext\n{}", said("I am going to "), said("Done.")));
    let ran = place.run(&["gemini:2", "-p", "x"]);
    assert_eq!(ran.code(1).stdout, "I am going to \nDone.\n");
}
