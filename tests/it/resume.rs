//! A run that was interrupted anywhere resumes, and ends as it would have ended without the interruption.

use super::support::{LONG, Place, send, try_send};
use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

/// A loop, a group with a loop in it, and a check that fails in the first round.
const CHAIN: &str = "plan:3 -> (code:2 -> t):3 -> say";

fn place() -> Place {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_STILL_CLOCK", "0");
    let second = "sh [ $FORKHESTRA_ITERATION = 2 ] && echo FORKHESTRA_COMPLETE";
    place.agent("plan", second).agent("code", second).agent("say", "print done");
    place.config(r#"{"checks": {"t": {"run": "[ \"$FORKHESTRA_ROUND\" = 2 ]"}}, "chains": {}}"#);
    place
}

/// Returns the attempts that ended by themselves, in order.
fn finished(events: &[Value]) -> Vec<String> {
    let ends = events
        .iter()
        .map(|event| &event["event"])
        .filter(|event| event["type"] == "attemptFinished" && event["outcome"]["type"] != "interrupted");
    ends.map(|event| {
        format!("{}.{}/{} {}", event["at"]["name"], event["at"]["iteration"], event["at"]["round"], event["outcome"])
    })
    .collect()
}

fn interrupted(events: &[Value]) -> usize {
    events.iter().filter(|event| event["event"]["outcome"]["type"] == "interrupted").count()
}

/// Returns the attempts of the chain without any interruption.
fn undisturbed() -> Vec<String> {
    let place = place();
    place.run(&["-q", CHAIN]).code(0);
    finished(&place.events(1))
}

/// The test build aborts after the k-th write to the journal, for every k.
#[test]
fn a_run_that_dies_after_any_write_to_its_journal_goes_on_to_the_same_end() {
    let whole = undisturbed();
    assert_eq!(whole.len(), 2 + 2 * 3 + 1);
    let mut writes = 0;
    loop {
        writes += 1;
        let place = place();
        let mut command = place.command(&["-q", CHAIN]);
        let died = command.env("FORKHESTRA_TEST_ABORT_AFTER_WRITES", writes.to_string()).status().unwrap();
        place.assert_nothing_is_left();
        if died.code() == Some(0) {
            break;
        }
        let over = place.events(1).last().is_some_and(|event| event["event"]["type"] == "runFinished");
        let before = finished(&place.events(1));
        let ran = place.run(&["-q", "resume"]);
        if over {
            assert!(
                ran.code(2).words().contains("run 1 has ended: all its steps succeeded")
                    || ran.words().contains("no run to resume"),
                "{}",
                ran.all()
            );
        } else {
            assert_eq!(ran.code, Some(0), "after {writes} writes: {}", ran.all());
        }
        let events = place.events(1);
        assert_eq!(finished(&events), whole, "after {writes} writes");
        assert_eq!(before, whole[..before.len()]);
        assert!(interrupted(&events) <= 1, "after {writes} writes");
    }
    assert!(writes > 20, "{writes}");
}

/// A few times here; `FORKHESTRA_CRASHES=500 cargo test --test it killed_at -- --nocapture` tries more.
#[test]
fn a_run_that_is_killed_at_any_time_goes_on_to_the_same_end_and_repeats_nothing_that_was_over() {
    let crashes = std::env::var("FORKHESTRA_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let whole = undisturbed();
    let begun = Instant::now();
    place().run(&["-q", CHAIN]).code(0);
    let long = begun.elapsed();
    let (mut tries, mut resumed, mut repeated) = (0, 0, 0);
    while resumed < crashes {
        let place = place();
        let mut running = place.command(&["-q", CHAIN]);
        let mut running = running.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Evenly distributed over the whole duration, in an order without a pattern.
        std::thread::sleep(long * (tries * 7919 % 1009) / 1009);
        tries += 1;
        running.kill().unwrap();
        running.wait().unwrap();
        // The lifeline stops the rest by itself.
        place.assert_nothing_is_left();
        let journal = place.work(".forkhestra/state.db");
        let before = if journal.exists() { place.events(1) } else { Vec::new() };
        if before.last().is_none_or(|last| last["event"]["type"] == "runFinished") {
            // It had not started, or had already ended.
            continue;
        }
        resumed += 1;
        let ran = place.run(&["-q", "resume"]);
        assert_eq!(ran.code, Some(0), "try {tries}: {}", ran.all());
        let events = place.events(1);
        assert_eq!(finished(&events), whole, "try {tries}");
        let before = finished(&before);
        assert_eq!(before, whole[..before.len()], "try {tries}");
        repeated += interrupted(&events);
    }
    println!("{resumed} resumes after a kill, of {tries} runs; {repeated} attempts were interrupted");
}

/// Without any argument: prompt, variables, counters and limits are those of the run.
#[test]
fn resume_needs_no_arguments_and_restores_what_the_command_line_said() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("sh date +%N\nnext\nhang {}\nnext\nmarker", up.display()));
    place.write("prompts/it.md", "Do ${WHAT}.");
    place
        .config(r#"{"chains": {"ship": {"steps": [{"agent": "a", "iterations": 4, "promptFile": "prompts/it.md"}]}}}"#);
    let running = place.start(&["--chain", "ship", "WHAT=this --or that", "--limit", "attempts=3", "--timeout", "1h"]);
    place.wait_for(&up);
    let killed = running.end_by("KILL");
    assert_eq!(killed.code, None);
    let plan = place.run(&["resume", "--dry-run"]);
    insta::assert_snapshot!("resume_dry_run", plan.code(0).stdout);
    let ran = place.run(&["resume"]);
    insta::assert_snapshot!("resume", ran.code(0).stderr);
    for attempt in 1..=3 {
        assert_eq!(place.read(&format!(".forkhestra/runs/1/1-a/{attempt}/prompt.md")), "Do this --or that.");
    }
    assert_eq!(finished(&place.events(1)).len(), 2, "the one that was running was interrupted, and tried again");
    assert_eq!(place.calls("a"), 3);
}

#[test]
fn a_run_that_was_interrupted_says_how_to_go_on_and_goes_on() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("print first\nhang {}\nnext\nprint second\nmarker", up.display()));
    let running = place.start(&["a:2"]);
    place.wait_for(&up);
    let ran = running.end_by("INT");
    assert!(ran.code(130).stderr.contains("forkhestra resume"), "{}", ran.stderr);
    place.run(&["resume", "1"]).code(0);
    let again = place.run(&["resume", "1"]);
    assert!(again.code(2).words().contains("run 1 has ended: all its steps succeeded"), "{}", again.stderr);
}

