//! Runs and attempts in one line each, and how a run is now. Data that the journal gives and the report shows.

use super::outcome::{AttemptOutcome, HumanNeeded, RunOutcome};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunKind {
    /// A chain is worked through.
    Chain,
    /// A prompt is measured, or improved.
    Evaluation,
}

/// A run, in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRow {
    /// Its number.
    pub id: i64,
    /// When it began, in UTC (RFC 3339).
    pub started: String,
    /// When it ended, if it did.
    pub ended: Option<String>,
    /// The chain in the chain language.
    pub chain: String,
    /// Its name in the config.
    pub name: Option<String>,
    /// How it ended, if it did.
    pub outcome: Option<RunOutcome>,
    /// Its iterations, those of every step together.
    pub iterations: u32,
    /// How long they took together, in milliseconds.
    pub took_ms: u64,
    /// Tokens of every kind, as far as they were reported.
    pub tokens: Option<u64>,
    /// US dollars, as far as they were reported.
    pub cost_usd: Option<f64>,
    /// Whether it came as far as its first event.
    pub began: bool,
    /// What it is.
    pub kind: RunKind,
}

/// One attempt, in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptRow {
    /// The step's number.
    pub step: u32,
    /// Its name.
    pub name: String,
    /// The round of its group.
    pub round: u32,
    /// The iteration of its loop.
    pub iteration: u32,
    /// The running number in its step.
    pub attempt: u32,
    /// How it ended, if it did.
    pub outcome: Option<AttemptOutcome>,
    /// How long it took, in milliseconds.
    pub took_ms: Option<u64>,
    /// Tokens of every kind.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Where its prompt and its logs are.
    pub folder: String,
    /// The session that its program can go on with, where it was asked for.
    pub session: Option<String>,
    /// Whether its marker was seen.
    #[serde(skip)]
    pub marker: bool,
}

/// How a run is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RunState {
    /// Its process is at work.
    Running,
    /// Its process died; a resume goes on.
    Crashed,
    /// It was ended before its aim; a resume goes on.
    Interrupted,
    /// A limit was reached; a resume with a higher one goes on.
    LimitReached,
    /// All steps succeeded.
    Complete,
    /// A judge was not understood; a resume asks it again.
    Unclear,
    /// A check had nothing to run; a resume looks for its command again.
    NoCommand,
    /// A human has to decide.
    NeedsHuman,
    /// A step did not complete; a resume tries it again.
    Incomplete,
    /// A loop or a group has used up its count; a resume with more of it goes on.
    Exhausted,
    /// An evaluation came to its end, and what it was to show did not show.
    NotMet,
    /// Its process died before it had begun.
    NeverBegan,
}

/// What a run does not say that is complete without these checks, which had no command.
#[must_use]
pub fn unverified_words(checks: &BTreeSet<String>) -> String {
    let checks: Vec<&str> = checks.iter().map(String::as_str).collect();
    format!("unverified: no command for {}", checks.join(", "))
}

impl RunState {
    /// Of a run, and whether its process is alive.
    #[must_use]
    pub fn of_run(row: &RunRow, alive: bool) -> Self {
        if row.began || alive { Self::of(row.outcome, alive) } else { Self::NeverBegan }
    }

    /// Of an outcome, and whether its process is alive.
    #[must_use]
    pub fn of(outcome: Option<RunOutcome>, alive: bool) -> Self {
        match outcome {
            None if alive => Self::Running,
            None => Self::Crashed,
            Some(RunOutcome::Succeeded) => Self::Complete,
            Some(RunOutcome::Interrupted { .. } | RunOutcome::OutputClosed | RunOutcome::OutOfResources { .. }) => {
                Self::Interrupted
            }
            Some(RunOutcome::NeedsHuman { why: HumanNeeded::Login, .. }) => Self::Interrupted,
            Some(RunOutcome::LimitReached { .. }) => Self::LimitReached,
            Some(RunOutcome::NeedsHuman { why: HumanNeeded::Unclear, .. }) => Self::Unclear,
            Some(RunOutcome::NeedsHuman { why: HumanNeeded::NoCommand, .. }) => Self::NoCommand,
            Some(RunOutcome::NeedsHuman { .. }) => Self::NeedsHuman,
            Some(RunOutcome::Exhausted { .. }) => Self::Exhausted,
            Some(RunOutcome::NotMet) => Self::NotMet,
            Some(_) => Self::Incomplete,
        }
    }

    /// Whether it waits for a person's decision.
    #[must_use]
    pub fn waits(self) -> bool {
        matches!(self, Self::Unclear | Self::NeedsHuman)
    }

    /// Whether `resume` may go on with it; where it is exhausted, only with more of its count.
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
                | Self::Exhausted
        )
    }
}
