//! Checkpoints: what a worker of a unit has done so far, in the hub, so that another one can continue it elsewhere. The
//! commits on the unit's ref have, besides the bundle, the events of its run and the directories of its attempts.

use super::units::BUNDLE;
use super::{Claim, FoundUnit, Hub, HubError};
use crate::unit::UnitStage;
use std::fmt::Write;
use std::path::Path;

/// The file of a run's facts in the tree of a unit's commits.
const RUN: &str = "run.json";
/// The file of a run's events, one line each.
const EVENTS: &str = "events.ndjson";
/// The directory of the attempts.
const ATTEMPTS: &str = "attempts";

/// The file with the reason for which a unit was refused.
const ERROR: &str = "error.txt";

/// What a worker hands over.
#[derive(Debug, Clone, Copy)]
pub struct KeptUnit<'a> {
    /// The commit with the work.
    pub work: &'a str,
    /// Its run, if there is one and the hub is to have it.
    pub run: Option<KeptRun<'a>>,
    /// Why it was refused, if it was.
    pub error: Option<&'a str>,
}

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
        let tree = self.tree_of_unit(claim, Some(run), None)?;
        self.record(claim, UnitStage::Checkpoint, (Some(work), Some(&tree)), None)
    }

    /// Hands over what a worker has done. With an exit code, the unit is done and never runs again; without, another
    /// worker continues it. Returns whether the claim still held.
    ///
    /// # Errors
    /// When git fails.
    pub fn hand_over(&self, claim: &mut Claim, kept: KeptUnit<'_>, exit: Option<u8>) -> Result<bool, HubError> {
        let KeptUnit { work, run, error } = kept;
        let is_more = run.is_some() || error.is_some();
        let tree = is_more.then(|| self.tree_of_unit(claim, run, error)).transpose()?;
        let stage = if exit.is_some() { UnitStage::Done } else { UnitStage::Checkpoint };
        self.record(claim, stage, (Some(work), tree.as_deref()), exit)
    }

    /// Returns the reason for which a unit was refused, if it was.
    #[must_use]
    pub fn error_of(&self, found: &FoundUnit) -> Option<String> {
        self.ask(&["cat-file", "blob", &format!("{}:{ERROR}", found.commit)]).ok()
    }

    fn tree_of_unit(&self, claim: &Claim, run: Option<KeptRun<'_>>, error: Option<&str>) -> Result<String, HubError> {
        let bundle = self.ask(&["rev-parse", "--verify", &format!("{}:{BUNDLE}", claim.commit)])?;
        let blob = |text: &str| self.ask_with(&["hash-object", "-w", "--stdin"], &[], text.as_bytes());
        let mut entries = format!("100644 blob {bundle}\t{BUNDLE}\n");
        if let Some(error) = error {
            // Writing to a String cannot fail.
            let _ = writeln!(entries, "100644 blob {}\t{ERROR}", blob(error)?);
        }
        let Some(run) = run else { return self.ask_with(&["mktree"], &[], entries.as_bytes()) };
        let (facts, events) = (blob(run.facts)?, blob(run.events)?);
        let index = self.index(&format!("{}.attempts", claim.unit));
        // Whatever a person ignores: logs are among it.
        self.in_tree(&["add", "--all", "--force", "--", ":/"], run.attempts, &index)?;
        let attempts = self.in_tree(&["write-tree"], run.attempts, &index)?;
        let _ = write!(
            entries,
            "100644 blob {events}\t{EVENTS}\n100644 blob {facts}\t{RUN}\n040000 tree {attempts}\t{ATTEMPTS}\n"
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
