//! An evaluation as a decider: `decide` says what is asked next, `evolve` records what happened. No clock, no I/O, no
//! async: answers, limits and signals are inputs, questions are effects. `(improve -> guard -> execute -> evaluate):N`.

use super::candidate::{Guards, proposed};
use super::choose::{Patience, Progress, TriedPrompt, winner};
use super::tokens::tokens;
use crate::engine::{
    CaseResult, EvalEvent, EvalFacts, EvalLedger, EventKind, HumanNeeded, JudgedBy, LimitKind, RunOutcome,
};
use crate::plan::Limits;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The steps of an evaluation, as they are numbered in its run.
pub(super) const EXECUTES: u32 = 1;
pub(super) const EVALUATES: u32 = 2;
pub(super) const IMPROVES: u32 = 3;

/// How often a case is tried that could not be judged, if prompts are compared by it.
const TRIES: u32 = 2;

/// An input from outside.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EvalInput {
    /// The evaluation begins or resumes with this event, and these are its facts.
    Begin(Box<EventKind>, Box<EvalFacts>),
    /// The result of a case.
    Result(Box<CaseResult>),
    /// The improver's answer, or why there is none.
    Answer { generation: u32, answer: Result<String, String> },
    /// The evaluation must end, because of a signal or a limit.
    Halt(RunOutcome),
    /// The run is paused.
    Pause,
    /// The run continues after a pause.
    Continue,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EvalEffect {
    /// Try these cases, by their numbers from 0, with the prompt of a generation.
    Measure { generation: u32, cases: Vec<usize> },
    /// Rewrite the prompt of the generation `of`.
    Improve { generation: u32, of: u32 },
    /// The evaluation has ended.
    Finish(RunOutcome),
}

/// The cases of a generation that are tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cases {
    All,
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
    },
    Improving {
        generation: u32,
        of: u32,
    },
    /// No question is left. `choice` is the generation that wins, and why no other is tried, if prompts were compared.
    Decided {
        outcome: RunOutcome,
        choice: Option<(u32, String)>,
    },
    Over(RunOutcome),
}

