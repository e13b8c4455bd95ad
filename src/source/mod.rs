//! Source text with places in it, and diagnostics about it. Imports no other module of this crate.

mod counted;
mod diagnostic;
mod files;
mod known_programs;
mod markdown_head;
mod names;
mod nearest;
mod sha256;
mod text;

pub use counted::counted;
pub use diagnostic::{Diagnostic, DiagnosticSeverity};
pub use files::{COLOR, Env, Files, Kind, KnownFiles};
pub use known_programs::KnownPrograms;
pub use markdown_head::MarkdownHead;
pub(crate) use names::names;
pub use nearest::nearest;
pub use sha256::{hexadecimal, sha256, sha256_json};
pub use text::{Place, Source, Span, Text};