#[test]
fn a_run_that_reached_a_limit_goes_on_under_a_higher_one() {
    let place = Place::new();
    place.agent("a", "sh date +%N\nnext\nsh date +%N\nnext\nmarker");
    let ran = place.run(&["a:5", "--limit", "attempts=2"]);
    assert!(ran.code(4).words().contains("forkhestra resume 1 --limit attempts="), "{}", ran.stderr);
    place.run(&["resume"]).code(4);
    assert_eq!(place.calls("a"), 2, "the limit still holds");
    place.run(&["resume", "--limit", "attempts=9"]).code(0);
    assert_eq!(place.calls("a"), 3);
}

#[test]
fn a_chain_or_prompt_that_has_changed_is_shown_and_must_be_accepted() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}\nnext\nmarker", up.display())).agent("b", "print b");
    let config = |prompt: &str, count: u32| {
        format!(
            r#"{{"chains": {{"c": {{"steps": [{{"agent": "a", "iterations": {count}, "prompt": "{prompt}"}}, {{"agent": "b"}}]}}}}}}"#
        )
    };
    place.config(&config("before", 2));
    let running = place.start(&["--chain", "c"]);
    place.wait_for(&up);
    assert_eq!(running.end_by("KILL").code, None);
    place.config(&config("after", 3));
    let refused = place.run(&["resume"]);
    insta::assert_snapshot!("changed", refused.code(2).stderr);
    assert_eq!(place.calls("a"), 1);
    place.run(&["resume", "--dry-run"]).code(0);
    let other = place
        .write(
            "forge/chains.json",
            r#"{"chains": {"c": {"steps": [{"agent": "b"}, {"agent": "a", "iterations": 2}]}}}"#,
        )
        .run(&["resume", "--accept-changes"]);
    assert!(
        other.code(2).words().contains("the chain has different steps from when the run began"),
        "{}",
        other.stderr
    );
    place.config(&config("after", 3)).run(&["resume", "--accept-changes"]).code(0);
    assert_eq!(place.read(".forkhestra/runs/1/1-a/2/prompt.md"), "after");
}

