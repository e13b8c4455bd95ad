//! `selectBest`: an agent compares the outputs of every two columns for each case, in both orders.

use super::machine::{EvalInput, OutputPair};
use super::question::{Question, Selecting};
use super::questions::{Questions, why};
use crate::engine::{AnswerAttempt, OutputComparison};
use crate::journal::AnswerPlace;
use crate::runner::{Failure, LaneAnswer};
use crate::verdict::{Preference, preference, without_quoted};

impl Questions<'_> {
    /// Returns the question about a pair; `None` if there is nothing to ask.
    pub(super) fn select(&mut self, pair: OutputPair) -> Result<Option<Question>, Failure> {
        let outputs = (self.output_of(pair, pair.first)?, self.output_of(pair, pair.second)?);
        let (Some(first), Some(second)) = outputs else {
            return self.selected(pair, Err("an output is no longer there".into())).map(|()| None);
        };
        if first == second {
            return self.selected(pair, Ok(Preference::Neither)).map(|()| None);
        }
        let case = &self.context.suite.cases[pair.case as usize];
        match self.context.compare_prompt(case, (&first, &second)) {
            Ok(prompt) => {
                let outputs = format!("{first}\n{second}");
                Ok(Some(Question::Select(Box::new(Selecting { pair, prompt, outputs }))))
            }
            Err(why) => self.selected(pair, Err(why)).map(|()| None),
        }
    }

    /// Returns the output of a column for the case of a pair.
    fn output_of(&self, pair: OutputPair, column: u32) -> Result<Option<String>, Failure> {
        let result = self.state.ledger.results.get(column, pair.case, pair.repetition);
        let Some(AnswerAttempt { run, attempt }) = result.and_then(|result| result.answer) else { return Ok(None) };
        Ok(self.journal.said(AnswerPlace { run, step: super::machine::EXECUTES, attempt })?)
    }

    /// Reads an answer. What it quotes of the outputs does not count.
    pub(super) fn read_selection(selecting: &Selecting, said: &str) -> Result<Preference, String> {
        preference(&without_quoted(said, &selecting.outputs)).map_err(|bad| bad.issue())
    }

    /// Handles the end of a question.
    pub(super) fn selection_done(&mut self, selecting: &Selecting, answer: &LaneAnswer) -> Result<(), Failure> {
        let said = answer.message.as_deref().ok_or_else(|| why(answer));
        let read = said.and_then(|said| Self::read_selection(selecting, said));
        self.selected(selecting.pair, read)
    }

    /// Records what was said about a pair.
    pub(super) fn selected(&mut self, pair: OutputPair, said: Result<Preference, String>) -> Result<(), Failure> {
        let OutputPair { case, repetition, first, second } = pair;
        let (better, error) = match said {
            Ok(Preference::First) => (Some(first), None),
            Ok(Preference::Second) => (Some(second), None),
            Ok(Preference::Neither) => (None, None),
            Err(why) => (None, Some(why)),
        };
        let case = self.context.suite.cases[case as usize].id.clone();
        self.take(EvalInput::Compared(Box::new(OutputComparison { case, repetition, first, second, better, error })))
    }
}
