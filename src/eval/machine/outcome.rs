//! How an evaluation that measures prompts ends.

use super::{EVALUATES, EXECUTES};
use crate::engine::{CaseResult, Comparison, EvalLedger, HumanNeeded, RunOutcome};
use std::collections::HashMap;

/// Returns the outcome of measuring prompts.
#[expect(clippy::cast_precision_loss, reason = "a count of results")]
pub(super) fn outcome_of_measuring(ledger: &EvalLedger, comparison: Option<&Comparison>) -> RunOutcome {
    let results = || ledger.results.values();
    // A recorded output that is labelled as bad has to fail.
    let labels: HashMap<&str, bool> = (ledger.facts.iter().flat_map(|facts| &facts.cases))
        .filter_map(|case| Some((&*case.id, case.label?)))
        .collect();
    let right = |result: &CaseResult| result.pass == labels.get(&*result.case).copied().unwrap_or(true);
    let wanting = |judged: bool| results().any(|result| result.remarks.error.is_none() == judged && !right(result));
    let least = ledger.facts.as_ref().and_then(|facts| facts.options.min_pass);
    let (all, good) = (results().count(), results().filter(|result| right(result)).count());
    let enough = least.map(|least| good as f64 >= least * all as f64 - 1e-9);
    let failed = ledger.compared.values().any(|comparison| comparison.error.is_some());
    match (comparison, enough) {
        (Some(comparison), _) if comparison.regressed => RunOutcome::CasesFailed,
        // A resume compares these outputs again.
        _ if failed && !wanting(true) => RunOutcome::NeedsHuman { step: EVALUATES, reason: HumanNeeded::Unclear },
        // Even `--min-pass 0` needs something that was judged.
        (_, Some(true)) if results().any(|result| result.remarks.error.is_none()) => RunOutcome::Succeeded,
        (None, None) | (_, Some(false)) if wanting(true) => RunOutcome::CasesFailed,
        _ if wanting(false) => nobody_judged(ledger),
        _ => RunOutcome::Succeeded,
    }
}

/// Returns the outcome of cases that could not be judged: a resume asks an evaluator again.
pub(super) fn nobody_judged(ledger: &EvalLedger) -> RunOutcome {
    let evaluator = |error: &str| error.starts_with("evaluator_error");
    let unclear = ledger.results.values().any(|result| result.remarks.error.as_deref().is_some_and(evaluator));
    if unclear {
        RunOutcome::NeedsHuman { step: EVALUATES, reason: HumanNeeded::Unclear }
    } else {
        RunOutcome::Failed { step: EXECUTES }
    }
}
