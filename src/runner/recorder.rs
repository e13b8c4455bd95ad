//! The one place that numbers, timestamps and records events.

use crate::engine::{EVENT_VERSION, Event, EventKind};
use crate::journal::{Commit, Journal, JournalError, NewAnswer, token_digest};
use crate::world::World;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;

/// What is recorded in one commit.
#[derive(Debug, Default)]
pub struct Recording<'a> {
    /// What has happened, in order.
    pub kinds: Vec<EventKind>,
    /// How long the run has been running, in milliseconds, if that is known.
    pub worked_ms: Option<u64>,
    /// The secret of the attempt, if one is planned.
    pub token: &'a str,
    /// The answer of the attempt that ends, if it is stored.
    pub answer: Option<NewAnswer>,
}

impl Recording<'_> {
    /// Events alone.
    #[must_use]
    pub fn of(kinds: Vec<EventKind>) -> Self {
        Self { kinds, ..Self::default() }
    }
}

/// Records the events of a run. The lanes of an evaluation share one recorder, which then also numbers their attempts
/// and keeps their events until they are reported.
#[derive(Debug)]
pub struct Recorder {
    run: i64,
    /// The number of the last event.
    seq: Cell<u64>,
    /// The highest attempt number of each step.
    attempts: RefCell<HashMap<u32, u32>>,
    /// Events that the next commit records first.
    waiting: RefCell<Vec<EventKind>>,
    /// Events that are in the journal and have not been reported to observers yet.
    unreported: RefCell<Vec<Event>>,
}

impl Recorder {
    /// Creates a recorder for a run that continues after event `seq`, and after the highest of these attempts of each
    /// step, given as step and attempt number. A new run has 0 and no attempts.
    #[must_use]
    pub fn new(run: i64, seq: u64, attempts: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut highest = HashMap::new();
        for (step, attempt) in attempts {
            let known = highest.entry(step).or_insert(0);
            *known = attempt.max(*known);
        }
        let (attempts, waiting, unreported) = (RefCell::new(highest), RefCell::default(), RefCell::default());
        Self { run, seq: Cell::new(seq), attempts, waiting, unreported }
    }

    /// The number of the run.
    #[must_use]
    pub fn run(&self) -> i64 {
        self.run
    }

    /// Continues after the event with this number.
    pub(super) fn continue_after(&self, seq: u64) {
        self.seq.set(seq);
    }

    /// Returns the number of a step's next attempt, counted over all lanes.
    #[must_use]
    pub fn next_attempt(&self, step: u32) -> u32 {
        let mut attempts = self.attempts.borrow_mut();
        let last = attempts.entry(step).or_insert(0);
        *last = last.saturating_add(1);
        *last
    }

    /// Records events in the next commit, ahead of its own, which saves a commit. A crash before that commit loses
    /// them.
    pub fn record_with_next(&self, kinds: Vec<EventKind>) {
        self.waiting.borrow_mut().extend(kinds);
    }

    /// Records what waits for a commit in one of its own.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn record_waiting(&self, own: (&mut Journal, &World)) -> Result<(), JournalError> {
        let events = self.record(own, Recording::default())?;
        self.tell_later(events);
        Ok(())
    }

    /// Records events in one commit, after those that waited for it, and returns them all.
    ///
    /// # Errors
    /// When the journal cannot be written; then none of the events is recorded.
    pub fn record(
        &self,
        (journal, world): (&mut Journal, &World),
        recording: Recording<'_>,
    ) -> Result<Vec<Event>, JournalError> {
        let Recording { kinds, worked_ms, token, answer } = recording;
        let mut all = self.waiting.take();
        all.extend(kinds);
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let at = world.timestamp();
        let stamp = |(event, seq)| Event {
            version: EVENT_VERSION,
            run: self.run,
            seq,
            at: at.clone(),
            worked_ms,
            unit: None,
            event,
        };
        let events: Vec<Event> = all.into_iter().zip(self.seq.get() + 1..).map(stamp).collect();
        let planned = events.iter().any(|event| matches!(event.event, EventKind::AttemptPlanned { .. }));
        let token = planned.then(|| token_digest(token.as_bytes()));
        let commit = Commit { events: &events, token: token.as_deref(), answer: answer.as_ref() };
        journal.append(commit, world.now())?;
        self.seq.set(self.seq.get() + events.len() as u64);
        Ok(events)
    }

    /// Keeps events that are to be reported together with those of the other lanes.
    pub fn tell_later(&self, events: Vec<Event>) {
        self.unreported.borrow_mut().extend(events);
    }

    /// Completes when it is polled while there are events to record or to report; wakes nobody.
    pub(super) async fn has_news(&self) {
        let is_idle = || self.waiting.borrow().is_empty() && self.unreported.borrow().is_empty();
        poll_fn(|_| if is_idle() { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// Takes the events that are still to be reported.
    pub(super) fn take_unreported(&self) -> Vec<Event> {
        self.unreported.take()
    }
}
