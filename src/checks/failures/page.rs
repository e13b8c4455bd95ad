//! An output as lines, what was found in it, and what of it is somebody's own words.

use super::Failure;
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// How sure it is that something is an error, and not a word about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// It looks like one: `error: cannot connect, trying again`.
    Likely,
    /// It has the form of its tool, with its place or its reason.
    Sure,
}

/// An output, line by line, without escape sequences.
pub(super) struct Page<'a> {
    pub(super) lines: Vec<Cow<'a, str>>,
    /// Lines that a reader of a tool's own form has read: nothing else in them is an error.
    claimed: Vec<bool>,
    found: Vec<(usize, Strength, Failure)>,
    /// Lines in which something was found.
    marked: Vec<bool>,
    /// Whether the results of tests were read: what else looks like an error may be what they printed.
    pub(super) has_results: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(output: &'a str) -> Self {
        let lines: Vec<Cow<'a, str>> = output.lines().map(plain).collect();
        let (claimed, marked) = (vec![false; lines.len()], vec![false; lines.len()]);
        Self { lines, claimed, marked, found: Vec::new(), has_results: false }
    }

    /// A line; empty past the end.
    pub(super) fn line(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", AsRef::as_ref)
    }

    pub(super) fn is_claimed(&self, index: usize) -> bool {
        self.claimed.get(index).copied().unwrap_or(false)
    }

    /// Leaves these lines out for every reader after this one.
    pub(super) fn claim(&mut self, lines: Range<usize>) {
        let end = lines.end.min(self.claimed.len());
        if lines.start < end {
            self.claimed[lines.start..end].fill(true);
        }
    }

    /// The first line from here, before `end`, for which this holds.
    pub(super) fn find(&self, lines: Range<usize>, holds: impl Fn(&str) -> bool) -> Option<usize> {
        lines.take_while(|index| *index < self.lines.len()).find(|index| holds(self.line(*index)))
    }

    /// The first line from here, before `end`, that is not blank.
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

    /// An error by its form that a test may have printed as well.
    pub(super) fn sure_unless_printed(&mut self, index: usize, failure: Failure) {
        let strength = if self.has_results { Strength::Likely } else { Strength::Sure };
        self.add(index, strength, failure);
    }

    pub(super) fn likely(&mut self, index: usize, failure: Failure) {
        self.add(index, Strength::Likely, failure);
    }

    /// Whether something was found in this line already.
    pub(super) fn has(&self, index: usize) -> bool {
        self.marked.get(index).copied().unwrap_or(false)
    }

    /// Whether anything that is sure was found so far.
    pub(super) fn is_sure(&self) -> bool {
        self.found.iter().any(|(_, strength, _)| *strength == Strength::Sure)
    }

    /// What was found with most certainty, in the order of the output, each once with its count.
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

/// A line without escape sequences and control characters, and without blanks at its end.
fn plain(line: &str) -> Cow<'_, str> {
    // What stands before a carriage return was written over.
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

/// A failure; `place` is its file with its line and column, as far as they are known.
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

/// Where something is, as it was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) file: String,
    pub(super) line: Option<u32>,
    pub(super) column: Option<u32>,
}

impl Location {
    /// A file and a line.
    pub(super) fn of(file: &str, line: &str) -> Option<Self> {
        Some(Self {
            file: file.strip_prefix("file://").unwrap_or(file).to_string(),
            line: Some(line.parse().ok()?),
            column: None,
        })
    }

    /// A file alone.
    pub(super) fn file(file: &str) -> Self {
        Self { file: file.strip_prefix("file://").unwrap_or(file).to_string(), line: None, column: None }
    }

    /// `src/a.rs:3:9`, `src/a.rs:3`.
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

    /// Whether the file's name ends so: `go`, `py`.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.file).extension().is_some_and(|found| found == extension)
    }

    /// Whether the file is of the project, and not of a tool or a library.
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

/// The place of a line of a JavaScript stack: `at f (src/a.js:3:9)`, `at file:///a.js:3:9`, `❯ f src/a.js:3:9`.
pub(super) fn frame(line: &str) -> Option<Location> {
    let line = line.trim_start().trim_start_matches("# ").trim_start();
    let rest = line.strip_prefix("at ").or_else(|| line.strip_prefix("❯ "))?;
    let place = match rest.rsplit_once('(') {
        Some((_, inside)) => inside,
        None => rest.rsplit(' ').next()?,
    };
    Location::parse(place)
}

/// The first own frame of a JavaScript stack in these lines.
pub(super) fn own_frame(page: &Page<'_>, lines: Range<usize>) -> Option<Location> {
    lines
        .take_while(|index| *index < page.lines.len())
        .find_map(|index| frame(page.line(index)).filter(Location::is_own))
}

/// How far a line is set in, in blanks.
pub(super) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// What stands between two lines, joined.
pub(super) fn words(page: &Page<'_>, lines: Range<usize>) -> String {
    lines.map(|at| page.line(at).trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
