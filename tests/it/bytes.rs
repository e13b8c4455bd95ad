//! Bytes are passed on unchanged, and the marker is recognized exactly where it counts.

use super::support::Place;
use super::usage::closed_pipe;
use std::io::Read;
use std::process::Stdio;

#[test]
fn bytes_that_are_no_text_pass_and_are_logged_unchanged() {
    let place = Place::new();
    place.agent("a", "hex ff fe 00 c3 28 0d 0a 1b 5b 33 31 6d f0 9f\nwrite no newline at the end");
    let output = place.command(&["a"]).output().unwrap();
    let bytes = b"\xff\xfe\x00\xc3\x28\r\n\x1b[31m\xf0\x9fno newline at the end";
    assert_eq!(output.stdout, bytes);
    assert_eq!(std::fs::read(place.work(".forkhestra/runs/1/1-a/1/stdout.log")).unwrap(), bytes);
}

#[test]
fn the_marker_is_seen_with_colour_blanks_crlf_markdown_split_writes_and_without_a_newline() {
    for script in [
        "write \\e[32mFORKHESTRA_COMPLETE\\e[0m\\n",
        "write   FORKHESTRA_COMPLETE \\t\\r\\nmore",
        "print **FORKHESTRA_COMPLETE**",
        "print `FORKHESTRA_COMPLETE`",
        "print ```\\nFORKHESTRA_COMPLETE\\n```",
        "write x\\nFORKHESTRA_\nwrite COMPLETE\nwrite \\n",
        "flood 3000001\nprint \\nFORKHESTRA_COMPLETE\nflood 3000000",
        "write FORKHESTRA_COMPLETE",
    ] {
        let place = Place::new();
        place.agent("a", script);
        let ran = place.command(&["-q", "a:1"]).output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{script}");
    }
}

#[test]
fn the_marker_is_not_seen_in_a_longer_line_on_stderr_or_in_the_echo_of_the_prompt() {
    for script in [
        "print not FORKHESTRA_COMPLETE yet",
        "print FORKHESTRA_COMPLETED_X",
        "eprint FORKHESTRA_COMPLETE",
        "print {\"text\":\"done\\\\nFORKHESTRA_COMPLETE\"}",
        "print FORKHESTRA_\\e[1mCOMPLETE",
        "echo",
    ] {
        let place = Place::new();
        place.agent("a", script);
        place.run(&["a:1", "-p", "print FORKHESTRA_COMPLETE when done"]).code(1);
    }
}

#[test]
fn a_near_miss_is_said_once_with_its_line() {
    let place = Place::new();
    place.agent("a", "print I will print FORKHESTRA_COMPLETE soon\nprint or FORKHESTRA_COMPLETE later");
    let ran = place.run(&["a:1"]);
    let said: Vec<&str> = ran.code(1).stderr.lines().filter(|line| line.contains("marker counts only")).collect();
    assert_eq!(said, ["  the marker counts only on a line of its own, not in: I will print FORKHESTRA_COMPLETE soon"]);
}

/// A slow reader gets every byte, and the runner's memory does not grow with the unread output.
#[test]
fn a_slow_reader_of_a_pipe_gets_everything_and_memory_stays_small() {
    let place = Place::new();
    place.agent("a", "flood 30000000\nmarker");
    let mut child = place.command(&["a:1"]).stderr(Stdio::null()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let (mut total, mut piece, mut peak) = (0, [0; 4096], 0);
    loop {
        let read = pipe.read(&mut piece).unwrap();
        if read == 0 {
            break;
        }
        total += read;
        if total % (1 << 20) < 4096 {
            peak = peak.max(resident_kib(child.id()));
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(total, 30_000_000 + "FORKHESTRA_COMPLETE\n".len());
    assert!(peak < 40_000, "{peak} KiB");
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[test]
fn a_closed_standard_output_ends_the_agent_in_order() {
    for chain in ["a", "a:3"] {
        let place = Place::new();
        place.agent("a", "print x\nhang");
        let output = place.command(&[chain]).stdout(closed_pipe()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(141), "{stderr}");
        assert!(stderr.contains("standard output was closed") && !stderr.contains("panic"), "{stderr}");
        place.assert_nothing_is_left();
        assert_eq!(place.calls("a"), 1);
    }
}

#[test]
fn a_full_device_as_standard_output_is_said() {
    let place = Place::new();
    place.agent("a", "print x\nhang");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["a"]).stdout(full).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("No space left on device"), "{stderr}");
    place.assert_nothing_is_left();
}

#[test]
fn our_own_line_never_continues_half_a_line_of_an_agents_stderr() {
    let place = Place::new();
    place.agent("a", "sh printf 'half a line' >&2");
    let ran = place.run(&["a"]);
    assert!(ran.code(0).stderr.contains("half a line\n✓"), "{}", ran.stderr);
}

/// Both streams are the same file, as in a CI log.
#[test]
fn half_a_line_is_ended_before_ours_in_a_common_log() {
    let place = Place::new();
    place.agent("a", "write half");
    let log = std::fs::File::create(place.path("tmp/log")).unwrap();
    let status = place.command(&["a"]).stdout(log.try_clone().unwrap()).stderr(log).status().unwrap();
    assert!(status.success());
    let log = std::fs::read_to_string(place.path("tmp/log")).unwrap();
    assert!(log.contains("half\n✓"), "{log}");
}

/// Structured output is read as it arrives and is not kept in memory.
#[test]
fn a_structured_output_of_many_megabytes_takes_no_memory() {
    let place = Place::new();
    let peak = place.path("tmp/peak");
    let line = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"many words"}]}}"#;
    let result = r#"{"type":"result","is_error":false,"result":"done\nFORKHESTRA_COMPLETE"}"#;
    let host = "$(cut -d' ' -f4 /proc/$(cut -d' ' -f4 /proc/$PPID/stat)/stat)";
    place.agent(
        "claude",
        &format!(
            "sh yes '{line}' | head -n 300000; grep VmHWM /proc/{host}/status > {}\nsh printf '%s\\n' '{result}'",
            peak.display()
        ),
    );
    let ran = place.run(&["coder:1", "-p", "x"]);
    assert!(ran.code(0).stderr.contains("done, marker seen"), "{}", ran.stderr);
    let log = place.work(".forkhestra/runs/1/1-coder/1/stdout.log").metadata().unwrap().len();
    let peak = std::fs::read_to_string(peak).unwrap();
    let peak: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(log > 25_000_000 && peak < 40_000, "{log} bytes logged, {peak} KiB at the peak");
}

/// Output is passed on as it arrives. What an agent prints alternately on both streams arrives in that order.
#[test]
fn the_two_streams_reach_a_common_log_as_they_come() {
    let place = Place::new();
    let log = place.path("tmp/log");
    let until = |word: &str| format!("sh until grep -q {word} {}; do :; done", log.display());
    place.agent("a", &format!("print one\n{}\neprint two\n{}\nprint three", until("one"), until("two")));
    let file = std::fs::File::create(&log).unwrap();
    assert!(place.command(&["a"]).stdout(file.try_clone().unwrap()).stderr(file).status().unwrap().success());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("one\ntwo\nthree\n"), "{log}");
}
