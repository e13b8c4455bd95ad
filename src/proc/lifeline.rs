//! The lifeline: a hidden subcommand of our own binary. A run has one, and an evaluation has one for each lane. Its
//! host is the forkhestra process that started it. The lifeline leads its own session, starts the agents one after
//! another, and is the subreaper of their trees. It watches the agent and a socket that only its host holds, and it
//! kills what an agent leaves behind. When the host dies, however it dies, the socket closes and the tree is killed.

use super::launch::{ReceivedLaunch, read_launch};
use super::lineage::{Lineage, Output};
use super::system::{
    LISTEN_CLOEXEC, OwnChildren, Process, adopt_orphans, containment, descendants, name_ourselves, pid, pipe_end,
    process, signal_all, spawn,
};
use super::wire::{LifelineReport, MOST_FILES, Order};
use crate::engine::{Containment, Exit, Leftover};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, recvmsg};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, getpgid, getpid, getppid, kill_process,
    kill_process_group, setsid, wait, waitid, waitpid,
};
use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the lifeline tries to end the tree before it gives up.
const SWEEP: Duration = Duration::from_secs(10);
/// The most that one check counts: while we are stopped, nothing can end.
const LONGEST_LOOK: Duration = Duration::from_millis(100);
/// How long to wait between two checks of the tree, in nanoseconds.
const SWEEP_PAUSE_NS: i64 = 5_000_000;
/// After this many failed waits in a row, the lifeline gives up.
const MOST_FAILURES: u32 = 100;
/// How long to wait before the agent is checked again after a failed check.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// How often to look for new processes where orphans do not come to us.
const FOLLOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The variable that marks the processes of an attempt.
const TOKEN: &str = "FORKHESTRA_TOKEN";

/// The name of the sandbox's program in /proc.
const BUBBLEWRAP: &str = "bwrap";

/// The name of a lifeline in /proc.
pub(super) const LIFELINE: &str = "fk-lifeline";

/// Runs agents, one after another, as the host orders. Standard input is the socket to the host: once it is closed, we
/// kill what runs, and exit. Standard output is a file that is held open as long as we live, and never written to.
/// The last argument is the process id of the host, in decimal digits.
///
/// # Errors
/// When one of the first steps fails. The host sees the socket close.
pub fn lifeline() -> io::Result<()> {
    let host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // A person who types this command has no host.
    if host.peer_addr().is_err() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "this command is internal to forkhestra"));
    }
    // The file to hold is our standard output. Nothing may ever be written to it.
    let held = rustix::stdio::stdout().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    // Best effort: /proc shows a name instead of the number of a file descriptor.
    name_ourselves(LIFELINE);
    super::ourselves::be_stoppable()?;
    setsid()?;
    let lineage = match containment() {
        Containment::Whole => {
            adopt_orphans()?;
            None
        }
        Containment::Lineage => Some(Lineage::new(me(), living_host())),
    };
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
        children: OwnChildren::new(),
        lineage,
        _held: held,
    };
    lifeline.watch()
}

fn path(word: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(word.to_bytes()))
}

/// Starts a program with the given output files. It leads its own group in our session, which has no terminal.
fn start(launch: &ReceivedLaunch<'_>, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Pid> {
    let is_sandbox = |word: &&CStr| path(word).file_name().is_some_and(|name| name == BUBBLEWRAP);
    if is_sandbox(&launch.program) || launch.arguments.iter().any(is_sandbox) {
        super::ourselves::keep_open_files_to_ourselves();
    }
    let stdin = File::open(path(launch.stdin.unwrap_or(c"/dev/null")))?;
    spawn(launch, [stdin.into(), stdout, stderr])
}

#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Lifeline {
    host: UnixStream,
    signalled: UnixStream,
    agent: Option<Pid>,
    exited: bool,
    /// Whether the tree is stopped at the host's request, which is not reported.
    held: bool,
    /// Whether a stop that the host had not requested was reported to it.
    told_stop: bool,
    /// Whether the last check of the agent failed.
    unsure: bool,
    /// The files that were received with orders that have not been handled yet.
    files: VecDeque<OwnedFd>,
    children: OwnChildren,
    /// How the tree is found where orphans do not come to us.
    lineage: Option<Lineage>,
    /// The file that the host wants held while we live.
    _held: OwnedFd,
}

