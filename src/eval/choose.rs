//! Which prompt is better, which one wins, and when to stop.

use super::significance::{
    BothResults, PLANNED_GAIN, chance, chance_of_several, gain, mean, repetitions, smallest_gain,
};
use crate::engine::{ChosenPrompt, EvalLedger, EvalOptions, Proof, Score, Sensitivity};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A smaller gain is a rounding error.
const SMALLEST_GAIN: f64 = 1e-9;

fn order(one: &Score, other: &Score) -> Ordering {
    one.passed.cmp(&other.passed).then_with(|| one.mean.total_cmp(&other.mean))
}

/// A prompt that was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TriedPrompt {
    pub(super) training: Score,
    /// `None` without held-out cases.
    pub(super) held_out: Option<Score>,
    pub(super) tokens: usize,
}

impl TriedPrompt {
    /// Compares by the training cases: passes, score, closeness, then fewer tokens.
    pub(super) fn by_training(&self, other: &Self) -> Ordering {
        order(&self.training, &other.training)
            .then_with(|| self.training.closeness.total_cmp(&other.training.closeness))
            .then_with(|| other.tokens.cmp(&self.tokens))
    }

    fn order(&self, other: &Self) -> Ordering {
        let held_out = match (&self.held_out, &other.held_out) {
            (Some(own), Some(other)) => order(own, other),
            _ => Ordering::Equal,
        };
        held_out.then_with(|| self.by_training(other))
    }
}

/// Returns the generation that wins; the held-out cases decide first. `tried` begins with the original, which wins
/// unless another one is better and passes at least one case.
pub(super) fn winner(tried: &[(u32, TriedPrompt)]) -> u32 {
    let Some(((original, first), candidates)) = tried.split_first() else { return 0 };
    let (mut best, mut generation) = (first, *original);
    for (number, candidate) in candidates {
        if candidate.training.passed > 0 && candidate.order(best) == Ordering::Greater {
            (best, generation) = (candidate, *number);
        }
    }
    generation
}

/// Chooses the best of the candidates that are better than the original beyond chance; if there are none, the best of
/// all, as unproven. `compared` says whether any candidate was proposed.
pub(super) fn choose(
    ledger: &EvalLedger,
    tried: &[(u32, TriedPrompt)],
    compared: bool,
    reason: String,
) -> ChosenPrompt {
    let options = ledger.facts.as_ref().map(|facts| facts.options.clone()).unwrap_or_default();
    let held_out = ledger.facts.iter().flat_map(|facts| &facts.cases).any(|case| case.held_out);
    let proofs: BTreeMap<u32, Proof> = (tried.iter().skip(1))
        .map(|(generation, _)| (*generation, proof(&both_results(ledger, *generation, held_out), &options)))
        .collect();
    // The rules of `winner` count passes; a case that is run more often does not count for more here.
    let is_better = |generation: &u32| proofs.get(generation).is_none_or(|proof| proof.gain > SMALLEST_GAIN);
    let tried: Vec<_> = tried.iter().filter(|(generation, _)| is_better(generation)).copied().collect();
    let is_proven = |generation: &u32| proofs.get(generation).is_none_or(|proof| proof.proven);
    let proven: Vec<_> = tried.iter().filter(|(generation, _)| is_proven(generation)).copied().collect();
    let generation = match winner(&proven) {
        0 => winner(&tried),
        generation => generation,
    };
    let sensitivity = compared.then(|| sensitivity(&both_results(ledger, 0, held_out), &options));
    ChosenPrompt { generation, reason, proof: proofs.get(&generation).copied(), sensitivity }
}

/// Returns the results of the original and of a candidate on a part of the cases, where both were judged. Cases that
/// ask the same have the same answers: they count as one, whose result is their mean in each repetition.
pub(super) fn both_results(ledger: &EvalLedger, generation: u32, held_out: bool) -> Vec<BothResults> {
    results_of_both(ledger, (0, generation), &ledger.groups(held_out))
}

/// Like [`both_results`], with another prompt than the original, on some groups of cases that ask the same.
pub(super) fn results_of_both(
    ledger: &EvalLedger,
    (original, candidate): (u32, u32),
    groups: &[Vec<&str>],
) -> Vec<BothResults> {
    let both = groups.iter().map(|ids| BothResults {
        original: results_of(ledger, original, ids),
        candidate: results_of(ledger, candidate, ids),
    });
    both.filter(|both| !both.original.is_empty() && !both.candidate.is_empty()).collect()
}

/// Returns the results of a generation on cases that ask the same: their mean in each repetition.
pub(super) fn results_of(ledger: &EvalLedger, generation: u32, ids: &[&str]) -> Vec<f64> {
    let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for result in ids.iter().flat_map(|id| ledger.judged(generation, id)) {
        values.entry(result.repetition).or_default().push(result.value());
    }
    values.into_values().map(|values| mean(&values)).collect()
}

