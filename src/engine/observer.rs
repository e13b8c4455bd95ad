//! The observer of a run. The runner knows only this trait. Behind it is a terminal, a log of events, or nothing.

use super::event::{At, Event};
use crate::checks::Failure;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

/// The size of one piece of agent output, in bytes: half of an agent's pipe, so that the agent can write meanwhile.
pub const CHUNK: usize = 256 << 10;

/// The stream that an agent prints on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out = 0,
    /// Standard error.
    Err = 1,
}

/// How an observer accepts agent output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It does not accept any.
    Nothing,
    /// It accepts output as fast as its reader does: a slow reader slows down the agent.
    InStep,
    /// The agent continues while the reader is stuck. The reader gets what it missed from the log.
    CatchUp,
}

/// Something to report that is not an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The directory of an attempt already existed before the attempt started. It was moved aside.
    PutAside {
        /// The step's name.
        name: &'a str,
        /// The new path of that directory.
        aside: String,
    },
    /// The prompt contains the marker alone on a line. The agent may echo these lines.
    MarkerInPrompt {
        /// The step's name.
        name: &'a str,
        /// The number of these lines.
        lines: usize,
    },
    /// The whole prompt of the attempt that is about to start.
    Prompt(&'a str),
    /// These files had uncommitted changes before the work began. The changes are not part of the work.
    Uncommitted(&'a [String]),
    /// A worker on another machine has begun a part of the work.
    Claimed {
        /// The name of the unit of work.
        unit: &'a str,
        /// The name of the machine.
        machine: &'a str,
    },
    /// No new prompt was proposed, for this reason.
    NoProposal(&'a str),
}

/// Details about an event that can be looked up. Each lookup reads a file or two, so observers request only what they
/// need.
pub trait Evidence {
    /// Returns the errors in the output of a check.
    fn errors(&self, at: &At) -> Vec<Failure>;
    /// Returns the name of a stream and the end of its output: `stderr` if anything was printed there, else `stdout`.
    fn last_words(&self, at: &At) -> (&'static str, String);
    /// Returns a random token that cannot be guessed.
    fn secret(&self) -> Option<String>;
}

/// Receives what happens in a run. Every method except [`Observer::event`] has a default that shows nothing and never
/// waits.
pub trait Observer: std::fmt::Debug {
    /// Receives an event that has just been written to the journal.
    ///
    /// # Errors
    /// If the observer accepts no more events. The run is then stopped gracefully.
    fn event(&mut self, event: &Event, evidence: &dyn Evidence) -> io::Result<()>;

    /// Receives an event that an earlier process has already reported.
    fn earlier_event(&mut self, _event: &Event) {}

    /// Receives a notice.
    fn notice(&mut self, _notice: &Notice<'_>) {}

    /// Returns how agent output is accepted.
    fn pace(&self) -> Pace {
        Pace::Nothing
    }

    /// Returns an empty buffer with room for [`CHUNK`] bytes, for the next piece of output.
    fn buffer(&mut self) -> Vec<u8> {
        Vec::with_capacity(CHUNK)
    }

    /// Takes back an unused buffer.
    fn give_back(&mut self, _buffer: Vec<u8>) {}

    /// Returns whether another piece of output is accepted now. If not, the reader is slow.
    fn is_ready(&self) -> bool {
        true
    }

    /// Receives a piece of an agent's output, in a buffer from [`Observer::buffer`] or in another one.
    fn output(&mut self, _stream: Stream, _bytes: Vec<u8>) {}

    /// Receives the end of an attempt's output.
    fn output_over(&mut self) {}

    /// Receives how much of a wait is left. Returns the time until it should be called again.
    fn countdown(&mut self, _left: Duration) -> Option<Duration> {
        None
    }

    /// Returns how often [`Observer::draw`] is called during an attempt.
    fn frame(&self) -> Option<Duration> {
        None
    }

    /// Receives for how long the attempt has been running and for how long it has been silent.
    fn draw(&mut self, _elapsed: Duration, _silent: Duration) {}

    /// Returns whether everything that was received has been written.
    fn is_idle(&self) -> bool {
        true
    }

    /// Is ready when something has been written. It is never ready while [`Observer::is_idle`].
    ///
    /// # Errors
    /// If standard output accepts no more. Everything received after that is discarded.
    fn poll_written(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    /// Tells the observer that the run is stopping and that it must no longer wait for readers.
    fn stop_pacing(&mut self) {}
}

/// An observer that ignores everything.
#[derive(Debug, Default)]
pub struct NullObserver {
    spare: Option<Vec<u8>>,
}

impl Observer for NullObserver {
    fn event(&mut self, _event: &Event, _evidence: &dyn Evidence) -> io::Result<()> {
        Ok(())
    }

    fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.take().unwrap_or_default();
        buffer.clear();
        buffer.reserve(CHUNK);
        buffer
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare = Some(buffer);
    }
}
