//! How pure modules reach the disk and the environment: through two small traits, which tests implement with a map.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// What is at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Whether we may execute it.
        executable: bool,
        /// Its size in bytes.
        bytes: u64,
    },
    /// A directory.
    Folder,
    /// A device, a socket or a pipe.
    Other,
}

/// The files that pure modules may look at.
pub trait Files {
    /// Returns the whole content of a file.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Returns the first bytes of a file, at most `bytes` of them.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>>;

    /// Returns what is at a path, links followed.
    ///
    /// # Errors
    /// Any error of the operating system, including `NotFound`.
    fn kind(&self, path: &Path) -> io::Result<Kind>;

    /// Returns the names in a directory, in no particular order; empty if the path is not a directory.
    fn names(&self, _folder: &Path) -> Vec<String> {
        Vec::new()
    }

    /// Whether the path is a symbolic link, wherever it leads.
    fn is_link(&self, _path: &Path) -> bool {
        false
    }

    /// Returns the path without links, `.` and `..`.
    ///
    /// # Errors
    /// Any error of the operating system.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
}

/// The name under which an [`Env`] holds the command line's choice of color; no environment variable has this name.
pub const COLOR: &str = "--color";

/// The environment variables that pure modules may read.
pub trait Env {
    /// Returns the value of a variable, if it is set.
    fn var(&self, name: &str) -> Option<OsString>;

    /// Whether we run as root.
    fn is_root(&self) -> bool {
        false
    }
}

/// The most paths whose kind is cached. A chain may name thousands of programs, each looked for in every directory of
/// PATH, and hardly one of these paths is looked up again.
const MOST_KINDS: usize = 4_096;

/// A cache for files that are looked up many times: what is at a path is looked up once, unless there are very many.
pub struct KnownFiles<'a> {
    files: &'a dyn Files,
    // Not by paths, whose hash goes through their components.
    kinds: RefCell<HashMap<OsString, Option<Kind>>>,
    links: RefCell<HashMap<OsString, bool>>,
    heads: RefCell<HashMap<(OsString, usize), Vec<u8>>>,
}

impl<'a> KnownFiles<'a> {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(files: &'a dyn Files) -> Self {
        Self { files, kinds: RefCell::default(), links: RefCell::default(), heads: RefCell::default() }
    }
}

impl Files for KnownFiles<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
        let wanted = (path.as_os_str().to_os_string(), bytes);
        if let Some(known) = self.heads.borrow().get(&wanted) {
            return Ok(known.clone());
        }
        let head = self.files.head(path, bytes)?;
        self.heads.borrow_mut().insert(wanted, head.clone());
        Ok(head)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        if let Some(known) = self.kinds.borrow().get(path.as_os_str()) {
            return known.ok_or(io::ErrorKind::NotFound.into());
        }
        let kind = self.files.kind(path);
        let known = match &kind {
            Ok(kind) => Some(*kind),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => return kind,
        };
        let mut kinds = self.kinds.borrow_mut();
        if kinds.len() >= MOST_KINDS {
            kinds.clear();
        }
        kinds.insert(path.as_os_str().to_os_string(), known);
        kind
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        self.files.names(folder)
    }

    fn is_link(&self, path: &Path) -> bool {
        if let Some(known) = self.links.borrow().get(path.as_os_str()) {
            return *known;
        }
        let is_link = self.files.is_link(path);
        self.links.borrow_mut().insert(path.as_os_str().to_os_string(), is_link);
        is_link
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.files.canonical(path)
    }
}
