//! `eval show`: the results of an evaluation again.

use super::ledger_of;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, broken_journal};
use crate::cli::runs::history::{journal, meant};
use crate::engine::{AnswerAttempt, EvalLedger, RunKind};
use crate::eval::Suite;
use crate::journal::{AnswerPlace, Journal};
use crate::report::{CaseTexts, Paint, evaluation_json, evaluation_text, prompt_diff};
use crate::source::Diagnostic;
use crate::world::World;
use std::path::Path;

/// Prints an evaluation, the last one unless `run` names another.
pub(super) fn show(world: &World, common: &Common, run: Option<i64>, prompt: bool, json: bool) -> Answered {
    Ok(answer(&shown(world, common, run, prompt, json)?))
}

fn shown(world: &World, common: &Common, run: Option<i64>, prompt: bool, json: bool) -> Result<String, Diagnostic> {
    let broken = |error| broken_journal(&error);
    let (_, journal) = journal(world, common)?;
    let of = |run: i64| journal.events().of(run).map(|events| ledger_of(&events)).map_err(broken);
    let found = if let Some(run) = run {
        let (row, _) = meant(&journal, Some(run), |_, _| true, "yet")?;
        of(row.id)?.map(|ledger| (row.id, ledger))
    } else {
        let rows = journal.runs().all().map_err(broken)?.into_iter().filter(|row| row.kind == RunKind::Evaluation);
        let mut found = None;
        for row in rows {
            found = of(row.id)?.map(|ledger| (row.id, ledger));
            if found.is_some() {
                break;
            }
        }
        found
    };
    let Some((run, ledger)) = found else { return Err(no_evaluation(run)) };
    let paint = Paint::for_stdout(world);
    if prompt {
        let generation = ledger.winner();
        return Ok(ledger.prompts.get(&generation).map_or_else(String::new, |known| known.prompt.clone() + "\n"));
    }
    if json {
        return Ok(evaluation_json(&ledger, run).to_string() + "\n");
    }
    let texts = if common.verbose { case_texts(world, &journal, &ledger)? } else { CaseTexts::default() };
    Ok(evaluation_text(&ledger, run, paint, common.verbose, &texts) + &prompt_diff(&ledger, common.verbose, paint))
}

/// The outputs of the cases that failed, and what was expected of them, if the suite still says so.
fn case_texts(world: &World, journal: &Journal, ledger: &EvalLedger) -> Result<CaseTexts, Diagnostic> {
    let mut texts = CaseTexts::default();
    for result in ledger.results.values().filter(|result| !result.pass) {
        let Some(AnswerAttempt { run, attempt }) = result.answer else { continue };
        let said =
            journal.answers().said(AnswerPlace { run, step: 1, attempt }).map_err(|error| broken_journal(&error))?;
        let key = (result.generation, result.case.clone(), result.repetition);
        texts.outputs.extend(said.map(|said| (key, said)));
    }
    let suite = ledger.facts.as_ref().map(|facts| (Path::new(&facts.options.suite), &facts.suite));
    let suite = suite.and_then(|(path, name)| Suite::read(path, name, world).ok());
    let cases = suite.into_iter().flat_map(|suite| suite.cases);
    texts.expected = cases.filter_map(|case| Some((case.id, case.expected?.into()))).collect();
    Ok(texts)
}

pub(super) fn no_evaluation(run: Option<i64>) -> Diagnostic {
    let message = run.map_or("there is no evaluation yet".into(), |run| format!("run {run} is not an evaluation"));
    Diagnostic::error("eval/none", message)
        .help("`forkhestra runs` lists all runs; `forkhestra eval run SUITE` starts an evaluation")
}
