//! The files that the user asks us to write, and what is known about the files of others.
#![expect(clippy::disallowed_methods, reason = "the owner of what is ambient")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Disk(());

impl Disk {
    pub(super) fn new() -> Self {
        Self(())
    }

    /// Returns every file below a directory, sorted by path; links are not followed.
    #[must_use]
    pub fn files_below(self, folder: &Path) -> Vec<PathBuf> {
        let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() => found.push(entry.path()),
                    _ => {}
                }
            }
        }
        found.sort();
        found
    }

    /// Whether files can be created in a directory.
    #[must_use]
    pub fn can_write(self, folder: &Path) -> bool {
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
    }

    /// Returns the user ID of a path's owner; none if the path does not exist. For a link, this is the owner of the
    /// link itself.
    #[must_use]
    pub fn owner(self, path: &Path) -> Option<u32> {
        fs::symlink_metadata(path).ok().map(|found| MetadataExt::uid(&found))
    }

    /// Creates a directory that the user requested, and the directories above it.
    ///
    /// # Errors
    /// When it cannot be created, or exists and is not an empty directory.
    pub fn make_empty(self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        match fs::read_dir(path)?.next() {
            Some(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty")),
            None => Ok(()),
        }
    }

    /// Creates a file that the user requested, and the directories above it. An existing file is never touched.
    ///
    /// # Errors
    /// `AlreadyExists`, or any other error of the operating system.
    pub fn create(self, path: &Path, content: &str) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(content.as_bytes())
    }

    /// Creates an empty file and its directory, for their owner only.
    ///
    /// # Errors
    /// `AlreadyExists`, or any other error of the operating system.
    pub fn create_private(self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
    }

    /// Checks whether a file can be created, by creating and removing it.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn try_out(self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).open(path)?;
        fs::remove_file(path)
    }

    /// Appends to a file that the user named; the file is created if it does not exist.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn append(self, path: &Path, text: &str) -> io::Result<()> {
        self.appender(path)?.write_all(text.as_bytes())
    }

    /// Opens a file that the user named, to append to it piece by piece; the file is created if it does not exist.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn appender(self, path: &Path) -> io::Result<File> {
        OpenOptions::new().create(true).append(true).open(path)
    }

    /// Writes a file that the user requested. An existing file is replaced as a whole, or not at all.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn write(self, path: &Path, content: &str) -> io::Result<()> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => self.replace(path, content),
            // A pipe or a device is written to, not replaced.
            Ok(metadata) if !metadata.is_dir() => {
                OpenOptions::new().write(true).open(path)?.write_all(content.as_bytes())
            }
            Ok(_) => Err(io::ErrorKind::IsADirectory.into()),
            Err(_) => self.create(path, content),
        }
    }

    /// Replaces a file that the user asked to be written, as a whole or not at all. Its permissions are kept.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn replace(self, path: &Path, content: &str) -> io::Result<()> {
        let path = fs::canonicalize(path)?;
        let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(content.as_bytes())?;
        file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Returns the size of a file, in bytes; `None` if there is no such file.
    #[must_use]
    pub fn size_of(self, path: &Path) -> Option<u64> {
        fs::metadata(path).ok().map(|found| found.len())
    }
}
