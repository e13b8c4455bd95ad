//! Diagnostics and failures in words, with the lines they are about: the only place that knows miette.

use super::paint::Paint;
use crate::source::{Diagnostic, Place, Severity};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode, ThemeCharacters, ThemeStyles,
};
use std::fmt;

/// One diagnostic as miette wants it: the places of the first source.
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: Option<NamedSource<String>>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.diagnostic, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.diagnostic.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let source = &self.diagnostic.places.first()?.0.source;
        let here = self.diagnostic.places.iter().filter(move |(place, _)| place.source == *source);
        Some(Box::new(here.map(|(place, label)| LabeledSpan::new_with_span(Some(label.clone()), shown_span(place)))))
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
    for diagnostic in diagnostics {
        if !text.is_empty() {
            text.push('\n');
        }
        let place = diagnostic.places.first();
        // A label under an empty text would be a picture of nothing.
        let place = place.filter(|(place, _)| !place.source.text.trim().is_empty());
        let source = place.map(|(place, _)| NamedSource::new(&place.source.name, printable(&place.source.text)));
        let shown = Shown { diagnostic, source };
        // Writing to a String cannot fail.
        let _ = handler.render_report(&mut text, &shown);
    }
    text
}

/// A text that cannot drive the terminal: control characters become blanks of the same size in bytes.
fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|character| {
            let harmless = !character.is_control() || matches!(character, '\n' | '\t' | '\r');
            let blanks = if harmless { 0 } else { character.len_utf8() };
            std::iter::repeat_n(' ', blanks).chain(harmless.then_some(character))
        })
        .collect()
}
