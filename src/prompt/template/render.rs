//! Renders templates in one pass: a value is never parsed as template text.

use super::fences::protect;
use super::load::{Template, TemplatePart};
use super::parse::TemplateNode;
use super::piece::{Origin, Piece};
use crate::source::Place;
use std::sync::Arc;

/// The largest size of a template with its skills, in bytes, without values.
const LARGEST: usize = 1 << 20;
/// The most references to skills that one rendering follows.
const MOST_SKILLS: usize = 100_000;

/// The value of a variable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Value {
    /// The text, inserted verbatim.
    pub text: String,
    /// A note with the place of the full text, if the text was truncated.
    pub note: Option<String>,
}

impl Value {
    /// Creates a value that is not truncated.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), note: None }
    }
}

/// Returns the value of a variable; `None` for one that only the run knows, whose name is then left in the text.
pub type Values<'a> = dyn Fn(&str) -> Option<Value> + 'a;

/// A rendered prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
}

impl Rendered {
    /// Returns the text of the prompt.
    #[must_use]
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A sum with a value that is not a whole number.
    #[error("{place}: `{name}` is not a whole number: {value}")]
    NotANumber {
        /// The place of the tag in the template.
        place: String,
        /// The name of the variable.
        name: String,
        /// The value of the variable.
        value: String,
    },
    /// The template and its skills exceed the size limit.
    #[error("the template and its skills have more than {LARGEST} bytes")]
    TooLarge,
    /// The parts that cannot be cut exceed the size limit.
    #[error("context too large: the template alone has {0} characters")]
    ContextTooLarge(usize),
}

/// Renders a template.
///
/// # Errors
/// When a sum has a value that is not a number, or the result exceeds a limit.
pub fn render_template(template: &Template, values: &Values<'_>) -> Result<Rendered, TemplateError> {
    let mut renderer = Renderer { template, values, pieces: Vec::new(), bytes: 0, skills: 0 };
    renderer.part(&template.main, None)?;
    Ok(Rendered { pieces: protect(renderer.pieces) })
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
                    // Loading has found all skills.
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
            // Left as written: a name that only the run knows or, in lenient mode, an unknown name.
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

    /// Returns the block quote prefix before a value on its line. Every line of the value gets the same prefix.
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
