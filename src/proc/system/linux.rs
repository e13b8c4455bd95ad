//! The process table, as Linux shows it in /proc (proc(5)).
#![expect(clippy::disallowed_methods, reason = "this module reads the process table")]

mod spawn;

pub(in crate::proc) use spawn::spawn;

use super::{PipeEnd, Process, pid};
use crate::engine::Containment;
use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, set_child_subreaper};
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Child;

/// Orphans come to us, however they were made.
pub(super) const CONTAINMENT: Containment = Containment::Whole;
/// A write to a socket that nobody reads is an error, and no signal.
pub(in crate::proc) const SEND_QUIETLY: SendFlags = SendFlags::NOSIGNAL;
/// Files that are received are ours only.
pub(in crate::proc) const LISTEN_CLOEXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// A lifeline has a name of its own in the process table.
pub(in crate::proc) const SHOWS_NAMES: bool = true;
/// The number of bits of a pid (`PID_MAX_LIMIT` of the kernel).
const PID_BITS: u32 = 22;
/// How much the pipe of an agent's standard output can hold, in bytes.
const PIPE: usize = 512 << 10;
/// How often to check whether a signal has stopped a process that should exit.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Returns the name of a process and the fields after it (`proc_pid_stat(5)`); `None` if it is gone.
fn stat<T>(pid: i32, read: impl FnOnce(&str, &[&str]) -> Option<T>) -> Option<T> {
    // All that we use of it is in the first 1024 bytes, and one read returns as many as fit.
    let mut bytes = [0; 1024];
    let length = File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut bytes)).ok()?;
    let stat = String::from_utf8_lossy(&bytes[..length]);
    // The name is in parentheses, and may contain some itself.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let fields: Vec<&str> = stat.get(close + 2..)?.split(' ').collect();
    read(stat.get(open + 1..close)?, &fields)
}

/// Returns what /proc shows of a process; `None` if it is gone.
pub(in crate::proc) fn process(pid: i32) -> Option<Process> {
    stat(pid, |name, fields| {
        let start_time = fields.get(19)?.parse().ok()?;
        Some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            name: name.to_string(),
            zombie: matches!(*fields.first()?, "Z" | "X"),
            stopped: matches!(*fields.first()?, "T" | "t"),
            start_time,
            id: start_time << PID_BITS | u64::try_from(pid).ok()?,
            forked_by: None,
        })
    })
}

/// Returns the CPU time of a process and its reaped children, in clock ticks, which are hundredths of a second.
pub(in crate::proc) fn cpu_ticks(process: &Process) -> u64 {
    let used = stat(process.pid, |_, fields| {
        Some(fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum())
    });
    used.unwrap_or(0)
}

/// The children of this process, which has only one thread. The kernel's list of them stays open; `None` for a kernel
/// that has no such list.
pub(in crate::proc) struct OwnChildren(Option<File>);

impl OwnChildren {
    pub(in crate::proc) fn new() -> Self {
        let me = getpid().as_raw_nonzero().get();
        Self(File::open(format!("/proc/{me}/task/{me}/children")).ok())
    }

    /// Returns their process ids as they are now.
    pub(in crate::proc) fn list(&self) -> Vec<i32> {
        let listed = || {
            let (mut list, mut bytes) = (Vec::new(), [0; 4096]);
            let file = self.0.as_ref()?;
            loop {
                match file.read_at(&mut bytes, list.len() as u64).ok()? {
                    0 => return String::from_utf8(list).ok(),
                    read => list.extend_from_slice(&bytes[..read]),
                }
            }
        };
        match listed() {
            Some(list) => list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
            None => children(getpid().as_raw_nonzero().get()),
        }
    }
}

/// Returns the children of a process, from the kernel's own list if there is one, else by a walk over all processes.
pub(in crate::proc) fn children(parent: i32) -> Vec<i32> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return children };
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // A kernel without CONFIG_PROC_CHILDREN.
            Err(_) => {
                return all().into_values().filter(|process| process.parent == parent).map(|child| child.pid).collect();
            }
        }
    }
    children
}

/// Returns every process in the table.
pub(in crate::proc) fn all() -> HashMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut all: HashMap<i32, Process> = pids.filter_map(|pid| Some((pid, process(pid)?))).collect();
    // Only as long as the parent lives: an orphan has another parent.
    let ids: HashMap<i32, u64> = all.iter().map(|(pid, process)| (*pid, process.id)).collect();
    for process in all.values_mut() {
        process.forked_by = ids.get(&process.parent).copied();
    }
    all
}

/// Returns the arguments of a process, each with a NUL after it.
pub(super) fn arguments(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Returns the environment that a process was started with, each variable with a NUL after it.
pub(super) fn environment(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// Returns whether a process runs the same program as we do. One between fork and exec still does.
pub(in crate::proc) fn is_of_our_program(pid: i32) -> bool {
    let program = |process: &str| fs::metadata(format!("/proc/{process}/exe")).map(|file| (file.dev(), file.ino()));
    matches!((program("self"), program(&pid.to_string())), (Ok(ours), Ok(theirs)) if ours == theirs)
}

/// Returns whether a process shares a lock on a file (`flock(2)`). /proc shows that for each of its open files
/// (`proc_pid_fdinfo(5)`).
pub(in crate::proc) fn locks(pid: i32, file: &Metadata) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let is_it =
            fs::metadata(descriptor.path()).is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()));
        let number = descriptor.file_name();
        let said = || fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(number)).unwrap_or_default();
        is_it && said().lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
    })
}

