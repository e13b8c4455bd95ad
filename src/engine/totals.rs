//! What a run came to: the one fold over its events that limits, console, closing table, report, hooks and summaries read.

use super::event::{At, Event, EventKind};
use super::finished::{Finished, Tokens};
use super::outcome::{AttemptOutcome, RunOutcome};
use super::stopwatch::Stopwatch;
use serde::Serialize;
use std::collections::BTreeSet;

/// What some attempts have taken and cost together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(into = "SumForm")]
pub struct Sum {
    /// How many attempts have ended.
    pub attempts: u32,
    /// How long they took, in milliseconds.
    pub took_ms: u64,
    /// Tokens by kind, and US dollars; `None` where no attempt reported any.
    pub spent: Option<Tokens>,
    /// How many attempts used tokens that nobody reported.
    pub unknown_tokens: u32,
    /// How many attempts cost what nobody reported.
    pub unknown_cost: u32,
}

impl Sum {
    /// Tokens of every kind, as far as they were reported.
    #[must_use]
    pub fn tokens(&self) -> Option<u64> {
        self.spent.map(|spent| spent.total())
    }

    /// US dollars, as far as they were reported.
    #[must_use]
    pub fn cost_usd(&self) -> Option<f64> {
        self.spent.and_then(|spent| spent.cost_usd)
    }

    /// Adds an attempt that has ended.
    pub fn add(&mut self, finished: &Finished) {
        self.join(&Self {
            attempts: 1,
            took_ms: finished.took_ms,
            spent: finished.tokens,
            unknown_tokens: u32::from(finished.unknown.tokens),
            unknown_cost: u32::from(finished.unknown.cost),
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

/// A sum as machines read it.
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

/// A step with what its attempts came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSum {
    /// Its number.
    pub step: u32,
    /// Its name.
    pub name: String,
    /// How many iterations its loop had when the last one was planned; `None` outside of loops.
    #[serde(skip)]
    pub iterations: Option<u32>,
    /// The sum.
    #[serde(flatten)]
    pub sum: Sum,
}

/// The attempt that ended last.
#[derive(Debug, Clone, PartialEq)]
pub struct LastAttempt {
    /// Which.
    pub at: At,
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// Whether its marker was seen.
    pub marker: bool,
    /// When the usage limit ends that it met, in UTC (RFC 3339).
    pub resets_at: Option<String>,
}

/// The sums of a run. A fold of its events, part of what the machine remembers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Everything together.
    pub all: Sum,
    /// What came after the first reject: work done again.
    pub rework: Sum,
    /// Attempts that were begun.
    pub planned: u32,
    /// Rejects of judges that began another round, or ended the run.
    pub rejections: u32,
    /// Whether anybody has rejected, a person among them.
    rejected: bool,
    /// The checks that the project has no command for.
    pub unverified: BTreeSet<String>,
    /// The steps that were tried, by their numbers.
    pub steps: Vec<StepSum>,
    /// The attempt that ended last.
    pub last: Option<LastAttempt>,
    /// How the run ended, if it did.
    pub outcome: Option<RunOutcome>,
}

impl Totals {
    /// Takes the next event.
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
                    resets_at: finished.usage_limit.as_ref().and_then(|limit| limit.resets_at.clone()),
                });
            }
            EventKind::VerdictGiven { verdict, converged, .. } => {
                self.rejected |= verdict.rejects(*converged);
                self.rejections = self.rejections.saturating_add(u32::from(verdict.is_a_rejection(*converged)));
            }
            EventKind::StepSkipped { name, absent: true, .. } => drop(self.unverified.insert(name.clone())),
            EventKind::RunFinished { outcome } => self.outcome = Some(*outcome),
            _ => {}
        }
    }

    /// How many iterations the loop of an attempt has, as it was planned last; `None` outside of loops.
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

/// A run with its sums, and what its events say of it as a whole.
#[derive(Debug, Clone, Default)]
pub struct RunSummary {
    /// Its number.
    pub run: i64,
    /// The chain in the chain language.
    pub chain: String,
    /// Its name in the config.
    pub name: Option<String>,
    /// The task that it worked on.
    pub task: Option<String>,
    /// Where it worked.
    pub root: String,
    /// When it began, in UTC (RFC 3339).
    pub started: String,
    /// When its last event was.
    pub ended: String,
    /// How long it was at work.
    pub watch: Stopwatch,
    /// Its sums.
    pub totals: Totals,
}

impl RunSummary {
    /// Of all these events.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let mut summary = Self::default();
        for event in events {
            summary.see(event);
        }
        summary
    }

    /// Takes the next event.
    pub fn see(&mut self, event: &Event) {
        self.run = event.run;
        self.ended.clone_from(&event.at);
        if let EventKind::RunStarted { chain, name, task, root, .. } = &event.event {
            (self.chain, self.name) = (chain.clone(), name.clone());
            self.task = task.as_ref().map(|task| task.id.clone());
            (self.root, self.started) = (root.clone(), event.at.clone());
        }
        self.watch.see(event);
        self.totals.evolve(&event.event);
    }

    /// Whether a human has to decide.
    #[must_use]
    pub fn needs_human(&self) -> bool {
        matches!(self.totals.outcome, Some(RunOutcome::NeedsHuman { .. }))
    }
}
