//! Whether one prompt is better than another beyond chance: models answer differently each time they are asked.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use statrs::distribution::{ContinuousCDF, Discrete, Hypergeometric, Normal};

/// The share of better prompts that are to be found, for which [`repetitions`] and [`smallest_gain`] plan.
const POWER: f64 = 0.8;
/// The gain that repetitions are planned for. Few results exaggerate a gain, so a larger one is not planned for.
pub(super) const PLANNED_GAIN: f64 = 0.3;
/// The variance of the difference between two results, at most: each has 1/4, as a coin.
const VARIANCE: f64 = 0.5;
/// Random orders that are compared with the observed one, unless there are very many results.
const ORDERS: usize = 9_999;
/// Results that are moved in all random orders together, at most: about a second of work.
const MOVES: usize = 100_000_000;
/// A case is never run more often than this.
pub const MOST_REPETITIONS: u32 = 1_000;

/// The results of one case with both prompts, each from 0 to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct BothResults {
    pub(super) original: Vec<f64>,
    pub(super) candidate: Vec<f64>,
}

impl BothResults {
    /// The same results, with the prompts in the other order.
    pub(super) fn swapped(&self) -> Self {
        Self { original: self.candidate.clone(), candidate: self.original.clone() }
    }

    fn gain(original: &[f64], candidate: &[f64]) -> f64 {
        mean(candidate) - mean(original)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of results")]
pub(super) fn mean(results: &[f64]) -> f64 {
    results.iter().fold(0.0, |sum, result| sum + result) / results.len().max(1) as f64
}

/// Returns how much better the candidate is, from -1 to 1: the mean over the cases that were judged with both prompts.
#[expect(clippy::cast_precision_loss, reason = "a count of cases")]
pub(super) fn gain(cases: &[BothResults]) -> f64 {
    let gains = cases.iter().map(|case| BothResults::gain(&case.original, &case.candidate));
    gains.fold(0.0, |sum, gain| sum + gain) / cases.len().max(1) as f64
}

/// Returns the probability that a prompt which changes nothing does at least as well as this candidate.
///
/// This is a one-sided permutation test, stratified by case: if the prompt made no difference, every assignment of a
/// case's results to the two prompts would be equally likely. It is exact if every result is 0 or 1 and every case has
/// as many. Otherwise random assignments are drawn, enough of them to tell probabilities well below `level`: with the
/// same `seed`, the same results give the same number.
pub(super) fn chance(cases: &[BothResults], seed: u64, level: f64) -> f64 {
    exact(cases).unwrap_or_else(|| drawn(cases, seed, level))
}

/// The exact test: the passes of a candidate on a case have a hypergeometric distribution, which is
/// summed up over the cases. Returns `None` if the results do not allow it, or there are too many.
fn exact(cases: &[BothResults]) -> Option<f64> {
    let is_bit = |result: &f64| result.abs().min((result - 1.0).abs()) < f64::EPSILON;
    let all_bits = cases.iter().all(|case| case.original.iter().chain(&case.candidate).all(is_bit));
    let results: usize = cases.iter().map(|case| case.candidate.len()).sum();
    let sizes = |case: &BothResults| (case.original.len(), case.candidate.len());
    let same_sizes = cases.windows(2).all(|two| sizes(&two[0]) == sizes(&two[1]));
    if !all_bits || !same_sizes || results.pow(2) > MOVES {
        return None;
    }
    let passes = |results: &[f64]| results.iter().filter(|result| **result > 0.5).count();
    // The probability of each number of passes of the candidate on the cases so far.
    let mut sums = vec![1.0];
    for case in cases {
        let (original, candidate) = (case.original.len(), case.candidate.len());
        let both = passes(&case.original) + passes(&case.candidate);
        let one = Hypergeometric::new((original + candidate) as u64, both as u64, candidate as u64).ok()?;
        let mut next = vec![0.0; sums.len() + candidate];
        for (so_far, probability) in sums.iter().enumerate() {
            for more in 0..=candidate {
                next[so_far + more] += probability * one.pmf(more as u64);
            }
        }
        sums = next;
    }
    let observed: usize = cases.iter().map(|case| passes(&case.candidate)).sum();
    Some(sums[observed..].iter().fold(0.0, |sum, one| sum + one).min(1.0))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of random orders"
)]
fn drawn(cases: &[BothResults], seed: u64, level: f64) -> f64 {
    let observed = gain(cases) - 1e-9;
    let results: usize = cases.iter().map(|case| case.original.len() + case.candidate.len()).sum();
    let needed = ((20.0 / level) as usize).max(ORDERS);
    let orders = (MOVES / results.max(1)).clamp(199, needed);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut pools: Vec<(usize, Vec<f64>)> = (cases.iter())
        .map(|case| (case.original.len(), [case.original.clone(), case.candidate.clone()].concat()))
        .collect();
    let as_good = (0..orders).filter(|_| {
        let mut sum = 0.0;
        for (split, pool) in &mut pools {
            pool.shuffle(&mut random);
            sum += BothResults::gain(&pool[..*split], &pool[*split..]);
        }
        sum / cases.len().max(1) as f64 >= observed
    });
    // The observed order is one of the possible ones.
    (as_good.count() + 1) as f64 / (orders + 1) as f64
}

/// Returns the probability that the best of several prompts which change nothing does at least as well, if one of them
/// does with the probability `chance`.
pub(super) fn chance_of_several(chance: f64, prompts: u32) -> f64 {
    // Exactly the same number for one prompt.
    if prompts <= 1 { chance } else { 1.0 - (1.0 - chance).powf(f64::from(prompts)) }
}

/// Returns the sum of the two quantiles on which the necessary number of results depends.
fn quantiles(level: f64, prompts: u32) -> f64 {
    let each = 1.0 - (1.0 - level).powf(1.0 / f64::from(prompts.max(1)));
    let normal = Normal::standard();
    normal.inverse_cdf(1.0 - each) + normal.inverse_cdf(POWER)
}

/// Returns how often each case has to be run so that a gain of this size is told from chance, four times out of five.
/// `prompts` is the number of candidates, and `level` the probability of an error that is accepted for all of them.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "is clamped")]
pub(super) fn repetitions(gain: f64, cases: usize, prompts: u32, level: f64) -> u32 {
    let gain = gain.clamp(0.001, PLANNED_GAIN);
    let results = quantiles(level, prompts).powi(2) * VARIANCE / gain.powi(2);
    (results / cases.max(1) as f64).ceil().clamp(1.0, f64::from(MOST_REPETITIONS)) as u32
}

/// Returns the smallest gain that this number of results per prompt tells from chance, four times out of five.
#[expect(clippy::cast_precision_loss, reason = "a count of results")]
pub(super) fn smallest_gain(results: usize, prompts: u32, level: f64) -> f64 {
    (quantiles(level, prompts) * (VARIANCE / results.max(1) as f64).sqrt()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(original: &[u8], candidate: &[u8]) -> BothResults {
        let values = |bits: &[u8]| bits.iter().map(|bit| f64::from(*bit)).collect();
        BothResults { original: values(original), candidate: values(candidate) }
    }

    #[test]
    fn the_chance_is_that_of_the_exact_test() {
        // One of the 6 ways to assign two passes and two failures of a case is the observed one: 1/6 for each case.
        let case = both(&[0, 0], &[1, 1]);
        for (cases, exact) in [(1, 1.0 / 6.0), (2, 1.0 / 36.0), (3, 1.0 / 216.0)] {
            let cases = vec![case.clone(); cases];
            let (found, close) = (chance(&cases, 7, 0.05), drawn(&cases, 7, 0.05));
            assert!((found - exact).abs() < 1e-9, "{found} for {exact}");
            assert!((close - exact).abs() < 0.01, "{close} for {exact}");
        }
        for both in [both(&[1], &[0]), both(&[1, 0], &[0, 0])] {
            let both = [both];
            assert!(chance(&both, 7, 0.05) > 0.99 && drawn(&both, 7, 0.05) > 0.99, "a worse prompt");
        }
        assert!(chance(&[both(&[1, 0], &[1, 0])], 7, 0.05) > 0.6, "an equal prompt");
    }

    #[test]
    fn every_case_counts_the_same_however_often_it_is_run() {
        let cases = [both(&[1], &[0]), both(&[1], &[0]), both(&[0; 9], &[1; 9])];
        assert!(gain(&cases) < 0.0);
        let chance = chance(&cases, 7, 0.05);
        assert!(chance > 0.5, "{chance}");
    }

    #[test]
    fn random_orders_are_drawn_for_scores_and_follow_from_the_seed() {
        let cases = [BothResults { original: vec![0.2, 0.3, 0.1], candidate: vec![0.9, 0.8, 0.75] }];
        assert_eq!(exact(&cases), None);
        let found = chance(&cases, 7, 0.05);
        assert!((found - 1.0 / 20.0).abs() < 0.01, "{found}");
        assert_eq!(found.to_bits(), chance(&cases, 7, 0.05).to_bits(), "the same seed");
    }

    #[test]
    fn more_candidates_need_more_results() {
        let of = |gain, cases, prompts| repetitions(gain, cases, prompts, 0.05);
        assert_eq!([of(0.3, 10, 1), of(0.3, 10, 3), of(0.3, 10, 100)], [4, 5, 10]);
        assert_eq!([of(0.9, 10, 3), of(0.1, 10, 3), of(-1.0, 10, 3)], [5, 44, 1000]);
        assert_eq!([of(0.3, 1000, 3), of(0.3, 1, 3)], [1, 49]);
    }

    #[test]
    fn the_smallest_gain_and_the_repetitions_are_the_same_plan() {
        let smallest = smallest_gain(490, 3, 0.05);
        assert_eq!(repetitions(smallest + 1e-9, 10, 3, 0.05), 49);
        assert!(smallest_gain(1, 3, 0.05) >= 1.0);
    }

    #[test]
    fn the_best_of_several_looks_good_more_often() {
        assert!((chance_of_several(0.5, 2) - 0.75).abs() < 1e-9);
        assert!((chance_of_several(0.05, 1) - 0.05).abs() < 1e-9);
    }
}
