//! The state of an evaluation, as a fold of its events, and the scores computed from it.

use super::eval_event::{CaseResult, EvalEvent, EvalFacts, JudgedBy};
use super::event::{Event, EventKind};
use super::totals::Totals;
use serde::Serialize;
use std::collections::BTreeMap;

/// The score of a prompt on a set of cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// The number of cases that were tried.
    pub cases: usize,
    /// The number of cases that passed.
    pub passed: usize,
    /// The number of cases that were not judged.
    pub unjudged: usize,
    /// The mean of their scores, from 0 to 1. A case that was not judged counts as 0.
    pub mean: f64,
    /// The mean similarity of the outputs to the expected outputs, from 0 to 1.
    pub closeness: f64,
}

impl Score {
    /// Returns whether every case passed.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.passed == self.cases
    }
}

/// The prompt of one generation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The text of the prompt.
    pub prompt: String,
    /// The length of the prompt, in tokens.
    pub tokens: usize,
    /// Why the prompt was not tried; `None` if it was.
    pub refused: Option<String>,
}

/// The state of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalLedger {
    /// The facts of the evaluation; `None` before its first event.
    pub facts: Option<EvalFacts>,
    /// The prompts by generation; the original is 0.
    pub prompts: BTreeMap<u32, Proposal>,
    /// The results by generation and case id. A later result replaces an earlier one.
    pub results: BTreeMap<(u32, String), CaseResult>,
    /// The generation of the chosen prompt, and why no further prompt was tried.
    pub chosen: Option<(u32, String)>,
    /// The totals of its attempts, and its outcome if it has ended.
    pub totals: Totals,
}

impl EvalLedger {
    /// Returns the state after these events.
    #[must_use]
    pub fn of_events(events: &[Event]) -> Self {
        let mut ledger = Self::default();
        for event in events {
            ledger.evolve(&event.event);
        }
        ledger
    }

    /// Applies an event.
    pub fn evolve(&mut self, event: &EventKind) {
        self.totals.evolve(event);
        if let EventKind::Evaluation { event: what } = event {
            match what {
                EvalEvent::Started { facts } => {
                    let original = Proposal { prompt: facts.prompt.clone(), tokens: facts.tokens, refused: None };
                    self.prompts.insert(0, original);
                    self.facts = Some(facts.clone());
                    self.chosen = None;
                }
                EvalEvent::CaseJudged { result } => {
                    self.results.insert((result.generation, result.case.clone()), result.clone());
                }
                EvalEvent::PromptProposed { generation, prompt, tokens, refused } => {
                    let proposal = Proposal { prompt: prompt.clone(), tokens: *tokens, refused: refused.clone() };
                    self.prompts.insert(*generation, proposal);
                }
                EvalEvent::PromptChosen { generation, reason: why } => self.chosen = Some((*generation, why.clone())),
            }
        }
    }

    /// Returns the result of a case, if it was judged.
    #[must_use]
    pub fn judged(&self, generation: u32, case: &str) -> Option<&CaseResult> {
        let result = self.results.get(&(generation, case.to_string()))?;
        (result.judged_by != JudgedBy::Nobody).then_some(result)
    }

    /// Returns the results of a generation, in the order of the cases.
    pub fn of(&self, generation: u32) -> impl Iterator<Item = &CaseResult> {
        let cases = self.facts.iter().flat_map(|facts| &facts.cases);
        cases.filter_map(move |case| self.results.get(&(generation, case.id.clone())))
    }

    /// Returns the score of a generation on the held-out cases or on the others; `None` if none of them was tried.
    #[must_use]
    pub fn score(&self, generation: u32, held_out: bool) -> Option<Score> {
        self.score_by(generation, held_out, &|_| true)
    }

    /// Like [`Self::score`], but only over the cases that were judged with the original prompt. A case that could not
    /// be judged says nothing about any prompt.
    #[must_use]
    pub fn comparable_score(&self, generation: u32, held_out: bool) -> Option<Score> {
        self.score_by(generation, held_out, &|result| self.judged(0, &result.case).is_some())
    }

    #[expect(clippy::cast_precision_loss, reason = "a suite has few cases")]
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
