//! The one writer of standard output and standard error while a run goes on: a thread for each, which may block, so that a
//! stuck reader never keeps a signal from being heard. Everything is written in the order in which it was given, unless it
//! is hurried: then one stream no longer waits for the other.
#![expect(clippy::disallowed_methods, reason = "the owner of the terminal")]

use crate::agent::ForeignWords;
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

/// How many pieces may be on their way: one being written while the next is read.
const CHUNKS: usize = 2;

#[derive(Debug)]
struct WriteJob {
    stream: Stream,
    bytes: Vec<u8>,
    /// Whether it is agents' output, whose amount is bounded, and not a line of ours.
    piece: bool,
}

/// A job that was written, to be used again, or why its stream takes no more.
type Written = (WriteJob, Result<(), Errno>);

/// The screen, seen from the run.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing of the terminal, in any combination")]
pub struct Screen {
    writers: [mpsc::Sender<WriteJob>; 2],
    done: async_mpsc::UnboundedReceiver<Written>,
    /// Given, and waiting for the other stream.
    queue: VecDeque<WriteJob>,
    /// With the writers, by stream.
    writing: [usize; 2],
    spare: Vec<Vec<u8>>,
    pieces: usize,
    hurried: bool,
    /// Whether the last thing on the common terminal was half a line of an agent.
    half_line: bool,
    /// Whether both streams are one file.
    shared: bool,
    /// Whether agents' output goes where our lines go.
    one_stream: bool,
    /// What each line of agents' output begins with.
    prefix: String,
    /// Whether a line that moves stands below everything.
    live: bool,
    /// By stream: whether its next byte begins a line.
    line_begins: [bool; 2],
    /// By stream: whether it is a terminal.
    terminals: [bool; 2],
    /// By the stream of agents: what passes of it on a terminal, and whether it has used a colour.
    foreign: [ForeignWords; 2],
    colored: [bool; 2],
    /// How the terminal was when we began; none without one.
    modes: Option<Termios>,
}

/// The cursor is seen, the mouse is silent, what is pasted is plain, the screen is the first one, and colours end.
const MODES: &[u8] = b"\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1047l\x1b[0m";

/// Gives the terminal its modes back; false when nobody has changed them, or when it is not ours to change just now.
fn restore(before: &Termios) -> bool {
    let Ok(now) = tcgetattr(stderr()) else { return false };
    let is_same = now.input_modes == before.input_modes
        && now.output_modes == before.output_modes
        && now.local_modes == before.local_modes
        && now.control_modes == before.control_modes;
    // In the background it would stop us (tcsetattr(3), `SIGTTOU`).
    let is_ours = tcgetpgrp(stderr()).is_ok_and(|group| group == getpgrp());
    !is_same && is_ours && tcsetattr(stderr(), OptionalActions::Now, before).is_ok()
}

impl Screen {
    /// Starts the writers.
    ///
    /// # Errors
    /// When the machine has no room for a thread.
    pub fn start() -> io::Result<Self> {
        let (ready, done) = async_mpsc::unbounded_channel();
        let writer = |stream| {
            let (jobs, todo) = mpsc::channel();
            let ready = ready.clone();
            let writes = move || {
                // Ctrl-Z is for the thread that listens to it. A mask that is valid does not fail.
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
            live: false,
            line_begins: [true; 2],
            terminals: [rustix::termios::isatty(stdout()), rustix::termios::isatty(stderr())],
            foreign: [ForeignWords::marking(), ForeignWords::marking()],
            colored: [false; 2],
            modes: tcgetattr(stderr()).ok(),
        })
    }

    /// Whether another piece of agents' output may be given now; if not, it is the reader who is slow.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.pieces < CHUNKS
    }

    /// A buffer of [`CHUNK`] bytes to read the next piece into.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(CHUNK, 0);
        buffer
    }

    /// Gives a buffer back unused.
    pub fn give_back(&mut self, buffer: Vec<u8>) {
        if self.spare.len() <= CHUNKS {
            self.spare.push(buffer);
        }
    }

    /// From now on agents' output goes to standard error, with our lines: a log that reads two pipes keeps no order between them.
    pub fn use_one_stream(&mut self) {
        self.one_stream = true;
    }

    /// From now on each line of agents' output begins with this; half a line of another agent is ended first.
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
        // On a common terminal the other stream may have left half a line.
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

    /// Agents' output. On a terminal only what is text passes.
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

    /// An agent's output is over: what was held back of it is shown, and a terminal is as it was before.
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
        // An agent has no terminal, but may open ours by its path.
        if let Some(before) = &self.modes
            && restore(before)
        {
            self.queue.push_back(WriteJob { stream: Stream::Err, bytes: MODES.to_vec(), piece: false });
        }
        self.dispatch();
    }

    /// Lines of our own, on standard error; half a line of an agent is ended first.
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

    /// Draws the line that moves, where nothing stands in its way and everything else was written.
    pub fn live(&mut self, line: &str) {
        if !self.half_line && self.is_idle() {
            self.live = true;
            // From the left, and nothing of an earlier one stays.
            let bytes = format!("\r{line}\x1b[K").into_bytes();
            self.queue.push_back(WriteJob { stream: Stream::Err, bytes, piece: false });
            self.dispatch();
        }
    }

    /// Takes the line that moves away.
    pub fn clear_live(&mut self) {
        if std::mem::take(&mut self.live) {
            self.queue.push_back(WriteJob { stream: Stream::Err, bytes: b"\r\x1b[K".to_vec(), piece: false });
        }
    }

    /// Whether a line that moves disturbs nothing: both streams are one terminal, or agents' output goes elsewhere.
    #[must_use]
    pub fn has_room_for_live(&self, stdout_is_terminal: bool) -> bool {
        self.shared || !stdout_is_terminal
    }

    /// Lines for machines, on standard output.
    pub fn out(&mut self, lines: String) {
        if !lines.is_empty() {
            if self.shared {
                self.clear_live();
            }
            self.queue.push_back(WriteJob { stream: Stream::Out, bytes: lines.into_bytes(), piece: false });
            self.dispatch();
        }
    }

    /// From now on no stream waits for the other: one of them may be stuck, and the run is to end.
    pub fn hurry(&mut self) {
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
                // The writer lives as long as we do.
                let _ = self.writers[own].send(job);
            }
        }
    }

    /// Is ready when something was written. Never while nothing is on its way.
    ///
    /// # Errors
    /// Why standard output takes no more; what is given after that is thrown away. Our own words are a courtesy: a closed
    /// standard error stops nothing.
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

    /// Whether everything given was written.
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

/// Writes all bytes, past std's line buffer, and also to a descriptor that somebody made non-blocking.
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

/// Prints an answer on standard output. A reader that went away is no fault of ours.
///
/// # Errors
/// Whatever else keeps it from being written.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints bytes as they are on standard output.
///
/// # Errors
/// When it takes no more.
pub fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Prints our own words on standard error, outside a run.
pub fn print_error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
