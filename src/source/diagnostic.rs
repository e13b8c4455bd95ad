//! Errors and warnings about something that the user wrote, as data; `report` renders them for a terminal.

use super::text::Place;

/// Whether a diagnostic stops the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagnosticSeverity {
    /// Nothing runs until it is fixed.
    Error,
    /// It is reported, and the program continues.
    Warning,
}

/// One error or warning: what, where, why, and what to do. Created only by the constructors in the modules'
/// `errors.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name of the form `module/error`.
    pub code: &'static str,
    /// Whether it is an error or a warning.
    pub severity: DiagnosticSeverity,
    /// What is wrong, in one sentence without a period.
    pub message: String,
    /// The places to show, each with a label; the mistake is in the first one. Empty if it is not in a text.
    pub places: Vec<(Place, String)>,
    /// What to do about it, if there is any advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error that points at no text.
    #[must_use]
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, severity: DiagnosticSeverity::Error, message: message.into(), places: Vec::new(), help: None }
    }

    /// Creates a warning that points at no text.
    #[must_use]
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: DiagnosticSeverity::Warning, ..Self::error(code, message) }
    }

    /// Adds a place with a short label.
    #[must_use]
    pub fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.places.push((place.clone(), label.into()));
        self
    }

    /// Sets the advice on what to do.
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