#[test]
fn what_cannot_go_on_is_refused_with_a_way_out() {
    let place = Place::new();
    let none = place.run(&["resume"]);
    assert!(none.code(2).words().contains("there are no runs in"), "{}", none.stderr);
    place.agent("a", "print x");
    place.run(&["a"]).code(0);
    place.run(&["a:1"]).code(1);
    let tries = [&["resume"][..], &["resume", "1"], &["resume", "2"], &["resume", "7"], &["resume", "x"]];
    let said = tries.map(|words| format!("$ forkhestra {}\n{}\n", words.join(" "), place.run(words).code(2).stderr));
    insta::assert_snapshot!("refusals", said.concat());
}

#[test]
fn a_run_that_is_at_work_is_not_gone_on_with() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}", up.display()));
    let running = place.start(&["a"]);
    place.wait_for(&up);
    let refused = place.command(&["resume", "1"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(place.plain(&refused.stderr).contains("run 1 is still running"), "{}", place.plain(&refused.stderr));
    running.end_by("TERM").code(143);
}

/// Even its lifeline was killed, and nothing else has stopped the agent.
#[test]
fn survivors_of_a_killed_lifeline_are_ended_before_anything_is_run_again() {
    let place = Place::new();
    let (up, child) = (place.path("tmp/up"), place.path("tmp/child"));
    place.agent(
        "a",
        &format!("quiet-child {}\nwait-for {}\nhang {}\nnext\nmarker", child.display(), child.display(), up.display()),
    );
    let mut running = place.command(&["-q", "a:2"]);
    let mut running = running.spawn().unwrap();
    place.wait_for(&up);
    let lifelines: Vec<String> = place.processes().into_iter().filter(|line| line.contains("__lifeline")).collect();
    // Stopped first, so that neither notices the death of the other.
    for pid in lifelines.iter().filter_map(|line| line.split(['/', ' ']).nth(2)) {
        try_send("STOP", pid);
        try_send("KILL", &running.id().to_string());
        try_send("KILL", pid);
    }
    running.wait().unwrap();
    let child = fs::read_to_string(&child).unwrap();
    assert!(place.processes().iter().any(|line| line.contains(&format!("/proc/{child} "))), "{:?}", place.processes());
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stderr.contains("left running by the agent, and then stopped: "), "{}", ran.stderr);
}

/// What an old agent does with its token after a resume has no effect, because its lease has expired.
#[test]
fn a_run_whose_lock_was_removed_notices_that_another_has_begun() {
    let place = Place::new();
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.agent("a", &format!("touch {}\nwait-for {}\nmarker", up.display(), go.display())).agent("b", "print b");
    let first = place.start(&["a:1"]);
    place.wait_for(&up);
    fs::remove_file(place.work(".forkhestra/lock")).unwrap();
    let second = place.command(&["b"]).output().unwrap();
    assert_eq!(second.status.code(), Some(0), "{}", place.plain(&second.stderr));
    fs::write(&go, "").unwrap();
    let ran = first.end();
    assert!(ran.code(1).words().contains("another run has taken over the journal"), "{}", ran.stderr);
    assert!(finished(&place.events(1)).is_empty());
}

/// A file size limit simulates a full disk: every write beyond it fails in the same way (setrlimit(2)).
#[test]
fn a_disk_that_is_full_ends_the_run_with_a_clear_word_and_the_run_goes_on_when_there_is_room() {
    let place = Place::new();
    place.agent("a", "sh [ $FORKHESTRA_ITERATION = 9 ] && echo FORKHESTRA_COMPLETE; date +%N");
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    let mut sizes = Vec::new();
    for blocks in [40, 60, 90, 140, 200] {
        let command = place.command(&[]);
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec '{program}' a:9");
        let mut shell = Command::new("/bin/sh");
        shell
            .arg("-c")
            .arg(limited)
            .current_dir(place.path("project"))
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.stdin(Stdio::null()).process_group(0).output().unwrap();
        place.assert_nothing_is_left();
        let words = place.plain(&output.stderr);
        sizes.push(output.status.code());
        match output.status.code() {
            Some(0) => {}
            Some(1 | 2) => assert!(
                words.contains("full") || words.contains("cannot write") || words.contains("I/O"),
                "{blocks}: {words}"
            ),
            other => panic!("{blocks}: {other:?} {words}"),
        }
    }
    assert!(sizes.contains(&Some(1)) || sizes.contains(&Some(2)), "no limit was met: {sizes:?}");
    let ran = place.run(&["resume"]);
    assert!(matches!(ran.code, Some(0 | 2)), "{}", ran.all());
}

