//! When a run starts, and that the machine stays awake during the run.

use crate::support::{LONG, Place, is_dead};
use std::time::Instant;

#[test]
fn a_start_that_is_past_or_no_time_is_refused_before_anything_runs() {
    let place = Place::new();
    place.agent("a", "");
    let words = place.run(&["a", "--start-at", "2020-01-01T02:00"]).code(2).words();
    assert!(words.contains("`2020-01-01T02:00` is in the past"), "{words}");
    let words = place.run(&["a", "--start-at", "soon", "--dry-run"]).code(2).words();
    assert!(words.contains("`soon` is not a time"), "{words}");
    assert_eq!(place.calls("a"), 0);
}

/// What would be refused at 2 a.m. is refused now.
#[test]
fn a_later_start_is_checked_now_and_waited_for_until_somebody_ends_the_waiting() {
    let place = Place::new();
    place.agent("a", "");
    place.run(&["a -> nobody", "--start-at", "2099-01-01T02:00"]).code(2);
    let log = place.path("tmp/log");
    let mut command = place.command(&["a", "--start-at", "2099-01-01T02:00"]);
    let child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let begun = Instant::now();
    while !std::fs::read_to_string(&log).unwrap().contains("starts at 2099-01-01 02:00") {
        assert!(begun.elapsed() < LONG);
        std::thread::yield_now();
    }
    // The message is printed before the signal handler is installed.
    let running = crate::support::Running::of(child, &place);
    while !listens(running.child.id(), rustix::process::Signal::INT) {
        assert!(begun.elapsed() < LONG);
        std::thread::yield_now();
    }
    running.signal("INT");
    running.end().code(130);
    assert_eq!(place.calls("a"), 0);
    assert!(!place.work(".forkhestra").exists());
}

/// Returns whether a process has a handler for the signal (proc(5), `SigCgt`). Handlers are registered one by one.
fn listens(pid: u32, signal: rustix::process::Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}

#[test]
fn a_later_start_begins_when_its_time_has_come() {
    let place = Place::new();
    place.agent("a", "print here");
    let second =
        std::process::Command::new("date").args(["-u", "-d", "+2 seconds", "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    let ran = place.run(&["a", "--start-at", String::from_utf8(second.stdout).unwrap().trim()]);
    assert_eq!(ran.code(0).stdout, "here\n");
}

/// The lock is held during the run, and is released however we end.
#[test]
fn the_machine_is_kept_awake_during_a_run_unless_keep_awake_is_off() {
    let place = Place::new();
    let (held, up) = (place.path("tmp/held"), place.path("tmp/up"));
    let inhibit = format!("#!/bin/sh\necho \"$@\" >> {0}\ncat\necho released >> {0}\n", held.display());
    std::fs::write(place.path("bin/systemd-inhibit"), inhibit).unwrap();
    std::fs::set_permissions(place.path("bin/systemd-inhibit"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    place.agent("a", &format!("hang {}", up.display()));
    let running = place.start(&["a"]);
    place.wait_for(&up);
    let told = || std::fs::read_to_string(&held).unwrap_or_default();
    let begun = Instant::now();
    while !told().contains("--what=idle:sleep --who=forkhestra --mode=block --why=run 1 of a cat") {
        assert!(begun.elapsed() < LONG, "{}", told());
        std::thread::yield_now();
    }
    assert!(!told().contains("released"));
    assert_eq!(running.end_by("KILL").code, None);
    while !told().contains("released") {
        assert!(begun.elapsed() < LONG, "{}", told());
        std::thread::yield_now();
    }
    std::fs::remove_file(&held).unwrap();
    place.agent("a", "").config(r#"{"keepAwake": false, "agents": {}, "chains": {}}"#);
    place.run(&["a"]).code(0);
    assert_eq!(told(), "");
}

/// Standard input is read once, whenever the run starts.
#[test]
fn a_prompt_from_standard_input_reaches_an_agent_that_starts_later() {
    let place = Place::new();
    place.agent("a", "");
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"Do the work.").unwrap();
    drop(writer);
    let second =
        std::process::Command::new("date").args(["-u", "-d", "+2 seconds", "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
    let at = String::from_utf8(second.stdout).unwrap();
    let mut command = place.command(&["a", "--prompt-file", "-", "--start-at", at.trim()]);
    let answer = command.stdin(reader.try_clone().unwrap()).output().unwrap();
    assert_eq!(answer.status.code(), Some(0), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(place.call("a", 1).contains("arg Do the work.\n"), "{}", place.call("a", 1));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut reader, &mut rest).unwrap();
    assert_eq!(rest, "");
}

/// A process that waits for another run can be interrupted, whatever ran before.
#[test]
fn a_wait_for_another_run_ends_with_a_signal() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("hang {}", up.display())).agent("b", "");
    let first = place.start(&["a"]);
    place.wait_for(&up);
    let second = place.start(&["b", "--wait"]);
    let begun = Instant::now();
    while !listens(second.child.id(), rustix::process::Signal::TERM) {
        assert!(begun.elapsed() < LONG);
        std::thread::yield_now();
    }
    second.signal("TERM");
    place.until(|| is_dead(&second.child.id().to_string()));
    first.signal("INT");
    first.end().code(130);
    second.end().code(143);
    assert_eq!(place.calls("b"), 0);
}
