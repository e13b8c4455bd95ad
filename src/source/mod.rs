//! Text with places in it, and what is said about it. Imports nothing of ours.

mod diagnostic;
mod files;
mod nearest;
mod sha256;
mod text;

pub use diagnostic::{Diagnostic, DiagnosticSeverity};
pub use files::{COLOR, Env, Files, Kind, KnownFiles};
pub use nearest::nearest;
pub use sha256::{sha256, sha256_json};
pub use text::{Place, Source, Span, Text};
