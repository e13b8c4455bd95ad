//! The backend of an agent does not decide whether the agent is a judge.

use crate::support::Place;

const WORKS: &str = "sh date +%N >> work.txt\nprint Done.";

#[test]
fn a_reviewer_moved_to_another_program_still_judges() {
    for entry in [
        r#"{"backend": "mine"}"#,
        r#"{"backend": "mine", "systemPromptText": "You review."}"#,
        r#"{"command": "r", "deliver": "stdin"}"#,
    ] {
        let place = Place::new();
        place.config(&format!(
            r#"{{"backends": {{"mine": {{"program": "r", "permissions": {{"read": {{}}}}}}}}, "agents": {{"reviewer": {entry}, "coder": {{"command": "c"}}}}, "chains": {{}}}}"#
        ));
        place
            .agent("c", WORKS)
            .agent("r", "print - work.txt:1: wrong\nprint VERDICT: reject\nnext\nprint VERDICT: approve");
        let ran = place.run(&["(coder -> reviewer):3", "-p", "Write work.txt"]);
        assert!(ran.code(0).stderr.contains("rejects (rejection 1)"), "{entry}: {}", ran.stderr);
        assert_eq!(place.calls("c"), 2, "{entry}");
    }
}

/// A backend that never asks for permission cannot be kept from editing. This is reported before anything runs.
#[test]
fn a_judge_that_could_edit_is_named_in_the_dry_run() {
    let place = Place::new();
    place.config(
        r#"{"backends": {"mine": {"program": "r", "permissions": {"full": {}}}}, "agents": {"reviewer": {"backend": "mine"}}, "chains": {}}"#,
    );
    place.agent("r", "print VERDICT: approve");
    let shown = place.run(&["reviewer", "-p", "x", "--dry-run"]);
    assert!(shown.code(0).words().contains("the judge `reviewer` could edit files"), "{}", shown.stderr);
}
