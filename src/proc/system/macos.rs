//! macOS: the process table by libproc (`proc_info.h` of XNU) and sysctl(3). There is no subreaper, no pidfd and no
//! death signal. A process keeps the unique id of the process that forked it, also after that one has ended.

use super::{PipeEnd, Process, pid};
use crate::engine::Containment;
use crate::proc::launch::{ReceivedLaunch, variable};
use libc::{c_int, c_void};
use nix::sys::signal::SigSet;
use rustix::event::kqueue::{Event, EventFilter, EventFlags, kevent, kqueue};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, getsid, kill_process, waitid};
use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::{self, File, Metadata};
use std::io::{self, PipeReader, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::time::Duration;

/// Orphans go to launchd.
pub(super) const CONTAINMENT: Containment = Containment::Lineage;
/// macOS has no such flag. Rust ignores SIGPIPE in every process (`std::process`, "SIGPIPE").
pub(in crate::proc) const SEND_QUIETLY: SendFlags = SendFlags::empty();
/// macOS has no such flag: the lifeline sets it afterwards.
pub(in crate::proc) const LISTEN_CLOEXEC: RecvFlags = RecvFlags::empty();
/// A lifeline has the name of the program in the process table.
pub(in crate::proc) const SHOWS_NAMES: bool = false;
/// How long to wait between two checks whether a child has ended.
const LOOK: Duration = Duration::from_millis(5);
/// After how many of these checks to call back: every second.
const LOOKS: u32 = 200;

/// `PROC_PIDUNIQIDENTIFIERINFO`, and what it fills.
const UNIQUE: c_int = 17;
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueIdentifiers {
    uuid: [u8; 16],
    unique_id: u64,
    parent_unique_id: u64,
    id_version: i32,
    original_parent_version: i32,
    reserved: [u64; 2],
}

/// `PROC_PIDFDPIPEINFO` and `PROC_PIDFDVNODEPATHINFO`, and what they fill.
const PIPE_INFO: c_int = 6;
const PATH_INFO: c_int = 2;
#[repr(C)]
#[derive(Clone, Copy)]
struct FileInfo {
    open_flags: u32,
    status: u32,
    offset: i64,
    kind: i32,
    guard_flags: u32,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct PipeInfo {
    file: FileInfo,
    stat: libc::vinfo_stat,
    handle: u64,
    peer_handle: u64,
    status: c_int,
    reserved: c_int,
}
#[repr(C)]
#[derive(Clone, Copy)]
struct PathInfo {
    file: FileInfo,
    vnode: libc::vnode_info_path,
}
/// `PROX_FDTYPE_VNODE` and `PROX_FDTYPE_PIPE`.
const VNODE: u32 = 1;
const PIPE: u32 = 6;
/// `FWRITE` of `fi_openflags`.
const WRITES: u32 = 2;
/// `SZOMB` and `SSTOP` of `sys/proc.h`.
const ZOMBIE: u32 = 5;
const STOPPED: u32 = 4;

/// Fills a plain structure of the kernel.
fn filled<T: Copy>(fill: impl FnOnce(*mut c_void, c_int) -> c_int) -> Option<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let size = c_int::try_from(size_of::<T>()).ok()?;
    let written = fill(value.as_mut_ptr().cast(), size);
    // SAFETY: every `T` above is a structure of integers, for which all bit patterns are valid, and it was zeroed.
    #[expect(unsafe_code, reason = "structures that the kernel fills")]
    (written == size).then(|| unsafe { value.assume_init() })
}

/// Reads a list whose length is not known before.
fn listed<T: Copy>(read: impl Fn(*mut c_void, c_int) -> c_int) -> Vec<T> {
    let mut room = 1_024;
    loop {
        let mut values: Vec<T> = Vec::with_capacity(room);
        let bytes = c_int::try_from(room * size_of::<T>()).unwrap_or(c_int::MAX);
        let written = usize::try_from(read(values.as_mut_ptr().cast(), bytes)).unwrap_or(0) / size_of::<T>();
        if written < room {
            // SAFETY: the kernel has written this many values, which are structures of integers.
            #[expect(unsafe_code, reason = "a list that the kernel fills")]
            unsafe {
                values.set_len(written);
            }
            return values;
        }
        room *= 2;
    }
}

fn info<T: Copy>(pid: i32, flavor: c_int) -> Option<T> {
    // SAFETY: the kernel writes at most `size` bytes. With 1, it also answers for processes that are exiting.
    #[expect(unsafe_code, reason = "proc_pidinfo")]
    filled(|to, size| unsafe { libc::proc_pidinfo(pid, flavor, 1, to, size) })
}

/// Returns what the system shows of a process, whoever's it is; `None` if it is gone, and for the kernel.
pub(in crate::proc) fn process(number: i32) -> Option<Process> {
    let number = Some(number).filter(|number| *number > 0)?;
    let known: libc::proc_bsdshortinfo = info(number, libc::PROC_PIDT_SHORTBSDINFO)?;
    let unique: UniqueIdentifiers = info(number, UNIQUE)?;
    let name: Vec<u8> =
        known.pbsi_comm.iter().map(|byte| byte.to_ne_bytes()[0]).take_while(|byte| *byte != 0).collect();
    Some(Process {
        pid: number,
        parent: i32::try_from(known.pbsi_ppid).ok()?,
        session: getsid(pid(number)).map_or(0, |session| session.as_raw_nonzero().get()),
        name: String::from_utf8_lossy(&name).into_owned(),
        zombie: known.pbsi_status == ZOMBIE,
        stopped: known.pbsi_status == STOPPED,
        start_time: unique.unique_id,
        id: unique.unique_id,
        forked_by: Some(unique.parent_unique_id),
    })
}

/// Returns the CPU time of a process and its reaped children, in hundredths of a second.
pub(in crate::proc) fn cpu_ticks(process: &Process) -> u64 {
    let mut used = MaybeUninit::<libc::rusage_info_v2>::zeroed();
    // SAFETY: the kernel fills a structure of this version, which is of integers, and was zeroed.
    #[expect(unsafe_code, reason = "proc_pid_rusage")]
    let used = unsafe {
        libc::proc_pid_rusage(process.pid, libc::RUSAGE_INFO_V2, used.as_mut_ptr().cast());
        used.assume_init()
    };
    let times = [used.ri_user_time, used.ri_system_time, used.ri_child_user_time, used.ri_child_system_time];
    hundredths(times.into_iter().fold(0, u64::saturating_add))
}

/// Converts Mach time to hundredths of a second. Its unit is 125/3 ns on Apple's processors, and 1 ns on Intel's.
fn hundredths(time: u64) -> u64 {
    let nanoseconds = if cfg!(target_arch = "aarch64") { time.saturating_mul(125) / 3 } else { time };
    nanoseconds / 10_000_000
}

/// The children of this process.
pub(in crate::proc) struct OwnChildren;

impl OwnChildren {
    pub(in crate::proc) fn new() -> Self {
        Self
    }

    /// Returns their process ids as they are now.
    #[expect(clippy::unused_self, reason = "on Linux, the kernel's list stays open")]
    pub(in crate::proc) fn list(&self) -> Vec<i32> {
        children(getpid().as_raw_nonzero().get())
    }
}

/// Returns the children of a process.
pub(in crate::proc) fn children(parent: i32) -> Vec<i32> {
    // SAFETY: the kernel writes at most `size` bytes.
    #[expect(unsafe_code, reason = "proc_listpids")]
    let list = |to, size| unsafe { libc::proc_listpids(PPID_ONLY, parent.unsigned_abs(), to, size) };
    listed(list)
}

/// `PROC_ALL_PIDS` and `PROC_PPID_ONLY`.
const ALL_PIDS: u32 = 1;
const PPID_ONLY: u32 = 6;

/// Returns every process in the table.
pub(in crate::proc) fn all() -> HashMap<i32, Process> {
    // SAFETY: the kernel writes at most `size` bytes.
    #[expect(unsafe_code, reason = "proc_listpids")]
    let pids: Vec<i32> = listed(|to, size| unsafe { libc::proc_listpids(ALL_PIDS, 0, to, size) });
    pids.into_iter().filter_map(|pid| Some((pid, process(pid)?))).collect()
}

/// Returns the arguments and the environment that a process was started with (`KERN_PROCARGS2` of sysctl(3)). The
/// environment of Apple's own programs is empty; for processes of other users, both are.
fn started_with(pid: i32) -> (Vec<u8>, Vec<u8>) {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut bytes = vec![0_u8; 1 << 20];
    let mut size = bytes.len();
    // SAFETY: the name has three parts, and the kernel writes at most `size` bytes.
    #[expect(unsafe_code, reason = "sysctl")]
    let failed =
        unsafe { libc::sysctl(name.as_mut_ptr(), 3, bytes.as_mut_ptr().cast(), &raw mut size, ptr::null_mut(), 0) };
    bytes.truncate(if failed == 0 { size } else { 0 });
    // The number of arguments, the path of the program, NULs, the arguments, the environment.
    let Some((count, rest)) = bytes.split_first_chunk::<4>() else { return (Vec::new(), Vec::new()) };
    let count = usize::try_from(u32::from_ne_bytes(*count)).unwrap_or(0);
    let after_path = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let begin = rest.iter().skip(after_path).position(|byte| *byte != 0).unwrap_or(0) + after_path;
    let words = rest.get(begin..).unwrap_or_default();
    let ends = words.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at + 1);
    let split = count.checked_sub(1).map_or(0, |last| ends.clone().nth(last).unwrap_or(words.len()));
    (words[..split].to_vec(), words[split..].to_vec())
}

