//! Checks a tree against the tables of keys. Unknown, duplicate, missing and misplaced keys and values of the wrong
//! type are all reported at once.

use super::duration::{DurationError, parse_duration};
use super::errors;
use super::json5::{Member, Node, Value};
use super::keys::shape::{Object, Shape};
use super::name::check_name;
use crate::source::{Diagnostic, Place, Source, Span};
use std::sync::Arc;

/// Adds to `faults` everything in `node` that `object` does not allow. With `shallow`, the entries of named objects are
/// skipped, because their errors are kept with each entry.
pub fn check(source: &Arc<Source>, node: &Node<'_>, object: &Object, shallow: bool, faults: &mut Vec<Diagnostic>) {
    Checker { source, shallow, faults }.object(node, object);
}

struct Checker<'a> {
    source: &'a Arc<Source>,
    shallow: bool,
    faults: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn place(&self, span: &Span) -> Place {
        Place::new(self.source, span.clone())
    }

    fn object(&mut self, node: &Node<'_>, object: &Object) {
        if let (Value::Text(text), true) = (&node.value, object.text.is_some()) {
            if text.trim().is_empty() {
                self.faults.push(errors::empty_value(&self.place(&node.span), object.name));
            }
            return;
        }
        if let (Value::List(_), Some(steps)) = (&node.value, steps_of(object)) {
            return self.steps(node, "steps", steps);
        }
        let Value::Object(members) = &node.value else {
            self.faults.push(errors::wrong_kind(
                &self.place(&node.span),
                object.name,
                forms(object),
                node.value.kind(),
            ));
            return;
        };
        for member in members {
            if let Some(first) = &member.duplicates {
                self.duplicate(first, member);
                continue;
            }
            let Some(key) = object.keys.iter().find(|key| key.is(&member.key)) else {
                let known = object.keys.iter().map(|key| key.name);
                self.faults.push(errors::unknown_key(&self.place(&member.key_span), &member.key, object.name, known));
                continue;
            };
            self.value(&member.node, &member.key, key.shape);
        }
        for (name, alias) in object.keys.iter().filter_map(|key| Some((key.name, key.alias?))) {
            let of = |name: &str| members.iter().find(|member| member.key == name).map(|member| &member.key_span);
            if let Some((name_span, alias_span)) = of(name).zip(of(alias)) {
                let (kept, other) = (self.place(name_span), self.place(alias_span));
                self.faults.push(errors::both_names(&other, alias, &kept, name));
            }
        }
        let has = |name: &&str| members.iter().any(|member| member.key == *name);
        for required in object.required.iter().filter(|name| !has(name)) {
            self.faults.push(errors::missing_key(&self.place(&node.span), object.name, required));
        }
        let kinds: Vec<&str> = object.one_of.iter().copied().filter(|name| has(name)).collect();
        if kinds.len() != 1 && !object.one_of.is_empty() {
            self.faults.push(errors::one_of(&self.place(&node.span), object.name, object.one_of, &kinds));
        }
    }

    fn duplicate(&mut self, first: &Span, second: &Member<'_>) {
        let (first, place) = (self.place(first), self.place(&second.key_span));
        self.faults.push(errors::duplicate_key(&place, &second.key, &first));
    }

    fn wrong(&mut self, node: &Node<'_>, key: &str, wanted: &str) {
        let key = format!("`{key}`");
        self.faults.push(errors::wrong_kind(&self.place(&node.span), &key, wanted, node.value.kind()));
    }

    fn texts(&mut self, nodes: &[Node<'_>], key: &str) {
        for node in nodes.iter().filter(|node| !matches!(node.value, Value::Text(_))) {
            let what = format!("each element of `{key}`");
            self.faults.push(errors::wrong_kind(&self.place(&node.span), &what, "a string", node.value.kind()));
        }
    }

    fn value(&mut self, node: &Node<'_>, key: &str, shape: Shape) {
        match (shape, &node.value) {
            (Shape::Anything, _) | (Shape::Text, Value::Text(_)) | (Shape::Flag, Value::Flag(_)) => {}
            (Shape::TextOrTexts, Value::Text(text)) => {
                if text.trim().is_empty() {
                    self.faults.push(errors::empty_value(&self.place(&node.span), key));
                }
            }
            (Shape::TextOrTexts, Value::List(nodes)) => {
                self.texts(nodes, key);
                if nodes.is_empty() {
                    self.faults.push(errors::empty_value(&self.place(&node.span), key));
                }
            }
            (Shape::Texts, Value::List(nodes)) => self.texts(nodes, key),
            (Shape::TextMap, Value::Object(members)) => {
                self.variable_names(members);
                self.text_map(members, key, None);
            }
            (Shape::PointerMap, Value::Object(members)) => {
                for member in members.iter().filter(|member| !member.key.starts_with('/')) {
                    self.faults.push(errors::not_a_pointer(&self.place(&member.key_span), &member.key));
                }
                self.text_map(members, key, None);
            }
            (Shape::Variables(object), Value::Object(members)) => {
                self.variable_names(members);
                self.text_map(members, key, Some(object));
            }
            (Shape::Count(most), Value::Number(number)) => {
                if !(*number >= 1.0 && *number <= f64::from(most) && number.fract() == 0.0) {
                    self.faults.push(errors::bad_number(&self.place(&node.span), key, *number, most));
                }
            }
            (Shape::Duration, Value::Text(text)) => {
                if let Err(fault) = parse_duration(text) {
                    self.faults.push(errors::bad_duration(&self.place(&node.span), &format!("`{key}`"), text, fault));
                }
            }
            (Shape::Duration, Value::Number(number)) => {
                let fault = if *number > 0.0 { DurationError::NoUnit } else { DurationError::NotPositive };
                let (at, what) = (self.place(&node.span), format!("`{key}`"));
                self.faults.push(errors::bad_duration(&at, &what, &number.to_string(), fault));
            }
            (Shape::Amount, Value::Number(number)) => {
                if *number <= 0.0 || !number.is_finite() {
                    self.faults.push(errors::bad_amount(&self.place(&node.span), key, *number));
                }
            }
            (Shape::Share, Value::Number(number)) => {
                if !(0.0..=1.0).contains(number) {
                    self.faults.push(errors::bad_share(&self.place(&node.span), key, *number));
                }
            }
            (Shape::One(object), Value::Object(_)) => self.object(node, object),
            (Shape::Choice(choices), Value::Text(text)) => {
                if !choices.contains(&text.as_ref()) {
                    self.faults.push(errors::unknown_choice(&self.place(&node.span), key, text, choices));
                }
            }
            (Shape::Named(object), Value::Object(members)) => self.named(members, object),
            (Shape::Objects(object), Value::List(nodes)) => {
                if nodes.is_empty() {
                    self.faults.push(errors::no_steps(&self.place(&node.span), key));
                }
                for node in nodes {
                    self.object(node, object);
                }
            }
            (Shape::Steps(object), _) => self.steps(node, key, object),
            (Shape::Choice(choices), _) => self.wrong(node, key, &errors::either(choices)),
            (shape, _) => self.wrong(node, key, wanted(shape)),
        }
    }

    fn variable_names(&mut self, members: &[Member<'_>]) {
        for member in members.iter().filter(|member| !is_variable_name(&member.key)) {
            self.faults.push(errors::bad_variable_name(&self.place(&member.key_span), &member.key));
        }
    }

    fn text_map(&mut self, members: &[Member<'_>], key: &str, other: Option<&'static Object>) {
        for member in members {
            if let Some(first) = &member.duplicates {
                self.duplicate(first, member);
            }
            match (&member.node.value, other) {
                (Value::Text(_), _) => {}
                (Value::Object(_), Some(object)) => self.object(&member.node, object),
                (found, other) => {
                    let wanted = if other.is_some() { "a string or an object" } else { "a string" };
                    let what = format!("each value in `{key}`");
                    self.faults.push(errors::wrong_kind(&self.place(&member.node.span), &what, wanted, found.kind()));
                }
            }
        }
    }

    fn named(&mut self, members: &[Member<'_>], object: &Object) {
        if self.shallow {
            return;
        }
        for member in members {
            if let Some(first) = &member.duplicates {
                self.duplicate(first, member);
            }
            if let Err(fault) = check_name(&member.key) {
                let place = self.place(&member.key_span);
                self.faults.push(errors::bad_config_name(&place, &member.key, &fault));
            }
            self.object(&member.node, object);
        }
    }

    fn steps(&mut self, node: &Node<'_>, key: &str, object: &'static Object) {
        match &node.value {
            Value::Text(text) if text.trim().is_empty() => {
                self.faults.push(errors::no_steps(&self.place(&node.span), key));
            }
            // The parser of the chain language reports its errors.
            Value::Text(_) => {}
            Value::List(nodes) if nodes.is_empty() => self.faults.push(errors::no_steps(&self.place(&node.span), key)),
            Value::List(nodes) => {
                for node in nodes {
                    match node.value {
                        Value::Text(_) => self.steps(node, key, object),
                        Value::Object(_) => self.object(node, object),
                        _ => {
                            let (at, found) = (self.place(&node.span), node.value.kind());
                            self.faults.push(errors::wrong_kind(&at, object.name, "a string or an object", found));
                        }
                    }
                }
            }
            _ => self.wrong(node, key, wanted(Shape::Steps(object))),
        }
    }
}

/// Returns what an object may be written as.
fn forms(object: &Object) -> &'static str {
    match (object.text, steps_of(object)) {
        (None, _) => "an object",
        (Some(_), None) => "a string or an object",
        (Some(_), Some(_)) => "a string, an array of steps or an object",
    }
}

/// Returns the table of steps for an object that may be written in short form as a list of steps.
fn steps_of(object: &Object) -> Option<&'static Object> {
    object.text?;
    object.keys.iter().find_map(|key| if let Shape::Steps(steps) = key.shape { Some(steps) } else { None })
}

/// Whether this is a valid variable name: `[A-Za-z_][A-Za-z0-9_]*`.
pub(super) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn wanted(shape: Shape) -> &'static str {
    match shape {
        Shape::Text | Shape::Choice(_) => "a string",
        Shape::TextOrTexts => "a string or an array of strings",
        Shape::Texts => "an array of strings",
        Shape::TextMap | Shape::PointerMap => "an object whose values are strings",
        Shape::Variables(_) => "an object whose values are strings or objects",
        Shape::Duration => "a length of time as a string, such as `10m`",
        Shape::Flag => "true or false",
        Shape::Count(_) => "a whole number",
        Shape::Amount | Shape::Share => "a number",
        Shape::Named(_) | Shape::One(_) => "an object",
        Shape::Objects(_) => "an array of objects",
        Shape::Steps(_) => "a chain as a string, or an array of steps",
        Shape::Anything => "anything",
    }
}
