//! One run at a time in a root (V-41): an advisory lock on a file of ours, which the kernel lets go when its holder dies, so
//! that none is ever stale. The file says who holds it.

use super::error::JournalError;
use super::folders::prepare;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// What an attempt to take the lock gave.
#[derive(Debug)]
pub enum Taken {
    /// It is ours.
    Held(RunLock),
    /// Another run has it; these are its own words about itself.
    Busy(BusyLock),
}

/// A lock that another run holds.
#[derive(Debug)]
pub struct BusyLock {
    lock: RunLock,
    /// Who holds it: process, since when, which chain.
    pub holder: String,
}

impl RunLock {
    /// Tries to take the lock of a root.
    ///
    /// # Errors
    /// When the file cannot be made, or the file system has no locks.
    pub fn take(root: &Path) -> Result<Taken, JournalError> {
        let (mut file, path) = open(root)?;
        match file.try_lock() {
            Ok(()) => Ok(Taken::Held(Self { file, path })),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // It may be writing just now; its words are for people only.
                let _ = file.read_to_string(&mut holder);
                Ok(Taken::Busy(BusyLock { lock: Self { file, path }, holder: holder.trim().to_string() }))
            }
            Err(TryLockError::Error(cause)) => Err(JournalError::Write { path, cause }),
        }
    }

    /// Whether a run has the lock of a root. It is not taken from anybody who asks at the same time.
    ///
    /// # Errors
    /// When the file cannot be made, or the file system has no locks.
    pub fn is_held(root: &Path) -> Result<bool, JournalError> {
        let (file, path) = open(root)?;
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(cause)) => Err(JournalError::Write { path, cause }),
        }
    }

    /// Its file's number on its disk.
    pub(super) fn inode(&self) -> Option<u64> {
        self.file.metadata().ok().map(|file| file.ino())
    }

    /// Says in the file who we are, for those who find it locked.
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

fn open(root: &Path) -> Result<(File, PathBuf), JournalError> {
    let ours = prepare(root)?;
    let file = ours.open_or_create("lock").map_err(|error| ours.refused("lock", error))?;
    Ok((file, ours.path().join("lock")))
}

impl BusyLock {
    /// The process that took it, as far as the file says so. A lock whose process is dead is held by lifelines of it that still end what
    /// it left.
    #[must_use]
    pub fn process(&self) -> Option<i32> {
        self.holder.rsplit_once(", process ")?.1.split(',').next()?.parse().ok()
    }

    /// The file that is locked.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.lock.file
    }

    /// Tries once more; who has it still is told by getting this one back.
    ///
    /// # Errors
    /// When the file system has no locks.
    pub fn again(self) -> Result<Taken, JournalError> {
        match self.lock.file.try_lock() {
            Ok(()) => Ok(Taken::Held(self.lock)),
            Err(TryLockError::WouldBlock) => Ok(Taken::Busy(self)),
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
        let Taken::Held(mut first) = RunLock::take(root.path()).unwrap() else { panic!("nobody has it") };
        first.sign("process 7, a chain that is longer than the next").unwrap();
        first.sign("process 7, a chain").unwrap();
        let Taken::Busy(second) = RunLock::take(root.path()).unwrap() else { panic!("the first has it") };
        assert_eq!(second.holder, "process 7, a chain");
        assert!(RunLock::is_held(root.path()).unwrap());
        let Taken::Busy(second) = second.again().unwrap() else { panic!("the first still has it") };
        drop(first);
        let Taken::Held(second) = second.again().unwrap() else { panic!("nobody has it any more") };
        drop(second);
        assert!(!RunLock::is_held(root.path()).unwrap());
    }
}
