//! The only writer of standard output and standard error during a run. Each stream has its own thread, which may block,
//! so that a stuck reader never delays the reaction to a signal. Everything is written in the order in which it was
//! given. After [`Screen::stop_pacing`], one stream no longer waits for the other.
#![expect(clippy::disallowed_methods, reason = "the owner of the terminal")]

use crate::agent::ForeignOutput;
use crate::engine::{CHUNK, Stream};
use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::stdio::{stderr, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc;
use std::task::{Context, Poll};
use tokio::sync::mpsc as async_mpsc;

/// The maximum number of pieces in progress: one is written while the next is read.
const CHUNKS: usize = 2;

#[derive(Debug)]
struct WriteJob {
    stream: Stream,
    bytes: Vec<u8>,
    /// Whether it is output of an agent, whose amount is bounded, and not a line of our own.
    piece: bool,
}

/// A job that was processed, whose buffer can be used again, and the error if its stream could not be written.
type Written = (WriteJob, Result<(), Errno>);

/// The screen, as the run uses it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of the terminal, in any combination")]
pub struct Screen {
    writers: [mpsc::Sender<WriteJob>; 2],
    done: async_mpsc::UnboundedReceiver<Written>,
    /// Jobs that wait for the other stream.
    queue: VecDeque<WriteJob>,
    /// The number of jobs that the writers have, by stream.
    writing: [usize; 2],
    spare: Vec<Vec<u8>>,
    pieces: usize,
    hurried: bool,
    /// Whether the shared terminal ends with an incomplete line of an agent.
    half_line: bool,
    /// Whether both streams are the same file.
    shared: bool,
    /// Whether the output of agents goes to the same stream as our lines.
    one_stream: bool,
    /// The prefix of each line of agents' output.
    prefix: String,
    /// How many live lines are shown.
    live: usize,
    /// Whether the next byte begins a line, by stream.
    line_begins: [bool; 2],
    /// Whether it is a terminal, by stream.
    terminals: [bool; 2],
    /// The filter of agents' output on a terminal, by stream.
    foreign: [ForeignOutput; 2],
    /// Whether an agent has used escape sequences such as colors, by stream.
    colored: [bool; 2],
    /// The modes of the terminal when we began; `None` without a terminal.
    modes: Option<Termios>,
}

/// Shows the cursor, turns off mouse reports and bracketed paste, returns to the main screen, and ends colors.
const MODES: &[u8] = b"\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1047l\x1b[0m";

/// Restores the modes of the terminal. Returns false if they were not changed, or if we are in the background.
fn restore(before: &Termios) -> bool {
    let Ok(now) = tcgetattr(stderr()) else { return false };
    let is_same = now.input_modes == before.input_modes
        && now.output_modes == before.output_modes
        && now.local_modes == before.local_modes
        && now.control_modes == before.control_modes;
    // In the background, the call would stop us (tcsetattr(3), `SIGTTOU`).
    let is_ours = tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp());
    !is_same && is_ours && tcsetattr(stderr(), OptionalActions::Now, before).is_ok()
}

/// Moves the cursor from the last of some live lines to the first.
fn upwards(lines: usize) -> String {
    if lines > 1 { format!("\x1b[{}A", lines - 1) } else { String::new() }
}

impl Screen {
    /// Starts the writers.
    ///
    /// # Errors
    /// If the machine lacks the resources for a thread.
    pub fn start() -> io::Result<Self> {
        let (ready, done) = async_mpsc::unbounded_channel();
        let writer = |stream| {
            let (jobs, todo) = mpsc::channel();
            let ready = ready.clone();
            let writes = move || {
                // Another thread handles Ctrl-Z. A valid mask does not fail.
                let _ = SigSet::from(Signal::SIGTSTP).thread_block();
                write_all(stream, &todo, &ready);
            };
            std::thread::Builder::new().spawn(writes).map(|_| jobs)
        };
        let writers = [writer(Stream::Out)?, writer(Stream::Err)?];
        let same =
            |one: rustix::fs::Stat, other: rustix::fs::Stat| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
        let shared = rustix::fs::fstat(stdout()).and_then(|one| Ok(same(one, rustix::fs::fstat(stderr())?)));
        Ok(Self {
            writers,
            done,
            queue: VecDeque::new(),
            writing: [0; 2],
            spare: Vec::new(),
            pieces: 0,
            hurried: false,
            half_line: false,
            shared: shared.unwrap_or(false),
            one_stream: false,
            prefix: String::new(),
            live: 0,
            line_begins: [true; 2],
            terminals: [rustix::termios::isatty(stdout()), rustix::termios::isatty(stderr())],
            foreign: [ForeignOutput::marking(), ForeignOutput::marking()],
            colored: [false; 2],
            modes: tcgetattr(stderr()).ok(),
        })
    }

