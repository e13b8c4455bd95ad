//! How pure rooms reach the disk and the environment: two small traits, a map in tests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// What stands at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Whether we may execute it.
        executable: bool,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A folder.
    Folder,
    /// A device, a socket, a pipe.
    Other,
}

/// The files that pure rooms may look at.
pub trait Files {
    /// The whole content of a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// At most the first `bytes` of a file.
    ///
    /// # Errors
    /// What the operating system says.
    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>>;

    /// What stands at a path.
    ///
    /// # Errors
    /// What the operating system says, `NotFound` among it.
    fn kind(&self, path: &Path) -> io::Result<Kind>;

    /// The names of what a folder holds, in no order; none of what is no folder.
    fn names(&self, _folder: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Whether a link stands there, wherever it leads.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }

    /// The path without links and dots.
    ///
    /// # Errors
    /// What the operating system says.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
}

/// The name by which the command line's choice of colour is asked for in an [`Env`]; no variable is called so.
pub const COLOR: &str = "--color";

/// The environment variables that pure rooms may ask for.
pub trait Env {
    /// The value of a variable, if it is set.
    fn var(&self, name: &str) -> Option<OsString>;

    /// Whether we run as root.
    fn is_root(&self) -> bool {
        false
    }
}

/// Files that are asked about many times within a moment: what stands at a path is looked at once.
pub struct KnownFiles<'a> {
    files: &'a dyn Files,
    kinds: RefCell<HashMap<PathBuf, Option<Kind>>>,
}

impl<'a> KnownFiles<'a> {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(files: &'a dyn Files) -> Self {
        Self { files, kinds: RefCell::default() }
    }
}

impl Files for KnownFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
        self.files.head(path, bytes)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        if let Some(known) = self.kinds.borrow().get(path) {
            return known.ok_or(io::ErrorKind::NotFound.into());
        }
        let kind = self.files.kind(path);
        let known = match &kind {
            Ok(kind) => Some(*kind),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => return kind,
        };
        self.kinds.borrow_mut().insert(path.to_path_buf(), known);
        kind
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        self.files.names(folder)
    }

    fn is_link(&self, path: &Path) -> bool {
        self.files.is_link(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.files.canonical(path)
    }
}
