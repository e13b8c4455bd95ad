//! One output stream of one attempt: from its pipe into its log, and to the observer, directly or from the log.

use crate::engine::{CHUNK, Observer, Pace, Stream};
use crate::journal::{JournalError, Transcript};
use crate::marker::Fences;
use memchr::memchr;
use std::io::ErrorKind;
use tokio::net::unix::pipe::Receiver;

/// How much of a line is examined for a code fence, in bytes.
const LONGEST_FENCE: usize = 4096;

/// The result of a read from a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Got {
    Bytes(usize),
    Nothing,
    End,
}

/// The log of a stream, and how much of it the screen has shown.
#[derive(Debug)]
pub(in crate::runner) struct StreamLog {
    stream: Stream,
    log: Transcript,
    /// The offset in the log up to which the screen has shown it, if it lags behind.
    behind: Option<u64>,
    pub(in crate::runner) open: bool,
}

impl StreamLog {
    pub(in crate::runner) fn new(stream: Stream, log: Transcript) -> Self {
        Self { stream, log, behind: None, open: true }
    }

    pub(in crate::runner) fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Returns the last bytes of the log, up to this many.
    pub(in crate::runner) fn tail(&self, most: u64) -> Vec<u8> {
        let from = self.bytes().saturating_sub(most);
        let mut tail = Vec::with_capacity(usize::try_from(self.bytes() - from).unwrap_or(0));
        self.log.read_back(from, &mut tail);
        tail
    }

    /// Returns the last lines of the log, up to this many bytes. The cut creates no line, and opens or closes no code
    /// fence: a fence that is open there is opened again.
    pub(in crate::runner) fn last_lines(&self, most: u64) -> Vec<u8> {
        let tail = self.tail(most);
        let from = self.bytes() - tail.len() as u64;
        if from == 0 {
            return tail;
        }
        let (mut fences, mut open) = (Fences::default(), Vec::new());
        let mut piece = Vec::with_capacity(CHUNK);
        let mut offset = 0;
        while offset < from {
            piece.clear();
            self.log.read_back(offset, &mut piece);
            let length = piece.len().min(usize::try_from(from - offset).unwrap_or(usize::MAX));
            if length == 0 {
                break;
            }
            offset += length as u64;
            let mut rest = &piece[..length];
            while let Some(newline) = memchr(b'\n', rest) {
                open.extend_from_slice(&rest[..newline.min(LONGEST_FENCE)]);
                fences.line(&open);
                open.clear();
                rest = &rest[newline + 1..];
            }
            open.extend_from_slice(&rest[..rest.len().min(LONGEST_FENCE.saturating_sub(open.len()))]);
        }
        // The line that the cut goes through is left out.
        let Some(newline) = memchr(b'\n', &tail) else { return Vec::new() };
        open.extend_from_slice(&tail[..newline.min(LONGEST_FENCE)]);
        fences.line(&open);
        let mut lines = fences.opening().map_or_else(Vec::new, |mark| (mark + "\n").into_bytes());
        lines.extend_from_slice(&tail[newline + 1..]);
        lines
    }

    /// Whether the screen has not yet shown all of the log.
    pub(in crate::runner) fn lags(&self) -> bool {
        self.behind.is_some()
    }

    /// Reads one piece, and logs it before anything else is done with it. A read error counts as the end of the stream:
    /// the other side of the pipe is gone either way.
    pub(in crate::runner) fn read(
        &mut self,
        pipe: &Receiver,
        observer: &mut dyn Observer,
    ) -> Result<(Got, Vec<u8>), JournalError> {
        let mut piece = observer.buffer();
        let got = match pipe.try_read_buf(&mut piece) {
            Ok(length @ 1..) => Got::Bytes(length),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Got::Nothing,
            _ => Got::End,
        };
        self.open &= got != Got::End;
        self.log.append(&piece)?;
        Ok((got, piece))
    }

    /// Shows a piece that was just logged, unless the screen has not yet shown the earlier ones.
    pub(in crate::runner) fn show(&mut self, piece: Vec<u8>, pace: Pace, observer: &mut dyn Observer) {
        if pace == Pace::Nothing || self.lags() {
            observer.give_back(piece);
        } else if observer.is_ready() {
            observer.output(self.stream, piece);
        } else {
            if !piece.is_empty() {
                self.behind = Some(self.log.bytes() - piece.len() as u64);
            }
            observer.give_back(piece);
        }
    }

    /// Shows the next pieces that the screen has missed, as far as it accepts them now.
    pub(in crate::runner) fn catch_up(&mut self, observer: &mut dyn Observer) {
        while let Some(offset) = self.behind.filter(|_| observer.is_ready()) {
            let mut piece = observer.buffer();
            self.log.read_back(offset, &mut piece);
            let next = offset + piece.len() as u64;
            self.behind = (!piece.is_empty() && next < self.bytes()).then_some(next);
            observer.output(self.stream, piece);
        }
    }
}
