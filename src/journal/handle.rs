//! Directories of forkhestra, held by handle. Nothing below them is reached through a link, only regular files of
//! bounded size are read, and files are replaced atomically: a checkout or an agent may have put anything there.

use super::error::JournalError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, open, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of forkhestra's directory in the root.
pub(super) const FOLDER: &str = ".forkhestra";

const FOLDERS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A pipe in the place of a file does not block.
const FILES: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open directory of forkhestra.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    folder: Arc<OwnedFd>,
    /// Where it was found; for messages, and for programs that are given a path.
    path: PathBuf,
}

impl Handle {
    /// Opens forkhestra's directory in a root; creates it if it does not exist.
    pub(super) fn make(root: &Path) -> Result<Self, JournalError> {
        Self::at(root).and_then(|root| root.make_below([FOLDER])).map_err(|error| refused(&root.join(FOLDER), error))
    }

    /// Opens forkhestra's directory in a root, if it exists.
    pub(super) fn existing(root: &Path) -> io::Result<Self> {
        Self::at(root)?.below([FOLDER])
    }

    /// Opens any directory by its path.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let folder = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { folder: Arc::new(folder), path: path.to_path_buf() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below this one.
    pub(super) fn below<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> io::Result<Self> {
        names.into_iter().try_fold(self.clone(), |above, name| {
            let folder = openat(&above.folder, name, FOLDERS, Mode::empty())?;
            Ok(Self { folder: Arc::new(folder), path: above.path.join(name) })
        })
    }

    /// Opens a directory below this one; creates what does not exist.
    pub(super) fn make_below<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> io::Result<Self> {
        names.into_iter().try_fold(self.clone(), |above, name| match mkdirat(&above.folder, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => above.below([name]),
            Err(error) => Err(error.into()),
        })
    }

    /// Creates a directory that must not exist yet.
    pub(super) fn make_new(&self, name: &str) -> io::Result<Self> {
        mkdirat(&self.folder, name, Mode::RWXU)?;
        self.below([name])
    }

    /// Creates a file for its owner only; an existing file is never touched.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FILES;
        Ok(openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Opens a file for reading and writing; creates it if it does not exist.
    pub(super) fn open_or_create(&self, name: &str) -> io::Result<File> {
        let file = openat(&self.folder, name, OFlags::RDWR | OFlags::CREATE | FILES, Mode::RUSR | Mode::WUSR)?;
        ordinary(file).map(|(file, _)| file)
    }

    /// Opens a file for reading.
    pub(super) fn open(&self, name: &str) -> io::Result<File> {
        self.open_sized(name).map(|(file, _)| file)
    }

    /// Opens a file for reading, and returns its size in bytes, too.
    fn open_sized(&self, name: &str) -> io::Result<(File, u64)> {
        ordinary(openat(&self.folder, name, OFlags::RDONLY | FILES, Mode::empty())?)
    }

    /// Opens a file at any depth below this directory, for reading.
    pub(super) fn open_below(&self, path: &Path) -> io::Result<File> {
        let below = path.strip_prefix(&self.path).map_err(|_| io::Error::from(ErrorKind::NotFound))?;
        let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str().filter(|name| *name != "..")).collect();
        let Some((names, name)) = names.and_then(|mut names| names.pop().map(|name| (names, name))) else {
            return Err(ErrorKind::NotFound.into());
        };
        self.below(names)?.open(name)
    }

    /// Reads a file, at most `most` bytes of it.
    pub(super) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let (file, size) = self.open_sized(name)?;
        let mut bytes = Vec::with_capacity(usize::try_from(size.min(most)).unwrap_or(0));
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a file as text; invalid UTF-8 becomes U+FFFD. `None` if it is not a readable regular file.
    pub(super) fn text(&self, name: &str, most: u64) -> Option<String> {
        self.read(name, most).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Writes a file that must not exist yet.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        self.create(name).and_then(|mut file| file.write_all(bytes)).map_err(|error| self.refused(name, error))
    }