    /// Returns whether another piece of agents' output can be taken now. If not, the reader is slow.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.pieces < CHUNKS
    }

    /// Returns an empty buffer with room for [`CHUNK`] bytes, for the next piece.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.reserve(CHUNK);
        buffer
    }

    /// Takes a buffer back.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() <= CHUNKS {
            self.spare.push(buffer);
        }
    }

    /// Sends the output of agents to standard error from now on, with our lines. A log that reads two pipes would not
    /// keep their order.
    pub fn use_one_stream(&mut self) {
        self.one_stream = true;
    }

    /// Begins each line of agents' output with this prefix from now on. An incomplete line of another agent is ended
    /// first.
    pub fn set_prefix(&mut self, prefix: String) {
        for stream in [Stream::Out, Stream::Err] {
            if !std::mem::replace(&mut self.line_begins[stream as usize], true) && !self.prefix.is_empty() {
                self.queue.push_back(WriteJob { stream, bytes: b"\n".to_vec(), piece: false });
                self.half_line = false;
            }
        }
        self.prefix = prefix;
    }

    fn prefixed(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        let mut prefixed = Vec::with_capacity(bytes.len() * 2);
        // On a shared terminal, the other stream may have left an incomplete line.
        if self.half_line && self.line_begins[stream as usize] && (self.shared || stream == Stream::Err) {
            prefixed.push(b'\n');
            self.line_begins = [true; 2];
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if std::mem::replace(&mut self.line_begins[stream as usize], line.ends_with(b"\n")) {
                prefixed.extend_from_slice(self.prefix.as_bytes());
            }
            prefixed.extend_from_slice(line);
        }
        prefixed
    }

    /// Takes a piece of agents' output. On a terminal, only text passes.
    pub fn piece(&mut self, stream: Stream, mut bytes: Vec<u8>) {
        let from = stream as usize;
        let stream = if self.one_stream { Stream::Err } else { stream };
        if self.terminals[stream as usize] {
            let shown = self.foreign[from].pass(&bytes);
            self.colored[from] |= memchr::memchr(0x1b, &shown).is_some();
            self.give_back(std::mem::replace(&mut bytes, shown));
        }
        if bytes.is_empty() {
            return self.give_back(bytes);
        }
        if self.shared || stream == Stream::Err {
            self.clear_live();
        }
        if !self.prefix.is_empty() {
            bytes = self.prefixed(stream, &bytes);
        }
        if self.shared || stream == Stream::Err {
            self.half_line = bytes.last() != Some(&b'\n');
        }
        self.pieces += 1;
        self.queue.push_back(WriteJob { stream, bytes, piece: true });
        self.dispatch();
    }

    /// Ends an agent's output: what was held back is shown, and the terminal is restored.
    pub fn end_pieces(&mut self) {
        for stream in [Stream::Out, Stream::Err] {
            let to = if self.one_stream { Stream::Err } else { stream };
            let rest = self.foreign[stream as usize].finish();
            self.half_line |= !rest.is_empty() && (self.shared || to == Stream::Err);
            let colored = std::mem::take(&mut self.colored[stream as usize]);
            let end: &[u8] = if colored { b"\x1b[0m" } else { b"" };
            if !rest.is_empty() || colored {
                self.queue.push_back(WriteJob { stream: to, bytes: [&rest, end].concat(), piece: false });
            }
        }
        // An agent has no terminal of its own, but can open ours by its path.
        if let Some(before) = &self.modes
            && restore(before)
        {
            self.queue.push_back(WriteJob { stream: Stream::Err, bytes: MODES.to_vec(), piece: false });
        }
        self.dispatch();
    }

    /// Prints our own lines on standard error. An incomplete line of an agent is ended first.
    pub fn say(&mut self, lines: &str) {
        if lines.is_empty() {
            return;
        }
        self.clear_live();
        let newline = if std::mem::take(&mut self.half_line) { "\n" } else { "" };
        let bytes = format!("{newline}{lines}").into_bytes();
        self.queue.push_back(WriteJob { stream: Stream::Err, bytes, piece: false });
        self.dispatch();
    }

    /// Draws the live line, if the last line is complete and everything else was written. It can be several lines.
    pub fn live(&mut self, lines: &str) {
        if !self.half_line && self.is_idle() {
            // From the left margin of the first line; what is left of earlier ones is erased.
            let (up, below) = (upwards(self.live), if self.live > 1 { "\x1b[J" } else { "" });
            self.live = lines.lines().count().max(1);
            let bytes = format!("{up}\r{}\x1b[K{below}", lines.replace('\n', "\x1b[K\n")).into_bytes();
            self.queue.push_back(WriteJob { stream: Stream::Err, bytes, piece: false });
            self.dispatch();
        }
    }

    /// Erases the live line.
    pub fn clear_live(&mut self) {
        let lines = std::mem::take(&mut self.live);
        if lines > 0 {
            let below = if lines > 1 { "\x1b[J" } else { "" };
            let bytes = format!("{}\r\x1b[K{below}", upwards(lines)).into_bytes();
            self.queue.push_back(WriteJob { stream: Stream::Err, bytes, piece: false });
        }
    }

    /// Returns whether a live line can be drawn: both streams are one terminal, or agents' output goes elsewhere.
    #[must_use]
    pub fn has_room_for_live(&self, stdout_is_terminal: bool) -> bool {
        self.shared || !stdout_is_terminal
    }

    /// Prints lines for programs on standard output.
    pub fn out(&mut self, lines: String) {
        if !lines.is_empty() {
            if self.shared {
                self.clear_live();
            }
            self.queue.push_back(WriteJob { stream: Stream::Out, bytes: lines.into_bytes(), piece: false });
            self.dispatch();
        }
    }

    /// Lets no stream wait for the other from now on: one of them may be stuck, and the run has to end.
    pub fn stop_pacing(&mut self) {
        self.hurried = true;
        self.dispatch();
    }

    fn dispatch(&mut self) {
        while let Some(job) = self.queue.front() {
            let (own, other) = (job.stream as usize, 1 - job.stream as usize);
            if self.writing[other] > 0 && !self.hurried {
                return;
            }
            if let Some(job) = self.queue.pop_front() {
                self.writing[own] += 1;
                // The writer lives as long as the screen.
                let _ = self.writers[own].send(job);
            }
        }
    }

    /// Ready when something has been written; never ready while nothing is in progress.
    ///
    /// # Errors
    /// If standard output cannot be written. What is given after that is discarded. A closed standard error is not an
    /// error: our own lines are optional.
    pub fn poll_written(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Poll::Ready(Some((job, result))) = self.done.poll_recv(context) else { return Poll::Pending };
        self.writing[job.stream as usize] -= 1;
        let stream = job.stream;
        if job.piece {
            self.pieces -= 1;
            self.give_back(job.bytes);
        }
        self.dispatch();
        Poll::Ready(match result {
            Err(error) if stream == Stream::Out => Err(error.into()),
            _ => Ok(()),
        })
    }

    /// Returns whether everything that was given has been written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.writing == [0; 2]
    }
}

fn write_all(stream: Stream, todo: &mpsc::Receiver<WriteJob>, ready: &async_mpsc::UnboundedSender<Written>) {
    let to = if stream == Stream::Out { stdout() } else { stderr() };
    let mut closed = false;
    while let Ok(job) = todo.recv() {
        let result = if closed { Ok(()) } else { write_whole(to, &job.bytes) };
        closed |= result.is_err();
        if ready.send((job, result)).is_err() {
            return;
        }
    }
}

/// Writes all bytes, without std's line buffer. The descriptor may be non-blocking.
fn write_whole(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&to, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Prints an answer on standard output. A reader that has gone away is not an error.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints bytes unchanged on standard output.
///
/// # Errors
/// If they cannot be written.
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Prints our own messages on standard error, outside of a run.
pub fn print_error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
