//! jest, vitest, mocha, jasmine, ava, and the test runners of node, bun and deno; uncaught errors of JavaScript
//! programs; bundlers.

use super::page::{Location, Page, failure, frame, indent, own_frame};

/// Reads test results.
pub(super) fn results(page: &mut Page<'_>) {
    jest(page);
    vitest(page);
    numbered(page);
    node_spec(page);
    ava(page);
}

/// Returns a message that continues on the next lines: `Expected values to be strictly equal:`, or the expected and the
/// received value.
fn whole(page: &Page<'_>, at: usize, end: usize) -> String {
    let mut message = page.line(at).trim().to_string();
    let is_source = |line: &str| regex!(r"^\s*>?\s*\d+ \|").is_some_and(|source| source.is_match(line));
    if message.starts_with("expect(") {
        let more = (at + 1..end.min(at + 8))
            .map(|next| page.line(next))
            .take_while(|line| !is_source(line) && frame(line).is_none());
        for line in more.map(str::trim).filter(|line| !line.is_empty()).take(3) {
            message = format!("{message}, {line}");
        }
    } else if message.ends_with(':') {
        if let Some(next) = page.next_words(at + 1..end).filter(|next| frame(page.line(*next)).is_none()) {
            message = format!("{message} {}", page.line(next).trim());
        }
    } else {
        let shown = |word: &str| page.find(at + 1..end.min(at + 8), |line| line.trim_start().starts_with(word));
        for line in [shown("Expected: "), shown("Received: ")].into_iter().flatten() {
            message = format!("{message}, {}", page.line(line).trim());
        }
    }
    message
}

/// Reads jest: `  ● suite › case`, its reason, and a stack.
fn jest(page: &mut Page<'_>) {
    let head = |line: &str| {
        line.strip_prefix("  ● ").is_some_and(|name| !name.starts_with("Console") && !name.ends_with("Warning:"))
    };
    let ends = |line: &str| {
        head(line) || ["Test Suites:", "FAIL ", "PASS ", " FAIL ", " PASS "].iter().any(|word| line.starts_with(word))
    };
    let mut index = 0;
    while let Some(at) = page.find(index..usize::MAX, head) {
        let end = page.find(at + 1..usize::MAX, ends).unwrap_or(page.lines.len());
        if let Some(words) = page.next_words(at + 1..end) {
            let message = whole(page, words, end);
            let named = regex!(r"(\S+\.\w+): .*\((\d+):\d+\)$").and_then(|place| place.captures(page.line(words)));
            let named = named.and_then(|place| Location::of(place.get(1)?.as_str(), place.get(2)?.as_str()));
            let of_types = page.line(words).split_once(" - error ").and_then(|(place, _)| Location::parse(place));
            let named = named.or(of_types);
            let failure = failure(named.or_else(|| own_frame(page, at..end)), None, &message);
            page.sure(words, failure);
            page.has_results = true;
        }
        page.claim(at..end);
        index = end.max(at + 1);
    }
    // The output of the tests is above their results.
    if index > 0 && page.has_results {
        let noise: Vec<usize> = (0..page.lines.len()).filter(|at| page.line(*at).starts_with("  console.")).collect();
        for at in noise {
            let end = page.find(at + 1..usize::MAX, |line| {
                line.starts_with("  console.") || indent(line) == 0 && !line.is_empty()
            });
            page.claim(at..end.unwrap_or(page.lines.len()));
        }
    }
}

/// Reads vitest: ` FAIL  test/a.test.js > case`, and its reason on the next line.
fn vitest(page: &mut Page<'_>) {
    let is_section = |line: &str| line.starts_with('⎯') && line.contains(" Failed ");
    if page.find(0..usize::MAX, is_section).is_none() {
        return;
    }
    let head = |line: &str| line.starts_with(" FAIL  ");
    let mut index = 0;
    while let Some(at) = page.find(index..usize::MAX, head) {
        let mut reason = at + 1;
        // Tests that failed in the same way are listed together.
        while head(page.line(reason)) {
            reason += 1;
        }
        let ends = |line: &str| head(line) || line.starts_with('⎯');
        let end = page.find(reason + 1..usize::MAX, ends).unwrap_or(page.lines.len());
        let file = page.line(at).trim_start_matches(" FAIL  ").split(' ').next().map(Location::file);
        let shown = page.find(reason..end, |line| line.trim_start().starts_with("File: "));
        let shown = shown.and_then(|at| Location::parse(page.line(at).trim_start().trim_start_matches("File: ")));
        let place = own_frame(page, reason..end).or(shown).or(file);
        let message = whole(page, reason, end);
        let count = reason - at;
        let mut failure = failure(place, None, &message);
        failure.count = u32::try_from(count).unwrap_or(1);
        page.sure(reason, failure);
        page.claim(at..end);
        page.has_results = true;
        index = end;
    }
    let printed: Vec<usize> = (0..page.lines.len())
        .filter(|at| page.line(*at).starts_with("stderr | ") || page.line(*at).starts_with("stdout | "))
        .collect();
    for at in printed {
        let end = page.find(at + 1..at + 500, str::is_empty).unwrap_or(at + 1);
        page.claim(at..end);
    }
}

