//! pytest, unittest, doctest, and tracebacks.

use super::page::{Location, Page, failure, indent};
use std::ops::Range;

/// Reads pytest: the blocks between `= FAILURES =` or `= ERRORS =` and the summary.
pub(super) fn pytest(page: &mut Page<'_>) {
    let mut index = 0;
    while index < page.lines.len() {
        let line = page.line(index);
        let bar = |line: &str, word: &str| line.starts_with("====") && line.contains(word);
        if bar(line, " FAILURES ") || bar(line, " ERRORS ") {
            let ends = |line: &str| line.starts_with("====") || line.starts_with("!!!!");
            let end = page.find(index + 1..usize::MAX, ends).unwrap_or(page.lines.len());
            blocks(page, index + 1..end);
            page.claim(index..end);
            page.has_results = true;
            index = end;
        } else if line.starts_with("ImportError while loading conftest ") {
            let end = page.find(index + 1..usize::MAX, str::is_empty).unwrap_or(page.lines.len());
            block(page, index + 1..end);
            page.claim(index..end);
            index = end;
        } else {
            index += 1;
        }
    }
    let known = page.is_sure();
    for index in 0..page.lines.len() {
        let line = page.line(index);
        if !known && let Some(found) = summary(line) {
            page.has_results = true;
            page.sure(index, found);
        } else if line.starts_with("====") && line.contains(" no tests ran ") && !known {
            page.likely(index, failure(None, None, "no tests ran"));
        }
    }
}

/// Parses `FAILED tests/test_a.py::test_b - AssertionError: …` or `ERROR tests/…`.
fn summary(line: &str) -> Option<super::Failure> {
    let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "))?;
    let (what, why) = rest.split_once(" - ").unwrap_or((rest, "failed"));
    let place = what.split("::").next().map(Location::file).filter(|place| place.has_extension("py"))?;
    Some(failure(Some(place), None, &format!("{what}: {why}")))
}

fn blocks(page: &mut Page<'_>, section: Range<usize>) {
    let is_head = |line: &str| {
        line.starts_with("____") && line.ends_with("____") || line.starts_with("__") && line.ends_with(" __")
    };
    let heads: Vec<usize> = section.clone().filter(|at| is_head(page.line(*at))).collect();
    if heads.is_empty() {
        // --tb=line
        for at in section {
            let line = page.line(at);
            if let Some((place, message)) = line.split_once(": ")
                && let Some(place) = Location::parse(place).filter(|place| place.has_extension("py"))
            {
                let failure = failure(Some(place), None, message);
                page.sure(at, failure);
            }
        }
        return;
    }
    for (number, head) in heads.iter().enumerate() {
        let end = heads.get(number + 1).copied().unwrap_or(section.end);
        block(page, head + 1..end);
    }
}

/// Reads one failure. Its reason is the first line of its last group of `E` lines; its place is the last one in the
/// project.
fn block(page: &mut Page<'_>, block: Range<usize>) {
    let captured = |line: &str| line.starts_with("----") && line.contains(" Captured ");
    let end = page.find(block.clone(), captured).unwrap_or(block.end);
    let block = block.start..end;
    let is_reason =
        |at: usize| page.line(at).starts_with("E  ") && !page.line(at).trim_start_matches('E').trim().is_empty();
    if let Some(got) = page.find(block.clone(), |line| line == "Got:") {
        let word = |at: Option<usize>| at.map_or("", |at| page.line(at + 1).trim()).to_string();
        let expected = word(page.find(block.clone(), |line| line == "Expected:"));
        let place = (got..block.end).find_map(|at| Location::parse(page.line(at).strip_suffix(": DocTestFailure")?));
        let failure = failure(place, None, &format!("expected {expected}, got {}", word(Some(got))));
        page.sure(got, failure);
        return;
    }
    let Some(last) = block.clone().rev().find(|at| is_reason(*at)) else {
        if let Some(at) = page.next_words(block.clone()) {
            let failure = failure(None, None, page.line(at));
            page.likely(at, failure);
        }
        return;
    };
    let is_group = |at: &usize| page.line(*at).starts_with('E') || page.line(*at).starts_with("E ");
    let first = (block.start..=last).rev().take_while(is_group).last().unwrap_or(last);
    let text = |at: usize| page.line(at).trim_start_matches('E').trim().to_string();
    let is_error = |at: &usize| {
        regex!(r"^[A-Za-z_.]*(Error|Exception|Warning|Interrupt|Exit)\b")
            .is_some_and(|error| error.is_match(&text(*at)))
    };
    // A syntax error shows the source line first.
    let (at, shown) = match text(first).strip_prefix("File \"") {
        Some(place) => ((first..=last).rev().find(is_error).unwrap_or(last), place_in_quotes(place)),
        None => (first, None),
    };
    let own = |at: usize| {
        let line = page.line(at);
        if indent(line) > 0 {
            return None;
        }
        let found = regex!(r"^(\S+\.py):(\d+)(?::|$)")?.captures(line)?;
        Location::of(found.get(1)?.as_str(), found.get(2)?.as_str()).filter(Location::is_own)
    };
    let place = shown.or_else(|| block.clone().rev().find_map(own));
    let failure = failure(place, None, &text(at));
    page.sure(at, failure);
}

