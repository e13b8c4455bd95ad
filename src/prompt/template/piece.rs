//! Pieces of a rendered prompt, and where each comes from.

use crate::source::Place;

/// Where a piece of a prompt comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The template.
    Template(Place),
    /// A skill.
    Skill(String, Place),
    /// A variable.
    Variable(String),
    /// A variable that only a run can know.
    Late(String),
    /// A note that a value was cut.
    Note,
    /// A fence that a value had left open.
    Guard,
}

/// A piece of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its text.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
    /// Where the whole is, if this is a value that was cut.
    pub(super) note: Option<String>,
}

impl Piece {
    pub(super) fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), origin, note: None }
    }

    /// A value that stands outside of the template.
    #[must_use]
    pub fn of(name: &str, text: &str) -> Self {
        Self::new(text, Origin::Variable(name.to_string()))
    }

    /// Whether it is somebody's value, and no text of ours or of the template.
    pub(super) fn is_value(&self) -> bool {
        matches!(self.origin, Origin::Variable(_) | Origin::Late(_))
    }
}
