//! An output as lines, with the errors found in it and the lines that readers have claimed.

use super::Failure;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// How certain it is that a line is an error and does not only mention one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// It looks like an error: `error: cannot connect, trying again`.
    Likely,
    /// It has the format of a tool, with a place or a reason.
    Sure,
}

/// An output, line by line, without escape sequences.
pub(super) struct Page<'a> {
    pub(super) lines: Vec<Cow<'a, str>>,
    /// Whether a reader of a specific format has claimed a line, for each line. Other readers then find no errors in
    /// it.
    claimed: Vec<bool>,
    found: Vec<(usize, Strength, Failure)>,
    /// Whether an error was found, for each line.
    marked: Vec<bool>,
    /// Whether test results were read. Anything else that looks like an error may have been printed by the tests.
    pub(super) has_results: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(output: &'a str) -> Self {
        let lines: Vec<Cow<'a, str>> = output.lines().map(plain).collect();
        let (claimed, marked) = (vec![false; lines.len()], vec![false; lines.len()]);
        Self { lines, claimed, marked, found: Vec::new(), has_results: false }
    }

    /// Returns a line; empty past the end.
    pub(super) fn line(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", AsRef::as_ref)
    }

    pub(super) fn is_claimed(&self, index: usize) -> bool {
        self.claimed.get(index).copied().unwrap_or(false)
    }

    /// Hides these lines from the readers after this one.
    pub(super) fn claim(&mut self, lines: Range<usize>) {
        let end = lines.end.min(self.claimed.len());
        if lines.start < end {
            self.claimed[lines.start..end].fill(true);
        }
    }

    /// Returns the first of these lines that satisfies a condition.
    pub(super) fn find(&self, lines: Range<usize>, holds: impl Fn(&str) -> bool) -> Option<usize> {
        lines.take_while(|index| *index < self.lines.len()).find(|index| holds(self.line(*index)))
    }

    /// Returns the first of these lines that is not blank.
    pub(super) fn next_words(&self, lines: Range<usize>) -> Option<usize> {
        self.find(lines, |line| !line.trim().is_empty())
    }

    pub(super) fn add(&mut self, index: usize, strength: Strength, failure: Failure) {
        if let Some(marked) = self.marked.get_mut(index) {
            *marked = true;
        }
        self.found.push((index, strength, failure));
    }

    pub(super) fn sure(&mut self, index: usize, failure: Failure) {
        self.add(index, Strength::Sure, failure);
    }

    /// Adds an error that has the format of a tool but may also have been printed by a test.
    pub(super) fn sure_unless_printed(&mut self, index: usize, failure: Failure) {
        let strength = if self.has_results { Strength::Likely } else { Strength::Sure };
        self.add(index, strength, failure);
    }

    pub(super) fn likely(&mut self, index: usize, failure: Failure) {
        self.add(index, Strength::Likely, failure);
    }

    /// Whether an error was already found in this line.
    pub(super) fn has(&self, index: usize) -> bool {
        self.marked.get(index).copied().unwrap_or(false)
    }

    /// Whether any certain error has been found so far.
    pub(super) fn is_sure(&self) -> bool {
        self.found.iter().any(|(_, strength, _)| *strength == Strength::Sure)
    }

    /// Returns the most certain errors in the order of the output, each once with its count.
    pub(super) fn into_failures(mut self) -> Vec<Failure> {
        let best = self.found.iter().map(|(_, strength, _)| *strength).max();
        self.found.retain(|(_, strength, _)| Some(*strength) == best);
        self.found.sort_by_key(|(index, ..)| *index);
        let mut known = std::collections::HashMap::new();
        let mut failures: Vec<Failure> = Vec::new();
        for (_, _, failure) in self.found {
            let key = (failure.file.clone(), failure.line, failure.code.clone(), failure.message.clone());
            let index = *known.entry(key).or_insert(failures.len());
            match failures.get_mut(index) {
                Some(same) => same.count += 1,
                None => failures.push(failure),
            }
        }
        failures
    }
}

