//! The template language. A template is parsed first, then rendered in one pass; values are never parsed.

mod errors;
mod fences;
mod front;
mod load;
mod parse;
mod piece;
mod render;
mod sizes;
mod variables;

pub use load::{Template, TemplateDirs, built_in_files, load, template_of};
pub use parse::Syntax;
pub use piece::{Origin, Piece};
pub use render::{Rendered, TemplateError, Value, Values, render_template};
pub use sizes::{TemplateCut, cut, fit};
pub use variables::VARIABLES;

#[cfg(test)]
mod tests;