/// Sends a signal to exactly this process: a pidfd refers to it, and its start time shows that the number was not
/// reused. A zombie is left alone.
pub(in crate::proc) fn kill(target: &Process, signal: Signal) {
    let Some(number) = pid(target.pid).filter(|_| !target.zombie) else { return };
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(held) => {
            if process(target.pid).is_some_and(|now| now.start_time == target.start_time) {
                let _ = pidfd_send_signal(&held, signal);
            }
        }
        Err(rustix::io::Errno::SRCH) => {}
        // No descriptor is left, or the kernel has no pidfds: the number is better than nothing.
        Err(_) => {
            let _ = rustix::process::kill_process(number, signal);
        }
    }
}

/// Returns the files that a process has open.
pub(in crate::proc) fn open_paths(pid: i32) -> Vec<PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).collect()
}

/// Returns the numbers of our own open files.
pub(in crate::proc) fn own_files() -> Vec<RawFd> {
    let listed = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the identity of the pipe whose writing end this is.
pub(in crate::proc) fn pipe_end(writer: impl AsFd) -> Option<PipeEnd> {
    rustix::fs::fstat(writer).ok().map(|pipe| PipeEnd(pipe.st_dev, pipe.st_ino))
}

/// Returns the pipes whose writing ends a process has open. The link of such a descriptor in /proc/PID/fd is writable,
/// and not readable.
pub(in crate::proc) fn write_ends(pid: i32) -> Vec<PipeEnd> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let writers = files.filter(|file| file.metadata().is_ok_and(|link| link.mode() & 0o600 == 0o200));
    writers
        .filter_map(|file| fs::metadata(file.path()).ok())
        .filter(|file| rustix::fs::FileType::from_raw_mode(file.mode()) == rustix::fs::FileType::Fifo)
        .map(|pipe| PipeEnd(pipe.dev(), pipe.ino()))
        .collect()
}

/// Makes us the parent of every orphan among our descendants.
pub(in crate::proc) fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Gives our process a name in the process table. Best effort.
pub(in crate::proc) fn name_ourselves(name: &str) {
    if let Ok(name) = CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// Makes a pipe larger, so that a busy agent has to wait for us less often. Best effort: the system may grant less.
pub(in crate::proc) fn widen(pipe: &PipeReader) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
}

/// Creates a file without a name, in memory (`memfd_create(2)`).
pub(in crate::proc) fn input_file() -> io::Result<File> {
    Ok(File::from(memfd_create("input", MemfdFlags::CLOEXEC)?))
}

/// An input that another process can open by its path while this value lives.
pub(in crate::proc) struct InputFile(File);

impl InputFile {
    pub(in crate::proc) fn new(bytes: &[u8]) -> io::Result<Self> {
        super::in_memory(bytes).map(Self)
    }

    pub(in crate::proc) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// Waits until a child has ended, without reaping it. Calls `look` every second.
pub(in crate::proc) fn wait_for_end(child: &Child, mut look: impl FnMut()) {
    let Ok(held) = pidfd_open(rustix::process::Pid::from_child(child), PidfdFlags::empty()) else { return };
    while matches!(poll(&mut [PollFd::new(&held, PollFlags::IN)], Some(&LOOK)), Ok(0) | Err(Errno::INTR)) {
        look();
    }
}

/// Returns the program that keeps the machine awake while another one runs, with its arguments (systemd-inhibit(1)).
pub(in crate::proc) fn keep_awake(why: &str) -> (&'static str, Vec<String>) {
    let words = ["--what=idle:sleep", "--who=forkhestra", "--mode=block", &format!("--why={why}")];
    ("systemd-inhibit", words.map(String::from).to_vec())
}

/// Whether the kernel has pidfds.
pub(in crate::proc) fn has_pidfds() -> bool {
    pidfd_open(getpid(), PidfdFlags::empty()).is_ok()
}

/// Whether the kernel lists the children of a process.
pub(in crate::proc) fn lists_children() -> bool {
    let me = getpid().as_raw_nonzero().get();
    fs::metadata(format!("/proc/{me}/task/{me}/children")).is_ok()
}

/// A descriptor that is readable while a blocked signal is pending (signalfd(2)). The signal is never read from it.
#[derive(Debug)]
pub(in crate::proc) struct StopSignal(SignalFd);

impl StopSignal {
    pub(in crate::proc) fn watch(signal: &SigSet) -> io::Result<Self> {
        Ok(Self(SignalFd::with_flags(signal, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    pub(in crate::proc) fn is_pending(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)), Ok(1..))
    }
}

impl AsRawFd for StopSignal {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
