//! Pieces of a rendered prompt, and where each comes from.

use crate::source::Place;

/// Where a piece of a prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The template itself, at this place.
    Template(Place),
    /// The skill with this name, at this place.
    Skill(String, Place),
    /// The variable with this name.
    Variable(String),
    /// The variable with this name, whose value only the run knows.
    Late(String),
    /// A note that a value was truncated.
    Note,
    /// A fence that closes one that a value left open.
    Guard,
}

/// A piece of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The text of the piece.
    pub text: String,
    /// Where the piece comes from.
    pub origin: Origin,
    /// For a truncated value: a note with the place of the full text.
    pub(super) note: Option<String>,
}

impl Piece {
    pub(super) fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), origin, note: None }
    }

    /// Creates a piece from a value that is outside the template.
    #[must_use]
    pub fn of(name: &str, text: &str) -> Self {
        Self::new(text, Origin::Variable(name.to_string()))
    }

    /// Returns whether the piece is a value, and not text of the template or of forkhestra.
    pub(super) fn is_value(&self) -> bool {
        matches!(self.origin, Origin::Variable(_) | Origin::Late(_))
    }
}
