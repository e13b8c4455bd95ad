//! The pairs of outputs that the agent of `selectBest` compares.

use crate::engine::{EvalLedger, OutputComparison};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The outputs of two columns for a repetition of a case, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OutputPair {
    /// The case's number, from 0.
    pub(crate) case: u32,
    /// The repetition, from 1.
    pub(crate) repetition: u32,
    /// The number of the column whose output is shown first, from 0.
    pub(crate) first: u32,
    /// The number of the column whose output is shown second.
    pub(crate) second: u32,
}

impl OutputPair {
    /// The pair of a comparison; `None` if the suite does not have its case.
    pub(super) fn of(ledger: &EvalLedger, comparison: &OutputComparison) -> Option<Self> {
        let OutputComparison { first, second, repetition, .. } = *comparison;
        Some(Self { case: ledger.results.number(&comparison.case)?, repetition, first, second })
    }
}

/// Returns the pairs that are still to be compared: both outputs are there, and nothing was said about them.
pub(super) fn open_pairs(ledger: &EvalLedger) -> BTreeSet<OutputPair> {
    let Some(facts) = ledger.facts.as_ref().filter(|facts| facts.selector.is_some()) else { return BTreeSet::new() };
    let columns = u32::try_from(facts.columns.len()).unwrap_or(u32::MAX);
    let mut open = BTreeSet::new();
    for (case, of) in (0..).zip(&facts.cases) {
        for repetition in 1..=of.repeat {
            let has_answer = |column: &u32| {
                ledger.results.get(*column, case, repetition).is_some_and(|result| result.answer.is_some())
            };
            let answered: Vec<u32> = (0..columns).filter(has_answer).collect();
            let orders = answered.iter().flat_map(|first| answered.iter().map(move |second| (*first, *second)));
            let is_open = |first: u32, second: u32| {
                let key = (first, second, Arc::clone(&of.id), repetition);
                ledger.compared.get(&key).is_none_or(|comparison| comparison.error.is_some())
            };
            let pairs = orders.filter(|(first, second)| first != second && is_open(*first, *second));
            open.extend(pairs.map(|(first, second)| OutputPair { case, repetition, first, second }));
        }
    }
    open
}
