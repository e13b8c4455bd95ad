//! The directories of runs in a journal, and of their attempts.

use super::error::JournalError;
use super::folders::{AttemptFolder, failed, highest_attempts, highest_run};
use super::handle::Handle;
use crate::engine::At;
use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of a log is read at once, in bytes.
const PIECE: u64 = 256 << 10;

/// The files of runs in `.forkhestra/`, next to the database.
#[derive(Debug)]
pub struct RunFiles {
    /// The handle of `.forkhestra/`.
    ours: Handle,
    /// The directory of the step that the last attempt was made for.
    step_folder: RefCell<Option<Handle>>,
}

impl RunFiles {
    /// The files in this directory.
    pub(super) fn new(ours: Handle) -> Self {
        Self { ours, step_folder: RefCell::default() }
    }

    /// The handle of `.forkhestra/`.
    pub(super) fn handle(&self) -> &Handle {
        &self.ours
    }

    /// Returns the highest number of a run that has left files, or 0.
    pub(super) fn highest_run(&self) -> i64 {
        highest_run(self.ours.path())
    }

    /// Creates the directory of an attempt. Returns where an existing entry at that path was moved.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn attempt(
        &self,
        run: i64,
        step: u32,
        name: &str,
        attempt: u32,
    ) -> Result<(AttemptFolder, Option<PathBuf>), JournalError> {
        let [run, step] = [run.to_string(), format!("{step}-{name}")];
        let path = ["runs", &run, &step].iter().fold(self.ours.path().to_path_buf(), |path, name| path.join(name));
        let known = self.step_folder.take().filter(|known| known.path() == path && known.is_in_place());
        let above = known.map_or_else(|| self.make_step_folder(&run, &step), Ok)?;
        let made = AttemptFolder::make(&above, attempt);
        self.step_folder.replace(Some(above));
        made
    }

    fn make_step_folder(&self, run: &str, step: &str) -> Result<Handle, JournalError> {
        let mut above = self.ours.clone();
        for name in ["runs", run, step] {
            above = above.make_below([name]).map_err(|error| above.refused(name, error))?;
        }
        Ok(above)
    }

    /// Returns the directory of an attempt, whether it exists or not.
    #[must_use]
    pub fn attempt_folder(&self, run: i64, step: u32, name: &str, attempt: u32) -> AttemptFolder {
        AttemptFolder::at(&self.ours, run, step, name, attempt)
    }

    /// Stores a report next to a run's transcripts, or a report of several runs above them. Replaces an earlier one,
    /// and returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_report(&self, run: Option<i64>, ending: &str, text: &str) -> Result<PathBuf, JournalError> {
        let (run, name) = (run.map(|run| run.to_string()), format!("report.{ending}"));
        let place = std::iter::once("runs").chain(run.as_deref());
        let folder = self.ours.make_below(place).map_err(|error| self.ours.refused("runs", error))?;
        folder.replace(&name, text.as_bytes())?;
        let path = folder.path().join(name);
        Ok(path)
    }

    /// Returns the highest attempt of each step that has left a directory, so that nothing is ever overwritten, not
    /// even what the database has lost.
    #[must_use]
    pub fn highest_attempts(&self, run: i64) -> Vec<(u32, u32)> {
        highest_attempts(&self.run_folder(run))
    }

    /// Returns the directory of a run's transcripts, whether it exists or not.
    #[must_use]
    pub fn run_folder(&self, run: i64) -> PathBuf {
        self.ours.path().join("runs").join(run.to_string())
    }

    /// Creates the directory of a run's transcripts.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn make_run_folder(&self, run: i64) -> Result<(), JournalError> {
        let made = self.ours.make_below(["runs", &run.to_string()]);
        made.map(drop).map_err(|error| self.ours.refused("runs", error))
    }

    /// Writes a file into the directory of a run's transcripts, next to its attempts.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_in_run_folder(&self, run: i64, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let folder = self.ours.make_below(["runs", &run.to_string()]);
        let folder = folder.map_err(|error| self.ours.refused("runs", error))?;
        folder.replace(name, bytes)
    }

    /// Returns the next piece of a file in an attempt's directory; empty at its end, and if there is no such file.
    ///
    /// # Errors
    /// When the file exists but cannot be read.
    pub fn piece(&self, path: &Path, offset: u64) -> Result<Vec<u8>, JournalError> {
        let read = || {
            let mut file = self.ours.open_below(path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut piece = Vec::new();
            file.take(PIECE).read_to_end(&mut piece)?;
            Ok(piece)
        };
        match read() {
            Err(error) if io::Error::kind(&error) == ErrorKind::NotFound => Ok(Vec::new()),
            other => other.map_err(|cause| JournalError::Read { path: path.to_path_buf(), cause }),
        }
    }

    /// Copies the directory of an attempt from another root, where the run and the attempt may have other numbers. An
    /// attempt that was copied before stays as it is.
    ///
    /// # Errors
    /// When it cannot be written. Files that cannot be read are left out.
    pub fn adopt_attempt(
        &self,
        run: i64,
        at: &At,
        from: &Path,
        (their_run, attempt): (i64, u32),
    ) -> Result<(), JournalError> {
        if self.attempt_folder(run, at.step, &at.name, at.attempt).path().is_dir() {
            return Ok(());
        }
        let step = format!("{}-{}", at.step, at.name);
        let names = ["runs", &their_run.to_string(), &step, &attempt.to_string()];
        let theirs = Handle::existing(from).and_then(|theirs| theirs.below(names));
        let Ok(theirs) = theirs else { return Ok(()) };
        let (ours, _) = self.attempt(run, at.step, &at.name, at.attempt)?;
        let ours = ours.writable()?;
        let entries = fs::read_dir(theirs.path()).into_iter().flatten().flatten();
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            // Only ordinary files that are reached without a link.
            let Ok(mut file) = theirs.open(&name) else { continue };
            let copied = ours.create(&name).and_then(|mut copy| io::copy(&mut file, &mut copy));
            copied.map_err(failed(&ours.path().join(&name)))?;
        }
        Ok(())
    }

    /// Checks that the directory of runs is not a link: what is removed in it would be another program's.
    pub(super) fn check_runs(&self) -> Result<(), JournalError> {
        match self.ours.below(["runs"]) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.ours.refused("runs", error)),
            _ => Ok(()),
        }
    }

    /// Removes the directory of a run.
    pub(super) fn remove_run(&self, run: i64) -> Result<(), JournalError> {
        let folder = self.run_folder(run);
        match fs::remove_dir_all(&folder) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => Err(JournalError::Write { path: folder, cause }),
            _ => Ok(()),
        }
    }
}
