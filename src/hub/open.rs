//! Which batches are running, so that workers without a unit know whether more units will come.

use super::HubError;
use super::hub_git::HubGit;
use super::remote::HubRemote;

/// The refs of the batches that are running.
const OPEN: &str = "refs/forkhestra/open/";

/// The mark of a running batch, which is removed when this is dropped. If its process is killed, the mark stays until
/// the batch has been resumed.
#[derive(Debug)]
pub struct OpenBatch {
    hub: HubGit,
    name: String,
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        let _ = self.hub.ask(&["update-ref", "-d", &self.name]);
    }
}

/// Which batches of a hub are running.
#[derive(Debug, Clone, Copy)]
pub struct OpenBatches<'a>(pub(super) &'a HubGit);

impl OpenBatches<'_> {
    /// Marks a batch or an evaluation with this number as running. No other one can be: the mark of one that was killed
    /// is removed.
    ///
    /// # Errors
    /// When git fails.
    pub fn open(self, run: i64) -> Result<OpenBatch, HubError> {
        let (name, empty) = (format!("{OPEN}{run}"), self.0.ask_with(&["mktree"], &[], &[])?);
        let killed = self.0.ask(&["for-each-ref", "--format=delete %(refname)", OPEN])?;
        let killed: String = killed.lines().flat_map(|line| [line, "\n"]).collect();
        self.0.ask_with(&["update-ref", "--stdin"], &[], killed.as_bytes())?;
        self.0.ask(&["update-ref", &name, &empty])?;
        Ok(OpenBatch { hub: self.0.clone(), name })
    }

    /// Returns whether a batch is running, so that there may be more units soon.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached.
    pub fn is_any_open(self) -> Result<bool, HubError> {
        let pattern = format!("{OPEN}*");
        let found = match self.0.url() {
            Some(url) => HubRemote(self.0).with_person(url, &["ls-remote", url, &pattern])?,
            None => self.0.ask(&["for-each-ref", "--count=1", OPEN])?,
        };
        Ok(!found.is_empty())
    }
}