impl Lifeline {
    /// Sends a report. A host that is gone is noticed by the next read.
    fn send_report(&mut self, report: &LifelineReport) {
        let _ = self.host.write_all(report.line().as_bytes());
    }

    fn watch(mut self) -> io::Result<()> {
        let (mut pending, mut failures) = (String::new(), 0);
        loop {
            let mut sources = [PollFd::new(&self.host, PollFlags::IN), PollFd::new(&self.signalled, PollFlags::IN)];
            let follows = self.agent.is_some() && self.lineage.is_some();
            let pause = if follows { Some(&FOLLOW) } else { self.unsure.then_some(&LOOK_AGAIN) };
            match poll(&mut sources, pause) {
                Ok(_) => failures = 0,
                Err(Errno::INTR) => {}
                // The failure may be temporary, and only we can stop what runs.
                Err(_) if failures < MOST_FAILURES => {
                    failures += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let [host, signalled] = sources.map(|source| source.revents());
            if let Some(lineage) = self.lineage.as_mut().filter(|_| follows) {
                lineage.look();
            }
            // Not every system sends SIGCHLD for a process that continues.
            if !signalled.is_empty() || self.unsure || follows {
                // A short read has emptied it. If not, the next poll returns at once.
                let mut bytes = [0; 64];
                while matches!((&self.signalled).read(&mut bytes), Ok(read) if read == bytes.len()) {}
                self.look_at_agent();
                // Once the agent has exited, the sweep reaps them.
                if self.agent.is_some() && !self.exited {
                    self.reap_adopted();
                }
            }
            if !host.is_empty() {
                match self.receive() {
                    // What a host that is gone has ordered would have nobody to report to.
                    Ok(text) if !text.is_empty() && !host.contains(PollFlags::HUP) => pending.push_str(&text),
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
                    // Answered first, because the order may take time. A launch is answered by its result.
                    if order.is_some_and(|order| order != Order::Launch) {
                        self.send_report(&LifelineReport::Answered);
                    }
                    match order {
                        Some(Order::Launch) => self.launch(),
                        Some(Order::Signal(number)) => self.signal(number),
                        Some(Order::Stop) => self.stop(),
                        Some(Order::Continue) => self.go_on(),
                        // Without an agent, everything was swept when it exited, and that was reported.
                        Some(Order::Sweep) if self.agent.is_some() => {
                            let leftovers = self.sweep();
                            let is_clean = leftovers.iter().all(|left| !left.running);
                            self.forget_agent();
                            self.send_report(&LifelineReport::Swept(leftovers));
                            // A process that survives SIGKILL must not become part of the next program's tree.
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

    /// Starts the program that the host ordered, and reports the result.
    fn launch(&mut self) {
        let mut file = || self.files.pop_front().ok_or(Errno::BADMSG);
        let started = (|| {
            let (what, stdout, stderr) = (file()?, file()?, file()?);
            if let Some(lineage) = &mut self.lineage {
                let readers = [file()?, file()?];
                let output = [&stdout, &stderr].into_iter().filter_map(pipe_end).collect();
                lineage.expect(Output { ends: output, readers });
            }
            let bytes = read_launch(&File::from(what))?;
            let launch = ReceivedLaunch::parse(&bytes).ok_or(Errno::INVAL)?;
            if let Some(lineage) = &mut self.lineage {
                // A program that we start with our own environment is no attempt of its own.
                lineage.mark(launch.variable(TOKEN).filter(|token| own_token().as_ref() != Some(token)));
            }
            start(&launch, stdout, stderr)
        })();
        match started {
            Ok(agent) => {
                let start_time = process(agent.as_raw_nonzero().get()).map_or(0, |process| process.start_time);
                self.agent = Some(agent);
                self.send_report(&LifelineReport::Spawned { pid: agent.as_raw_nonzero().get(), start_time });
                self.look_at_agent();
            }
            Err(error) => {
                self.forget_agent();
                self.send_report(&LifelineReport::Failed(error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error())));
            }
        }
    }

    /// Returns what the host has sent; empty if the host is gone.
    fn receive(&mut self) -> Result<String, Errno> {
        let mut bytes = [0; 256];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.host, &mut into, &mut ancillary, LISTEN_CLOEXEC)?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        // Where the call cannot do that by itself.
        if LISTEN_CLOEXEC.is_empty() {
            for file in &self.files {
                fcntl_setfd(file, FdFlags::CLOEXEC)?;
            }
        }
        Ok(String::from_utf8_lossy(&bytes[..received.bytes]).into_owned())
    }

    /// Observes exit, stop and continuation. An agent that leaves processes behind stays a zombie until the sweep, so
    /// that its process group ID is not reused.
    fn look_at_agent(&mut self) {
        let Some(agent) = self.agent.filter(|_| !self.exited) else { return };
        self.unsure = false;
        // The exit first: a zombie has no stop to report.
        if let Some(status) = self.observe(agent, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            self.exited = true;
            let exit = status.terminating_signal().map_or(Exit::Code(status.exit_status().unwrap_or(-1)), Exit::Signal);
            let mut said = LifelineReport::Exited(exit).line();
            // Nearly always, only the agent's own zombie is left, which has no children.
            if self.is_alone(agent.as_raw_nonzero().get()) {
                let _ = waitpid(Some(agent), WaitOptions::NOHANG);
                self.forget_agent();
                said += &LifelineReport::Swept(Vec::new()).line();
            }
            // As in `send_report`.
            let _ = self.host.write_all(said.as_bytes());
            return;
        }
        while let Some(status) = self.observe(agent, WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED) {
            match status.stopping_signal() {
                _ if self.held => {}
                Some(signal) => {
                    self.told_stop = true;
                    self.send_report(&LifelineReport::Stopped(signal));
                }
                None if self.told_stop => {
                    self.told_stop = false;
                    self.send_report(&LifelineReport::Continued);
                }
                None => {}
            }
        }
    }

    /// Returns whether nothing is left of the tree but the agent's own zombie.
    fn is_alone(&mut self, agent: i32) -> bool {
        // A process may fork and exit while the table is read: a single quiet look is not conclusive.
        let are_quiet = |known: &mut Lineage| (0..2).all(|_| is_only(&known.find(), agent));
        self.children.list() == [agent] && self.lineage.as_mut().is_none_or(are_quiet)
    }

    /// Returns every process of the tree.
    fn tree(&mut self) -> Vec<Process> {
        match &mut self.lineage {
            None => descendants(me()),
            Some(lineage) => lineage.find(),
        }
    }

    /// Returns the status of the agent. After an error, the kernel may send no further signal about it, so the agent is
    /// checked again soon.
    fn observe(&mut self, agent: Pid, options: WaitIdOptions) -> Option<WaitIdStatus> {
        let observed = waitid(WaitId::Pid(agent), options | WaitIdOptions::NOHANG);
        self.unsure |= observed.is_err();
        observed.ok().flatten()
    }

    /// Forgets the agent, which is reaped: its PID and its pipes may be reused.
    fn forget_agent(&mut self) {
        if let Some(lineage) = &mut self.lineage {
            lineage.forget();
        }
        (self.agent, self.exited, self.held, self.told_stop, self.unsure) = (None, false, false, false, false);
    }

    /// Reaps dead orphans of the tree that were reparented to us: no other process can.
    fn reap_adopted(&self) {
        let agent = self.agent.map(|agent| agent.as_raw_nonzero().get());
        for child in self.children.list().into_iter().filter(|child| Some(*child) != agent).filter_map(pid) {
            let _ = waitpid(Some(child), WaitOptions::NOHANG);
        }
    }

    /// Stops the tree. Repeats this until no process has been forked in the meantime.
    fn stop(&mut self) {
        self.held = true;
        let mut stopped = Vec::new();
        loop {
            let tree = self.tree();
            let mut new = tree.iter().filter(|process| !stopped.contains(&process.pid)).peekable();
            if new.peek().is_none() {
                return;
            }
            signal_all(new, Signal::STOP);
            stopped = tree.iter().map(|process| process.pid).collect();
        }
    }

    fn go_on(&mut self) {
        // Consumes the kernel's reports about the stop while `held` still makes us ignore them.
        self.look_at_agent();
        self.held = false;
        signal_all(&self.tree(), Signal::CONT);
    }

    fn signal(&mut self, number: i32) {
        let (Some(agent), Some(signal)) = (self.agent, Signal::from_named_raw(number)) else { return };
        if signal == Signal::KILL {
            signal_all(&self.tree(), Signal::KILL);
            return;
        }
        let sandboxed = sandboxed(agent.as_raw_nonzero().get());
        if !sandboxed.is_empty() {
            signal_all(&sandboxed, signal);
            signal_all(&sandboxed, Signal::CONT);
            return;
        }
        let _ = kill_process_group(agent, signal);
        // An agent that has left its own group must get the signal too.
        if getpgid(Some(agent)).is_ok_and(|group| group != agent) {
            let _ = kill_process(agent, signal);
        }
        // A stopped process handles no signal until it continues.
        let _ = kill_process_group(agent, Signal::CONT);
        if self.held {
            signal_all(&self.tree(), Signal::CONT);
        }
    }

    /// Kills what is left of the tree, reaps it, and returns what had to be killed.
    #[expect(clippy::disallowed_methods, reason = "a wait, not an event")]
    fn sweep(&mut self) -> Vec<Leftover> {
        let agent = self.agent.map_or(0, |agent| agent.as_raw_nonzero().get());
        let mut leftovers: Vec<Leftover> = Vec::new();
        if let Some(agent) = self.agent {
            // What is left of bubblewrap itself is already exiting.
            let of_the_sandbox =
                |left: &Process| left.name == BUBBLEWRAP && is_bubblewrap(agent.as_raw_nonzero().get());
            let alive = self.tree().into_iter().filter(|left| !left.zombie && !of_the_sandbox(left));
            leftovers.extend(alive.map(|left| Leftover { pid: left.pid, name: left.name, running: false }));
            let _ = kill_process_group(agent, Signal::KILL);
        }
        // A process may fork while we list, and one in a system call may take time to die: check again, but not
        // forever.
        let (mut quiet_looks, mut spent) = (0, Duration::ZERO);
        loop {
            let began = Instant::now();
            let tree = self.tree();
            signal_all(&tree, Signal::KILL);
            let gone = loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) | Err(Errno::INTR) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            // Orphans that have not come to us are gone once nobody sees them, twice.
            quiet_looks = if tree.iter().all(|left| left.zombie) { quiet_looks + 1 } else { 0 };
            if gone && (self.lineage.is_none() || quiet_looks == 2) {
                break;
            }
            if spent > SWEEP {
                name_the_living(&mut leftovers, self.tree());
                break;
            }
            let pause = Timespec { tv_sec: 0, tv_nsec: SWEEP_PAUSE_NS };
            let _ = poll(&mut [PollFd::new(&self.signalled, PollFlags::IN)], Some(&pause));
            let mut bytes = [0; 64];
            while matches!((&self.signalled).read(&mut bytes), Ok(1..)) {}
            spent += began.elapsed().min(LONGEST_LOOK);
        }
        leftovers.retain(|left| left.pid != agent || !self.exited);
        leftovers
    }
}

/// Marks the processes that survived SIGKILL, and adds those that were not listed yet. Such a process belongs to
/// another user, or the kernel does not release it.
fn name_the_living(leftovers: &mut Vec<Leftover>, tree: Vec<Process>) {
    for living in tree.into_iter().filter(|left| !left.zombie) {
        match leftovers.iter_mut().find(|left| left.pid == living.pid) {
            Some(known) => known.running = true,
            None => leftovers.push(Leftover { pid: living.pid, name: living.name, running: true }),
        }
    }
}

/// If the agent is bubblewrap, returns the processes that are to receive a signal instead: its program, and that
/// program's group. Bubblewrap passes no signal on, and if a signal kills it, its program dies too.
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

/// Returns the process id of our host; `None` if it has ended, and another process has adopted us.
fn living_host() -> Option<i32> {
    let parent = getppid()?.as_raw_nonzero().get();
    #[expect(clippy::disallowed_methods, reason = "a lifeline has no world")]
    let host = std::env::args_os().next_back()?;
    (host.to_str()?.parse() == Ok(parent)).then_some(parent)
}

fn me() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Returns the token in our own environment: we may be below an agent.
fn own_token() -> Option<Vec<u8>> {
    #[expect(clippy::disallowed_methods, reason = "a lifeline has no world")]
    let value = std::env::var_os(TOKEN)?;
    Some([TOKEN.as_bytes(), b"=", value.as_bytes()].concat())
}

/// Returns whether no process but this one is alive.
fn is_only(tree: &[Process], agent: i32) -> bool {
    tree.iter().all(|process| process.pid == agent || process.zombie)
}
