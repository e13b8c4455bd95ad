//! Short-lived programs: queries to git or for a program's version, and checks and hooks that are run by hand, under a
//! lifeline. Each one is stopped when it takes too long, or when we are asked to stop.
#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

use super::interrupts::{Interrupts, OF_THE_RUN};
use super::launch::Launch;
use super::ourselves::leave_stops_to_others;
use super::system::InputFile;
use super::tree::Tree;
use crate::engine::Exit;
use rustix::process::Signal;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much of each stream is kept, in bytes. The rest is read and discarded.
pub(super) const KEPT: usize = 4 << 20;
/// How many pieces of output may wait to be shown.
const PIECES: usize = 16;
/// How often the program itself is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How long the output of an ended program must be silent before it counts as fully read, if something that the program
/// has left behind holds it open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long the output of an ended program is read at most: what it has left behind may never be silent.
const LONGEST_DRAIN: Duration = Duration::from_secs(2);
/// How many bytes are read at once.
const PIECE: usize = 16 << 10;

/// What a program printed, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramAnswer {
    /// Its standard output as text.
    pub stdout: String,
    /// Its standard error as text.
    pub stderr: String,
    /// Its exit code; `None` if a signal ended it or it was stopped early.
    pub code: Option<i32>,
    /// Whether it was stopped early: its time had expired, or we were asked to stop.
    pub timed_out: bool,
    /// Whether it printed more than was kept.
    pub is_truncated: bool,
}

/// Runs a program and returns its output, or `None` if it cannot be started or does not answer in time.
#[must_use]
pub fn capture(program: &Path, arguments: &[String], folder: &Path) -> Option<ProgramAnswer> {
    let answer = capture_with_input(program, arguments, folder, PATIENCE, &[])?;
    (!answer.timed_out).then_some(answer)
}

/// Like [`capture`], without blocking the caller. A program dies with the thread that started it, so it gets one that
/// waits for its end.
pub async fn capture_aside(program: PathBuf, arguments: Vec<String>, folder: PathBuf) -> Option<ProgramAnswer> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let run = move || drop(tell.send(capture(&program, &arguments, &folder)));
    Builder::new().name("program".into()).spawn(run).ok()?;
    told.await.ok().flatten()
}

/// A check or a hook that is run by hand. It runs under a lifeline, so that nothing it starts outlives us.
#[derive(Debug)]
pub struct ByHand<'a> {
    /// Path of our own program, which becomes the lifeline.
    pub lifeline: &'a Path,
    /// Path of the program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Its working directory.
    pub folder: &'a Path,
    /// How long it may take.
    pub timeout: Duration,
    /// What it reads on its standard input.
    pub input: &'a [u8],
    /// The signals that stop it early.
    pub interrupts: &'a Interrupts,
    /// Variables of our environment that it does not get.
    pub without: &'a [&'a str],
}

impl ByHand<'_> {
    /// Runs it and passes each piece of its output to `show`. Returns `None` if it cannot be started.
    #[must_use]
    pub fn run(&self, show: &mut dyn FnMut(&[u8])) -> Option<ProgramAnswer> {
        // The lifeline opens it while we wait.
        let input = if self.input.is_empty() { None } else { Some(InputFile::new(self.input).ok()?) };
        let stdin = input.as_ref().map(InputFile::path);
        let launch = Launch {
            program: self.program,
            arguments: self.arguments.iter().map(Into::into).collect(),
            environment: std::env::vars_os()
                .filter(|(name, _)| self.without.iter().all(|without| name != without))
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            folder: self.folder,
            stdin: stdin.as_deref(),
        };
        let tree = Tree::under_lifeline(self.lifeline, &launch).ok()?;
        follow(tree, (self.timeout, KEPT), self.interrupts, show)
    }
}

/// Runs a program in its own process group, with `input` on its standard input. Returns `None` if it cannot be started.
#[must_use]
pub fn capture_with_input(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    patience: Duration,
    input: &[u8],
) -> Option<ProgramAnswer> {
    let mut command = Command::new(outside(program, folder));
    command.args(arguments);
    run(command, folder, (patience, KEPT), input)
}

/// Finds a program on PATH by its name, outside of the project: an agent may have written one inside.
#[must_use]
pub fn find_outside(name: &str, project: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).filter(|place| place.is_absolute() && !place.starts_with(project));
    places.find_map(|place| Some(place.join(name)).filter(|found| found.is_file()))
}

/// Resolves a plain name with [`find_outside`]. Without such a program, returns an empty path, which cannot be started.
/// A path stays as it is.
pub(super) fn outside(program: &Path, project: &Path) -> PathBuf {
    match program.to_str().filter(|name| !name.contains('/')) {
        Some(name) => find_outside(name, project).unwrap_or_default(),
        None => program.to_path_buf(),
    }
}

