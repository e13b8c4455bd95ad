//! `doctor`: tests on this machine what the documentation promises.

use super::support::Place;

#[test]
fn doctor_ends_a_daemon_and_says_what_it_found() {
    let mut place = Place::new();
    let options = "--output-format --verbose --append-system-prompt --permission-mode --allowedTools --disallowedTools \
                   --dangerously-skip-permissions";
    place.agent(
        "claude",
        &format!("print 2.1.200 (Claude Code)\nnext\nprint {options}\nnext\nprint 3.0.0\nnext\nprint none"),
    );
    place.set("ANTHROPIC_API_KEY", "secret").config(r#"{"chains": {}}"#);
    let ran = place.run(&["doctor"]);
    let shown = &ran.code(0).stdout;
    assert!(
        shown.contains("✓ daemons      a test daemon that forked twice and left its session was stopped in"),
        "{shown}"
    );
    assert!(shown.contains("✓ config       forge/chains.json\n"), "{shown}");
    assert!(shown.contains("✓ claude       2.1.200 $PLACE/bin/claude; credentials: ANTHROPIC_API_KEY\n"), "{shown}");
    assert!(shown.contains("· codex        not on PATH; install it: npm install -g @openai/codex\n"), "{shown}");
    let other = place.run(&["doctor"]);
    assert!(
        other.code(1).stdout.contains("newer than 2.1.329, the last version known to work; its help does not list"),
        "{}",
        other.stdout
    );
    assert!(!shown.contains("secret"));
    assert!(!place.work(".forkhestra").exists(), "nothing is written");
    let json = place.run(&["doctor", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&json.code(1).stdout).unwrap();
    assert_eq!((&found["findings"][0]["name"], &found["findings"][0]["health"]), (&"daemons".into(), &"good".into()));
}

#[test]
fn a_config_with_faults_is_a_finding() {
    let place = Place::new();
    place.config(r#"{"chain": {}}"#);
    let ran = place.run(&["doctor"]);
    assert!(ran.code(1).stdout.contains("2 errors; `forkhestra validate` shows the details"), "{}", ran.stdout);
}
