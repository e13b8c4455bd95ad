//! Asking a program for its version or its options: a short run without a lifeline, ended with its group when it takes too long.
#![expect(clippy::disallowed_methods, reason = "the spawner")]

use rustix::process::{Pid, Signal, kill_process_group};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The longest an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest answer that is read, in bytes.
const ANSWER: u64 = 1 << 20;

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its standard output, as text.
    pub stdout: String,
    /// Its standard error, as text.
    pub stderr: String,
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
}

/// What a program says when it is called so; none when it cannot be started or does not answer in time.
#[must_use]
pub fn ask(program: &Path, arguments: &[String], folder: &Path) -> Option<Answer> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).process_group(0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let group = Pid::from_child(&child);
    let (sender, answers) = channel();
    // Threads, so that a daemon that holds a pipe keeps nobody: what is read late is not waited for.
    let out = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let err = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    for (order, pipe) in [out, err].into_iter().enumerate() {
        let (sender, pipe) = (sender.clone(), pipe?);
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.take(ANSWER).read_to_end(&mut bytes);
            let _ = sender.send((order, bytes));
        });
    }
    let until = Instant::now() + PATIENCE;
    let mut answer = [Vec::new(), Vec::new()];
    let mut answered = 0;
    while answered < 2 {
        let Ok((order, bytes)) = answers.recv_timeout(until.saturating_duration_since(Instant::now())) else { break };
        answer[order] = bytes;
        answered += 1;
    }
    let over = |child: &mut std::process::Child| {
        // Its streams are over, so it is all but gone.
        for _ in 0..200 {
            if let Ok(Some(status)) = child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    };
    let code = if answered == 2 { over(&mut child) } else { None };
    // What it left behind in its group, or it itself.
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
    let [stdout, stderr] = answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (answered == 2).then_some(Answer { stdout, stderr, code })
}
