//! Sources, spans, and strings that remember where they were written.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A range of bytes in a source.
pub type Span = Range<usize>;

/// A text that the user wrote: a file, or something on the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// The name that the user knows it by: `forge/chains.json`, `command line`.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The directory that relative paths in it start from.
    pub base: PathBuf,
}

impl Source {
    /// Creates a source with this name, whose relative paths start from `base`.
    pub fn new(name: impl Into<String>, text: impl Into<String>, base: &Path) -> Arc<Self> {
        Arc::new(Self { name: name.into(), text: text.into(), base: base.to_path_buf() })
    }

    /// Returns the line and column of a byte offset, both from 1; the column counts characters.
    #[must_use]
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

/// A span in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The source that it is in.
    pub source: Arc<Source>,
    /// The range of bytes in that source.
    pub span: Span,
}

impl Place {
    /// Creates the place of `span` in `source`.
    #[must_use]
    pub fn new(source: &Arc<Source>, span: Span) -> Self {
        Self { source: Arc::clone(source), span }
    }

    /// Creates a place that covers the whole of a source.
    #[must_use]
    pub fn whole(source: &Arc<Source>) -> Self {
        Self::new(source, 0..source.text.len())
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.source.text.contains('\n') {
            let (line, column) = self.source.line_column(self.span.start);
            write!(f, "{}:{line}:{column}", self.source.name)
        } else {
            f.write_str(&self.source.name)
        }
    }
}

/// A string and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The string, with its escapes resolved.
    pub value: String,
    /// Where it was written, without the quotes.
    pub at: Place,
}

impl Text {
    /// Returns the place of a range of the value, or of the whole string if escapes make the two differ.
    #[must_use]
    pub fn place_of(&self, range: Span) -> Place {
        let verbatim = self.at.source.text.get(self.at.span.clone()) == Some(self.value.as_str());
        if verbatim {
            let start = self.at.span.start;
            Place::new(&self.at.source, start + range.start..start + range.end)
        } else {
            self.at.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_counts_characters_not_bytes() {
        let source = Source::new("t", "one\nzwei é x", Path::new("/"));
        let x = source.text.find('x').unwrap_or_default();
        assert_eq!(source.line_column(x), (2, 8));
        assert_eq!(source.line_column(9999), (2, 9));
    }

    #[test]
    fn a_range_of_an_escaped_string_is_the_whole_string() {
        let source = Source::new("t", r#"{"a": "x\ty", "b": "xy"}"#, Path::new("/"));
        let escaped = Text { value: "x\ty".into(), at: Place::new(&source, 7..11) };
        assert_eq!(escaped.place_of(2..3).span, 7..11);
        let verbatim = Text { value: "xy".into(), at: Place::new(&source, 20..22) };
        assert_eq!(verbatim.place_of(1..2).span, 21..22);
    }
}
