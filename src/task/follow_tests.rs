//! How runs change tasks: scripted examples and properties.

use super::super::replay;
use super::*;
use crate::engine::tests_drive;
use crate::plan::tests::{planned, world};
use crate::plan::{Plan, outline};
use proptest::prelude::*;

/// The default of `limits.rejections`.
const MOST: u32 = 15;

const CONFIG: &str =
    r#"{"agents": {"j": {"command": "x", "role": "judge"}}, "checks": {"t": {"run": "true"}}, "chains": {}}"#;

fn plan(chain: &str) -> Plan {
    let mut plan = planned(&world(&[]), CONFIG, chain, &crate::chain::PromptSource::default(), &[]).unwrap();
    plan.task = Some(crate::plan::TaskFacts::default());
    plan
}

/// The statuses that a task goes through, and the disputes that are opened.
fn story(chain: &str, script: &str) -> String {
    let (trail, disputes) = followed(&plan(chain), script);
    let mut words: Vec<String> = trail.iter().map(|change| change.to.name().to_string()).collect();
    words.extend(disputes.iter().map(|(kind, _)| format!("+{}", kind.name())));
    words.join(" ")
}

fn followed(plan: &Plan, script: &str) -> (Vec<Change>, Vec<(DisputeKind, String)>) {
    let mut follower = Follower::new(&outline(plan), Status::Pending, 0);
    let (mut trail, mut disputes) = (Vec::new(), Vec::new());
    for event in tests_drive(plan, script) {
        let mut changes = follower.see(&event);
        trail.append(&mut changes.changes);
        disputes.append(&mut changes.disputes);
    }
    (trail, disputes)
}

const CHAIN: &str = "(coder -> t -> j):20";

#[test]
fn a_task_goes_where_its_run_goes() {
    assert_eq!(story(CHAIN, "..a"), "in_progress review completed");
    assert_eq!(story(CHAIN, ".x..a"), "in_progress review in_progress review completed");
    assert_eq!(story(CHAIN, "..r..a"), "in_progress review in_progress review completed");
    assert_eq!(story(CHAIN, "d"), "in_progress disputed +coder");
    assert_eq!(story(CHAIN, "..d"), "in_progress review disputed +reviewer");
    assert_eq!(story(CHAIN, "s"), "in_progress skipped");
    assert_eq!(story(CHAIN, "..uuu"), "in_progress review");
    assert_eq!(story("coder", "."), "in_progress completed");
    assert_eq!(
        story("coder -> (coder -> j):2", "s.a"),
        "in_progress review completed",
        "a skip before work is done is none"
    );
    assert_eq!(story("coder", "x"), "in_progress");
    let (trail, disputes) = followed(&plan(CHAIN), &"..r".repeat(15));
    assert_eq!(replay(&trail), (Status::Failed, 15));
    assert_eq!(disputes.len(), 1);
    assert_eq!(disputes[0].0, DisputeKind::System);
    assert!(disputes[0].1.starts_with("Exceeded 15 rejections without resolution\n\n1. j: it is wrong\n2. j"));
    let (trail, disputes) = followed(&plan(CHAIN), &("..r".repeat(14) + "..a"));
    assert_eq!(replay(&trail), (Status::Completed, 14));
    assert!(disputes.is_empty());
}

/// A failed check is reported by the host, and is not a rejection.
#[test]
fn a_failed_check_is_no_rejection_and_has_a_reason() {
    let (trail, _) = followed(&plan(CHAIN), ".x..a");
    assert_eq!((trail[2].actor.as_str(), trail[2].notes.as_str()), ("host", "`t` failed"));
    assert_eq!(replay(&trail), (Status::Completed, 0));
}

#[test]
fn a_dispute_is_resolved_for_one_side() {
    let to = |resolution| resolve(Status::Disputed, resolution, "").to;
    assert_eq!(to(Resolution::Coder), Status::Completed);
    assert_eq!(to(Resolution::Reviewer), Status::InProgress);
    assert_eq!(to(Resolution::Custom), Status::InProgress);
}

