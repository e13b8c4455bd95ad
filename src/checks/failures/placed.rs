//! Errors on one line with their place: gcc, clang, javac, mypy, tsc, flake8, and many others.

use super::Failure;
use super::page::{Location, Page, Strength, failure};
use regex::{Captures, Regex, RegexSet};
use std::sync::LazyLock;

/// The formats of such lines, with the named groups `file`, `line`, `column`, `code` and `message`.
const FORMS: [(&str, Strength); 14] = [
    // gcc, clang, javac, mypy, zig, shellcheck, meson
    (
        r"^(?P<file>[^\s:][^:]*?):(?P<line>\d+):(?:(?P<column>\d+):)? (?:[Ff]atal |runtime )?(?:error|ERROR|Error)(?:\[(?P<code>\w+)\])?: (?P<message>.+)$",
        Strength::Sure,
    ),
    // tsc, vue-tsc
    (r"^(?P<file>\S+)\((?P<line>\d+),(?P<column>\d+)\): error (?P<code>TS\d+): (?P<message>.+)$", Strength::Sure),
    (r"^(?P<file>\S+):(?P<line>\d+):(?P<column>\d+) - error (?P<code>TS\d+): (?P<message>.+)$", Strength::Sure),
    // pyright
    (r"^\s*(?P<file>\S+):(?P<line>\d+):(?P<column>\d+) - error: (?P<message>.+)$", Strength::Sure),
    // nim, and MSVC
    (
        r"^(?P<file>\S+)\((?P<line>\d+),? ?(?P<column>\d+)?\):? (?:[Ee]rror)(?: (?P<code>[A-Z]+\d+))?: (?P<message>.+)$",
        Strength::Sure,
    ),
    // pylint: errors, then other findings
    (r"^(?P<file>\S+):(?P<line>\d+):(?P<column>\d+): (?P<code>[EF]\d{4}): (?P<message>.+)$", Strength::Sure),
    (r"^(?P<file>\S+):(?P<line>\d+):(?P<column>\d+): (?P<code>[CRW]\d{4}): (?P<message>.+)$", Strength::Likely),
    // flake8, ruff
    (r"^(?P<file>\S+):(?P<line>\d+):(?P<column>\d+): (?P<code>[A-Z]{1,4}\d{3,4}) (?P<message>.+)$", Strength::Sure),
    // rubocop
    (r"^(?P<file>\S+):(?P<line>\d+):(?P<column>\d+): [CRWEF]: (?P<message>.+)$", Strength::Sure),
    // codespell
    (r"^(?P<file>\S+):(?P<line>\d+): (?P<message>\S+ ==> .+)$", Strength::Sure),
    // luacheck
    (r"^ {4}(?P<file>\S+\.lua):(?P<line>\d+):(?P<column>\d+): (?P<message>.+)$", Strength::Sure),
    // make; ruby; gofmt and others that print the message after the place
    (r"^(?P<file>\S+):(?P<line>\d+): \*\*\* (?P<message>.+)$", Strength::Sure),
    (
        r"^(?P<file>\S+):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<message>syntax error,? .+|unexpected .+|Syntax error: .+)$",
        Strength::Sure,
    ),
    // Elixir
    (r"^\*\* \(\w+Error\) (?P<file>\S+?):(?P<line>\d+)(?::(?P<column>\d+))?: (?P<message>.+)$", Strength::Sure),
];

/// The compiled formats. The set tells in one pass whether any of them matches.
struct Patterns {
    set: RegexSet,
    each: Vec<(Regex, Strength)>,
}

/// None if one of the expressions is invalid, which the tests with recorded outputs would reveal.
static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let each = FORMS.iter().map(|(form, strength)| Some((Regex::new(form).ok()?, *strength)));
    Some(Patterns { set: RegexSet::new(FORMS.iter().map(|(form, _)| form)).ok()?, each: each.collect::<Option<_>>()? })
});

/// Reads all errors on one line with their place.
pub(super) fn errors(page: &mut Page<'_>) {
    let Some(patterns) = &*PATTERNS else { return };
    for index in 0..page.lines.len() {
        let line = page.line(index);
        // Most lines have neither of these characters, so they are skipped quickly.
        if page.is_claimed(index) || !line.contains([':', ')']) {
            continue;
        }
        let Some((pattern, strength)) = patterns.set.matches(line).iter().next().map(|form| &patterns.each[form])
        else {
            continue;
        };
        let Some((place, found)) = pattern.captures(line).and_then(|found| of(&found)) else { continue };
        // Go's compiler does not print lines like these, so they are from a log. So are times of day.
        let is_time = regex!(r"^\S*\d{1,4}-\d\d").is_some_and(|time| time.is_match(&place.file));
        let is_file = place.file.contains(char::is_alphabetic) && !place.file.contains(' ') && !is_time;
        if is_file && !place.has_extension("go") {
            page.add(index, *strength, found);
        }
    }
}

/// Returns the place of an error, and the error.
fn of(found: &Captures<'_>) -> Option<(Location, Failure)> {
    let get = |name: &str| found.name(name).map(|text| text.as_str());
    let mut place = Location::of(get("file")?, get("line")?)?;
    place.column = get("column").and_then(|column| column.parse().ok());
    Some((place.clone(), failure(Some(place), get("code"), get("message")?)))
}
