//! Properties of the machine of batches, for random ends of units, merges and verifications.

use super::*;
use crate::engine::{BatchEvent, BatchFacts, BatchTask, EventKind};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(super) const ALL: Capacity = Capacity { lane: true, starts: true, agents: true };

fn batch(after: &[Vec<usize>], rejections: u32, verification: Option<&str>) -> BatchState {
    batch_with_tries(after, rejections, verification, 0)
}

fn batch_with_tries(after: &[Vec<usize>], rejections: u32, verification: Option<&str>, tries: usize) -> BatchState {
    let name = |number: usize| (number + 1).to_string();
    let tasks = after.iter().enumerate().map(|(number, after)| BatchTask {
        id: name(number),
        // Only earlier tasks, so that there is no cycle.
        after: after.iter().filter(|before| **before < number).map(|before| name(*before)).collect(),
        ..BatchTask::default()
    });
    let facts = BatchFacts {
        tasks: tasks.collect(),
        rejections,
        verification: verification.map(str::to_string),
        line: "line-0".into(),
        tries: vec![None; tries],
        ..BatchFacts::default()
    };
    let mut state = BatchState::default();
    see(&mut state, BatchEvent::Started { facts });
    state
}

pub(super) fn see(state: &mut BatchState, event: BatchEvent) {
    state.evolve(&EventKind::Batch { event });
}

/// A world in which agents, merges and verifications do what random numbers say.
struct Dice {
    draws: Vec<u8>,
    at: usize,
    commits: u32,
    /// The commits that passed a verification.
    verified: Vec<String>,
    /// The order in which units were started and tasks landed.
    told: Vec<String>,
}

impl Dice {
    fn draw(&mut self, of: u8) -> u8 {
        let drawn = self.draws.get(self.at % self.draws.len().max(1)).copied().unwrap_or(0);
        self.at += 1;
        // `at` is added, so that the sequence does not repeat when the draws are used up.
        u8::try_from((usize::from(drawn) + self.at) % usize::from(of)).unwrap()
    }

    fn commit(&mut self) -> String {
        self.commits += 1;
        format!("commit-{}", self.commits)
    }

    fn perform(&mut self, state: &mut BatchState, action: Action) {
        match action {
            Action::Start { task, try_number, turn, base, .. } => {
                self.told.push(format!("start {task}"));
                let started = BatchEvent::UnitStarted {
                    unit: unit_name(1, &task, try_number, turn),
                    task: Some(task),
                    try_number,
                    choice: false,
                    lane: 1,
                    run: 1,
                    base,
                    workspace: String::new(),
                };
                see(state, started);
            }
            Action::Verify { number, .. } => {
                let started = BatchEvent::UnitStarted {
                    unit: format!("1-verify-{number}"),
                    task: None,
                    try_number: None,
                    choice: false,
                    lane: 1,
                    run: 1,
                    base: String::new(),
                    workspace: String::new(),
                };
                see(state, started);
            }
            Action::Choose { task, number } => {
                let started = BatchEvent::UnitStarted {
                    unit: format!("{}-{number}", choice_name(1, &task)),
                    task: Some(task),
                    try_number: None,
                    choice: true,
                    lane: 1,
                    run: 1,
                    base: String::new(),
                    workspace: String::new(),
                };
                see(state, started);
            }
            Action::Take { task } => {
                let accepted: Vec<u32> = state.tasks[&task].accepted().into_iter().map(|(number, _)| number).collect();
                assert!(!accepted.is_empty(), "nothing to take");
                let reason = String::new();
                // A judge may name none of them.
                if accepted.len() > 1 && self.draw(3) == 0 {
                    see(state, BatchEvent::Undecided { task, reason });
                } else {
                    let try_number = accepted[usize::from(self.draw(9)) % accepted.len()];
                    self.told.push(format!("choose {task}"));
                    see(state, BatchEvent::Chosen { task, try_number, reason });
                }
            }
            Action::Merge { tasks } => {
                let conflicts = self.draw(4) == 0;
                let commit = self.commit();
                if conflicts {
                    see(state, BatchEvent::Conflicted { task: tasks[0].clone(), files: vec!["a".into()] });
                } else {
                    see(state, BatchEvent::Merged { tasks, commit });
                }
            }
            Action::Land { tasks, commit } => {
                assert!(self.verified.contains(&commit), "{commit} landed unverified");
                self.told.extend(tasks.iter().map(|task| format!("land {task}")));
                see(state, BatchEvent::Landed { tasks, commit });
            }
            Action::Split { most } => see(state, BatchEvent::Split { most }),
            Action::SendBack { task, .. } => {
                let (base, start) = (state.line.clone(), self.commit());
                let event = BatchEvent::SentBack { task, reason: String::new(), feedback: String::new(), base, start };
                see(state, event);
            }
            Action::Stop { task, reason, .. } => see(state, BatchEvent::Stopped { task, reason, work: None }),
        }
    }

