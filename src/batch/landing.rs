//! Lands the work of a batch: merges it into the line, and sends back what conflicts or fails. What happens is
//! returned, and the driver records it.

use super::context::{BatchContext, BatchError};
use super::machine::workspace_name;
use crate::checks::{OutputErrors, joined};
use crate::engine::{AttemptOutcome, BatchEvent, BatchState, EventKind, RunOutcome, TaskOfBatch, TaskPlace};
use crate::hub::{Merged, Workspace};
use crate::journal::JournalError;

/// How many errors of a failed verification a task's chain is told about.
const MOST_ERRORS: usize = 10;

/// Merges the work of tasks into the line, one after the other. One that conflicts with the line is sent back; one
/// that conflicts with an earlier one of these waits until that one has landed.
pub(super) fn merge(
    context: &BatchContext<'_>,
    state: &BatchState,
    tasks: &[String],
) -> Result<BatchEvent, BatchError> {
    let line = state.line.clone();
    let (mut merged, mut tip) = (Vec::new(), line.clone());
    for id in tasks {
        let Some(work) = state.tasks.get(id).and_then(|task| task.work.clone()) else { continue };
        match context.hub.commits().merge(&tip, &work)? {
            // Work that changes nothing needs no commit.
            Merged::Clean { tree } if tree == context.hub.commits().tree_of(&tip)? => merged.push(id.clone()),
            Merged::Clean { tree } => {
                let run = state.tasks.get(id).and_then(TaskOfBatch::run_of_work);
                tip = context.hub.commits().create(&tree, &[&tip], &context.planner.message(id, run))?;
                merged.push(id.clone());
            }
            Merged::Conflict { files, .. } if tip == line => {
                return Ok(BatchEvent::Conflicted { task: id.clone(), files });
            }
            Merged::Conflict { .. } => {}
        }
    }
    // Every commit along the first parents of the line is one that was verified.
    if merged.len() > 1 && tip != line {
        let tree = context.hub.commits().tree_of(&tip)?;
        let message = format!("Land tasks {}\n\nVerified together.\n", merged.join(", "));
        tip = context.hub.commits().create(&tree, &[&line, &tip], &message)?;
    }
    Ok(BatchEvent::Merged { tasks: merged, commit: tip })
}

/// Sends the work of a task back to its chain, merged into the line, with what went wrong.
pub(super) fn send_back(
    context: &BatchContext<'_>,
    state: &BatchState,
    id: String,
    files: &[String],
) -> Result<BatchEvent, BatchError> {
    let Some(work) = state.tasks.get(&id).and_then(|task| task.work.clone()) else {
        return Ok(BatchEvent::Stopped { task: id, reason: "its work is gone".into(), work: None });
    };
    let line = state.line.clone();
    let (tree, reason, feedback) = match context.hub.commits().merge(&line, &work)? {
        Merged::Conflict { tree, files } => {
            let hunks = context.hub.commits().conflicts(&tree, &files);
            let words = format!(
                "Your work is complete, but other tasks have landed since, and it conflicts with them in {}. \
                 The working tree contains both, with conflict markers in these files: the first side is what has \
                 landed, the second is your work. Resolve the conflicts so that both changes hold, and remove the \
                 markers.\n\n{hunks}",
                files.join(", ")
            );
            (tree, format!("conflicts in {} with what has landed", files.join(", ")), words)
        }
        Merged::Clean { tree } if !files.is_empty() => {
            (tree, "conflicted".to_string(), "Other tasks have landed. Check that your work still holds.".into())
        }
        Merged::Clean { tree } => {
            let (reason, feedback) = why_red(context, state)?;
            (tree, reason, feedback)
        }
    };
    let start = context.hub.commits().create(&tree, &[&line], "Work that was sent back, merged into the line\n")?;
    context.planner.rejected(&id, &feedback, false)?;
    Ok(BatchEvent::SentBack { task: id, reason, feedback, base: line, start })
}

