//! Signals, and that nothing is left running after them.

use super::support::{Place, Running, send};

/// Makes an agent that reports that it is running, and then waits.
fn up(place: &Place, before: &str) -> std::path::PathBuf {
    let file = place.path("tmp/up");
    place.agent("a", &format!("print begun\n{before}\nhang {}", file.display()));
    file
}

fn started<'a>(place: &'a Place, before: &str, chain: &str) -> Running<'a> {
    let file = up(place, before);
    let running = place.start(&[chain]);
    place.wait_for(&file);
    running
}

#[test]
fn a_signal_ends_the_agent_and_the_run_with_its_exit_code_and_nothing_new_begins() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        for chain in ["a -> a", "a:5 -> a"] {
            let place = Place::new();
            let running = started(&place, "", chain);
            running.signal(signal);
            let ran = running.end();
            assert_eq!((ran.code, place.calls("a")), (Some(code), 1), "{}", ran.stderr);
            assert!(ran.stderr.contains(&format!("interrupted by SIG{signal}")), "{}", ran.stderr);
            let last = place.events(1).pop().unwrap();
            assert_eq!(last["event"]["outcome"], serde_json::json!({"type": "interrupted", "signal": signal}));
        }
    }
}

#[test]
fn an_agent_that_ignores_every_signal_is_killed_after_the_grace_time() {
    let mut place = Place::new();
    // On a busy machine, the usual one may pass before the first signal is told.
    place.set("FORKHESTRA_TEST_GRACE_MS", "3000");
    let running = started(&place, "ignore INT\nignore TERM\nignore HUP", "a");
    running.signal("INT");
    let ran = running.end();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    insta::assert_snapshot!(ran.stderr);
}

/// A signal to our whole process group reaches the agent once, through us. Our parent is in another group and survives.
#[test]
fn a_signal_to_our_group_reaches_the_agent_once() {
    let place = Place::new();
    let running = started(&place, "", "a");
    send("INT", &format!("-{}", running.child.id()));
    let ran = running.end();
    assert_eq!(ran.code(130).stderr.matches("SIGINT received").count(), 1, "{}", ran.stderr);
}

/// The grace time is an hour, so only the second signal can end this.
#[test]
fn a_second_ctrl_c_kills_at_once() {
    let mut place = Place::new();
    place.set("FORKHESTRA_TEST_GRACE_MS", "3600000");
    let running = started(&place, "ignore INT\nignore TERM", "a");
    running.signal("INT");
    // The first signal must have been received, or the two would merge into one.
    let said = place.work(".forkhestra/state.db-wal");
    place.wait_for(&said);
    while !place.events(1).iter().any(|event| event["event"]["type"] == "runStopping") {
        std::thread::yield_now();
    }
    running.signal("INT");
    assert_eq!(running.end().code, Some(130));
}

/// The agent's children die with it, inside and outside of its process group.
#[test]
fn the_whole_tree_dies_with_the_agent() {
    let place = Place::new();
    let (child, daemon) = (place.path("tmp/child"), place.path("tmp/daemon"));
    let before = format!("child {}\ndaemon {}\nwait-for {}", child.display(), daemon.display(), child.display());
    let running = started(&place, &before, "a");
    assert!(place.processes().len() >= 5, "{:?}", place.processes());
    running.signal("TERM");
    assert_eq!(running.end().code, Some(143));
}

/// A signal that arrives while the agent is being started.
#[test]
fn a_signal_at_any_instant_leaves_nothing_behind() {
    for delay in 0..20 {
        let place = Place::new();
        place.agent("a", "print x");
        let running = place.start(&["a:1000", "--limit", "stalledAfter=1000"]);
        std::thread::sleep(std::time::Duration::from_millis(delay * 3));
        running.signal("TERM");
        let ran = running.end();
        // Before our handlers are installed, the default action of the signal terminates us.
        assert!(matches!(ran.code, Some(143) | None), "{}", ran.all());
    }
}