    /// Ends the unit that was begun first.
    fn end_one(&mut self, state: &mut BatchState) {
        let (unit, task) = state
            .units
            .iter()
            .find(|(_, unit)| unit.at_work)
            .map(|(name, unit)| (name.clone(), unit.task.clone()))
            .expect("a unit is at work");
        let (exit, work) = match self.draw(5) {
            0 => (Some(1), Some(self.commit())),
            1 => (None, None),
            _ => (Some(0), Some(self.commit())),
        };
        if exit == Some(0) && task.is_none() {
            self.verified.push(state.trial.as_ref().expect("it is being verified").commit.clone());
        }
        see(state, BatchEvent::UnitEnded { unit, exit, outcome: None, work, error: None, stopping: false });
    }
}

proptest! {
    #[test]
    fn every_batch_ends_and_lands_only_what_was_verified_in_order(
        after in prop::collection::vec(prop::collection::vec(0..8_usize, 0..3), 1..8),
        draws in prop::collection::vec(any::<u8>(), 1..64),
        lanes in 1..5_usize,
        rejections in 1..6_u32,
        tries in 0..4_usize,
    ) {
        let mut state = batch_with_tries(&after, rejections, Some("test"), tries);
        let mut chance = Dice { draws, at: 0, commits: 0, verified: Vec::new(), told: Vec::new() };
        for step in 0.. {
            // Verifications that are lost may repeat by chance; agents and merges are bounded.
            prop_assert!(step < 20_000, "the batch does not end: {:?}", state.tasks);
            let capacity = Capacity { lane: state.at_work() < lanes, ..ALL };
            match next(&state, capacity) {
                Some(action) => chance.perform(&mut state, action),
                None if state.at_work() > 0 => chance.end_one(&mut state),
                None => break,
            }
            prop_assert!(state.at_work() <= lanes);
        }
        let at = |words: String| chance.told.iter().position(|told| *told == words);
        for task in state.tasks.values() {
            let is_over = matches!(task.place, TaskPlace::Landed(_) | TaskPlace::Stopped(_));
            let waits = task.place == TaskPlace::Waiting && task.turn == 0 && !waits_for(&state, task).is_empty();
            prop_assert!(is_over || waits, "{:?}", task);
            prop_assert!(task.rejections < rejections);
            let chosen = chance.told.iter().filter(|told| **told == format!("choose {}", task.facts.id)).count();
            prop_assert!(chosen <= 1, "one try is chosen");
            prop_assert!(tries == 0 || chosen == 1 || !matches!(task.place, TaskPlace::Landed(_)));
            let Some(begun) = at(format!("start {}", task.facts.id)) else { continue };
            for before in &task.facts.after {
                let landed = at(format!("land {before}"));
                prop_assert!(landed.is_some_and(|landed| landed < begun));
            }
        }
    }

    #[test]
    fn the_same_events_give_the_same_state(draws in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut state = batch_with_tries(&[vec![], vec![], vec![0]], 3, Some("test"), draws.len() % 3);
        let (mut chance, mut events) = (Dice { draws, at: 0, commits: 0, verified: Vec::new(), told: Vec::new() }, 0);
        while events < 200 {
            let before = state.clone();
            match next(&state, Capacity { lane: state.at_work() < 2, ..ALL }) {
                Some(action) => chance.perform(&mut state, action),
                None if state.at_work() > 0 => chance.end_one(&mut state),
                None => break,
            }
            prop_assert_ne!(&before, &state, "every action changes the state");
            events += 1;
        }
    }
}