/// Parses `…/a.py", line 3, in f`, the text after the first quote.
fn place_in_quotes(text: &str) -> Option<Location> {
    let (file, rest) = text.split_once('"')?;
    let line = rest.strip_prefix(", line ")?;
    Location::of(file, line.split(|next: char| !next.is_ascii_digit()).next()?)
}

/// Reads unittest: `FAIL: test_a (…)` between two bars, and a traceback.
pub(super) fn unittest(page: &mut Page<'_>) {
    let heads: Vec<usize> = (1..page.lines.len())
        .filter(|at| {
            let line = page.line(*at);
            (line.starts_with("FAIL: ") || line.starts_with("ERROR: ")) && page.line(at - 1).starts_with("======")
        })
        .collect();
    for (number, head) in heads.iter().enumerate() {
        let ends = |line: &str| {
            line.starts_with("======") || regex!(r"^Ran \d+ tests? in").is_some_and(|ran| ran.is_match(line))
        };
        let end = page.find(head + 1..usize::MAX, ends).unwrap_or(page.lines.len());
        let name = page.line(*head).to_string();
        let mut last = None;
        let mut at = head + 1;
        while at < end {
            match traceback(page, at) {
                Some((next, failure)) => {
                    last = Some((next, failure));
                    at = next + 1;
                }
                None => at += 1,
            }
        }
        let (at, failure) = last.unwrap_or_else(|| (*head, failure(None, None, &name)));
        page.has_results = true;
        page.claim(if number == 0 { 0 } else { *head }..end);
        page.sure(at, failure);
    }
}

/// Reads a traceback that begins here. Returns the line of its exception, and its failure at the deepest frame in the
/// project.
fn traceback(page: &Page<'_>, index: usize) -> Option<(usize, super::Failure)> {
    let strip = |at: usize| {
        let line = page.line(at);
        line.strip_prefix("INTERNALERROR> ").unwrap_or(line).to_string()
    };
    let head = strip(index);
    if head.trim_start() != "Traceback (most recent call last):" {
        return None;
    }
    let depth = indent(&head);
    let mut place = None;
    for at in index + 1..page.lines.len() {
        let line = strip(at);
        if let Some(found) = line.trim_start().strip_prefix("File \"").and_then(place_in_quotes) {
            place = Some(found).filter(Location::is_own).or(place);
        } else if indent(&line) <= depth && !line.trim().is_empty() {
            return Some((at, failure(place, None, &line)));
        } else if line.trim().is_empty() && !strip(at + 1).starts_with(' ') {
            break;
        }
    }
    None
}

/// Reads tracebacks of programs; of a chain of tracebacks only the last. Syntax errors and failed examples have no such
/// first line.
pub(super) fn tracebacks(page: &mut Page<'_>) {
    let mut index = 0;
    while index < page.lines.len() {
        if page.is_claimed(index) {
            index += 1;
            continue;
        }
        if let Some((mut end, mut failure)) = traceback(page, index) {
            let chains = |line: &str| {
                line.contains("During handling of the above exception") || line.contains("was the direct cause of")
            };
            while let Some(joint) = page.find(end + 1..end + 4, chains)
                && let Some(next) =
                    page.find(joint + 1..joint + 4, |line| line.trim_start().contains("Traceback (most recent"))
                && let Some((last, deeper)) = traceback(page, next)
            {
                (end, failure) = (last, deeper);
            }
            page.sure_unless_printed(end, failure);
            page.claim(index..end + 1);
            index = end + 1;
            continue;
        }
        if let Some((_, rest)) =
            page.line(index).split_once("File \"").filter(|(before, _)| before.trim_matches(['*', ' ']).is_empty())
        {
            let place = place_in_quotes(rest);
            let is_error =
                |line: &str| regex!(r"^\s*(Syntax|Indentation|Tab)Error: ").is_some_and(|error| error.is_match(line));
            if let Some(at) = page.find(index + 1..index + 5, is_error) {
                let failure = failure(place, None, page.line(at));
                page.claim(index..at + 1);
                page.sure_unless_printed(at, failure);
            } else if page.line(index + 1) == "Failed example:" {
                let example = page.line(index + 2).trim();
                let value = |word: &str| {
                    page.find(index + 3..index + 12, |line| line == word).map_or("", |at| page.line(at + 1).trim())
                };
                let message =
                    format!("Failed example: {example}: expected {}, got {}", value("Expected:"), value("Got:"));
                let failure = failure(place, None, &message);
                page.sure(index + 1, failure);
            }
        }
        index += 1;
    }
}
