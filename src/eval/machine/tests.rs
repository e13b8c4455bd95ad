//! Properties of the machine, over random evaluations: a replay leads to the same state, and an evaluation that is
//! interrupted anywhere has the same result when it resumes.

use super::*;
use crate::engine::{AnswerAttempt, ColumnFacts, EvalBudget, EvalOptions, LimitKind, RemarkTexts};
use crate::eval::leak::LeakGuard;
use crate::plan::Overrides;
use indexmap::IndexMap;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// A small generator (xorshift), so that a failure names its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

const FIRST: Sample = Sample { repetition: 1, case: 0 };

/// What is asked, and a world that gives the same answer to the same question.
struct SimulatedAgents {
    seed: u64,
    facts: EvalFacts,
    /// How many of a thousand answers pass with the prompt of a generation. `None`: whatever comes.
    rates: Option<fn(u32) -> u32>,
}

impl SimulatedAgents {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed * 2 + 1);
        chance.below(9);
        let case = |number: u64, held_out, repeat| CaseFacts {
            id: format!("case {number}").into(),
            held_out,
            repeat,
            same_as: None,
            label: None,
        };
        let cases = 1 + chance.below(4);
        let repeat = [1, 1, 1, 2, 3][usize::try_from(chance.below(5)).unwrap()];
        let options = EvalOptions {
            improves: chance.below(4) > 0,
            generations: u32::try_from(chance.below(5)).unwrap(),
            always: chance.below(2) == 0,
            minibatch: u32::try_from(chance.below(3)).unwrap(),
            budget: EvalBudget {
                attempts: (chance.below(3) == 0).then(|| u32::try_from(chance.below(9)).unwrap()),
                cost_usd: None,
            },
            max_tokens: 200,
            level: 0.05,
            ..EvalOptions::default()
        };
        let columns = if options.improves { 0 } else { chance.below(3) };
        let facts = EvalFacts {
            columns: (0..columns).map(|_| ColumnFacts::default()).collect(),
            selector: (columns > 1 && chance.below(2) == 0).then(|| "judge".into()),
            prompt: "Say what the text says.".into(),
            tokens: 6,
            cases: (0..cases).map(|number| case(number, number > 0 && chance.below(3) == 0, repeat)).collect(),
            options,
            ..EvalFacts::default()
        };
        Self { seed, facts, rates: None }
    }

    fn guards(&self) -> Guards {
        Guards::new(LeakGuard::new(&self.facts.prompt, std::iter::empty()), &self.facts.prompt, 200)
    }

    fn answer(&self, generation: u32, number: u64) -> Chance {
        let mut chance = Chance((self.seed << 16 | u64::from(generation) << 8 | number) * 2 + 1);
        chance.below(9);
        chance
    }

    fn result(&self, generation: u32, Sample { case, repetition }: Sample) -> CaseResult {
        let mut chance = self.answer(generation, (u64::from(repetition) << 32) + u64::from(case) + 1);
        let nobody = self.rates.is_none() && chance.below(5) == 0;
        let pass = match self.rates {
            Some(rates) => {
                let place =
                    (self.seed << 40) + (u64::from(generation) << 32) + (u64::from(repetition) << 16) + u64::from(case);
                ChaCha8Rng::seed_from_u64(place).random_ratio(rates(generation), 1000)
            }
            None => !nobody && chance.below(2) == 0,
        };
        CaseResult {
            generation,
            case: self.facts.cases[case as usize].id.clone(),
            repetition,
            held_out: self.facts.cases[case as usize].held_out,
            pass,
            score: if pass { 1.0 } else { 0.0 },
            closeness: None,
            judged_by: if nobody { JudgedBy::Nobody } else { JudgedBy::Criteria },
            remarks: RemarkTexts { error: nobody.then(|| "executor_error".into()), ..RemarkTexts::default() }.into(),
            cached: false,
            answer: (!nobody).then_some(AnswerAttempt { run: 1, attempt: 1 }),
            cost_usd: None,
            took_ms: None,
        }
    }

    fn comparison(&self, pair: OutputPair) -> OutputComparison {
        let mut chance = self.answer(pair.first << 4 | pair.second, u64::from(pair.repetition << 8 | pair.case));
        OutputComparison {
            case: self.facts.cases[pair.case as usize].id.clone(),
            repetition: pair.repetition,
            first: pair.first,
            second: pair.second,
            better: [None, Some(pair.first), Some(pair.second)][usize::try_from(chance.below(3)).unwrap()],
            error: (chance.below(5) == 0).then(|| "it failed".into()),
        }
    }

    /// Ten cases, three generations, and answers that pass by chance.
    fn of_coins(seed: u64, repeat: u32, rates: fn(u32) -> u32) -> Self {
        let case = |number| CaseFacts {
            id: format!("case {number}").into(),
            held_out: false,
            repeat,
            same_as: None,
            label: None,
        };
        let facts = EvalFacts {
            prompt: "Say what the text says.".into(),
            tokens: 6,
            cases: (0..10).map(case).collect(),
            options: EvalOptions {
                improves: true,
                generations: 3,
                max_tokens: 200,
                level: 0.05,
                ..EvalOptions::default()
            },
            ..EvalFacts::default()
        };
        Self { seed, facts, rates: Some(rates) }
    }

    fn chosen(&self) -> ChosenPrompt {
        let (_, ledger, _) = SimulatedEvaluation::begin(self, Vec::new()).end(&mut Chance(self.seed));
        ledger.chosen.unwrap()
    }

    /// Some rewrites are empty, or were proposed before.
    fn rewriting(&self, generation: u32) -> String {
        match self.answer(generation, 0).below(5) {
            _ if self.rates.is_some() => format!("Say what the text says, version {generation}."),
            0 => String::new(),
            1 => "Say again what the text says.".into(),
            _ => format!("Say what the text says, in {} words.", generation + 2),
        }
    }

    fn begin(&self) -> EvalInput {
        let first = EventKind::RunStarted {
            containment: crate::engine::Containment::Whole,
            queue: None,
            found: None,
            tree: None,
            rules: None,
            chain: "eval".into(),
            name: None,
            prompt: None,
            vars: IndexMap::new(),
            digest: String::new(),
            root: "/".into(),
            forkhestra: String::new(),
            steps: 3,
            overrides: Overrides::default(),
            base: None,
            task: None,
        };
        EvalInput::Begin(Box::new(first), Arc::new(self.facts.clone()))
    }

    /// The most questions that can be asked between two interruptions.
    fn most_questions(&self) -> usize {
        let generations = self.facts.options.generations as usize + 1;
        let samples: u32 = self.facts.cases.iter().map(|case| case.repeat).sum();
        let columns = self.facts.columns.len();
        generations.max(columns) * ((samples * TRIES) as usize + 1) + samples as usize * columns * columns
    }
}