/// A signal that is ignored when we start stays ignored (nohup).
#[test]
fn under_nohup_a_hangup_is_ignored_and_the_agent_goes_on() {
    let place = Place::new();
    let go = place.path("tmp/go");
    let up = place.path("tmp/up");
    place.agent("a", &format!("touch {}\nwait-for {}\nprint survived", up.display(), go.display()));
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    let command = place.command(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(format!("trap '' HUP; exec {} a", program.display()));
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(place.path("project")).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let child = shell.spawn().unwrap();
    place.wait_for(&up);
    send("HUP", &child.id().to_string());
    std::fs::write(go, "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"survived\n".as_slice()));
}

/// A stuck reader must not prevent the run from ending.
#[test]
fn a_reader_that_never_reads_does_not_make_the_run_unstoppable() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("touch {}\nflood 5000000\nhang", up.display()));
    let mut running = place.start(&["a"]);
    let stuck = running.child.stdout.take().unwrap();
    place.wait_for(&up);
    running.signal("INT");
    let ran = running.end();
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("SIGINT received"), "our words do not wait for a stuck reader: {}", ran.stderr);
    drop(stuck);
}

/// Returns the state of a process, as in /proc/PID/stat: R, S, T, …
fn state(pid: &str) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("gone").to_string()
}

pub(crate) fn wait_for_state(pids: &[&str], wanted: &str) {
    let begun = std::time::Instant::now();
    loop {
        let states: Vec<String> = pids.iter().map(|pid| state(pid)).collect();
        if states.iter().all(|state| state == wanted) {
            return;
        }
        assert!(begun.elapsed() < super::support::LONG, "{states:?}");
        std::thread::yield_now();
    }
}

/// The whole tree and all timers are stopped, and then continue.
#[test]
fn a_pause_stops_the_tree_and_every_timer_and_all_go_on_after_it() {
    let place = Place::new();
    let (daemon, go) = (place.path("tmp/daemon"), place.path("tmp/go"));
    place.agent("a", &format!("daemon {}\nwait-for {}\nmarker", daemon.display(), go.display()));
    let running = place.start(&["a:1", "--timeout", "3s", "--idle-timeout", "3s", "--limit", "time=3s"]);
    place.wait_for(&daemon);
    let agent = loop {
        let started = place.events(1).into_iter().find(|event| event["event"]["type"] == "attemptStarted");
        if let Some(started) = started {
            break started["event"]["pid"].to_string();
        }
    };
    // The file exists a moment before its content.
    let daemon = loop {
        let pid = std::fs::read_to_string(&daemon).unwrap();
        if !pid.is_empty() {
            break pid;
        }
    };
    let us = running.child.id().to_string();
    running.signal("TSTP");
    wait_for_state(&[&us, &agent, &daemon], "T");
    // Longer than any of its timeouts.
    std::thread::sleep(std::time::Duration::from_secs(4));
    running.signal("CONT");
    while [&us, &agent, &daemon].iter().any(|pid| state(pid) == "T") {
        std::thread::yield_now();
    }
    std::fs::write(go, "").unwrap();
    let ran = running.end();
    assert!(ran.code(0).stderr.contains("paused: the agent and all timers are stopped"), "{}", ran.stderr);
    let news = ran.stderr.contains("was stopped by signal") || ran.stderr.contains("a continues");
    assert!(!news, "our own stop is no news: {}", ran.stderr);
}

/// A script may continue us before we have stopped.
#[test]
fn a_sigcont_that_follows_a_sigtstp_at_once_is_never_lost() {
    for wait in 0..20 {
        let place = Place::new();
        place.agent("a", "flood 300000\nmarker");
        let running = place.start(&["a:1"]);
        let pairs = format!(
            "sleep 0.0{wait:02}; for i in $(seq 200); do kill -TSTP {0}; kill -CONT {0}; done",
            running.child.id()
        );
        let mut shell = std::process::Command::new("/bin/sh");
        let mut shell = shell.args(["-c", &pairs]).stderr(std::process::Stdio::null()).spawn().unwrap();
        assert_eq!(running.end().code, Some(0));
        shell.wait().unwrap();
    }
}

