//! One attempt on the stage: its streams, its scanner or reader, its logs, and what is shown of it.

use super::event::{Finished, Leftover, Tokens};
use crate::agent::{Format, Reader, Usage};
use crate::journal::{AttemptFolder, JournalError, Transcript};
use crate::marker::{Scanner, Sighting, is_marker_line};
use crate::report::{CHUNK, Screen};
use std::io::ErrorKind;
use tokio::net::unix::pipe::Receiver;

/// The longest near miss that is kept, in bytes.
const NEAR_MISS: usize = 400;

/// How the agents' output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// Not at all.
    Nothing,
    /// As fast as the reader reads: a slow one slows the agent.
    InStep,
    /// On a terminal: a stopped one is caught up with from the log, the agent goes on.
    CatchUp,
}

/// What reading from a pipe gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Got {
    Bytes(usize),
    Nothing,
    End,
}

/// The output side of one attempt.
pub(super) struct Stage {
    show: Show,
    scanner: Option<Scanner>,
    reader: Option<Reader>,
    marker: String,
    /// Marker lines that an echo of the prompt would show, and those seen.
    discount: usize,
    seen: usize,
    near_miss: Option<String>,
    stdout: Transcript,
    stderr: Transcript,
    /// The offset in the log up to which the terminal has seen it, when it lags behind.
    behind: Option<u64>,
    pub(super) stdout_open: bool,
    pub(super) stderr_open: bool,
    tokens: Option<Tokens>,
    session: Option<String>,
    denials: Vec<String>,
    error: Option<String>,
}

impl Stage {
    /// Opens the logs. `format` is none for a check, whose output is never scanned.
    pub(super) fn open(
        folder: &AttemptFolder,
        format: Option<Format>,
        marker: &str,
        discount: usize,
        show: Show,
    ) -> Result<Self, JournalError> {
        let reader = format.and_then(Reader::new);
        Ok(Self {
            // A terminal sees decoded text, which is not what the log holds.
            show: if reader.is_some() && show == Show::CatchUp { Show::InStep } else { show },
            scanner: (format == Some(Format::Plain)).then(|| Scanner::new(marker)),
            reader,
            marker: marker.to_string(),
            discount,
            seen: 0,
            near_miss: None,
            stdout: folder.transcript("stdout.log")?,
            stderr: folder.transcript("stderr.log")?,
            behind: None,
            stdout_open: true,
            stderr_open: true,
            tokens: None,
            session: None,
            denials: Vec::new(),
            error: None,
        })
    }

    /// Whether another piece may be read now.
    pub(super) fn may_read(&self, screen: &Screen) -> bool {
        self.show != Show::InStep || screen.is_ready()
    }

    /// Reads one piece of stdout: log first, then scanner or reader, then the screen.
    pub(super) fn read_stdout(&mut self, pipe: &Receiver, screen: &mut Screen) -> Result<Got, JournalError> {
        let mut piece = screen.buffer();
        let got = read(pipe, &mut piece);
        match got {
            Got::Nothing => screen.give_back(piece),
            Got::End => {
                self.stdout_open = false;
                screen.give_back(piece);
            }
            Got::Bytes(length) => {
                piece.truncate(length);
                let offset = self.stdout.bytes();
                self.stdout.append(&piece)?;
                if let Some(scanner) = &mut self.scanner {
                    let (seen, near) = (&mut self.seen, &mut self.near_miss);
                    scanner.feed(&piece, |sighting| note(sighting, seen, near));
                }
                if let Some(reader) = &mut self.reader {
                    let mut text = String::new();
                    reader.feed(&piece, &mut |shown| text.push_str(shown));
                    screen.give_back(piece);
                    if self.show != Show::Nothing && !text.is_empty() {
                        screen.output(text.into_bytes());
                    }
                } else if self.show == Show::Nothing || self.behind.is_some() {
                    screen.give_back(piece);
                } else if screen.is_ready() {
                    screen.output(piece);
                } else {
                    self.behind = Some(offset);
                    screen.give_back(piece);
                }
            }
        }
        Ok(got)
    }