/// Returns a line without escape sequences, overwritten text and trailing spaces.
fn plain(line: &str) -> Cow<'_, str> {
    // Text before a carriage return was overwritten.
    let line = line.trim_end();
    let line = line.rsplit('\r').next().unwrap_or(line);
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(next) = characters.next() {
        if next == '\u{1b}' {
            if characters.next() == Some('[') {
                let _ = characters.by_ref().find(char::is_ascii_alphabetic);
            }
        } else {
            plain.push(next);
        }
    }
    Cow::Owned(plain.trim_end().to_string())
}

/// Creates a failure; `place` is its file with its line and column, as far as they are known.
pub(super) fn failure(place: Option<Location>, code: Option<&str>, message: &str) -> Failure {
    /// The longest message, in characters.
    const LONGEST: usize = 400;
    let message = message.trim();
    let message = match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_string(),
    };
    let (file, line, column) = match place {
        Some(place) => (Some(place.file), place.line, place.column),
        None => (None, None, None),
    };
    Failure { file, line, column, code: code.map(ToString::to_string), message, count: 1 }
}

/// A place in a file, as it was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) file: String,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
}

impl Location {
    /// Creates a location from a file and a line.
    pub(super) fn of(file: &str, line: &str) -> Option<Self> {
        Some(Self {
            file: file.strip_prefix("file://").unwrap_or(file).to_string(),
            line: Some(line.parse().ok()?),
            column: None,
        })
    }

    /// Creates a location from a file alone.
    pub(super) fn file(file: &str) -> Self {
        Self { file: file.strip_prefix("file://").unwrap_or(file).to_string(), line: None, column: None }
    }

    /// Parses `src/a.rs:3:9` or `src/a.rs:3`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text
            .trim()
            .trim_end_matches([':', ',', ')', ']', ' ', '\'', '"'])
            .trim_start_matches(['(', '[', '\'', '"']);
        let (rest, last) = text.rsplit_once(':')?;
        let last: u32 = last.parse().ok()?;
        let pair = rest.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let (file, line, column) = match pair {
            Some((file, line)) => (file, line, Some(last)),
            None => (rest, last, None),
        };
        let file = file.strip_prefix("file://").unwrap_or(file);
        (!file.is_empty()).then(|| Self { file: file.to_string(), line: Some(line), column })
    }

    /// Whether the file has this extension: `go`, `py`.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.file).extension().is_some_and(|found| found == extension)
    }

    /// Whether the file belongs to the project, not to a tool or a library.
    pub(super) fn is_own(&self) -> bool {
        const OTHERS: [&str; 21] = [
            "node_modules/",
            "site-packages/",
            "dist-packages/",
            "/lib/python",
            "node:",
            "<",
            "/rustc/",
            "/.cargo/",
            "/usr/lib/",
            "/usr/share/",
            "/usr/local/go/",
            "/libexec/",
            "/go/pkg/mod/",
            "_pytest/",
            "vendor/",
            "vendor_ruby/",
            "/lib/std/",
            "ext:",
            "../sysdeps/",
            "bun:",
            "/_virtualenv.py",
        ];
        !OTHERS.iter().any(|other| self.file.contains(other) && (*other != "<" || self.file.starts_with('<')))
            && !self.file.starts_with("internal/")
    }
}

/// Parses a frame of a JavaScript stack: `at f (src/a.js:3:9)`, `at file:///a.js:3:9`, `❯ f src/a.js:3:9`.
pub(super) fn frame(line: &str) -> Option<Location> {
    let line = line.trim_start().trim_start_matches("# ").trim_start();
    let rest = line.strip_prefix("at ").or_else(|| line.strip_prefix("❯ "))?;
    let place = match rest.rsplit_once('(') {
        Some((_, inside)) => inside,
        None => rest.rsplit(' ').next()?,
    };
    Location::parse(place)
}

/// Returns the first frame of a JavaScript stack in these lines that is in the project.
pub(super) fn own_frame(page: &Page<'_>, lines: Range<usize>) -> Option<Location> {
    lines
        .take_while(|index| *index < page.lines.len())
        .find_map(|index| frame(page.line(index)).filter(Location::is_own))
}

/// Returns the indentation of a line, in bytes.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Joins the text of these lines.
pub(super) fn joined_lines(page: &Page<'_>, lines: Range<usize>) -> String {
    lines.map(|at| page.line(at).trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
