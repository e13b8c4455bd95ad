//! The time and the cost of earlier runs of a chain, from the journal: the best estimate for the next one.

use crate::engine::RunRow;
use crate::report::format::{amount, seconds};
use crate::source::counted;
use serde::Serialize;

/// The maximum number of recent runs that are used.
const LAST: usize = 20;

/// The median and the maximum of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread<T> {
    /// The median.
    pub median: T,
    /// The maximum.
    pub most: T,
}

/// The time, tokens and cost of earlier runs of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRuns {
    /// The number of runs that were used: the last ones that ended, at most 20.
    pub runs: usize,
    /// The working time of their agents and checks, in milliseconds.
    pub took_ms: Spread<u64>,
    /// The tokens of those runs that reported them.
    pub tokens: Option<Spread<u64>>,
    /// The cost of those runs that reported it, in US dollars.
    pub cost_usd: Option<Spread<f64>>,
}

impl EarlierRuns {
    /// Selects the runs of a chain by its name in the config, or by its text if it has no name. `None` if no run has
    /// ended.
    #[must_use]
    pub fn of(rows: &[RunRow], name: Option<&str>, chain: &str) -> Option<Self> {
        let same = |row: &&RunRow| match name {
            Some(name) => row.name.as_deref() == Some(name),
            None => row.name.is_none() && row.chain == chain,
        };
        let last: Vec<&RunRow> = rows.iter().filter(same).filter(|row| row.outcome.is_some()).take(LAST).collect();
        Some(Self {
            runs: last.len(),
            took_ms: spread(last.iter().map(|row| row.took_ms).collect())?,
            tokens: spread(last.iter().filter_map(|row| row.tokens).collect()),
            cost_usd: spread(last.iter().filter_map(|row| row.cost_usd).collect()),
        })
    }

    /// Returns it as text: `8 runs: median 21 min 0 s and $2.10, at most 45 min 3 s and $4.80`.
    #[must_use]
    pub fn words(&self) -> String {
        let runs = counted(self.runs, "run");
        let used = |cost: Option<f64>, tokens: Option<u64>| match (cost, tokens) {
            (Some(cost), _) => format!(" and ${cost:.2}"),
            (None, Some(tokens)) => format!(" and {}", amount(tokens, "token")),
            (None, None) => String::new(),
        };
        let middle = used(self.cost_usd.map(|cost| cost.median), self.tokens.map(|tokens| tokens.median));
        let most = used(self.cost_usd.map(|cost| cost.most), self.tokens.map(|tokens| tokens.most));
        if self.runs == 1 {
            return format!("{runs}: {}{middle}", seconds(self.took_ms.median));
        }
        format!("{runs}: median {}{middle}, at most {}{most}", seconds(self.took_ms.median), seconds(self.took_ms.most))
    }
}

fn spread<T: Copy + PartialOrd>(mut numbers: Vec<T>) -> Option<Spread<T>> {
    numbers.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    Some(Spread { median: *numbers.get(numbers.len() / 2)?, most: *numbers.last()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RunOutcome;

    fn row(name: &str, took_ms: u64, cost_usd: Option<f64>, outcome: Option<RunOutcome>) -> RunRow {
        let (id, started, chain) = (1, String::new(), "a -> b".to_string());
        let name = Some(name.to_string());
        RunRow {
            id,
            started,
            ended: None,
            chain,
            name,
            outcome,
            attempts: 1,
            task: None,
            took_ms,
            tokens: None,
            cost_usd,
            began: true,
            kind: crate::engine::RunKind::Chain,
            batch: None,
            unit: None,
        }
    }

    #[test]
    fn the_median_and_the_most_of_the_last_runs_that_ended_are_told() {
        let ended = Some(RunOutcome::Succeeded);
        let rows = [
            row("task", 60_000, Some(1.0), ended),
            row("task", 600_000, None, ended),
            row("other", 1, Some(9.0), ended),
            row("task", 120_000, Some(3.5), ended),
            row("task", 9_000_000, Some(99.0), None),
        ];
        let earlier = EarlierRuns::of(&rows, Some("task"), "a -> b").unwrap();
        assert_eq!(earlier.words(), "3 runs: median 2 min 0 s and $3.50, at most 10 min 0 s and $3.50");
        assert_eq!(EarlierRuns::of(&rows, None, "a -> b"), None);
    }
}
