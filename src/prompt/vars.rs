//! Chain variables: `${NAME}` and its other forms. They are substituted once, when the plan is built; values are never
//! scanned again.

use super::errors;
use crate::source::{Diagnostic, Env, Place, Source, Span, Text, nearest};
use indexmap::IndexMap;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The variables of a plan: those of the command line, which override those of the chain.
#[derive(Debug, Default)]
pub struct Vars {
    given: IndexMap<String, String>,
    declared: IndexMap<String, String>,
    secrets: BTreeSet<String>,
    used: RefCell<BTreeSet<String>>,
    /// Whether there can be no other variables, whatever the command line says.
    is_closed: bool,
}

impl Vars {
    /// Creates the variables from `given`, the `NAME=value` arguments, and `declared`, the chain's `vars`.
    #[must_use]
    pub fn new(given: IndexMap<String, String>, declared: IndexMap<String, String>) -> Self {
        Self { given, declared, ..Self::default() }
    }

    /// The variables of a text for which the command line can set none.
    #[must_use]
    pub fn placeholders(known: IndexMap<String, String>) -> Self {
        Self { declared: known, is_closed: true, ..Self::default() }
    }

    /// Adds the secrets, with placeholders as their values.
    #[must_use]
    pub fn with_secrets(self, placeholders: impl Iterator<Item = (String, String)>) -> Self {
        let mut vars = self;
        for (name, placeholder) in placeholders {
            vars.secrets.insert(name.clone());
            vars.declared.insert(name, placeholder);
        }
        vars
    }

    fn is_secret(&self, name: &str) -> bool {
        self.secrets.contains(name)
    }

    fn get(&self, name: &str) -> Option<&str> {
        let value = self.given.get(name).or_else(|| self.declared.get(name))?;
        self.used.borrow_mut().insert(name.to_string());
        Some(value)
    }

    /// Returns the names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.given.keys().chain(self.declared.keys()).map(String::as_str)
    }

    /// Returns all variables with their values, for the environment of checks.
    #[must_use]
    pub fn all(&self) -> IndexMap<String, String> {
        let mut all = self.declared.clone();
        all.extend(self.given.clone());
        all
    }

    /// Returns the variables given on the command line.
    #[must_use]
    pub fn given(&self) -> &IndexMap<String, String> {
        &self.given
    }

    /// Records that variables are used although nothing was expanded, because a shell line mentions them.
    pub fn note_mentioned(&self, line: &str) {
        let names = self.given.keys().filter(|name| line.contains(name.as_str()));
        self.used.borrow_mut().extend(names.cloned());
    }
}

/// A piece of a text that may contain variables.
enum VarPiece<'a> {
    Text(&'a str),
    Variable { name: &'a str, environment: bool, default: Option<&'a str>, span: Span },
    Malformed(Span),
}

/// Expands a config string.
///
/// # Errors
/// Every variable that is missing or malformed, with its place.
pub fn expand_config(text: &Text, vars: &Vars, env: &dyn Env) -> Result<String, Vec<Diagnostic>> {
    let (mut expanded, mut faults) = (String::new(), Vec::new());
    for piece in pieces(&text.value) {
        match piece {
            VarPiece::Text(plain) => expanded.push_str(plain),
            VarPiece::Malformed(span) => faults.push(errors::malformed_variable(&text.place_of(span))),
            // The value of a secret may come from the environment; it stays secret.
            VarPiece::Variable { name, environment: true, .. } if vars.is_secret(name) => {
                expanded.push_str(vars.get(name).unwrap_or_default());
            }
            VarPiece::Variable { name, environment: true, default, span } => match env.var(name) {
                Some(value) => match value.into_string() {
                    Ok(value) => expanded.push_str(&value),
                    Err(_) => faults.push(errors::variable_not_utf8(&text.place_of(span), name)),
                },
                None => match default {
                    Some(default) => expanded.push_str(default),
                    None => faults.push(errors::missing_environment(&text.place_of(span), name)),
                },
            },
            VarPiece::Variable { name, default, span, .. } => {
                if let Some(value) = vars.get(name).or(default) {
                    expanded.push_str(value);
                } else {
                    if vars.is_closed {
                        let known: Vec<&str> = vars.names().collect();
                        faults.push(errors::unknown_placeholder(&text.place_of(span), name, &known));
                        continue;
                    }
                    let near = nearest(name, vars.names());
                    let of_the_environment = near.is_none() && env.var(name).is_some();
                    faults.push(errors::missing_variable(&text.place_of(span), name, near, of_the_environment));
                }
            }
        }
    }
    if faults.is_empty() { Ok(expanded) } else { Err(faults) }
}