/// Reads mocha and jasmine: `  1) title`, its parts, the reason, a stack.
fn numbered(page: &mut Page<'_>) {
    let mocha = |line: &str| regex!(r"^  \d+ failing$").is_some_and(|sum| sum.is_match(line));
    let jasmine = |line: &str| line == "Failures:";
    // The last section counts: the tests may print results of other runs above their own.
    let section = (0..page.lines.len()).rev().find(|at| mocha(page.line(*at)) || jasmine(page.line(*at)));
    if let Some(section) = section {
        let head = |line: &str| regex!(r"^\s{0,2}\d+\) \S").is_some_and(|head| head.is_match(line));
        let has_stack = page.find(section..usize::MAX, |line| frame(line).is_some()).is_some();
        if !has_stack || page.is_claimed(section) {
            return;
        }
        let heads: Vec<usize> = (section..page.lines.len()).filter(|at| head(page.line(*at))).collect();
        for (number, at) in heads.iter().enumerate() {
            let end = heads.get(number + 1).copied().unwrap_or(page.lines.len());
            let is_reason = |line: &str| {
                regex!(r"^\s+([A-Z]\w*)?(Error|Exception)\b.*: |^\s+Expected ")
                    .is_some_and(|reason| reason.is_match(line))
            };
            let Some(reason) = page.find(at + 1..end, is_reason) else { continue };
            let stack_end = page.find(reason..end, |line| head(line)).unwrap_or(end);
            let in_words = regex!(r"\((/[^():]+\.\w+)\)").and_then(|path| path.captures(page.line(reason)));
            let in_words = in_words.and_then(|path| Some(Location::file(path.get(1)?.as_str())));
            let place = own_frame(page, reason..stack_end).or(in_words);
            let failure = failure(place, None, &whole(page, reason, end));
            page.sure(reason, failure);
            page.has_results = true;
        }
        if let (Some(first), true) = (heads.first(), page.has_results) {
            page.claim(*first..page.lines.len());
        }
    }
}

/// Reads node's reporter for people: `✖ case (2.1ms)`, and the error indented below it.
fn node_spec(page: &mut Page<'_>) {
    let head = |line: &str| regex!(r"^\s*✖ .* \([\d.]+ms\)$").is_some_and(|head| head.is_match(line));
    let again = page.find(0..usize::MAX, |line| line.trim() == "✖ failing tests:").unwrap_or(page.lines.len());
    let heads: Vec<usize> = (0..again).filter(|at| head(page.line(*at))).collect();
    for (number, at) in heads.iter().enumerate() {
        let end = heads.get(number + 1).copied().unwrap_or(again);
        let Some(reason) = page.next_words(at + 1..end.min(at + 3)) else { continue };
        let is_reason =
            regex!(r"^\s+.*(Error|Exception)\b.*: |^\s+'").is_some_and(|form| form.is_match(page.line(reason)));
        if !is_reason || page.line(reason).contains("test failed") {
            continue;
        }
        let failure = failure(own_frame(page, reason..end), None, &whole(page, reason, end));
        page.sure(reason, failure);
        page.has_results = true;
    }
    if page.has_results {
        page.claim(again..page.lines.len());
    }
}

/// Reads ava: the place on a line of its own, the lines around it, and the difference.
fn ava(page: &mut Page<'_>) {
    if page.find(0..usize::MAX, |line| line.trim_start().starts_with("✘ [fail]: ")).is_none() {
        return;
    }
    for index in 0..page.lines.len() {
        let line = page.line(index);
        let is_error = regex!(r"^  ([A-Z]\w*)?Error: ").is_some_and(|error| error.is_match(line));
        if is_error && frame(page.line(index + 1)).is_some() {
            let failure = failure(own_frame(page, index..index + 20), None, line);
            page.sure(index, failure);
            continue;
        }
        let place =
            regex!(r"^  (\S+\.\w+:\d+)$").and_then(|place| Location::parse(place.captures(line)?.get(1)?.as_str()));
        let Some(place) = place else { continue };
        let shown = |line: &str| regex!(r"^\s+\d+:").is_some_and(|source| source.is_match(line));
        let mut at = index + 1;
        while let Some(next) = page.next_words(at..at + 3).filter(|next| shown(page.line(*next))) {
            at = next + 1;
        }
        let Some(reason) = page.next_words(at..at + 3) else { continue };
        let lines = (reason..reason + 5).map(|at| page.line(at).trim()).filter(|line| !line.is_empty());
        let failure = failure(Some(place), None, &lines.collect::<Vec<_>>().join(" "));
        page.sure(reason, failure);
        page.has_results = true;
    }
}

