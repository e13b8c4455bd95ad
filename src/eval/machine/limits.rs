//! Limits and the budget of an evaluation, which end it before they are exceeded.

use super::{EXECUTES, IMPROVES};
use crate::engine::{CaseResult, EvalLedger, LimitKind, Sum, Totals};
use crate::plan::Limits;

/// Whether the questions under way may use up a limit, if they use as much as those before them. Until something is
/// known about that, only one question is asked at a time.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn may_reach(totals: &Totals, limits: &Limits, under_way: usize) -> bool {
    let all = &totals.all;
    let spent = all.spent.unwrap_or_default();
    let reaches = |so_far: f64, most: f64| {
        let each = so_far / f64::from(all.attempts.max(1));
        all.attempts == 0 || so_far + each * under_way as f64 >= most
    };
    under_way > 0
        && (limits.cost.is_some_and(|most| reaches(spent.cost_usd.unwrap_or(0.0), most))
            || limits.tokens.is_some_and(|most| reaches(spent.total() as f64, most as f64)))
}

/// Returns the limit that prevents another question, if one is reached. `attempts` is the limit on attempts, and
/// `issued` the number of questions asked so far; `late` says whether the time limit of the whole evaluation has
/// passed.
pub(crate) fn limit_reached(
    totals: &Totals,
    limits: &Limits,
    attempts: Option<u32>,
    issued: u32,
    late: bool,
) -> Option<LimitKind> {
    let spent = totals.all.spent.unwrap_or_default();
    [
        (limits.cost.is_some_and(|most| spent.cost_usd.unwrap_or(0.0) >= most), LimitKind::Cost),
        (limits.tokens.is_some_and(|most| spent.total() >= most), LimitKind::Tokens),
        (attempts.is_some_and(|most| totals.planned.max(issued) >= most), LimitKind::Attempts),
        (late, LimitKind::Time),
    ]
    .into_iter()
    .find_map(|(reached, limit)| reached.then_some(limit))
}

/// Returns whether the budget allows another candidate that is run on every case, if each result takes as much as the
/// results so far.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn affords_another(ledger: &EvalLedger) -> bool {
    let Some(facts) = &ledger.facts else { return true };
    let samples: u32 = facts.cases.iter().map(|case| case.repeat).sum();
    let results: Vec<&CaseResult> = ledger.results.values().collect();
    let count = |number: usize| number.max(1) as f64;
    let new: Vec<&CaseResult> = results.iter().copied().filter(|result| !result.cached).collect();
    let sum =
        |step: u32| ledger.totals.steps.iter().find(|of| of.step == step).map(|of| of.sum.clone()).unwrap_or_default();
    let (executor, improver) = (sum(EXECUTES), sum(IMPROVES));
    // Every sample of a new prompt is answered, and judged as those before it.
    let answers = (f64::from(executor.attempts) / count(new.len())).max(1.0);
    let judges = ledger.totals.all.attempts.saturating_sub(executor.attempts + improver.attempts);
    let attempts = (answers + f64::from(judges) / count(results.len())) * f64::from(samples) + 1.0;
    // What a known answer has cost once, a new one will cost again.
    let cost_of = |results: &[&CaseResult]| results.iter().filter_map(|result| result.cost_usd).sum::<f64>();
    let spent = |sum: &Sum| sum.cost_usd().unwrap_or(0.0);
    let judging = (spent(&ledger.totals.all) - spent(&executor) - spent(&improver)).max(0.0);
    let rewrite = spent(&improver) / count(improver.attempts as usize);
    // The end of the last attempt may not be told yet, although its answer is judged.
    let so_far = spent(&ledger.totals.all).max(cost_of(&new) + judging + spent(&improver));
    let cost = (cost_of(&results) + judging) / count(results.len()) * f64::from(samples) + rewrite;
    let budget = facts.options.budget;
    budget.attempts.is_none_or(|most| f64::from(ledger.totals.planned) + attempts <= f64::from(most))
        && budget.cost_usd.is_none_or(|most| so_far + cost <= most)
}
