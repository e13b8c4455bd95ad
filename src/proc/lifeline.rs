//! The lifeline: a hidden subcommand of our own binary, one for a run, or for each lane of an evaluation. It leads a session of its own, starts the agents
//! one after another, is subreaper of their trees, watches the agent and a socket that only its host holds, and alone sweeps. When the host
//! dies, however it dies, the socket closes and the tree is ended.

use super::launch::Launch;
use super::line::MOST_FILES;
use super::table::{Process, children, descendants, kill, pid, process};
use super::wire::{LifelineReport, Order};
use crate::engine::{Exit, Leftover};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpgid, getpid, getppid, kill_process,
    kill_process_group, set_child_subreaper, set_parent_process_death_signal, setsid, wait, waitid, waitpid,
};
use std::collections::VecDeque;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// How often the tree is looked at again before it is given up, and how long each look waits: ten seconds in all.
const SWEEPS: usize = 2_000;
const SWEEP_PAUSE_NS: i64 = 5_000_000;
/// After so many failures in a row nothing is waited for any more.
const MOST_FAILURES: u32 = 100;
/// After how long the agent is looked at again where a look failed.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The name that /proc shows of the sandbox's program.
const BUBBLEWRAP: &str = "bwrap";

/// The name that /proc shows of a lifeline.
pub(super) const LIFELINE: &str = "fk-lifeline";

/// Runs agents, one after another, as its host orders it. Our standard input is the socket to the host; once that is closed we end what
/// runs, and go. Our standard output is a file that is held as long as we live, and that nothing is written to.
///
/// # Errors
/// What the operating system says when not even the first steps succeed; the host sees the socket close.
pub fn lifeline() -> io::Result<()> {
    let host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Whoever types this verb has no host.
    if host.peer_addr().is_err() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "this command is forkhestra's own"));
    }
    // What our host wants held came as our standard output, where nothing is ever to be written.
    let held = rustix::stdio::stdout().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    // Best effort: we are shown as what we are, not as the number of a file descriptor.
    let _ = rustix::thread::set_name(&CString::new(LIFELINE)?);
    super::ourselves::be_stoppable()?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let (signalled, wake) = UnixStream::pair()?;
    signalled.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, wake)?;
    let lifeline = Lifeline {
        host,
        signalled,
        agent: None,
        exited: false,
        held: false,
        told_stop: false,
        unsure: false,
        files: VecDeque::new(),
        _held: held,
    };
    lifeline.watch()
}

