//! Checks whether this machine lets us stop what agents leave behind, with a daemon of our own (`forkhestra doctor`).
#![expect(clippy::disallowed_methods, reason = "this module starts processes and reads the process table")]

use super::host::{AgentPipes, LifelineHandle};
use super::launch::Launch;
use super::system::{children, has_pidfds, lists_children, process};
use super::wire::LifelineReport;
use rustix::process::{getpid, setsid};
use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::time::Instant;

/// How long a probe may take. Its daemon exits by itself after that time.
const PATIENCE: Duration = Duration::from_secs(10);

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// The daemon was stopped after this time.
    Ended(Duration),
    /// The daemon lives on, with this pid.
    Survived(i32),
    /// The probe could not be carried out, for this reason.
    Failed(String),
}

/// The mechanisms that the kernel provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mechanisms {
    /// `pidfd_open(2)`: a signal cannot reach an unrelated process.
    pub pidfd: bool,
    /// /proc/PID/task/TID/children: a tree is found without a scan of every process.
    pub child_lists: bool,
    /// A cgroup of our own that we could kill as a whole. Not required.
    pub cgroup: bool,
}

/// Starts a daemon that forks twice, leaves its session and holds its output, and checks whether its lifeline stops it.
pub async fn probe(lifeline: &Path, own_program: &Path) -> Probe {
    match tokio::time::timeout(PATIENCE, try_out(lifeline, own_program)).await {
        Ok(Ok(probe)) => probe,
        Ok(Err(error)) => Probe::Failed(error.to_string()),
        Err(_) => Probe::Failed(format!("it took longer than {} s", PATIENCE.as_secs())),
    }
}

async fn try_out(lifeline: &Path, own_program: &Path) -> io::Result<Probe> {
    let launch = Launch {
        program: own_program,
        arguments: vec!["__probe".into(), "fork".into()],
        environment: Vec::new(),
        folder: Path::new("/"),
        stdin: None,
    };
    let mut lifeline = LifelineHandle::start(lifeline, None).map_err(io::Error::other)?;
    let pipes = lifeline.launch(&launch).map_err(io::Error::other)?;
    let (mut daemon, mut exited) = (None, None);
    while daemon.is_none() || exited.is_none() {
        tokio::select! {
            report = lifeline.line.report() => match report {
                LifelineReport::Exited(_) => exited = Some(Instant::now()),
                LifelineReport::Failed(errno) => return Err(io::Error::from_raw_os_error(errno)),
                LifelineReport::Gone => return Err(io::Error::other("the lifeline of the daemon is gone")),
                _ => {}
            },
            _ = pipes.stdout.readable(), if daemon.is_none() => daemon = said_pid(&pipes)?,
        }
    }
    let began = Instant::now();
    lifeline.line.sweep();
    while !matches!(lifeline.line.report().await, LifelineReport::Swept(_) | LifelineReport::Gone) {}
    lifeline.end();
    let daemon = daemon.unwrap_or(0);
    let alive = process(daemon).is_some_and(|process| !process.zombie);
    Ok(if alive { Probe::Survived(daemon) } else { Probe::Ended(began.elapsed()) })
}

/// Returns the daemon's pid, once the daemon has printed it.
fn said_pid(pipes: &AgentPipes) -> io::Result<Option<i32>> {
    let mut line = [0; 32];
    match pipes.stdout.try_read(&mut line) {
        Ok(0) => Err(io::Error::other("the daemon printed nothing")),
        Ok(length) => Ok(String::from_utf8_lossy(&line[..length]).trim().parse().ok()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The hidden command behind [`probe`]: `fork` starts `leave`, which leaves its session and starts `stay`.
///
/// # Errors
/// When a step fails, or is unknown.
pub fn probe_step(arguments: &[OsString]) -> io::Result<()> {
    let next = |step: &str| Command::new(std::env::current_exe()?).args(["__probe", step]).spawn();
    match arguments.first().and_then(|step| step.to_str()) {
        Some("fork") => next("leave")?.wait().map(drop),
        Some("leave") => {
            setsid()?;
            next("stay").map(drop)
        }
        Some("stay") => {
            io::stdout().write_all(format!("{}\n", std::process::id()).as_bytes())?;
            std::thread::sleep(PATIENCE);
            Ok(())
        }
        _ => Err(io::Error::new(ErrorKind::InvalidInput, "this command is internal to forkhestra")),
    }
}

/// Returns the mechanisms that the kernel provides.
#[must_use]
pub fn mechanisms() -> Mechanisms {
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    let me = getpid().as_raw_nonzero().get();
    Mechanisms {
        pidfd: has_pidfds(),
        child_lists: lists_children() && children(parent).contains(&me),
        cgroup: own_cgroup().is_some_and(|folder| {
            let kill = Path::new(&folder).join("cgroup.kill");
            rustix::fs::access(kill, rustix::fs::Access::WRITE_OK).is_ok()
                && rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
        }),
    }
}

/// Returns the directory of our cgroup in the unified hierarchy (cgroups(7)).
fn own_cgroup() -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    Some(format!("/sys/fs/cgroup{}", text.lines().find_map(|line| line.strip_prefix("0::"))?))
}