/// Returns the arguments of a process, each with a NUL after it.
pub(super) fn arguments(pid: i32) -> Vec<u8> {
    started_with(pid).0
}

/// Returns the environment that a process was started with, each variable with a NUL after it.
pub(super) fn environment(pid: i32) -> Vec<u8> {
    started_with(pid).1
}

/// Returns whether a process runs the same program as we do.
pub(in crate::proc) fn is_of_our_program(pid: i32) -> bool {
    let file = |pid: i32| fs::metadata(program(pid)?).ok().map(|file| (file.dev(), file.ino()));
    let ours = file(getpid().as_raw_nonzero().get());
    ours.is_some() && file(pid) == ours
}

/// Returns the path of the program that a process runs.
fn program(pid: i32) -> Option<PathBuf> {
    let mut path = [0_u8; libc::PROC_PIDPATHINFO_MAXSIZE as usize];
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    #[expect(unsafe_code, reason = "proc_pidpath")]
    let length = unsafe { libc::proc_pidpath(pid, path.as_mut_ptr().cast(), libc::PROC_PIDPATHINFO_MAXSIZE as u32) };
    let path = path.get(..usize::try_from(length).ok().filter(|length| *length > 0)?)?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// Returns the open files of a process of this kind, with their numbers.
fn files(pid: i32, kind: u32) -> impl Iterator<Item = c_int> {
    // SAFETY: the kernel writes at most `size` bytes.
    #[expect(unsafe_code, reason = "proc_pidinfo")]
    let list = |to, size| unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, to, size) };
    let found: Vec<libc::proc_fdinfo> = listed(list);
    found.into_iter().filter(move |file| file.proc_fdtype == kind).map(|file| file.proc_fd)
}

