//! What earlier runs of a chain took and cost, from the journal: the best guess of what the next one will.

use crate::engine::RunRow;
use crate::report::phrases::{seconds, thousands};
use serde::Serialize;

/// How many of the last runs are looked at.
const LAST: usize = 20;

/// The middle and the most of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread<T> {
    /// The one in the middle.
    pub median: T,
    /// The greatest.
    pub most: T,
}

/// What earlier runs of a chain took and cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierRuns {
    /// How many runs that ended are meant; 20 at most.
    pub runs: usize,
    /// How long their agents and checks were at work, in milliseconds.
    pub took_ms: Spread<u64>,
    /// Tokens, where they were reported.
    pub tokens: Option<Spread<u64>>,
    /// US dollars, where they were reported.
    pub cost_usd: Option<Spread<f64>>,
}

impl EarlierRuns {
    /// Of the runs of a chain, by its name in the config, else by its text; none where there was no run that ended.
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

    /// In words: `8 runs: 21 min 0 s and $2.10 in the middle, 45 min 3 s and $4.80 at most`.
    #[must_use]
    pub fn words(&self) -> String {
        let runs = if self.runs == 1 { "1 run".into() } else { format!("{} runs", self.runs) };
        let used = |cost: Option<f64>, tokens: Option<u64>| match (cost, tokens) {
            (Some(cost), _) => format!(" and ${cost:.2}"),
            (None, Some(tokens)) => format!(" and {} tokens", thousands(tokens)),
            (None, None) => String::new(),
        };
        let middle = used(self.cost_usd.map(|cost| cost.median), self.tokens.map(|tokens| tokens.median));
        let most = used(self.cost_usd.map(|cost| cost.most), self.tokens.map(|tokens| tokens.most));
        if self.runs == 1 {
            return format!("{runs}: {}{middle}", seconds(self.took_ms.median));
        }
        format!(
            "{runs}: {}{middle} in the middle, {}{most} at most",
            seconds(self.took_ms.median),
            seconds(self.took_ms.most)
        )
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
            iterations: 1,
            took_ms,
            tokens: None,
            cost_usd,
            began: true,
            kind: crate::engine::RunKind::Chain,
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
        assert_eq!(earlier.words(), "3 runs: 2 min 0 s and $3.50 in the middle, 10 min 0 s and $3.50 at most");
        assert_eq!(EarlierRuns::of(&rows, None, "a -> b"), None);
    }
}
