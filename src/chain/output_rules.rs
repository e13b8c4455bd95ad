//! How the output of a program is read that forkhestra does not know: which of its JSON values mean what, as data.

use super::errors;
use super::json5::Value;
use super::reader::Reader;
use crate::source::Diagnostic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How JSON output is read. All `at`s are JSON Pointers (RFC 6901) into one JSON value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutputRules {
    /// Whether all of the output is one value. Otherwise each line is one.
    pub whole: bool,
    /// What the agent says.
    pub text: Option<OutputRule>,
    /// The tools that it calls.
    pub tool: Option<OutputRule>,
    /// Its final message.
    pub last: OutputRule,
    /// The id of its session.
    pub session: Option<String>,
    /// What it has used.
    pub usage: Option<UsageRule>,
    /// The error with which it fails.
    pub error: Option<OutputRule>,
}

/// Which values a rule is about, and what it takes of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutputRule {
    /// What a value must have, by pointer. `null` also means that it is missing.
    pub when: BTreeMap<String, String>,
    /// The text; for a tool, its input. A final message without it is the last text.
    pub at: Option<String>,
    /// For a tool: its name. For an error: the HTTP status.
    pub more: Option<String>,
}

/// Where the usage is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageRule {
    /// Which values tell it.
    pub when: BTreeMap<String, String>,
    /// The pointers of `input`, `output`, `cacheRead`, `cacheWrite` and `cost`.
    pub at: BTreeMap<String, String>,
    /// Whether several reports are added up. Otherwise the last one counts.
    pub adds: bool,
}

/// The amounts of a usage report.
pub const AMOUNTS: [&str; 5] = ["input", "output", "cacheRead", "cacheWrite", "cost"];

impl OutputRules {
    /// Reads the value of `reader`.
    pub(super) fn read(reader: Reader<'_>) -> Self {
        Self {
            whole: reader.text("json").is_some_and(|json| json.value == "whole"),
            text: reader.get("text").map(|rule| OutputRule::read(rule, "at", "")),
            tool: reader.get("tool").map(|rule| OutputRule::read(rule, "input", "name")),
            last: reader.get("final").map(|rule| OutputRule::read(rule, "at", "")).unwrap_or_default(),
            session: reader.text("session").map(|pointer| pointer.value),
            usage: reader.get("usage").map(|rule| UsageRule {
                when: conditions(rule),
                at: AMOUNTS.iter().filter_map(|name| Some(((*name).to_string(), rule.text(name)?.value))).collect(),
                adds: rule.flag("adds") == Some(true),
            }),
            error: reader.get("error").map(|rule| OutputRule::read(rule, "at", "status")),
        }
    }

    /// Reports pointers that are none, and rules by which the output of a tool could be the final message.
    pub(super) fn check(reader: Reader<'_>, faults: &mut Vec<Diagnostic>) {
        pointers(reader, faults);
        let rules = Self::read(reader);
        let Some(place) = reader.get("final").map(Reader::at) else { return };
        if rules.whole {
            return;
        }
        if rules.last.when.is_empty() {
            faults.push(errors::any_line_is_final(&place));
        }
        let is_last_text = rules.last.at.is_none();
        match &rules.tool {
            None if is_last_text => faults.push(errors::text_without_tools(&place)),
            Some(tool) if may_be_one(&rules.last, tool) => faults.push(errors::tool_is_final(&place, "final")),
            Some(tool) if is_last_text && rules.text.as_ref().is_some_and(|text| may_be_one(text, tool)) => {
                faults.push(errors::tool_is_final(&place, "text"));
            }
            _ => {}
        }
    }
}

impl OutputRule {
    fn read(reader: Reader<'_>, at: &str, more: &str) -> Self {
        let text = |key: &str| reader.text(key).map(|text| text.value);
        Self { when: conditions(reader), at: text(at), more: text(more) }
    }
}

fn conditions(reader: Reader<'_>) -> BTreeMap<String, String> {
    reader.text_map("when").into_iter().map(|(pointer, value)| (pointer, value.value)).collect()
}

/// Whether one value can satisfy both. They are told apart by a pointer at which they want different values, or by
/// something that must be missing in one and has parts in the other.
fn may_be_one(one: &OutputRule, other: &OutputRule) -> bool {
    let differ = one.when.iter().any(|(pointer, value)| other.when.get(pointer).is_some_and(|wanted| wanted != value));
    !differ && !excludes(one, other) && !excludes(other, one)
}

/// Whether something that must be missing in one has parts in the other.
fn excludes(one: &OutputRule, other: &OutputRule) -> bool {
    let missing = one.when.iter().filter(|(_, value)| *value == "null").map(|(pointer, _)| format!("{pointer}/"));
    let present: Vec<&String> = other.when.iter().filter(|(_, value)| *value != "null").map(|(at, _)| at).collect();
    missing.into_iter().any(|missing| present.iter().any(|pointer| pointer.starts_with(&missing)))
}

/// Reports every string that should be a JSON Pointer and is none.
fn pointers(reader: Reader<'_>, faults: &mut Vec<Diagnostic>) {
    let Value::Object(members) = &reader.node.value else { return };
    for member in members {
        let inner = Reader::new(reader.source, &member.node);
        match (&member.node.value, member.key.as_ref()) {
            (_, "json" | "when") => {}
            (Value::Object(_), _) => pointers(inner, faults),
            (Value::Text(text), _) if !text.starts_with('/') => {
                faults.push(errors::not_a_pointer(&inner.at(), text));
            }
            _ => {}
        }
    }
}
