//! `doctor`: tests on this machine what the documentation promises.

use super::support::Place;

#[test]
fn doctor_ends_a_daemon_and_says_what_it_found() {
    let mut place = Place::new();
    let options = "--output-format --verbose --append-system-prompt --permission-mode --allowedTools --disallowedTools \
                   --strict-mcp-config --mcp-config --dangerously-skip-permissions";
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

/// The findings about engines and hubs.
fn of_engines(ran: &crate::support::Ran) -> String {
    let lines = ran.stdout.lines().filter(|line| line.contains(" cluster ") || line.contains(" hub "));
    lines.map(|line| line.trim().to_string() + "\n").collect()
}

#[test]
fn an_engine_is_found_by_its_programs_and_with_try_by_its_jobs_and_its_hub() {
    let place = crate::engines::cluster(1, crate::batch::WRITES, "");
    insta::assert_snapshot!(of_engines(place.run(&["doctor"]).code(0)), @"✓ cluster      an engine; sh is on PATH; `doctor --try` lists its jobs, and tests its hub");
    insta::assert_snapshot!(of_engines(place.run(&["doctor", "--try"]).code(0)), @"· cluster      an engine; lists 0 jobs; there is no hub at $PLACE/project/.forkhestra/hub.git yet: the first batch creates it");
    place.run(&["task", "run", "--on", "cluster", "-j", "1"]).code(0);
    let hub = place.work(".forkhestra/hub.git").display().to_string();
    let refs = || crate::batch::hub(&place, &["for-each-ref"]);
    let before = refs();
    let ran = place.run(&["doctor", "--try", "--hub", &format!("file://{hub}")]);
    assert_eq!(of_engines(ran.code(0)).matches("refused the other, as it must").count(), 2, "{}", ran.stdout);
    assert_eq!(before, refs());
    let ran = place.run(&["doctor", "--hub", "file:///nowhere/hub.git"]);
    assert!(of_engines(ran.code(1)).contains("cannot reach the hub file:///nowhere/hub.git"), "{}", ran.stdout);
    let ran = place.run(&["doctor", "--hub", "nodir"]);
    assert!(of_engines(ran.code(1)).contains("there is no hub at nodir; a project's hub is its"), "{}", ran.stdout);
}

#[test]
fn a_hub_that_takes_two_changes_at_once_is_a_finding() {
    let mut place = Place::new();
    // A server that forgets what it has taken.
    let server = "#!/bin/sh\nshift\nrm -rf hub.git; git init -q --bare hub.git\nexec sh -c \"$*\"\n";
    std::fs::write(place.path("tmp/ssh"), server).unwrap();
    place.set("GIT_SSH_COMMAND", &format!("sh {}", place.path("tmp/ssh").display()));
    let ran = place.run(&["doctor", "--hub", "builder:hub.git"]);
    assert!(
        of_engines(ran.code(1)).contains("accepted two conflicting changes, of which it must refuse one"),
        "{}",
        ran.stdout
    );
}