/// Starts a program with these two as its output. It leads a group of its own in our session, which has no terminal.
#[expect(clippy::disallowed_methods, reason = "the spawner")]
fn start(launch: &Launch<'_>, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Pid> {
    let is_sandbox = |word: &OsStr| Path::new(word).file_name().is_some_and(|name| name == BUBBLEWRAP);
    if is_sandbox(launch.program.as_os_str()) || launch.arguments.iter().any(|word| is_sandbox(word)) {
        super::ourselves::keep_open_files_to_ourselves();
    }
    let stdin = File::open(launch.stdin.unwrap_or(Path::new("/dev/null")))?;
    let mut command = Command::new(launch.program);
    command.args(&launch.arguments).current_dir(launch.folder).process_group(0);
    command.env_clear().envs(launch.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let lifeline = getpid();
    // Should we be killed together with our host, the agent is, too (PR_SET_PDEATHSIG(2const)).
    let die_with_us = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() == Some(lifeline) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: between fork and exec it makes two system calls, and touches no memory of others.
    #[expect(unsafe_code, reason = "the signal is set in the child")]
    let command = unsafe { command.pre_exec(die_with_us) };
    let agent = command.spawn()?;
    i32::try_from(agent.id()).ok().and_then(pid).ok_or_else(|| Errno::SRCH.into())
}

#[expect(clippy::struct_excessive_bools, reason = "facts that change each for itself")]
struct Lifeline {
    host: UnixStream,
    signalled: UnixStream,
    agent: Option<Pid>,
    exited: bool,
    /// Whether the tree is stopped by our host's wish, of which nothing is to be said.
    held: bool,
    /// Whether the host knows of a stop that was nobody's wish.
    told_stop: bool,
    /// Whether the last look at the agent failed.
    unsure: bool,
    /// What has come with orders that were not read yet.
    files: VecDeque<OwnedFd>,
    /// What the host wants held while we live.
    _held: OwnedFd,
}

impl Lifeline {
    /// A host that is gone is noticed by the next read.
    fn tell(&mut self, report: &LifelineReport) {
        let _ = self.host.write_all(report.line().as_bytes());
    }

    fn watch(mut self) -> io::Result<()> {
        let (mut pending, mut failures) = (String::new(), 0);
        loop {
            let mut sources = [PollFd::new(&self.host, PollFlags::IN), PollFd::new(&self.signalled, PollFlags::IN)];
            match poll(&mut sources, self.unsure.then_some(&LOOK_AGAIN)) {
                Ok(_) => failures = 0,
                Err(Errno::INTR) => {}
                // It may be better in a moment; we are the only one who ends what runs.
                Err(_) if failures < MOST_FAILURES => {
                    failures += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let [host, signalled] = sources.map(|source| !source.revents().is_empty());
            if signalled || self.unsure {
                let mut bytes = [0; 64];
                while matches!((&self.signalled).read(&mut bytes), Ok(1..)) {}
                self.look_at_agent();
                // After its exit the sweep does that.
                if !self.exited {
                    self.reap_adopted();
                }
            }
            if host {
                match self.receive() {
                    Ok(text) if !text.is_empty() => pending.push_str(&text),
                    Err(Errno::INTR) => continue,
                    // The host is gone.
                    _ => {
                        self.sweep();
                        return Ok(());
                    }
                }
                while let Some(end) = pending.find('\n') {
                    let order = Order::parse(&pending[..end]);
                    pending.drain(..=end);
                    // First of all: what is asked for may take its time. A launch is answered by what became of it.
                    if order.is_some_and(|order| order != Order::Launch) {
                        self.tell(&LifelineReport::Answered);
                    }
                    match order {
                        Some(Order::Launch) => self.launch(),
                        Some(Order::Signal(number)) => self.signal(number),
                        Some(Order::Stop) => self.stop(),
                        Some(Order::Continue) => self.go_on(),
                        // Else there was nothing to sweep, and that is told already.
                        Some(Order::Sweep) if self.agent.is_some() => {
                            let leftovers = self.sweep();
                            let is_clean = leftovers.iter().all(|left| !left.running);
                            self.forget_agent();
                            self.tell(&LifelineReport::Swept(leftovers));
                            // What not even SIGKILL has ended is none of the next program's tree.
                            if !is_clean {
                                return Ok(());
                            }
                        }
                        Some(Order::Answer | Order::Sweep) | None => {}
                    }
                }
            }
        }
    }

    /// Starts what the host wants started, and reports what became of it.
    fn launch(&mut self) {
        let mut file = || self.files.pop_front().ok_or(Errno::BADMSG);
        let started = (|| {
            let (what, stdout, stderr) = (file()?, file()?, file()?);
            let bytes = Launch::read(File::from(what))?;
            start(&Launch::parse(&bytes).ok_or(Errno::INVAL)?, stdout, stderr)
        })();
        match started {
            Ok(agent) => {
                let start_time = process(agent.as_raw_nonzero().get()).map_or(0, |process| process.start_time);
                self.agent = Some(agent);
                self.tell(&LifelineReport::Spawned { pid: agent.as_raw_nonzero().get(), start_time });
                self.look_at_agent();
            }
            Err(error) => {
                self.tell(&LifelineReport::Failed(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())));
            }
        }
    }

    /// What the host has said, empty when it is gone.
    fn receive(&mut self) -> Result<String, Errno> {
        let mut bytes = [0; 256];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.host, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        Ok(String::from_utf8_lossy(&bytes[..received.bytes]).into_owned())
    }

    /// Observes exit, stop and continuation. The agent stays a zombie until the sweep, so that its group's number stays ours.
    fn look_at_agent(&mut self) {
        let Some(agent) = self.agent.filter(|_| !self.exited) else { return };
        self.unsure = false;
        while let Some(status) = self.observe(agent, WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED) {
            match status.stopping_signal() {
                _ if self.held => {}
                Some(signal) => {
                    self.told_stop = true;
                    self.tell(&LifelineReport::Stopped(signal));
                }
                None if self.told_stop => {
                    self.told_stop = false;
                    self.tell(&LifelineReport::Continued);
                }
                None => {}
            }
        }
        if let Some(status) = self.observe(agent, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            self.exited = true;
            let exit = status.terminating_signal().map_or(Exit::Code(status.exit_status().unwrap_or(-1)), Exit::Signal);
            let mut said = LifelineReport::Exited(exit).line();
            // Nearly always there is nothing left but the agent's own zombie, which has no children.
            if children(me()) == [agent.as_raw_nonzero().get()] {
                let _ = waitpid(Some(agent), WaitOptions::NOHANG);
                self.forget_agent();
                said += &LifelineReport::Swept(Vec::new()).line();
            }
            // As in `tell`.
            let _ = self.host.write_all(said.as_bytes());
        }
    }

    /// What the kernel says of the agent. Where it says an error there will be no other signal: it is asked again in a moment.
    fn observe(&mut self, agent: Pid, options: WaitIdOptions) -> Option<WaitIdStatus> {
        let observed = waitid(WaitId::Pid(agent), options | WaitIdOptions::NOHANG);
        self.unsure |= observed.is_err();
        observed.ok().flatten()
    }

    /// It is reaped: its number may become another's.
    fn forget_agent(&mut self) {
        (self.agent, self.exited, self.held, self.told_stop, self.unsure) = (None, false, false, false, false);
    }

    /// Orphans of the tree that came to us and are dead: nobody else can reap them.
    fn reap_adopted(&self) {
        let agent = self.agent.map(|agent| agent.as_raw_nonzero().get());
        for child in children(me()).into_iter().filter(|child| Some(*child) != agent).filter_map(pid) {
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
    }

    /// Stops the tree, again and again until a look finds nobody who was forked meanwhile.
    fn stop(&mut self) {
        self.held = true;
        let mut stopped = Vec::new();
        loop {
            let tree = descendants(me());
            let mut new = tree.iter().filter(|process| !stopped.contains(&process.pid)).peekable();
            if new.peek().is_none() {
                return;
            }
            signal_all(new, Signal::STOP);
            stopped = tree.iter().map(|process| process.pid).collect();
        }
    }

    fn go_on(&mut self) {
        // What the stop made the kernel tell us is not news.
        self.look_at_agent();
        self.held = false;
        signal_all(&descendants(me()), Signal::CONT);
    }

    fn signal(&self, number: i32) {
        let (Some(agent), Some(signal)) = (self.agent, Signal::from_named_raw(number)) else { return };
        if signal == Signal::KILL {
            signal_all(&descendants(me()), Signal::KILL);
            return;
        }
        let sandboxed = sandboxed(agent.as_raw_nonzero().get());
        if !sandboxed.is_empty() {
            signal_all(&sandboxed, signal);
            signal_all(&sandboxed, Signal::CONT);
            return;
        }
        let _ = kill_process_group(agent, signal);
        // An agent that left its own group is still the one that is meant.
        if getpgid(Some(agent)).is_ok_and(|group| group != agent) {
            let _ = kill_process(agent, signal);
        }
        // A stopped process takes no signal until it goes on.
        let _ = kill_process_group(agent, Signal::CONT);
        if self.held {
            signal_all(&descendants(me()), Signal::CONT);
        }
    }

    /// Ends what is left of the tree, reaps it, and says what had to be ended.
    fn sweep(&mut self) -> Vec<Leftover> {
        let agent = self.agent.map_or(0, |agent| agent.as_raw_nonzero().get());
        let mut leftovers: Vec<Leftover> = Vec::new();
        if let Some(agent) = self.agent {
            // What is left of bubblewrap itself is on its way out.
            let of_the_sandbox =
                |left: &Process| left.name == BUBBLEWRAP && is_bubblewrap(agent.as_raw_nonzero().get());
            let alive = descendants(me()).into_iter().filter(|left| !left.zombie && !of_the_sandbox(left));
            leftovers.extend(alive.map(|left| Leftover { pid: left.pid, name: left.name, running: false }));
            let _ = kill_process_group(agent, Signal::KILL);
        }
        // A process may fork while we list, and one in the kernel's hands may take its time: look again, but not for ever.
        for look in 0..SWEEPS {
            signal_all(&descendants(me()), Signal::KILL);
            let gone = loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) | Err(Errno::INTR) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            if gone {
                break;
            }
            if look + 1 == SWEEPS {
                name_the_living(&mut leftovers);
            }
            let pause = Timespec { tv_sec: 0, tv_nsec: SWEEP_PAUSE_NS };
            let _ = poll(&mut [PollFd::new(&self.signalled, PollFlags::IN)], Some(&pause));
            let mut bytes = [0; 64];
            while matches!((&self.signalled).read(&mut bytes), Ok(1..)) {}
        }
        leftovers.retain(|left| left.pid != agent || !self.exited);
        leftovers
    }
}

/// What not even SIGKILL has ended: a process of another user, or one in the kernel's hands.
fn name_the_living(leftovers: &mut Vec<Leftover>) {
    for living in descendants(me()).into_iter().filter(|left| !left.zombie) {
        match leftovers.iter_mut().find(|left| left.pid == living.pid) {
            Some(known) => known.running = true,
            None => leftovers.push(Leftover { pid: living.pid, name: living.name, running: true }),
        }
    }
}

/// The processes that a signal for the agent is meant for, where the agent is bubblewrap: it passes none on, and takes its
/// program along when it dies of one. They are its program and that program's group.
fn sandboxed(agent: i32) -> Vec<Process> {
    if !is_bubblewrap(agent) {
        return Vec::new();
    }
    let mut tree = descendants(agent);
    tree.retain(|process| process.name != BUBBLEWRAP);
    let group = |process: &Process| getpgid(pid(process.pid)).ok();
    let meant: Vec<_> = tree.iter().filter(|process| is_bubblewrap(process.parent)).filter_map(group).collect();
    tree.retain(|process| group(process).is_some_and(|group| meant.contains(&group)));
    tree
}

fn is_bubblewrap(pid: i32) -> bool {
    process(pid).is_some_and(|process| process.name == BUBBLEWRAP)
}

fn me() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn signal_all<'a>(processes: impl IntoIterator<Item = &'a Process>, signal: Signal) {
    for process in processes {
        kill(process, signal);
    }
}
