//! Which batches are running, so that workers without a unit know whether more units will come.

use super::{Hub, HubError};

/// The refs of the batches that are running.
const OPEN: &str = "refs/forkhestra/open/";

/// The mark of a running batch, which is removed when this is dropped. If its process is killed, the mark stays until
/// the batch has been resumed.
#[derive(Debug)]
pub struct OpenBatch {
    hub: Hub,
    name: String,
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        let _ = self.hub.ask(&["update-ref", "-d", &self.name]);
    }
}

impl Hub {
    /// Marks a batch or an evaluation with this number as running. No other one can be: the mark of one that was killed
    /// is removed.
    ///
    /// # Errors
    /// When git fails.
    pub fn open_batch(&self, run: i64) -> Result<OpenBatch, HubError> {
        let (name, empty) = (format!("{OPEN}{run}"), self.ask_with(&["mktree"], &[], &[])?);
        let killed = self.ask(&["for-each-ref", "--format=delete %(refname)", OPEN])?;
        let killed: String = killed.lines().flat_map(|line| [line, "\n"]).collect();
        self.ask_with(&["update-ref", "--stdin"], &[], killed.as_bytes())?;
        self.ask(&["update-ref", &name, &empty])?;
        Ok(OpenBatch { hub: self.clone(), name })
    }

    /// Returns whether a batch is running, so that there may be more units soon.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached.
    pub fn has_open_batch(&self) -> Result<bool, HubError> {
        let pattern = format!("{OPEN}*");
        let found = match &self.remote {
            Some(url) => self.with_person(url, &["ls-remote", url, &pattern])?,
            None => self.ask(&["for-each-ref", "--count=1", OPEN])?,
        };
        Ok(!found.is_empty())
    }
}