/// Returns whether a candidate is better than the original beyond chance, by the results of the cases that decide.
fn proof(cases: &[BothResults], options: &EvalOptions) -> Proof {
    let (gain, prompts) = (gain(cases), options.generations);
    let chance = chance_of_several(chance(cases, options.seed, options.level / f64::from(prompts.max(1))), prompts);
    let proven = gain > SMALLEST_GAIN && chance <= options.level;
    let repeat = repetitions(gain, cases.len(), prompts, options.level);
    // What was not enough is not planned again.
    let longest = cases.iter().map(|case| case.candidate.len()).max().unwrap_or(0);
    let more = u32::try_from(longest + 1).unwrap_or(u32::MAX);
    let repeat = if proven { repeat } else { repeat.max(more) };
    Proof { proven, gain, chance, level: options.level, repeat, planned: gain.min(PLANNED_GAIN) }
}

/// Returns what an evaluation can find with these results of the original.
fn sensitivity(cases: &[BothResults], options: &EvalOptions) -> Sensitivity {
    let results = cases.iter().map(|case| case.original.len()).sum();
    Sensitivity {
        gain: smallest_gain(results, options.generations, options.level),
        repeat: repetitions(PLANNED_GAIN, cases.len(), options.generations, options.level),
        planned: PLANNED_GAIN,
    }
}

/// When to stop looking for a better prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// The most candidates.
    pub(super) generations: u32,
    /// The most candidates in a row that are not better.
    pub(super) without_improvement: u32,
    /// The fewest candidates, once one is made at all.
    pub(super) least: u32,
    /// Whether a prompt that passes everything is still improved.
    pub(super) always: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self { generations: 3, without_improvement: 2, least: 2, always: false }
    }
}

/// The progress of the improvement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of candidates so far.
    pub(super) attempts: u32,
    /// The number of candidates in a row that were not better.
    pub(super) idle: u32,
    /// Whether the best one passes all training cases.
    pub(super) perfect: bool,
    /// Why the last candidate was refused, if it was.
    pub(super) refused: Option<String>,
    /// Whether the budget does not allow another candidate.
    pub(super) used_up: bool,
}

impl Progress {
    /// Returns why the improvement ends now, if it does.
    pub(super) fn stop(&self, patience: Patience) -> Option<String> {
        let enough = self.attempts >= patience.least || self.attempts == 0 && !patience.always;
        if self.perfect && enough {
            return Some("pass".into());
        }
        let refused = || match self.refused.as_deref() {
            Some("leakage_detected") => Some("leakage".to_string()),
            Some(why) if why.starts_with("sanity_check:") => Some(why.to_string()),
            _ => None,
        };
        if self.attempts >= patience.generations && self.perfect {
            return Some("pass".into());
        }
        if self.attempts >= patience.generations {
            return Some(refused().unwrap_or_else(|| "max_iterations".into()));
        }
        if self.used_up {
            return Some("budget".into());
        }
        if self.idle >= patience.without_improvement && self.attempts >= patience.least {
            return Some(refused().unwrap_or_else(|| "no_improvement".into()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(passed: usize, mean: f64) -> Score {
        Score { cases: 4, passed, mean, ..Score::default() }
    }

    fn tried(passed: usize, mean: f64, held_out: Option<(usize, f64)>, tokens: usize) -> TriedPrompt {
        TriedPrompt {
            training: score(passed, mean),
            held_out: held_out.map(|(passed, mean)| score(passed, mean)),
            tokens,
        }
    }

    #[test]
    fn the_held_out_cases_decide_then_the_others_then_fewer_tokens() {
        let original = tried(1, 0.3, Some((2, 0.8)), 10);
        for (candidate, wins) in [
            (tried(4, 1.0, Some((1, 0.9)), 10), false),
            (tried(4, 1.0, Some((2, 0.7)), 10), false),
            (tried(4, 1.0, Some((2, 0.8)), 90), true),
            (tried(1, 0.3, Some((2, 0.8)), 9), true),
            (tried(1, 0.3, Some((2, 0.8)), 10), false),
            (tried(0, 0.0, Some((4, 1.0)), 1), false),
        ] {
            assert_eq!(winner(&[(0, original), (2, candidate)]), if wins { 2 } else { 0 }, "{candidate:?}");
        }
        let better = [(0, tried(0, 0.0, None, 5)), (1, tried(0, 0.9, None, 5)), (2, tried(1, 0.2, None, 90))];
        assert_eq!(winner(&better), 2, "what passes nothing never wins");
    }

    #[test]
    fn it_ends_when_all_passes_when_nothing_helps_and_when_the_last_generation_is_over() {
        let stop = |attempts, idle, perfect, refused: Option<&str>| {
            let refused = refused.map(str::to_string);
            let progress = Progress { attempts, idle, perfect, refused, used_up: false };
            progress.stop(Patience::default())
        };
        assert_eq!(stop(0, 0, true, None).as_deref(), Some("pass"));
        assert_eq!(stop(1, 0, true, None), None, "once one is made, another is tried");
        assert_eq!(stop(2, 1, true, None).as_deref(), Some("pass"));
        assert_eq!(stop(1, 1, false, None), None);
        assert_eq!(stop(2, 2, false, None).as_deref(), Some("no_improvement"));
        assert_eq!(stop(2, 2, false, Some("leakage_detected")).as_deref(), Some("leakage"));
        assert_eq!(stop(3, 1, false, None).as_deref(), Some("max_iterations"));
        assert_eq!(stop(3, 1, false, Some("sanity_check:too_long")).as_deref(), Some("sanity_check:too_long"));
        let always = Patience { always: true, ..Patience::default() };
        assert_eq!(Progress { perfect: true, ..Progress::default() }.stop(always), None);
    }
}
