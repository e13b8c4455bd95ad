//! What is wrong with something the user wrote, as data; `report` turns it into words on a terminal.

use super::text::Place;

/// Whether a diagnostic stops the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticSeverity {
    /// Nothing runs until it is mended.
    Error,
    /// Said, and gone past.
    Warning,
}

/// One fault: what, where, why, and what to do. Made only by the constructors in the rooms' `errors.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name, `room/fault`.
    pub code: &'static str,
    /// Error or warning.
    pub severity: DiagnosticSeverity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where; the first place is the fault's own. Empty when it stands in no text.
    pub places: Vec<(Place, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error that stands in no text.
    #[must_use]
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, severity: DiagnosticSeverity::Error, message: message.into(), places: Vec::new(), help: None }
    }

    /// A warning that stands in no text.
    #[must_use]
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: DiagnosticSeverity::Warning, ..Self::error(code, message) }
    }

    /// The same, pointing at a place with a short label.
    #[must_use]
    pub fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.places.push((place.clone(), label.into()));
        self
    }

    /// The same, with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether it stops the program.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == DiagnosticSeverity::Error
    }
}