/// SQLite detects a torn write-ahead log by its checksums. What was complete before it is still there.
#[test]
fn a_truncated_or_damaged_journal_is_recovered_or_refused_never_half_believed() {
    let whole = undisturbed();
    for damage in ["wal-half", "wal-gone", "wal-flip", "db-flip", "db-half"] {
        let place = place();
        let mut command = place.command(&["-q", CHAIN]);
        let died = command.env("FORKHESTRA_TEST_ABORT_AFTER_WRITES", "21").status().unwrap();
        assert_eq!(died.code(), None, "{damage}");
        place.assert_nothing_is_left();
        let (database, log) = (place.work(".forkhestra/state.db"), place.work(".forkhestra/state.db-wal"));
        // The index is rebuilt from the log.
        let _ = fs::remove_file(place.work(".forkhestra/state.db-shm"));
        let change = |path: &std::path::Path, change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = fs::read(path).unwrap();
            assert!(!bytes.is_empty(), "{damage}");
            change(&mut bytes);
            fs::write(path, bytes).unwrap();
        };
        let flip = |bytes: &mut Vec<u8>| {
            let middle = bytes.len() / 2;
            bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x55);
        };
        match damage {
            "wal-half" => change(&log, &|bytes| bytes.truncate(bytes.len() / 2 + 11)),
            "wal-gone" => change(&log, &Vec::clear),
            "wal-flip" => change(&log, &flip),
            "db-flip" => change(&database, &flip),
            _ => change(&database, &|bytes| bytes.truncate(bytes.len() / 2)),
        }
        let ran = place.run(&["-q", "resume"]);
        match ran.code {
            Some(0) => assert_eq!(finished(&place.events(1)), whole, "{damage}"),
            Some(2) => {
                assert!(ran.words().contains("journal") || ran.words().contains("no run"), "{damage}: {}", ran.all());
            }
            _ => panic!("{damage}: {}", ran.all()),
        }
    }
}

#[test]
fn git_is_never_written_to_by_us() {
    let place = Place::new();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@x"])
            .args(arguments)
            .current_dir(place.path("project"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["init", "-q"]);
    place.write("kept.txt", "1").write("staged.txt", "2");
    git(&["add", "kept.txt"]);
    git(&["commit", "-qm", "first"]);
    git(&["add", "staged.txt"]);
    place.write("kept.txt", "changed");
    place.agent("a", "print x\nnext\nmarker");
    let look = || {
        git(&["status", "--porcelain=v2", "--branch"]) + &git(&["stash", "list"]) + &git(&["log", "--all", "--oneline"])
    };
    let before = look();
    place.run(&["a:2", "--limit", "attempts=1"]).code(4);
    place.run(&["resume", "--limit", "attempts=5"]).code(0);
    assert_eq!(look(), before, "the state folder is no part of the status either");
}

/// A stopped lifeline stops nothing, and its host is dead. A second agent must not be started next to the first.
#[test]
fn an_agent_whose_lifeline_stands_still_is_ended_before_its_successor_is_started() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}\nnext\nmarker", up.display()));
    let mut running = place.command(&["-q", "a:2"]).spawn().unwrap();
    place.wait_for(&up);
    for line in place.processes().into_iter().filter(|line| line.contains("__lifeline")) {
        send("STOP", line.split(['/', ' ']).nth(2).unwrap());
    }
    running.kill().unwrap();
    running.wait().unwrap();
    let ran = place.run(&["resume"]);
    assert!(ran.code(0).stderr.contains("had left these processes running, now stopped: "), "{}", ran.stderr);
}