/// Runs a program in its own process group, for this long at most. Keeps this many bytes of each of its streams.
pub(super) fn run(
    mut command: Command,
    folder: &Path,
    bounds: (Duration, usize),
    input: &[u8],
) -> Option<ProgramAnswer> {
    command.current_dir(folder).stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut tree = Tree::group(&mut command).ok()?;
    let interrupts = OF_THE_RUN.clone();
    if let Some(mut pipe) = tree.input() {
        // In a thread, because a program that does not read its input must not block us.
        let input = input.to_vec();
        let writes = move || {
            leave_stops_to_others();
            pipe.write_all(&input)
        };
        if Builder::new().spawn(writes).is_err() {
            tree.end(Signal::TERM.as_raw());
            return None;
        }
    }
    follow(tree, bounds, &interrupts, &mut |_| {})
}

/// Reads what a program prints until it ends, its time has expired, or we are asked to stop it.
fn follow(
    mut tree: Tree,
    (timeout, kept): (Duration, usize),
    interrupts: &Interrupts,
    show: &mut dyn FnMut(&[u8]),
) -> Option<ProgramAnswer> {
    let (sender, pieces) = sync_channel(PIECES);
    // In threads, so that a daemon that holds a pipe open cannot block us: late output is not waited for.
    let (out, err) = tree.output();
    for (order, pipe) in [out, err].into_iter().enumerate() {
        let Some(mut pipe) = pipe.map(File::from) else { continue };
        let sender = sender.clone();
        let reads = move || {
            leave_stops_to_others();
            let mut bytes = vec![0; PIECE];
            while let Ok(read @ 1..) = pipe.read(&mut bytes) {
                if sender.send((order, bytes[..read].to_vec())).is_err() {
                    return;
                }
            }
        };
        if Builder::new().spawn(reads).is_err() {
            tree.end(Signal::TERM.as_raw());
            return None;
        }
    }
    drop(sender);
    let until = Instant::now() + timeout;
    let (mut streams, mut is_truncated) = ([Vec::new(), Vec::new()], false);
    let mut keep = |order: usize, piece: &[u8]| {
        show(piece);
        let room = kept.saturating_sub(streams[order].len());
        is_truncated |= piece.len() > room;
        streams[order].extend_from_slice(&piece[..piece.len().min(room)]);
    };
    let (mut open, mut heard, mut nap) = (true, Instant::now(), Duration::from_millis(1));
    let mut exited = None;
    let (code, timed_out) = loop {
        let now = Instant::now();
        if now >= until || interrupts.ended() {
            break (exited.and_then(|(exit, _)| code_of(exit)), exited.is_none());
        }
        interrupts.stand_still_with(&mut tree);
        if open {
            match pieces.recv_timeout(LOOK.min(until - now)) {
                Ok((order, piece)) => {
                    keep(order, &piece);
                    heard = Instant::now();
                }
                Err(RecvTimeoutError::Disconnected) => open = false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        } else {
            std::thread::sleep(nap.min(until - now));
            nap = LOOK.min(nap * 2);
        }
        exited = exited.or_else(|| Some((tree.exit()?, Instant::now())));
        // What the program has printed last may still be in the pipes. A daemon may hold them open.
        if let Some((exit, since)) = exited
            && (!open || heard.max(since).elapsed() >= DRAIN || since.elapsed() >= LONGEST_DRAIN)
        {
            break (code_of(exit), false);
        }
    };
    let is_started = tree.is_started();
    // Stops the program, if it still runs, and what it left behind.
    tree.end(interrupts.signal().unwrap_or(Signal::TERM.as_raw()));
    if !is_started {
        return None;
    }
    if exited.is_none() {
        // It may have printed something when it was told to end. Nothing that could print is left.
        while let Ok((order, piece)) = pieces.recv_timeout(DRAIN) {
            keep(order, &piece);
        }
    }
    let [stdout, stderr] = streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Some(ProgramAnswer { stdout, stderr, code, timed_out, is_truncated })
}

fn code_of(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_prints_just_before_it_exits_is_never_lost() {
        for _ in 0..20 {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "sleep 0.12; printf last; printf words >&2; exit 3"]);
            let answer = run(command, Path::new("/"), (PATIENCE, KEPT), &[]).unwrap();
            assert_eq!((answer.stdout.as_str(), answer.stderr.as_str(), answer.code), ("last", "words", Some(3)));
        }
    }

    #[test]
    fn a_process_left_running_that_never_stops_printing_does_not_hold_up_the_answer() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "(while :; do echo tick; sleep 0.1; done) & echo done"]);
        let answer = run(command, Path::new("/"), (PATIENCE, KEPT), &[]).unwrap();
        assert_eq!((answer.code, answer.timed_out), (Some(0), false));
        assert!(answer.stdout.contains("done\n"), "{}", answer.stdout);
    }

    #[test]
    fn output_that_is_longer_than_what_is_kept_is_said_to_be_truncated() {
        let printed = |kept| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "head -c 100000 /dev/zero"]);
            let answer = run(command, Path::new("/"), (PATIENCE, kept), &[]).unwrap();
            (answer.stdout.len(), answer.is_truncated)
        };
        assert_eq!((printed(100_000), printed(99_999)), ((100_000, false), (99_999, true)));
    }
}