/// Expands a text that is not config: only `${NAME}` of given or declared variables, and the escape `$${NAME}` of
/// those. Returns the text, and the names of all other `${NAME}` in it, each once.
#[must_use]
pub fn expand_prose(text: &str, vars: &Vars) -> (String, Vec<String>) {
    let (mut expanded, mut stayed) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(dollar) = rest.find("${") {
        let after = &rest[dollar + 2..];
        let name = name_at(after);
        let closed = !name.is_empty() && after[name.len()..].starts_with('}');
        let escaped = rest[..dollar].ends_with('$');
        let (before, end) = (&rest[..dollar], dollar + 2 + name.len() + usize::from(closed));
        if closed && let Some(value) = vars.get(name) {
            if escaped {
                expanded.push_str(&before[..before.len() - 1]);
                expanded.push_str(&rest[dollar..end]);
            } else {
                expanded.push_str(before);
                expanded.push_str(value);
            }
        } else {
            expanded.push_str(&rest[..end]);
            if closed && !stayed.iter().any(|known| known == name) {
                stayed.push(name.to_string());
            }
        }
        rest = &rest[end..];
    }
    expanded.push_str(rest);
    (expanded, stayed)
}

/// Returns a warning for every given variable that was not used. `arguments` are the places where they were given.
#[must_use]
pub fn unused(vars: &Vars, arguments: &IndexMap<String, Arc<Source>>) -> Vec<Diagnostic> {
    let used = vars.used.borrow();
    let known: Vec<&str> = used.iter().map(String::as_str).chain(vars.declared.keys().map(String::as_str)).collect();
    let idle = vars.given.keys().filter(|name| !used.contains(*name) && !vars.declared.contains_key(*name));
    idle.map(|name| {
        let place = arguments.get(name).map(|source| Place::new(source, 0..name.len()));
        errors::unused_variable(place.as_ref(), name, nearest(name, known.iter().copied()))
    })
    .collect()
}

/// Returns the leading `[A-Za-z_][A-Za-z0-9_]*` of a text.
fn name_at(text: &str) -> &str {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return "";
    }
    let end = text.find(|next: char| !(next.is_ascii_alphanumeric() || next == '_')).unwrap_or(text.len());
    &text[..end]
}

fn pieces(text: &str) -> Vec<VarPiece<'_>> {
    let (mut pieces, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(dollar) = text[at..].find('$').map(|found| at + found) {
        let rest = &text[dollar..];
        if rest.starts_with("$${") || rest.starts_with("$$<") {
            pieces.push(VarPiece::Text(&text[from..dollar]));
            from = dollar + 1;
            at = dollar + 3;
            continue;
        }
        let found = if rest.starts_with("${") { Some(braced(rest, dollar)) } else { angled(rest, dollar) };
        match found {
            Some((piece, end)) => {
                pieces.push(VarPiece::Text(&text[from..dollar]));
                pieces.push(piece);
                from = end;
                at = end;
            }
            None => at = dollar + 1,
        }
    }
    pieces.push(VarPiece::Text(&text[from..]));
    pieces
}

/// Parses `${NAME}`, `${NAME:-default}` or `${env:NAME}`; anything else in braces is malformed.
fn braced(rest: &str, start: usize) -> (VarPiece<'_>, usize) {
    let Some(close) = rest.find('}') else {
        return (VarPiece::Malformed(start..start + 2), start + rest.len());
    };
    let (inside, end) = (&rest[2..close], start + close + 1);
    let (inside, environment) = inside.strip_prefix("env:").map_or((inside, false), |name| (name, true));
    let name = name_at(inside);
    let default = match &inside[name.len()..] {
        "" => Some(None),
        tail => tail.strip_prefix(":-").map(Some),
    };
    match default {
        Some(default) if !name.is_empty() => (VarPiece::Variable { name, environment, default, span: start..end }, end),
        _ => (VarPiece::Malformed(start..end), end),
    }
}

/// Parses `$<NAME>`, an alternative spelling; anything else is plain text.
fn angled(rest: &str, start: usize) -> Option<(VarPiece<'_>, usize)> {
    let inside = rest.strip_prefix("$<")?;
    let name = name_at(inside);
    if name.is_empty() || !inside[name.len()..].starts_with('>') {
        return None;
    }
    let end = start + name.len() + 3;
    Some((VarPiece::Variable { name, environment: false, default: None, span: start..end }, end))
}

#[cfg(test)]
#[path = "vars_tests.rs"]
mod tests;
