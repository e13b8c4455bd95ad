//! Exit code 0 means that somebody who may judge has let the final tree pass. Any history of workers, judges and checks.

use super::super::finished::Finished;
use super::super::outcome::{Exit, RunOutcome};
use super::{Effect, Input, State};
use crate::chain::{Role, Said as Prompted};
use crate::plan::tests::{planned, world};
use crate::plan::{Plan, PlannedStep};
use crate::verdict::{Decision, ReadFrom, Said, Unclear, Verdict, findings};
use proptest::prelude::*;
use std::collections::HashMap;

const CONFIG: &str =
    r#"{"agents": {"j": {"command": "x", "role": "judge"}}, "checks": {"t": {"run": "true"}}, "chains": {}}"#;

/// Nothing stands behind the last judge that could change what it has judged.
const CHAINS: [&str; 9] = [
    "coder -> j",
    "(coder -> j):3",
    "(coder -> t -> j):3",
    "(coder -> x -> t -> j):3",
    "(t -> coder -> j):3",
    "(coder:2 -> t -> j):3",
    "((coder -> t):2 -> j):3",
    "coder -> (coder -> t -> j):2 -> j",
    "(coder -> j -> j):3 -> t",
];

/// What an attempt does.
#[derive(Debug, Clone, Copy)]
struct Deed {
    /// Of a worker: whether it changes the tree.
    changes: bool,
    says: Says,
    code: i32,
    marker: bool,
}

#[derive(Debug, Clone, Copy)]
enum Says {
    Nothing,
    Approve,
    Reject,
    Minor,
    Dispute,
    Skip,
    Submit,
    Unclear,
}

fn deed() -> impl Strategy<Value = Deed> {
    let says = prop_oneof![
        3 => Just(Says::Nothing), 3 => Just(Says::Approve), 3 => Just(Says::Reject), 2 => Just(Says::Minor), 1 => Just(Says::Dispute),
        2 => Just(Says::Skip), 1 => Just(Says::Submit), 2 => Just(Says::Unclear),
    ];
    let code = prop_oneof![4 => Just(0), 1 => Just(1)];
    (any::<bool>(), says, code, any::<bool>()).prop_map(|(changes, says, code, marker)| Deed {
        changes,
        says,
        code,
        marker,
    })
}

/// What the reader makes of it, for this role.
fn said(deed: Deed, role: Role) -> Said {
    let of = |decision: Decision, notes: &str| Verdict::new(decision, notes.into(), findings(notes), ReadFrom::Line);
    let verdict = match deed.says {
        Says::Nothing => return Said::Unclear(Unclear::Nothing),
        Says::Unclear => return Said::Unclear(Unclear::Doubted { line: "VERDICT: approve, but no".into() }),
        Says::Approve => of(Decision::Approve, ""),
        Says::Reject => of(Decision::Reject, "- a.rs:1: wrong"),
        Says::Minor => of(Decision::Reject, "- minor: a.rs:1: a name"),
        Says::Dispute => of(Decision::Dispute, "why"),
        Says::Skip => of(Decision::Skip, ""),
        Says::Submit => of(Decision::Submit, ""),
    };
    if verdict.decision.is_open_to(role) {
        Said::Clear(verdict)
    } else {
        Said::Unclear(Unclear::NotItsRight { decision: verdict.decision, minor: verdict.minor })
    }
}

/// What has happened so far, as somebody sees it who looks at the tree.
#[derive(Debug, Default)]
struct Seen {
    /// Counts the changes of the tree.
    tree: u32,
    /// The tree that was judged last, and whether it was let pass.
    judged: Option<(u32, bool)>,
    rejected: bool,
    /// Whether the last run of each check was green.
    checks: HashMap<usize, bool>,
    /// A worker said that there is nothing to do, and that is true.
    idle: bool,
}

impl Seen {
    fn ended_well(&self) -> bool {
        let green = self.checks.values().all(|green| *green);
        let passed = self.judged.is_some_and(|(tree, passed)| passed && tree == self.tree);
        let nothing_to_do = self.idle && self.tree == 0 && !self.rejected;
        green && (passed || nothing_to_do)
    }
}

