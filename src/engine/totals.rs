//! The totals of a run: the one fold of its events that limits, the console, reports, hooks and summaries use.

use super::event::{At, Event, EventKind};
use super::finished::{Finished, Tokens, UsageLimit};
use super::outcome::{AttemptOutcome, RunOutcome};
use super::stopwatch::Stopwatch;
use super::trees::RunTrees;
use crate::verdict::ReadFrom;
use serde::Serialize;
use std::collections::BTreeSet;

/// How long some attempts took together, and what they used.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(into = "SumForm")]
pub struct Sum {
    /// The number of attempts that have ended.
    pub attempts: u32,
    /// How long they took, in milliseconds.
    pub took_ms: u64,
    /// Their tokens by kind and their cost; `None` if no attempt reported any.
    pub spent: Option<Tokens>,
    /// The number of attempts that used tokens without reporting them.
    pub unknown_tokens: u32,
    /// The number of attempts that caused costs without reporting them.
    pub unknown_cost: u32,
}

impl Sum {
    /// Returns the tokens of every kind together, as far as they were reported.
    #[must_use]
    pub fn tokens(&self) -> Option<u64> {
        self.spent.map(|spent| spent.total())
    }

    /// Returns the cost in US dollars, as far as it was reported.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.spent.and_then(|spent| spent.cost_usd)
    }

    /// Adds an attempt that has ended.
    pub fn add(&mut self, finished: &Finished) {
        self.join(&Self {
            attempts: 1,
            took_ms: finished.took_ms,
            spent: finished.agent.tokens,
            unknown_tokens: u32::from(finished.agent.unknown.tokens),
            unknown_cost: u32::from(finished.agent.unknown.cost),
        });
    }

    /// Adds another sum.
    pub fn join(&mut self, other: &Self) {
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
        self.unknown_tokens = self.unknown_tokens.saturating_add(other.unknown_tokens);
        self.unknown_cost = self.unknown_cost.saturating_add(other.unknown_cost);
        self.spent = match (self.spent, other.spent) {
            (Some(ours), Some(theirs)) => Some(ours.plus(&theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

/// The serialized form of a sum.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SumForm {
    attempts: u32,
    took_ms: u64,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    unknown_tokens: u32,
    unknown_cost: u32,
}

impl From<Sum> for SumForm {
    fn from(sum: Sum) -> Self {
        Self {
            attempts: sum.attempts,
            took_ms: sum.took_ms,
            tokens: sum.tokens(),
            cost_usd: sum.cost_usd(),
            unknown_tokens: sum.unknown_tokens,
            unknown_cost: sum.unknown_cost,
        }
    }
}

/// A step, with the sum of its attempts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSum {
    /// The step's number, from 1.
    pub step: u32,
    /// The step's name.
    pub name: String,
    /// The maximum number of iterations of its loop, as last planned; `None` outside of loops.
    #[serde(skip)]
    pub iterations: Option<u32>,
    /// The sum of its attempts.
    #[serde(flatten)]
    pub sum: Sum,
}

/// The attempt that ended last.
#[derive(Debug, Clone, PartialEq)]
pub struct LastAttempt {
    /// The attempt's place in the run.
    pub at: At,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Whether its marker was seen.
    pub marker: bool,
    /// The usage limit that it hit.
    pub usage_limit: Option<UsageLimit>,
}

/// The totals of a run: a fold of its events, and part of its state.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// All attempts together.
    pub all: Sum,
    /// The attempts after the first rejection.
    pub rework: Sum,
    /// The number of attempts that were planned.
    pub planned: u32,
    /// The number of rejections by judges that started another round or ended the run.
    pub rejections: u32,
    /// Whether an agent or a person has rejected the work.
    rejected: bool,
    /// Whether the last rejection was by a person.
    pub rejected_by_a_person: bool,
    /// The checks for which the project has no command.
    pub unverified: BTreeSet<String>,
    /// The steps that were tried, ordered by number.
    pub steps: Vec<StepSum>,
    /// The attempt that ended last.
    pub last: Option<LastAttempt>,
    /// How the run ended, if it has.
    pub outcome: Option<RunOutcome>,
}

impl Totals {
    /// Applies the next event.
    pub fn evolve(&mut self, event: &EventKind) {
        match event {
            EventKind::RunResumed { .. } => self.outcome = None,
            EventKind::AttemptPlanned { at, iterations, .. } => {
                self.planned = self.planned.saturating_add(1);
                self.step(at).iterations = *iterations;
            }
            EventKind::AttemptFinished { at, outcome, marker, finished } => {
                self.all.add(finished);
                if self.rejected {
                    self.rework.add(finished);
                }
                self.step(at).sum.add(finished);
                self.last = Some(LastAttempt {
                    at: at.clone(),
                    outcome: outcome.clone(),
                    marker: *marker,
                    usage_limit: finished.agent.usage_limit.clone(),
                });
            }
            EventKind::VerdictGiven { verdict, converged, .. } => {
                if verdict.rejects(*converged) {
                    self.rejected = true;
                    self.rejected_by_a_person = verdict.from == ReadFrom::Person;
                }
                self.rejections = self.rejections.saturating_add(u32::from(verdict.is_a_rejection(*converged)));
            }
            EventKind::StepSkipped { name, absent: true, .. } => drop(self.unverified.insert(name.clone())),
            EventKind::RunFinished { outcome } => self.outcome = Some(*outcome),
            _ => {}
        }
    }

    /// Returns the maximum number of iterations of an attempt's loop, as last planned; `None` outside of loops.
    #[must_use]
    pub fn iterations(&self, at: &At) -> Option<u32> {
        let index = self.steps.binary_search_by_key(&at.step, |step| step.step).ok()?;
        self.steps[index].iterations
    }

    fn step(&mut self, at: &At) -> &mut StepSum {
        let found = self.steps.binary_search_by_key(&at.step, |step| step.step);
        let index = found.unwrap_or_else(|index| {
            let new = StepSum { step: at.step, name: at.name.clone(), iterations: None, sum: Sum::default() };
            self.steps.insert(index, new);
            index
        });
        &mut self.steps[index]
    }
}

/// A run with its totals, and facts about the run as a whole.
#[derive(Debug, Clone, Default)]
pub struct RunSummary {
    /// The run's number.
    pub run: i64,
    /// The chain, in the chain language.
    pub chain: String,
    /// The chain's name in the config.
    pub name: Option<String>,
    /// The id of the task that the run worked on.
    pub task: Option<String>,
    /// The prompt that was given on the command line.
    pub prompt: Option<String>,
    /// The workspace: the path of the directory in which the run worked.
    pub root: String,
    /// When the run started, in UTC (RFC 3339).
    pub started: String,
    /// When its last event happened, in UTC (RFC 3339).
    pub ended: String,
    /// How long the run has been running.
    pub watch: Stopwatch,
    /// The totals of the run.
    pub totals: Totals,
    /// The trees between which its attempts worked.
    pub trees: RunTrees,
    /// How tests and other protected files have changed since the work began, as descriptions.
    pub weakened: Vec<String>,
}

impl RunSummary {
    /// Returns the summary of a run with these events.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let mut summary = Self::default();
        for event in events {
            summary.see(event);
        }
        summary
    }

    /// Applies the next event.
    pub fn see(&mut self, event: &Event) {
        self.run = event.run;
        self.trees.evolve(&event.event);
        if let EventKind::AttemptFinished { finished, .. } = &event.event
            && finished.agent.guarded
        {
            self.weakened = finished.agent.weakened.iter().chain(&finished.agent.touched).cloned().collect();
        }
        self.ended.clone_from(&event.at);
        if let EventKind::RunStarted { chain, name, task, root, prompt, .. } = &event.event {
            (self.chain, self.name) = (chain.clone(), name.clone());
            self.task = task.as_ref().map(|task| task.id.clone());
            self.prompt.clone_from(prompt);
            (self.root, self.started) = (root.clone(), event.at.clone());
        }
        self.watch.see(event);
        self.totals.evolve(&event.event);
    }

    /// Returns whether a human is needed.
    #[must_use]
    pub fn needs_human(&self) -> bool {
        matches!(self.totals.outcome, Some(RunOutcome::NeedsHuman { .. }))
    }
}
