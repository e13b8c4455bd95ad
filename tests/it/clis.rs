//! What backends are told and allowed, each in its own syntax.

use super::support::Place;

#[test]
fn a_refused_command_is_told_with_the_line_that_allows_it() {
    let place = Place::new();
    place.agent(
        "claude",
        r#"print {"type":"result","result":"x","is_error":false,"permission_denials":[{"tool_name":"Bash","tool_input":{"command":"curl -s http://x"}},{"tool_name":"Bash","tool_input":{"command":"git push origin"}},{"tool_name":"WebFetch","tool_input":{"url":"http://x"}}]}"#,
    );
    let ran = place.run(&["claude", "-p", "x"]);
    let words = ran.code(0).words();
    assert!(words.contains("refused: Bash(curl -s http://x), Bash(git push origin), WebFetch(http://x)"), "{words}");
    assert!(words.contains(r#""allowedTools": ["Bash(curl:*)", "Bash(git push:*)", "WebFetch"]"#), "{words}");
    place.agent(
        "opencode",
        r#"print {"type":"tool_use","part":{"tool":"bash","state":{"status":"error","input":{"command":"curl x"},"error":"The user rejected permission to use this"}}}"#,
    );
    let words = place.run(&["opencode", "-p", "x"]).words();
    assert!(words.contains("refused: bash(curl x); its backend has no list of allowed tools"), "{words}");
}

#[test]
fn allowed_tools_reach_every_agent_cli_that_has_them() {
    let place = Place::new();
    for (cli, expected) in [
        ("claude", "--allowedTools=Bash(curl:*),WebFetch"),
        ("gemini", "--allowed-tools=Bash(curl:*),WebFetch"),
        ("qwen", "--allowed-tools=Bash(curl:*),WebFetch"),
        ("copilot", "'--allow-tool=Bash(curl:*)' --allow-tool=WebFetch"),
    ] {
        place.agent(cli, "print x");
        place.config(&format!(
            r#"{{"agents": {{"{cli}": {{"allowedTools": ["Bash(curl:*)", "WebFetch"]}}}}, "chains": {{}}}}"#
        ));
        let plan = place.run(&[cli, "-p", "x", "--dry-run"]).code(0).stdout.replace(['\'', '"'], "");
        assert!(plan.contains(&expected.replace('\'', "")), "{cli}: {plan}");
    }
}

#[test]
fn codex_keeps_the_instructions_of_its_user() {
    let mut place = Place::new();
    place.agent("codex", "print x");
    let has_ours = |place: &Place| {
        place.run(&["codex", "-p", "x", "--dry-run", "-v"]).code(0).stdout.contains("developer_instructions=")
    };
    assert!(has_ours(&place));
    let home = place.path("tmp/codex-home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("config.toml"), "model = \"x\"\ndeveloper_instructions = \"Mine.\"\n[profiles]\n")
        .unwrap();
    place.set("CODEX_HOME", home.to_str().unwrap());
    assert!(!has_ours(&place));
    let prompt = place.run(&["render", "codex", "-p", "x"]).code(0).stdout.clone();
    assert!(
        prompt.starts_with("# Your instructions") && prompt.contains("Leave nothing running in the background"),
        "{prompt}"
    );
}

#[test]
fn agents_md_is_shown_once() {
    let place = Place::new();
    for cli in ["claude", "codex"] {
        place.agent(cli, "print x");
    }
    place.write("AGENTS.md", "Be kind.");
    let prompt = |cli: &str| {
        place.config(&format!(r#"{{"agents": {{"coder": {{"backend": "{cli}"}}}}, "chains": {{}}}}"#));
        place.run(&["render", "coder", "-p", "x"]).code(0).stdout.clone()
    };
    assert!(prompt("claude").contains("Be kind."));
    let of_codex = prompt("codex");
    assert!(!of_codex.contains("Be kind.") && of_codex.contains("is already part of your instructions"), "{of_codex}");
}
