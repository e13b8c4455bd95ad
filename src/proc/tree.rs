//! A program that is run by hand, with all its descendants. A check or a hook runs under a lifeline. A program that
//! only answers a query (git, a version) runs in its own process group.
#![expect(clippy::disallowed_methods, reason = "this module starts processes")]

use super::host::{launch_files, spawn_lifeline};
use super::launch::Launch;
use super::line::send;
use super::ourselves::spawn_stoppable;
use super::system::{descendants, in_memory, kill, process};
use super::wire::{LifelineReport, Order};
use crate::engine::Exit;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to end after a signal, before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long a lifeline may take to kill what is left. It gives up by itself after ten seconds.
const SWEEP: Duration = Duration::from_secs(15);
/// How long to wait for a lifeline that is stopped.
const SILENCE: Duration = Duration::from_secs(1);
/// How often to check what the lifeline has reported.
const LOOK: Duration = Duration::from_millis(5);

/// A running program with its descendants.
pub(super) struct Tree {
    child: Child,
    kind: TreeKind,
    exit: Option<Exit>,
    /// Whether the program itself could be started.
    started: bool,
    output: (Option<OwnedFd>, Option<OwnedFd>),
}

enum TreeKind {
    Group(Pid),
    Lifeline { control: UnixStream, pending: String, swept: bool },
}

impl Tree {
    /// Starts a program in its own process group.
    pub(super) fn group(command: &mut Command) -> io::Result<Self> {
        let mut child = spawn_stoppable(command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let group = Pid::from_child(&child);
        let output = (child.stdout.take().map(Into::into), child.stderr.take().map(Into::into));
        Ok(Self { child, kind: TreeKind::Group(group), exit: None, started: true, output })
    }

    /// Starts a program under a lifeline.
    pub(super) fn under_lifeline(lifeline: &Path, launch: &Launch<'_>) -> io::Result<Self> {
        let (stdout, their_stdout) = io::pipe()?;
        let (stderr, their_stderr) = io::pipe()?;
        let file = launch.bytes().and_then(|bytes| in_memory(&bytes))?;
        let (child, control) = spawn_lifeline(lifeline, None).map_err(io::Error::other)?;
        // A lifeline that is gone is noticed by the next read.
        let files = [file.as_fd(), their_stdout.as_fd(), their_stderr.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let _ = send(&control, Order::Launch, &files[..launch_files()]);
        Ok(Self {
            child,
            kind: TreeKind::Lifeline { control, pending: String::new(), swept: false },
            exit: None,
            started: true,
            output: (Some(stdout.into()), Some(stderr.into())),
        })
    }

    /// Takes its standard output and standard error; `None` the second time.
    pub(super) fn output(&mut self) -> (Option<OwnedFd>, Option<OwnedFd>) {
        (self.output.0.take(), self.output.1.take())
    }

    /// Takes its standard input; `None` under a lifeline, and the second time.
    pub(super) fn input(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// Returns how the program ended, if it has.
    pub(super) fn exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            match self.kind {
                TreeKind::Group(_) => self.exit = self.child.try_wait().ok().flatten().map(exit_of),
                TreeKind::Lifeline { .. } => self.hear(),
            }
        }
        self.exit
    }

    /// Returns whether the program could be started, as far as we know by now.
    pub(super) fn is_started(&self) -> bool {
        self.started
    }

    /// Reads what the lifeline has reported by now. If it is gone, there are no more reports.
    fn hear(&mut self) {
        let TreeKind::Lifeline { control, pending, swept } = &mut self.kind else { return };
        let mut bytes = [0; 1024];
        loop {
            match control.read(&mut bytes) {
                Ok(read @ 1..) => pending.push_str(&String::from_utf8_lossy(&bytes[..read])),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                _ => {
                    *swept = true;
                    self.exit.get_or_insert(Exit::Signal(Signal::KILL.as_raw()));
                    break;
                }
            }
        }
        while let Some(end) = pending.find('\n') {
            match LifelineReport::parse(pending[..end].trim_end()) {
                Some(LifelineReport::Exited(exit)) => self.exit = Some(exit),
                Some(LifelineReport::Failed(_)) => (self.exit, self.started) = (Some(Exit::Code(127)), false),
                Some(LifelineReport::Swept(_)) => *swept = true,
                _ => {}
            }
            pending.drain(..=end);
        }
    }

    fn order(&mut self, order: Order) {
        if let TreeKind::Lifeline { control, .. } = &mut self.kind {
            // A lifeline that is gone carries out no orders.
            let _ = control.write_all(order.line().as_bytes());
        }
    }

    /// Stops the whole tree, until [`Self::go_on`].
    pub(super) fn stop(&mut self) {
        match self.kind {
            TreeKind::Group(group) => drop(kill_process_group(group, Signal::STOP)),
            TreeKind::Lifeline { .. } => self.order(Order::Stop),
        }
    }

    /// Continues the whole tree.
    pub(super) fn go_on(&mut self) {
        match self.kind {
            TreeKind::Group(group) => drop(kill_process_group(group, Signal::CONT)),
            TreeKind::Lifeline { .. } => self.order(Order::Continue),
        }
    }

    /// Kills the program, if it still runs, and what it left behind. Under a lifeline, it gets the signal `by` first.
    pub(super) fn end(mut self, by: i32) {
        if let TreeKind::Group(group) = self.kind {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
            return;
        }
        if self.exit().is_none() {
            self.order(Order::Signal(by));
            self.wait(GRACE, |tree| tree.exit.is_some());
        }
        if self.exit.is_none() {
            self.order(Order::Signal(Signal::KILL.as_raw()));
        }
        self.order(Order::Sweep);
        self.wait(SWEEP, |tree| matches!(tree.kind, TreeKind::Lifeline { swept: true, .. }));
        if !matches!(self.kind, TreeKind::Lifeline { swept: true, .. }) {
            // The lifeline is stopped, or stuck in a system call: what it holds is killed without it.
            let left = descendants(self.pid());
            let _ = self.child.kill();
            for left in &left {
                kill(left, Signal::KILL);
            }
        }
        // The lifeline exits once its socket is closed.
        drop(self.kind);
        let _ = self.child.wait();
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap_or(0)
    }

    /// Returns whether the lifeline is stopped or traced.
    fn is_stopped(&self) -> bool {
        process(self.pid()).is_some_and(|lifeline| lifeline.stopped)
    }

    fn wait(&mut self, most: Duration, is_over: impl Fn(&Self) -> bool) {
        let until = Instant::now() + most;
        let patience = Instant::now() + SILENCE;
        while Instant::now() < until {
            self.hear();
            if is_over(self) || Instant::now() > patience && self.is_stopped() {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code)
}