    /// Creates or replaces a file atomically.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let fresh = format!("{name}.{}.new", std::process::id());
        let written = self.remove(&fresh).and_then(|()| {
            let mut file = self.create(&fresh)?;
            file.write_all(bytes)?;
            self.rename(&fresh, name)
        });
        if written.is_err() {
            let _ = self.remove(&fresh);
        }
        written.map_err(|error| self.refused(name, error))
    }

    /// Returns the directory itself, for an fsync of the names in it.
    pub(super) fn for_sync(&self) -> Option<File> {
        self.folder.try_clone().ok().map(File::from)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Removes a file; succeeds if there is none.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the inode of an entry of any kind; `None` if there is no such entry.
    pub(super) fn inode(&self, name: &str) -> Option<u64> {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| found.st_ino)
    }

    /// Whether the path still leads to the opened directory.
    pub(super) fn is_in_place(&self) -> bool {
        let found = fstat(&self.folder).map(|held| held.st_ino);
        let there = statat(rustix::fs::CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW).map(|there| there.st_ino);
        found.is_ok() && found == there
    }

    pub(super) fn refused(&self, name: &str, error: io::Error) -> JournalError {
        refused(&self.path.join(name), error)
    }
}

/// Makes the error for a path that could not be opened or written; names a link, a pipe or a directory in its place.
pub(super) fn refused(path: &Path, cause: io::Error) -> JournalError {
    let there = statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    let kind = there.ok().map(|there| FileType::from_raw_mode(there.st_mode));
    let what = match (kind, Errno::from_io_error(&cause)) {
        (Some(FileType::Symlink), Some(Errno::LOOP | Errno::NOTDIR | Errno::EXIST)) => Some("a link"),
        (Some(FileType::RegularFile), Some(Errno::NOTDIR)) => Some("a file"),
        (Some(FileType::Directory), Some(Errno::ISDIR)) => Some("a directory"),
        (Some(FileType::RegularFile | FileType::Directory | FileType::Symlink) | None, _) => None,
        _ => Some("not a regular file"),
    };
    match what {
        Some(what) => JournalError::NotOurs { path: path.to_path_buf(), what },
        None => JournalError::Write { path: path.to_path_buf(), cause },
    }
}

/// Returns a regular file with its size.
fn ordinary(file: OwnedFd) -> io::Result<(File, u64)> {
    let found = fstat(&file)?;
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if is_file {
        Ok((file.into(), found.st_size.cast_unsigned()))
    } else {
        Err(io::Error::other("it is not a regular file"))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "simulates other programs")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_reached_through_a_link_and_only_ordinary_files_are_read() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let ours = Handle::make(root.path()).unwrap();
        for name in ["file", "dangling"] {
            std::fs::write(outside.path().join("file"), "theirs").unwrap();
            symlink(outside.path().join(name), ours.path().join(name)).unwrap();
            assert!(ours.create(name).is_err() && ours.open(name).is_err() && ours.open_or_create(name).is_err());
            ours.replace(name, b"ours").unwrap();
            assert_eq!(ours.text(name, 10).unwrap(), "ours");
        }
        assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"theirs");
        assert!(!outside.path().join("dangling").exists());
        symlink(outside.path(), ours.path().join("runs")).unwrap();
        let error = ours.make_below(["runs", "1"]).unwrap_err();
        assert!(ours.refused("runs", error).to_string().ends_with("runs is a link"));
        symlink("/dev/zero", ours.path().join("zero")).unwrap();
        assert!(ours.text("zero", 10).is_none());
        let pipe = std::process::Command::new("mkfifo").arg(ours.path().join("pipe")).status().unwrap();
        assert!(pipe.success() && ours.text("pipe", 10).is_none() && ours.open_or_create("pipe").is_err());
        assert_eq!(ours.read("file", 2).unwrap(), b"ou", "of bounded size");
    }

    #[test]
    fn a_folder_that_is_replaced_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let ours = Handle::make(root.path()).unwrap();
        assert!(ours.is_in_place());
        std::fs::remove_dir(ours.path()).unwrap();
        assert!(!ours.is_in_place());
        std::fs::create_dir(ours.path()).unwrap();
        std::fs::write(ours.path().join("x"), "").unwrap();
        assert!(Handle::existing(root.path()).unwrap().inode("x").is_some());
    }
}
