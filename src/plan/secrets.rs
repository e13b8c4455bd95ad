//! Secret variables. While a plan is built, a placeholder replaces each value, so that no plan, dry run or digest holds
//! it. The values in a program's environment are filled in when it starts; anywhere else a secret is refused.

use super::errors;
use crate::chain::Chain;
use crate::prompt::{Late, Segment};
use crate::source::{Diagnostic, Place};
use indexmap::IndexMap;
use std::sync::Arc;

/// The start and end of a placeholder. No value passed to a program can contain a NUL (execve(2)).
const OPEN: &str = "\0secret:";
const CLOSE: char = '\0';

/// The secret variables of a chain with their values, in order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<(String, String)>);

/// Shows the names only, never the values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Secrets {
    /// Returns the secrets of a chain with the given values; a value that was not given is empty.
    pub(super) fn of(chain: &Chain, given: &IndexMap<String, (String, Arc<crate::source::Source>)>) -> Self {
        let value = |name: &String| given.get(name).map_or_else(String::new, |(value, _)| value.clone());
        Self(chain.secrets.keys().map(|name| (name.clone(), value(name))).collect())
    }

    /// Returns the value of the secret with this number.
    #[must_use]
    pub fn value(&self, number: usize) -> &str {
        self.0.get(number).map_or("", |(_, value)| value)
    }

    /// Returns the name of each secret with its placeholder.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().enumerate().map(|(number, (name, _))| (name.clone(), format!("{OPEN}{number}{CLOSE}")))
    }
}

/// Splits a text at its placeholders.
pub(super) fn with_secrets(text: &str) -> Vec<Segment> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((number, after)) = after.split_once(CLOSE) else { break };
        let Ok(number) = number.parse() else { break };
        pieces.extend((!before.is_empty()).then(|| Segment::Text(before.into())));
        pieces.push(Segment::Late(Late::Secret(number)));
        rest = after;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Segment::Text(rest.into()));
    }
    pieces
}

/// Returns an error if a text that would be stored or shown contains a secret.
pub(super) fn no_secret(at: &Place, what: &str, text: &str) -> Option<Diagnostic> {
    text.contains(OPEN).then(|| errors::secret_would_be_kept(at, what))
}