proptest! {
    #[test]
    fn every_trail_is_without_gaps_and_ends_within_fifteen_rejections(script in "[.xarudsn]{300}") {
        let (trail, _) = followed(&plan(CHAIN), &script);
        let mut status = Status::Pending;
        for change in &trail {
            prop_assert_eq!(change.from, status);
            prop_assert!(!status.is_terminal(), "nothing follows {}", status.name());
            status = change.to;
        }
        let (last, rejections) = replay(&trail);
        prop_assert_eq!(last, status);
        prop_assert!(rejections <= MOST);
        prop_assert!((rejections == MOST) == (last == Status::Failed));
    }
}

/// docs/flow.md shows every change of status that the code makes, and no other.
#[test]
fn the_state_diagram_of_the_docs_is_the_transition_table() {
    let at = |step: u32, name: &str| At { step, name: name.into(), round: 1, iteration: 1, attempt: 1, lane: 1 };
    let (coder, check, judge) = (at(1, "coder"), at(2, "t"), at(3, "j"));
    let verdict = |at: &At, decision| {
        let verdict = Verdict::new(decision, "x".into(), Vec::new(), crate::verdict::ReadFrom::Line);
        EventKind::VerdictGiven { at: at.clone(), verdict, converged: false }
    };
    let finished = crate::engine::Finished::default();
    let feedback =
        crate::engine::Feedback { from: check.clone(), cause: FeedbackCause::IterationsExhausted { iterations: 1 } };
    let planned = EventKind::AttemptPlanned { at: coder.clone(), iterations: None, retry: 0, feedback: None };
    let rejections = RunOutcome::NeedsHuman { step: 3, reason: HumanNeeded::Rejections };
    let mut events = vec![
        planned,
        EventKind::StepSucceeded { at: coder.clone() },
        EventKind::AttemptFinished { at: check, outcome: AttemptOutcome::Failed { code: 1 }, marker: false, finished },
        EventKind::RoundFinished { group: 1, round: 1, ended_by: Some(feedback) },
        EventKind::RunFinished { outcome: RunOutcome::Succeeded },
        EventKind::RunFinished { outcome: rejections },
    ];
    events.extend(
        [Decision::Approve, Decision::Reject, Decision::Dispute, Decision::Skip].map(|one| verdict(&judge, one)),
    );
    events.push(verdict(&coder, Decision::Dispute));
    let outline = outline(&plan(CHAIN));
    let mut arrows = std::collections::BTreeSet::new();
    for (name, status) in Status::NAMES {
        for event in &events {
            for rejections in [0, MOST - 1] {
                let mut follower = Follower::new(&outline, status, rejections);
                let mut changes = follower.see(event).changes;
                if matches!(event, EventKind::VerdictGiven { verdict, .. } if verdict.decision == Decision::Skip) {
                    let over = EventKind::RunFinished { outcome: RunOutcome::Succeeded };
                    changes.append(&mut follower.see(&over).changes);
                }
                // A run cannot reject a task on which no agent has worked.
                let possible = status != Status::Pending || !changes.iter().any(|change| change.rejection);
                let seen =
                    changes.iter().filter(|change| possible && !status.is_terminal() && change.from != change.to);
                arrows.extend(seen.map(|change| format!("{} --> {}", change.from.name(), change.to.name())));
            }
        }
        // A human's commands: dispute resolve, approve, skip, reset.
        if matches!(status, Status::Disputed | Status::Failed) {
            arrows.extend(["completed", "in_progress"].map(|to| format!("{name} --> {to}")));
        }
    }
    let page = include_str!("../../docs/flow.md");
    let drawn = page.lines().filter_map(|line| line.trim().split(" : ").next().filter(|line| line.contains(" --> ")));
    let drawn: std::collections::BTreeSet<String> =
        drawn.filter(|line| !line.contains("[*]")).map(str::to_string).collect();
    assert_eq!(drawn, arrows);
}
