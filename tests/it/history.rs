//! What is known about a past run: `runs` and its subcommands.

use super::support::Place;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::Stdio;

/// A run that completed in its second round, one that did not complete, and one that reached a limit.
fn three_runs() -> Place {
    let mut place = Place::new();
    let line = |text: &str, cost: f64| {
        format!(
            r#"print {{"type":"result","result":"{text}","session_id":"s-1","is_error":false,"total_cost_usd":{cost},"usage":{{"input_tokens":1200,"output_tokens":34}}}}"#
        )
    };
    place.agent(
        "claude",
        &format!("{}\nnext\neprint on the side\n{}", line("half of it", 0.5), line("all of it", 0.25)),
    );
    place.agent("b", "print x\nexit 3").agent("c", "sh date +%N");
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "checks": {"t": {"run": "[ \"$FORKHESTRA_ROUND\" = 2 ]"}},
        "chains": {"ship": {"steps": [{"group": [{"agent": "a", "prompt": "Do it."}, {"check": "t"}], "iterations": 3}]}}}"#);
    place.set("NO_COLOR", "1");
    place.run(&["--chain", "ship"]).code(0);
    place.run(&["b -> a"]).code(1);
    place.run(&["c:9", "--limit", "attempts=2"]).code(4);
    place
}

#[test]
fn runs_are_listed_and_shown_in_every_attempt() {
    let place = three_runs();
    let lines =
        [&["runs"][..], &["runs", "show"], &["runs", "show", "1"], &["runs", "show", "2"], &["runs", "show", "9"]];
    let said = lines.map(|words| {
        let ran = place.run(words);
        format!("$ forkhestra {}\n{}{}\n", words.join(" "), ran.stdout, ran.stderr)
    });
    insta::assert_snapshot!(said.concat());
}

#[test]
fn a_journal_without_runs_says_that_there_are_none_yet() {
    let place = Place::new();
    place.run(&["task", "add", "One"]).code(0);
    for verb in [&["runs", "show", "5"][..], &["resume", "5"]] {
        let words = place.run(verb).code(2).words();
        assert!(words.contains("there is no run 5 help: there are no runs yet"), "{words}");
    }
}

