//! `--detach`: runs in the background.

use super::support::{Place, Running};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn worker() -> (Place, PathBuf, PathBuf) {
    let mut place = Place::new();
    place.set("NO_COLOR", "1");
    let (up, go) = (place.path("tmp/up"), place.path("tmp/go"));
    place.agent("worker", &format!("print hello\ntouch {}\nwait-for {}\nmarker", up.display(), go.display()));
    (place, up, go)
}

/// Starts `attach`, and waits until it has found the run.
fn attach(place: &Place) -> Running<'_> {
    let mut attached = place.start(&["attach"]);
    let mut line = String::new();
    BufReader::new(attached.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "attached to run 1; Ctrl-C detaches, and the run continues\n");
    attached
}

#[test]
fn detach_returns_at_once_with_the_number_of_a_run_that_goes_on() {
    let (place, up, go) = worker();
    let (code, text) = place.beside(&["run", "--detach", "worker:3"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("run 1 is running in the background\n  to follow it: forkhestra attach\n"), "{text}");
    place.wait_for(&up);
    assert!(place.beside(&["status"]).1.contains("● run 1 worker:3"));
    let attached = attach(&place);
    std::fs::write(&go, "").unwrap();
    let attached = attached.end();
    assert!(attached.code(0).stdout.contains("✓ worker:3: complete"), "{}", attached.stdout);
    let log = text.lines().find_map(|line| line.strip_prefix("  its console output: ")).unwrap();
    let log = log.replace("$PLACE", place.path("").to_str().unwrap().trim_end_matches('/'));
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("✓ worker:3: complete") && !log.contains("hello"), "{log}");
}

#[test]
fn detach_leads_a_session_of_its_own_and_stop_ends_it() {
    let (place, up, _) = worker();
    assert_eq!(place.beside(&["run", "--detach", "worker:3"]).0, Some(0));
    place.wait_for(&up);
    let lock = std::fs::read_to_string(place.work(".forkhestra/lock")).unwrap();
    let pid: i32 = lock.split("process ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    // proc(5): the fields after the name are state, parent, process group, session, terminal.
    assert_eq!((fields[2], fields[3], fields[4]), (&*pid.to_string(), &*pid.to_string(), "0"));
    assert!(place.beside(&["stop"]).1.starts_with("run 1 has ended"));
    place.assert_nothing_is_left();
}

#[test]
fn detach_reports_what_is_refused_with_its_exit_code() {
    let (place, _, _) = worker();
    let refused = place.run(&["run", "--detach", "nobody:3"]);
    assert!(refused.code(2).words().contains("nobody"), "{}", refused.stderr);
    for option in ["--dry-run", "--json"] {
        let refused = place.run(&["run", "--detach", option, "worker:3"]);
        assert!(refused.code(2).words().contains("`--detach` cannot be combined with"), "{}", refused.stderr);
    }
    let refused = place.run(&["run", "--detach", "--events", "ndjson", "worker:3"]);
    assert!(refused.code(2).words().contains("write them to a file: --events ndjson=FILE"), "{}", refused.stderr);
    assert!(place.run(&["runs"]).code(0).stdout.contains("no runs"));
}

#[test]
fn detach_reads_a_prompt_from_standard_input_before_it_returns() {
    let (place, up, go) = worker();
    let mut start = place.command(&["run", "--detach", "worker:3", "-p", "-"]);
    let mut start = start.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut start.stdin.take().unwrap(), b"Do it").unwrap();
    assert_eq!(start.wait().unwrap().code(), Some(0));
    place.wait_for(&up);
    std::fs::write(&go, "").unwrap();
    place.wait_for(&place.work(".forkhestra/runs/1/1-worker/1/prompt.md"));
    assert!(place.call("worker", 1).contains("Do it"));
}

#[test]
fn detach_with_wait_says_that_it_waits() {
    let (place, up, go) = worker();
    let first = place.start(&["-q", "worker:3"]);
    place.wait_for(&up);
    let (code, text) = place.beside(&["run", "--detach", "--wait", "worker:3"]);
    assert!(code == Some(0) && text.contains("waiting for another run here: worker:3"), "{text}");
    assert!(text.contains(" is waiting in the background\n  to stop it: kill "), "{text}");
    std::fs::write(&go, "").unwrap();
    first.end().code(0);
    assert_eq!(place.run(&["runs"]).code(0).stdout.lines().count(), 3);
}

#[test]
fn ctrl_c_before_the_run_has_begun_ends_the_process_in_the_background_too() {
    let (place, _, _) = worker();
    let mut start = place.command(&["run", "--detach", "worker:3", "-p", "-"]);
    // The prompt never ends.
    let mut start = start.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let _prompt = start.stdin.take();
    while !place.processes().iter().any(|process| process.contains("__detached")) {
        std::thread::yield_now();
    }
    let ended = Running::of(start, &place).end_by("INT");
    let words = "SIGINT received: the process in the background has ended, too\n";
    assert!(ended.code(130).stderr.ends_with(words), "{}", ended.stderr);
}

#[test]
fn an_agent_cannot_start_a_run_in_the_background() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    place.agent("a", &format!("sh {} run --detach a 2>&1\nmarker", program.display()));
    let ran = place.run(&["a"]);
    assert!(ran.code(0).stdout.contains("an agent cannot start a run in the background"), "{}", ran.stdout);
}

#[test]
fn task_run_detach_works_on_a_whole_queue() {
    let (place, up, go) = worker();
    place.config(r#"{"chains": {"task": {"steps": [{"agent": "worker", "iterations": 2}]}}}"#);
    for title in ["A", "B"] {
        place.run(&["task", "add", title]).code(0);
    }
    let (code, text) = place.beside(&["task", "run", "--all", "--detach"]);
    assert!(code == Some(0) && text.contains("run 1 is running in the background"), "{text}");
    place.wait_for(&up);
    let attached = attach(&place);
    std::fs::write(&go, "").unwrap();
    let attached = attached.end();
    let shown = &attached.code(0).stdout;
    assert!(shown.contains("forkhestra report 1") && shown.contains("forkhestra report 2"), "{shown}");
}