/// An evaluation in progress: its state, its journal, and what is to be done.
struct SimulatedEvaluation<'a> {
    world: &'a SimulatedAgents,
    state: EvalState,
    journal: Vec<EventKind>,
    effects: Vec<EvalEffect>,
    questions: usize,
}

impl<'a> SimulatedEvaluation<'a> {
    fn begin(world: &'a SimulatedAgents, journal: Vec<EventKind>) -> Self {
        let state = EvalState::of_events(&journal);
        let mut evaluation = Self { world, state, journal, effects: Vec::new(), questions: 0 };
        evaluation.take(world.begin());
        evaluation
    }

    fn take(&mut self, input: EvalInput) {
        let EvalTransition { state, events, effects } =
            std::mem::take(&mut self.state).decide(&self.world.guards(), input);
        self.state = state;
        self.journal.extend(events);
        for effect in effects {
            match effect {
                EvalEffect::Measure { generation, samples } => {
                    let one = |sample| EvalEffect::Measure { generation, samples: vec![sample] };
                    self.effects.extend(samples.into_iter().map(one));
                }
                EvalEffect::Compare { pairs } => {
                    self.effects.extend(pairs.into_iter().map(|pair| EvalEffect::Compare { pairs: vec![pair] }));
                }
                effect => self.effects.push(effect),
            }
        }
    }

