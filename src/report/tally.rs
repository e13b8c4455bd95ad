//! What a run came to: a fold over its events, from which the closing table, the summary for machines and the reports are made.

use crate::engine::{At, Event, EventKind, Finished, RunOutcome, RunState};
use crate::report::paint::Paint;
use crate::report::phrases::{attempts_words, seconds, thousands};
use crate::verdict::Decision;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The version of the summary for machines (docs/events.md).
const VERSION: u32 = 1;

/// What some attempts have taken and cost together.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sum {
    /// How many.
    pub attempts: u32,
    /// How long, in milliseconds.
    pub took_ms: u64,
    /// Tokens of every kind, as far as they were reported.
    pub tokens: Option<u64>,
    /// US dollars, as far as they were reported.
    pub cost_usd: Option<f64>,
    /// How many attempts used tokens that nobody reported.
    pub unknown_tokens: u32,
    /// How many attempts cost what nobody reported.
    pub unknown_cost: u32,
}

impl Sum {
    pub(super) fn add(&mut self, finished: &Finished) {
        self.attempts += 1;
        self.took_ms = self.took_ms.saturating_add(finished.took_ms);
        self.unknown_tokens += u32::from(finished.unknown.tokens);
        self.unknown_cost += u32::from(finished.unknown.cost);
        if let Some(tokens) = finished.tokens {
            self.tokens = Some(self.tokens.unwrap_or(0).saturating_add(tokens.total()));
            if let Some(cost) = tokens.cost_usd {
                self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
            }
        }
    }

    /// Adds another sum.
    pub(super) fn join(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
        self.unknown_tokens += other.unknown_tokens;
        self.unknown_cost += other.unknown_cost;
        self.tokens = other.tokens.map(|tokens| tokens + self.tokens.unwrap_or(0)).or(self.tokens);
        self.cost_usd = other.cost_usd.map(|cost| cost + self.cost_usd.unwrap_or(0.0)).or(self.cost_usd);
    }

    fn words(&self) -> String {
        let used = self.used().into_iter().fold(String::new(), |words, used| words + ", " + &used);
        format!("{}, {}{used}", attempts_words(self.attempts), seconds(self.took_ms))
    }

    /// Tokens and cost in words; nothing where nothing was used. A sum of which a part is unknown says so.
    #[must_use]
    pub fn used(&self) -> Vec<String> {
        let least = |unknown: u32| if unknown > 0 { "at least " } else { "" };
        let tokens = match self.tokens {
            Some(tokens) => Some(format!("{}{} tokens", least(self.unknown_tokens), thousands(tokens))),
            None => (self.unknown_tokens > 0).then(|| "tokens unknown".into()),
        };
        let cost = match self.cost_usd {
            Some(cost) => Some(format!("{}${cost:.2}", least(self.unknown_cost))),
            None => (self.unknown_cost > 0).then(|| "cost unknown".into()),
        };
        tokens.into_iter().chain(cost).collect()
    }

    /// The tokens for a table.
    #[must_use]
    pub fn tokens_cell(&self) -> String {
        cell(self.tokens.map(thousands), self.unknown_tokens)
    }

    /// The cost for a table.
    #[must_use]
    pub fn cost_cell(&self) -> String {
        cell(self.cost_usd.map(|cost| format!("${cost:.2}")), self.unknown_cost)
    }
}

fn cell(known: Option<String>, unknown: u32) -> String {
    match (known, unknown) {
        (Some(known), 0) => known,
        (Some(known), _) => format!("≥ {known}"),
        (None, 0) => "-".into(),
        (None, _) => "unknown".into(),
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
    /// The sum.
    #[serde(flatten)]
    pub sum: Sum,
}

/// The fold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// The run's number.
    pub run: i64,
    /// The chain in the chain language.
    pub chain: String,
    /// Its name in the config.
    pub name: Option<String>,
    /// The task that it worked on.
    pub task: Option<String>,
    /// Where it worked.
    pub root: String,
    /// When it began and when it ended, in UTC (RFC 3339).
    pub started: String,
    /// When its last event was.
    pub ended: String,
    /// How it ended, if it did.
    pub outcome: Option<RunOutcome>,
    /// Everything together.
    pub all: Sum,
    /// What came after the first reject: work done again.
    pub rework: Sum,
    /// Rejects that began another round, or ended the run.
    pub rejections: u32,
    /// The checks that the project has no command for.
    pub unverified: BTreeSet<String>,
    /// Its steps, in the order in which they were first tried.
    pub steps: Vec<StepSum>,
    /// The attempt that ended last.
    pub last: Option<At>,
}

