//! Diagnostics and failures in words, with the lines they are about: the only place that knows miette.

use crate::report::paint::{Paint, printable};
use crate::source::{Diagnostic, DiagnosticSeverity, Place};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode, ThemeCharacters, ThemeStyles,
};
use std::fmt::{self, Write};

/// More are counted, not shown: nobody reads them at once.
const MOST: usize = 30;
/// The longest line that is shown whole, in bytes; of a longer one only what is around the fault.
const LONGEST_LINE: usize = 400;

/// One diagnostic as miette wants it: its words made harmless, and the places of its first source.
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    message: String,
    help: Option<String>,
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
}

impl<'a> Shown<'a> {
    fn new(diagnostic: &'a Diagnostic) -> Self {
        // A label under an empty text would be a picture of nothing.
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

/// A source to be shown: all of it, or without most of a very long line.
struct Window {
    text: String,
    /// How many bytes are left out, and up to where in the source.
    removed: usize,
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

/// A span that is not empty, where the text has anything to point at, and that stays on its first line.
fn shown_span(place: &Place) -> (usize, usize) {
    let text = &place.source.text;
    let start = place.span.start.min(text.len());
    let line = text.get(start..place.span.end).and_then(|marked| marked.find('\n'));
    let end = line.map_or(place.span.end, |newline| start + newline);
    (start, end.saturating_sub(start))
}

/// All diagnostics, one after the other.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], paint: Paint) -> String {
    let characters = if paint.unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    let styles = if paint.color { ThemeStyles::ansi() } else { ThemeStyles::none() };
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(paint.width)
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
        let _ = writeln!(text, "\n… and {} more. Mend these first.", diagnostics.len() - MOST);
    }
    text
}

/// A text that cannot drive the terminal: control characters become blanks of the same size in bytes.
fn harmless(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let harmless = !character.is_control() || matches!(character, '\n' | '\t');
            let blanks = if harmless { 0 } else { character.len_utf8() };
            std::iter::repeat_n(' ', blanks).chain(harmless.then_some(character))
        })
        .collect()
}

/// An error for machines: its code, what is wrong, every place, what to do.
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
