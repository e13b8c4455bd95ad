//! The programs in the directories of PATH, looked up once.

use super::files::{Env, Files, Kind, KnownFiles};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A cache for what is in the directories of PATH, for as long as the same programs are to be used. Everything else is
/// looked up each time: an agent may change it.
pub struct KnownPrograms<'a> {
    files: &'a dyn Files,
    known: KnownFiles<'a>,
    // Texts, because paths are compared component by component.
    folders: Vec<OsString>,
}

impl<'a> KnownPrograms<'a> {
    /// Creates an empty cache for the directories of PATH as it is now.
    #[must_use]
    pub fn new(files: &'a dyn Files, env: &dyn Env) -> Self {
        let path = env.var("PATH").unwrap_or_default();
        let folders = path.as_bytes().split(|byte| *byte == b':');
        let folders = folders.map(|folder| OsStr::from_bytes(folder).to_os_string()).collect();
        Self { files, known: KnownFiles::new(files), folders }
    }

    /// The files to ask about a path.
    fn of(&self, path: &Path) -> &dyn Files {
        let is_program =
            path.parent().is_some_and(|folder| self.folders.iter().any(|known| known == folder.as_os_str()));
        if is_program { &self.known } else { self.files }
    }
}

impl fmt::Debug for KnownPrograms<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("KnownPrograms").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl Files for KnownPrograms<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
        self.of(path).head(path, bytes)
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        self.of(path).kind(path)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Counts how often it is asked.
    #[derive(Default)]
    struct Counting(Cell<u32>);

    impl Files for Counting {
        fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn head(&self, _path: &Path, _bytes: usize) -> io::Result<Vec<u8>> {
            Ok(Vec::new())
        }

        fn kind(&self, _path: &Path) -> io::Result<Kind> {
            self.0.set(self.0.get() + 1);
            Err(io::ErrorKind::NotFound.into())
        }
    }

    impl Env for Counting {
        fn var(&self, _name: &str) -> Option<OsString> {
            Some("/bin:/usr/bin".into())
        }
    }

    #[test]
    fn only_what_is_in_a_directory_of_path_is_looked_up_once() {
        for (path, asked) in [("/usr/bin/agent", 1), ("/project/.git/hooks", 2), ("/usr/bin/of/agent", 2)] {
            let world = Counting::default();
            let programs = KnownPrograms::new(&world, &world);
            assert!(programs.kind(Path::new(path)).is_err() && programs.kind(Path::new(path)).is_err());
            assert_eq!(world.0.get(), asked, "{path}");
        }
    }
}
