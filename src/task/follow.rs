//! What the events of a run mean for its task. The state diagram is in docs/flow.md; a test compares it with this code.

use super::{Change, Changes, DisputeKind, Status};
use crate::chain::Role;
use crate::engine::{At, AttemptOutcome, EventKind, FeedbackCause, HumanNeeded, RunOutcome, unverified_words};
use crate::plan::Outline;
use crate::source::{counted, names};
use crate::verdict::{Decision, ReadFrom, Verdict};
use std::collections::BTreeSet;

/// What matters about a step for its task.
#[derive(Debug, Clone)]
struct FollowedStep {
    /// `None` for a check.
    role: Option<Role>,
    /// Whether its work goes to a judge.
    submits: bool,
    /// Whether its failure is only reported.
    optional: bool,
    /// Its backend and its model, as far as they are known: `codex, o9`.
    by: String,
}

/// A task while a run is working on it.
#[derive(Debug, Clone)]
pub struct Follower {
    steps: Vec<FollowedStep>,
    status: Status,
    rejections: u32,
    /// The number of rejections after which the task has failed.
    most: u32,
    /// Who said that there is nothing to do, and why, unless work was done after that.
    skipped: Option<(String, String)>,
    /// The last judge that approved, or `human`, and the notes, for the record.
    approved: Option<(String, String)>,
    /// The checks for which the project has no command.
    unverified: BTreeSet<String>,
    /// The rejections of this run and of earlier ones, one line each.
    history: Vec<String>,
}

impl Follower {
    /// Creates the follower for a run with this outline, and for a task with this status.
    #[must_use]
    pub fn new(outline: &Outline, status: Status, rejections: u32) -> Self {
        let steps = outline.steps.iter().map(|step| FollowedStep {
            role: step.role,
            submits: step.submits,
            optional: step.optional,
            by: step.backend.iter().chain(&step.model).cloned().collect::<Vec<_>>().join(", "),
        });
        let steps = steps.collect();
        Self {
            steps,
            status,
            rejections,
            most: outline.limits.rejections,
            skipped: None,
            approved: None,
            unverified: BTreeSet::new(),
            history: Vec::new(),
        }
    }

    /// Adds the rejections of earlier runs, one line each.
    #[must_use]
    pub fn after(mut self, history: Vec<String>) -> Self {
        self.history = history;
        self
    }

    /// Applies an event of the run to the task. Total: works in any status, for any event.
    pub fn see(&mut self, event: &EventKind) -> Changes {
        let mut changes = Changes::default();
        match event {
            EventKind::AttemptPlanned { at, .. } if self.role(at) == Some(Role::Worker) => {
                self.to(&mut changes, Status::InProgress, &self.who(at), "", &[Status::Pending, Status::Review]);
            }
            EventKind::StepSucceeded { at } if self.step(at).is_some_and(|step| step.submits) => {
                self.skipped = None;
                self.to(&mut changes, Status::Review, &self.who(at), "", &[Status::InProgress]);
            }
            EventKind::AttemptFinished { at, outcome, finished, .. }
                if self.step(at).is_some_and(|step| step.role.is_none() && !step.optional) && fails(outcome) =>
            {
                // Whatever an agent says, the host checks for itself.
                let notes = match &finished.check.failed_part {
                    Some(part) => format!("`{}`: {part} failed", at.name),
                    None => format!("`{}` failed", at.name),
                };
                self.to(&mut changes, Status::InProgress, "host", &notes, &[Status::Review]);
            }
            EventKind::StepSkipped { name, absent: true, .. } => drop(self.unverified.insert(name.clone())),
            EventKind::VerdictGiven { at, verdict, converged } => self.verdict(&mut changes, at, verdict, *converged),
            EventKind::RoundFinished { ended_by: Some(feedback), .. }
                if !matches!(feedback.cause, FeedbackCause::Rejected { .. }) =>
            {
                self.to(&mut changes, Status::InProgress, "host", "the round was not accepted", &[Status::Review]);
            }
            EventKind::RunFinished { outcome: RunOutcome::Succeeded } if self.skipped.is_some() => {
                let (actor, notes) = self.skipped.take().unwrap_or_default();
                self.to(&mut changes, Status::Skipped, &actor, &notes, &LIVE);
            }
            EventKind::RunFinished { outcome: RunOutcome::Succeeded } => {
                let (actor, mut notes) = self.approved.clone().unwrap_or_else(|| ("host".into(), String::new()));
                if !self.unverified.is_empty() {
                    let words = unverified_words(&self.unverified);
                    notes = if notes.trim().is_empty() { words } else { format!("{notes}\n{words}") };
                }
                self.to(&mut changes, Status::Completed, &actor, &notes, &LIVE);
            }
            EventKind::RunFinished { outcome: RunOutcome::NeedsHuman { reason: HumanNeeded::Rejections, .. } }
                if self.rejections >= self.most && self.status != Status::Failed =>
            {
                self.fail(&mut changes);
            }
            _ => {}
        }
        changes
    }

