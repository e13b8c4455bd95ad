//! The directories of runs in a journal, and of their attempts.

use super::error::JournalError;
use super::folders::{AttemptFolder, highest_attempts};
use super::handle::Handle;
use super::store::Journal;
use std::path::PathBuf;

impl Journal {
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
}
