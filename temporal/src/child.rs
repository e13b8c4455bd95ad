//! The process that works on a unit: `forkhestra work`, which stops its agents when it gets a signal, and whose agents
//! die with it.

use crate::unit::UnitTask;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

/// How many lines of standard error are kept.
const LINES: usize = 20;

/// How `forkhestra` is called on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// Its path or its name.
    pub(crate) path: PathBuf,
    /// Options of `work`: the directories of the workspaces and of ignored files.
    pub(crate) options: Vec<String>,
}

impl Program {
    /// Returns whether this machine reaches a hub, and the hub keeps its promise. What was found is in the error.
    pub(crate) async fn reaches(&self, hub: &str) -> Result<()> {
        let answer = self.ask(&["doctor", "--hub", hub], Duration::from_mins(1)).await?;
        let found = answer.lines().find(|line| line.split_whitespace().nth(1) == Some("hub")).unwrap_or_default();
        anyhow::ensure!(found.starts_with('✓'), "this machine cannot work with the hub {hub}: {}", found.trim());
        Ok(())
    }

    /// Runs it and returns what it prints.
    pub(crate) async fn ask(&self, words: &[&str], patience: Duration) -> Result<String> {
        let mut command = Command::new(&self.path);
        command.args(words).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let path = self.path.display();
        let answer = tokio::time::timeout(patience, command.output()).await;
        let output = answer.with_context(|| format!("{path} does not answer"))?;
        let output = output.with_context(|| format!("{path} cannot be started; name it with --program"))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts the work on a unit. Returns its process and its events.
    pub(crate) fn start(&self, task: &UnitTask) -> Result<(UnitProcess, Events)> {
        let mut command = Command::new(&self.path);
        command.args(["work", "--hub", &task.hub, "--unit", &task.unit]).args(&self.options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // However the work on a unit ends, nothing of it continues without its lease.
        command.kill_on_drop(true);
        dies_with_us(&mut command);
        let mut child = command.spawn().with_context(|| format!("{} cannot be started", self.path.display()))?;
        let stdout = child.stdout.take().context("its output is not a pipe")?;
        let stderr = child.stderr.take().context("its output is not a pipe")?;
        let last = tokio::spawn(async move {
            let (mut lines, mut last) = (BufReader::new(stderr).lines(), VecDeque::new());
            while let Ok(Some(line)) = lines.next_line().await {
                last.push_back(line);
                if last.len() > LINES {
                    last.pop_front();
                }
            }
            Vec::from(last).join("\n")
        });
        Ok((UnitProcess { child, last }, BufReader::new(stdout).lines()))
    }
}

/// Makes the kernel kill a program as soon as we end, however that happens (`PR_SET_PDEATHSIG`, prctl(2)). Its agents
/// die with it.
#[expect(unsafe_code, reason = "between fork and exec, only two system calls are made")]
fn dies_with_us(command: &mut Command) {
    let us = Pid::as_raw(Some(rustix::process::getpid()));
    let set = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have ended before.
        if Pid::as_raw(getppid()) == us { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: the closure makes two system calls, allocates nothing and takes no lock (signal-safety(7)).
    unsafe { command.pre_exec(set) };
}

/// The events of a unit's run, a line of JSON each.
pub(crate) type Events = Lines<BufReader<ChildStdout>>;

/// The process that works on a unit.
#[derive(Debug)]
pub(crate) struct UnitProcess {
    child: Child,
    last: JoinHandle<String>,
}

impl UnitProcess {
    /// Waits for its end. Returns its exit code; `None` if a signal has ended it.
    pub(crate) async fn wait(&mut self) -> Option<i32> {
        self.child.wait().await.ok()?.code()
    }

    /// Asks it to end gracefully: it stops its agents, and brings what they have done to the hub.
    pub(crate) fn stop(&self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Kills it. Its agents die with it.
    pub(crate) fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Holds it with all of its agents, or lets them continue.
    pub(crate) fn hold(&self, is_held: bool) {
        self.send(if is_held { Signal::TSTP } else { Signal::CONT });
    }

    /// The last lines of its standard error. Call it after its end.
    pub(crate) async fn last_words(self) -> String {
        self.last.await.unwrap_or_default()
    }

    fn send(&self, signal: Signal) {
        // Once it was waited for, its number may be that of another process.
        if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// The options of `work` for these directories.
pub(crate) fn options(workspaces: Option<&Path>, files: Option<&Path>) -> Vec<String> {
    let option = |name: &str, path: Option<&Path>| {
        path.into_iter().flat_map(|path| [name.to_string(), path.display().to_string()]).collect::<Vec<_>>()
    };
    [option("--workspaces", workspaces), option("--files", files)].concat()
}
