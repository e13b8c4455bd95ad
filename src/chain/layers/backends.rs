//! The backends of a config. One that is built in is read when it is first asked for.

use super::entry::{Entry, LayerKind, LayerSource, name_faults};
use crate::chain::backend::Backend;
use crate::chain::json5::{Member, Node, UnreadMember, parse_part};
use crate::chain::keys::BACKEND;
use crate::chain::output_rules::OutputRules;
use crate::chain::read;
use crate::chain::reader::Reader;
use crate::chain::validate::check;
use crate::source::{Diagnostic, Place, Source, Span};
use indexmap::IndexMap;
use std::sync::{Arc, OnceLock};

/// The backend of the demo. It is not an agent, and no message offers it.
const DEMO: &str = "demo";

/// The backends of a config by name, merged key by key, in the order in which they are searched for.
#[derive(Debug, Clone, Default)]
pub struct Backends(IndexMap<String, Slot>);

/// A backend, which may not have been read yet.
#[derive(Debug, Clone)]
enum Slot {
    Read(Entry<Backend>),
    Unread { layer: LayerSource, at: Place, value: Span, read: OnceLock<Entry<Backend>> },
}

impl Slot {
    fn at(&self) -> &Place {
        match self {
            Self::Read(entry) => &entry.at,
            Self::Unread { at, .. } => at,
        }
    }

    fn entry(&self) -> &Entry<Backend> {
        match self {
            Self::Read(entry) => entry,
            Self::Unread { layer, at, value, read } => read.get_or_init(|| {
                let mut faults = Vec::new();
                let backend = match parse_part(&layer.source, value.clone()) {
                    Ok(node) => backend(&layer.source, &node, &mut faults),
                    Err(fault) => {
                        faults.push(fault);
                        Backend::default()
                    }
                };
                Entry { value: backend, at: at.clone(), layer: layer.kind, faults }
            }),
        }
    }
}

impl Backends {
    /// Returns the backend with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Entry<Backend>> {
        self.0.get(name).map(Slot::entry)
    }

    /// Returns the backend with this name, otherwise with this alias, and its name.
    #[must_use]
    pub fn called(&self, called: &str) -> Option<(&str, &Entry<Backend>)> {
        match self.0.get_key_value(called) {
            Some((name, slot)) => Some((name, slot.entry())),
            None => self.iter().find(|(_, entry)| entry.value.aliases.iter().flatten().any(|alias| alias == called)),
        }
    }

    /// Whether there is a backend with this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns all backends with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Entry<Backend>)> {
        self.0.iter().map(|(name, slot)| (name.as_str(), slot.entry()))
    }

    /// Returns the names of all backends but that of the demo, and the places of their keys.
    pub fn offered(&self) -> impl Iterator<Item = (&str, &Place)> {
        self.0.iter().filter(|(name, _)| *name != DEMO).map(|(name, slot)| (name.as_str(), slot.at()))
    }

    /// Adds the backends of a layer whose values have not been read.
    pub(super) fn add_unread(&mut self, layer: &LayerSource, members: Vec<UnreadMember<'_>>) {
        for UnreadMember { key, key_span, value } in members {
            let at = Place::new(&layer.source, key_span);
            let slot = Slot::Unread { layer: layer.clone(), at, value, read: OnceLock::new() };
            self.0.insert(key.to_string(), slot);
        }
    }

    /// Adds an entry of a layer. One that refines a backend keeps its position.
    pub(super) fn add(&mut self, layer: &LayerSource, member: &Member<'_>) {
        let mut faults = name_faults(&layer.source, member);
        let empty = || Entry::of(layer, &member.key_span, Backend::default(), Vec::new());
        let earlier = self.0.get(member.key.as_ref()).map_or_else(empty, |slot| slot.entry().clone());
        let entry = if member.duplicates.is_some() {
            faults.splice(0..0, earlier.faults);
            Entry { faults, ..earlier }
        } else {
            let value = backend(&layer.source, &member.node, &mut faults);
            faults.extend(earlier.faults);
            let value = value.or(earlier.value, layer.kind == LayerKind::Project);
            Entry::of(layer, &member.key_span, value, faults)
        };
        self.0.insert(member.key.to_string(), Slot::Read(entry));
    }
}

/// Checks and reads an entry.
fn backend(source: &Arc<Source>, node: &Node<'_>, faults: &mut Vec<Diagnostic>) -> Backend {
    check(source, node, &BACKEND, false, faults);
    let reader = Reader::new(source, node);
    if let Some(rules) = reader.get("reader") {
        OutputRules::check(rules, faults);
    }
    read::backend(reader)
}
