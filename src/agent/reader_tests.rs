//! Tests that read what the real programs have printed (tests/captures).

use super::*;
use crate::agent::{ErrorClass, LimitEnd};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Returns every capture with its name and its format, which follows from the first word of the name.
fn captures() -> Vec<(String, Format, Vec<u8>)> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures"));
    #[expect(clippy::disallowed_methods, reason = "a test")]
    let (entries, read) = (std::fs::read_dir(folder).unwrap(), |path: PathBuf| std::fs::read(path).unwrap());
    let capture = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let format = match name.split('-').next().unwrap() {
            "claude" | "qwen" => Format::ClaudeStream,
            "codex" => Format::CodexJson,
            "gemini" => Format::GeminiStream,
            "opencode" => Format::OpencodeJson,
            "pi" => Format::PiJson,
            "copilot" => Format::CopilotJson,
            other => panic!("no format for {other}"),
        };
        (name, format, read(path))
    };
    let mut captures: Vec<_> = entries.map(|entry| capture(entry.unwrap().path())).collect();
    captures.sort_by(|one, other| one.0.cmp(&other.0));
    captures
}

fn read<'a>(format: Format, chunks: impl IntoIterator<Item = &'a [u8]>) -> (String, Report) {
    let (mut reader, mut shown) = (Reader::new(format, None).unwrap(), String::new());
    for chunk in chunks {
        reader.feed(chunk, &mut |text| shown.push_str(text));
    }
    let report = reader.finish(&mut |text| shown.push_str(text));
    (shown, report)
}

fn told(shown: &str, report: &Report) -> String {
    let mut text = format!("{shown}\n---\n");
    let _ = writeln!(text, "final   {:?}", report.final_message);
    let _ = writeln!(text, "session {}", report.session.as_deref().unwrap_or("-"));
    let usage = report.usage.map(|usage| {
        let Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd } = usage;
        format!(
            "in {input_tokens} out {output_tokens} read {cache_read_tokens} write {cache_write_tokens} {cost_usd:?}"
        )
    });
    let _ = writeln!(text, "usage   {}", usage.unwrap_or_else(|| "-".into()));
    let _ = writeln!(text, "denied  {:?}", report.denials);
    let _ = writeln!(text, "error   {:?}", report.error);
    let _ = writeln!(text, "limit   {:?}", report.usage_limit);
    text
}

#[test]
fn every_capture_is_read_as_it_was_meant() {
    for (name, format, bytes) in captures() {
        let (shown, report) = read(format, [&bytes[..]]);
        insta::assert_snapshot!(name, told(&shown, &report));
    }
}

#[test]
fn a_capture_cut_anywhere_or_fed_byte_by_byte_reads_the_same() {
    for (name, format, bytes) in captures() {
        let whole = read(format, [&bytes[..]]);
        assert!(read(format, bytes.chunks(1)) == whole, "{name}, byte by byte");
        // At every byte of a short capture.
        let stride = 1 + bytes.len() / 1_500;
        for cut in (0..bytes.len()).step_by(stride) {
            let (head, tail) = bytes.split_at(cut);
            assert!(read(format, [head, tail]) == whole, "{name}, cut at {cut}");
            // A stream that ends there is read without a panic.
            let _ = read(format, [head]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_capture_in_random_chunks_reads_the_same(pick in any::<proptest::sample::Index>(), cuts in proptest::collection::vec(any::<u16>(), 0..30)) {
        thread_local!(static CAPTURES: Vec<(String, Format, Vec<u8>)> = captures());
        CAPTURES.with(|captures| {
            let (_, format, bytes) = pick.get(captures);
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(read(*format, chunks), read(*format, [&bytes[..]]));
            Ok(())
        })?;
    }

    #[test]
    fn broken_lines_of_every_format_are_shown_and_fail_nothing(pick in 1..7_usize, lines in proptest::collection::vec("\\PC{0,40}|\\{\"type\":\"(result|error|text|message|item.completed|assistant)\"[^\n]{0,30}\\}", 0..6)) {
        let format = Format::NAMES[pick].1;
        let _ = read(format, [lines.join("\n").as_bytes()]);
    }
}

/// A truncated stream has no final message, so a marker in earlier text does not end the loop.
#[test]
fn a_stream_that_was_cut_off_has_no_final_message() {
    for (name, format, bytes) in captures().into_iter().filter(|(name, ..)| name.ends_with("stream.jsonl")) {
        // Gemini can lose its last lines even without a truncation.
        if format == Format::GeminiStream {
            continue;
        }
        let last = bytes.trim_ascii_end().iter().rposition(|byte| *byte == b'\n').unwrap();
        let (_, report) = read(format, [&bytes[..last / 2]]);
        assert_eq!(report.final_message, None, "{name}");
    }
}

/// Messages of a subagent, and a message in several lines: no capture has either.
#[test]
fn a_sub_agent_is_not_shown_and_a_message_in_two_lines_is_counted_once() {
    const STREAM: &str = r#"{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m1","content":[{"type":"text","text":"one"}],"usage":{"input_tokens":10,"output_tokens":1}}}
{"type":"assistant","parent_tool_use_id":null,"message":{"id":"m1","content":[{"type":"tool_use","name":"Task","input":{"prompt":"two\nlines"}}],"usage":{"input_tokens":10,"output_tokens":3}}}
{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m2","content":[{"type":"text","text":"FORKHESTRA_COMPLETE"}],"usage":{"input_tokens":7,"output_tokens":2}}}
"#;
    let (shown, report) = read(Format::ClaudeStream, [STREAM.as_bytes()]);
    assert_eq!(shown, "one\n[Task] two …\n");
    let usage = report.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (17, 5));
}

#[test]
fn a_limit_that_names_its_end_is_read() {
    let line = br#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1753980000}}
{"type":"result","is_error":true,"result":"You've hit your limit","api_error_status":429}"#;
    let (_, report) = read(Format::ClaudeStream, [&line[..]]);
    assert_eq!(report.usage_limit.unwrap().end, Some(LimitEnd::At(1_753_980_000)));
    let line =
        br#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again in 2 hours 5 minutes."}}"#;
    let (_, report) = read(Format::CodexJson, [&line[..]]);
    assert_eq!(report.usage_limit.unwrap().end, Some(LimitEnd::In(Duration::from_mins(125))));
    assert_eq!(report.error.unwrap().0, ErrorClass::UsageLimit);
}

#[test]
fn half_a_character_and_bytes_that_are_no_text_lose_no_final_message() {
    let line = |middle: &[u8]| {
        [&b"{\"type\":\"result\",\"result\":\"done "[..], middle, b"\\nFORKHESTRA_COMPLETE\"}"].concat()
    };
    for (middle, expected) in [
        (&b"\\ud83d"[..], "done \u{fffd}\nFORKHESTRA_COMPLETE"),
        (b"\\udc00 x", "done \u{fffd} x\nFORKHESTRA_COMPLETE"),
        (b"\\ud83d\\ude80", "done 🚀\nFORKHESTRA_COMPLETE"),
        (b"\xff", "done \u{fffd}\nFORKHESTRA_COMPLETE"),
        (b"\\\\ud83d", "done \\ud83d\nFORKHESTRA_COMPLETE"),
    ] {
        let (_, report) = read(Format::ClaudeStream, [&line(middle)[..]]);
        assert_eq!(report.final_message.as_deref(), Some(expected));
    }
    let marked = [&b"\xef\xbb\xbf"[..], &line(b"")].concat();
    assert!(read(Format::ClaudeStream, [&marked[..]]).1.final_message.is_some());
}
