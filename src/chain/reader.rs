//! Reads the members of a checked tree by key.

use super::duration::parse_duration;
use super::json5::{Member, Node, Value};
use crate::source::{Place, Source, Text};
use indexmap::IndexMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// An object whose members are read by key.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) node: &'a Node<'a>,
}

impl<'a> Reader<'a> {
    /// Creates a reader for a node of a source.
    #[must_use]
    pub fn new(source: &'a Arc<Source>, node: &'a Node<'a>) -> Self {
        Self { source, node }
    }

    /// Returns the place of the value.
    #[must_use]
    pub fn at(self) -> Place {
        Place::new(self.source, self.node.span.clone())
    }

    /// Returns all members; none if the value is not an object.
    pub fn all_members(self) -> impl Iterator<Item = &'a Member<'a>> {
        let members: &'a [Member<'a>] = match &self.node.value {
            Value::Object(members) => members,
            _ => &[],
        };
        members.iter()
    }

    /// Returns the members, with only the first of duplicate keys.
    pub fn members(self) -> impl Iterator<Item = &'a Member<'a>> {
        self.all_members().filter(|member| member.duplicates.is_none())
    }

    /// Returns the member with this key.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Reader<'a>> {
        self.members().find(|member| member.key == key).map(|member| Self::new(self.source, &member.node))
    }

    /// Returns the node itself.
    #[must_use]
    pub fn node(self) -> &'a Node<'a> {
        self.node
    }

    /// Returns the string itself.
    pub(super) fn as_text(self) -> Option<Text> {
        match &self.node.value {
            Value::Text(value) => Some(Text { value: value.to_string(), at: self.at() }),
            _ => None,
        }
    }

    /// Returns the elements, if the value is a list.
    #[must_use]
    pub fn as_list(self) -> Option<Vec<Reader<'a>>> {
        match &self.node.value {
            Value::List(nodes) => Some(nodes.iter().map(|node| Self::new(self.source, node)).collect()),
            _ => None,
        }
    }

    /// Returns the string at this key.
    #[must_use]
    pub fn text(self, key: &str) -> Option<Text> {
        self.get(key)?.as_text()
    }

    /// Returns the strings of the list at this key.
    #[must_use]
    pub fn texts(self, key: &str) -> Option<Vec<Text>> {
        let list = self.get(key)?;
        let Value::List(nodes) = &list.node.value else { return None };
        Some(nodes.iter().filter_map(|node| Self::new(self.source, node).as_text()).collect())
    }

    /// Returns the string, or the strings of the list, at this key.
    #[must_use]
    pub fn one_or_more(self, key: &str) -> Vec<Text> {
        self.text(key).map_or_else(|| self.texts(key).unwrap_or_default(), |text| vec![text])
    }

    /// Returns the strings of the object at this key, by their names.
    #[must_use]
    pub fn text_map(self, key: &str) -> IndexMap<String, Text> {
        let Some(map) = self.get(key) else { return IndexMap::new() };
        map.members()
            .filter_map(|member| Some((member.key.to_string(), Self::new(self.source, &member.node).as_text()?)))
            .collect()
    }

    /// Returns the whole number at this key, if it is at least 1.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
    pub fn count(self, key: &str) -> Option<NonZeroU32> {
        match self.get(key)?.node.value {
            Value::Number(number) if number >= 1.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 => {
                NonZeroU32::new(number as u32)
            }
            _ => None,
        }
    }

    /// Returns the boolean at this key.
    #[must_use]
    pub fn flag(self, key: &str) -> Option<bool> {
        match self.get(key)?.node.value {
            Value::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Reads a number; none if it is missing or not one.
    #[must_use]
    pub fn number(self, key: &str) -> Option<f64> {
        match self.get(key)?.node.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Reads a length of time; none if it is missing or not one.
    #[must_use]
    pub fn duration(self, key: &str) -> Option<Duration> {
        parse_duration(&self.text(key)?.value).ok()
    }
}
