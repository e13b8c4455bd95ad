//! go build, go vet, go test, gofmt, and panics of Go programs.

use super::page::{Location, Page, failure, indent};
use std::borrow::Cow;
use std::ops::Range;

/// Returns the text of `go test -json`; none for any other output.
pub(super) fn decoded(output: &str) -> Option<String> {
    if !output.lines().any(|line| line.starts_with("{\"Time\":") && line.contains("\"Action\":")) {
        return None;
    }
    let line = |line| match serde_json::from_str::<serde_json::Value>(line) {
        Ok(event) if event["Action"].is_string() => {
            event["Output"].as_str().map(|text| Cow::Owned(text.trim_end().to_string())).unwrap_or_default()
        }
        _ => Cow::Borrowed(line),
    };
    Some(output.lines().map(line).collect::<Vec<_>>().join("\n"))
}

/// Parses the place and the message of `a_test.go:7: message` or `a.go:3:9: message`.
fn placed(line: &str) -> Option<(Location, &str)> {
    let captures = regex!(r"^\s*(?:vet: )?([^\s:]+\.go):(\d+)(?::(\d+))?:(?: (.+))?$")?.captures(line)?;
    let mut place = Location::of(captures.get(1)?.as_str(), captures.get(2)?.as_str())?;
    place.column = captures.get(3).and_then(|column| column.as_str().parse().ok());
    Some((place, captures.get(4).map_or("", |message| message.as_str())))
}

/// Reads test results, panics and data races.
pub(super) fn results(page: &mut Page<'_>) {
    let (mut package, mut failed_here) = (0, false);
    // With `-v`, the output of a test is above its result.
    let verbose = page.find(0..usize::MAX, |line| line.starts_with("=== RUN   ")).is_some();
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index);
        if let Some(name) = failed_test(line) {
            failed_here = true;
            page.has_results = true;
            test(page, index, &name, verbose);
        } else if line.starts_with("panic: ") {
            failed_here = true;
            panic(page, index);
        } else if line == "WARNING: DATA RACE" {
            failed_here = true;
            let end = page.find(index..usize::MAX, |line| line.starts_with("=====")).unwrap_or(page.lines.len());
            let failure = failure(own_frame(page, index..end), None, "DATA RACE");
            page.sure(index, failure);
        } else if line.starts_with("FAIL\t") || line.starts_with("ok  \t") {
            let build = line.ends_with("[build failed]") || line.ends_with("[setup failed]");
            if line.starts_with("FAIL\t") && !failed_here && !build {
                // The program ended by itself: its last message counts.
                let last = (package..index).rev().find_map(|at| {
                    let line = page.line(at);
                    let (place, message) = placed(line).filter(|_| indent(line) == 0)?;
                    Some((at, failure(Some(place), None, message)))
                });
                if let Some((at, failure)) = last {
                    page.sure(at, failure);
                }
            }
            failed_here = false;
            package = index + 1;
        }
    }
}

/// The longest output of one test that is searched, in lines.
const LONGEST: usize = 2_000;

/// Returns the name in `--- FAIL: TestX (0.00s)`.
fn failed_test(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("--- FAIL: ")?;
    Some(rest.split(' ').next()?.to_string())
}

/// Reads the output of a failed test, below its result or, with `-v`, above it.
fn test(page: &mut Page<'_>, index: usize, name: &str, verbose: bool) {
    let ends = |line: &str| {
        let line = line.trim_start();
        line.starts_with("--- ")
            || line.starts_with("=== ")
            || line == "FAIL"
            || line.starts_with("FAIL\t")
            || line.starts_with("panic: ")
    };
    let limit = (index + LONGEST).min(page.lines.len());
    let below = index + 1..page.find(index + 1..limit, ends).unwrap_or(limit);
    let begins = |line: &str| {
        let heads = ["=== RUN   ", "=== CONT  ", "=== NAME  "];
        heads.iter().any(|head| line.strip_prefix(head).is_some_and(|run| run == name))
    };
    let before = if verbose { index.saturating_sub(LONGEST)..index } else { index..index };
    let runs = before.filter(|at| begins(page.line(*at)));
    let above = runs.map(|run| run + 1..page.find(run + 1..index, ends).unwrap_or(index));
    let words = above
        .chain([below.clone()])
        .find_map(|block| message_of(page, block))
        .or_else(|| example(page, below.clone(), name));
    // A test whose subtests failed has no message of its own.
    let depth = indent(page.line(index));
    let has_parts = || {
        let next = page.find(index + 1..index + LONGEST, |line| line.trim_start().starts_with("--- "));
        next.is_some_and(|next| indent(page.line(next)) > depth)
    };
    let ends_in_panic = page.line(below.end).starts_with("panic: ");
    if let Some((at, failure)) = words {
        page.sure(at, failure);
    } else if !ends_in_panic && !has_parts() {
        page.likely(index, failure(None, None, &format!("{name} failed")));
    }
}

