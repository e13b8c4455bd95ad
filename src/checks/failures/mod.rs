//! Parses the output of failed builds, tests and linters into errors with file, line and message. Each error is listed
//! once with its count, the first real one first. Every reader knows the formats of some tools; recorded outputs of all
//! of them are in tests/outputs. Of an output that no reader knows, the last lines are shown.

use serde::Serialize;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Compiles a regular expression once. The result is none if the expression is invalid, which the tests with recorded
/// outputs would reveal.
macro_rules! regex {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<Option<regex::Regex>> =
            std::sync::LazyLock::new(|| regex::Regex::new($text).ok());
        PATTERN.as_ref()
    }};
}

mod go;
mod javascript;
mod jvm;
mod lint;
mod native;
mod page;
mod placed;
mod prose;
mod python;
mod results;
mod ruby;
mod rust;
mod tap;

use page::Page;

/// One error in an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The path of the file, as it was printed.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The column, from 1.
    pub column: Option<u32>,
    /// The tool's own code for the error: `E0308`, `TS2322`.
    pub code: Option<String>,
    /// The message of the tool.
    pub message: String,
    /// How often the error was printed.
    pub count: u32,
}

/// Returns the errors that the readers find, in the order of the output. Only the most certain ones are kept.
#[must_use]
pub fn failures(output: &str) -> Vec<Failure> {
    let decoded = go::decoded(output);
    let mut page = Page::new(decoded.as_deref().unwrap_or(output));
    // Test results come first, so that text printed by tests is attributed to them.
    for read in [
        rust::results,
        python::pytest,
        python::unittest,
        go::results,
        javascript::results,
        tap::results,
        ruby::results,
        results::results,
        jvm::results,
    ] {
        read(&mut page);
    }
    for read in [
        rust::panics,
        rust::compiler,
        python::tracebacks,
        go::compiler,
        jvm::errors,
        javascript::errors,
        native::errors,
        ruby::errors,
        lint::errors,
        placed::errors,
        prose::errors,
    ] {
        read(&mut page);
    }
    page.into_failures()
}

/// Joins several streams to one output. The last line of one is never merged with the first line of the next.
#[must_use]
pub fn joined(streams: &[String]) -> String {
    let mut output = String::with_capacity(streams.iter().map(|stream| stream.len() + 1).sum());
    for stream in streams {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(stream);
    }
    output
}
/// The longest line of an unknown output that is shown, in characters.
const LONGEST_LINE: usize = 400;

/// The errors in an output, and its last lines in case there are no errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputErrors {
    /// All errors, the first real one first.
    pub found: Vec<Failure>,
    /// The last lines that are not blank.
    end: String,
}

impl OutputErrors {
    /// Parses an output.
    #[must_use]
    pub fn of(output: &str) -> Self {
        const LAST_LINES: usize = 20;
        let mut last: Vec<&str> =
            output.lines().rev().filter(|line| !line.trim().is_empty()).take(LAST_LINES).collect();
        last.reverse();
        let cut = |line: &str| {
            line.char_indices()
                .nth(LONGEST_LINE)
                .map_or_else(|| line.to_string(), |(end, _)| format!("{}…", &line[..end]))
        };
        let end = last.into_iter().map(cut).collect::<Vec<_>>().join("\n");
        Self { found: failures(output), end }
    }

    /// Returns the first errors as text, one per line, or the last lines of an output that no reader knows.
    #[must_use]
    pub fn summary(&self, most: usize) -> String {
        let mut text = String::new();
        for failure in self.found.iter().take(most) {
            let place = match (&failure.file, failure.line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                (Some(file), None) => format!("{file}: "),
                _ => String::new(),
            };
            let code = failure.code.as_ref().map_or_else(String::new, |code| format!("[{code}] "));
            let count = if failure.count > 1 { format!(" (×{})", failure.count) } else { String::new() };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{place}{code}{}{count}", failure.message);
        }
        if self.found.len() > most {
            let _ = writeln!(text, "… and {} more", self.found.len() - most);
        }
        if self.found.is_empty() {
            text.clone_from(&self.end);
        }
        text.trim_end().to_string()
    }

    /// Returns a text that distinguishes this failure from others. It has no numbers, because these can change by
    /// themselves.
    #[must_use]
    pub fn signature(&self) -> String {
        self.summary(usize::MAX).chars().filter(|next| !next.is_ascii_digit()).collect()
    }

    /// Returns a short digest of each of the first errors. It does not include line numbers, which can move.
    #[must_use]
    pub fn digests(&self) -> Vec<String> {
        const MOST: usize = 200;
        let digest = |failure: &Failure| {
            let words: String = failure.message.chars().filter(|next| !next.is_ascii_digit()).collect();
            let mut hash = DefaultHasher::new();
            (&failure.file, &failure.code, words).hash(&mut hash);
            format!("{:08x}", hash.finish() & 0xffff_ffff)
        };
        self.found.iter().take(MOST).map(digest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_a_line_each_and_an_unknown_output_by_its_end() {
        let told = |output: &str| OutputErrors::of(output).summary(5);
        for (output, expected) in [
            ("error[E0308]: mismatched types\n  --> src/a.rs:3:9\n", "src/a.rs:3: [E0308] mismatched types"),
            ("\u{1b}[31ma.c:3:9: error: x\u{1b}[0m", "a.c:3: x"),
            ("a.c:3:9: error: x\na.c:3:9: error: x", "a.c:3: x (×2)"),
            ("one\n\ntwo", "one\ntwo"),
            ("", ""),
        ] {
            assert_eq!(told(output), expected, "{output}");
        }
        let many: Vec<String> = (0..7).map(|line| format!("a.c:{line}:1: error: e{line}")).collect();
        assert!(told(&many.join("\n")).ends_with("… and 2 more"));
    }

    /// A progress line without a line break swallows nothing.
    #[test]
    fn a_stream_without_a_last_line_break_leaves_the_next_one_whole() {
        let streams =
            ["Building ... ".to_string(), "error: one\n --> a.rs:1:1\n\nerror: two\n --> a.rs:2:1\n".to_string()];
        assert_eq!(OutputErrors::of(&joined(&streams)).summary(5), "a.rs:1: one\na.rs:2: two");
    }

    proptest::proptest! {
        #[test]
        fn any_output_is_read_without_a_panic(output in "(error\\[|error: |error TS|--> |FAIL |FAILED |● |not ok 1|  ---|---- a stdout ----|Traceback \\(most recent call last\\):|  File \"a.py\", line 3|E  |=== FAILURES ===|____ a ____|--- FAIL: T|    a_test.go:3: |panic: |    at f \\(a.js:1:2\\)|  1\\) a|Failure/Error: |CMake Error at a:1 \\(|:1:|\\(1,2\\)|\u{1b}\\[|\r|\n|\\PC){0,60}") {
            let _ = OutputErrors::of(&output).summary(3);
        }
    }
}
