//! Rendering, in one pass: what a value holds is never looked at as template text.

use super::fences::protect;
use super::load::{Template, TemplatePart};
use super::parse::TemplateNode;
use super::piece::{Origin, Piece};
use crate::source::Place;
use std::sync::Arc;

/// The most that templates and skills may come to, in bytes; values aside (C14).
const LARGEST: usize = 1 << 20;
/// The most references to skills that are followed in one rendering.
const MOST_SKILLS: usize = 100_000;

/// What stands for a variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Value {
    /// Its text, verbatim.
    pub text: String,
    /// Where the whole is, if this is not it.
    pub note: Option<String>,
}

impl Value {
    /// A text that is whole.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), note: None }
    }
}

/// The values of variables; none for one that only a run can know, whose name then stands in the text.
pub type Values<'a> = dyn Fn(&str) -> Option<Value> + 'a;

/// A rendered prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Its pieces, in order.
    pub pieces: Vec<Piece>,
}

impl Rendered {
    /// The prompt.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A sum over what is no number.
    #[error("{place}: `{name}` is no whole number: {value}")]
    NotANumber {
        /// Where.
        place: String,
        /// The variable.
        name: String,
        /// What it is.
        value: String,
    },
    /// Templates and skills come to more than may be.
    #[error("the template and its skills come to more than {LARGEST} bytes")]
    TooLarge,
    /// What cannot be cut is more than may be.
    #[error("context too large: the template alone has {0} characters")]
    ContextTooLarge(usize),
}

impl Template {
    /// Renders it.
    ///
    /// # Errors
    /// When a sum is none, or it grows past every bound.
    pub fn render(&self, values: &Values<'_>) -> Result<Rendered, TemplateError> {
        let mut renderer = Renderer { template: self, values, pieces: Vec::new(), bytes: 0, skills: 0 };
        renderer.part(&self.main, None)?;
        Ok(Rendered { pieces: protect(renderer.pieces) })
    }
}

struct Renderer<'a> {
    template: &'a Template,
    values: &'a Values<'a>,
    pieces: Vec<Piece>,
    bytes: usize,
    skills: usize,
}

impl Renderer<'_> {
    fn part(&mut self, part: &Arc<TemplatePart>, skill: Option<&str>) -> Result<(), TemplateError> {
        self.nodes(part, &part.nodes, skill)
    }

    fn nodes(
        &mut self,
        part: &Arc<TemplatePart>,
        nodes: &[TemplateNode],
        skill: Option<&str>,
    ) -> Result<(), TemplateError> {
        for node in nodes {
            match node {
                TemplateNode::Text(text, span) => {
                    self.bytes += text.len();
                    if self.bytes > LARGEST {
                        return Err(TemplateError::TooLarge);
                    }
                    let place = Place::new(&part.source, span.clone());
                    let origin = match skill {
                        Some(name) => Origin::Skill(name.to_string(), place),
                        None => Origin::Template(place),
                    };
                    self.pieces.push(Piece::new(text.clone(), origin));
                }
                TemplateNode::Variable { name, plus, span } => {
                    let piece = self.variable(name, *plus, &Place::new(&part.source, span.clone()))?;
                    self.pieces.push(piece);
                }
                TemplateNode::Skill { name, .. } => {
                    self.skills += 1;
                    if self.skills > MOST_SKILLS {
                        return Err(TemplateError::TooLarge);
                    }
                    // Loading has found them all.
                    if let Some(skill) = self.template.skills.get(name).cloned() {
                        self.part(&skill, Some(name))?;
                    }
                }
                TemplateNode::If { name, then, otherwise, .. } => {
                    let value = (self.values)(name).map_or_else(String::new, |value| value.text);
                    let holds = !matches!(value.trim(), "" | "0" | "false");
                    self.nodes(part, if holds { then } else { otherwise }, skill)?;
                }
            }
        }
        Ok(())
    }

    fn variable(&self, name: &str, plus: i64, place: &Place) -> Result<Piece, TemplateError> {
        let Some(value) = (self.values)(name) else {
            // As it is written: a name that only a run knows, or, leniently, one that nobody knows.
            let text = place.source.text.get(place.span.clone()).unwrap_or_default();
            return Ok(Piece::new(text, Origin::Late(name.to_string())));
        };
        let mut text = value.text;
        if plus != 0 {
            let sum = text.trim().parse::<i64>().ok().and_then(|number| number.checked_add(plus));
            let Some(sum) = sum else {
                return Err(TemplateError::NotANumber {
                    place: place.to_string(),
                    name: name.to_string(),
                    value: text,
                });
            };
            text = sum.to_string();
        }
        if let Some(prefix) = self.quote_prefix() {
            text = text.replace('\n', &format!("\n{prefix}"));
        }
        Ok(Piece { note: value.note, ..Piece::new(text, Origin::Variable(name.to_string())) })
    }

    /// What stands before a value on its line, if that is a block quote's signs: every line of the value gets them (C7).
    fn quote_prefix(&self) -> Option<String> {
        let mut line = String::new();
        for piece in self.pieces.iter().rev() {
            if let Some(newline) = piece.text.rfind('\n') {
                line.insert_str(0, &piece.text[newline + 1..]);
                break;
            }
            line.insert_str(0, &piece.text);
        }
        let signs = line.len() - line.trim_start_matches(['>', ' ', '\t']).len();
        line.truncate(signs);
        line.contains('>').then_some(line)
    }
}