/// Returns the line of a test's output that says why it failed. Its log lines have the same form.
fn message_of(page: &Page<'_>, block: Range<usize>) -> Option<(usize, super::Failure)> {
    let lines: Vec<usize> = block
        .clone()
        .filter(|at| {
            let line = page.line(*at);
            indent(line) > 0 && placed(line).is_some_and(|(place, _)| !place.file.ends_with("testing.go"))
        })
        .collect();
    let compares = |at: &&usize| {
        regex!(r"(?i)\b(want(ed)?|expect(ed|s)?|mismatch|should|unexpected|not equal)\b|!=")
            .is_some_and(|words| words.is_match(page.line(**at)))
    };
    let tells = |at: &&usize| page.line(**at).contains("got") || page.line(**at).ends_with(':');
    let at = *lines.iter().find(compares).or_else(|| lines.iter().find(tells)).or(lines.last())?;
    let (place, message) = placed(page.line(at))?;
    let mut message = message.to_string();
    if message.is_empty() {
        // testify labels the parts of its message.
        let is_error = |line: &str| line.trim_start().starts_with("Error:");
        if let Some(error) = page.find(at + 1..block.end, is_error) {
            let end = page
                .find(error + 1..block.end, |line| line.trim().is_empty() || line.trim_start().starts_with("Test:"));
            let words =
                (error..end.unwrap_or(error + 1)).map(|next| page.line(next).trim()).collect::<Vec<_>>().join(" ");
            return Some((at, failure(Some(place), None, words.trim_start_matches("Error:"))));
        }
    }
    if message.trim_end().ends_with(':') {
        let more =
            (at + 1..block.end).map(|next| page.line(next)).take_while(|line| indent(line) > indent(page.line(at)));
        for line in more.take(3) {
            message = format!("{message} {}", line.trim());
        }
    }
    Some((at, failure(Some(place), None, &message)))
}

/// Reads an example with unexpected output: `got:` and `want:`.
fn example(page: &Page<'_>, block: Range<usize>, name: &str) -> Option<(usize, super::Failure)> {
    let got = page.find(block.clone(), |line| line == "got:")?;
    let words = (got..block.end).map(|at| page.line(at).trim()).filter(|line| !line.is_empty());
    let words = words.collect::<Vec<_>>().join(" ");
    Some((got, failure(None, None, &format!("{name}: {words}"))))
}

/// Reads a panic, placed at the first stack frame in the project. A panic that was caught is only log output: test
/// results follow it.
fn panic(page: &mut Page<'_>, index: usize) {
    let limit = (index + LONGEST).min(page.lines.len());
    let end = page.find(index..limit, |line| line.starts_with("FAIL\t")).unwrap_or(limit);
    if page.find(index..end, |line| line.starts_with("--- ") || line == "FAIL").is_some() {
        return;
    }
    let message = page.line(index).trim_start_matches("panic: ").trim_end_matches(" [recovered]").to_string();
    let end = page.find(index..usize::MAX, |line| line.starts_with("FAIL\t")).unwrap_or(page.lines.len());
    let failure = failure(own_frame(page, index..end), None, &format!("panic: {message}"));
    page.claim(index..end);
    page.sure(index, failure);
}

/// Returns the first stack frame in the project: `\t/home/me/a.go:14 +0x8b`.
fn own_frame(page: &Page<'_>, lines: Range<usize>) -> Option<Location> {
    lines.take_while(|at| *at < page.lines.len()).find_map(|at| {
        let line = page.line(at);
        let place = line.trim_start().split(" +0x").next()?;
        let is_code =
            |place: &Location| place.is_own() && place.has_extension("go") && !place.file.ends_with("_testmain.go");
        Location::parse(place).filter(|place| is_code(place) && indent(line) > 0)
    })
}

/// Reads errors of the compiler and of vet.
pub(super) fn compiler(page: &mut Page<'_>) {
    let mut in_package = false;
    for index in 0..page.lines.len() {
        let line = page.line(index);
        if line.starts_with("# ") {
            in_package = true;
            continue;
        }
        if page.is_claimed(index) {
            continue;
        }
        match placed(line).filter(|_| indent(line) == 0) {
            Some((place, message)) if in_package || place.column.is_some() => {
                let failure = failure(Some(place), None, message);
                // Compiler errors come before the tests of other packages, which go prints on the other stream.
                page.sure(if in_package { 0 } else { index }, failure);
            }
            Some((place, message)) => {
                let failure = failure(Some(place), None, message);
                page.likely(index, failure);
            }
            None if line.ends_with(": import cycle not allowed") => {
                let failure = failure(None, None, line);
                page.sure(index, failure);
            }
            None => in_package = in_package && (indent(line) > 0 || line.starts_with("vet: ")),
        }
    }
}
