//! cargo, rustc, rustfmt, nextest, and panics.

use super::page::{Location, Page, failure, indent};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Reads the tests of `cargo test`, each with its output, and the tests of nextest that took too long.
pub(super) fn results(page: &mut Page<'_>) {
    let (mut index, mut passed) = (0, false);
    while index < page.lines.len() {
        let line = page.line(index);
        passed = line == "successes:" || passed && line != "failures:";
        if let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) {
            let name = name.to_string();
            let ends = |line: &str| {
                line.starts_with("---- ") && line.ends_with(" stdout ----")
                    || line == "failures:"
                    || line == "successes:"
            };
            let end = page.find(index + 1..usize::MAX, ends).unwrap_or(page.lines.len());
            if passed {
                page.claim(index..end);
            } else {
                test(page, &name, index..end);
            }
            page.has_results = true;
            index = end;
        } else {
            let took_too_long = line.trim_start().strip_prefix("TIMEOUT [").and_then(|line| line.split_once(") "));
            if let Some((_, name)) = took_too_long {
                let failure = failure(None, None, &format!("{name}: TIMEOUT: it took too long"));
                page.sure(index, failure);
            }
            index += 1;
        }
    }
}

fn test(page: &mut Page<'_>, name: &str, block: Range<usize>) {
    let panic = page.find(block.clone(), |line| panicked(line).is_some());
    let found = match panic {
        Some(at) => panic_of(page, at, block.end).map(|failure| (at, failure)),
        None => block.clone().find_map(|at| {
            let line = page.line(at);
            if let Some(rest) = line.strip_prefix("note: test did not panic as expected at ") {
                return Some((at, failure(Location::parse(rest), None, "test did not panic as expected")));
            }
            if line.starts_with("Error: ") {
                return Some((at, failure(None, None, &format!("{name}: {line}"))));
            }
            // A documentation test that does not compile.
            rustc_at(page, at).filter(|failure| failure.file.is_some()).map(|failure| (at, failure))
        }),
    };
    let (at, mut failure) = found.unwrap_or_else(|| (block.start, failure(None, None, &format!("{name} failed"))));
    if !failure.message.contains(name) {
        failure.message = format!("{name}: {}", failure.message);
    }
    let is_own = |file: &String| Location::file(file).is_own();
    if !failure.file.as_ref().is_some_and(is_own) {
        // insta prints the line of the test.
        let shown = block.clone().find_map(|at| Location::parse(page.line(at).strip_prefix("Source: ")?));
        if let Some(place) = shown {
            (failure.file, failure.line, failure.column) = (Some(place.file), place.line, place.column);
        }
    }
    page.claim(block);
    page.sure(at, failure);
}

/// Returns where a thread panicked: `thread 'main' (12) panicked at src/a.rs:3:9:`.
fn panicked(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("thread '")?;
    rest.split_once(" panicked at ").map(|(_, rest)| rest)
}

/// Reads the panic that begins at this line.
fn panic_of(page: &Page<'_>, at: usize, end: usize) -> Option<super::Failure> {
    let rest = panicked(page.line(at))?;
    // Before Rust 1.73 the message came first: `'no port', src/a.rs:3:9`.
    if let Some((message, place)) = rest.strip_prefix('\'').and_then(|rest| rest.rsplit_once("', ")) {
        return Some(failure(Location::parse(place), None, message));
    }
    let mut message = page.line(at + 1).trim().to_string();
    for next in at + 2..end.min(at + 12) {
        let line = page.line(next).trim();
        if line.starts_with("left: ") || line.starts_with("right: ") {
            message = format!("{message}, {line}");
        } else if line.is_empty() || line.starts_with("note: ") || line == "stack backtrace:" {
            break;
        }
    }
    Some(failure(Location::parse(rest), None, &message))
}

/// Reads panics of programs, of build scripts, and of tests whose output was not captured.
pub(super) fn panics(page: &mut Page<'_>) {
    // With --nocapture, panics of passed tests are printed too; the failed tests are listed at the end.
    let failed = failed_tests(page);
    let mut last: HashMap<String, usize> = HashMap::new();
    for index in 0..page.lines.len() {
        if let Some(thread) = thread_of(page.line(index)) {
            last.insert(thread.to_string(), index);
        }
    }
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let thread = thread_of(page.line(index));
        let counts = failed.is_empty() || thread.is_some_and(|thread| failed.contains(thread));
        // A panic that the test has caught is not its last one.
        let is_last = failed.is_empty() || thread.and_then(|thread| last.get(thread)) == Some(&index);
        let counts = counts && is_last;
        if let Some(failure) = panic_of(page, index, usize::MAX) {
            if counts {
                page.sure(index, failure);
            } else {
                page.likely(index, failure);
            }
        }
    }
}

