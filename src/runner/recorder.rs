//! The one place that numbers events, stamps them, and writes them down.

use crate::engine::{EVENT_VERSION, Event, EventKind};
use crate::journal::{Journal, JournalError, token_digest};
use crate::world::World;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Writes down what happens in a run. The lanes of an evaluation share one: then it also counts their attempts, and keeps what is to be
/// told of them.
#[derive(Debug)]
pub struct Recorder {
    run: i64,
    /// The last event's number.
    seq: Cell<u64>,
    /// The highest attempt of each step.
    attempts: RefCell<HashMap<u32, u32>>,
    /// Events that are in the journal, and were not told yet.
    untold: RefCell<Vec<Event>>,
}

impl Recorder {
    /// For a run that goes on after this event, and after the highest of these attempts of each step; 0 and none where it begins.
    #[must_use]
    pub fn new(run: i64, seq: u64, attempts: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut highest = HashMap::new();
        for (step, attempt) in attempts {
            let known = highest.entry(step).or_insert(0);
            *known = attempt.max(*known);
        }
        Self { run, seq: Cell::new(seq), attempts: RefCell::new(highest), untold: RefCell::default() }
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> i64 {
        self.run
    }

    /// Goes on after the event with this number.
    pub(super) fn go_on_after(&self, seq: u64) {
        self.seq.set(seq);
    }

    /// The number of a step's next attempt, over all lanes.
    pub(super) fn next_attempt(&self, step: u32) -> u32 {
        let mut attempts = self.attempts.borrow_mut();
        let last = attempts.entry(step).or_insert(0);
        *last = last.saturating_add(1);
        *last
    }

    /// Writes events down, in one commit. `token` is the secret of an attempt, for one that is planned; `worked_ms` is how long the run has
    /// been at work, where that is known.
    ///
    /// # Errors
    /// When the journal takes no more; then none of them happened.
    pub fn record(
        &self,
        (journal, world): (&mut Journal, &World),
        kinds: Vec<EventKind>,
        worked_ms: Option<u64>,
        token: &str,
    ) -> Result<Vec<Event>, JournalError> {
        if kinds.is_empty() {
            return Ok(Vec::new());
        }
        let at = world.timestamp();
        let stamp =
            |(event, seq)| Event { version: EVENT_VERSION, run: self.run, seq, at: at.clone(), worked_ms, event };
        let events: Vec<Event> = kinds.into_iter().zip(self.seq.get() + 1..).map(stamp).collect();
        let planned = events.iter().any(|event| matches!(event.event, EventKind::AttemptPlanned { .. }));
        let token = planned.then(|| token_digest(token.as_bytes()));
        journal.append(&events, token.as_deref(), world.now())?;
        self.seq.set(self.seq.get() + events.len() as u64);
        Ok(events)
    }

    /// Remembers events that are to be told with those of the other lanes.
    pub fn tell_later(&self, events: Vec<Event>) {
        self.untold.borrow_mut().extend(events);
    }

    /// What is to be told.
    pub(super) fn news(&self) -> Vec<Event> {
        self.untold.take()
    }
}
