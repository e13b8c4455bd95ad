//! Checkpoints: what a worker of a unit has done so far, in the hub, so that another one can continue it elsewhere. The
//! commits on the unit's ref have, besides the bundle, the events of its run and the directories of its attempts.

use super::units::BUNDLE;
use super::{Claim, FoundUnit, Hub, HubError};
use crate::unit::UnitStage;
use std::path::Path;

/// The file of a run's facts in the tree of a unit's commits.
const RUN: &str = "run.json";
/// The file of a run's events, one line each.
const EVENTS: &str = "events.ndjson";
/// The directory of the attempts.
const ATTEMPTS: &str = "attempts";

/// A run as a checkpoint keeps it.
#[derive(Debug, Clone, Copy)]
pub struct KeptRun<'a> {
    /// What is known about it besides its events, as JSON.
    pub facts: &'a str,
    /// Its events, one line each.
    pub events: &'a str,
    /// The directory with its attempts.
    pub attempts: &'a Path,
}

impl Hub {
    /// Keeps the work of a unit so far, and its run. Returns whether the claim still holds.
    ///
    /// # Errors
    /// When git fails.
    pub fn checkpoint_run(&self, claim: &mut Claim, work: &str, run: KeptRun<'_>) -> Result<bool, HubError> {
        let tree = self.tree_of_run(claim, run)?;
        self.record(claim, UnitStage::Checkpoint, (Some(work), Some(&tree)), None)
    }

    fn tree_of_run(&self, claim: &Claim, run: KeptRun<'_>) -> Result<String, HubError> {
        let bundle = self.ask(&["rev-parse", "--verify", &format!("{}:{BUNDLE}", claim.commit)])?;
        let blob = |text: &str| self.ask_with(&["hash-object", "-w", "--stdin"], &[], text.as_bytes());
        let (facts, events) = (blob(run.facts)?, blob(run.events)?);
        let index = self.index(&format!("{}.attempts", claim.unit));
        // Whatever a person ignores: logs are among it.
        self.in_tree(&["add", "--all", "--force", "--", ":/"], run.attempts, &index)?;
        let attempts = self.in_tree(&["write-tree"], run.attempts, &index)?;
        let entries = format!(
            "100644 blob {bundle}\t{BUNDLE}\n100644 blob {events}\t{EVENTS}\n100644 blob {facts}\t{RUN}\n040000 tree \
             {attempts}\t{ATTEMPTS}\n"
        );
        self.ask_with(&["mktree"], &[], entries.as_bytes())
    }

    /// Returns the facts and the events of a unit's run at its last checkpoint; `None` if there is no checkpoint.
    #[must_use]
    pub fn kept_run(&self, found: &FoundUnit) -> Option<(String, String)> {
        let file = |name: &str| self.ask(&["cat-file", "blob", &format!("{}:{name}", found.commit)]).ok();
        Some((file(RUN)?, file(EVENTS)?))
    }

    /// Writes the attempts of a unit's run into a directory.
    ///
    /// # Errors
    /// When git fails, or the directory cannot be written.
    pub fn restore_attempts(&self, unit: &str, found: &FoundUnit, to: &Path) -> Result<(), HubError> {
        let index = self.index(&format!("{unit}.attempts"));
        let _ = std::fs::remove_file(&index);
        self.in_tree(&["read-tree", &format!("{}:{ATTEMPTS}", found.commit)], to, &index)?;
        self.in_tree(&["checkout-index", "--all", "--force"], to, &index).map(drop)
    }
}
