//! Chains: sequence, loops, groups, and what an agent is told.

use super::support::Place;

fn place() -> Place {
    let place = Place::new();
    place.agent("a", "print from a").agent("b", "print from b");
    place
}

#[test]
fn agents_run_in_sequence_and_their_output_is_passed_through() {
    let place = place();
    let ran = place.run(&["a -> b", "-p", "hi"]);
    assert_eq!(ran.code(0).stdout, "from a\nfrom b\n");
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn the_chain_stops_at_the_first_step_that_fails() {
    let place = place();
    place.agent("a", "eprint broken\nexit 3");
    let ran = place.run(&["a -> b"]);
    assert_eq!((ran.code(1).stdout.as_str(), place.calls("b")), ("", 0));
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn an_agent_killed_by_a_signal_is_a_failure() {
    for signal in ["KILL", "SEGV"] {
        let place = place();
        place.agent("a", &format!("die {signal}"));
        let ran = place.run(&["a -> b"]);
        let number = if signal == "KILL" { 9 } else { 11 };
        assert!(ran.code(1).stderr.contains(&format!("killed by signal {number}")), "{}", ran.stderr);
        assert_eq!(place.calls("b"), 0);
    }
}

#[test]
fn a_loop_ends_at_its_marker_and_the_next_step_begins() {
    let place = place();
    place.agent("a", "print working\nnext\nprint done\nmarker");
    let ran = place.run(&["a:5 -> b"]);
    assert_eq!(ran.code(0).stdout, "working\ndone\nFORKHESTRA_COMPLETE\nfrom b\n");
    assert_eq!(place.calls("a"), 2);
    insta::assert_snapshot!(ran.stderr);
}

/// `a:1` loops once and needs the marker, `a` does not.
#[test]
fn a_loop_without_a_marker_is_incomplete_even_after_one_iteration() {
    let place = place();
    let ran = place.run(&["a:1 -> b"]);
    assert!(ran.code(1).words().contains("a did not print FORKHESTRA_COMPLETE in 1 iteration"), "{}", ran.stderr);
    assert_eq!((place.calls("a"), place.calls("b")), (1, 0));
}

/// A failing iteration counts, the loop continues, and the exit code is shown.
#[test]
fn a_failing_iteration_counts_and_is_shown() {
    let place = place();
    place.agent("a", "exit 7\nnext\nmarker");
    let ran = place.run(&["a:2"]);
    assert!(ran.code(0).words().contains("iteration 1 of 2: failed with exit code 7"), "{}", ran.stderr);
}

#[test]
fn a_marker_with_a_failing_exit_is_not_complete_and_is_said() {
    for end in ["exit 1", "die KILL"] {
        let place = place();
        place.agent("a", &format!("marker\n{end}"));
        let ran = place.run(&["a:1"]);
        assert!(ran.code(1).words().contains("despite the marker"), "{}", ran.stderr);
    }
}

#[test]
fn a_custom_marker_of_the_config_is_the_marker() {
    let place = place();
    place.config(r#"{"marker": "ALL_DONE_HERE", "chains": {}}"#);
    place.agent("a", "print FORKHESTRA_COMPLETE\nnext\nprint ALL_DONE_HERE");
    place.run(&["a:3"]).code(0);
    assert_eq!(place.calls("a"), 2);
    assert!(place.call("a", 1).contains("env FORKHESTRA_MARKER=ALL_DONE_HERE\n"));
}

#[test]
fn an_agent_is_told_its_run_chain_step_iteration_and_round() {
    let place = place();
    place.config(r#"{"chains": {"c": {"steps": [{"agent": "b"}, {"agent": "a", "iterations": 2}]}}}"#);
    place.agent("a", "print x\nnext\nmarker");
    place.run(&["--chain", "c"]).code(0);
    let call = place.call("a", 2);
    for line in
        ["RUN=1", "CHAIN=c", "STEP=2", "ITERATION=2", "MAX_ITERATIONS=2", "ROUND=1", "MARKER=FORKHESTRA_COMPLETE"]
    {
        assert!(call.contains(&format!("env FORKHESTRA_{line}\n")), "{line} in\n{call}");
    }
    assert!(place.call("b", 1).contains("env FORKHESTRA_MAX_ITERATIONS=1\n"));
}

#[test]
fn a_group_repeats_until_its_check_passes_and_feeds_its_output_back() {
    let place = place();
    place.config(
        r#"{"checks": {"ok": {"run": "echo the wall is $COLOR; test -e painted"}},
            "chains": {"c": {"vars": {"COLOR": "grey"}, "prompt": "paint", "steps": [{"group": [{"agent": "a"}, {"check": "ok"}], "iterations": 3}, {"agent": "b"}]}}}"#,
    );
    place.agent("a", "print trying\nnext\nsh touch painted");
    let ran = place.run(&["--chain", "c", "COLOR=blue"]);
    assert_eq!(ran.code(0).stdout, "trying\nthe wall is blue\nthe wall is blue\nfrom b\n");
    assert!(place.call("a", 1).contains("arg paint\nenv"));
    insta::assert_snapshot!(
        place.call("a", 2).split("env ").next().unwrap().replace(place.path("").to_str().unwrap(), "$PLACE/")
    );
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn a_group_whose_check_never_passes_ends_after_its_rounds() {
    let place = place();
    place.config(r#"{"checks": {"no": {"run": "exit 4"}}, "chains": {}}"#);
    let ran = place.run(&["(a -> no):2 -> b"]);
    assert!(ran.code(1).words().contains("no still fails in the last round"), "{}", ran.stderr);
    assert_eq!((place.calls("a"), place.calls("b")), (2, 0));
}

#[test]
fn an_agent_that_fails_in_a_group_is_tried_again_in_place() {
    let place = place();
    place.agent("a", "exit 1\nnext\nprint up");
    let ran = place.run(&["(a):2"]);
    assert!(ran.code(0).words().contains("retry 1 of 3"), "{}", ran.stderr);
}

#[test]
fn an_optional_check_that_fails_is_said_and_stops_nothing() {
    let place = place();
    place.config(r#"{"checks": {"no": {"run": ["/bin/false"], "optional": true}}, "chains": {}}"#);
    let ran = place.run(&["no -> a"]);
    assert!(ran.code(0).words().contains("failed with exit code 1, optional"), "{}", ran.stderr);
}

/// An echo of feedback that quotes a marker cannot end a loop.
#[test]
fn an_echo_of_feedback_with_the_marker_does_not_end_the_loop() {
    let place = place();
    place.config(r#"{"checks": {"no": {"run": "echo FORKHESTRA_COMPLETE; test -e ok"}}, "chains": {}}"#);
    place.agent("a", "marker\nnext\necho\nnext\necho\nmarker\nsh touch ok");
    let ran = place.run(&["(a:2 -> no):2", "-p", "x"]);
    ran.code(0);
    assert_eq!(place.calls("a"), 3, "{}", ran.all());
}

#[test]
fn quiet_prints_nothing_and_keeps_the_transcripts() {
    let place = place();
    let ran = place.run(&["-q", "a"]);
    assert_eq!((ran.code(0).stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(place.read(".forkhestra/runs/1/1-a/1/stdout.log"), "from a\n");
}

#[test]
fn the_root_is_found_upward_to_the_repository_and_cwd_sets_it_exactly() {
    let place = place();
    place
        .config(r#"{"chains": {"c": {"steps": [{"agent": "a"}]}}}"#)
        .write(".git/HEAD", "")
        .write("deep/er/x", "")
        .write("repo/.git/HEAD", "")
        .write("repo/in/x", "");
    place.agent("a", "sh pwd");
    let ran = |folder: &str, arguments: &[&str]| {
        let output = place.command(arguments).current_dir(place.work(folder)).output().unwrap();
        (output.status.code(), place.plain(&output.stdout))
    };
    assert_eq!(ran("deep/er", &["--chain", "c"]), (Some(0), "$PLACE/project\n".into()));
    assert_eq!(ran("deep/er", &["--cwd", ".", "a"]), (Some(0), "$PLACE/project/deep/er\n".into()));
    assert_eq!(
        ran("repo/in", &["a"]),
        (Some(0), "$PLACE/project/repo/in\n".into()),
        "the repository's root ends the search"
    );
    assert_eq!(ran("deep/er", &["--cwd", "../..", "--chain", "c"]), (Some(0), "$PLACE/project\n".into()));
}

/// What is above may belong to anyone.
#[test]
fn outside_a_repository_nothing_above_is_looked_at() {
    let place = place();
    place.config(r#"{"agents": {"a": {"command": "b"}}, "chains": {}}"#).write("sub/x", "");
    let output = place.command(&["a"]).current_dir(place.work("sub")).output().unwrap();
    assert_eq!(place.plain(&output.stdout), "from a\n");
}

/// Above the temporary directory there may be anything: a sandbox that was killed leaves an empty `.git`.
#[test]
fn an_empty_git_folder_is_no_repository() {
    let place = place();
    place.config(r#"{"agents": {"a": {"command": "b"}}, "chains": {}}"#).write("sub/x", "");
    std::fs::create_dir(place.work(".git")).unwrap();
    let output = place.command(&["a"]).current_dir(place.work("sub")).output().unwrap();
    assert_eq!(place.plain(&output.stdout), "from a\n");
}

/// Like git, which refuses a repository of another user. Only root can give a file away, so only root can run this
/// test.
#[test]
fn what_another_user_owns_runs_nothing_unless_git_was_told_that_it_is_safe() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (theirs, shown) in
        [(".git", ".git"), ("forge", "forge"), ("forge/chains.json", "chains.json"), (".forkhestra", ".forkhestra")]
    {
        let place = place();
        place.config(r#"{"chains": {}}"#).write(".git/HEAD", "").write(".forkhestra/x", "").write("sub/x", "");
        std::os::unix::fs::chown(place.work(theirs), Some(12_345), None).unwrap();
        for folder in ["", "sub"] {
            let ran = place.command(&["a"]).current_dir(place.work(folder)).output().unwrap();
            let words = place.plain(&ran.stderr).replace(['\n', '│'], " ");
            assert!(words.contains("belongs to user 12345") && words.contains(shown), "{words}");
            assert_eq!(ran.status.code(), Some(2));
        }
        let sudo = place.command(&["a"]).env("SUDO_UID", "12345").output().unwrap();
        assert_eq!(sudo.status.code(), Some(0), "{}", place.plain(&sudo.stderr));
        std::fs::write(
            place.path("home/.gitconfig"),
            format!("[safe]\ndirectory = {}\n", place.path("project").display()),
        )
        .unwrap();
        place.run(&["a"]).code(0);
    }
}

#[test]
fn a_nul_in_a_checks_output_reaches_the_next_round_as_a_sign_of_it() {
    let place = place();
    place.config(r#"{"checks": {"nul": {"run": "printf 'bad\\0thing'; test -e ok"}}, "chains": {}}"#);
    place.agent("a", "print x\nnext\nsh touch ok");
    place.run(&["(a -> nul):2", "-p", "go"]).code(0);
    assert!(place.call("a", 2).contains("bad\u{fffd}thing"));
}

#[test]
fn the_last_line_tells_how_a_failing_loop_ended_and_v_tells_the_prompts() {
    let place = place();
    place.agent("a", "marker\nexit 3");
    let ran = place.run(&["-q", "a:2"]);
    assert!(
        ran.code(1)
            .words()
            .contains("a did not complete in 2 iterations; the last one failed with exit code 3 despite the marker"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["-v", "b", "-p", "the words"]);
    assert!(ran.code(0).stderr.contains("│ the words"), "{}", ran.stderr);
    // Each attempt is shown with what it was told.
    place.write("check.sh", "[ -e fixed ] || { echo 'a.rs:1: broken'; exit 1; }\n");
    place.config(r#"{ "checks": { "t": "sh check.sh" }, "chains": {} }"#).agent("c", "print a\nnext\nsh touch fixed");
    let ran = place.run(&["-v", "(c -> t):2", "-p", "the words"]);
    assert!(!ran.code(0).stderr.contains("{{feedback}}"), "{}", ran.stderr);
    assert!(ran.stderr.contains("│ the words") && ran.stderr.contains("│ a.rs:1: broken"), "{}", ran.stderr);
}