    /// Does one of the things to be done; returns the outcome when nothing is left.
    fn step(&mut self, chance: &mut Chance) -> Option<RunOutcome> {
        assert!(!self.effects.is_empty(), "seed {}: nothing to do, and not over", self.world.seed);
        let which = usize::try_from(chance.below(self.effects.len() as u64)).unwrap();
        let input = match self.effects.swap_remove(which) {
            EvalEffect::Measure { generation, samples } => {
                EvalInput::Result(Box::new(self.world.result(generation, samples[0])))
            }
            EvalEffect::Compare { pairs } => EvalInput::Compared(Box::new(self.world.comparison(pairs[0]))),
            EvalEffect::Improve { generation, .. } => {
                EvalInput::Answer { generation, answer: Ok(self.world.rewriting(generation)) }
            }
            EvalEffect::Finish(outcome) => return Some(outcome),
        };
        self.questions += 1;
        self.take(input);
        None
    }

    fn end(mut self, chance: &mut Chance) -> (RunOutcome, EvalLedger, Vec<EventKind>) {
        loop {
            if let Some(outcome) = self.step(chance) {
                assert!(self.effects.is_empty(), "seed {}: it goes on after its end", self.world.seed);
                return (outcome, self.state.ledger, self.journal);
            }
            assert!(self.questions <= self.world.most_questions(), "seed {}: too many questions", self.world.seed);
        }
    }
}

#[test]
fn a_replay_of_the_events_leads_to_the_same_state() {
    for seed in 1..300 {
        let world = SimulatedAgents::new(seed);
        let mut chance = Chance(seed);
        let mut evaluation = SimulatedEvaluation::begin(&world, Vec::new());
        loop {
            assert_eq!(EvalState::of_events(&evaluation.journal), evaluation.state, "seed {seed}");
            if evaluation.step(&mut chance).is_some() {
                break;
            }
        }
    }
}

#[test]
fn an_evaluation_that_is_cut_off_anywhere_ends_the_same_when_it_goes_on() {
    for seed in 1..300 {
        let world = SimulatedAgents::new(seed);
        let mut chance = Chance(seed);
        let (outcome, ledger, journal) = SimulatedEvaluation::begin(&world, Vec::new()).end(&mut chance);
        for cut in 1..journal.len() {
            let (again, after, _) = SimulatedEvaluation::begin(&world, journal[..cut].to_vec()).end(&mut chance);
            assert_eq!((again, &after.chosen), (outcome, &ledger.chosen), "seed {seed}, cut after {cut} events");
            assert_eq!((&after.results, &after.prompts), (&ledger.results, &ledger.prompts), "seed {seed}, cut {cut}");
            assert_eq!((&after.compared, &after.preferences), (&ledger.compared, &ledger.preferences), "seed {seed}");
        }
    }
}

#[test]
fn a_signal_ends_an_evaluation_at_any_moment_and_a_late_answer_changes_nothing() {
    for seed in 1..100 {
        let world = SimulatedAgents::new(seed);
        let mut chance = Chance(seed);
        let mut evaluation = SimulatedEvaluation::begin(&world, Vec::new());
        for _ in 0..chance.below(5) {
            if evaluation.effects.iter().any(|effect| matches!(effect, EvalEffect::Finish(_))) {
                break;
            }
            evaluation.step(&mut chance);
        }
        evaluation.take(EvalInput::Halt(RunOutcome::LimitReached { limit: LimitKind::Cost }));
        let before = evaluation.journal.clone();
        assert!(matches!(before.last(), Some(EventKind::RunFinished { .. })), "seed {seed}");
        evaluation.take(EvalInput::Result(Box::new(world.result(0, FIRST))));
        assert_eq!(evaluation.journal, before, "seed {seed}");
    }
}

