//! One attempt beside others of its run: an evaluation works on several cases at once, with one journal. Each is a small run of its own
//! for the machine, with its retries, waits and limits; what it tells becomes part of the whole.

use crate::chain::Role;
use crate::engine::{At, AttemptOutcome, EventKind, Finished};
use crate::journal::AttemptFolder;
use crate::runner::recorder::Recorder;
use crate::runner::stage::Stage;
use crate::verdict::{Said, ScoreMode, Unclear, evaluation, without_echo, without_quoted};
use std::cell::{Cell, RefCell};

/// Where an attempt stands in the whole.
#[derive(Debug)]
pub(in crate::runner) struct Lane<'a> {
    /// Its number, from 1.
    pub(in crate::runner) number: u32,
    /// Its step, round and iteration in the whole.
    pub(in crate::runner) at: At,
    pub(in crate::runner) recorder: &'a Recorder,
    /// What a score out of bounds is.
    pub(in crate::runner) mode: ScoreMode,
    /// The attempt's number in the whole.
    pub(in crate::runner) attempt: Cell<u32>,
    /// What came of it.
    pub(in crate::runner) answer: RefCell<LaneAnswer>,
}

/// What an agent answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaneAnswer {
    /// Its final message, or all that a plain program printed; none if it did not complete.
    pub message: Option<String>,
    /// How its last attempt ended.
    pub outcome: Option<AttemptOutcome>,
    /// What else is known of that.
    pub finished: Finished,
    /// The attempt's number in the whole.
    pub attempt: u32,
    /// What was wrong with its last evaluation, if it could not be read.
    pub unread: Option<String>,
    /// Whether the message is known to be its last.
    is_final: bool,
}

impl Lane<'_> {
    /// The place of an attempt in the whole.
    pub(in crate::runner) fn place(&self, at: &At) -> At {
        let At { step, round, iteration, .. } = self.at;
        At { step, name: at.name.clone(), round, iteration, attempt: self.attempt.get(), lane: self.number }
    }

    /// An event as the whole tells it; none for what concerns only the small run.
    pub(in crate::runner) fn retell(&self, kind: &EventKind) -> Option<EventKind> {
        let mut kind = kind.clone();
        if let EventKind::AttemptPlanned { .. } = kind {
            self.attempt.set(self.recorder.next_attempt(self.at.step));
        }
        let (EventKind::AttemptPlanned { at, .. }
        | EventKind::AttemptStarted { at, .. }
        | EventKind::AttemptStopped { at, .. }
        | EventKind::AttemptContinued { at }
        | EventKind::UsageReported { at, .. }
        | EventKind::WaitStarted { at, .. }
        | EventKind::AttemptTimedOut { at, .. }
        | EventKind::AttemptFinished { at, .. }
        | EventKind::VerdictUnclear { at, .. }) = &mut kind
        else {
            return None;
        };
        *at = self.place(at);
        if let EventKind::AttemptFinished { outcome, finished, .. } = &kind {
            let mut answer = self.answer.borrow_mut();
            // Who was cut off after its last word has answered all the same.
            let said_all = *outcome == AttemptOutcome::Interrupted && answer.is_final;
            if *outcome != AttemptOutcome::Completed && !said_all {
                answer.message = None;
            }
            answer.outcome = Some(outcome.clone());
            answer.finished = finished.clone();
            answer.attempt = self.attempt.get();
        }
        Some(kind)
    }
}

impl Lane<'_> {
    /// What an agent answered. A worker's words are its answer and decide nothing; a judge's are an evaluation, or unclear.
    pub(in crate::runner) fn answered(&self, stage: &Stage, role: Role, folder: &AttemptFolder) -> Option<Said> {
        let mut words = stage.answer();
        let said = (role == Role::Judge).then(|| {
            let prompt = folder.prompt();
            if stage.echoes() {
                words = without_echo(&words, &prompt);
            }
            words = without_quoted(&words, &prompt);
            match evaluation(&words, self.mode) {
                Ok(evaluation) => Said::Clear(evaluation.verdict(None)),
                Err(bad) => Said::Unclear(Unclear::BadEvaluation { why: bad.issue() }),
            }
        });
        let mut answer = self.answer.borrow_mut();
        answer.unread = match &said {
            Some(Said::Unclear(Unclear::BadEvaluation { why })) => Some(why.clone()),
            _ => None,
        };
        (answer.message, answer.is_final) = (Some(words), stage.has_final());
        said
    }
}