/// One attempt of a step, as an input of the machine.
fn attempt(seen: &mut Seen, plan: &Plan, step: &PlannedStep, deed: Deed) -> Vec<Input> {
    let mut inputs = vec![Input::Spawned { pid: 7, start_time: 1 }];
    let mut finished = Finished::default();
    let exit = Exit::Code(deed.code);
    let Some(role) = step.role() else {
        seen.checks.insert(step.number, deed.code == 0);
        // Another tree, so that nobody thinks that it goes round in circles.
        finished.trouble = (deed.code != 0).then(|| format!("{} {}", seen.tree, seen.checks.len()));
        inputs.push(Input::Exited { exit, finished: Box::new(finished), said: None });
        return inputs;
    };
    let heard = said(deed, role);
    match role {
        Role::Worker => {
            seen.tree += u32::from(deed.changes);
            finished.unchanged = Some(!deed.changes);
            finished.untouched = seen.tree == 0 && matches!(deed.says, Says::Skip);
            seen.idle |=
                finished.untouched && deed.code == 0 && !seen.rejected && seen.checks.values().all(|green| *green);
        }
        Role::Judge => {
            let grouped = plan.program.step_group[step.number - 1].is_some();
            let passes = match deed.says {
                Says::Approve | Says::Skip => Some(deed.code == 0),
                Says::Minor => Some(grouped),
                Says::Reject => Some(false),
                _ => None,
            };
            // What is not understood judges nothing.
            if let Some(passed) = passes {
                seen.judged = Some((seen.tree, passed));
                seen.rejected |= !passed;
            }
        }
    }
    if deed.marker {
        inputs.push(Input::Marker);
    }
    inputs.push(Input::Exited { exit, finished: Box::new(finished), said: Some(heard) });
    inputs
}

fn play(plan: &Plan, deeds: &[Deed]) -> (Option<RunOutcome>, Seen) {
    let (mut state, mut seen) = (State::default(), Seen::default());
    let mut inputs = vec![Input::Begin];
    let mut deeds = deeds.iter().copied();
    loop {
        let mut next = None;
        for input in inputs.drain(..) {
            let transition = state.decide(plan, input);
            state = transition.state;
            for effect in transition.effects {
                match effect {
                    Effect::Finish(outcome) => return (Some(outcome), seen),
                    Effect::Spawn { at, .. } => next = Some(at.step),
                    _ => {}
                }
            }
        }
        let (Some(step), Some(deed)) = (next, deeds.next()) else { return (None, seen) };
        inputs = attempt(&mut seen, plan, &plan.steps[step as usize - 1], deed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_run_ends_with_0_only_if_the_final_tree_was_let_pass(
        chain in 0..CHAINS.len(), deeds in proptest::collection::vec(deed(), 0..50),
    ) {
        thread_local!(static PLANS: Vec<Plan> =
            CHAINS.map(|chain| planned(&world(&[]), CONFIG, chain, &Prompted::default(), &[]).unwrap()).into());
        PLANS.with(|plans| {
            let (outcome, seen) = play(&plans[chain], &deeds);
            prop_assert!(outcome != Some(RunOutcome::Succeeded) || seen.ended_well(), "{}: {seen:?}", CHAINS[chain]);
            Ok(())
        })?;
    }
}

/// The property says something: good histories do end with 0.
#[test]
fn good_work_that_is_approved_ends_with_0() {
    let works = Deed { changes: true, says: Says::Nothing, code: 0, marker: true };
    let good = |says| Deed { changes: false, says, code: 0, marker: false };
    let plan = |chain: &str| planned(&world(&[]), CONFIG, chain, &Prompted::default(), &[]).unwrap();
    let rejected = [works, good(Says::Nothing), good(Says::Reject), works, good(Says::Nothing), good(Says::Approve)];
    assert_eq!(play(&plan("(coder -> t -> j):3"), &rejected).0, Some(RunOutcome::Succeeded));
    assert_eq!(play(&plan("(coder -> t -> j):3"), &[good(Says::Skip)]).0, Some(RunOutcome::Succeeded));
    assert_eq!(play(&plan("(coder -> j):3"), &[works, good(Says::Minor)]).0, Some(RunOutcome::Succeeded));
}
