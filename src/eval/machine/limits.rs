//! Limits and the budget of an evaluation, which end it before they are exceeded.

use crate::engine::{EvalLedger, LimitKind, Totals};
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
    let asked = ledger.results.values().filter(|result| !result.cached).count();
    let another = |so_far: f64| so_far / asked.max(1) as f64 * f64::from(samples);
    let (planned, spent) = (f64::from(ledger.totals.planned), ledger.totals.all.spent.unwrap_or_default());
    let cost = spent.cost_usd.unwrap_or(0.0);
    let budget = facts.options.budget;
    // The candidate has to be written, too.
    budget.attempts.is_none_or(|most| planned + another(planned).max(f64::from(samples)) + 1.0 <= f64::from(most))
        && budget.cost_usd.is_none_or(|most| cost + another(cost) <= most)
}
