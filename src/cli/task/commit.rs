//! `"commit": "task"`: what a task has changed is committed when it is completed.

use crate::journal::{Journal, JournalError};
use crate::plan::TaskFacts;
use crate::proc::{ByHand, Interrupts, find_outside};
use crate::runner::{Uncommitted, uncommitted_of_task};
use crate::source::Files;
use crate::task::Status;
use crate::world::World;
use std::path::Path;
use std::time::Duration;

/// How long git may take; its hooks may run tests.
const PATIENCE: Duration = Duration::from_mins(10);
/// The longest subject of a commit, in characters.
const SUBJECT: usize = 72;

/// What came of it.
#[derive(Debug)]
pub(in crate::cli) enum Committed {
    /// There was nothing to commit: the task changed nothing, or an agent committed it.
    Nothing,
    /// This commit, of so many files, and what was left out: it was changed already when the work began.
    As(String, usize, Vec<String>),
    /// Why it could not be made.
    Failed(String),
}

/// Commits what was changed since the work on a task began, if the task is completed; other changes in the tree stay as they are.
///
/// # Errors
/// When the journal cannot be read.
pub(in crate::cli) fn commit_task(
    world: &World,
    journal: &Journal,
    root: &Path,
    task: &TaskFacts,
    run: i64,
    sandboxed: bool,
) -> Result<Committed, JournalError> {
    let done = journal.task(&task.id)?.is_some_and(|task| task.status == Status::Completed);
    if !done {
        return Ok(Committed::Nothing);
    }
    let Ok(scratch) = world.scratch_folder() else {
        return Ok(Committed::Failed("there is no room for a temporary folder".into()));
    };
    let Some(Uncommitted { files, mixed }) = uncommitted_of_task(journal, root, scratch.path(), &task.id)? else {
        return Ok(Committed::Failed("nobody knows what it has changed".into()));
    };
    if files.is_empty() {
        let all = format!("what it has changed had been changed before it began: {}", mixed.join(", "));
        return Ok(if mixed.is_empty() { Committed::Nothing } else { Committed::Failed(all) });
    }
    let listed = files.join("\0");
    let Some(program) = find_outside("git", root) else {
        return Ok(Committed::Failed("there is no git on PATH, outside of the project".into()));
    };
    // It would name another config, with filters that git runs.
    if world.kind(&root.join(".git/commondir")).is_ok() {
        return Ok(Committed::Failed("there is a file `.git/commondir`, which git would follow; look at it".into()));
    }
    let interrupts = Interrupts::listen(|signal| world.ignores(signal)).unwrap_or_default();
    let git = |arguments: &[&str], input: &str| {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_string()).collect();
        // Under a lifeline: it runs the user's git hooks.
        let by_hand = ByHand {
            lifeline: &world.lifeline(),
            program: &program,
            arguments: &arguments,
            folder: root,
            timeout: PATIENCE,
            input: input.as_bytes(),
            interrupts: &interrupts,
        };
        match by_hand.run(&mut |_| {}) {
            Some(answer) if answer.code == Some(0) => Ok(answer.stdout.trim().to_string()),
            Some(answer) => Err(last_line(&format!("{}\n{}", answer.stdout, answer.stderr))),
            None => Err("git could not be started".into()),
        }
    };
    let from = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    // Hooks may lie in the working tree, where an agent in a sandbox could write what would be run outside of it.
    let quiet = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
    let quiet = if sandboxed { &quiet[..] } else { &[] };
    let subject: String = format!("task {}: {}", task.id, task.title).chars().take(SUBJECT).collect();
    let body = format!("Completed in run {run} of forkhestra.");
    let add = ["--literal-pathspecs", "add", "-A", from[0], from[1]];
    let commit = ["--literal-pathspecs", "commit", "-q", "-m", &subject, "-m", &body, "--only", from[0], from[1]];
    let made = git(&[quiet, &add].concat(), &listed)
        .and_then(|_| git(&[quiet, &commit].concat(), &listed))
        .and_then(|_| git(&["rev-parse", "HEAD"], ""));
    Ok(match made {
        Ok(commit) => Committed::As(commit, files.len(), mixed),
        Err(why) => Committed::Failed(why),
    })
}

/// The last line that says something.
fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git failed without a word").trim().to_string()
}
