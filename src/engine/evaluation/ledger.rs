//! The state of an evaluation, as a fold of its events.

use super::event::{
    CaseResult, ColumnComparison, ColumnPreference, Comparison, EvalEvent, EvalFacts, JudgedBy, OutputComparison,
    Proof, Sensitivity,
};
use super::results::CaseResults;
use super::score::Score;
use crate::engine::event::{Event, EventKind};
use crate::engine::totals::Totals;
use indexmap::IndexMap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// The generation of the prompt from which it was made; 0 for the original.
    pub parent: u32,
}

/// The prompt that was chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChosenPrompt {
    /// The generation of the prompt; 0 for the original.
    pub generation: u32,
    /// Why no further prompt was tried.
    pub reason: String,
    /// Whether it is better than the original beyond chance; `None` for the original.
    pub proof: Option<Proof>,
    /// What the evaluation could find; `None` if no other prompt was compared.
    pub sensitivity: Option<Sensitivity>,
}

impl ChosenPrompt {
    /// Whether it is another prompt than the original, and not proven to be better.
    #[must_use]
    pub fn is_unproven(&self) -> bool {
        self.proof.is_some_and(|proof| !proof.proven)
    }
}

/// The state of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvalLedger {
    /// The facts of the evaluation; `None` before its first event.
    pub facts: Option<Arc<EvalFacts>>,
    /// The prompts by generation; the original is 0.
    pub prompts: BTreeMap<u32, Proposal>,
    /// The results of the cases.
    pub results: CaseResults,
    /// The prompts that were not run any further, with the number of results that this saved.
    pub stopped: BTreeMap<u32, u32>,
    /// How it compares to an earlier evaluation, if it was compared.
    pub comparison: Option<Comparison>,
    /// How the best of several columns compares to the others.
    pub columns: Vec<ColumnComparison>,
    /// Which of each two columns the agent of `selectBest` prefers.
    pub preferences: Vec<ColumnPreference>,
    /// The outputs that it has compared, by the columns that were shown first and second, the case and the repetition.
    pub compared: BTreeMap<(u32, u32, Arc<str>, u32), OutputComparison>,
    /// The chosen prompt, if there is one.
    pub chosen: Option<ChosenPrompt>,
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
                    let original =
                        Proposal { prompt: facts.prompt.clone(), tokens: facts.tokens, refused: None, parent: 0 };
                    self.prompts.insert(0, original);
                    for (generation, column) in (0..).zip(&facts.columns) {
                        let (prompt, tokens) = (column.prompt.clone(), column.tokens);
                        self.prompts.insert(generation, Proposal { prompt, tokens, refused: None, parent: 0 });
                    }
                    self.results.number_cases(facts);
                    self.facts = Some(Arc::clone(facts));
                    (self.chosen, self.comparison) = (None, None);
                    self.columns.clear();
                    self.preferences.clear();
                }
                EvalEvent::CaseJudged { result } => self.results.insert(result.clone()),
                EvalEvent::PromptProposed { generation, prompt, tokens, refused, parent } => {
                    let proposal =
                        Proposal { prompt: prompt.clone(), tokens: *tokens, refused: refused.clone(), parent: *parent };
                    self.prompts.insert(*generation, proposal);
                }
                EvalEvent::PromptStopped { generation, saved } => {
                    self.stopped.insert(*generation, *saved);
                }
                EvalEvent::ColumnsCompared { comparisons, preferences } => {
                    self.columns.clone_from(comparisons);
                    self.preferences.clone_from(preferences);
                }
                EvalEvent::OutputsCompared { comparison } => {
                    let OutputComparison { first, second, case, repetition, .. } = comparison;
                    self.compared.insert((*first, *second, Arc::clone(case), *repetition), comparison.clone());
                }
                EvalEvent::BaselineCompared { comparison } => self.comparison = Some(comparison.clone()),
                EvalEvent::PromptChosen { generation, reason, proof, sensitivity } => {
                    let (generation, reason) = (*generation, reason.clone());
                    self.chosen = Some(ChosenPrompt { generation, reason, proof: *proof, sensitivity: *sensitivity });
                }
            }
        }
    }

    /// Returns the generation of the prompt that was chosen; 0, the original, before that.
    #[must_use]
    pub fn winner(&self) -> u32 {
        self.chosen.as_ref().map_or(0, |chosen| chosen.generation)
    }

    /// Returns the results of a case with the prompt of a generation, one for each repetition.
    pub fn of_case(&self, generation: u32, case: &str) -> impl Iterator<Item = &CaseResult> {
        self.results.of_case(generation, case)
    }

    /// Returns those results of a case that were judged.
    pub fn judged(&self, generation: u32, case: &str) -> impl Iterator<Item = &CaseResult> {
        self.of_case(generation, case).filter(|result| result.judged_by != JudgedBy::Nobody)
    }

    /// Returns the results of a generation, in the order of the cases.
    pub fn of(&self, generation: u32) -> impl Iterator<Item = &CaseResult> {
        let cases = self.facts.iter().flat_map(|facts| &facts.cases);
        cases.flat_map(move |case| self.of_case(generation, &case.id))
    }

    /// Returns the values of the results of each case with the prompt of a generation, for a comparison.
    #[must_use]
    pub fn values(&self, generation: u32) -> BTreeMap<String, Vec<f64>> {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for result in self.of(generation).filter(|result| result.judged_by != JudgedBy::Nobody) {
            values.entry(result.case.to_string()).or_default().push(result.value());
        }
        values
    }

    /// Returns the ids of the cases of a part, those together that ask the same.
    #[must_use]
    pub fn groups(&self, held_out: bool) -> Vec<Vec<&str>> {
        let mut groups: IndexMap<&str, Vec<&str>> = IndexMap::new();
        let cases = self.facts.iter().flat_map(|facts| &facts.cases);
        for case in cases.filter(|case| case.held_out == held_out) {
            groups.entry(case.same_as.as_deref().unwrap_or(&case.id)).or_default().push(&case.id);
        }
        groups.into_values().collect()
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
        self.score_by(generation, held_out, &|result| self.judged(0, &result.case).next().is_some())
    }

    /// Returns what an answer has cost on average with the prompt of a generation, in US dollars; `None` if no cost is
    /// known.
    #[must_use]
    pub fn mean_cost(&self, generation: u32) -> Option<f64> {
        mean(self.of(generation).filter_map(|result| result.cost_usd))
    }

    /// Returns how long an answer has taken on average, in milliseconds; `None` if no time is known.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a length of time")]
    pub fn mean_time(&self, generation: u32) -> Option<f64> {
        mean(self.of(generation).filter_map(|result| result.took_ms).map(|time| time as f64))
    }

    /// Returns the score of a generation on one case; `None` if it was not tried.
    #[must_use]
    pub fn case_score(&self, generation: u32, case: &str) -> Option<Score> {
        Score::of(&self.of_case(generation, case).collect::<Vec<_>>())
    }

    fn score_by(&self, generation: u32, held_out: bool, counts: &dyn Fn(&CaseResult) -> bool) -> Option<Score> {
        let of_part = |result: &&CaseResult| result.held_out == held_out && counts(result);
        Score::of(&self.of(generation).filter(of_part).collect::<Vec<_>>())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of results")]
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}