fn file_info<T: Copy>(pid: i32, file: c_int, flavor: c_int) -> Option<T> {
    // SAFETY: the kernel writes at most `size` bytes.
    #[expect(unsafe_code, reason = "proc_pidfdinfo")]
    filled(|to, size| unsafe { libc::proc_pidfdinfo(pid, file, flavor, to, size) })
}

/// Returns the files that a process has open.
pub(in crate::proc) fn open_paths(pid: i32) -> Vec<PathBuf> {
    let paths = files(pid, VNODE).filter_map(|file| file_info::<PathInfo>(pid, file, PATH_INFO));
    paths
        .filter_map(|info| {
            let path = info.vnode.vip_path.as_flattened();
            let bytes: Vec<u8> = path.iter().map(|byte| byte.to_ne_bytes()[0]).collect();
            let path = CStr::from_bytes_until_nul(&bytes).ok()?;
            Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
        })
        .collect()
}

/// Returns whether a process is a lifeline and has a file open. macOS does not show who holds a lock (flock(2)), and
/// whoever waits for the lock has it open, too.
pub(in crate::proc) fn locks(pid: i32, file: &Metadata) -> bool {
    let is_lifeline = super::has_argument(pid, b"__lifeline");
    let is_it =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()));
    is_lifeline && open_paths(pid).iter().any(is_it)
}

