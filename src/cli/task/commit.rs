//! `"commit": "task"`: commits what a task has changed when it is completed.

use crate::journal::{Journal, JournalError};
use crate::plan::TaskFacts;
use crate::proc::{ByHand, Interrupts, find_outside};
use crate::runner::{Uncommitted, uncommitted_of_task};
use crate::source::Files;
use crate::task::Status;
use crate::world::World;
use std::path::Path;
use std::time::Duration;

/// The time after which git is stopped. It is long, because git's hooks may run tests.
const PATIENCE: Duration = Duration::from_mins(10);
/// The longest subject of a commit, in characters.
const SUBJECT: usize = 72;

/// The result of committing a task.
#[derive(Debug)]
pub(in crate::cli) enum Committed {
    /// There was nothing to commit: the task changed nothing, or an agent committed it.
    Nothing,
    /// The commit, the number of its files, and the files left out because they were changed before the work began.
    As(String, usize, Vec<String>),
    /// The commit could not be made, for this reason.
    Failed(String),
}

/// Commits what was changed since the work on a task began, if the task is completed. Other changes in the tree stay as
/// they are.
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
    let done = journal.tasks().get(&task.id)?.is_some_and(|task| task.status == Status::Completed);
    if !done {
        return Ok(Committed::Nothing);
    }
    let Ok(scratch) = world.scratch_folder() else {
        return Ok(Committed::Failed("a temporary directory cannot be created".into()));
    };
    let Some(Uncommitted { files, mixed }) = uncommitted_of_task(journal, root, scratch.path(), &task.id)? else {
        return Ok(Committed::Failed("its changes are not known".into()));
    };
    if files.is_empty() {
        let all = format!("all files that it changed had been changed before it started: {}", mixed.join(", "));
        return Ok(if mixed.is_empty() { Committed::Nothing } else { Committed::Failed(all) });
    }
    let listed = files.join("\0");
    let Some(program) = find_outside("git", root) else {
        return Ok(Committed::Failed("there is no git on PATH outside of the project".into()));
    };
    // It would name another config, whose filters git would run.
    if world.kind(&root.join(".git/commondir")).is_ok() {
        return Ok(Committed::Failed("there is a file `.git/commondir`, which git would follow; check it".into()));
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
            without: &[],
        };
        match by_hand.run(&mut |_| {}) {
            Some(answer) if answer.code == Some(0) => Ok(answer.stdout.trim().to_string()),
            Some(answer) => Err(last_line(&format!("{}\n{}", answer.stdout, answer.stderr))),
            None => Err("git could not be started".into()),
        }
    };
    let from = ["--pathspec-from-file=-", "--pathspec-file-nul"];
    // Hooks may be in the working tree, where a sandboxed agent could write code that would run outside the sandbox.
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

/// The last line that is not empty.
fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git failed without a message").trim().to_string()
}