#[test]
fn nothing_starts_when_nothing_may_and_a_verification_needs_no_agent() {
    let mut state = batch(&[vec![], vec![]], 3, Some("test"));
    assert_eq!(next(&state, Capacity { lane: false, ..ALL }), None);
    assert_eq!(next(&state, Capacity { starts: false, ..ALL }), None);
    assert_eq!(next(&state, Capacity { agents: false, ..ALL }), None);
    see(&mut state, BatchEvent::Merged { tasks: vec!["1".into()], commit: "c".into() });
    let verify = Action::Verify { number: 1, commit: "c".into() };
    assert_eq!(next(&state, Capacity { agents: false, ..ALL }), Some(verify));
}

#[test]
fn a_worker_that_a_stopping_batch_ends_does_not_count_as_lost() {
    let mut chance = Dice { draws: vec![0], at: 0, commits: 0, verified: Vec::new(), told: Vec::new() };
    for (stopping, is_given_up) in [(true, false), (false, true)] {
        let mut state = batch(&[vec![]], 3, Some("test"));
        for _ in 0..MOST_LOST {
            let action = next(&state, ALL).unwrap();
            chance.perform(&mut state, action);
            let unit = state.units.keys().next().unwrap().clone();
            see(
                &mut state,
                BatchEvent::UnitEnded { unit, exit: None, outcome: None, work: None, error: None, stopping },
            );
        }
        assert_eq!(matches!(next(&state, ALL), Some(Action::Stop { .. })), is_given_up);
    }
}

#[test]
fn tasks_that_fail_together_are_tried_in_halves_until_the_guilty_one_is_sent_back() {
    let mut state = batch(&[vec![], vec![], vec![], vec![]], 3, Some("test"));
    let mut chance = Dice { draws: vec![0], at: 0, commits: 0, verified: Vec::new(), told: Vec::new() };
    for task in ["1", "2", "3", "4"] {
        let Some(action) = next(&state, ALL) else { panic!("{task} can be started") };
        chance.perform(&mut state, action);
    }
    for (unit, unit_of) in state.units.clone() {
        let work = Some(format!("work of {}", unit_of.task.unwrap()));
        see(
            &mut state,
            BatchEvent::UnitEnded { unit, exit: Some(0), outcome: None, work, error: None, stopping: false },
        );
    }
    let mut trials: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    while let Some(action) = next(&state, ALL) {
        match action {
            Action::Merge { tasks } => {
                trials.insert(state.trials + 1, tasks.clone());
                let commit = chance.commit();
                see(&mut state, BatchEvent::Merged { tasks, commit });
            }
            Action::Verify { number, .. } => {
                // Task 3 is the guilty one.
                let exit = u8::from(trials[&number].contains(&"3".to_string()));
                let unit = format!("1-verify-{number}");
                let (base, workspace) = (String::new(), String::new());
                see(
                    &mut state,
                    BatchEvent::UnitStarted {
                        unit: unit.clone(),
                        task: None,
                        try_number: None,
                        choice: false,
                        lane: 1,
                        run: 1,
                        base,
                        workspace,
                    },
                );
                if exit == 0 {
                    chance.verified.push(state.trial.as_ref().unwrap().commit.clone());
                }
                let work = Some(String::new());
                see(
                    &mut state,
                    BatchEvent::UnitEnded { unit, exit: Some(exit), outcome: None, work, error: None, stopping: false },
                );
            }
            Action::SendBack { task, files } => {
                assert_eq!((task.as_str(), files.len()), ("3", 0));
                chance.perform(&mut state, Action::SendBack { task, files });
                break;
            }
            action => chance.perform(&mut state, action),
        }
    }
    let tried: Vec<String> = trials.values().map(|tasks| tasks.join(" ")).collect();
    assert_eq!(tried, ["1 2 3 4", "1 2", "3"]);
}