#[test]
fn a_run_that_died_before_its_first_event_is_passed_over() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}\nnext\nmarker", up.display()));
    let running = place.start(&["a:2"]);
    place.wait_for(&up);
    assert_eq!(running.end_by("KILL").code, None);
    let insert = "INSERT INTO runs (id, started, chain, digest) VALUES (2, '2026-01-01T00:00:00Z', 'a', 'x')";
    place.sql(insert);
    assert!(place.run(&["runs"]).code(0).stdout.contains("not started"));
    assert!(place.run(&["resume", "2"]).code(2).words().contains("before it started"));
    place.run(&["resume"]).code(0);
    assert_eq!(finished(&place.events(1)).len(), 1);
}

#[test]
fn another_program_a_check_that_became_optional_and_a_limit_of_the_config_are_changes() {
    let place = Place::new();
    let up = place.path("tmp/up");
    let script = format!("hang {}", up.display());
    place.agent("one", &script).agent("two", &script);
    let config = |program: &str, optional: bool, most: u32| {
        format!(
            r#"{{"limits": {{"iterations": {most}}}, "agents": {{"a": {{"command": "{program}"}}}}, "checks": {{"t": {{"run": "false", "optional": {optional}}}}},
                "chains": {{"c": {{"steps": [{{"agent": "a"}}, {{"check": "t"}}]}}}}}}"#
        )
    };
    place.config(&config("one", false, 5));
    let running = place.start(&["--chain", "c"]);
    place.wait_for(&up);
    assert_eq!(running.end_by("KILL").code, None);
    place.config(&config("two", true, 5000));
    let words = place.run(&["resume", "--limit", "time=1h"]).code(2).words();
    for expected in
        ["program of step 1 (a): ", "/bin/one is now $PLACE/bin/two", "optional of step 2 (t)", "attempts=5000"]
    {
        assert!(words.replace(' ', "").contains(&expected.replace(' ', "")), "{expected}: {words}");
    }
}

/// The time limit across crashes: the time of an attempt before it was killed counts.
#[test]
fn the_limit_on_time_counts_what_was_cut_off() {
    let mut place = Place::new();
    let up = place.path("tmp/up");
    place.set("FORKHESTRA_TEST_STILL_CLOCK", "0");
    place.agent("a", &format!("sh sleep 1\nprint x\nhang {}", up.display()));
    let running = place.start(&["a", "--limit", "time=20s"]);
    place.wait_for(&up);
    let log = place.work(".forkhestra/runs/1/1-a/1/worked");
    let deadline = Instant::now() + LONG;
    let worked = || fs::read_to_string(&log).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    while worked() < 1000_u32 && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(running.end_by("KILL").code, None);
    let told = place.run(&["resume", "--dry-run"]);
    let worked = told.code(0).stdout.split("1 attempt, ").nth(1).unwrap_or_default();
    let seconds: f64 = worked.split(' ').next().unwrap_or_default().parse().unwrap_or_default();
    assert!(seconds >= 1.0, "{}", told.stdout);
}

/// A repository may contain `.forkhestra/` with an interrupted run, which nobody who clones it has asked for.
#[test]
fn a_run_of_another_folder_or_of_the_repository_itself_goes_on_only_with_accept_changes() {
    let place = Place::new();
    place.agent("a", "exit 1\nnext\nprint x");
    place.run(&["a"]).code(1);
    fs::rename(place.path("project"), place.path("tmp/moved")).unwrap();
    let resume = |options: &[&str]| {
        let mut command = place.command(&[&["resume"], options].concat());
        let output = command.current_dir(place.path("tmp/moved")).output().unwrap();
        (output.status.code(), place.plain(&output.stderr).replace(['\n', '│'], " "))
    };
    let (code, words) = resume(&[]);
    assert!(code == Some(2) && words.contains("directory: it ran"), "{words}");
    assert_eq!(place.calls("a"), 1);
    fs::rename(place.path("tmp/moved"), place.path("project")).unwrap();
    for words in [&["init", "-q"][..], &["add", "-f", ".forkhestra/state.db"]] {
        assert!(Command::new("git").args(words).current_dir(place.path("project")).status().unwrap().success());
    }
    assert!(place.run(&["resume"]).code(2).words().contains("git tracks `.forkhestra`"));
    assert_eq!(place.calls("a"), 1);
    let ran = place.run(&["resume", "--accept-changes"]);
    assert_eq!((ran.code, place.calls("a")), (Some(0), 2), "{}", ran.stderr);
}