/// Returns the name of the thread that panicked.
fn thread_of(line: &str) -> Option<&str> {
    panicked(line)?;
    line.trim_start().strip_prefix("thread '")?.split('\'').next()
}

/// Returns the names of failed tests from the list at the end of `cargo test`.
fn failed_tests(page: &Page<'_>) -> HashSet<String> {
    let mut names = HashSet::new();
    for index in 0..page.lines.len() {
        if page.line(index) == "failures:" {
            let listed =
                (index + 1..page.lines.len()).map(|at| page.line(at)).take_while(|line| line.starts_with("    "));
            names.extend(listed.map(|line| line.trim().to_string()));
        }
    }
    names
}

/// Reads errors of rustc, cargo and rustfmt.
pub(super) fn compiler(page: &mut Page<'_>) {
    let ran = page.find(0..usize::MAX, |line| line.starts_with("test result: FAILED")).is_some();
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        if let Some(failure) = rustc_at(page, index) {
            // If tests ran, everything had compiled.
            if !ran && (failure.file.is_some() || failure.message.starts_with("linking ")) {
                page.sure(index, failure);
            } else {
                page.likely(index, failure);
            }
        } else if let Some(place) = page.line(index).strip_prefix("Diff in ") {
            let place = place.replace(" at line ", ":");
            let removed = page.find(index + 1..index + 40, |line| line.starts_with('-'));
            let shown = removed.map_or("", |at| page.line(at)).to_string();
            page.sure(index, failure(Location::parse(&place), None, &format!("not formatted: {shown}")));
        }
    }
}

/// Lines of cargo that only report that something failed.
const SUMS: [&str; 12] = [
    "could not compile",
    "aborting due to",
    "test failed",
    "doctest failed",
    "test run failed",
    "failed to run custom build command",
    "build failed",
    "process didn't exit successfully",
    "Recipe `",
    "recipe `",
    "script ",
    "metadata-generation-failed",
];

/// Reads `error[E0308]: mismatched types`, and `  --> src/a.rs:1:2` below it.
fn rustc_at(page: &Page<'_>, index: usize) -> Option<super::Failure> {
    let rest = page.line(index).strip_prefix("error")?;
    let (code, message) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("]: ").map(|(code, message)| (Some(code), message))?,
        None => (None, rest.strip_prefix(": ")?),
    };
    let sums =
        SUMS.iter().any(|sum| message.starts_with(sum)) || message.ends_with(" failed:") && message.contains("target");
    if sums {
        return None;
    }
    for next in index + 1..index + 6 {
        let line = page.line(next).trim_start();
        if let Some(place) = line.strip_prefix("--> ").or_else(|| line.strip_prefix("——▶ ")) {
            return Some(failure(Location::parse(place), code, message));
        }
        // The message may have several lines.
        if line.is_empty() || line.starts_with("error") || line.starts_with("Caused by") {
            break;
        }
    }
    if message.starts_with("linking ") {
        return Some(linker(page, index, message));
    }
    // cargo reports causes from the outside in: the last one is the root cause.
    let mut whole = message.to_string();
    let mut at = index + 1;
    // Up to the next error. No chain of causes is longer than this.
    let end = page.find(index + 1..index + 60, |line| line.starts_with("error")).unwrap_or(index + 60);
    while let Some(cause) = page.find(at..(at + 12).min(end), |line| line == "Caused by:") {
        whole = format!("{whole}: {}", page.line(cause + 1).trim());
        at = cause + 1;
    }
    if message.starts_with("failed to select a version")
        && let Some(at) = page.find(index + 1..index + 12, |line| line.contains(" depends on "))
    {
        whole = format!("{whole} {}", page.line(at));
    }
    Some(failure(None, code, &whole))
}

/// Reads the message of the linker.
fn linker(page: &Page<'_>, index: usize, message: &str) -> super::Failure {
    let says = |line: &str| {
        line.contains("undefined symbol") || line.contains("undefined reference") || line.contains("cannot find -l")
    };
    let end = page
        .find(index + 1..usize::MAX, |line| indent(line) == 0 && line.starts_with("error"))
        .unwrap_or(page.lines.len());
    let Some(at) = page.find(index + 1..end, says) else { return failure(None, None, message) };
    let place = (at..end.min(at + 6)).find_map(|next| {
        let (_, place) = page.line(next).split_once("referenced by ")?;
        Location::parse(place.rsplit_once('(').map_or(place, |(_, inside)| inside))
    });
    let said = page.line(at).trim().trim_start_matches("= note: ");
    failure(place, None, &format!("linking failed: {said}"))
}
