//! The score of a prompt on some results, with its spread and an interval.

use super::event::{CaseResult, JudgedBy};
use serde::Serialize;

/// The quantile of the normal distribution for an interval of 95 %.
const Z: f64 = 1.959_964;

/// The score of a prompt on a set of results: one for each case and repetition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// The number of results. Each repetition of a case counts as one.
    pub cases: usize,
    /// The number of results that passed.
    pub passed: usize,
    /// The number of results that were not judged.
    pub unjudged: usize,
    /// The mean of their scores, from 0 to 1. A result that was not judged counts as 0.
    pub mean: f64,
    /// The standard deviation of their scores; 0 for a single result.
    pub spread: f64,
    /// The interval that contains the true pass rate with a probability of 95 %, from 0 to 1 (Wilson's score interval).
    pub pass_interval: (f64, f64),
    /// The mean similarity of the outputs to the expected outputs, from 0 to 1.
    pub closeness: f64,
}

impl Score {
    /// Returns the score of these results; `None` if there are none.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a count of results")]
    pub fn of(results: &[&CaseResult]) -> Option<Self> {
        if results.is_empty() {
            return None;
        }
        let closeness: Vec<f64> = results.iter().filter_map(|result| result.closeness).collect();
        let passed = results.iter().filter(|result| result.pass).count();
        let mean = results.iter().map(|result| result.score).sum::<f64>() / results.len() as f64;
        let squares = results.iter().map(|result| (result.score - mean).powi(2)).sum::<f64>();
        Some(Self {
            cases: results.len(),
            passed,
            unjudged: results.iter().filter(|result| result.judged_by == JudgedBy::Nobody).count(),
            mean,
            spread: (squares / results.len().saturating_sub(1).max(1) as f64).sqrt(),
            pass_interval: wilson(passed, results.len()),
            closeness: closeness.iter().fold(0.0, |sum, one| sum + one) / closeness.len().max(1) as f64,
        })
    }

    /// Returns whether everything passed.
    #[must_use]
    pub fn is_perfect(&self) -> bool {
        self.passed == self.cases
    }
}

/// Returns the interval of 95 % for a rate (E. B. Wilson 1927), which also holds for few results.
#[expect(clippy::cast_precision_loss, reason = "a count of results")]
fn wilson(passed: usize, all: usize) -> (f64, f64) {
    let (count, rate) = (all as f64, passed as f64 / all as f64);
    let square = Z * Z / count;
    let center = (rate + square / 2.0) / (1.0 + square);
    let half = Z / (1.0 + square) * (rate * (1.0 - rate) / count + square / count / 4.0).sqrt();
    // At the ends, rounding would leave a trace of the other side.
    (if passed == 0 { 0.0 } else { center - half }, if passed == all { 1.0 } else { center + half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        let rounded = |(low, high): (f64, f64)| (format!("{low:.3}"), format!("{high:.3}"));
        for (passed, all, low, high) in
            [(0, 10, "0.000", "0.278"), (5, 10, "0.237", "0.763"), (10, 10, "0.722", "1.000"), (1, 1, "0.207", "1.000")]
        {
            assert_eq!(rounded(wilson(passed, all)), (low.into(), high.into()), "{passed} of {all}");
        }
    }
}