#[test]
fn runs_log_shows_an_attempt_by_run_step_and_attempt() {
    let place = three_runs();
    let said = |words: &[&str]| place.run(words).code(0).stdout.clone();
    assert_eq!(said(&["runs", "log", "2.1"]), "x\n");
    assert!(said(&["runs", "log", "1.1.1", "--raw"]).starts_with(r#"{"type":"result""#));
    assert!(said(&["runs", "log", "1", "1", "--raw"]).contains("all of it"), "the last attempt of the step");
    assert_eq!(said(&["runs", "log", "1", "1"]), "on the side\n", "decoded, and standard error behind it");
    assert_eq!(said(&["runs", "log", "1", "1", "--final"]), "all of it");
    assert!(said(&["runs", "log", "1", "1", "--prompt"]).starts_with("Do it.\n\n## Feedback"));
    assert_eq!(said(&["runs", "log", "1", "1", "--stderr"]), "on the side\n");
    let both = said(&["runs", "log", "3", "1.1"]) + &said(&["runs", "log", "3", "1.2"]);
    assert_eq!(both.lines().count(), 2);
    for (words, expected) in [
        (&["runs", "log", "1", "7"][..], "run 1 has no step 7"),
        (&["runs", "log", "1", "one"], "`one` is not an attempt"),
        (&["runs", "log", "1.1", "1"], "`1` is not an attempt"),
        (&["runs", "log", "first"], "`first` is not a run"),
        (&["runs", "log", "2", "--final"], "there is no"),
    ] {
        let ran = place.run(words);
        assert!(ran.code(2).words().contains(expected), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn everything_is_there_for_machines_too() {
    let place = three_runs();
    let json = |words: &[&str]| -> Value { serde_json::from_str(&place.run(words).code(0).stdout).unwrap() };
    let runs = json(&["runs", "--json"]);
    assert_eq!(runs.as_array().unwrap().len(), 3);
    assert_eq!((&runs[0]["state"], &runs[2]["state"]), (&"limitReached".into(), &"complete".into()));
    assert_eq!(
        (&runs[2]["costUsd"], &runs[2]["tokens"], &runs[2]["attemptCount"]),
        (&0.75.into(), &2468.into(), &4.into())
    );
    let shown = json(&["runs", "show", "1", "--json"]);
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 4);
    let path = json(&["runs", "log", "1", "1", "--prompt", "--json"])["path"].as_str().unwrap().to_string();
    assert!(fs::read_to_string(place.real(&path)).unwrap().starts_with("Do it."));
    let events = place.run(&["runs", "events", "1"]);
    let events = place.real(&events.code(0).stdout);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events, place.events(1));
}

/// The console gets the same events, and the output of the agents is read from the transcripts.
#[test]
fn a_replay_is_the_run_as_it_looked() {
    let place = three_runs();
    place.agent("d", "print one\nnext\nprint two\nmarker");
    let ran = place.run(&["d:3"]);
    let replayed = place.run(&["runs", "replay"]);
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let (mut live, mut again) = (lines(&(ran.code(0).stdout.clone() + &ran.stderr)), lines(&replayed.code(0).stdout));
    live.sort();
    again.sort();
    assert_eq!(live, again);
    insta::assert_snapshot!(place.run(&["runs", "replay", "1"]).code(0).stdout);
}

#[test]
fn a_run_and_a_reader_that_follows_it_do_not_disturb_each_other() {
    let place = Place::new();
    place.agent("a", "sh date +%N; seq 200").agent("b", "marker");
    let run = place.start(&["-q", "a:30 -> b:1"]);
    place.wait_for(&place.work(".forkhestra/runs/1/1-a/1/stdout.log"));
    let mut readers: Vec<_> = (0..2)
        .map(|_| {
            place.command(&["runs", "log", "1", "-f"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let seen: Vec<String> = readers
        .iter_mut()
        .map(|reader| {
            let mut text = String::new();
            reader.stdout.take().unwrap().read_to_string(&mut text).unwrap();
            let mut words = String::new();
            reader.stderr.take().unwrap().read_to_string(&mut words).unwrap();
            assert_eq!((reader.wait().unwrap().code(), words.as_str()), (Some(0), ""));
            text
        })
        .collect();
    assert_eq!(run.end().code, Some(1));
    let log = |attempt| place.read(&format!(".forkhestra/runs/1/1-a/{attempt}/stdout.log"));
    for seen in &seen {
        let mut rest = seen.as_str();
        for attempt in 1..=30 {
            let shown = format!("▶ 1.{attempt} a, iteration {attempt} of 30\n{}○ 1.{attempt} a", log(attempt));
            rest = rest.split_once(&shown).unwrap_or_else(|| panic!("{shown} is not in {rest}")).1;
        }
        assert!(rest.contains("a did not print FORKHESTRA_COMPLETE in 30 iterations"), "{rest}");
    }
}

#[test]
fn a_reader_that_closes_its_pipe_ends_the_log_without_a_word() {
    let place = Place::new();
    place.agent("a", "flood 300000");
    place.run(&["-q", "a"]).code(0);
    let mut log = place.command(&["runs", "log"]);
    let mut log = log.spawn().unwrap();
    drop(log.stdout.take());
    let output = log.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn old_runs_are_forgotten_when_asked_and_only_the_old_ones() {
    let place = three_runs();
    let asked = place.run(&["runs", "prune", "--older-than", "1d"]);
    assert_eq!(asked.code(0).stdout, "0 runs deleted\n");
    assert!(place.run(&["runs", "prune", "--older-than", "soon"]).code(2).words().contains("`soon` is not an age"));
    let old = "UPDATE runs SET ended = '2020-01-01T00:00:00Z' WHERE id < 3";
    let database = rusqlite::Connection::open(place.work(".forkhestra/state.db")).unwrap();
    database.execute(old, []).unwrap();
    drop(database);
    let refused = place.run(&["runs", "prune", "--older-than", "30d"]);
    assert!(
        refused.code(2).words().contains("2 runs would be deleted, but there is no terminal in which to confirm it"),
        "{}",
        refused.stderr
    );
    assert_eq!(place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0).stdout, "2 runs deleted\n");
    assert!(!place.work(".forkhestra/runs/1").exists() && place.work(".forkhestra/runs/3").exists());
    assert!(place.run(&["runs", "show", "1"]).code(2).words().contains("there is no run 1"));
    place.run(&["-q", "b"]).code(1);
    assert!(place.work(".forkhestra/runs/4").exists(), "a number is not used again");
}

/// A run waits for another program that writes to the database, and is not stopped by it.
#[test]
fn a_writer_beside_a_run_does_not_end_it() {
    let place = Place::new();
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    let waits = format!("touch {}\nwait-for {}", up.display(), go.display());
    place.agent("a", &format!("sh date +%N\nnext\n{waits}\nnext\nsh date +%N"));
    let run = place.start(&["-q", "a:12"]);
    place.wait_for(&up);
    let mut database = rusqlite::Connection::open(place.work(".forkhestra/state.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    let held = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    fs::write(&go, "").unwrap();
    // The end of the agent is written to the journal before anything else happens. From here on, the run waits for us.
    place.wait_until_gone("/a ");
    held.commit().unwrap();
    let ran = run.end();
    assert!(ran.code(1).stderr.contains("did not print FORKHESTRA_COMPLETE in 12 iterations"), "{}", ran.stderr);
}

#[test]
fn a_run_that_is_at_work_is_not_forgotten() {
    let place = Place::new();
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.agent("a", &format!("touch {}\nwait-for {}\nmarker", up.display(), go.display()));
    let run = place.start(&["-q", "a:1"]);
    place.wait_for(&up);
    place.sql("UPDATE runs SET started = '2020-01-01T00:00:00Z'");
    let pruned = place.command(&["runs", "prune", "--older-than", "1d", "--yes"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&pruned.stdout), "0 runs deleted\n");
    fs::write(&go, "").unwrap();
    run.end().code(0);
}

#[test]
fn following_a_run_that_was_killed_comes_to_an_end() {
    let place = Place::new();
    place.agent("a", "print x\nhang");
    let run = place.start(&["-q", "a"]);
    place.wait_for_bytes(".forkhestra/runs/1/1-a/1/stdout.log");
    let reader = place.command(&["runs", "log", "-f"]).spawn().unwrap();
    assert_eq!(run.end_by("KILL").code, None);
    let seen = reader.wait_with_output().unwrap();
    assert_eq!(
        (seen.status.code(), String::from_utf8_lossy(&seen.stdout).as_ref()),
        (Some(0), "● a (run 1, 1 step)\n▶ 1.1 a\nx\n")
    );
    assert_eq!(place.run(&["runs", "log", "1", "1", "-f"]).code(0).stdout, "x\n");
}

/// The names of leftover processes are foreign text, which must not control the terminal.
#[test]
fn names_of_processes_cannot_drive_the_terminal() {
    let place = Place::new();
    let script = "cp /bin/sleep \"$TMPDIR/$(printf '\\033[2Jx')\"; setsid \"$TMPDIR/$(printf '\\033[2Jx')\" 100 >/dev/null 2>&1 &";
    place.agent("a", &format!("sh {script}\nsh sleep 0.2"));
    let ran = place.run(&["a"]);
    assert!(ran.code(0).stderr.contains("left running") && !ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
}

/// The last runs are the best estimate of the time and the cost of the next one.
#[test]
fn what_earlier_runs_of_a_chain_took_and_cost_is_told_before_the_next_one() {
    let place = Place::new();
    let result =
        r#"print {"type":"result","result":"done","is_error":false,"total_cost_usd":0.5,"usage":{"input_tokens":9}}"#;
    place.agent("claude", result);
    place.config(r#"{"agents": {"a": {"backend": "claude"}}, "chains": {"c": {"steps": [{"agent": "a"}]}}}"#);
    assert!(!place.run(&["--chain", "c", "--dry-run"]).code(0).stdout.contains("earlier"));
    place.run(&["--chain", "c"]).code(0);
    let shown = place.run(&["--chain", "c", "--dry-run"]);
    assert!(shown.code(0).stdout.contains("earlier      1 run: 0.0 s and $0.50\n"), "{}", shown.stdout);
    place.run(&["--chain", "c"]).code(0);
    let words = "earlier 2 runs: median 0.0 s and $0.50, at most 0.0 s and $0.50\n";
    assert!(place.run(&["show", "c"]).code(0).stdout.contains(words));
    let json: serde_json::Value = serde_json::from_str(&place.run(&["show", "c", "--json"]).code(0).stdout).unwrap();
    assert_eq!(json["earlier"]["costUsd"]["median"], 0.5);
}

#[test]
fn what_prune_forgets_is_in_no_file_any_more() {
    let place = Place::new();
    place.agent("a", "print x");
    place.run(&["-q", "a", "-p", "the word is hunter2"]).code(0);
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z'");
    place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(0);
    let left: Vec<_> = fs::read_dir(place.work(".forkhestra")).unwrap().flatten().collect();
    for file in left.iter().filter(|file| file.path().is_file()) {
        assert!(!String::from_utf8_lossy(&fs::read(file.path()).unwrap()).contains("hunter2"), "{file:?}");
    }
}

/// Their directory may belong to something else by now.
#[test]
fn prune_removes_nothing_through_a_link() {
    let place = Place::new();
    place.agent("a", "print x");
    place.run(&["-q", "a"]).code(0);
    place.sql("UPDATE runs SET ended = '2020-01-01T00:00:00Z'");
    fs::rename(place.work(".forkhestra/runs"), place.work("mine")).unwrap();
    std::os::unix::fs::symlink("../mine", place.work(".forkhestra/runs")).unwrap();
    let words = place.run(&["runs", "prune", "--older-than", "30d", "--yes"]).code(2).words();
    assert!(words.contains(".forkhestra/runs is a link") && place.work("mine/1").exists(), "{words}");
}

/// For example a snapshot, or an artifact of a CI job. Root may write anywhere, so the test then runs as another user.
#[test]
fn a_history_that_cannot_be_written_can_be_read() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    place.agent("a", "print hi").config(r#"{"chains": {}}"#);
    place.run(&["-q", "a"]).code(0);
    place.run(&["task", "add", "one"]).code(0);
    let all = format!("chmod -R a+rX '{0}' && chmod -R a-w '{0}/project'", place.path("").display());
    assert!(std::process::Command::new("/bin/sh").args(["-c", &all]).status().unwrap().success());
    for typed in [&["runs"][..], &["runs", "show", "1"], &["runs", "log", "1", "1"], &["task", "list"]] {
        let command = place.command(typed);
        let output = std::process::Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
            .arg(command.get_program())
            .args(typed)
            .current_dir(place.path("project"))
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{typed:?} {words}");
    }
}
