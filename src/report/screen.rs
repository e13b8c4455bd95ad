//! The one writer of standard output and standard error while a run goes on: a thread that may block, so that a stuck reader
//! never keeps a signal from being heard. Agents' output and our own lines pass through it in the order they were given.
#![expect(clippy::disallowed_methods, reason = "the owner of the terminal")]

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::stdio::{stderr, stdout};
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc;
use tokio::sync::mpsc as async_mpsc;

/// The size of one piece of agents' output, in bytes: the size of a pipe.
pub const CHUNK: usize = 64 << 10;
/// How many pieces may be on their way: one being written while the next is read.
const CHUNKS: usize = 2;

enum Job {
    Output(Vec<u8>),
    Error(Vec<u8>),
    Line(Vec<u8>),
}

/// A piece that was written, to be used again, or why standard output takes no more.
type Done = Result<Option<Vec<u8>>, io::Error>;

/// The screen, seen from the run.
#[derive(Debug)]
pub struct Screen {
    jobs: mpsc::Sender<Job>,
    done: async_mpsc::UnboundedReceiver<Done>,
    spare: Vec<Vec<u8>>,
    /// Pieces of agents' output on their way, and all jobs on their way.
    pieces: usize,
    waiting: usize,
    /// Whether the last thing on the terminal was half a line of an agent.
    half_line: bool,
    /// Whether agents' standard output and our lines meet on one terminal.
    shared: bool,
}

impl Screen {
    /// Starts the writer. `shared`: standard output and standard error are the same terminal.
    #[must_use]
    pub fn start(shared: bool) -> Self {
        let (jobs, todo) = mpsc::channel();
        let (ready, done) = async_mpsc::unbounded_channel();
        std::thread::spawn(move || write_all(&todo, &ready));
        Self { jobs, done, spare: Vec::new(), pieces: 0, waiting: 0, half_line: false, shared }
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
        if self.spare.len() < CHUNKS + 1 {
            self.spare.push(buffer);
        }
    }

    /// Agents' standard output.
    pub fn output(&mut self, piece: Vec<u8>) {
        if piece.is_empty() {
            return self.give_back(piece);
        }
        if self.shared {
            self.half_line = piece.last() != Some(&b'\n');
        }
        self.send(Job::Output(piece), true);
    }

    /// Agents' standard error.
    pub fn error(&mut self, piece: Vec<u8>) {
        if piece.is_empty() {
            return self.give_back(piece);
        }
        self.half_line = piece.last() != Some(&b'\n');
        self.send(Job::Error(piece), true);
    }

    /// Lines of our own, on standard error; half a line of an agent is ended first.
    pub fn say(&mut self, lines: &str) {
        if lines.is_empty() {
            return;
        }
        let newline = if std::mem::take(&mut self.half_line) { "\n" } else { "" };
        self.send(Job::Line(format!("{newline}{lines}").into_bytes()), false);
    }

    fn send(&mut self, job: Job, piece: bool) {
        // The writer lives as long as we do.
        if self.jobs.send(job).is_ok() {
            self.waiting += 1;
            self.pieces += usize::from(piece);
        }
    }

    /// Waits until something was written. Never returns while nothing is on its way. Cancel-safe.
    ///
    /// # Errors
    /// Why standard output takes no more; what is given after that is thrown away.
    pub async fn progress(&mut self) -> Result<(), io::Error> {
        match self.done.recv().await {
            Some(done) => {
                self.waiting -= 1;
                if let Some(buffer) = done? {
                    self.pieces -= 1;
                    self.give_back(buffer);
                }
                Ok(())
            }
            None => std::future::pending().await,
        }
    }

    /// Whether everything given was written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting == 0
    }
}

fn write_all(todo: &mpsc::Receiver<Job>, ready: &async_mpsc::UnboundedSender<Done>) {
    let mut closed = false;
    while let Ok(job) = todo.recv() {
        let done = match job {
            Job::Output(piece) if !closed => match write_whole(stdout(), &piece) {
                Ok(()) => Ok(Some(piece)),
                Err(error) => {
                    closed = true;
                    Err(error.into())
                }
            },
            Job::Output(piece) => Ok(Some(piece)),
            // Our words are a courtesy: a closed standard error stops nothing.
            Job::Error(piece) => {
                let _ = write_whole(stderr(), &piece);
                Ok(Some(piece))
            }
            Job::Line(line) => {
                let _ = write_whole(stderr(), &line);
                Ok(None)
            }
        };
        if ready.send(done).is_err() {
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

/// Prints our own words on standard error, outside a run.
pub fn print_error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