    /// Reads one piece of stderr.
    pub(super) fn read_stderr(&mut self, pipe: &Receiver, screen: &mut Screen) -> Result<Got, JournalError> {
        let mut piece = screen.buffer();
        let got = read(pipe, &mut piece);
        match got {
            Got::Bytes(length) => {
                piece.truncate(length);
                self.stderr.append(&piece)?;
                // A stopped terminal misses lines of stderr rather than the agent its time; they are in the log.
                if self.show == Show::Nothing || !screen.is_ready() {
                    screen.give_back(piece);
                } else {
                    screen.error(piece);
                }
            }
            Got::Nothing => screen.give_back(piece),
            Got::End => {
                self.stderr_open = false;
                screen.give_back(piece);
            }
        }
        Ok(got)
    }

    /// Shows the next piece of what the terminal has missed, if it takes one now.
    pub(super) fn catch_up(&mut self, screen: &mut Screen) {
        while let Some(offset) = self.behind.filter(|_| screen.is_ready()) {
            let mut piece = screen.buffer();
            let length = self.stdout.read_back(offset, &mut piece);
            piece.truncate(length);
            screen.output(piece);
            self.behind = (length == CHUNK).then_some(offset + length as u64);
        }
    }

    /// Whether the terminal has still to see something of the log.
    pub(super) fn lags(&self) -> bool {
        self.behind.is_some()
    }

    /// Whether the marker counts by now.
    pub(super) fn marker_seen(&self) -> bool {
        self.seen > self.discount
    }

    /// The streams are over: the last line, and what a structured output said.
    pub(super) fn finish(&mut self, folder: &AttemptFolder, screen: &mut Screen) -> Result<(), JournalError> {
        if let Some(mut scanner) = self.scanner.take() {
            let (seen, near) = (&mut self.seen, &mut self.near_miss);
            scanner.finish(|sighting| note(sighting, seen, near));
        }
        let Some(reader) = self.reader.take() else { return Ok(()) };
        let mut text = String::new();
        let report = reader.finish(&mut |shown| text.push_str(shown));
        if self.show != Show::Nothing && !text.is_empty() {
            screen.output(text.into_bytes());
        }
        if let Some(message) = &report.final_message {
            folder.write_final(message)?;
            // A final message is never an echo.
            self.discount = 0;
            for line in message.lines().filter(|line| line.contains(&self.marker)) {
                if is_marker_line(line.as_bytes(), self.marker.as_bytes()) {
                    self.seen += 1;
                } else {
                    self.near_miss.get_or_insert_with(|| line.chars().take(NEAR_MISS).collect());
                }
            }
        }
        self.tokens = report.usage.map(tokens);
        (self.session, self.denials, self.error) = (report.session, report.denials, report.error);
        Ok(())
    }

    /// What is known of the attempt.
    pub(super) fn finished(self, took_ms: u64, held_open: bool, leftovers: Vec<Leftover>) -> Finished {
        Finished {
            took_ms,
            stdout_bytes: self.stdout.bytes(),
            stderr_bytes: self.stderr.bytes(),
            held_open,
            leftovers,
            near_miss: self.near_miss,
            tokens: self.tokens,
            session: self.session,
            denials: self.denials,
            error: self.error,
        }
    }
}

fn note(sighting: Sighting<'_>, seen: &mut usize, near: &mut Option<String>) {
    match sighting {
        Sighting::Marker(_) => *seen += 1,
        Sighting::NearMiss(line) => {
            near.get_or_insert_with(|| String::from_utf8_lossy(&line[..line.len().min(NEAR_MISS)]).into_owned());
        }
    }
}

fn tokens(usage: Usage) -> Tokens {
    Tokens {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cache_read: usage.cache_read_tokens,
        cache_write: usage.cache_write_tokens,
        cost_usd: usage.cost_usd,
    }
}

/// A pipe that fails is a pipe that ends: its other side is gone either way.
fn read(pipe: &Receiver, into: &mut [u8]) -> Got {
    match pipe.try_read(into) {
        Ok(0) => Got::End,
        Ok(length) => Got::Bytes(length),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Got::Nothing,
        Err(_) => Got::End,
    }
}
