//! What a person sees on a terminal of its own.

use super::support::Place;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Child;

/// Opens a terminal: returns the side of the person, and the side of the program.
fn terminal() -> (File, OwnedFd) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(person), program.into())
}

/// Starts the program on a terminal; returns it with the person's side of the terminal.
fn start(place: &Place, chain: &str) -> (Child, File) {
    let (person, program) = terminal();
    let child = place.command(&[chain]).stdout(program.try_clone().unwrap()).stderr(program).spawn().unwrap();
    (child, person)
}

/// Returns everything that is printed until the program's side is closed.
fn read_all(mut person: File) -> String {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 65536]);
    // Linux returns EIO when the other side is closed.
    while let Ok(read @ 1..) = person.read(&mut piece) {
        bytes.extend_from_slice(&piece[..read]);
    }
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

#[test]
fn a_terminal_that_stands_still_slows_no_agent_and_misses_nothing() {
    let place = Place::new();
    let done = place.path("tmp/done");
    place.agent("a", &format!("sh seq 1 50000\ntouch {}\nmarker", done.display()));
    let (mut child, person) = start(&place, "a:1");
    // Nobody reads, and the agent ends although it prints far more than a terminal can buffer.
    place.wait_for(&done);
    let shown = read_all(person);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let numbers: Vec<u32> = shown.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers == (1..=50_000).collect::<Vec<_>>(), "{} lines", numbers.len());
    assert!(shown.contains("\x1b[32m✓ a:1: complete"), "colour on a terminal");
    place.assert_nothing_is_left();
}

/// The window is closed. `setsid` gives the program a controlling terminal that it can lose.
#[test]
fn a_terminal_that_is_closed_ends_the_run_in_order() {
    let place = Place::new();
    let up = place.path("tmp/up");
    place.agent("a", &format!("ignore HUP\nhang {}", up.display()));
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let program = assert_cmd::cargo::cargo_bin!("forkhestra");
    let (command, mut shell) = (place.command(&[]), std::process::Command::new("setsid"));
    shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // The leader of the session gets the SIGHUP when the terminal is gone.
    let line = format!("exec <>{name} >&0 2>&1; exec {} a", program.display());
    shell.args(["--wait", "sh", "-c", &line]).current_dir(place.path("project"));
    let mut session = shell.spawn().unwrap();
    place.wait_for(&up);
    drop(person);
    assert_eq!(session.wait().unwrap().code(), Some(129));
    assert_eq!(place.events(1).pop().unwrap()["event"]["outcome"]["signal"], "HUP");
    place.assert_nothing_is_left();
}

/// The terminal is restored, and an incomplete line of an agent is ended before ours begins.
#[test]
fn our_lines_begin_at_the_left_after_an_agents_half_line() {
    let place = Place::new();
    place.agent("a", "write half a line");
    let (mut child, person) = start(&place, "a");
    let shown = read_all(person);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(shown.contains("half a line\n\x1b[32m✓"), "{shown}");
}

#[test]
fn a_terminal_sees_every_line_of_standard_error() {
    let place = Place::new();
    place.agent("a", "sh seq 1 30000 >&2");
    let (mut child, person) = start(&place, "a");
    let shown = read_all(person);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let numbers: Vec<u32> = shown.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers == (1..=30_000).collect::<Vec<_>>(), "{} lines", numbers.len());
}

/// An agent has no terminal, whether in a loop or not, and never gets the user's input.
#[test]
fn an_agent_is_on_no_terminal_even_when_we_are() {
    for chain in ["a", "a:1"] {
        let place = Place::new();
        place.agent(
            "a",
            "sh for n in 0 1 2; do test -t $n && echo tty $n; done; (: < /dev/tty) 2>&1 | grep -c .\nmarker",
        );
        let (mut child, person) = start(&place, chain);
        let shown = read_all(person);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{shown}");
        assert!(!shown.contains("tty "), "{shown}");
        assert!(shown.contains("\n1\n"), "/dev/tty cannot be opened: {shown}");
    }
}