/// The state of an evaluation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EvalState {
    pub(super) ledger: EvalLedger,
    phase: EvalPhase,
    /// The number of each case, from 0, by its ID.
    numbers: HashMap<String, usize>,
    /// The cases that are still to be tried in this phase.
    open: BTreeSet<usize>,
    /// How often a case could not be judged since the evaluation began or resumed, by generation and case.
    in_vain: BTreeMap<(u32, String), u32>,
    /// The generations that were judged completely, with their scores; the original first.
    tried: Vec<(u32, TriedPrompt)>,
    best: (u32, TriedPrompt),
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
                vec![*first, EventKind::Evaluation { event: EvalEvent::Started { facts: *facts } }]
            }
            EvalInput::Pause => vec![EventKind::RunPaused],
            EvalInput::Continue => vec![EventKind::RunContinued],
            _ if matches!(before, EvalPhase::Over(_)) => Vec::new(),
            EvalInput::Result(result) => {
                vec![EventKind::Evaluation { event: EvalEvent::CaseJudged { result: *result } }]
            }
            EvalInput::Answer { generation, answer } => self.answered(guards, generation, answer),
            EvalInput::Halt(outcome) => vec![EventKind::RunFinished { outcome }],
        };
        for event in &events {
            self.evolve(event);
        }
        if let EvalPhase::Decided { outcome, choice } = self.phase.clone() {
            let chose = choice.map(|(generation, why)| EventKind::Evaluation {
                event: EvalEvent::PromptChosen { generation, reason: why },
            });
            let last: Vec<EventKind> = chose.into_iter().chain([EventKind::RunFinished { outcome }]).collect();
            for event in &last {
                self.evolve(event);
            }
            events.extend(last);
        }
        match &self.phase {
            EvalPhase::Over(outcome) if self.phase != before => effects.push(EvalEffect::Finish(*outcome)),
            EvalPhase::Measuring { generation, .. } => {
                // Within a phase, only a case that could not be judged is asked again.
                let cases: Vec<usize> = if self.phase == before && !begins(&events) {
                    self.number_of(&events).filter(|number| self.open.contains(number)).into_iter().collect()
                } else {
                    self.open.iter().copied().collect()
                };
                if !cases.is_empty() {
                    effects.push(EvalEffect::Measure { generation: *generation, cases });
                }
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
        let what = EvalEvent::PromptProposed { generation, tokens: tokens(&prompt), prompt, refused };
        vec![EventKind::Evaluation { event: what }]
    }

    /// Applies an event to the state.
    pub(super) fn evolve(&mut self, event: &EventKind) {
        self.ledger.evolve(event);
        match event {
            // Cases that could not be judged are tried again.
            EventKind::Evaluation { event: EvalEvent::Started { .. } } => {
                let ledger = std::mem::take(&mut self.ledger);
                let ids = ledger.facts.iter().flat_map(|facts| &facts.cases).map(|case| case.id.clone());
                let numbers = ids.zip(0..).collect();
                *self = Self { ledger, numbers, ..Self::default() };
                self.measure(0, Cases::All);
            }
            EventKind::Evaluation { event: EvalEvent::CaseJudged { result } } => self.judged(result),
            EventKind::RunFinished { outcome } => self.phase = EvalPhase::Over(*outcome),
            _ => {}
        }
        self.go_on();
    }

    /// Continues until something has to be asked.
    fn go_on(&mut self) {
        loop {
            match self.phase {
                EvalPhase::Measuring { generation, cases } if self.open.is_empty() => self.measured(generation, cases),
                EvalPhase::Improving { generation, .. } => match self.ledger.prompts.get(&generation) {
                    Some(known) => self.proposed(generation, known.refused.clone()),
                    None => return,
                },
                _ => return,
            }
        }
    }

    fn measured(&mut self, generation: u32, cases: Cases) {
        let improves = self.ledger.facts.as_ref().is_some_and(|facts| facts.options.improves);
        if !improves {
            self.phase = EvalPhase::Decided { outcome: self.outcome_of_the_original(), choice: None };
            return;
        }
        let result = self.tried(generation);
        let Some((_, first)) = self.tried.first().copied() else {
            self.tried = vec![(0, result)];
            self.best = (0, result);
            self.progress.perfect = result.training.is_perfect();
            if result.training.cases == 0 {
                // No case could be judged.
                self.phase = EvalPhase::Decided { outcome: self.nobody_judged(), choice: None };
            } else {
                self.go_on_to_the_next();
            }
            return;
        };
        let better = result.by_training(&first) == Ordering::Greater && result.training.passed > 0;
        if cases == Cases::Training && better && result.training.unjudged == 0 {
            self.measure(generation, Cases::HeldOut);
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

    fn proposed(&mut self, generation: u32, refused: Option<String>) {
        self.progress.attempts = generation;
        self.progress.refused = refused;
        if self.progress.refused.is_some() {
            self.progress.idle += 1;
            self.go_on_to_the_next();
        } else {
            self.measure(generation, Cases::Training);
        }
    }

    /// Begins another candidate, or ends.
    fn go_on_to_the_next(&mut self) {
        let options = self.ledger.facts.as_ref().map(|facts| (facts.options.generations, facts.options.always));
        let (generations, always) = options.unwrap_or_default();
        let patience = Patience { generations, always, ..Patience::default() };
        let Some(why) = self.progress.stop(patience) else {
            self.phase = EvalPhase::Improving { generation: self.progress.attempts + 1, of: self.best.0 };
            return;
        };
        let generation = winner(&self.tried);
        let whole = self.tried.first().is_some_and(|(_, first)| {
            first.training.is_perfect() && first.held_out.is_none_or(|score| score.is_perfect())
        });
        let outcome = if generation > 0 || whole { RunOutcome::Succeeded } else { RunOutcome::CasesFailed };
        self.phase = EvalPhase::Decided { outcome, choice: Some((generation, why)) };
    }

    /// Begins to try those cases of a generation that are not judged yet.
    fn measure(&mut self, generation: u32, cases: Cases) {
        let of_part = |held_out: bool| match cases {
            Cases::All => true,
            Cases::Training => !held_out,
            Cases::HeldOut => held_out,
        };
        let numbered = self.ledger.facts.iter().flat_map(|facts| &facts.cases).enumerate();
        let open = numbered.filter(|(_, case)| of_part(case.held_out) && self.is_open(generation, &case.id));
        self.open = open.map(|(number, _)| number).collect();
        self.phase = EvalPhase::Measuring { generation, cases };
    }

    fn is_open(&self, generation: u32, id: &str) -> bool {
        let improves = self.ledger.facts.as_ref().is_some_and(|facts| facts.options.improves);
        let in_vain = self.in_vain.get(&(generation, id.to_string())).copied().unwrap_or(0);
        self.ledger.judged(generation, id).is_none() && in_vain < if improves { TRIES } else { 1 }
    }

    fn judged(&mut self, result: &CaseResult) {
        if result.judged_by == JudgedBy::Nobody {
            *self.in_vain.entry((result.generation, result.case.clone())).or_default() += 1;
        }
        if !self.is_open(result.generation, &result.case)
            && let Some(number) = self.numbers.get(&result.case)
        {
            self.open.remove(number);
        }
    }

    /// Returns the number of the case whose result these events contain.
    fn number_of(&self, events: &[EventKind]) -> Option<usize> {
        let Some(EventKind::Evaluation { event: EvalEvent::CaseJudged { result } }) = events.first() else {
            return None;
        };
        self.numbers.get(&result.case).copied()
    }

    /// Returns the outcome of measuring one prompt.
    fn outcome_of_the_original(&self) -> RunOutcome {
        let wanting = |judged: bool| self.ledger.of(0).any(|result| result.error.is_none() == judged && !result.pass);
        match (wanting(true), wanting(false)) {
            (true, _) => RunOutcome::CasesFailed,
            (false, true) => self.nobody_judged(),
            (false, false) => RunOutcome::Succeeded,
        }
    }

    /// Returns the outcome of cases that could not be judged: a resume asks an evaluator again.
    fn nobody_judged(&self) -> RunOutcome {
        let evaluator = |error: &str| error.starts_with("evaluator_error");
        let unclear = self.ledger.of(0).any(|result| result.error.as_deref().is_some_and(evaluator));
        if unclear {
            RunOutcome::NeedsHuman { step: EVALUATES, reason: HumanNeeded::Unclear }
        } else {
            RunOutcome::Failed { step: EXECUTES }
        }
    }

    fn tried(&self, generation: u32) -> TriedPrompt {
        TriedPrompt {
            training: self.ledger.comparable_score(generation, false).unwrap_or_default(),
            held_out: self.ledger.comparable_score(generation, true),
            tokens: self.ledger.prompts.get(&generation).map_or(0, |known| known.tokens),
        }
    }

    /// Returns the limit that prevents another question, if one is reached. `issued` is the number of questions asked
    /// so far; `late` says whether the time limit of the whole evaluation has passed.
    pub(super) fn limit_reached(
        &self,
        limits: &Limits,
        attempts: Option<u32>,
        issued: u32,
        late: bool,
    ) -> Option<LimitKind> {
        let spent = self.ledger.totals.all.spent.unwrap_or_default();
        [
            (limits.cost.is_some_and(|most| spent.cost_usd.unwrap_or(0.0) >= most), LimitKind::Cost),
            (limits.tokens.is_some_and(|most| spent.total() >= most), LimitKind::Tokens),
            (attempts.is_some_and(|most| self.ledger.totals.planned.max(issued) >= most), LimitKind::Attempts),
            (late, LimitKind::Time),
        ]
        .into_iter()
        .find_map(|(reached, limit)| reached.then_some(limit))
    }
}

fn begins(events: &[EventKind]) -> bool {
    events.iter().any(|event| matches!(event, EventKind::Evaluation { event: EvalEvent::Started { .. } }))
}

#[cfg(test)]
mod tests;
