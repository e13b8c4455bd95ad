//! An evaluation as a decider: `decide` says what is asked next, `evolve` records what happened. No clock, no I/O, no
//! async: answers, limits and signals are inputs, questions are effects. `(improve -> guard -> execute -> evaluate):N`.

mod limits;
mod outcome;
mod pairs;
mod pool;

use super::candidate::{Guards, proposed};
use super::choose::{Patience, Progress, TriedPrompt, both_results, choose, results_of, results_of_both};
use super::compare::{compare, compare_columns, preferences};
use super::significance::{gain, mean};
use super::tokens::tokens;
use crate::engine::{
    CaseFacts, CaseResult, ChosenPrompt, EvalEvent, EvalFacts, EvalLedger, EventKind, HumanNeeded, JudgedBy,
    OutputComparison, RunOutcome,
};
pub(super) use limits::{limit_reached, may_reach};
use outcome::{nobody_judged, outcome_of_measuring};
pub(super) use pairs::OutputPair;
use pairs::open_pairs;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// The steps of an evaluation, as they are numbered in its run.
pub(super) const EXECUTES: u32 = 1;
pub(super) const EVALUATES: u32 = 2;
pub(super) const IMPROVES: u32 = 3;
pub(super) const CRITERIA: u32 = 4;

/// How often a case is tried that could not be judged, if prompts are compared by it.
const TRIES: u32 = 2;

/// An input from outside.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EvalInput {
    /// The evaluation begins or resumes with this event, and these are its facts.
    Begin(Box<EventKind>, Arc<EvalFacts>),
    /// The result of a case.
    Result(Box<CaseResult>),
    /// What the agent of `selectBest` said.
    Compared(Box<OutputComparison>),
    /// The improver's answer, or why there is none.
    Answer { generation: u32, answer: Result<String, String> },
    /// The evaluation must end, because of a signal or a limit.
    Halt(RunOutcome),
    /// The run is paused.
    Pause,
    /// The run continues after a pause.
    Continue,
}

/// One repetition of a case. All cases are run once before any is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sample {
    /// The repetition, from 1.
    pub(super) repetition: u32,
    /// The case's number, from 0.
    pub(super) case: u32,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EvalEffect {
    /// Run these samples with the prompt of a generation.
    Measure { generation: u32, samples: Vec<Sample> },
    /// Compare these outputs.
    Compare { pairs: Vec<OutputPair> },
    /// Rewrite the prompt of the generation `of`.
    Improve { generation: u32, of: u32 },
    /// The evaluation has ended.
    Finish(RunOutcome),
}

/// The cases of a generation that are tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cases {
    All,
    /// Those of `--minibatch`.
    First,
    Training,
    HeldOut,
}

/// What the evaluation is doing.
#[derive(Debug, Clone, Default, PartialEq)]
enum EvalPhase {
    /// Nothing has happened yet.
    #[default]
    New,
    Measuring {
        generation: u32,
        cases: Cases,
        /// The last repetition that is run.
        last: u32,
    },
    Improving {
        generation: u32,
        of: u32,
    },
    /// All outputs are there, and the agent of `selectBest` compares them.
    Comparing,
    /// A candidate was no better on the cases of the minibatch, or after half of its repetitions.
    Hopeless {
        generation: u32,
        saved: u32,
    },
    /// No question is left. `found` is what else is known now: the prompt that wins, or how it compares to a baseline.
    Decided {
        outcome: RunOutcome,
        found: Option<Box<EvalEvent>>,
    },
    Over(RunOutcome),
}

/// The state of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EvalState {
    pub(super) ledger: EvalLedger,
    phase: EvalPhase,
    /// The samples that are still to be run in this phase.
    open: BTreeSet<Sample>,
    /// The pairs of outputs that are still to be compared.
    pairs: BTreeSet<OutputPair>,
    /// How often a sample could not be judged since the evaluation began or resumed, by generation.
    in_vain: BTreeMap<(u32, Sample), u32>,
    /// The generations that were judged completely, with their scores; the original first.
    tried: Vec<(u32, TriedPrompt)>,
    best: (u32, TriedPrompt),
    /// The generations that were judged on all training cases, from which candidates are made.
    pool: Vec<(u32, TriedPrompt)>,
    /// The generation from which the last candidate was made.
    parent: u32,
    progress: Progress,
}