#[test]
fn a_stopped_run_can_be_ended_and_a_killed_one_leaves_no_stopped_agent() {
    for (signal, code) in [("TERM", Some(143)), ("KILL", None)] {
        let place = Place::new();
        let running = started(&place, "", "a");
        running.signal("TSTP");
        wait_for_state(&[&running.child.id().to_string()], "T");
        running.signal(signal).signal("CONT");
        assert_eq!(running.end().code, code);
    }
}

/// forkhestra does not silently wait for an agent that was stopped.
#[test]
fn an_agent_that_was_stopped_is_named_and_ended_by_its_idle_timeout() {
    let place = Place::new();
    place.agent("a", "sh kill -STOP $PPID; sleep 1000");
    let ran = place.run(&["a", "--idle-timeout", "400ms"]);
    assert!(ran.code(1).stderr.contains("a was stopped by signal 19; kill -CONT"), "{}", ran.stderr);
}

/// A check that a person runs by hand gets the Ctrl-C. It ends with us, with all that it started, however we end.
#[test]
fn a_check_by_hand_is_ended_with_its_whole_tree_by_every_signal() {
    for (signal, code) in [("INT", Some(130)), ("TERM", Some(143)), ("HUP", Some(129)), ("KILL", None)] {
        for verb in ["diagnose", "verify"] {
            let place = Place::new();
            let run = "setsid sh -c 'trap : INT TERM; sleep 1000' & echo up > up; sleep 1000";
            let config =
                serde_json::json!({ "checks": { "test": { "run": run }, "diagnose": { "run": run } }, "chains": {} });
            place.config(&config.to_string());
            let running = place.start(&[verb]);
            place.wait_for(&place.work("up"));
            running.signal(signal);
            assert_eq!(running.end().code, code, "{verb} {signal}");
        }
    }
}

#[test]
fn a_daemon_of_a_check_by_hand_does_not_outlive_it() {
    let place = Place::new();
    place.config(r#"{"checks": {"diagnose": {"run": "setsid sleep 1000 & echo fine"}}, "chains": {}}"#);
    assert!(place.run(&["diagnose"]).code(0).stdout.contains("fine"));
}

#[test]
fn a_hook_dies_with_us_when_we_are_killed() {
    let place = Place::new();
    place.agent("a", "print x");
    place.config(r#"{"hooks": {"onFinish": "cat > told; sleep 1000"}, "chains": {}}"#);
    let running = place.start(&["a"]);
    place.wait_for_bytes("told");
    running.signal("KILL");
    assert_eq!(running.end().code, None);
    assert!(place.read("told").contains("\"state\""));
}

/// nohup(1): a signal that was ignored when we were started stays ignored, also while a check runs by hand.
#[test]
fn a_check_by_hand_under_nohup_does_not_end_by_sighup() {
    let place = Place::new();
    place.config(
        r#"{"checks": {"diagnose": {"run": "echo up > up; while [ ! -e go ]; do sleep 0.01; done"}}, "chains": {}}"#,
    );
    let program = assert_cmd::cargo::cargo_bin!("forkhestra").display().to_string();
    let command = place.command(&[]);
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", &format!("trap '' HUP; exec '{program}' diagnose")])
        .current_dir(place.path("project"))
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let running = Running::of(shell.spawn().unwrap(), &place);
    place.wait_for(&place.work("up"));
    running.signal("HUP");
    place.write("go", "");
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn a_check_by_hand_that_stops_its_lifeline_still_hears_a_signal() {
    let place = Place::new();
    place.config(r#"{"checks": {"diagnose": {"run": "kill -STOP $PPID; echo up > up; sleep 1000"}}, "chains": {}}"#);
    let running = place.start(&["diagnose"]);
    place.wait_for(&place.work("up"));
    running.signal("INT");
    assert_eq!(running.end().code, Some(130));
}

#[test]
fn a_hook_that_cannot_be_started_is_named_as_such() {
    let place = Place::new();
    place
        .agent("a", "sh rm hook")
        .config(r#"{"hooks": {"onFinish": ["./hook"]}, "chains": {}}"#)
        .write("hook", "#!/bin/sh\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.work("hook"), executable).unwrap();
    let words = place.run(&["a"]).code(0).words();
    assert!(words.contains("could not be started"), "{words}");
}