/// Reads uncaught errors and errors of bundlers.
pub(super) fn errors(page: &mut Page<'_>) {
    bundlers(page);
    stacks(page);
}

fn bundlers(page: &mut Page<'_>) {
    for index in 0..page.lines.len() {
        if page.is_claimed(index) {
            continue;
        }
        let line = page.line(index).to_string();
        if let Some(message) = line.strip_prefix("✘ [ERROR] ") {
            let place = (index + 1..index + 4).find_map(|at| Location::parse(page.line(at)));
            page.sure(index, failure(place, None, message));
        } else if let Some(place) = line.split_once("╭─[").and_then(|(_, place)| Location::parse(place)) {
            if let Some(at) = (0..index).rev().take(3).find(|at| !page.line(*at).trim().is_empty()) {
                let message = page.line(at).trim().to_string();
                page.sure(at, failure(Some(place), None, &message));
            }
        } else if let Some(message) = line.strip_prefix("[!] ") {
            let named = regex!(r"(\S+\.\w+) \((\d+):\d+\)").and_then(|place| place.captures(message));
            let named = named.and_then(|place| Location::of(place.get(1)?.as_str(), place.get(2)?.as_str()));
            let below = Some(page.line(index + 1))
                .filter(|next| next.contains('.') && !next.contains(' ') && indent(next) == 0);
            let failure = failure(named.or_else(|| below.map(Location::file)), None, message);
            page.sure(index, failure);
            page.claim(index..index + 1);
        } else if let Some(place) = line.strip_prefix("ERROR in ") {
            let place = regex!(r"^(\S+) (\d+):").and_then(|found| found.captures(place));
            let place = place.and_then(|place| Location::of(place.get(1)?.as_str(), place.get(2)?.as_str()));
            if let (Some(place), Some(at)) = (place, page.next_words(index + 1..index + 3)) {
                let message = page.line(at).to_string();
                page.sure(at, failure(Some(place), None, &message));
            }
        }
    }
}

/// The longest distance from an error's first line to its stack, in lines.
const STACK: usize = 14;

/// Reads `TypeError: …` with a stack below it, and possibly its place above it.
fn stacks(page: &mut Page<'_>) {
    let mut index = 0;
    while index < page.lines.len() {
        let is_frame = frame(page.line(index)).is_some() && !page.is_claimed(index);
        if !is_frame {
            index += 1;
            continue;
        }
        let end = page.find(index..usize::MAX, |line| frame(line).is_none()).unwrap_or(page.lines.len());
        if let Some((at, message)) = head_of(page, index) {
            let above = (at.saturating_sub(7)..at).rev().find_map(|above| {
                let line = page.line(above).trim_start_matches("# ");
                (indent(line) == 0).then(|| Location::parse(line)).flatten().filter(Location::is_own)
            });
            let named = regex!(r"imported from (\S+)").and_then(|path| path.captures(&message));
            let named = named.and_then(|path| Some(Location::file(path.get(1)?.as_str().trim_end_matches('.'))));
            let syntax = message.contains("SyntaxError: ");
            let place = if syntax { above.clone() } else { None };
            let place = place.or_else(|| own_frame(page, index..end)).or(above).or(named);
            page.sure_unless_printed(at, failure(place, None, &message));
            page.claim(at..end);
        }
        index = end.max(index + 1);
    }
}

/// Returns the first line of the error whose stack begins here.
fn head_of(page: &Page<'_>, stack: usize) -> Option<(usize, String)> {
    let head = regex!(
        r"^(?:Uncaught |error: |[ \w]*: )?(?:\S* )?((?:[A-Za-z_$][\w.$]*)?(?:Error|Exception)\b[^:]*|error|Error|TS\d+ \[ERROR\]): \S"
    )?;
    for at in (stack.saturating_sub(STACK)..stack).rev() {
        let line = page.line(at);
        let line = line.trim_start_matches("# ").trim_start();
        if frame(line).is_some() || page.is_claimed(at) {
            return None;
        }
        if head.is_match(line) {
            return Some((at, line.to_string()));
        }
    }
    None
}
