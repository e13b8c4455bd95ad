//! The pool: the prompts from which candidates are made. Each of them does best on some case, so that what one prompt
//! can do is not lost because another one does better on the whole.

use super::{TriedPrompt, mean, results_of};
use crate::engine::EvalLedger;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

/// A smaller difference is a rounding error.
const SMALLEST: f64 = 1e-9;

/// Returns the prompt from which a candidate is made, by its generation.
///
/// It is drawn from those of the pool that do best on some training case, the more often, the more such cases it has.
/// A prompt is left out if on each of these cases some better one does best, too. `pool` has the original, and every
/// candidate that was run on all training cases.
pub(super) fn parent(ledger: &EvalLedger, pool: &[(u32, TriedPrompt)], candidate: u32) -> u32 {
    let mut fronts: Vec<BTreeSet<u32>> = ledger.groups(false).iter().map(|ids| front(ledger, pool, ids)).collect();
    let mut worst_first = pool.to_vec();
    worst_first.sort_by(|(_, one), (_, other)| one.by_training(other));
    for (rank, (generation, _)) in worst_first.iter().enumerate() {
        let better: BTreeSet<u32> = worst_first[rank + 1..].iter().map(|(generation, _)| *generation).collect();
        let mut own = fronts.iter().filter(|front| front.contains(generation)).peekable();
        if own.peek().is_some() && own.all(|front| !front.is_disjoint(&better)) {
            for front in &mut fronts {
                front.remove(generation);
            }
        }
    }
    let places: Vec<u32> = fronts.into_iter().flatten().collect();
    let best = worst_first.last().map_or(0, |(generation, _)| *generation);
    let drawn = (!places.is_empty()).then(|| random(ledger, candidate).random_range(0..places.len()));
    drawn.and_then(|drawn| places.get(drawn).copied()).unwrap_or(best)
}

/// Returns the prompts that do best on cases that ask the same.
fn front(ledger: &EvalLedger, pool: &[(u32, TriedPrompt)], ids: &[&str]) -> BTreeSet<u32> {
    let means: BTreeMap<u32, f64> =
        (pool.iter()).filter_map(|(generation, _)| Some((*generation, value(ledger, *generation, ids)?))).collect();
    let best = means.values().copied().fold(f64::NEG_INFINITY, f64::max);
    means.into_iter().filter(|(_, mean)| *mean >= best - SMALLEST).map(|(generation, _)| generation).collect()
}

/// Returns the cases on which a candidate is tried before the others, as groups of those that ask the same: drawn at
/// random, but one of them is a case on which its parent is not perfect, if there is one.
pub(super) fn minibatch(ledger: &EvalLedger, parent: u32, candidate: u32, size: u32) -> Vec<Vec<&str>> {
    let mut groups = ledger.groups(false);
    groups.retain(|ids| value(ledger, parent, ids).is_some());
    groups.shuffle(&mut random(ledger, candidate));
    let is_perfect = |ids: &Vec<&str>| value(ledger, parent, ids).is_none_or(|value| value > 1.0 - SMALLEST);
    let size = size as usize;
    if size > 0
        && groups.iter().take(size).all(is_perfect)
        && let Some(wanting) = groups.iter().position(|ids| !is_perfect(ids))
    {
        groups.swap(size - 1, wanting);
    }
    groups.truncate(size);
    groups
}

/// Returns the mean result of a generation on cases that ask the same; `None` if none was judged.
fn value(ledger: &EvalLedger, generation: u32, ids: &[&str]) -> Option<f64> {
    let results = results_of(ledger, generation, ids);
    (!results.is_empty()).then(|| mean(&results))
}

fn random(ledger: &EvalLedger, candidate: u32) -> ChaCha8Rng {
    let seed = ledger.facts.as_ref().map_or(0, |facts| facts.options.seed);
    ChaCha8Rng::seed_from_u64(seed ^ u64::from(candidate) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{CaseFacts, CaseResult, EvalEvent, EvalFacts, EventKind, JudgedBy, Remarks, Score};
    use std::sync::Arc;

    /// An evaluation with these scores of each generation, one for each case.
    fn ledger(scores: &[&[f64]]) -> (EvalLedger, Vec<(u32, TriedPrompt)>) {
        let id = |number: usize| Arc::<str>::from(format!("case {number}"));
        let cases = (0..scores[0].len()).map(|number| CaseFacts { id: id(number), ..CaseFacts::default() });
        let facts = Arc::new(EvalFacts { cases: cases.collect(), ..EvalFacts::default() });
        let mut ledger = EvalLedger::default();
        ledger.evolve(&EventKind::Evaluation { event: EvalEvent::Started { facts } });
        let mut pool = Vec::new();
        for (generation, scores) in (0..).zip(scores) {
            for (number, score) in scores.iter().enumerate() {
                let result = CaseResult {
                    generation,
                    case: id(number),
                    repetition: 1,
                    held_out: false,
                    pass: *score > 0.5,
                    score: *score,
                    closeness: None,
                    judged_by: JudgedBy::Criteria,
                    remarks: Remarks::default(),
                    cached: false,
                    answer: None,
                    cost_usd: None,
                    took_ms: None,
                };
                ledger.evolve(&EventKind::Evaluation { event: EvalEvent::CaseJudged { result } });
            }
            let passed = scores.iter().filter(|score| **score > 0.5).count();
            let training = Score { passed, mean: mean(scores), ..Score::default() };
            pool.push((generation, TriedPrompt { training, ..TriedPrompt::default() }));
        }
        (ledger, pool)
    }

    /// How often each generation is the parent of a thousand candidates.
    fn parents(scores: &[&[f64]]) -> Vec<usize> {
        let (ledger, pool) = ledger(scores);
        let drawn: Vec<u32> = (1..=1000).map(|candidate| parent(&ledger, &pool, candidate)).collect();
        (0..).take(scores.len()).map(|generation| drawn.iter().filter(|one| **one == generation).count()).collect()
    }

    #[test]
    fn a_parent_does_best_on_some_case_and_the_more_often_the_more_such_cases_it_has() {
        assert_eq!(parents(&[&[0.0, 0.0]]), [1000]);
        assert_eq!(parents(&[&[0.0, 0.2], &[0.0, 0.9]]), [0, 1000], "the other one does nothing better");
        let drawn = parents(&[&[1.0, 0.0, 0.0, 0.0], &[0.0, 0.4, 0.4, 0.4], &[0.0, 0.3, 0.3, 0.4]]);
        assert_eq!(drawn[2], 0, "where it does best, a better one does, too");
        assert!((200..300).contains(&drawn[0]), "{drawn:?}");
        // The last one is the best, although each of its cases has another one that does as well.
        let drawn = parents(&[
            &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
            &[0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            &[0.0, 1.0, 1.0, 0.0, 1.0, 1.0],
        ]);
        assert!(drawn.iter().all(|often| *often > 100), "{drawn:?}");
    }

    #[test]
    fn a_minibatch_has_a_case_on_which_the_parent_is_not_perfect() {
        let (ledger, _) = ledger(&[&[1.0, 1.0, 1.0, 1.0, 1.0, 0.2]]);
        for candidate in 1..100 {
            let cases = minibatch(&ledger, 0, candidate, 2).concat();
            assert!(cases.len() == 2 && cases.contains(&"case 5"), "{cases:?}");
        }
        assert_eq!(minibatch(&ledger, 0, 1, 9).len(), 6);
        assert!(minibatch(&ledger, 1, 1, 2).is_empty(), "that prompt was not run");
    }
}
