//! Compares an evaluation with an earlier one of the same suite, and several executors or prompts with each other.

use super::significance::{BothResults, MOST_REPETITIONS, chance, chance_of_several, gain, mean};
use crate::engine::{Baseline, ColumnComparison, Comparison, EvalLedger};
use std::collections::BTreeMap;

/// Returns how the results of the original prompt compare to the earlier ones.
pub(super) fn compare(ledger: &EvalLedger, baseline: &Baseline) -> Comparison {
    let options = ledger.facts.as_ref().map(|facts| facts.options.clone()).unwrap_or_default();
    let now = ledger.values(0);
    let both = baseline.cases.iter().filter_map(|(id, before)| {
        let (original, candidate) = (before.clone(), now.get(id)?.clone());
        Some((id, BothResults { original, candidate }))
    });
    let (ids, cases): (Vec<&String>, Vec<BothResults>) = both.unzip();
    let count = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    let each = options.level / f64::from(count.max(1));
    let as_bad = |cases: &[BothResults], level: f64| {
        let swapped: Vec<BothResults> = cases.iter().map(BothResults::swapped).collect();
        chance(&swapped, options.seed, level)
    };
    let (mut worse, mut lower) = (Vec::new(), Vec::new());
    for (id, case) in ids.into_iter().zip(&cases) {
        let case = std::slice::from_ref(case);
        if gain(case) < 0.0 {
            let is_proven = chance_of_several(as_bad(case, each), count) <= options.level;
            if is_proven { &mut worse } else { &mut lower }.push(id.clone());
        }
    }
    let whole = by_group(ledger, &baseline.cases, &now);
    let (gain, chance) = (gain(&whole), as_bad(&whole, options.level));
    let regressed = !worse.is_empty() || gain < 0.0 && chance <= options.level;
    let repeat = repetitions(count, options.level);
    Comparison { run: baseline.run, cases: count, gain, chance, level: options.level, regressed, worse, lower, repeat }
}

/// Returns how the best column compares to each of the others. The best has the most results that passed, then the
/// highest mean score.
#[must_use]
pub fn compare_columns(ledger: &EvalLedger) -> Vec<ColumnComparison> {
    let Some(facts) = ledger.facts.as_ref().filter(|facts| facts.columns.len() > 1) else { return Vec::new() };
    let numbers = || 0..u32::try_from(facts.columns.len()).unwrap_or(u32::MAX);
    let score = |number: u32| ledger.score(number, false).unwrap_or_default();
    let worse = |one: &u32, other: &u32| {
        let (first, second) = (score(*one), score(*other));
        // Of two equal ones, the first is the better.
        let order = first.passed.cmp(&second.passed).then(first.mean.total_cmp(&second.mean));
        order.then(other.cmp(one))
    };
    let Some(best) = numbers().max_by(worse) else { return Vec::new() };
    let (others, level) = (u32::try_from(facts.columns.len() - 1).unwrap_or(u32::MAX), facts.options.level);
    let of_best = ledger.values(best);
    let compared = numbers().filter(|other| *other != best).map(|other| {
        let both = by_group(ledger, &ledger.values(other), &of_best);
        let chance = chance_of_several(chance(&both, facts.options.seed, level), others);
        ColumnComparison { best, other, gain: gain(&both), chance, level }
    });
    compared.collect()
}

/// Returns the results of each case that both have. Cases that ask the same have the same answers: they count once.
fn by_group(
    ledger: &EvalLedger,
    before: &BTreeMap<String, Vec<f64>>,
    now: &BTreeMap<String, Vec<f64>>,
) -> Vec<BothResults> {
    let groups = [false, true].into_iter().flat_map(|part| ledger.groups(part));
    let both = groups.filter_map(|group| {
        let of = |values: &BTreeMap<String, Vec<f64>>| {
            Some(means(&group.iter().filter_map(|id| values.get(*id)).collect::<Vec<_>>()))
                .filter(|all| !all.is_empty())
        };
        Some(BothResults { original: of(before)?, candidate: of(now)? })
    });
    both.collect()
}

/// Returns the mean of several lists at each position.
fn means(lists: &[&Vec<f64>]) -> Vec<f64> {
    let longest = lists.iter().map(|list| list.len()).max().unwrap_or(0);
    (0..longest).map(|at| mean(&lists.iter().filter_map(|list| list.get(at).copied()).collect::<Vec<_>>())).collect()
}

/// Returns how often cases have to be run to prove of one that it always passed and now never does.
fn repetitions(cases: u32, level: f64) -> u32 {
    let proves = |repeat: &u32| {
        // One of the ways to choose half of twice as many results.
        let ways = (1..=*repeat).fold(1.0, |ways, one| ways * f64::from(repeat + one) / f64::from(one));
        chance_of_several(1.0 / ways, cases) <= level
    };
    (1..MOST_REPETITIONS).find(proves).unwrap_or(MOST_REPETITIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_stops_passing_is_proven_with_enough_repetitions() {
        assert_eq!([1, 10, 100, 100_000].map(|cases| repetitions(cases, 0.05)), [3, 5, 7, 12]);
    }
}
