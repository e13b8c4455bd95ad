//! The limits of a run, resolved.

use super::context::Request;
use super::{PlannedStep, errors};
use crate::chain::{UsageReport, show_duration};
use crate::source::Diagnostic;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The most iterations of a run with a judge in a group, unless somebody says otherwise (C25).
pub const JUDGED_ITERATIONS: u32 = 150;

/// A task that was rejected so often is nothing that another round finishes.
fn most_rejections() -> u32 {
    15
}

/// What a whole run may use; none is no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The longest it may take.
    pub time: Option<Duration>,
    /// The most US dollars.
    pub cost: Option<f64>,
    /// The most tokens of every kind.
    pub tokens: Option<u64>,
    /// The most iterations of all steps together.
    pub iterations: Option<u32>,
    /// The longest wait in a row for a usage limit to end.
    pub wait: Duration,
    /// After how many iterations that change nothing and say the same a loop stops (V-26).
    pub stalled_after: u32,
    /// After how many rejections, over all its runs, a task has failed.
    #[serde(default = "most_rejections")]
    pub rejections: u32,
    /// How long an ended agent may take before the next, harder signal (V-03).
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: None,
            cost: None,
            tokens: None,
            iterations: None,
            // A window of five hours, and some room.
            wait: Duration::from_hours(6),
            stalled_after: 3,
            rejections: most_rejections(),
            grace: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Takes the limit of this key from another one.
    pub fn copy(&mut self, key: &str, from: &Self) {
        match key {
            "time" => self.time = from.time,
            "cost" => self.cost = from.cost,
            "tokens" => self.tokens = from.tokens,
            "iterations" => self.iterations = from.iterations,
            "wait" => self.wait = from.wait,
            "stalledAfter" => self.stalled_after = from.stalled_after,
            "rejections" => self.rejections = from.rejections,
            "grace" => self.grace = from.grace,
            _ => {}
        }
    }

    /// In the words of `--limit`, those that are set.
    #[must_use]
    pub fn words(&self) -> String {
        let words = [
            self.time.map(|time| format!("time={}", show_duration(time))),
            self.cost.map(|cost| format!("cost={cost}")),
            self.tokens.map(|tokens| format!("tokens={tokens}")),
            self.iterations.map(|iterations| format!("iterations={iterations}")),
            Some(format!("stalledAfter={}", self.stalled_after)),
            Some(self.rejections)
                .filter(|most| *most != most_rejections())
                .map(|rejections| format!("rejections={rejections}")),
            Some(format!("wait={}", show_duration(self.wait))),
            Some(format!("grace={}", show_duration(self.grace))),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The command line's limits, below them the config's, below them ours.
pub(super) fn resolve(request: &Request<'_>) -> Limits {
    let (wanted, ours) = (request.settings.limits.clone().or(request.config.limits.clone()), Limits::default());
    Limits {
        time: wanted.time,
        cost: wanted.cost.map(|(cost, _)| cost),
        tokens: wanted.tokens.map(|(tokens, _)| tokens),
        iterations: wanted.iterations,
        wait: wanted.wait.unwrap_or(ours.wait),
        stalled_after: wanted.stalled_after.unwrap_or(ours.stalled_after),
        rejections: wanted.rejections.unwrap_or(ours.rejections),
        grace: wanted.grace.unwrap_or(ours.grace),
    }
}

/// A limit on what cannot be measured would be a promise that nobody keeps. One that is measured late is kept late, which is said.
pub(super) fn check_measurable(request: &Request<'_>, steps: &[PlannedStep], faults: &mut Vec<Diagnostic>) {
    let wanted = request.settings.limits.clone().or(request.config.limits.clone());
    let cost = wanted.cost.map(|(_, at)| (at, "cost", request.settings.limits.cost.is_some()));
    let tokens = wanted.tokens.map(|(_, at)| (at, "tokens", request.settings.limits.tokens.is_some()));
    for (at, limit, typed) in cost.into_iter().chain(tokens) {
        let told = |step: &PlannedStep| {
            let told = step.accounting()?;
            Some(if limit == "cost" { told.cost } else { told.tokens })
        };
        let silent = steps.iter().find(|step| told(step) == Some(UsageReport::Never));
        let agents = || steps.iter().filter(|step| !step.is_check());
        // What everybody else has to pay for costs a plain program nothing; where nobody pays, the limit was meant for it.
        let nobody = if typed && agents().all(|step| told(step).is_none()) { agents().next() } else { None };
        if let Some(step) = silent.or(nobody) {
            faults.push(errors::unmeasurable(&at, limit, &step.name));
            continue;
        }
        let late = |step: &&PlannedStep| {
            told(step) == Some(UsageReport::AtTheEnd) && !(limit == "cost" && step.is_told_the_budget())
        };
        if let Some(step) = steps.iter().find(late) {
            faults.push(errors::measured_late(&at, limit, &step.name));
        }
    }
}
