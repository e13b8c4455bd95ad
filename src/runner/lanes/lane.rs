//! One attempt alongside others of its run: an evaluation works on several cases at once, with one journal. To the
//! engine, each is a small run of its own, with its retries, waits and limits. Its events become part of the whole run.

use crate::chain::Role;
use crate::engine::{At, AttemptOutcome, EventKind, Finished};
use crate::journal::{AnswerPlace, AttemptFolder, NewAnswer, StoredAnswer};
use crate::runner::recorder::Recorder;
use crate::verdict::{ScoreMode, Unclear, VerdictReading, evaluation, without_echo, without_quoted};
use std::cell::{Cell, RefCell};

/// The longest answer of an evaluation, in bytes.
pub(in crate::runner) const LONGEST_ANSWER: u64 = 1 << 20;

/// The lane of an attempt, with the attempt's place in the whole run.
#[derive(Debug)]
pub(in crate::runner) struct Lane<'a> {
    /// The number of the lane, from 1.
    pub(in crate::runner) number: u32,
    /// The step, round and iteration in the whole run.
    pub(in crate::runner) at: At,
    pub(in crate::runner) recorder: &'a Recorder,
    /// How a score out of bounds is treated.
    pub(in crate::runner) mode: ScoreMode,
    /// How the answer is stored, if it is.
    pub(in crate::runner) store: Option<&'a AnswerStore>,
    /// The number of the attempt in the whole run.
    pub(in crate::runner) attempt: Cell<u32>,
    /// The answer of the agent so far.
    pub(in crate::runner) answer: RefCell<LaneAnswer>,
}

/// How the answer of a job is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerStore {
    /// The key under which it is found again.
    pub key: String,
    /// The agent session in which it must not have been given; none if any will do.
    pub not_in: Option<String>,
}

/// What an agent answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaneAnswer {
    /// The final message, or the whole output of a plain program or a check; none if the attempt did not complete, or
    /// the check did not exit.
    pub message: Option<String>,
    /// How the agent's last attempt ended.
    pub outcome: Option<AttemptOutcome>,
    /// Further facts about the end of that attempt.
    pub finished: Finished,
    /// The number of the attempt in the whole run.
    pub attempt: u32,
    /// What was wrong with the last evaluation, if it could not be read.
    pub unread: Option<String>,
    /// Whether the work on the job was interrupted, also between two attempts.
    pub is_interrupted: bool,
    /// Whether the message is known to be the agent's last one.
    is_final: bool,
    /// Whether it is what a check has printed, which counts even if the check has failed.
    is_check: bool,
}

impl LaneAnswer {
    /// Whether there is more of the answer than was read.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let read = self.message.as_ref().map_or(0, |message| message.len() as u64);
        self.finished.stdout_bytes > LONGEST_ANSWER && read >= LONGEST_ANSWER
    }

    /// The answer as it is stored; `None` if there is none, or not all of it.
    #[must_use]
    pub fn stored(&self) -> Option<StoredAnswer> {
        let said = self.message.as_ref().filter(|_| !self.is_cut())?.trim_end().to_string();
        let Finished { agent, took_ms, .. } = &self.finished;
        let cost_usd = agent.tokens.and_then(|tokens| tokens.cost_usd);
        Some(StoredAnswer { said, session: agent.session.clone(), cost_usd, took_ms: Some(*took_ms) })
    }
}

/// What an agent has said in a lane.
#[derive(Debug)]
pub(in crate::runner) struct LaneWords {
    pub(in crate::runner) words: String,
    /// Whether they may hold what the agent was given.
    pub(in crate::runner) echoes: bool,
    /// Whether they are known to be its last message.
    pub(in crate::runner) is_final: bool,
}

impl Lane<'_> {
    /// Returns the place of an attempt in the whole run.
    pub(in crate::runner) fn place(&self, at: &At) -> At {
        let At { step, round, iteration, .. } = self.at;
        At { step, name: at.name.clone(), round, iteration, attempt: self.attempt.get(), lane: self.number }
    }

    /// Translates an event of the small run into one of the whole run; none for an event that concerns only the small
    /// run.
    pub(in crate::runner) fn retell(&self, kind: &EventKind) -> Option<EventKind> {
        let mut kind = kind.clone();
        if let EventKind::AttemptPlanned { .. } = kind {
            self.attempt.set(self.recorder.next_attempt(self.at.step));
        }
        let at = kind.place_in_lane()?;
        *at = self.place(at);
        if let EventKind::AttemptFinished { outcome, finished, .. } = &kind {
            let mut answer = self.answer.borrow_mut();
            // An agent that was interrupted after its last message has answered all the same.
            let said_all = *outcome == AttemptOutcome::Interrupted && answer.is_final;
            let failed_check = answer.is_check && matches!(outcome, AttemptOutcome::Failed { .. });
            if *outcome != AttemptOutcome::Completed && !said_all && !failed_check {
                answer.message = None;
            }
            answer.outcome = Some(outcome.clone());
            answer.finished = finished.clone();
            answer.attempt = self.attempt.get();
        }
        Some(kind)
    }

    /// The answer that these events of the whole run complete, if it is stored.
    pub(in crate::runner) fn answer_of(&self, kinds: &[EventKind]) -> Option<NewAnswer> {
        let has_ended = kinds.iter().any(|kind| matches!(kind, EventKind::AttemptFinished { .. }));
        let AnswerStore { key, not_in } = self.store.filter(|_| has_ended)?;
        let given = self.answer.borrow();
        // An evaluation that cannot be read, or was given in the session of what it evaluates, is of no use later.
        let answer = given.stored().filter(|answer| not_in.is_none() || *not_in != answer.session)?;
        let at = AnswerPlace { run: self.recorder.run(), step: self.at.step, attempt: given.attempt };
        given.unread.is_none().then(|| NewAnswer { key: key.clone(), at, answer })
    }

    /// Reads and keeps what an agent answered, or what a check, which has no role, has printed. A worker's message is
    /// its answer and decides nothing; a judge's message is an evaluation, or it is unclear.
    pub(in crate::runner) fn answered(
        &self,
        said: LaneWords,
        role: Option<Role>,
        folder: &AttemptFolder,
    ) -> Option<VerdictReading> {
        let LaneWords { mut words, echoes, is_final } = said;
        let said = (role == Some(Role::Judge)).then(|| {
            let prompt = folder.prompt();
            if echoes {
                words = without_echo(&words, &prompt);
            }
            words = without_quoted(&words, &prompt);
            match evaluation(&words, self.mode) {
                Ok(evaluation) => VerdictReading::Clear(evaluation.verdict(None)),
                Err(bad) => VerdictReading::Unclear(Unclear::BadEvaluation { why: bad.issue() }),
            }
        });
        let mut answer = self.answer.borrow_mut();
        answer.unread = match &said {
            Some(VerdictReading::Unclear(Unclear::BadEvaluation { why })) => Some(why.clone()),
            _ => None,
        };
        (answer.message, answer.is_final, answer.is_check) = (Some(words), is_final, role.is_none());
        said
    }
}
