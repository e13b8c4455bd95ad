//! The results of an evaluation, by generation, repetition and number of the case. A suite may have 100,000 cases, so
//! the results have no keys of their own, and share the ids of their cases.

use super::event::{CaseFacts, CaseResult};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The results of an evaluation. A later result of the same repetition of a case replaces an earlier one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseResults {
    /// The number of each case, by its id: first those of the suite in their order, then those that it no longer has.
    numbers: HashMap<Arc<str>, u32>,
    /// The results by generation and repetition, each by the number of its case.
    rounds: BTreeMap<(u32, u32), Vec<Option<CaseResult>>>,
}

impl CaseResults {
    /// Numbers the cases of a suite, from 0. The results so far are kept.
    pub fn number_cases(&mut self, cases: &[CaseFacts]) {
        let earlier = std::mem::take(self);
        self.numbers = cases.iter().zip(0..).map(|(case, number)| (Arc::clone(&case.id), number)).collect();
        for result in earlier.rounds.into_values().flatten().flatten() {
            self.insert(result);
        }
    }

    /// Adds a result.
    pub fn insert(&mut self, mut result: CaseResult) {
        let number = if let Some((id, number)) = self.numbers.get_key_value(&result.case) {
            result.case = Arc::clone(id);
            *number
        } else {
            let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            self.numbers.insert(Arc::clone(&result.case), number);
            number
        };
        let round = self.rounds.entry((result.generation, result.repetition)).or_default();
        let number = number as usize;
        if round.len() <= number {
            round.reserve_exact(self.numbers.len().saturating_sub(round.len()));
            round.resize(number + 1, None);
        }
        round[number] = Some(result);
    }

    /// Returns the number of a case, from 0; `None` if it is not known.
    #[must_use]
    pub fn number(&self, case: &str) -> Option<u32> {
        self.numbers.get(case).copied()
    }

    /// Returns the result of a repetition of a case, by the number of the case.
    #[must_use]
    pub fn get(&self, generation: u32, case: u32, repetition: u32) -> Option<&CaseResult> {
        self.rounds.get(&(generation, repetition))?.get(case as usize)?.as_ref()
    }

    /// Returns the results of a case with the prompt of a generation, one for each repetition.
    pub fn of_case(&self, generation: u32, case: &str) -> impl Iterator<Item = &CaseResult> {
        let rounds = self.rounds.range((generation, 0)..=(generation, u32::MAX));
        let number = self.number(case);
        rounds.filter_map(move |(_, round)| round.get(number? as usize)?.as_ref())
    }

    /// Returns all results, generation by generation.
    pub fn values(&self) -> impl Iterator<Item = &CaseResult> {
        self.rounds.values().flatten().flatten()
    }

    /// Returns the last generation that has a result; 0 if there is none.
    #[must_use]
    pub fn last_generation(&self) -> u32 {
        self.rounds.keys().next_back().map_or(0, |(generation, _)| *generation)
    }
}