/// Returns the numbers of our own open files.
pub(in crate::proc) fn own_files() -> Vec<RawFd> {
    let listed = fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the identity of the pipe whose writing end this is.
pub(in crate::proc) fn pipe_end(writer: impl AsFd) -> Option<PipeEnd> {
    let me = getpid().as_raw_nonzero().get();
    let pipe: PipeInfo = file_info(me, writer.as_fd().as_raw_fd(), PIPE_INFO)?;
    Some(PipeEnd(pipe.handle, pipe.peer_handle))
}

/// Returns the pipes whose writing ends a process has open.
pub(in crate::proc) fn write_ends(pid: i32) -> Vec<PipeEnd> {
    let pipes = files(pid, PIPE).filter_map(|file| file_info::<PipeInfo>(pid, file, PIPE_INFO));
    let writers = pipes.filter(|pipe| pipe.file.open_flags & WRITES != 0);
    writers.map(|pipe| PipeEnd(pipe.handle, pipe.peer_handle)).collect()
}

/// Sends a signal to a process, unless its number belongs to another one by now. Between the check and the signal,
/// there is a moment in which that could happen. A zombie is left alone.
pub(in crate::proc) fn kill(target: &Process, signal: Signal) {
    let Some(number) = pid(target.pid).filter(|_| !target.zombie) else { return };
    if process(target.pid).is_some_and(|now| now.start_time == target.start_time) {
        let _ = kill_process(number, signal);
    }
}

/// macOS has no subreaper.
///
/// # Errors
/// Always.
pub(in crate::proc) fn adopt_orphans() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Starts a program. It leads its own process group; signals have their default effect.
#[expect(clippy::disallowed_methods, reason = "this module starts processes")]
pub(in crate::proc) fn spawn(launch: &ReceivedLaunch<'_>, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Result<Pid> {
    let word = |word: &CStr| OsStr::from_bytes(word.to_bytes()).to_os_string();
    let mut command = Command::new(word(launch.program));
    command.args(launch.arguments.iter().map(|argument| word(argument))).current_dir(word(launch.folder));
    command.process_group(0).env_clear().envs(launch.environment.iter().filter_map(|entry| variable(entry)));
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let lifeline = getpid();
    let is_ours = move || if getppid() == Some(lifeline) { Ok(()) } else { Err(Errno::SRCH.into()) };
    // SAFETY: between fork and exec, the closure only makes one system call and touches no shared memory.
    #[expect(unsafe_code, reason = "a child whose parent has died must not start an agent")]
    let command = unsafe { command.pre_exec(is_ours) };
    let agent = command.spawn()?;
    i32::try_from(agent.id()).ok().and_then(pid).ok_or_else(|| Errno::SRCH.into())
}

/// macOS shows the name of the program. A lifeline is found by its argument.
pub(in crate::proc) fn name_ourselves(_: &str) {}

/// macOS sizes pipes by itself.
pub(in crate::proc) fn widen(_: &PipeReader) {}

/// Creates a file without a name.
pub(in crate::proc) fn input_file() -> io::Result<File> {
    tempfile::tempfile()
}

/// An input that another process can open by its path while this value lives.
pub(in crate::proc) struct InputFile(tempfile::NamedTempFile);

impl InputFile {
    pub(in crate::proc) fn new(bytes: &[u8]) -> io::Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(bytes)?;
        Ok(Self(file))
    }

    pub(in crate::proc) fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }
}

/// Waits until a child has ended, without reaping it. Calls `look` every second.
pub(in crate::proc) fn wait_for_end(child: &Child, mut look: impl FnMut()) {
    let child = Pid::from_child(child);
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    for looks in 1_u32.. {
        if !matches!(waitid(WaitId::Pid(child), ended), Ok(None) | Err(Errno::INTR)) {
            return;
        }
        if looks % LOOKS == 0 {
            look();
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns the program that keeps the machine awake while another one runs, with its arguments (caffeinate(8)).
pub(in crate::proc) fn keep_awake(_: &str) -> (&'static str, Vec<String>) {
    ("caffeinate", vec!["-i".into()])
}

/// macOS has no pidfds.
pub(in crate::proc) fn has_pidfds() -> bool {
    false
}

/// The system lists the children of a process.
pub(in crate::proc) fn lists_children() -> bool {
    true
}

/// A descriptor that is readable once a blocked signal was sent (kqueue(2)). The signal itself stays pending.
#[derive(Debug)]
pub(in crate::proc) struct StopSignal(OwnedFd);

impl StopSignal {
    pub(in crate::proc) fn watch(_: &SigSet) -> io::Result<Self> {
        let queue = kqueue()?;
        let filter = EventFilter::Signal { signal: Signal::TSTP, times: 0 };
        let event = Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, ptr::null_mut());
        Self::exchange(&queue, &[event])?;
        Ok(Self(queue))
    }

    /// Whether the signal is pending (sigpending(2)).
    pub(in crate::proc) fn is_pending(&self) -> bool {
        // The next signal makes the queue readable again.
        let _ = Self::exchange(&self.0, &[]);
        let mut pending = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: both calls only read and write the set, which was zeroed.
        #[expect(unsafe_code, reason = "sigpending")]
        unsafe {
            libc::sigpending(pending.as_mut_ptr()) == 0 && libc::sigismember(pending.as_ptr(), libc::SIGTSTP) == 1
        }
    }

    fn exchange(queue: &OwnedFd, changes: &[Event]) -> io::Result<()> {
        let mut events = Vec::with_capacity(4);
        // SAFETY: no event refers to a descriptor that could be closed.
        #[expect(unsafe_code, reason = "kevent")]
        let exchanged =
            unsafe { kevent(queue, changes, rustix::buffer::spare_capacity(&mut events), Some(Duration::ZERO)) };
        exchanged.map(drop).map_err(Into::into)
    }
}

impl AsRawFd for StopSignal {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
