//! Every error that can be known before the start is reported before the start, all of them at once.

use super::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_named_pipe_in_place_of_a_file_is_refused_and_not_waited_for() {
    let place = Place::new();
    place.agent("c", "marker");
    std::fs::create_dir_all(place.work("forge")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(place.work("forge/chains.json")).status().unwrap();
    assert!(made.success());
    let ran = place.run(&["c", "-p", "Work."]);
    assert!(
        ran.code(2).words().contains("it is a named pipe, a socket or a device, not a regular file"),
        "{}",
        ran.stderr
    );
}

#[test]
fn every_fault_of_a_chain_is_shown_at_once_with_its_place() {
    let place = Place::new();
    place.agent("ok", "print never");
    place.write("plain.sh", "#!/bin/sh\n").write("prompts/latin.md", b"caf\xe9".as_slice());
    place.config(
        r#"{
  "agents": {
    "gone": { "command": "./gone.sh" },
    "plain": { "command": ["./plain.sh"] },
    "folder": { "command": "./prompts", "promt": "x" }
  },
  "chains": {
    "c": {
      "prompt": "Work on ${FEATURE} of ${PROJECT}",
      "steps": [
        { "agent": "ok" },
        { "agent": "gone" },
        { "agent": "plain" },
        { "agent": "folder" },
        { "agent": "okk", "iterations": 3 },
        { "agent": "ok", "promptFile": "prompts/none.md" },
        { "agent": "ok", "promptFile": "prompts" },
        { "agent": "ok", "promptFile": "prompts/latin.md" }
      ]
    }
  }
}"#,
    );
    let ran = place.run(&["--chain", "c"]);
    assert_eq!((ran.code, place.calls("ok")), (Some(2), 0));
    assert!(!place.work(".forkhestra").exists(), "nothing is written");
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn a_typed_chain_has_its_faults_marked_in_the_typed_text() {
    let place = Place::new();
    place.agent("ok", "");
    insta::assert_snapshot!(place.run(&["ok:0 -> okk:3 -> ( ok ok )"]).code(2).stderr);
}

#[test]
fn a_folder_that_is_none_is_refused() {
    let place = Place::new();
    place.agent("ok", "").write("file", "");
    for folder in ["none", "file"] {
        let ran = place.run(&["--cwd", folder, "ok"]);
        assert!(ran.code(2).words().contains("the working directory"), "{}", ran.stderr);
    }
    let said = place.run(&["-C", "none", "test"]).code(2).stderr.clone();
    assert_eq!(said.lines().filter(|line| line.contains("×")).count(), 1, "nothing else is said of it: {said}");
}

#[test]
fn a_program_on_path_that_is_not_executable_is_named() {
    let place = Place::new();
    place.config(r#"{"agents": {"tool": {"command": "tool"}}, "chains": {}}"#);
    fs::write(place.path("bin/tool"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(place.path("bin/tool"), fs::Permissions::from_mode(0o644)).unwrap();
    let ran = place.run(&["tool"]);
    assert!(ran.code(2).words().contains("$PLACE/bin/tool is not executable"), "{}", ran.stderr);
}

#[test]
fn an_invalid_chain_stops_itself_and_no_other() {
    let place = Place::new();
    place.agent("ok", "print fine");
    place.config(
        r#"{"chains": {"bad": {"steps": [{"agent": "ok", "iteration": 5}]}, "good": {"steps": [{"agent": "ok"}]}}}"#,
    );
    assert_eq!(place.run(&["--chain", "good"]).code(0).stdout, "fine\n");
    let ran = place.run(&["--chain", "bad"]);
    assert!(ran.code(2).words().contains("did you mean `iterations`?"), "{}", ran.stderr);
    assert!(place.run(&["validate"]).code(2).words().contains("a step has no key `iteration`"));
    assert!(place.run(&["list"]).code(0).stdout.contains("has errors"));
}

#[test]
fn comments_and_trailing_commas_are_fine_and_a_syntax_fault_has_its_line() {
    let place = Place::new();
    place
        .agent("ok", "print fine")
        .config("// mine\n{ \"chains\": { \"c\": { \"steps\": [ { \"agent\": \"ok\" }, ], }, }, }");
    place.run(&["--chain", "c"]).code(0);
    place.config("{\n  \"chains\": {\n    \"c\" { }\n  }\n}\n");
    insta::assert_snapshot!(place.run(&["--chain", "c"]).code(2).stderr);
}

#[test]
fn a_prompt_too_long_for_an_argument_is_refused_and_arrives_on_stdin_and_as_a_file() {
    let place = Place::new();
    place.agent("a", "print ok").agent("s", "print ok").agent("f", "print ok");
    place.config(r#"{"agents": {"s": {"deliver": "stdin"}, "f": {"deliver": "file"}}, "chains": {}}"#);
    let long = "0123456789abcdef".repeat(8192 * 80);
    place.write("exact.md", &long[..131_071]).write("over.md", &long[..131_072]).write("ten.md", &long[..10 << 20]);
    place.run(&["a", "--prompt-file", "exact.md"]).code(0);
    assert_eq!(place.call("a", 1).lines().next().unwrap().len(), "arg ".len() + 131_071);
    let ran = place.run(&["a", "--prompt-file", "over.md"]);
    insta::assert_snapshot!(ran.code(2).stderr);
    place.run(&["s", "--prompt-file", "ten.md"]).code(0);
    assert!(place.stdin_of("s", 1) == long.as_bytes()[..10 << 20]);
    place.run(&["f", "--prompt-file", "ten.md"]).code(0);
    let call = place.call("f", 1);
    let file = call.lines().next().unwrap().strip_prefix("arg ").unwrap();
    assert!(fs::read(file).unwrap() == long.as_bytes()[..10 << 20]);
}

#[test]
fn a_nul_in_a_prompt_is_refused_for_an_argument_and_passes_on_stdin() {
    let place = Place::new();
    place.agent("a", "print ok").agent("s", "print ok").write("nul.md", "a\0b");
    place.config(r#"{"agents": {"s": {"deliver": "stdin"}}, "chains": {}}"#);
    assert!(place.run(&["a", "--prompt-file", "nul.md"]).code(2).stderr.contains("NUL"));
    place.run(&["s", "--prompt-file", "nul.md"]).code(0);
    assert_eq!(place.stdin_of("s", 1), b"a\0b");
}

#[test]
fn scripts_that_cannot_be_started_are_found_before_the_first_step() {
    let place = Place::new();
    place.agent("ok", "print never");
    for (name, content, mode) in [
        ("bare", "echo hi\n", 0o755),
        ("badint", "#!/nonexistent/python -u\n", 0o755),
        ("crlf", "#!/bin/sh\r\necho hi\r\n", 0o755),
        ("noexec", "#!/bin/sh\n", 0o644),
    ] {
        fs::write(place.path("bin").join(name), content).unwrap();
        fs::set_permissions(place.path("bin").join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let ran = place.run(&["ok -> bare -> badint -> crlf -> noexec"]);
    assert_eq!((ran.code, place.calls("ok")), (Some(2), 0));
    insta::assert_snapshot!(ran.stderr);
}

/// Also in arguments, environments and the command lines of checks.
#[test]
fn what_no_program_can_be_given_is_refused_before_the_first_step() {
    let place = Place::new();
    place.agent("ok", "print never");
    place.config(
        &r#"{"agents": {"a": {"command": ["ok", "x\u0000y"]}, "e": {"command": "ok", "env": {"A": "x\u0000y"}},
                       "both": {"command": "ok", "backend": "demo"}},
            "checks": {"k": {"run": "echo x\u0000y"}, "v": {"run": "echo $BIG"}}, "chains": {"c": {"vars": {"BIG": "XXX"}, "steps": [{"agent": "ok"}, {"agent": "a"}, {"agent": "e"}, {"check": "k"}, {"check": "v"}, {"agent": "both"}]}}}"#
            .replace("XXX", &"x".repeat(131_080)),
    );
    let ran = place.run(&["--chain", "c", "PATH=/x"]);
    let words = ran.code(2).words();
    for fault in [
        "an argument of `a` contains a NUL byte",
        "an environment variable of `e` contains a NUL byte",
        "an argument of `k` contains a NUL byte",
        "an environment variable of `v` has 131084 bytes",
        "by its `command` or by a `backend`, not by both",
        "`PATH` cannot be a variable of a chain",
    ] {
        assert!(words.contains(fault), "{fault}: {words}");
    }
    assert_eq!(place.calls("ok"), 0);
}

/// An error in a name belongs to its entry.
#[test]
fn a_bad_name_stops_no_other_chain() {
    let place = Place::new();
    place.agent("ok", "print fine");
    place.config(r#"{"chains": {"my chain": {"steps": [{"agent": "ok"}]}, "c": {"steps": [{"agent": "ok"}]}, "d": {"steps": [{"agent": "ok"}]}, "d": {"steps": [{"agent": "ok"}]}}}"#);
    place.run(&["--chain", "c"]).code(0);
    assert!(place.run(&["--chain", "d"]).code(2).words().contains("the key `d` appears twice"));
    assert!(place.run(&["validate"]).code(2).words().contains("`my chain` is not a valid name"));
}

#[test]
fn many_faults_and_long_lines_stay_readable_and_quick() {
    let place = Place::new();
    place.agent("ok", "");
    let ran = place.run(&[&")".repeat(8_000)]);
    assert!(ran.code(2).stderr.contains("more. Fix these first."));
    assert!(ran.stderr.len() < 100_000, "{} bytes", ran.stderr.len());
    let agents: Vec<String> = (0..20_000).map(|number| format!("\"agent{number}\": {{}}")).collect();
    place.config(&format!(
        "{{\"agents\": {{{}}}, \"chains\": {{\"c\": {{\"steps\": [{{\"agnt\": \"é\"}}]}}}}}}",
        agents.join(", ")
    ));
    let ran = place.run(&["--chain", "c"]);
    assert!(ran.code(2).stderr.len() < 10_000, "{} bytes", ran.stderr.len());
    assert!(ran.stderr.contains("unknown key"));
}

#[test]
fn an_unreadable_or_oversized_or_doubled_config_is_refused() {
    let place = Place::new();
    place.agent("ok", "");
    for (content, words) in [
        (b"{\"chains\": {}, \"x\": \"\xff\"}".to_vec(), "it is not UTF-8"),
        (vec![b' '; (1 << 20) + 1], "larger than 1 MiB"),
        (vec![b' '; 3 << 20], "larger than 1 MiB"),
        (b"{\"chains\": {\"a\": {\"steps\": []}}, \"chains\": {}}".to_vec(), "appears twice"),
        ([b"{\"chains\": ".to_vec(), vec![b'['; 100_000]].concat(), "nested more than 140"),
    ] {
        place.write("forge/chains.json", content);
        let ran = place.run(&["ok"]);
        assert!(ran.code(2).words().contains(words), "{words}: {}", ran.stderr);
    }
    place.config(r#"{"chains": {}}"#).write("forge/chains.json5", "{chains: {}}");
    assert!(place.run(&["ok"]).code(2).words().contains("there are two configs"));
}

/// The backend of an agent that names none is that of the config, that of the variable, or the first installed one.
/// Without any, the error says what to install.
#[test]
fn without_any_agent_cli_a_built_in_agent_is_refused_with_what_to_install() {
    let mut place = Place::new();
    let words = place.run(&["coder:3", "-p", "x"]).code(2).words();
    assert!(
        words.contains("no backend is installed")
            && words.replace(' ', "").contains("npminstall-g@anthropic-ai/claude-code"),
        "{words}"
    );
    place.agent("codex", "");
    assert!(place.run(&["coder", "--dry-run"]).code(0).stdout.contains("run by codex"));
    place.agent("claude", "");
    assert!(place.run(&["coder", "--dry-run"]).code(0).stdout.contains("run by claude"));
    place.set("FORKHESTRA_BACKEND", "nope");
    assert!(place.run(&["coder"]).code(2).words().contains("FORKHESTRA_BACKEND is `nope`"));
    place.config(r#"{"backend": "claude-cli", "chains": {}}"#);
    place.run(&["coder", "--dry-run"]).code(0);
}
