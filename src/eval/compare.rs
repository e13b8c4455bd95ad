//! Compares an evaluation with an earlier one of the same suite, and several executors or prompts with each other.

use super::significance::{BothResults, MOST_REPETITIONS, chance, chance_of_several, gain, mean};
use crate::engine::{Baseline, ColumnComparison, ColumnPreference, Comparison, EvalLedger};
use statrs::distribution::{Binomial, DiscreteCDF};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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

/// Returns which of each two columns the agent of `selectBest` prefers, case by case.
///
/// An output is preferred if it was called better in both orders; otherwise neither is. A case that is run several
/// times goes to the column that is preferred more often, and cases that ask the same count once. `chance` is that of a
/// two-sided sign test over the cases with a preference, for as many pairs as there are.
pub(super) fn preferences(ledger: &EvalLedger) -> Vec<ColumnPreference> {
    let Some(facts) = ledger.facts.as_ref().filter(|facts| facts.selector.is_some()) else { return Vec::new() };
    let columns = u32::try_from(facts.columns.len()).unwrap_or(u32::MAX);
    let groups: Vec<Vec<&str>> = [false, true].into_iter().flat_map(|part| ledger.groups(part)).collect();
    let pairs = (0..columns).flat_map(|first| (first + 1..columns).map(move |second| (first, second)));
    let mut all: Vec<ColumnPreference> = pairs.map(|pair| preference(ledger, &groups, pair)).collect();
    let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
    for one in &mut all {
        (one.chance, one.level) = (chance_of_several(one.chance, count), facts.options.level);
    }
    all
}

fn preference(ledger: &EvalLedger, groups: &[Vec<&str>], (first, second): (u32, u32)) -> ColumnPreference {
    // How much more often the first column is preferred than the second, by case.
    let mut sums: HashMap<&str, i64> = HashMap::new();
    let mut failed = 0;
    let key = |case: &Arc<str>, (one, other): (u32, u32), repetition: u32| (one, other, Arc::clone(case), repetition);
    let none = Arc::from("");
    let of_pair = key(&none, (first, second), 0)..key(&none, (first, second + 1), 0);
    for ((.., case, repetition), one) in ledger.compared.range(of_pair) {
        let Some(other) = ledger.compared.get(&key(case, (second, first), *repetition)) else { continue };
        if one.error.is_some() || other.error.is_some() {
            failed += 1;
            continue;
        }
        let sum = sums.entry(case).or_default();
        match one.better.filter(|better| other.better == Some(*better)) {
            Some(better) if better == first => *sum += 1,
            Some(_) => *sum -= 1,
            None => {}
        }
    }
    let of_group = |ids: &Vec<&str>| ids.iter().filter_map(|id| sums.get(id).copied()).reduce(|one, other| one + other);
    let by_group: Vec<i64> = groups.iter().filter_map(of_group).collect();
    let count =
        |sign: i64| u32::try_from(by_group.iter().filter(|sum| sum.signum() == sign).count()).unwrap_or(u32::MAX);
    let (wins, losses, ties) = (count(1), count(-1), count(0));
    ColumnPreference { first, second, wins, losses, ties, failed, chance: sign_test(wins, losses), level: 0.0 }
}

/// Returns the probability of a result at least as lopsided if both sides are equally likely to win.
fn sign_test(wins: u32, losses: u32) -> f64 {
    let all = u64::from(wins + losses);
    let tail = Binomial::new(0.5, all).map_or(1.0, |coins| coins.cdf(u64::from(wins.min(losses))));
    (2.0 * tail).min(1.0)
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

    #[test]
    fn the_sign_test_counts_both_tails() {
        for ((wins, losses), chance) in
            [((0, 0), 1.0), ((5, 0), 0.0625), ((0, 6), 0.03125), ((3, 3), 1.0), ((8, 2), 0.109)]
        {
            assert!((sign_test(wins, losses) - chance).abs() < 0.001, "{wins} {losses}: {}", sign_test(wins, losses));
        }
    }
}
