//! One attempt beside others of its run: an evaluation works on several cases at once, with one journal. Each is a small run of its own
//! for the machine, with its retries, waits and limits; what it tells becomes part of the whole.

use super::driver::Driver;
use super::stage::Stage;
use crate::chain::Role;
use crate::engine::{At, AttemptOutcome, EVENT_VERSION, Event, EventKind, Finished};
use crate::journal::{AttemptFolder, JournalError, token_digest};
use crate::verdict::{Said, ScoreMode, Unclear, evaluation, without_echo, without_quoted};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// What all lanes of a run count together.
#[derive(Debug, Default)]
pub struct Numbers {
    /// The last event's number.
    seq: Cell<u64>,
    /// The highest attempt of each step.
    attempts: RefCell<HashMap<u32, u32>>,
    /// Events that are in the journal, and were not told yet.
    untold: RefCell<Vec<Event>>,
}

impl Numbers {
    /// Goes on after this event, and after the highest of these attempts of each step.
    #[must_use]
    pub fn after(seq: u64, attempts: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut highest = HashMap::new();
        for (step, attempt) in attempts {
            let known = highest.entry(step).or_insert(0);
            *known = attempt.max(*known);
        }
        Self { seq: Cell::new(seq), attempts: RefCell::new(highest), untold: RefCell::default() }
    }

    /// The number of the next event.
    pub fn next_seq(&self) -> u64 {
        self.seq.set(self.seq.get() + 1);
        self.seq.get()
    }

    fn next_attempt(&self, step: u32) -> u32 {
        let mut attempts = self.attempts.borrow_mut();
        let last = attempts.entry(step).or_insert(0);
        *last = last.saturating_add(1);
        *last
    }

    /// Remembers events that were written otherwise, to be told with the others.
    pub fn tell(&self, events: Vec<Event>) {
        self.untold.borrow_mut().extend(events);
    }

    /// What happened since this was asked last.
    pub fn news(&self) -> Vec<Event> {
        self.untold.take()
    }
}

/// Where an attempt stands in the whole.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    /// Its number, from 1.
    pub(super) number: u32,
    /// Its step, round and iteration in the whole.
    pub(super) at: At,
    pub(super) numbers: &'a Numbers,
    /// What a score out of bounds is.
    pub(super) mode: ScoreMode,
    /// The attempt's number in the whole.
    pub(super) attempt: Cell<u32>,
    /// What came of it.
    pub(super) answer: RefCell<Answer>,
}

/// What an agent answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
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
    pub(super) fn place(&self, at: &At) -> At {
        let At { step, round, iteration, .. } = self.at;
        At { step, name: at.name.clone(), round, iteration, attempt: self.attempt.get(), lane: self.number }
    }

    /// An event as the whole tells it; none for what concerns only the small run.
    fn retell(&self, kind: &EventKind) -> Option<EventKind> {
        let mut kind = kind.clone();
        if let EventKind::AttemptPlanned { .. } = kind {
            self.attempt.set(self.numbers.next_attempt(self.at.step));
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
    pub(super) fn answered(&self, stage: &Stage, role: Role, folder: &AttemptFolder) -> Option<Said> {
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

impl Driver<'_> {
    /// Writes down what a lane has to tell.
    pub(super) fn record_in_lane(&mut self, lane: &Lane<'_>, kinds: &[EventKind]) -> Result<(), JournalError> {
        let at = self.cast.world.timestamp();
        let told: Vec<EventKind> = kinds.iter().filter_map(|kind| lane.retell(kind)).collect();
        let stamp = |event: EventKind| {
            let seq = lane.numbers.next_seq();
            Event { version: EVENT_VERSION, run: self.cast.run, seq, at: at.clone(), worked_ms: None, event }
        };
        let events: Vec<Event> = told.into_iter().map(stamp).collect();
        if !events.is_empty() {
            let planned = events.iter().any(|event| matches!(event.event, EventKind::AttemptPlanned { .. }));
            let token = planned.then(|| token_digest(self.next_token().as_bytes()));
            self.cast.journal.append(&events, token.as_deref(), self.cast.world.now())?;
        }
        lane.numbers.untold.borrow_mut().extend(events);
        Ok(())
    }
}