/// The end of a unit. A verification whose checks have changed files that git tracks has failed: what they passed
/// is not what would land.
pub(super) fn unless_changed(
    (context, state): (&BatchContext<'_>, &BatchState),
    unit: &str,
    work: Option<&str>,
    (exit, error): (Option<u8>, Option<String>),
) -> Result<(Option<u8>, Option<String>), BatchError> {
    let is_verification = state.units.get(unit).is_some_and(|unit| unit.task.is_none());
    let trial = state.trial.as_ref().filter(|_| is_verification && exit == Some(0));
    let Some((trial, work)) = trial.zip(work) else { return Ok((exit, error)) };
    let files = context.hub.commits().changed_files(&trial.commit, work)?;
    if files.is_empty() {
        return Ok((exit, error));
    }
    Ok((Some(1), Some(format!("the checks changed {}", files.join(", ")))))
}

/// Why the last verification failed, in a few words and for the agents of the task.
fn why_red(context: &BatchContext<'_>, state: &BatchState) -> Result<(String, String), JournalError> {
    let last = state.units.values().rev().find(|unit| unit.task.is_none());
    let has_passed = last.is_some_and(|unit| unit.outcome == Some(RunOutcome::Succeeded));
    if let Some(changed) = last.and_then(|unit| unit.error.clone()).filter(|_| has_passed) {
        let words = format!(
            "Your work is complete, but {changed}, so what they passed is not what would land. Make these changes \
             part of your work, so that the checks change no file that git tracks."
        );
        return Ok((changed, words));
    }
    let (check, errors) = first_errors(context, state)?;
    let words = format!(
        "Your work is complete, but it fails `{check}` together with what other tasks have landed since. The \
         working tree contains both. Fix it so that `{check}` passes.\n\n{errors}"
    );
    Ok((format!("fails `{check}` together with what has landed"), words))
}

/// The check that failed in the last verification, and its first errors.
fn first_errors(context: &BatchContext<'_>, state: &BatchState) -> Result<(String, String), JournalError> {
    let verification = state.units.values().rev().find(|unit| unit.task.is_none());
    let Some((run, workspace)) = verification.map(|unit| (unit.run, &unit.workspace)) else {
        return Ok(("the checks".into(), String::new()));
    };
    let journal = &*context.journal;
    let failed = journal.events().of(run)?.into_iter().rev().find_map(|event| match event.event {
        EventKind::AttemptFinished { at, outcome, .. } if outcome != AttemptOutcome::Completed => Some(at),
        _ => None,
    });
    let Some(at) = failed else { return Ok(("the checks".into(), String::new())) };
    let output = journal.files().attempt_folder(run, at.step, &at.name, at.attempt).whole_output();
    // The agent works in another workspace than the check did.
    let words = OutputErrors::of(&joined(&output)).summary(MOST_ERRORS).replace(&format!("{workspace}/"), "");
    Ok((at.name, words))
}

/// The end of a task that a person has deleted or decided meanwhile; `None` if nobody has.
pub(super) fn settled(
    context: &BatchContext<'_>,
    state: &BatchState,
    task: &str,
) -> Result<Option<BatchEvent>, BatchError> {
    // A worker that was lost may have completed the task, and has its work still to hand over.
    let has_begun = state.tasks.get(task).is_none_or(|known| known.place != TaskPlace::Waiting);
    let reason = match context.planner.status(task)? {
        None => "it was deleted".to_string(),
        Some(status) if status.is_terminal() && !has_begun => format!("its status is {} now", status.name()),
        Some(_) => return Ok(None),
    };
    Ok(Some(BatchEvent::Stopped { task: task.to_string(), reason, work: None }))
}

/// Removes the workspace of the verifications, unless the batch continues later.
pub(super) fn clear_verification(context: &BatchContext<'_>, outcome: RunOutcome) {
    let has_ended = matches!(outcome, RunOutcome::Succeeded | RunOutcome::TasksLeft);
    if has_ended && !context.keeps_workspaces {
        let name = format!("{}-verify", context.run);
        context.hub.workspaces().remove(&Workspace::named(&name, &context.workspaces));
    }
}

/// Removes the workspaces of tasks that have landed: everything in them is in the hub.
pub(super) fn clear(context: &BatchContext<'_>, state: &BatchState, tasks: &[String]) {
    if context.keeps_workspaces {
        return;
    }
    for task in tasks {
        let chosen = state.tasks.get(task).and_then(|known| known.chosen);
        let name = workspace_name(context.run, task, chosen);
        context.hub.workspaces().remove(&Workspace::named(&name, &context.workspaces));
    }
}