    fn verdict(&mut self, changes: &mut Changes, at: &At, verdict: &Verdict, converged: bool) {
        if verdict.from == ReadFrom::Person {
            return self.by_a_person(changes, verdict);
        }
        match verdict.decision {
            Decision::Approve => {
                self.approved = Some((self.who(at), verdict.notes.clone()));
                self.skipped = None;
                // An approval with comments is a minor dispute: recorded and shown, but it blocks nothing.
                let titles = verdict.findings.iter().map(|finding| finding.title.as_str()).collect::<Vec<_>>();
                let told = matches!(verdict.from, ReadFrom::Call | ReadFrom::Object | ReadFrom::File);
                match titles.is_empty() {
                    false => changes.disputes.push((DisputeKind::Minor, titles.join("\n"))),
                    true if told && !verdict.notes.trim().is_empty() => {
                        changes.disputes.push((DisputeKind::Minor, verdict.notes.clone()));
                    }
                    true => {}
                }
            }
            Decision::Reject if converged => {
                self.approved = Some((self.who(at), verdict.notes.clone()));
                self.skipped = None;
                changes.disputes.push((DisputeKind::Minor, verdict.notes.clone()));
            }
            Decision::Reject if self.status.is_terminal() => {}
            Decision::Reject => {
                self.rejections += 1;
                let first =
                    verdict.effective_findings().first().map_or_else(String::new, |finding| finding.title.clone());
                self.history.push(format!("{}. {}: {first}", self.rejections, at.name));
                let change = Change {
                    from: self.status,
                    to: Status::InProgress,
                    actor: self.who(at),
                    notes: verdict.notes.clone(),
                    rejection: true,
                };
                self.status = Status::InProgress;
                changes.changes.push(change);
                if self.rejections >= self.most {
                    self.fail(changes);
                }
            }
            Decision::Dispute => {
                let kind = if self.role(at) == Some(Role::Judge) { DisputeKind::Reviewer } else { DisputeKind::Coder };
                changes.disputes.push((kind, verdict.notes.clone()));
                self.to(changes, Status::Disputed, &self.who(at), &verdict.notes, &LIVE);
            }
            // The run continues after its group, and may find something to do.
            Decision::Skip => self.skipped = Some((self.who(at), verdict.notes.clone())),
            Decision::Submit | Decision::Done => {}
        }
    }

    /// A person decides about the work of a run that is waiting for a human.
    fn by_a_person(&mut self, changes: &mut Changes, verdict: &Verdict) {
        let stood = [Status::Disputed, Status::Failed];
        let was_open = stood.contains(&self.status);
        self.skipped = None;
        if verdict.decision == Decision::Approve {
            self.approved = Some(("human".into(), verdict.notes.clone()));
            self.to(changes, Status::Completed, "human", &verdict.notes, &stood);
            changes.resolved = was_open.then(|| (Resolution::Coder, verdict.notes.clone()));
        } else {
            let from = [Status::Disputed, Status::Failed, Status::Review];
            self.to(changes, Status::InProgress, "human", &verdict.notes, &from);
            changes.resolved = was_open.then(|| (Resolution::Reviewer, verdict.notes.clone()));
        }
    }

    /// After the last rejection: the task has failed, and a dispute with its whole history is opened.
    fn fail(&mut self, changes: &mut Changes) {
        let reason = format!("Exceeded {} without resolution", counted(self.most, "rejection"));
        let history = self.history.join("\n");
        changes.disputes.push((DisputeKind::System, format!("{reason}\n\n{history}").trim_end().to_string()));
        self.to(changes, Status::Failed, "host", &reason, &[Status::InProgress, Status::Review]);
    }

    fn to(&mut self, changes: &mut Changes, to: Status, actor: &str, notes: &str, from: &[Status]) {
        if from.contains(&self.status) {
            changes.changes.push(Change {
                from: self.status,
                to,
                actor: actor.into(),
                notes: notes.into(),
                rejection: false,
            });
            self.status = to;
        }
    }

    fn role(&self, at: &At) -> Option<Role> {
        self.step(at)?.role
    }

    /// The name of an agent with its backend and model: `reviewer (codex, o9)`.
    fn who(&self, at: &At) -> String {
        let by = self.step(at).map_or("", |step| step.by.as_str());
        if by.is_empty() { at.name.clone() } else { format!("{} ({by})", at.name) }
    }

    fn step(&self, at: &At) -> Option<&FollowedStep> {
        self.steps.get((at.step as usize).checked_sub(1)?)
    }
}

/// The statuses from which a run may still move a task.
const LIVE: [Status; 3] = [Status::Pending, Status::InProgress, Status::Review];

fn fails(outcome: &AttemptOutcome) -> bool {
    *outcome != AttemptOutcome::Completed && outcome.counts()
}

/// How a human resolves a dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// The worker is right: the work is accepted.
    Coder,
    /// The judge is right: the work continues.
    Reviewer,
    /// Something else, described in the notes: the work continues.
    Custom,
}

names!(Resolution { Coder = "coder", Reviewer = "reviewer", Custom = "custom" });

/// Returns the change of status that resolves a dispute.
#[must_use]
pub fn resolve(from: Status, resolution: Resolution, notes: &str) -> Change {
    let to = if resolution == Resolution::Coder { Status::Completed } else { Status::InProgress };
    Change { from, to, actor: "human".into(), notes: notes.into(), rejection: false }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
