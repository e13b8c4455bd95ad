//! The resolved limits of a run.

use super::context::Request;
use super::{PlannedStep, errors};
use crate::chain::{UsageReport, show_duration};
use crate::source::Diagnostic;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The default limit on attempts for a run with a judge in a group.
pub const JUDGED_ATTEMPTS: u32 = 150;

/// After this many rejections, another round is unlikely to finish a task.
fn most_rejections() -> u32 {
    15
}

/// What a whole run may use. `None` means no limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The longest time that the run may take.
    pub time: Option<Duration>,
    /// The highest cost, in US dollars.
    pub cost: Option<f64>,
    /// The highest number of tokens of all kinds.
    pub tokens: Option<u64>,
    /// The highest number of attempts of all steps together.
    // The name that journals have always had for it.
    #[serde(rename = "iterations", alias = "attempts")]
    pub attempts: Option<u32>,
    /// The longest uninterrupted wait for a usage limit to end.
    pub wait: Duration,
    /// After this many iterations that change nothing and print the same thing, a loop is stalled.
    pub stalled_after: u32,
    /// After this many rejections, over all its runs, a task has failed.
    #[serde(default = "most_rejections")]
    pub rejections: u32,
    /// How long an agent that is being stopped may take before it gets the next, harder signal.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: None,
            cost: None,
            tokens: None,
            attempts: None,
            // A window of five hours, and a margin.
            wait: Duration::from_hours(6),
            stalled_after: 3,
            rejections: most_rejections(),
            grace: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// Copies the limit with this key from another set of limits.
    pub fn copy(&mut self, key: &str, from: &Self) {
        match key {
            "time" => self.time = from.time,
            "cost" => self.cost = from.cost,
            "tokens" => self.tokens = from.tokens,
            "attempts" => self.attempts = from.attempts,
            "wait" => self.wait = from.wait,
            "stalledAfter" => self.stalled_after = from.stalled_after,
            "rejections" => self.rejections = from.rejections,
            "grace" => self.grace = from.grace,
            _ => {}
        }
    }

    /// Returns the limits that are set, in the syntax of `--limit`.
    #[must_use]
    pub fn words(&self) -> String {
        let words = [
            self.time.map(|time| format!("time={}", show_duration(time))),
            self.cost.map(|cost| format!("cost={cost}")),
            self.tokens.map(|tokens| format!("tokens={tokens}")),
            self.attempts.map(|attempts| format!("attempts={attempts}")),
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

/// Resolves each limit: from the command line, else from the config, else the default.
pub(super) fn resolve(request: &Request<'_>) -> Limits {
    let (wanted, ours) = (request.settings.limits.clone().or(request.config.limits.clone()), Limits::default());
    Limits {
        time: wanted.time,
        cost: wanted.cost.map(|(cost, _)| cost),
        tokens: wanted.tokens.map(|(tokens, _)| tokens),
        attempts: wanted.attempts,
        wait: wanted.wait.unwrap_or(ours.wait),
        stalled_after: wanted.stalled_after.unwrap_or(ours.stalled_after),
        rejections: wanted.rejections.unwrap_or(ours.rejections),
        grace: wanted.grace.unwrap_or(ours.grace),
    }
}

/// Refuses a limit on what cannot be measured, as it could not be enforced. Warns about one that is measured late.
pub(super) fn check_measurable(request: &Request<'_>, steps: &[PlannedStep], faults: &mut Vec<Diagnostic>) {
    let wanted = request.settings.limits.clone().or(request.config.limits.clone());
    let cost = wanted.cost.map(|(_, at)| (at, "cost", request.settings.limits.cost.is_some()));
    let tokens = wanted.tokens.map(|(_, at)| (at, "tokens", request.settings.limits.tokens.is_some()));
    for (at, limit, typed) in cost.into_iter().chain(tokens) {
        let steps: Vec<&PlannedStep> = steps.iter().flat_map(PlannedStep::all_variants).collect();
        let told = |step: &PlannedStep| {
            let told = step.accounting()?;
            Some(if limit == "cost" { told.cost } else { told.tokens })
        };
        let silent = steps.iter().find(|step| told(step) == Some(UsageReport::Never));
        let agents = || steps.iter().filter(|step| !step.is_check());
        // A plain program uses nothing, so it may run under a limit meant for others. If no agent reports usage, a
        // typed limit was meant for it.
        let nobody = if typed && agents().all(|step| told(step).is_none()) { agents().next() } else { None };
        if let Some(step) = silent.or(nobody) {
            faults.push(errors::unmeasurable(&at, limit, &step.name));
            continue;
        }
        let late = |step: &&&PlannedStep| {
            told(step) == Some(UsageReport::AtTheEnd) && !(limit == "cost" && step.is_told_the_budget())
        };
        if let Some(step) = steps.iter().find(late) {
            faults.push(errors::measured_late(&at, limit, &step.name));
        }
    }
}
