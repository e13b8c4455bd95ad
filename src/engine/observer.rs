//! Who is told of a run while it is under way. The runner knows this trait alone: a terminal, a log of events, or nobody.

use super::event::{At, Event};
use crate::checks::Failure;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

/// The size of one piece of agents' output, in bytes: half of an agent's pipe, so that it writes while we do.
pub const CHUNK: usize = 256 << 10;

/// The stream that an agent prints on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out = 0,
    /// Standard error.
    Err = 1,
}

/// How an observer takes agents' output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Not at all.
    Nothing,
    /// As fast as it is read there: a slow reader slows the agent.
    InStep,
    /// A reader that stands still is caught up with from the log, the agent goes on.
    CatchUp,
}

/// Something to know that is no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice<'a> {
    /// Something lay where an attempt's folder belongs before it began; it was put aside.
    PutAside {
        /// The step's name.
        name: &'a str,
        /// Where it is now.
        aside: String,
    },
    /// The prompt holds the marker alone on so many lines, which may be echoed.
    MarkerInPrompt {
        /// The step's name.
        name: &'a str,
        /// How many lines.
        lines: usize,
    },
    /// Files were changed before the work began, and are no part of it.
    Uncommitted(&'a [String]),
    /// No better prompt was proposed, for this reason.
    NoProposal(&'a str),
}

/// What can be looked up about an event. Each costs a file or two, so that only who needs it asks.
pub trait Evidence {
    /// The errors in the output of a check.
    fn errors(&self, at: &At) -> Vec<Failure>;
    /// The end of what an attempt printed, and the name of the stream: `stderr` if there is anything on it.
    fn last_words(&self, at: &At) -> (&'static str, String);
    /// A word that nobody guesses.
    fn secret(&self) -> Option<String>;
}

/// Who is told. Every method but [`Observer::event`] has a default that shows nothing and waits for nobody.
pub trait Observer: std::fmt::Debug {
    /// An event is in the journal.
    ///
    /// # Errors
    /// When whoever listens takes no more: the run is ended in order.
    fn event(&mut self, event: &Event, evidence: &dyn Evidence) -> io::Result<()>;

    /// An event that an earlier process has told already.
    fn earlier_event(&mut self, _event: &Event) {}

    /// Something to know that is no event.
    fn notice(&mut self, _notice: &Notice<'_>) {}

    /// How agents' output is taken.
    fn pace(&self) -> Pace {
        Pace::Nothing
    }

    /// A buffer of [`CHUNK`] bytes to read the next piece of output into.
    fn buffer(&mut self) -> Vec<u8> {
        vec![0; CHUNK]
    }

    /// Gives a buffer back unused.
    fn give_back(&mut self, _buffer: Vec<u8>) {}

    /// Whether another piece of output may be given now; if not, it is the reader who is slow.
    fn is_ready(&self) -> bool {
        true
    }

    /// A piece of an agent's output, in a buffer of [`Observer::buffer`] or another one.
    fn output(&mut self, _stream: Stream, _bytes: Vec<u8>) {}

    /// The output of an attempt is over.
    fn output_over(&mut self) {}

    /// How much of a wait is left. Says after how long it is to be asked again.
    fn countdown(&mut self, _left: Duration) -> Option<Duration> {
        None
    }

    /// How often [`Observer::draw`] is called while an attempt works.
    fn frame(&self) -> Option<Duration> {
        None
    }

    /// The attempt has been at work for so long, and silent for so long.
    fn draw(&mut self, _elapsed: Duration, _silent: Duration) {}

    /// Whether everything that was given is written.
    fn is_idle(&self) -> bool {
        true
    }

    /// Is ready when something was written; never while [`Observer::is_idle`].
    ///
    /// # Errors
    /// Why standard output takes no more; what is given after that is thrown away.
    fn poll_written(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    /// The run is to end: nobody is waited for any more.
    fn hurry(&mut self) {}
}

/// Nobody.
#[derive(Debug, Default)]
pub struct Quiet {
    spare: Option<Vec<u8>>,
}

impl Observer for Quiet {
    fn event(&mut self, _event: &Event, _evidence: &dyn Evidence) -> io::Result<()> {
        Ok(())
    }

    fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.take().unwrap_or_default();
        buffer.resize(CHUNK, 0);
        buffer
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        self.spare = Some(buffer);
    }
}
