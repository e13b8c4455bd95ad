//! The lock that allows one run at a time in a root: an advisory lock on a file. The kernel releases it when its holder
//! dies, so it is never stale. The file names the holder.

use super::error::JournalError;
use super::folders::prepare;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a queue of tasks writes into the lock file instead of a chain.
pub const QUEUE_TITLE: &str = "task run --all";
/// What stands between a title and the process in the lock file.
const PROCESS: &str = ", process ";

/// The lock, held until it is dropped or its process dies.
#[derive(Debug)]
pub struct RunLock {
    file: File,
    path: PathBuf,
}

impl AsFd for RunLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The result of trying to take the lock.
#[derive(Debug)]
pub enum LockAttempt {
    /// This process holds the lock now.
    Held(RunLock),
    /// Another run holds the lock.
    Busy(BusyLock),
}

/// A lock that another run holds.
#[derive(Debug)]
pub struct BusyLock {
    lock: RunLock,
    /// What the lock file says about the holder: process, start time, chain.
    pub holder: String,
}

/// The holder of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// What it does: a chain, or [`QUEUE_TITLE`].
    pub title: String,
    /// The process that took the lock, if the file names one.
    pub pid: Option<i32>,
}

impl LockHolder {
    /// Whether this process is the holder.
    pub(super) fn is_us(&self) -> bool {
        self.pid.is_some_and(|pid| i32::try_from(std::process::id()).is_ok_and(|us| us == pid))
    }
}

impl RunLock {
    /// Tries to take the lock of a root.
    ///
    /// # Errors
    /// When the file cannot be created, or the file system does not support locks.
    pub fn take(root: &Path) -> Result<LockAttempt, JournalError> {
        let (mut file, path) = open(root)?;
        match file.try_lock() {
            Ok(()) => Ok(LockAttempt::Held(Self { file, path })),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The holder may be writing the file at this moment; its text is for people only.
                let _ = file.read_to_string(&mut holder);
                Ok(LockAttempt::Busy(BusyLock { lock: Self { file, path }, holder: holder.trim().to_string() }))
            }
            Err(TryLockError::Error(cause)) => Err(JournalError::Write { path, cause }),
        }
    }

    /// Whether a run holds the lock of a root. Several processes can check at the same time.
    ///
    /// # Errors
    /// When the file cannot be created, or the file system does not support locks.
    pub fn is_held(root: &Path) -> Result<bool, JournalError> {
        let (file, path) = open(root)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(cause)) => Err(JournalError::Write { path, cause }),
        }
    }

    /// Returns who holds the lock of a root; `None` if no run does.
    ///
    /// # Errors
    /// Like [`RunLock::is_held`].
    pub fn holder(root: &Path) -> Result<Option<LockHolder>, JournalError> {
        let (mut file, path) = open(root)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let title = holder.rsplit_once(PROCESS).map_or("", |(title, _)| title).to_string();
                Ok(Some(LockHolder { title, pid: process_of(&holder) }))
            }
            Err(TryLockError::Error(cause)) => Err(JournalError::Write { path, cause }),
        }
    }

    /// Duplicates the handle of the lock, which is released when both are dropped (flock(2)).
    ///
    /// # Errors
    /// When too many files are open.
    pub fn share(&self) -> Result<Self, JournalError> {
        let file = self.file.try_clone().map_err(|cause| JournalError::Write { path: self.path.clone(), cause })?;
        Ok(Self { file, path: self.path.clone() })
    }

    /// The inode of the lock file.
    pub(super) fn inode(&self) -> Option<u64> {
        self.file.metadata().ok().map(|file| file.ino())
    }

    /// Writes into the file who holds the lock, for processes that find it locked.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn sign(&mut self, holder: &str) -> Result<(), JournalError> {
        let written = self
            .file
            .rewind()
            .and_then(|()| self.file.set_len(0))
            .and_then(|()| self.file.write_all(holder.as_bytes()));
        written.map_err(|cause| JournalError::Write { path: self.path.clone(), cause })
    }
}

/// Returns the process that the text of a lock file names.
fn process_of(holder: &str) -> Option<i32> {
    holder.rsplit_once(PROCESS)?.1.split(',').next()?.parse().ok()
}

fn open(root: &Path) -> Result<(File, PathBuf), JournalError> {
    let ours = prepare(root)?;
    let file = ours.open_or_create("lock").map_err(|error| ours.refused("lock", error))?;
    Ok((file, ours.path().join("lock")))
}

impl BusyLock {
    /// The process that took the lock, if the file names one. If that process is dead, its lifelines hold the lock
    /// until they have stopped what it left running.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        process_of(&self.holder)
    }

    /// The locked file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.lock.file
    }

    /// Tries again; returns this lock again if another run still holds it.
    ///
    /// # Errors
    /// When the file system does not support locks.
    pub fn again(self) -> Result<LockAttempt, JournalError> {
        match self.lock.file.try_lock() {
            Ok(()) => Ok(LockAttempt::Held(self.lock)),
            Err(TryLockError::WouldBlock) => Ok(LockAttempt::Busy(self)),
            Err(TryLockError::Error(cause)) => Err(JournalError::Write { path: self.lock.path, cause }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_learns_who_has_it_and_gets_it_when_the_first_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let LockAttempt::Held(mut first) = RunLock::take(root.path()).unwrap() else { panic!("nobody has it") };
        first.sign("process 7, a chain that is longer than the next").unwrap();
        first.sign("process 7, a chain").unwrap();
        let LockAttempt::Busy(second) = RunLock::take(root.path()).unwrap() else { panic!("the first has it") };
        assert_eq!(second.holder, "process 7, a chain");
        assert!(RunLock::is_held(root.path()).unwrap());
        let LockAttempt::Busy(second) = second.again().unwrap() else { panic!("the first still has it") };
        let shared = first.share().unwrap();
        drop(first);
        let LockAttempt::Busy(second) = second.again().unwrap() else { panic!("it was shared") };
        drop(shared);
        let LockAttempt::Held(second) = second.again().unwrap() else { panic!("nobody has it any more") };
        drop(second);
        assert!(!RunLock::is_held(root.path()).unwrap());
    }
}
