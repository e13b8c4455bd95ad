//! `task land`: brings the tasks that have landed into a branch of the user's. The only command that brings
//! the work of batches into the user's repository, and only by a fast-forward.

use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::{Answered, answer, json_line};
use crate::cli::run::execute::command_line;
use crate::cli::task::args::TaskLandArgs;
use crate::cli::work::refused;
use crate::context::Repository;
use crate::engine::BatchState;
use crate::hub::{FastForward, Hub, UserTree, fast_forward};
use crate::journal::{Journal, JournalError};
use crate::source::{Diagnostic, counted};
use crate::world::World;
use serde_json::json;

/// Shows what has landed, or advances a branch to it.
pub(super) fn land(world: &World, common: &Common, args: &TaskLandArgs) -> Answered {
    let project = project(world, common);
    let Some(repository) = Repository::of(&project.root) else { return Err(nothing().into()) };
    let hub = Hub::existing(&project.root).ok_or_else(nothing)?;
    let line = hub.line().ok_or_else(nothing)?;
    let branch = args.into.clone();
    let from = match &branch {
        Some(branch) => UserTree(&repository).commit_of(branch).ok_or_else(|| no_branch(branch))?,
        None => repository.head(),
    };
    let journal = Journal::open(&project.root)?;
    let known = last_line(&journal)?;
    if known.as_ref().is_some_and(|known| *known != line && !hub.commits().is_ancestor(&line, known)) {
        return Err(moved(known.as_deref().unwrap_or_default()).into());
    }
    if has_landed(&journal)? == Some(false) {
        return Err(nothing().into());
    }
    hub.import(&repository, &from).map_err(|error| refused(&error))?;
    let commits = hub.commits().landed_since(&from, &line).map_err(|error| refused(&error))?;
    let count = counted(u32::try_from(commits.len()).unwrap_or(u32::MAX), "commit");
    let Some(branch) = branch else {
        let list: Vec<_> = commits.iter().map(|(commit, title)| json!({ "commit": commit, "title": title })).collect();
        if args.json {
            return Ok(answer(&json_line(json!({ "line": line, "commits": list }))));
        }
        if commits.is_empty() {
            return Ok(answer("Everything that has landed is in the branch that is checked out.\n"));
        }
        let lines = commits.iter().map(|(commit, title)| format!("{}  {title}\n", commit.get(..8).unwrap_or(commit)));
        let land = command_line(world, common, &project.root, "task land --into BRANCH");
        let hub = world.relative(hub.path());
        let words =
            format!("\n{count} landed. To bring them into a branch: {land}\nor: git fetch {hub} forkhestra/line\n");
        return Ok(answer(&(lines.collect::<String>() + &words)));
    };
    let told = |status: &str, words: String| {
        let json = json!({ "branch": branch, "status": status, "from": from, "to": line, "commits": commits.len() });
        answer(&if args.json { json_line(json) } else { words })
    };
    if commits.is_empty() {
        return Ok(told("current", format!("{branch} has everything that has landed.\n")));
    }
    if !hub.commits().is_ancestor(&from, &line) {
        return Err(apart(&branch).into());
    }
    match fast_forward(&hub, &repository, &branch, &from, &line).map_err(|error| refused(&error))? {
        FastForward::Done => {
            let short = line.get(..8).unwrap_or(&line);
            let count = match hub.commits().new_commits(&line, &from) {
                1 => "1 new commit".to_string(),
                many => format!("{many} new commits"),
            };
            Ok(told("advanced", format!("{branch} is now at {short} ({count})\n")))
        }
        FastForward::Uncommitted(files) => Err(uncommitted(&branch, &files).into()),
        FastForward::Ignored(files) => Err(ignored(&files).into()),
        FastForward::Moved => Err(apart(&branch).into()),
    }
}

/// Whether a task has landed; `None` if no batch is known.
fn has_landed(journal: &Journal) -> Result<Option<bool>, JournalError> {
    let mut found = None;
    for batch in journal.runs().batches()? {
        if let Some(state) = BatchState::of_events(&journal.events().of(batch)?) {
            found = Some(found == Some(true) || state.landed() > 0);
        }
    }
    Ok(found)
}

/// The last commit of the line, as the newest batch has recorded it; `None` if no batch is known.
pub(super) fn last_line(journal: &Journal) -> Result<Option<String>, JournalError> {
    for batch in journal.runs().batches()? {
        if let Some(state) = BatchState::of_events(&journal.events().of(batch)?) {
            return Ok(Some(state.line));
        }
    }
    Ok(None)
}

/// Refuses a line that no batch has verified.
pub(super) fn moved(known: &str) -> Diagnostic {
    Diagnostic::error("land/moved", "another program has moved the branch forkhestra/line of the hub").help(format!(
        "what it has now was not verified. To restore it: git --git-dir .forkhestra/hub.git update-ref \
         refs/heads/forkhestra/line {known}"
    ))
}

fn nothing() -> Diagnostic {
    Diagnostic::error("land/nothing", "no task of this project has landed")
        .help("`forkhestra task run --jobs 4` works on tasks and lands them")
}

fn no_branch(branch: &str) -> Diagnostic {
    Diagnostic::error("land/branch", format!("there is no branch `{branch}` here"))
        .help("name a local branch; `git branch` lists them")
}

fn apart(branch: &str) -> Diagnostic {
    Diagnostic::error("land/apart", format!("`{branch}` has commits that the landed tasks do not have"))
        .help("merge them: git fetch .forkhestra/hub.git forkhestra/line && git merge FETCH_HEAD")
}

fn ignored(files: &[String]) -> Diagnostic {
    Diagnostic::error("land/ignored", format!("files that git ignores here would be overwritten: {}", files.join(", ")))
        .help("the tasks have added files of these names; move your own aside first")
}

fn uncommitted(branch: &str, files: &[String]) -> Diagnostic {
    let shown: Vec<&str> = files.iter().take(5).map(String::as_str).collect();
    Diagnostic::error(
        "land/uncommitted",
        format!("`{branch}` is checked out with uncommitted changes: {}", shown.join(", ")),
    )
    .help("commit or stash them first; changes that `--with-changes` took along are in the way once they differ")
}
