//! What is remembered of an evaluation: a fold of its events, and the sums over it.

use super::evaluated::{CaseResult, EvalEvent, EvalFacts, JudgedBy};
use super::event::{Event, EventKind};
use super::totals::Totals;
use serde::Serialize;
use std::collections::BTreeMap;

/// How a prompt did on some cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// Cases that were tried.
    pub cases: usize,
    /// Those that passed.
    pub passed: usize,
    /// Those that nobody judged.
    pub unjudged: usize,
    /// The mean of their scores, from 0 to 1; what nobody judged has 0.
    pub mean: f64,
    /// How like their expectations the outputs are, from 0 to 1.
    pub closeness: f64,
}

impl Score {
    /// Whether every case passed.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.passed == self.cases
    }
}

/// A prompt of one generation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The prompt.
    pub prompt: String,
    /// How many tokens it has.
    pub tokens: usize,
    /// Why it was not tried, if it was not.
    pub refused: Option<String>,
}

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalLedger {
    /// What it is about; none before its first event.
    pub facts: Option<EvalFacts>,
    /// The prompts by generation; the original is 0.
    pub prompts: BTreeMap<u32, Proposal>,
    /// Results by generation and case; the last of each counts.
    pub results: BTreeMap<(u32, String), CaseResult>,
    /// The generation that has won, and why nothing more was tried.
    pub chosen: Option<(u32, String)>,
    /// The sums of its attempts, and how it ended, if it did.
    pub totals: Totals,
}

impl EvalLedger {
    /// What these events come to.
    #[must_use]
    pub fn of_events(events: &[Event]) -> Self {
        let mut ledger = Self::default();
        for event in events {
            ledger.evolve(&event.event);
        }
        ledger
    }

    /// Remembers an event.
    pub fn evolve(&mut self, event: &EventKind) {
        self.totals.evolve(event);
        if let EventKind::Evaluation { what } = event {
            match what {
                EvalEvent::Began { facts } => {
                    let original = Proposal { prompt: facts.prompt.clone(), tokens: facts.tokens, refused: None };
                    self.prompts.insert(0, original);
                    self.facts = Some(facts.clone());
                    self.chosen = None;
                }
                EvalEvent::Judged { result } => {
                    self.results.insert((result.generation, result.case.clone()), result.clone());
                }
                EvalEvent::Proposed { generation, prompt, tokens, refused } => {
                    let proposal = Proposal { prompt: prompt.clone(), tokens: *tokens, refused: refused.clone() };
                    self.prompts.insert(*generation, proposal);
                }
                EvalEvent::Chose { generation, why } => self.chosen = Some((*generation, why.clone())),
            }
        }
    }

    /// The result of a case, if somebody judged it.
    #[must_use]
    pub fn judged(&self, generation: u32, case: &str) -> Option<&CaseResult> {
        let result = self.results.get(&(generation, case.to_string()))?;
        (result.judged_by != JudgedBy::Nobody).then_some(result)
    }

    /// The results of a generation, in the cases' order.
    pub fn of(&self, generation: u32) -> impl Iterator<Item = &CaseResult> {
        let cases = self.facts.iter().flat_map(|facts| &facts.cases);
        cases.filter_map(move |case| self.results.get(&(generation, case.id.clone())))
    }

    /// How a generation did on one of the two parts; none where nothing of it was tried.
    #[must_use]
    pub fn score(&self, generation: u32, held_out: bool) -> Option<Score> {
        self.score_by(generation, held_out, &|_| true)
    }

    /// The same by the cases that somebody judged with the original: what nobody could judge says nothing of any prompt (C39).
    #[must_use]
    pub fn comparable_score(&self, generation: u32, held_out: bool) -> Option<Score> {
        self.score_by(generation, held_out, &|result| self.judged(0, &result.case).is_some())
    }

    #[expect(clippy::cast_precision_loss, reason = "a file's cases")]
    fn score_by(&self, generation: u32, held_out: bool, counts: &dyn Fn(&CaseResult) -> bool) -> Option<Score> {
        let of_part = |result: &&CaseResult| result.held_out == held_out && counts(result);
        let results: Vec<&CaseResult> = self.of(generation).filter(of_part).collect();
        if results.is_empty() {
            return None;
        }
        let closeness: Vec<f64> = results.iter().filter_map(|result| result.closeness).collect();
        Some(Score {
            cases: results.len(),
            passed: results.iter().filter(|result| result.pass).count(),
            unjudged: results.iter().filter(|result| result.judged_by == JudgedBy::Nobody).count(),
            mean: results.iter().map(|result| result.score).sum::<f64>() / results.len() as f64,
            closeness: closeness.iter().fold(0.0, |sum, one| sum + one) / closeness.len().max(1) as f64,
        })
    }
}
