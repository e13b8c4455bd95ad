//! The results of an evaluation, by generation, repetition and number of the case. A suite may have 100,000 cases, so
//! the results have no keys of their own, and share the ids of their cases.

use super::event::{CaseResult, EvalFacts};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The results of one repetition, in blocks: one list of all of them would need its memory in one piece.
type Round = Vec<Vec<Option<CaseResult>>>;

/// How many results a block has.
const BLOCK: usize = 64;

/// The results of an evaluation. A later result of the same repetition of a case replaces an earlier one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaseResults {
    /// The suite, whose cases are numbered from 0 in their order.
    suite: Option<Arc<EvalFacts>>,
    /// The numbers of its cases, in the order of their ids.
    by_id: Vec<u32>,
    /// The numbers of the cases that the suite no longer has.
    others: HashMap<Arc<str>, u32>,
    /// The results by generation and repetition, each by the number of its case.
    rounds: BTreeMap<(u32, u32), Round>,
}

impl CaseResults {
    /// Numbers the cases of a suite, from 0. The results so far are kept.
    pub fn number_cases(&mut self, suite: &Arc<EvalFacts>) {
        let earlier = std::mem::take(self);
        self.by_id = (0..).take(suite.cases.len()).collect();
        self.by_id.sort_unstable_by_key(|number| &suite.cases[*number as usize].id);
        self.suite = Some(Arc::clone(suite));
        for result in earlier.rounds.into_values().flatten().flatten().flatten() {
            self.insert(result);
        }
    }

    /// Adds a result.
    pub fn insert(&mut self, mut result: CaseResult) {
        let known = self.by_id.len() + self.others.len();
        let number = self.number(&result.case).unwrap_or_else(|| {
            let number = u32::try_from(known).unwrap_or(u32::MAX);
            self.others.insert(Arc::clone(&result.case), number);
            number
        });
        if let Some(case) = self.suite.as_ref().and_then(|suite| suite.cases.get(number as usize)) {
            result.case = Arc::clone(&case.id);
        }
        let round = self.rounds.entry((result.generation, result.repetition)).or_default();
        let (block, place) = (number as usize / BLOCK, number as usize % BLOCK);
        if round.len() <= block {
            round.resize(block + 1, Vec::new());
        }
        let block = &mut round[block];
        if block.len() <= place {
            block.reserve_exact(BLOCK.min(known) - block.len());
            block.resize(place + 1, None);
        }
        block[place] = Some(result);
    }

    /// Returns the number of a case, from 0; `None` if it is not known.
    #[must_use]
    pub fn number(&self, case: &str) -> Option<u32> {
        let id = |number: &u32| {
            self.suite.as_ref().and_then(|suite| suite.cases.get(*number as usize)).map(|case| &*case.id)
        };
        let found = self.by_id.binary_search_by(|number| id(number).cmp(&Some(case)));
        found.ok().and_then(|found| self.by_id.get(found)).or_else(|| self.others.get(case)).copied()
    }

    /// Returns the result of a repetition of a case, by the number of the case.
    #[must_use]
    pub fn get(&self, generation: u32, case: u32, repetition: u32) -> Option<&CaseResult> {
        in_round(self.rounds.get(&(generation, repetition))?, case)
    }

    /// Returns the results of a case with the prompt of a generation, one for each repetition.
    pub fn of_case(&self, generation: u32, case: &str) -> impl Iterator<Item = &CaseResult> {
        let rounds = self.rounds.range((generation, 0)..=(generation, u32::MAX));
        let number = self.number(case);
        rounds.filter_map(move |(_, round)| in_round(round, number?))
    }

    /// Returns all results, generation by generation.
    pub fn values(&self) -> impl Iterator<Item = &CaseResult> {
        self.rounds.values().flatten().flatten().flatten()
    }

    /// Returns the last generation that has a result; 0 if there is none.
    #[must_use]
    pub fn last_generation(&self) -> u32 {
        self.rounds.keys().next_back().map_or(0, |(generation, _)| *generation)
    }
}

fn in_round(round: &Round, case: u32) -> Option<&CaseResult> {
    round.get(case as usize / BLOCK)?.get(case as usize % BLOCK)?.as_ref()
}
