//! Checkpoints: what a worker of a unit has done so far, in the hub, so that another one can continue it elsewhere. The
//! commits on the unit's ref have, besides the bundle, the events of its run and the directories of its attempts.

use super::HubError;
use super::hub_git::{self, HubGit};
use super::units::{BUNDLE, Claim, FoundUnit, HubUnits};
use crate::unit::UnitStage;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The file of a run's facts in the tree of a unit's commits.
const RUN: &str = "run.json";
/// The file of a run's events, one line each.
const EVENTS: &str = "events.ndjson";
/// The directory of the attempts.
const ATTEMPTS: &str = "attempts";

/// The file of the limits with which a run continues, one line each.
const LIMITS: &str = "limits.txt";

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

/// What workers of units have handed over, in a hub.
#[derive(Debug, Clone, Copy)]
pub struct KeptWork<'a>(pub(super) &'a HubGit);

impl KeptWork<'_> {
    /// Keeps the work of a unit so far, and its run. Returns whether the claim still holds.
    ///
    /// # Errors
    /// When git fails.
    pub fn checkpoint(self, claim: &mut Claim, work: &str, run: KeptRun<'_>) -> Result<bool, HubError> {
        let tree = self.tree_of_unit(claim, Some(run), None)?;
        HubUnits(self.0).record(claim, UnitStage::Checkpoint, (Some(work), Some(&tree)), None)
    }

    /// Hands over what a worker has done. With an exit code, the unit is done and never runs again; without, another
    /// worker continues it. Returns whether the claim still held.
    ///
    /// # Errors
    /// When git fails.
    pub fn hand_over(self, claim: &mut Claim, kept: KeptUnit<'_>, exit: Option<u8>) -> Result<bool, HubError> {
        let KeptUnit { work, run, error } = kept;
        let is_more = run.is_some() || error.is_some();
        let tree = is_more.then(|| self.tree_of_unit(claim, run, error)).transpose()?;
        let stage = if exit.is_some() { UnitStage::Done } else { UnitStage::Checkpoint };
        HubUnits(self.0).record(claim, stage, (Some(work), tree.as_deref()), exit)
    }

    /// Returns the reason for which a unit was refused, if it was.
    #[must_use]
    pub fn error(self, found: &FoundUnit) -> Option<String> {
        self.0.ask(&["cat-file", "blob", &format!("{}:{ERROR}", found.commit)]).ok()
    }

    fn tree_of_unit(self, claim: &Claim, run: Option<KeptRun<'_>>, error: Option<&str>) -> Result<String, HubError> {
        let bundle = self.0.ask(&["rev-parse", "--verify", &format!("{}:{BUNDLE}", claim.commit)])?;
        let blob = |text: &str| self.0.ask_with(&["hash-object", "-w", "--stdin"], &[], text.as_bytes());
        let mut entries = format!("100644 blob {bundle}\t{BUNDLE}\n");
        if let Some(error) = error {
            // Writing to a String cannot fail.
            let _ = writeln!(entries, "100644 blob {}\t{ERROR}", blob(error)?);
        }
        let Some(run) = run else { return self.0.ask_with(&["mktree"], &[], entries.as_bytes()) };
        let (facts, events) = (blob(run.facts)?, blob(run.events)?);
        let index = self.0.index(&format!("{}.attempts", claim.unit));
        // Even what a person's ignore rules exclude, such as logs.
        self.0.in_tree(&["add", "--all", "--force", "--", ":/"], run.attempts, &index)?;
        let attempts = self.0.in_tree(&["write-tree"], run.attempts, &index)?;
        let _ = write!(
            entries,
            "100644 blob {events}\t{EVENTS}\n100644 blob {facts}\t{RUN}\n040000 tree {attempts}\t{ATTEMPTS}\n"
        );
        self.0.ask_with(&["mktree"], &[], entries.as_bytes())
    }

    /// Returns the facts and the events of a unit's run at its last checkpoint; `None` if there is no checkpoint.
    #[must_use]
    pub fn run(self, found: &FoundUnit) -> Option<(String, String)> {
        let file = |name: &str| self.0.ask(&["cat-file", "blob", &format!("{}:{name}", found.commit)]).ok();
        Some((file(RUN)?, file(EVENTS)?))
    }

    /// Returns the text of a file that a unit's run has left next to its attempts; `None` if there is none.
    #[must_use]
    pub fn file(self, found: &FoundUnit, name: &str) -> Option<String> {
        self.0.ask(&["cat-file", "blob", &format!("{}:{ATTEMPTS}/{name}", found.commit)]).ok()
    }

    /// Offers a unit to workers again, after one has handed it over without a result or was lost. One that still works
    /// on it loses its claim. A run that continues gets `limits`, as `--limit` takes them. Returns `false` if there
    /// is no such unit, if it is done, or if somebody else has changed it at the same moment.
    ///
    /// # Errors
    /// When git fails.
    pub fn queue_again(self, unit: &str, limits: &[String]) -> Result<bool, HubError> {
        let Some(found) = HubUnits(self.0).get(unit)?.filter(|found| found.record.stage != UnitStage::Done) else {
            return Ok(false);
        };
        let entries = self.0.ask(&["ls-tree", &found.commit])?;
        let kept = entries.lines().filter(|line| !line.ends_with(&format!("\t{LIMITS}")));
        let mut entries: String = kept.flat_map(|line| [line, "\n"]).collect();
        let text: String = limits.iter().flat_map(|limit| [limit.as_str(), "\n"]).collect();
        let blob = self.0.ask_with(&["hash-object", "-w", "--stdin"], &[], text.as_bytes())?;
        // Writing to a String cannot fail.
        let _ = writeln!(entries, "100644 blob {blob}\t{LIMITS}");
        let tree = self.0.ask_with(&["mktree"], &[], entries.as_bytes())?;
        HubUnits(self.0).offer(unit, &found, &tree)
    }

    /// Returns the limits with which a unit's run continues, as `--limit` takes them.
    #[must_use]
    pub fn limits(self, found: &FoundUnit) -> Vec<String> {
        let text = self.0.ask(&["cat-file", "blob", &format!("{}:{LIMITS}", found.commit)]).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }

    /// Writes the attempts of a unit's run into a directory.
    ///
    /// # Errors
    /// When git fails, or the directory cannot be written.
    pub fn restore_attempts(self, unit: &str, found: &FoundUnit, to: &Path) -> Result<(), HubError> {
        self.restore(unit, &format!("{}:{ATTEMPTS}", found.commit), to)
    }

    /// Writes one attempt of a unit's run into a directory, below that of its step. Does nothing if it is not kept.
    ///
    /// # Errors
    /// When git fails, or the directory cannot be written.
    pub fn restore_attempt(self, found: &FoundUnit, (step, attempt): (&str, u32), to: &Path) -> Result<(), HubError> {
        let tree = format!("{}:{ATTEMPTS}/{step}/{attempt}", found.commit);
        if self.0.ask(&["rev-parse", "--verify", "--quiet", &tree]).is_err() {
            return Ok(());
        }
        let to = to.join(step).join(attempt.to_string());
        self.make_folder(&to)?;
        self.restore(&format!("{}-{step}-{attempt}", found.commit), &tree, &to)
    }

    /// Creates a directory in the hub, and those above it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make_folder(self, path: &Path) -> Result<(), HubError> {
        #[expect(clippy::disallowed_methods, reason = "the owner of the hub, in which this directory is")]
        let created = std::fs::create_dir_all(path);
        created.map_err(|cause| HubError::Write { path: path.to_path_buf(), cause })
    }

    fn restore(self, name: &str, tree: &str, to: &Path) -> Result<(), HubError> {
        let index = self.0.index(&format!("{name}.attempts"));
        // A hub whose workers are all on other machines has had no index yet.
        hub_git::write(&index.with_file_name(".keep"), b"")?;
        let _ = std::fs::remove_file(&index);
        self.0.in_tree(&["read-tree", tree], to, &index)?;
        let done = self.0.in_tree(&["checkout-index", "--all", "--force"], to, &index).map(drop);
        let _ = std::fs::remove_file(&index);
        done
    }

    /// A directory in the hub for what is copied out of a unit's run. It has the form of a root.
    #[must_use]
    pub fn staging(self, unit: &str) -> PathBuf {
        self.0.path().join("staging").join(unit)
    }

    /// Removes the directory for what is copied out of a unit's run.
    pub fn clear_staging(self, unit: &str) {
        let _ = std::fs::remove_dir_all(self.staging(unit));
    }
}
