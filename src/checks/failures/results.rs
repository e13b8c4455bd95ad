//! Test results of `PHPUnit`, `ExUnit`, `GoogleTest`, busted, zig test, prove and ctest.

use super::page::{Location, Page, failure, indent, joined_lines};

/// Reads all results that say why a test failed.
pub(super) fn results(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index).to_string();
        if regex!(r"^\d+\) \S+::\S+").is_some_and(|head| head.is_match(&line)) {
            phpunit(page, index);
        } else if regex!(r"^\s+\d+\) (test|property|doctest) .*\(\S+\)$").is_some_and(|head| head.is_match(&line)) {
            exunit(page, index);
        } else if let Some(place) = line.strip_suffix(": Failure").or_else(|| line.strip_suffix(": error: Failure")) {
            gtest(page, index, place);
        } else if line.starts_with("Failure -> ") || line.starts_with("Error -> ") {
            busted(page, index);
        } else if line.starts_with("FAIL (") && line.ends_with(')') && index > 0 {
            let place = (index + 1..index + 12)
                .find_map(|at| Location::parse(page.line(at).split(": 0x").next()?).filter(Location::is_own));
            let message = format!("{} {}", page.line(index - 1), line);
            page.has_results = true;
            page.sure(index - 1, failure(place, None, &message));
        } else if line.trim_start().starts_with("#   Failed test") {
            let at = (index + 1..index + 3).find_map(|at| perl_place(page.line(at)));
            let place = at.or_else(|| perl_place(&line));
            let message = line.trim_start().trim_start_matches(['#', ' ']).to_string();
            page.has_results = true;
            page.sure(index, failure(place, None, &message));
        }
    }
    claim_runs(page);
}

/// Claims the output of tests of `GoogleTest`.
fn claim_runs(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        if page.line(index).contains("[ RUN      ] ") {
            let ends =
                |line: &str| ["[       OK ] ", "[  FAILED  ] ", "[ RUN      ] "].iter().any(|mark| line.contains(mark));
            let end = page.find(index + 1..usize::MAX, ends).unwrap_or(index + 1);
            page.claim(index..end);
        }
    }
}

/// Parses `… at t/cart.t line 7.`
fn perl_place(line: &str) -> Option<Location> {
    let found = regex!(r"\bat (\S+) line (\d+)\.$")?.captures(line)?;
    Location::of(found.get(1)?.as_str(), found.get(2)?.as_str())
}

/// Reads `1) CartTest::testTotal`, the reason, and stack frames.
fn phpunit(page: &mut Page<'_>, index: usize) {
    let Some(reason) = page.next_words(index + 1..index + 3) else { return };
    let next = |line: &str| regex!(r"^\d+\) |^(FAILURES|ERRORS)!").is_some_and(|next| next.is_match(line));
    let end = page.find(reason + 1..usize::MAX, next).unwrap_or(page.lines.len());
    let place = (reason + 1..end)
        .find_map(|at| Location::parse(page.line(at)).filter(|place| place.is_own() && indent(page.line(at)) == 0));
    let message = page.line(reason).to_string();
    page.has_results = true;
    page.claim(index..end);
    page.sure(reason, failure(place, None, &message));
}

/// Reads `  1) test sums (CartTest)`, its place, the reason, a stack.
fn exunit(page: &mut Page<'_>, index: usize) {
    let next = |line: &str| regex!(r"^\s+\d+\) |^Finished in").is_some_and(|next| next.is_match(line));
    let end = page.find(index + 1..usize::MAX, next).unwrap_or(page.lines.len());
    let stack = page.find(index..end, |line| line.trim() == "stacktrace:").unwrap_or(end);
    let own = |at: usize| {
        let line = page.line(at).trim();
        let line = if line.starts_with('(') { line.split_once(") ").map_or(line, |(_, rest)| rest) } else { line };
        Location::parse(line.split(": ").next()?)
            .filter(|place| place.is_own() && regex!(r"\.exs?$").is_some_and(|name| name.is_match(&place.file)))
    };
    let place = (stack..end).find_map(own).or_else(|| own(index + 1));
    let message = joined_lines(page, index + 2..stack.min(index + 6));
    page.has_results = true;
    page.claim(index..end);
    page.sure(index + 2, failure(place, None, &message));
}

/// Reads `t.cc:15: Failure`, and the expected value.
fn gtest(page: &mut Page<'_>, index: usize, place: &str) {
    let end = page.find(index + 1..index + 12, |line| line.is_empty() || line.starts_with('[')).unwrap_or(index + 2);
    let message = joined_lines(page, index + 1..end);
    let place = Location::parse(place);
    page.has_results = true;
    page.sure(index + 1, failure(place, None, &message));
    page.claim(index..end);
}

/// Reads `Failure -> spec/a.lua @ 4`, the test, and `spec/a.lua:6: reason`.
fn busted(page: &mut Page<'_>, index: usize) {
    for at in index + 1..index + 4 {
        let line = page.line(at).to_string();
        let found = regex!(r"^(\S+\.lua):(\d+): (.+)$").and_then(|found| found.captures(&line));
        if let Some((place, message)) = found.and_then(|found| {
            Some((Location::of(found.get(1)?.as_str(), found.get(2)?.as_str()), found.get(3)?.as_str().to_string()))
        }) {
            page.has_results = true;
            page.sure(at, failure(place, None, &message));
            return;
        }
    }
}
