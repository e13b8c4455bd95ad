//! How many tasks land for each verification, if some of them are red: the figures of docs/scale.md, from the machine
//! itself.

use super::tests::{ALL, see};
use super::*;
use crate::engine::{BatchEvent, BatchFacts, BatchTask};
use std::fmt::Write;

/// The tasks of a simulated queue. All of their work is ready when it begins.
const TASKS: u32 = 640;

/// A sequence of random numbers (xorshift64*).
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % most
    }
}

/// Lands tasks until none is left. The work of each is red with this probability, in thousandths, each time it is done.
/// Returns the number of verifications.
fn verifications(together: Option<u32>, red: u64) -> u32 {
    let tasks = (1..=TASKS).map(|task| BatchTask { id: task.to_string(), ..BatchTask::default() });
    let facts = BatchFacts {
        tasks: tasks.collect(),
        rejections: u32::MAX,
        verification: Some("test".into()),
        line: "line".into(),
        together,
        ..BatchFacts::default()
    };
    let mut state = BatchState::default();
    see(&mut state, BatchEvent::Started { facts });
    let (mut draws, mut is_red) = (Draws(7), std::collections::HashSet::new());
    let mut verified = 0;
    let mut at_work = Vec::new();
    loop {
        let Some(action) = next(&state, ALL) else {
            if at_work.is_empty() {
                break;
            }
            // All that is at work becomes ready at once.
            at_work.drain(..).for_each(|end| see(&mut state, end));
            continue;
        };
        let started = |unit: &str, task: Option<String>| BatchEvent::UnitStarted {
            unit: unit.to_string(),
            task,
            try_number: None,
            choice: false,
            lane: 1,
            run: 1,
            base: String::new(),
            workspace: String::new(),
        };
        let ended = |unit: String, exit: u8| BatchEvent::UnitEnded {
            unit,
            exit: Some(exit),
            outcome: None,
            work: Some("work".into()),
            error: None,
            stopping: false,
        };
        match action {
            Action::Start { task, turn, .. } => {
                if draws.below(1000) < red {
                    is_red.insert(task.clone());
                } else {
                    is_red.remove(&task);
                }
                let unit = unit_name(1, &task, None, turn);
                see(&mut state, started(&unit, Some(task)));
                at_work.push(ended(unit, 0));
            }
            Action::Merge { tasks } => see(&mut state, BatchEvent::Merged { tasks, commit: "commit".into() }),
            Action::Verify { number, .. } => {
                verified += 1;
                let tasks = state.trial.as_ref().map(|trial| trial.tasks.clone()).unwrap_or_default();
                let unit = format!("1-verify-{number}");
                see(&mut state, started(&unit, None));
                see(&mut state, ended(unit, u8::from(tasks.iter().any(|task| is_red.contains(task)))));
            }
            Action::Land { tasks, commit } => see(&mut state, BatchEvent::Landed { tasks, commit }),
            Action::Split { most } => see(&mut state, BatchEvent::Split { most }),
            Action::SendBack { task, .. } => {
                let (reason, feedback, base, start) = (String::new(), String::new(), "line".into(), "start".into());
                see(&mut state, BatchEvent::SentBack { task, reason, feedback, base, start });
            }
            action => panic!("{action:?}"),
        }
    }
    assert!(state.tasks.values().all(|task| matches!(task.place, TaskPlace::Landed(_))));
    verified
}

#[test]
fn the_queue_lands_several_tasks_for_each_verification_unless_many_are_red() {
    let mut table = String::new();
    for red in [0, 10, 50, 200] {
        let _ = write!(table, "{:>2} % red", red / 10);
        for together in [Some(1), Some(4), Some(16), Some(64), None] {
            let verified = verifications(together, red);
            let _ = write!(table, "  {:>6.2}", f64::from(TASKS) / f64::from(verified));
        }
        table.push('\n');
    }
    insta::assert_snapshot!(table, @"
     0 % red    1.00    4.00   16.00   64.00  640.00
     1 % red    0.99    3.44    8.31   10.49   10.85
     5 % red    0.95    2.38    3.02    2.95    2.87
    20 % red    0.79    0.91    0.86    0.86    0.84
    ");
}
