//! Exit code 0 means that a judge has approved the final tree, or that there was nothing to do. Tested with random
//! histories of workers, judges and checks.

use super::super::finished::Finished;
use super::super::outcome::{Exit, RunOutcome};
use super::{Effect, Input, State, decide};
use crate::chain::{PromptSource, Role};
use crate::plan::tests::{planned, world};
use crate::plan::{Plan, PlannedStep};
use crate::verdict::{Decision, ReadFrom, Unclear, Verdict, VerdictReading, findings};
use proptest::prelude::*;
use std::collections::HashMap;

const CONFIG: &str =
    r#"{"agents": {"j": {"command": "x", "role": "judge"}}, "checks": {"t": {"run": "true"}}, "chains": {}}"#;

/// In none of these chains can a step after the last judge change what it has judged.
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
    /// For a worker, whether it changes the tree.
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

/// Returns what the verdict reader returns for this attempt and role.
fn said(deed: Deed, role: Role) -> VerdictReading {
    let of = |decision: Decision, notes: &str| Verdict::new(decision, notes.into(), findings(notes), ReadFrom::Line);
    let verdict = match deed.says {
        Says::Nothing => return VerdictReading::Unclear(Unclear::Nothing),
        Says::Unclear => return VerdictReading::Unclear(Unclear::Doubted { line: "VERDICT: approve, but no".into() }),
        Says::Approve => of(Decision::Approve, ""),
        Says::Reject => of(Decision::Reject, "- a.rs:1: wrong"),
        Says::Minor => of(Decision::Reject, "- minor: a.rs:1: a name"),
        Says::Dispute => of(Decision::Dispute, "why"),
        Says::Skip => of(Decision::Skip, ""),
        Says::Submit => of(Decision::Submit, ""),
    };
    if verdict.decision.is_open_to(role) {
        VerdictReading::Clear(verdict)
    } else {
        VerdictReading::Unclear(Unclear::NotItsRight { decision: verdict.decision, minor: verdict.minor })
    }
}

/// What has happened so far, as an outside observer of the tree sees it.
#[derive(Debug, Default)]
struct Seen {
    /// The number of changes to the tree.
    tree: u32,
    /// The tree that was judged last, and whether it passed.
    judged: Option<(u32, bool)>,
    rejected: bool,
    /// Whether the last run of each check succeeded.
    checks: HashMap<usize, bool>,
    /// Whether a worker reported correctly that there is nothing to do.
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

/// Returns the inputs of the machine for one attempt of a step.
fn attempt(seen: &mut Seen, plan: &Plan, step: &PlannedStep, deed: Deed) -> Vec<Input> {
    let mut inputs = vec![Input::Spawned { pid: 7, start_time: 1 }];
    let mut finished = Finished::default();
    let exit = Exit::Code(deed.code);
    let Some(role) = step.role() else {
        seen.checks.insert(step.number, deed.code == 0);
        // A different tree each time, so that the group does not look like it is cycling.
        finished.check.failure_digest = (deed.code != 0).then(|| format!("{} {}", seen.tree, seen.checks.len()));
        inputs.push(Input::Exited { exit, finished: Box::new(finished), verdict: None });
        return inputs;
    };
    let heard = said(deed, role);
    match role {
        Role::Worker => {
            seen.tree += u32::from(deed.changes);
            finished.agent.unchanged = Some(!deed.changes);
            finished.agent.untouched = seen.tree == 0 && matches!(deed.says, Says::Skip);
            seen.idle |= finished.agent.untouched
                && deed.code == 0
                && !seen.rejected
                && seen.checks.values().all(|green| *green);
        }
        Role::Judge => {
            let grouped = plan.program.step_group[step.number - 1].is_some();
            let passes = match deed.says {
                Says::Approve | Says::Skip => Some(deed.code == 0),
                Says::Minor => Some(grouped),
                Says::Reject => Some(false),
                _ => None,
            };
            // An unclear verdict does not judge anything.
            if let Some(passed) = passes {
                seen.judged = Some((seen.tree, passed));
                seen.rejected |= !passed;
            }
        }
    }
    if deed.marker {
        inputs.push(Input::Marker);
    }
    inputs.push(Input::Exited { exit, finished: Box::new(finished), verdict: Some(heard) });
    inputs
}

fn play(plan: &Plan, deeds: &[Deed]) -> (Option<RunOutcome>, Seen) {
    let (mut state, mut seen) = (State::default(), Seen::default());
    let mut inputs = vec![Input::Begin];
    let mut deeds = deeds.iter().copied();
    loop {
        let mut next = None;
        for input in inputs.drain(..) {
            let transition = decide(state, plan, input);
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
            CHAINS.map(|chain| planned(&world(&[]), CONFIG, chain, &PromptSource::default(), &[]).unwrap()).into());
        PLANS.with(|plans| {
            let (outcome, seen) = play(&plans[chain], &deeds);
            prop_assert!(outcome != Some(RunOutcome::Succeeded) || seen.ended_well(), "{}: {seen:?}", CHAINS[chain]);
            Ok(())
        })?;
    }
}

/// Shows that the property is not vacuous: good histories do end with 0.
#[test]
fn good_work_that_is_approved_ends_with_0() {
    let works = Deed { changes: true, says: Says::Nothing, code: 0, marker: true };
    let good = |says| Deed { changes: false, says, code: 0, marker: false };
    let plan = |chain: &str| planned(&world(&[]), CONFIG, chain, &PromptSource::default(), &[]).unwrap();
    let rejected = [works, good(Says::Nothing), good(Says::Reject), works, good(Says::Nothing), good(Says::Approve)];
    assert_eq!(play(&plan("(coder -> t -> j):3"), &rejected).0, Some(RunOutcome::Succeeded));
    assert_eq!(play(&plan("(coder -> t -> j):3"), &[good(Says::Skip)]).0, Some(RunOutcome::Succeeded));
    assert_eq!(play(&plan("(coder -> j):3"), &[works, good(Says::Minor)]).0, Some(RunOutcome::Succeeded));
}
