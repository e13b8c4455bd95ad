//! Short runs without a lifeline: asking a program for its version, asking git, running the project's own checks by hand. Each is
//! ended with its group when it takes too long.
#![expect(clippy::disallowed_methods, reason = "the spawner")]

use super::ourselves::{StopRequests, leave_stops_to_others, spawn_stoppable};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// The longest an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most of each stream that is kept, in bytes; the rest is read, and counts for nothing.
const KEPT: usize = 4 << 20;
/// How many pieces may wait for whoever shows them.
const PIECES: usize = 16;
/// How often the program itself is looked at, and how long a silence after its end says that all was read.
const LOOK: Duration = Duration::from_millis(20);
const DRAIN: Duration = Duration::from_millis(100);
/// How much is read at once.
const PIECE: usize = 16 << 10;

/// What a program said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its standard output, as text.
    pub stdout: String,
    /// Its standard error, as text.
    pub stderr: String,
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Whether its time was over.
    pub timed_out: bool,
}

/// What a program says when it is called so; none when it cannot be started or does not answer in time.
#[must_use]
pub fn ask(program: &Path, arguments: &[String], folder: &Path) -> Option<Answer> {
    let answer = run_by_hand(program, arguments, folder, PATIENCE, &[], &Interrupts::default(), &mut |_| {})?;
    (!answer.timed_out).then_some(answer)
}

/// Asks git, free of what a person or an agent has set for it: no variables of the environment, no settings of the system or the
/// user. None when it cannot be started or does not answer in time.
#[must_use]
pub fn ask_git(arguments: &[String], folder: &Path, patience: Duration) -> Option<Answer> {
    let mut command = Command::new("git");
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_") && name != "GIT_EXEC_PATH") {
        command.env_remove(name);
    }
    let own = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("LC_ALL", "C"),
    ];
    command.args(arguments).envs(own);
    let answer = run(command, folder, patience, &[], &Interrupts::default(), &mut |_| {})?;
    (!answer.timed_out).then_some(answer)
}

/// Runs a program with this on its standard input, shows every piece of its output as it comes, and says how it ended; none when it
/// cannot be started.
#[must_use]
pub fn run_by_hand(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    timeout: Duration,
    input: &[u8],
    interrupts: &Interrupts,
    show: &mut dyn FnMut(&[u8]),
) -> Option<Answer> {
    let mut command = Command::new(program);
    command.args(arguments);
    run(command, folder, timeout, input, interrupts, show)
}

fn run(
    mut command: Command,
    folder: &Path,
    timeout: Duration,
    input: &[u8],
    interrupts: &Interrupts,
    show: &mut dyn FnMut(&[u8]),
) -> Option<Answer> {
    command.current_dir(folder).process_group(0);
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    let mut child = spawn_stoppable(command.stdout(Stdio::piped()).stderr(Stdio::piped())).ok()?;
    if let Some(mut pipe) = child.stdin.take() {
        // Beside the reading, and one that does not read keeps nobody.
        let input = input.to_vec();
        std::thread::spawn(move || {
            leave_stops_to_others();
            pipe.write_all(&input)
        });
    }
    let group = Pid::from_child(&child);
    let (sender, pieces) = sync_channel(PIECES);
    // Threads, so that a daemon that holds a pipe keeps nobody: what is read late is not waited for.
    let out = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let err = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    for (order, pipe) in [out, err].into_iter().enumerate() {
        let (sender, mut pipe) = (sender.clone(), pipe?);
        std::thread::spawn(move || {
            leave_stops_to_others();
            let mut bytes = vec![0; PIECE];
            while let Ok(read @ 1..) = pipe.read(&mut bytes) {
                if sender.send((order, bytes[..read].to_vec())).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let until = Instant::now() + timeout;
    let mut streams = [Vec::new(), Vec::new()];
    let (mut open, mut heard, mut nap) = (true, Instant::now(), Duration::from_millis(1));
    let (code, timed_out) = loop {
        let now = Instant::now();
        if now >= until || interrupts.ended() {
            break (None, true);
        }
        interrupts.stand_still_with(group);
        if open {
            match pieces.recv_timeout(LOOK.min(until - now)) {
                Ok((order, piece)) => {
                    show(&piece);
                    heard = Instant::now();
                    let room = KEPT.saturating_sub(streams[order].len());
                    streams[order].extend_from_slice(&piece[..piece.len().min(room)]);
                }
                Err(RecvTimeoutError::Disconnected) => open = false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        } else {
            std::thread::sleep(nap.min(until - now));
            nap = LOOK.min(nap * 2);
        }
        // A daemon may hold the pipes of a program that has ended: when it is silent there, nothing is left to be read.
        if (!open || heard.elapsed() >= DRAIN)
            && let Ok(Some(status)) = child.try_wait()
        {
            break (status.code(), false);
        }
    };
    // What it left behind in its group, or it itself.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    let [stdout, stderr] = streams.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Some(Answer { stdout, stderr, code, timed_out })
}

/// The signals that came meanwhile, where somebody listens to them in our place and would take no notice.
#[derive(Debug, Clone, Default)]
pub struct Interrupts {
    end: Arc<AtomicBool>,
    stop: Option<Arc<StopRequests>>,
}

impl Interrupts {
    /// Listens from now on.
    ///
    /// # Errors
    /// When the operating system does not let us.
    pub fn listen() -> io::Result<Self> {
        let heard = Self { stop: Some(Arc::new(StopRequests::listen()?)), ..Self::default() };
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&heard.end))?;
        }
        Ok(heard)
    }

    /// From now on whoever looks here is to end.
    pub fn end_all(&self) {
        self.end.store(true, Ordering::Relaxed);
    }

    /// Whether we were asked to end.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Stops a group of processes and ourselves, if we were asked to stand still; both go on together.
    fn stand_still_with(&self, group: Pid) {
        if let Some(stop) = self.stop.as_ref().filter(|stop| stop.is_pending()) {
            let _ = kill_process_group(group, Signal::STOP);
            stop.obey();
            let _ = kill_process_group(group, Signal::CONT);
        }
    }
}
