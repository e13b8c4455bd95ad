//! Renders diagnostics as text, with the source lines that they are about. The only module that uses miette.

use crate::report::paint::{Paint, printable};
use crate::source::{Diagnostic, DiagnosticSeverity, Place};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode, ThemeCharacters, ThemeStyles,
};
use std::fmt::{self, Write};
use textwrap::{WordSeparator, WordSplitter};

/// The maximum number of diagnostics that are shown. The others are only counted.
const MOST: usize = 30;
/// The longest source line that is shown in full, in bytes. Of a longer line, only the part around the error is shown.
const LONGEST_LINE: usize = 400;

/// A diagnostic in the form that miette needs: control characters are escaped, and only places of its first source are
/// kept.
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    message: String,
    help: Option<String>,
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
}

impl<'a> Shown<'a> {
    fn new(diagnostic: &'a Diagnostic) -> Self {
        // An empty source has nothing to point at.
        let first = diagnostic.places.first().filter(|(place, _)| !place.source.text.trim().is_empty());
        let (mut source, mut labels) = (None, Vec::new());
        if let Some((place, _)) = first {
            let window = Window::around(place);
            source = Some(NamedSource::new(&place.source.name, window.text));
            let here = diagnostic.places.iter().filter(|(other, _)| other.source == place.source);
            labels = here
                .filter_map(|(place, label)| {
                    let (start, length) = shown_span(place);
                    let start = if start >= window.cut_to { start - window.removed } else { start };
                    let visible = window.removed == 0 || place == &first?.0;
                    visible.then(|| LabeledSpan::new(Some(label.clone()), start, length))
                })
                .collect();
        }
        let help = diagnostic.help.as_deref().map(printable);
        Self { diagnostic, message: printable(&diagnostic.message), help, source, labels }
    }
}

/// The text of a source that is shown: all of it, or all but most of one very long line.
struct Window {
    text: String,
    /// The number of bytes that are left out at the start of the long line.
    removed: usize,
    /// The offset in the source at which the shown part of the long line starts.
    cut_to: usize,
}

impl Window {
    fn around(place: &Place) -> Self {
        let text = &place.source.text;
        let at = place.span.start.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        if end - start <= LONGEST_LINE {
            return Self { text: harmless(text), removed: 0, cut_to: 0 };
        }
        let boundary = |mut offset: usize| {
            while !text.is_char_boundary(offset) {
                offset -= 1;
            }
            offset
        };
        let from = boundary(at.saturating_sub(LONGEST_LINE / 2).max(start));
        let to = boundary((at + LONGEST_LINE / 2).min(end));
        let shown = [&text[..start], &text[from..to], &text[end..]].concat();
        Self { text: harmless(&shown), removed: from - start, cut_to: from }
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.diagnostic, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            DiagnosticSeverity::Error => miette::Severity::Error,
            DiagnosticSeverity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

/// Returns the start and the length of the marked text, up to the end of its first line.
fn shown_span(place: &Place) -> (usize, usize) {
    let text = &place.source.text;
    let start = place.span.start.min(text.len());
    let line = text.get(start..place.span.end).and_then(|marked| marked.find('\n'));
    let end = line.map_or(place.span.end, |newline| start + newline);
    (start, end.saturating_sub(start))
}

/// Renders the diagnostics, one after another.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], paint: Paint) -> String {
    let characters = if paint.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let styles = if paint.color { ThemeStyles::ansi() } else { ThemeStyles::none() };
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(paint.width)
        // A command that is copied from an error must not have lost a hyphen or gained a space.
        .with_word_separator(WordSeparator::AsciiSpace)
        .with_word_splitter(WordSplitter::NoHyphenation)
        .with_break_words(false)
        .with_context_lines(1)
        .with_links(false);
    let mut text = String::new();
    for diagnostic in diagnostics.iter().take(MOST) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = handler.render_report(&mut text, &Shown::new(diagnostic));
    }
    if diagnostics.len() > MOST {
        let _ = writeln!(text, "\n… and {} more. Fix these first.", diagnostics.len() - MOST);
    }
    text
}

/// Replaces control characters, except newlines and tabs, with as many spaces as they have bytes, so that offsets stay
/// valid.
fn harmless(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let harmless = !character.is_control() || matches!(character, '\n' | '\t');
            let blanks = if harmless { 0 } else { character.len_utf8() };
            std::iter::repeat_n(' ', blanks).chain(harmless.then_some(character))
        })
        .collect()
}

/// Returns a diagnostic as JSON: its code, severity, message, places and help.
#[must_use]
pub fn diagnostic_json(diagnostic: &Diagnostic) -> serde_json::Value {
    let places = diagnostic.places.iter().map(|(place, label)| {
        let (line, column) = place.source.line_column(place.span.start);
        serde_json::json!({ "file": place.source.name, "line": line, "column": column, "label": label })
    });
    serde_json::json!({
        "code": diagnostic.code,
        "severity": if diagnostic.is_error() { "error" } else { "warning" },
        "message": diagnostic.message,
        "places": places.collect::<serde_json::Value>(),
        "help": diagnostic.help,
    })
}