#[test]
fn a_case_that_nobody_can_judge_is_asked_twice_where_prompts_are_compared_and_else_once() {
    for (improves, times) in [(true, 2), (false, 1)] {
        let mut world = SimulatedAgents::new(1);
        world.facts.options.improves = improves;
        world.facts.cases.truncate(1);
        world.facts.cases[0].repeat = 1;
        let mut evaluation = SimulatedEvaluation::begin(&world, Vec::new());
        let unjudged = CaseResult {
            judged_by: JudgedBy::Nobody,
            remarks: RemarkTexts { error: Some("evaluator_error: none".into()), ..RemarkTexts::default() }.into(),
            ..world.result(0, FIRST)
        };
        for _ in 0..times {
            assert_eq!(evaluation.effects, [EvalEffect::Measure { generation: 0, samples: vec![FIRST] }]);
            evaluation.effects.clear();
            evaluation.take(EvalInput::Result(Box::new(unjudged.clone())));
        }
        let outcome = RunOutcome::NeedsHuman { step: EVALUATES, reason: HumanNeeded::Unclear };
        assert_eq!(evaluation.effects, [EvalEffect::Finish(outcome)], "improves: {improves}");
    }
}

/// Of a thousand improvements, the number that call a prompt better. Of two hundred, it would itself be a coin's work.
fn claims(repeat: u32, minibatch: u32, rates: fn(u32) -> u32) -> usize {
    let proven = |seed: &u64| {
        let mut world = SimulatedAgents::of_coins(*seed, repeat, rates);
        world.facts.options.minibatch = minibatch;
        world.chosen().proof.is_some_and(|proof| proof.proven)
    };
    (1..=1000).filter(proven).count()
}

/// With a sample of one, three of five improvements once called a prompt better that was not.
#[test]
fn rewrites_that_change_nothing_are_called_better_in_at_most_five_of_a_hundred_improvements() {
    for (repeat, minibatch) in [(1, 0), (2, 0), (5, 0), (5, 3)] {
        let claims = claims(repeat, minibatch, |_| 500);
        assert!(claims <= 50, "{claims} of 1000, with --repeat {repeat} --minibatch {minibatch}");
    }
}

#[test]
fn a_prompt_that_is_better_is_found_with_the_advised_repetitions_in_four_of_five_improvements() {
    let better = |generation| if generation == 2 { 800 } else { 500 };
    let first = SimulatedAgents::of_coins(1, 1, |_| 500).chosen();
    let advised = first.sensitivity.unwrap().repeat;
    let claims = claims(advised, 0, better);
    assert!(claims >= 800, "{claims} of 1000, with --repeat {advised}");
}

#[test]
fn a_candidate_that_is_no_better_after_half_of_its_repetitions_is_stopped() {
    let world = SimulatedAgents::of_coins(1, 4, |generation| if generation == 1 { 0 } else { 500 });
    let (_, ledger, _) = SimulatedEvaluation::begin(&world, Vec::new()).end(&mut Chance(1));
    assert_eq!(ledger.stopped.get(&1), Some(&20));
    assert_eq!(ledger.of(1).count(), 20);
}

#[test]
fn minibatch_stops_a_candidate_that_is_no_better_than_its_parent_on_the_first_cases() {
    let mut world = SimulatedAgents::of_coins(1, 2, |generation| if generation == 1 { 0 } else { 500 });
    world.facts.options.minibatch = 3;
    let (_, ledger, _) = SimulatedEvaluation::begin(&world, Vec::new()).end(&mut Chance(1));
    assert_eq!((ledger.of(1).count(), ledger.stopped.get(&1)), (6, Some(&14)));
    world.rates = Some(|generation| if generation == 1 { 1000 } else { 0 });
    let (_, ledger, _) = SimulatedEvaluation::begin(&world, Vec::new()).end(&mut Chance(1));
    assert_eq!((ledger.of(1).count(), ledger.stopped.get(&1)), (20, None));
}

#[test]
fn budget_proposes_only_candidates_that_it_allows() {
    for (attempts, allows) in [(20, false), (21, true)] {
        let mut world = SimulatedAgents::of_coins(1, 2, |_| 500);
        world.facts.options.budget.attempts = Some(attempts);
        let (_, ledger, _) = SimulatedEvaluation::begin(&world, Vec::new()).end(&mut Chance(1));
        assert_eq!((ledger.prompts.len() > 1, ledger.chosen.unwrap().reason != "budget"), (allows, allows));
    }
}
