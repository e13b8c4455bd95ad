//! An entry of the config, with the layer that it comes from.

use crate::chain::errors;
use crate::chain::json5::Member;
use crate::chain::name::check_name;
use crate::source::{Diagnostic, Place, Source, Span};
use std::sync::Arc;

/// The layer that an entry comes from. Later layers override earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A file of another tool in the project.
    Discovered,
    /// The embedded config of forkhestra.
    BuiltIn,
    /// The user's own config.
    User,
    /// The project's config.
    Project,
}

impl std::fmt::Display for LayerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Discovered => "discovered",
            Self::BuiltIn => "built-in",
            Self::User => "user",
            Self::Project => "project",
        })
    }
}

/// A config file and its layer.
#[derive(Debug, Clone)]
pub struct LayerSource {
    /// The layer of the file.
    pub kind: LayerKind,
    /// The text of the file.
    pub source: Arc<Source>,
}

/// An entry of the config with its origin and its own errors.
#[derive(Debug, Clone)]
pub struct Entry<T> {
    /// The value, as far as it could be read.
    pub value: T,
    /// The place of the entry's key.
    pub at: Place,
    /// The layer that the entry comes from.
    pub layer: LayerKind,
    /// The errors in this entry.
    pub faults: Vec<Diagnostic>,
}

impl<T> Entry<T> {
    /// An entry with this value, at the place of its key.
    pub(super) fn of(layer: &LayerSource, key: &Span, value: T, faults: Vec<Diagnostic>) -> Self {
        Self { value, at: Place::new(&layer.source, key.clone()), layer: layer.kind, faults }
    }
}

/// Returns the errors in an entry's name. They belong to that entry and do not affect any other.
pub(super) fn name_faults(source: &Arc<Source>, member: &Member<'_>) -> Vec<Diagnostic> {
    let at = Place::new(source, member.key_span.clone());
    if let Some(first) = &member.duplicates {
        return vec![errors::duplicate_key(&at, &member.key, &Place::new(source, first.clone()))];
    }
    check_name(&member.key).err().map(|fault| errors::bad_config_name(&at, &member.key, &fault)).into_iter().collect()
}