/// The result of an input.
#[derive(Debug)]
pub(super) struct EvalTransition {
    /// The new state: the old one, evolved by the events.
    pub(super) state: EvalState,
    /// What happened.
    pub(super) events: Vec<EventKind>,
    /// What is to be done about it.
    pub(super) effects: Vec<EvalEffect>,
}

impl EvalState {
    /// Returns the state that results from these events.
    pub(super) fn of_events<'a>(events: impl IntoIterator<Item = &'a EventKind>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.evolve(event);
        }
        state
    }

    /// Decides what an input leads to. An input that comes too late has no effect.
    pub(super) fn decide(mut self, guards: &Guards, input: EvalInput) -> EvalTransition {
        let (before, mut effects) = (self.phase.clone(), Vec::new());
        let mut events = match input {
            EvalInput::Begin(first, facts) => {
                vec![*first, EventKind::Evaluation { event: EvalEvent::Started { facts } }]
            }
            EvalInput::Pause => vec![EventKind::RunPaused],
            EvalInput::Continue => vec![EventKind::RunContinued],
            _ if matches!(before, EvalPhase::Over(_)) => Vec::new(),
            EvalInput::Result(result) => {
                vec![EventKind::Evaluation { event: EvalEvent::CaseJudged { result: *result } }]
            }
            EvalInput::Compared(comparison) => {
                vec![EventKind::Evaluation { event: EvalEvent::OutputsCompared { comparison: *comparison } }]
            }
            EvalInput::Answer { generation, answer } => self.answered(guards, generation, answer),
            EvalInput::Halt(outcome) => vec![EventKind::RunFinished { outcome }],
        };
        for event in &events {
            self.evolve(event);
        }
        loop {
            let what = match self.phase.clone() {
                EvalPhase::Hopeless { generation, saved } => {
                    vec![EventKind::Evaluation { event: EvalEvent::PromptStopped { generation, saved } }]
                }
                EvalPhase::Decided { outcome, found } => {
                    let found = found.map(|event| EventKind::Evaluation { event: *event });
                    found.into_iter().chain([EventKind::RunFinished { outcome }]).collect()
                }
                _ => break,
            };
            for event in &what {
                self.evolve(event);
            }
            events.extend(what);
        }
        match &self.phase {
            EvalPhase::Over(outcome) if self.phase != before => effects.push(EvalEffect::Finish(*outcome)),
            EvalPhase::Measuring { generation, .. } => {
                // Within a phase, only a sample that could not be judged is asked again.
                let samples: Vec<Sample> = if self.phase == before && !begins(&events) {
                    self.sample_of(&events).filter(|sample| self.open.contains(sample)).into_iter().collect()
                } else {
                    self.open.iter().copied().collect()
                };
                if !samples.is_empty() {
                    effects.push(EvalEffect::Measure { generation: *generation, samples });
                }
            }
            EvalPhase::Comparing if self.phase != before || begins(&events) => {
                effects.push(EvalEffect::Compare { pairs: self.pairs.iter().copied().collect() });
            }
            EvalPhase::Improving { generation, of } if self.phase != before || begins(&events) => {
                effects.push(EvalEffect::Improve { generation: *generation, of: *of });
            }
            _ => {}
        }
        EvalTransition { state: self, events, effects }
    }

    fn answered(&self, guards: &Guards, generation: u32, answer: Result<String, String>) -> Vec<EventKind> {
        let Ok(answer) = answer else {
            // Nothing is decided: a resume asks again.
            let outcome = RunOutcome::NeedsHuman { step: IMPROVES, reason: HumanNeeded::Unclear };
            return vec![EventKind::RunFinished { outcome }];
        };
        let prompt = proposed(&answer);
        let known = self.ledger.prompts.values().any(|known| known.prompt.trim() == prompt);
        let refused = guards.refusal(&prompt, known);
        let what =
            EvalEvent::PromptProposed { generation, tokens: tokens(&prompt), prompt, refused, parent: self.parent };
        vec![EventKind::Evaluation { event: what }]
    }

    /// Applies an event to the state.
    pub(super) fn evolve(&mut self, event: &EventKind) {
        self.ledger.evolve(event);
        match event {
            // Cases that could not be judged are tried again.
            EventKind::Evaluation { event: EvalEvent::Started { .. } } => {
                let ledger = std::mem::take(&mut self.ledger);
                *self = Self { ledger, ..Self::default() };
                self.measure(0, Cases::All, u32::MAX);
            }
            EventKind::Evaluation { event: EvalEvent::CaseJudged { result } } => self.judged(result),
            EventKind::Evaluation { event: EvalEvent::OutputsCompared { comparison } } => {
                if let Some(pair) = OutputPair::of(&self.ledger, comparison) {
                    self.pairs.remove(&pair);
                }
            }
            EventKind::Evaluation { event: EvalEvent::PromptStopped { generation, .. } } => self.stopped(*generation),
            EventKind::RunFinished { outcome } => self.phase = EvalPhase::Over(*outcome),
            _ => {}
        }
        self.go_on();
    }

    /// Continues until something has to be asked.
    fn go_on(&mut self) {
        loop {
            match self.phase {
                EvalPhase::Measuring { generation, cases, last } if self.open.is_empty() => {
                    self.measured(generation, cases, last);
                }
                EvalPhase::Comparing if self.pairs.is_empty() => self.compared(),
                EvalPhase::Improving { generation, .. } => match self.ledger.prompts.get(&generation) {
                    Some(known) => self.proposed(generation, known.refused.clone()),
                    None => return,
                },
                _ => return,
            }
        }
    }

    fn measured(&mut self, generation: u32, cases: Cases, last: u32) {
        let improves = self.ledger.facts.as_ref().is_some_and(|facts| facts.options.improves);
        if !improves {
            let columns = self.ledger.facts.as_ref().map_or(0, |facts| facts.columns.len());
            if generation as usize + 1 < columns {
                self.measure(generation + 1, Cases::All, u32::MAX);
                return;
            }
            self.pairs = open_pairs(&self.ledger);
            self.phase = EvalPhase::Comparing;
            return;
        }
        let result = self.tried(generation);
        let Some((_, first)) = self.tried.first().copied() else {
            (self.tried, self.pool) = (vec![(0, result)], vec![(0, result)]);
            self.best = (0, result);
            self.progress.perfect = result.training.is_perfect();
            if result.training.cases == 0 {
                // No case could be judged.
                self.phase = EvalPhase::Decided { outcome: nobody_judged(&self.ledger), found: None };
            } else {
                self.go_on_to_the_next();
            }
            return;
        };
        let whole = self.most_repetitions();
        match cases {
            Cases::First => {
                let groups = pool::minibatch(&self.ledger, self.parent, generation, self.minibatch());
                let gain = gain(&results_of_both(&self.ledger, (self.parent, generation), &groups));
                return self.go_on_or_stop(generation, gain, 0, whole.div_ceil(2));
            }
            Cases::Training if last < whole => {
                let gain = gain(&both_results(&self.ledger, generation, false));
                return self.go_on_or_stop(generation, gain, last, whole);
            }
            Cases::Training if result.training.unjudged == 0 => self.pool.push((generation, result)),
            _ => {}
        }
        let better = result.by_training(&first) == Ordering::Greater && result.training.passed > 0;
        if cases == Cases::Training && better && result.training.unjudged == 0 {
            self.measure(generation, Cases::HeldOut, whole);
            return;
        }
        if cases == Cases::HeldOut && result.held_out.is_none_or(|score| score.unjudged == 0) {
            self.tried.push((generation, result));
        }
        if result.by_training(&self.best.1) == Ordering::Greater {
            self.best = (generation, result);
            self.progress.idle = 0;
            self.progress.perfect = result.training.is_perfect();
        } else {
            self.progress.idle += 1;
        }
        self.go_on_to_the_next();
    }

    /// Ends a measurement, after which everything is compared.
    fn compared(&mut self) {
        let baseline = self.ledger.facts.as_ref().and_then(|facts| facts.baseline.as_ref());
        let comparison = baseline.map(|baseline| compare(&self.ledger, baseline));
        let outcome = outcome_of_measuring(&self.ledger, comparison.as_ref());
        let (comparisons, preferences) = (compare_columns(&self.ledger), preferences(&self.ledger));
        let columns = (!comparisons.is_empty()).then_some(EvalEvent::ColumnsCompared { comparisons, preferences });
        let found = comparison.map(|comparison| EvalEvent::BaselineCompared { comparison }).or(columns).map(Box::new);
        self.phase = EvalPhase::Decided { outcome, found };
    }

    fn proposed(&mut self, generation: u32, refused: Option<String>) {
        self.progress.attempts = generation;
        self.progress.refused = refused;
        if self.progress.refused.is_some() {
            self.progress.idle += 1;
            self.go_on_to_the_next();
        } else if self.minibatch() > 0 {
            self.measure(generation, Cases::First, u32::MAX);
        } else {
            self.measure(generation, Cases::Training, self.most_repetitions().div_ceil(2));
        }
    }

    /// Runs a candidate up to the repetition `next` if it has a gain; otherwise stops it, if that saves anything.
    fn go_on_or_stop(&mut self, generation: u32, gain: f64, last: u32, next: u32) {
        let saved = if gain > 0.0 { 0 } else { self.left(generation, last) };
        if self.ledger.stopped.contains_key(&generation) {
            self.stopped(generation);
        } else if saved == 0 {
            self.measure(generation, Cases::Training, next);
        } else {
            self.phase = EvalPhase::Hopeless { generation, saved };
        }
    }

    /// Continues after a candidate that was no better.
    fn stopped(&mut self, generation: u32) {
        if matches!(self.phase, EvalPhase::Hopeless { generation: of, .. } | EvalPhase::Measuring { generation: of, .. } if of == generation)
        {
            self.progress.idle += 1;
            self.go_on_to_the_next();
        }
    }

    /// Begins another candidate, or ends.
    fn go_on_to_the_next(&mut self) {
        let options = self.ledger.facts.as_ref().map(|facts| (facts.options.generations, facts.options.always));
        let (generations, always) = options.unwrap_or_default();
        let patience = Patience { generations, always, ..Patience::default() };
        let generation = self.progress.attempts + 1;
        let known = self.ledger.prompts.get(&generation).map(|known| known.parent);
        // A candidate that is known has been afforded.
        self.progress.used_up = known.is_none() && !limits::affords_another(&self.ledger);
        let Some(why) = self.progress.stop(patience) else {
            self.parent = known.unwrap_or_else(|| pool::parent(&self.ledger, &self.pool, generation));
            self.phase = EvalPhase::Improving { generation, of: self.parent };
            return;
        };
        let chosen = choose(&self.ledger, &self.tried, self.progress.attempts > 0, why);
        let whole = self.tried.first().is_some_and(|(_, first)| {
            first.training.is_perfect() && first.held_out.is_none_or(|score| score.is_perfect())
        });
        let outcome = if chosen.generation > 0 || whole { RunOutcome::Succeeded } else { RunOutcome::CasesFailed };
        let ChosenPrompt { generation, reason, proof, sensitivity } = chosen;
        let chosen = EvalEvent::PromptChosen { generation, reason, proof, sensitivity };
        self.phase = EvalPhase::Decided { outcome, found: Some(Box::new(chosen)) };
    }

    fn most_repetitions(&self) -> u32 {
        self.ledger.facts.iter().flat_map(|facts| &facts.cases).map(|case| case.repeat).max().unwrap_or(1)
    }

    fn minibatch(&self) -> u32 {
        self.ledger.facts.as_ref().map_or(0, |facts| facts.options.minibatch)
    }

    /// Returns how many training samples of a generation come after this repetition.
    fn left(&self, generation: u32, last: u32) -> u32 {
        let numbered = (0..).zip(self.ledger.facts.iter().flat_map(|facts| &facts.cases));
        let samples = numbered.filter(|(_, case)| !case.held_out).flat_map(|(number, case)| {
            (last + 1..=case.repeat).map(move |repetition| Sample { repetition, case: number })
        });
        u32::try_from(samples.filter(|sample| self.is_open(generation, *sample)).count()).unwrap_or(u32::MAX)
    }

    /// Begins to run those samples of a generation, up to a repetition, that are not judged yet.
    fn measure(&mut self, generation: u32, cases: Cases, last: u32) {
        let first: HashSet<&str> = match cases {
            Cases::First => pool::minibatch(&self.ledger, self.parent, generation, self.minibatch()).concat(),
            _ => Vec::new(),
        }
        .into_iter()
        .collect();
        let of_part = |case: &CaseFacts| match cases {
            Cases::All => true,
            Cases::First => first.contains(&*case.id),
            Cases::Training => !case.held_out,
            Cases::HeldOut => case.held_out,
        };
        let numbered = (0..).zip(self.ledger.facts.iter().flat_map(|facts| &facts.cases));
        let samples = numbered.filter(|(_, case)| of_part(case)).flat_map(|(number, case)| {
            (1..=case.repeat.min(last)).map(move |repetition| Sample { repetition, case: number })
        });
        self.open = samples.filter(|sample| self.is_open(generation, *sample)).collect();
        self.phase = EvalPhase::Measuring { generation, cases, last };
    }

    fn is_open(&self, generation: u32, sample: Sample) -> bool {
        let facts = self.ledger.facts.as_ref();
        if facts.is_none_or(|facts| sample.case as usize >= facts.cases.len()) {
            return false;
        }
        let in_vain = self.in_vain.get(&(generation, sample)).copied().unwrap_or(0);
        let tries = if facts.is_some_and(|facts| facts.options.improves) { TRIES } else { 1 };
        let result = self.ledger.results.get(generation, sample.case, sample.repetition);
        result.is_none_or(|result| result.judged_by == JudgedBy::Nobody) && in_vain < tries
    }

    fn judged(&mut self, result: &CaseResult) {
        let Some(case) = self.ledger.results.number(&result.case) else { return };
        let sample = Sample { repetition: result.repetition, case };
        if result.judged_by == JudgedBy::Nobody {
            *self.in_vain.entry((result.generation, sample)).or_default() += 1;
        }
        if !self.is_open(result.generation, sample) {
            self.open.remove(&sample);
        }
    }

    /// Returns the sample whose result these events contain.
    fn sample_of(&self, events: &[EventKind]) -> Option<Sample> {
        let Some(EventKind::Evaluation { event: EvalEvent::CaseJudged { result } }) = events.first() else {
            return None;
        };
        let case = self.ledger.results.number(&result.case)?;
        Some(Sample { repetition: result.repetition, case })
    }

    fn tried(&self, generation: u32) -> TriedPrompt {
        TriedPrompt {
            training: self.ledger.comparable_score(generation, false).unwrap_or_default(),
            held_out: self.ledger.comparable_score(generation, true),
            tokens: self.ledger.prompts.get(&generation).map_or(0, |known| known.tokens),
        }
    }
}

fn begins(events: &[EventKind]) -> bool {
    events.iter().any(|event| matches!(event, EventKind::Evaluation { event: EvalEvent::Started { .. } }))
}

#[cfg(test)]
mod tests;
