//! Properties of the machine, over random evaluations: a replay leads to the same state, and an evaluation that is
//! interrupted anywhere has the same result when it resumes.

use super::*;
use crate::engine::{CaseFacts, EvalOptions};
use crate::eval::leak::LeakGuard;
use crate::plan::Overrides;
use indexmap::IndexMap;

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

/// What is asked, and a world that gives the same answer to the same question.
struct World {
    seed: u64,
    facts: EvalFacts,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed * 2 + 1);
        chance.below(9);
        let case = |number: u64, held_out| CaseFacts { id: format!("case {number}"), held_out };
        let cases = 1 + chance.below(4);
        let options = EvalOptions {
            improves: chance.below(4) > 0,
            generations: u32::try_from(chance.below(5)).unwrap(),
            always: chance.below(2) == 0,
            max_tokens: 200,
            ..EvalOptions::default()
        };
        let facts = EvalFacts {
            prompt: "Say what the text says.".into(),
            tokens: 6,
            cases: (0..cases).map(|number| case(number, number > 0 && chance.below(3) == 0)).collect(),
            options,
            ..EvalFacts::default()
        };
        Self { seed, facts }
    }

    fn guards(&self) -> Guards {
        Guards::new(LeakGuard::new(&self.facts.prompt, std::iter::empty()), &self.facts.prompt, 200)
    }

    fn answer(&self, generation: u32, number: u64) -> Chance {
        let mut chance = Chance((self.seed << 16 | u64::from(generation) << 8 | number) * 2 + 1);
        chance.below(9);
        chance
    }

    fn result(&self, generation: u32, case: usize) -> CaseResult {
        let mut chance = self.answer(generation, case as u64 + 1);
        let nobody = chance.below(5) == 0;
        let pass = !nobody && chance.below(2) == 0;
        CaseResult {
            generation,
            case: self.facts.cases[case].id.clone(),
            held_out: self.facts.cases[case].held_out,
            pass,
            score: if pass { 1.0 } else { 0.0 },
            closeness: None,
            judged_by: if nobody { JudgedBy::Nobody } else { JudgedBy::Criteria },
            issues: Vec::new(),
            suggestions: Vec::new(),
            dropped: 0,
            error: nobody.then(|| "executor_error".into()),
            cached: false,
        }
    }

    /// Some rewrites are empty, or were proposed before.
    fn rewriting(&self, generation: u32) -> String {
        match self.answer(generation, 0).below(5) {
            0 => String::new(),
            1 => "Say again what the text says.".into(),
            _ => format!("Say what the text says, in {} words.", generation + 2),
        }
    }

    fn begin(&self) -> EvalInput {
        let first = EventKind::RunStarted {
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
        EvalInput::Begin(Box::new(first), Box::new(self.facts.clone()))
    }

    /// The most questions that can be asked between two interruptions.
    fn most_questions(&self) -> usize {
        let generations = self.facts.options.generations as usize + 1;
        generations * (self.facts.cases.len() * TRIES as usize + 1)
    }
}

/// An evaluation in progress: its state, its journal, and what is to be done.
struct Evaluation<'a> {
    world: &'a World,
    state: EvalState,
    journal: Vec<EventKind>,
    effects: Vec<EvalEffect>,
    questions: usize,
}

impl<'a> Evaluation<'a> {
    fn begin(world: &'a World, journal: Vec<EventKind>) -> Self {
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
                EvalEffect::Measure { generation, cases } => {
                    let one = |case| EvalEffect::Measure { generation, cases: vec![case] };
                    self.effects.extend(cases.into_iter().map(one));
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
            EvalEffect::Measure { generation, cases } => {
                EvalInput::Result(Box::new(self.world.result(generation, cases[0])))
            }
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
        let world = World::new(seed);
        let mut chance = Chance(seed);
        let mut evaluation = Evaluation::begin(&world, Vec::new());
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
        let world = World::new(seed);
        let mut chance = Chance(seed);
        let (outcome, ledger, journal) = Evaluation::begin(&world, Vec::new()).end(&mut chance);
        for cut in 1..journal.len() {
            let (again, after, _) = Evaluation::begin(&world, journal[..cut].to_vec()).end(&mut chance);
            assert_eq!((again, &after.chosen), (outcome, &ledger.chosen), "seed {seed}, cut after {cut} events");
            assert_eq!((&after.results, &after.prompts), (&ledger.results, &ledger.prompts), "seed {seed}, cut {cut}");
        }
    }
}

#[test]
fn a_signal_ends_an_evaluation_at_any_moment_and_a_late_answer_changes_nothing() {
    for seed in 1..100 {
        let world = World::new(seed);
        let mut chance = Chance(seed);
        let mut evaluation = Evaluation::begin(&world, Vec::new());
        for _ in 0..chance.below(5) {
            if evaluation.effects.iter().any(|effect| matches!(effect, EvalEffect::Finish(_))) {
                break;
            }
            evaluation.step(&mut chance);
        }
        evaluation.take(EvalInput::Halt(RunOutcome::LimitReached { limit: LimitKind::Cost }));
        let before = evaluation.journal.clone();
        assert!(matches!(before.last(), Some(EventKind::RunFinished { .. })), "seed {seed}");
        evaluation.take(EvalInput::Result(Box::new(world.result(0, 0))));
        assert_eq!(evaluation.journal, before, "seed {seed}");
    }
}

#[test]
fn a_case_that_nobody_can_judge_is_asked_twice_where_prompts_are_compared_and_else_once() {
    for (improves, times) in [(true, 2), (false, 1)] {
        let mut world = World::new(1);
        world.facts.options.improves = improves;
        world.facts.cases.truncate(1);
        let mut evaluation = Evaluation::begin(&world, Vec::new());
        let unjudged = CaseResult {
            judged_by: JudgedBy::Nobody,
            error: Some("evaluator_error: none".into()),
            ..world.result(0, 0)
        };
        for _ in 0..times {
            assert_eq!(evaluation.effects, [EvalEffect::Measure { generation: 0, cases: vec![0] }]);
            evaluation.effects.clear();
            evaluation.take(EvalInput::Result(Box::new(unjudged.clone())));
        }
        let outcome = RunOutcome::NeedsHuman { step: EVALUATES, reason: HumanNeeded::Unclear };
        assert_eq!(evaluation.effects, [EvalEffect::Finish(outcome)], "improves: {improves}");
    }
}
