//! `selectBest`: an agent compares the outputs of every two columns for each case, in both orders.

use super::{Questions, why};
use crate::engine::{AnswerAttempt, OutputComparison};
use crate::eval::machine::{EXECUTES, EvalInput, OutputPair};
use crate::eval::question::{Question, Selecting};
use crate::journal::AnswerPlace;
use crate::runner::{Failure, LaneAnswer};
use crate::verdict::{Preference, preference, without_quoted};

/// Returns the question about a pair; `None` if there is nothing to ask.
pub(in crate::eval) fn select(questions: &mut Questions<'_>, pair: OutputPair) -> Result<Option<Question>, Failure> {
    let outputs = (output_of(questions, pair, pair.first)?, output_of(questions, pair, pair.second)?);
    let (Some(first), Some(second)) = outputs else {
        return selected(questions, pair, Err("an output is no longer there".into())).map(|()| None);
    };
    if first == second {
        return selected(questions, pair, Ok(Preference::Neither)).map(|()| None);
    }
    let case = &questions.context.suite.cases[pair.case as usize];
    match questions.context.compare_prompt(case, (&first, &second)) {
        Ok(prompt) => {
            let outputs = format!("{first}\n{second}");
            Ok(Some(Question::Select(Box::new(Selecting { pair, prompt, outputs }))))
        }
        Err(why) => selected(questions, pair, Err(why)).map(|()| None),
    }
}

/// Returns the output of a column for the case of a pair.
fn output_of(questions: &Questions<'_>, pair: OutputPair, column: u32) -> Result<Option<String>, Failure> {
    let result = questions.state.ledger.results.get(column, pair.case, pair.repetition);
    let Some(AnswerAttempt { run, attempt }) = result.and_then(|result| result.answer) else { return Ok(None) };
    Ok(questions.journal.answers().said(AnswerPlace { run, step: EXECUTES, attempt })?)
}

/// Reads an answer. What it quotes of the outputs does not count.
pub(in crate::eval) fn read_selection(selecting: &Selecting, said: &str) -> Result<Preference, String> {
    preference(&without_quoted(said, &selecting.outputs)).map_err(|bad| bad.issue())
}

/// Handles the end of a question.
pub(in crate::eval) fn selection_done(
    questions: &mut Questions<'_>,
    selecting: &Selecting,
    answer: &LaneAnswer,
) -> Result<(), Failure> {
    let said = answer.message.as_deref().ok_or_else(|| why(answer));
    let read = said.and_then(|said| read_selection(selecting, said));
    selected(questions, selecting.pair, read)
}

/// Records what was said about a pair.
pub(in crate::eval) fn selected(
    questions: &mut Questions<'_>,
    pair: OutputPair,
    said: Result<Preference, String>,
) -> Result<(), Failure> {
    let OutputPair { case, repetition, first, second } = pair;
    let (better, error) = match said {
        Ok(Preference::First) => (Some(first), None),
        Ok(Preference::Second) => (Some(second), None),
        Ok(Preference::Neither) => (None, None),
        Err(why) => (None, Some(why)),
    };
    let case = questions.context.suite.cases[case as usize].id.clone();
    questions.take(EvalInput::Compared(Box::new(OutputComparison { case, repetition, first, second, better, error })))
}
