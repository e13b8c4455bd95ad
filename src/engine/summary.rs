//! Runs and attempts as rows of a list, and the state of a run. The journal provides this data, and reports show it.

use super::outcome::{AttemptOutcome, HumanNeeded, RunOutcome};
use serde::Serialize;
use std::collections::BTreeSet;

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunKind {
    /// It executes a chain.
    Chain,
    /// It measures or improves a prompt.
    Evaluation,
    /// It works on several tasks at once.
    Batch,
}

/// A run, as a row of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// The run's number.
    pub id: i64,
    /// When the run started, in UTC (RFC 3339).
    pub started: String,
    /// When the run ended, if it has, in UTC (RFC 3339).
    pub ended: Option<String>,
    /// The chain, in the chain language.
    pub chain: String,
    /// The chain's name in the config.
    pub name: Option<String>,
    /// How the run ended, if it has.
    pub outcome: Option<RunOutcome>,
    /// The task that the run is working on: its id and its title.
    pub task: Option<String>,
    /// The number of attempts of all steps together.
    #[serde(rename = "attemptCount")]
    pub attempts: u32,
    /// How long these attempts took together, in milliseconds.
    pub took_ms: u64,
    /// The tokens of every kind together, as far as they were reported.
    pub tokens: Option<u64>,
    /// The cost in US dollars, as far as it was reported.
    pub cost_usd: Option<f64>,
    /// Whether the run has at least one event.
    pub began: bool,
    /// The kind of the run.
    pub kind: RunKind,
    /// The number of the batch that the run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<i64>,
    /// The name of its unit in that batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl RunRow {
    /// Adds what a run of this batch has used.
    pub fn add(&mut self, child: &Self) {
        self.attempts += child.attempts;
        self.took_ms += child.took_ms;
        self.tokens = self.tokens.into_iter().chain(child.tokens).reduce(|one, other| one + other);
        self.cost_usd = self.cost_usd.into_iter().chain(child.cost_usd).reduce(|one, other| one + other);
    }
}

/// An attempt, as a row of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRow {
    /// The step's number, from 1.
    pub step: u32,
    /// The step's name.
    pub name: String,
    /// The round of its group, from 1.
    pub round: u32,
    /// The iteration of its loop, from 1.
    pub iteration: u32,
    /// The number of the attempt within its step, from 1.
    pub attempt: u32,
    /// How the attempt ended, if it has.
    pub outcome: Option<AttemptOutcome>,
    /// How long the attempt took, in milliseconds.
    pub took_ms: Option<u64>,
    /// The tokens of every kind together, if they were reported.
    pub tokens: Option<u64>,
    /// The cost in US dollars, if it was reported.
    pub cost_usd: Option<f64>,
    /// The path of the directory with its prompt and its transcripts.
    pub folder: String,
    /// The id of the session that its program can resume, if it was requested.
    pub session: Option<String>,
}

/// The current state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// Its process is running.
    Running,
    /// Its process died. A resume continues it.
    Crashed,
    /// It was stopped before it was complete. A resume continues it.
    Interrupted,
    /// A limit was reached. A resume with a higher limit continues it.
    LimitReached,
    /// All steps succeeded.
    Complete,
    /// A judge's verdict was unclear. A resume asks the judge again.
    Unclear,
    /// A check had nothing to run. A resume looks for its command again.
    NoCommand,
    /// A human has to decide.
    NeedsHuman,
    /// A step did not succeed. A resume tries it again.
    Incomplete,
    /// A loop or a group has used up its count. A resume with more of it continues the run.
    IterationsExhausted,
    /// An evaluation ended without success: a case failed, or no better prompt was found.
    CasesFailed,
    /// A batch has ended, and not every task has landed.
    TasksLeft,
    /// Its process died before the run had started.
    NeverBegan,
}

/// Returns how reports describe a complete run in which these checks had no command.
#[must_use]
pub fn unverified_words(checks: &BTreeSet<String>) -> String {
    let checks: Vec<&str> = checks.iter().map(String::as_str).collect();
    format!("unverified: no command for {}", checks.join(", "))
}

impl RunState {
    /// Returns the state of a run. `alive` is whether its process is alive.
    #[must_use]
    pub fn of_run(row: &RunRow, alive: bool) -> Self {
        if row.began || alive { Self::of(row.outcome, alive) } else { Self::NeverBegan }
    }

    /// Returns the state of a run with this outcome. `alive` is whether its process is alive.
    #[must_use]
    pub fn of(outcome: Option<RunOutcome>, alive: bool) -> Self {
        match outcome {
            None if alive => Self::Running,
            None => Self::Crashed,
            Some(RunOutcome::Succeeded) => Self::Complete,
            Some(RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed | RunOutcome::OutOfResources { .. }) => {
                Self::Interrupted
            }
            Some(RunOutcome::NeedsHuman { reason: HumanNeeded::Login, .. }) => Self::Interrupted,
            Some(RunOutcome::LimitReached { .. }) => Self::LimitReached,
            Some(RunOutcome::NeedsHuman { reason: HumanNeeded::Unclear, .. }) => Self::Unclear,
            Some(RunOutcome::NeedsHuman { reason: HumanNeeded::NoCommand, .. }) => Self::NoCommand,
            Some(RunOutcome::NeedsHuman { .. }) => Self::NeedsHuman,
            Some(RunOutcome::IterationsExhausted { .. }) => Self::IterationsExhausted,
            Some(RunOutcome::CasesFailed) => Self::CasesFailed,
            Some(RunOutcome::TasksLeft) => Self::TasksLeft,
            Some(_) => Self::Incomplete,
        }
    }

    /// Returns whether the run is waiting for a person's decision.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::Unclear | Self::NeedsHuman)
    }

    /// Returns whether `resume` can continue the run. An exhausted run also needs more iterations or rounds.
    #[must_use]
    pub fn may_resume(self) -> bool {
        matches!(
            self,
            Self::Crashed
                | Self::Interrupted
                | Self::LimitReached
                | Self::Unclear
                | Self::NoCommand
                | Self::Incomplete
                | Self::IterationsExhausted
        )
    }
}
