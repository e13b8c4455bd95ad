//! Secret variables: while a plan is built a placeholder stands for each value, so that no plan, dry run or digest holds it. What
//! reaches a program through its environment is filled in at its start; anywhere else a secret is refused.

use super::errors;
use crate::chain::Chain;
use crate::prompt::{Late, Segment};
use crate::source::{Diagnostic, Place};
use indexmap::IndexMap;
use std::sync::Arc;

/// What a placeholder begins and ends with: no value can hold a NUL that reaches a program (execve(2)).
const OPEN: &str = "\0secret:";
const CLOSE: char = '\0';

/// The values of the secret variables of a chain, by their order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<(String, String)>);

/// Without the values.
impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Secrets {
    /// Those of a chain, with the values that were given; empty where none was.
    pub(super) fn of(chain: &Chain, given: &IndexMap<String, (String, Arc<crate::source::Source>)>) -> Self {
        let value = |name: &String| given.get(name).map_or_else(String::new, |(value, _)| value.clone());
        Self(chain.secrets.keys().map(|name| (name.clone(), value(name))).collect())
    }

    /// The value of one.
    #[must_use]
    pub fn value(&self, number: usize) -> &str {
        self.0.get(number).map_or("", |(_, value)| value)
    }

    /// The name of each, with its placeholder.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().enumerate().map(|(number, (name, _))| (name.clone(), format!("{OPEN}{number}{CLOSE}")))
    }
}

/// A text with placeholders as pieces.
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

/// What is wrong with a text that would be stored or shown: a secret in it.
pub(super) fn no_secret(at: &Place, what: &str, text: &str) -> Option<Diagnostic> {
    text.contains(OPEN).then(|| errors::secret_would_be_kept(at, what))
}
