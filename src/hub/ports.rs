//! Ports of workspaces: blocks of TCP ports on this machine, each leased by a lock on a file, so that a process that
//! dies gives its block back.

use super::HubError;
use super::hub_git::write;
use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// The first port that is given away.
const FIRST: u16 = 20_000;
/// The end of the ports that are given away. Linux takes the ports of outgoing connections from 32,768 on (ip(7),
/// `ip_local_port_range`).
const END: u16 = 32_000;
/// How many ports one lock file stands for.
const STRIDE: u16 = 10;

/// A block of ports, leased until it is dropped.
#[derive(Debug)]
pub struct PortBlock {
    /// The first of its ports.
    pub first: u16,
    _locks: Vec<File>,
}

impl PortBlock {
    /// Leases a block of `count` ports that nobody else has leased, and that nobody listens on. `folder` has the locks
    /// of this machine. Returns `None` if there is no such block.
    ///
    /// # Errors
    /// When the locks cannot be written.
    pub fn lease(folder: &Path, count: u16) -> Result<Option<Self>, HubError> {
        write(&folder.join(".keep"), b"")?;
        let strides = count.div_ceil(STRIDE).max(1);
        let mut first = FIRST;
        while first + strides * STRIDE <= END {
            match Self::locks(folder, first, strides)? {
                Some(locks) if is_free(first, count) => return Ok(Some(Self { first, _locks: locks })),
                Some(_) | None => first += STRIDE,
            }
        }
        Ok(None)
    }

    /// Locks some strides of ports; `None` if somebody else has one of them.
    fn locks(folder: &Path, first: u16, strides: u16) -> Result<Option<Vec<File>>, HubError> {
        let mut locks = Vec::new();
        for stride in 0..strides {
            let path = folder.join((first + stride * STRIDE).to_string());
            let failed = |cause| HubError::Write { path: path.clone(), cause };
            let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => locks.push(file),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
        }
        Ok(Some(locks))
    }
}

/// Returns whether nobody listens on any of these ports.
fn is_free(first: u16, count: u16) -> bool {
    (first..first + count).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_leased_twice_and_a_dropped_block_is_free_again() {
        let folder = tempfile::tempdir().unwrap();
        let lease = |count| PortBlock::lease(folder.path(), count).unwrap().unwrap();
        let (one, two) = (lease(15), lease(1));
        // Other programs of this machine may listen on any port, so that either may be the first.
        assert!(two.first >= one.first + 20 || two.first + 10 <= one.first, "{} {}", one.first, two.first);
        let (first, is_leased) = (one.first, || PortBlock::locks(folder.path(), one.first, 2).unwrap().is_none());
        assert!(first >= FIRST && is_leased());
        drop(one);
        assert!(PortBlock::locks(folder.path(), first, 2).unwrap().is_some());
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_in_no_block() {
        let folder = tempfile::tempdir().unwrap();
        let free = PortBlock::lease(folder.path(), 10).unwrap().unwrap().first;
        let _busy = TcpListener::bind((Ipv4Addr::LOCALHOST, free + 9)).unwrap();
        assert_ne!(PortBlock::lease(folder.path(), 10).unwrap().unwrap().first, free);
    }
}
