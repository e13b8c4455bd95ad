//! Lines that look like an error, used if nothing more certain was found: `error: …`, `make: *** …`,
//! `sh: 1: jest: not found`.

use super::page::{Location, Page, failure};

/// Lines that only report that something failed, or how to see more.
const SUMS: [&str; 26] = [
    "npm error code",
    "npm error path",
    "npm error command",
    "npm error workspace",
    "npm error location",
    "npm error Lifecycle script",
    "npm error A complete log",
    "npm error To see a list",
    "npm error   npm run",
    "npm error JSON.parse Failed",
    "npm error JSON.parse Note",
    "npm ERR! code",
    "npm ERR! A complete log",
    "error: could not compile",
    "error: aborting due to",
    "error: test failed",
    "error: doctest failed",
    "error: test run failed",
    "error: Recipe `",
    "error: recipe `",
    "error: failed to run custom build command",
    "error: command '",
    "error: metadata-generation-failed",
    "error during build:",
    "ERROR: usage:",
    "error: script \"",
];

/// Reads `2/3 Test #2: total ....***Failed`, which is all that is known about a test whose output is not shown.
fn ctest(page: &mut Page<'_>) {
    let known = page.is_sure();
    for index in 0..page.lines.len() {
        let line = page.line(index);
        let is_result = regex!(r"^\s*\d+/\d+ Test +#\d+: .*\*\*\*").is_some_and(|result| result.is_match(line));
        if is_result && (!known || line.contains("***Not Run")) {
            let failure = failure(None, None, line);
            page.sure(index, failure);
        }
    }
}

/// Returns the last line of a recipe, if it has the form `program: message` and make then reports that the recipe
/// failed.
fn before_make(page: &Page<'_>) -> Option<usize> {
    let failed = |line: &str| regex!(r"^g?make(\[\d+\])?: \*\*\* \[").is_some_and(|failed| failed.is_match(line));
    let last = page.find(1..usize::MAX, failed)?.checked_sub(1)?;
    let is_word = regex!(r"^[\w./-]+: [^:]").is_some_and(|word| word.is_match(page.line(last)));
    (is_word && !page.line(last).starts_with("error:") && !page.is_claimed(last)).then_some(last)
}

/// Reads such lines only if nothing more certain was found.
pub(super) fn errors(page: &mut Page<'_>) {
    ctest(page);
    if page.is_sure() {
        return;
    }
    for index in 0..page.lines.len() {
        if page.is_claimed(index) || page.has(index) {
            continue;
        }
        let line = page.line(index).to_string();
        if SUMS.iter().any(|sum| line.starts_with(sum)) || line == "npm error" {
            continue;
        }
        if let Some(found) = placed(&line) {
            page.sure(index, found);
        } else if let Some(message) = message_of(&line) {
            page.likely(index, failure(None, None, &message));
        }
    }
    if let (false, Some(last)) = (page.is_sure(), before_make(page)) {
        let failure = failure(None, None, page.line(last));
        page.sure(last, failure);
    }
}

/// Reads errors of shells, Perl and PHP, which print the place in other positions.
fn placed(line: &str) -> Option<super::Failure> {
    let found = regex!(r"^(?:PHP )?((?:Parse|Fatal|Compile) error: .+?) in (\S+?)(?: on line |:)(\d+)$")
        .and_then(|found| found.captures(line));
    if let Some(found) = found {
        return Some(failure(
            Location::of(found.get(2)?.as_str(), found.get(3)?.as_str()),
            None,
            found.get(1)?.as_str(),
        ));
    }
    if let Some(found) = regex!(r"^(\S+): line (\d+): (.+)$").and_then(|found| found.captures(line)) {
        return Some(failure(
            Location::of(found.get(1)?.as_str(), found.get(2)?.as_str()),
            None,
            found.get(3)?.as_str(),
        ));
    }
    if let Some(found) = regex!(r"^(\S+\.(?:sh|bash)): (\d+): (.+)$").and_then(|found| found.captures(line)) {
        return Some(failure(
            Location::of(found.get(1)?.as_str(), found.get(2)?.as_str()),
            None,
            found.get(3)?.as_str(),
        ));
    }
    if let Some(found) = regex!(r"^(.+) at (\S+\.\w+) line (\d+)\.$").and_then(|found| found.captures(line)) {
        return Some(failure(
            Location::of(found.get(2)?.as_str(), found.get(3)?.as_str()),
            None,
            found.get(1)?.as_str(),
        ));
    }
    let found = regex!(r"^ninja: error: (\S+):(\d+): (.+)$").and_then(|found| found.captures(line))?;
    Some(failure(Location::of(found.get(1)?.as_str(), found.get(2)?.as_str()), None, found.get(3)?.as_str()))
}

/// Returns the message of a line that looks like an error.
fn message_of(line: &str) -> Option<String> {
    let found = regex!(
        r"^(?:error|Error|ERROR|fatal|FATAL|npm error(?: JSON\.parse| 404| notarget)?|npm ERR!|ninja: error|CMake Error|Coverage failure)(?: [A-Z]+\d+)?[:!]? +(.+)$"
    );
    if let Some(found) = found.and_then(|found| found.captures(line)) {
        let message = found.get(1)?.as_str();
        return Some(if line.starts_with("Coverage") { line.to_string() } else { message.to_string() });
    }
    let whole = regex!(
        r"^(?:make(?:\[\d+\])?: \*\*\* No rule .+|make(?:\[\d+\])?: [^*].*: No such file or directory|\S+: (?:\d+: |line \d+: )?.*(?:command )?not found|Jest: .+ does not meet .+|[\w./-]+: error: .+|[\w./-]+: No module named .+|[\w.]+\.hs: .+|[\w.]+: [\w.]+: .+)$"
    )?;
    whole.is_match(line).then(|| line.to_string())
}
