//! Brings the line into a branch of the user's repository. No other file of the hub writes to that repository.

use super::hub_git::LINE;
use super::snapshot::UserTree;
use super::store::Hub;
use super::{HubError, git};
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

/// Advances a branch of a person's repository from one commit to one of its descendants.
///
/// # Errors
/// When git fails.
pub fn fast_forward(
    hub: &Hub,
    repository: &Repository,
    branch: &str,
    from: &str,
    to: &str,
) -> Result<FastForward, HubError> {
    let here = git::personal(&["symbolic-ref", "--quiet", "HEAD"], &repository.top).unwrap_or_default();
    let name = format!("refs/heads/{branch}");
    let (user, from_hub) = (UserTree(repository), hub.path().display().to_string());
    if here != name {
        git::personal(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &from_hub, LINE], &repository.top)?;
        // A push changes the branch only if it is still where it was, and not if another working tree has it.
        let lease = format!("--force-with-lease={name}:{from}");
        let refs = format!("{to}:{name}");
        let push = ["push", "--quiet", "--no-verify", &lease, RECEIVE, "--", ".", &refs];
        return match git::personal(&push, &repository.top) {
            Err(_) if user.commit_of(branch).as_deref() != Some(from) => Ok(FastForward::Moved),
            pushed => pushed.map(|_| FastForward::Done),
        };
    }
    let files = user.uncommitted()?;
    let taken_along = if files.is_empty() { None } else { taken_along(hub, repository, from, to)? };
    if !files.is_empty() && taken_along.is_none() {
        return Ok(FastForward::Uncommitted(files));
    }
    git::personal(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &from_hub, LINE], &repository.top)?;
    if user.commit_of(branch).as_deref() != Some(from) {
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
fn taken_along(hub: &Hub, repository: &Repository, from: &str, to: &str) -> Result<Option<String>, HubError> {
    let now = UserTree(repository).snapshot(hub, from)?;
    let first = hub.commits().landed_since(from, to)?.into_iter().next().map(|(commit, _)| commit);
    let is_it = |commit: &String| hub.commits().tree_of(commit).ok() == hub.commits().tree_of(&now).ok();
    Ok(first.filter(is_it))
}
