//! Brings the line into a branch of the user's repository. No other file of the hub writes to that repository.

use super::{Hub, HubError, LINE, git};
use crate::context::Repository;

/// Receives a push without the repository's hooks, and refuses a branch that is checked out (git-config(1)).
const RECEIVE: &str = "--receive-pack=git -c core.hooksPath=/dev/null -c receive.denyCurrentBranch=refuse receive-pack";

/// The result of bringing the line into a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FastForward {
    /// The branch is where the line is.
    Done,
    /// The branch is checked out, and these files have uncommitted changes. Nothing was changed.
    Uncommitted(Vec<String>),
    /// The branch is checked out, and these files, which git ignores, are in the way. They were not changed.
    Ignored(Vec<String>),
    /// The branch has moved meanwhile. Nothing was changed.
    Moved,
}

impl Hub {
    /// Returns the commit of a branch in a person's repository; `None` if there is no such branch.
    #[must_use]
    pub fn commit_of(repository: &Repository, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        git::personal(&["rev-parse", "--verify", "--quiet", &name], &repository.top)
            .ok()
            .filter(|found| !found.is_empty())
    }

    /// Returns the commits of the line that a commit does not have, the oldest first, each with its title.
    ///
    /// # Errors
    /// When git fails.
    pub fn landed_since(&self, commit: &str, line: &str) -> Result<Vec<(String, String)>, HubError> {
        let range = format!("{commit}..{line}");
        let told = self.ask(&["log", "--first-parent", "--reverse", "--format=%H%x00%s", &range])?;
        let lines = told.lines().filter_map(|line| line.split_once('\0'));
        Ok(lines.map(|(commit, title)| (commit.to_string(), title.to_string())).collect())
    }

    /// Advances a branch of a person's repository from one commit to one of its descendants.
    ///
    /// # Errors
    /// When git fails.
    pub fn fast_forward(
        &self,
        repository: &Repository,
        branch: &str,
        from: &str,
        to: &str,
    ) -> Result<FastForward, HubError> {
        let here = git::personal(&["symbolic-ref", "--quiet", "HEAD"], &repository.top).unwrap_or_default();
        let name = format!("refs/heads/{branch}");
        let hub = self.path().display().to_string();
        if here != name {
            git::personal(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &hub, LINE], &repository.top)?;
            // A push changes the branch only if it is still where it was, and not if another working tree has it.
            let lease = format!("--force-with-lease={name}:{from}");
            let refs = format!("{to}:{name}");
            let push = ["push", "--quiet", "--no-verify", &lease, RECEIVE, "--", ".", &refs];
            return match git::personal(&push, &repository.top) {
                Err(_) if Self::commit_of(repository, branch).as_deref() != Some(from) => Ok(FastForward::Moved),
                pushed => pushed.map(|_| FastForward::Done),
            };
        }
        let files = Self::uncommitted(repository)?;
        let taken_along = if files.is_empty() { None } else { self.taken_along(repository, from, to)? };
        if !files.is_empty() && taken_along.is_none() {
            return Ok(FastForward::Uncommitted(files));
        }
        git::personal(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &hub, LINE], &repository.top)?;
        if Self::commit_of(repository, branch).as_deref() != Some(from) {
            return Ok(FastForward::Moved);
        }
        if let Some(begin) = taken_along {
            // The files already have `begin`; only the index and the branch lag behind. git writes no file that differs
            // from it.
            git::personal(&["read-tree", &begin], &repository.top)?;
            git::personal(&["update-ref", &name, &begin, from], &repository.top)?;
        }
        // A file that git ignores here may be the only copy, and is not overwritten.
        let (options, plain) = (format!("branch.{branch}.mergeOptions="), "merge.verifySignatures=false");
        let words = ["-c", &options, "-c", plain, "merge", "--quiet", "--ff-only", "--no-overwrite-ignore", to];
        match git::personal(&words, &repository.top) {
            Err(HubError::Git { why, .. }) if why.contains("would be overwritten") => {
                let files = why.lines().filter_map(|line| line.strip_prefix('\t')).map(str::to_string);
                Ok(FastForward::Ignored(files.collect()))
            }
            merged => merged.map(|_| FastForward::Done),
        }
    }

    /// Returns the commit of the line with a person's uncommitted changes, if the files are still as it has them. The
    /// workspaces of a batch began with these changes.
    fn taken_along(&self, repository: &Repository, from: &str, to: &str) -> Result<Option<String>, HubError> {
        let now = self.snapshot(repository, from)?;
        let first = self.landed_since(from, to)?.into_iter().next().map(|(commit, _)| commit);
        let is_it = |commit: &String| self.tree_of(commit).ok() == self.tree_of(&now).ok();
        Ok(first.filter(is_it))
    }
}
