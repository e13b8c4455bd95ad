//! `eval compare`: several evaluations side by side.

use super::ledger_of;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, broken_journal};
use crate::cli::runs::history::{journal, meant};
use crate::engine::{CaseFacts, ColumnFacts, EvalEvent, EvalFacts, EvalLedger, EventKind, USUAL_LEVEL};
use crate::eval::compare_columns;
use crate::report::{Paint, comparison_json, comparison_text};
use crate::source::Diagnostic;
use crate::world::World;
use std::collections::HashSet;
use std::sync::Arc;

/// Shows the cases that all runs have, with a column for each run.
pub(super) fn compare(world: &World, common: &Common, runs: &[i64], json: bool) -> Answered {
    let (_, journal) = journal(world, common)?;
    let mut ledgers = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        if runs[..index].contains(run) {
            return Err(refused(format!("run {run} is named twice")).into());
        }
        let (row, _) = meant(&journal, Some(*run), |_, _| true, "yet")?;
        let events = journal.events().of(row.id).map_err(|error| broken_journal(&error))?;
        let ledger = ledger_of(&events).ok_or_else(|| refused(format!("run {run} is not an evaluation")))?;
        ledgers.push((*run, ledger));
    }
    let mut whole = side_by_side(&ledgers);
    if whole.facts.as_ref().is_none_or(|facts| facts.cases.is_empty()) {
        return Err(refused("these runs have no case in common".into()).into());
    }
    whole.columns = compare_columns(&whole);
    Ok(answer(&if json {
        comparison_json(&whole).to_string() + "\n"
    } else {
        comparison_text(&whole, Paint::for_stdout(world), common.verbose)
    }))
}

/// The results of several evaluations as the columns of one. Of an evaluation that has improved its prompt, the prompt
/// that it has chosen is a column; of one that has columns, all of them are.
fn side_by_side(ledgers: &[(i64, EvalLedger)]) -> EvalLedger {
    let mut columns = Vec::new();
    let mut parts: Vec<(&EvalLedger, u32)> = Vec::new();
    for (run, ledger) in ledgers {
        let Some(facts) = &ledger.facts else { continue };
        let own = if facts.columns.is_empty() {
            let proposal = ledger.prompts.get(&ledger.winner());
            let (prompt, tokens) = proposal.map_or_else(Default::default, |own| (own.prompt.clone(), own.tokens));
            parts.push((ledger, ledger.winner()));
            vec![ColumnFacts { name: facts.executor.clone(), executor: facts.executor.clone(), prompt, tokens }]
        } else {
            parts.extend((0..).take(facts.columns.len()).map(|generation| (ledger, generation)));
            facts.columns.clone()
        };
        let named = |column: ColumnFacts| ColumnFacts { name: format!("{run}: {}", column.name), ..column };
        columns.extend(own.into_iter().map(named));
    }
    let has = |ledger: &EvalLedger, generation: u32| -> HashSet<Arc<str>> {
        ledger.of(generation).map(|result| result.case.clone()).collect()
    };
    let cases_of: Vec<HashSet<Arc<str>>> = parts.iter().map(|(ledger, generation)| has(ledger, *generation)).collect();
    let first = ledgers.first().and_then(|(_, ledger)| ledger.facts.clone()).unwrap_or_default();
    let shared = first.cases.iter().filter(|case| cases_of.iter().all(|cases| cases.contains(&case.id)));
    let cases = shared.map(|case| CaseFacts { held_out: false, ..case.clone() }).collect();
    let mut options = first.options.clone();
    (options.improves, options.level) = (false, USUAL_LEVEL);
    let facts = EvalFacts { columns, cases, options, ..EvalFacts::default() };
    let mut whole = EvalLedger::default();
    whole.evolve(&EventKind::Evaluation { event: EvalEvent::Started { facts: Arc::new(facts) } });
    for (column, (ledger, generation)) in (0..).zip(parts) {
        for result in ledger.of(generation) {
            let mut result = result.clone();
            (result.generation, result.held_out) = (column, false);
            whole.evolve(&EventKind::Evaluation { event: EvalEvent::CaseJudged { result } });
        }
    }
    whole
}

fn refused(why: String) -> Diagnostic {
    Diagnostic::error("eval/compare", why).help("`forkhestra runs` lists all runs")
}