impl Tally {
    /// Of all these events.
    #[must_use]
    pub fn of(events: &[Event]) -> Self {
        let mut tally = Self::default();
        for event in events {
            tally.see(event);
        }
        tally
    }

    /// Takes the next event.
    pub fn see(&mut self, event: &Event) {
        self.run = event.run;
        self.ended.clone_from(&event.at);
        match &event.event {
            EventKind::RunStarted { chain, name, task, root, .. } => {
                (self.chain, self.name) = (chain.clone(), name.clone());
                self.task = task.as_ref().map(|task| task.id.clone());
                (self.root, self.started) = (root.clone(), event.at.clone());
            }
            EventKind::RunResumed { .. } => self.outcome = None,
            EventKind::AttemptFinished { at, finished, .. } => {
                self.all.add(finished);
                if self.rejections > 0 {
                    self.rework.add(finished);
                }
                let known = self.steps.iter().position(|step| step.step == at.step);
                let index = known.unwrap_or_else(|| {
                    self.steps.push(StepSum { step: at.step, name: at.name.clone(), sum: Sum::default() });
                    self.steps.len() - 1
                });
                self.steps[index].sum.add(finished);
                self.last = Some(at.clone());
            }
            EventKind::VerdictGiven { verdict, converged, .. } => {
                self.rejections += u32::from(verdict.decision == Decision::Reject && !converged);
            }
            EventKind::StepSkipped { name, absent: true, .. } => drop(self.unverified.insert(name.clone())),
            EventKind::RunFinished { outcome } => self.outcome = Some(*outcome),
            _ => {}
        }
    }

    /// The table of steps, where there is more than one attempt to sum up.
    #[must_use]
    pub fn table(&self, paint: Paint) -> String {
        if self.all.attempts < 2 {
            return String::new();
        }
        let used = self.all.tokens.is_some() || self.all.unknown_tokens > 0;
        let priced = self.all.cost_usd.is_some();
        let width = self.steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0).max(4);
        let mut heading = format!("  {:>4} {:width$} {:>8} {:>12}", "", "step", "attempts", "time");
        if used {
            let _ = write!(heading, " {:>14}", "tokens");
        }
        if priced {
            let _ = write!(heading, " {:>9}", "cost");
        }
        let mut text = format!("{}\n", paint.dim(&heading));
        for StepSum { step, name, sum } in &self.steps {
            // Writing to a String cannot fail.
            let _ = write!(text, "  {step:>4} {name:width$} {:>8} {:>12}", sum.attempts, seconds(sum.took_ms));
            if used {
                let _ = write!(text, " {:>14}", sum.tokens_cell());
            }
            if priced {
                let _ = write!(text, " {:>9}", sum.cost_cell());
            }
            text.push('\n');
        }
        if self.rework.attempts > 0 {
            let rejects = if self.rejections == 1 { "1 reject".into() } else { format!("{} rejects", self.rejections) };
            let _ = writeln!(text, "  {}", paint.dim(&format!("rework after {rejects}: {}", self.rework.words())));
        }
        text
    }

    /// The whole for machines: `--output json`, hooks.
    #[must_use]
    pub fn json(&self, exit: u8, reason: &str, transcripts: &str, next: Option<&str>) -> Value {
        json!({
            "version": VERSION,
            "run": self.run,
            "chain": self.chain,
            "name": self.name,
            "task": self.task,
            "root": self.root,
            "state": RunState::of(self.outcome, false),
            "outcome": self.outcome,
            "exitCode": exit,
            "reason": reason,
            "started": self.started,
            "ended": self.ended,
            "attempts": self.all.attempts,
            "tookMs": self.all.took_ms,
            "tokens": self.all.tokens,
            "costUsd": self.all.cost_usd,
            "unknownTokens": self.all.unknown_tokens,
            "unknownCost": self.all.unknown_cost,
            // Whether checks have passed is in the steps; null is: none of them was absent.
            "verified": if self.unverified.is_empty() { Value::Null } else { json!(false) },
            "unverified": self.unverified,
            "rejections": self.rejections,
            "rework": self.rework,
            "steps": self.steps,
            "transcripts": transcripts,
            "next": next,
        })
    }

    /// Whether a human has to decide.
    #[must_use]
    pub fn needs_human(&self) -> bool {
        matches!(self.outcome, Some(RunOutcome::NeedsHuman { .. }))
    }
}
