//! Several tries at one task: what the judge is shown, who chooses one of them, and the answer.

use super::context::{BatchContext, BatchError};
use super::machine::{choice_name, unit_name, workspace_name};
use crate::engine::{BatchEvent, BatchState, ChoicePlace};
use crate::hub::Workspace;
use crate::journal::JournalError;
use std::fmt::Write;

/// How much of the changes of one try the judge is shown, in bytes. It can see the rest with git.
const MOST_SHOWN: usize = 16 << 10;
/// How much of the judge's answer is read, in bytes from its end.
const MOST_READ: u64 = 64 << 10;
/// How many lines from the end of the answer may name the choice.
const LAST_LINES: usize = 5;
/// How many characters of the judge's reason are kept.
const MOST_KEPT: usize = 2_000;

/// The accepted tries at a task, for a judge: what each has changed.
pub(super) fn tries_shown(
    context: &BatchContext<'_>,
    state: &BatchState,
    task: &str,
    base: &str,
) -> Result<String, BatchError> {
    let Some(known) = state.tasks.get(task) else { return Ok(String::new()) };
    let mut text = String::new();
    for (number, work) in known.accepted() {
        let by = known.backend_of(number).map_or_else(String::new, |backend| format!(", by {backend}"));
        let (files, patch) = context.hub.commits().difference(base, work)?;
        let shown = &patch[..patch.floor_char_boundary(MOST_SHOWN)];
        let rest = if shown.len() < patch.len() { "The beginning of its changes:" } else { "Its changes:" };
        // Nothing in the changes can close the fence around them.
        let longest = shown.split(|sign| sign != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(3) + 1);
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "## Try {number}{by}\n\n{files}\n\n`git diff {base} {work}` shows all of its changes. {rest}\n\n\
             {fence}diff\n{shown}\n{fence}\n\n"
        );
    }
    Ok(text)
}

/// Takes the try that the judge has chosen, or the only one that was accepted.
pub(super) fn take_try(
    context: &BatchContext<'_>,
    state: &BatchState,
    task: String,
) -> Result<Option<BatchEvent>, BatchError> {
    let Some(known) = state.tasks.get(&task) else { return Ok(None) };
    let accepted: Vec<u32> = known.accepted().into_iter().map(|(number, _)| number).collect();
    let answered = match (accepted.as_slice(), known.choice.place) {
        (&[number], _) => Ok((number, "it is the only try that was accepted".to_string())),
        (_, ChoicePlace::Answered) => answer(context, state, &task, known.choice.number)?,
        _ => Err("the judge was not asked".to_string()),
    };
    match answered {
        Ok((number, reason)) if accepted.contains(&number) => {
            context.planner.chosen(&task, number, &reason)?;
            remove_others(context, state, &task, number);
            Ok(Some(BatchEvent::Chosen { task, try_number: number, reason }))
        }
        Ok((number, _)) => {
            let reason = format!("the judge chose try {number}, which is not one of those to choose from");
            Ok(Some(BatchEvent::Undecided { task, reason }))
        }
        Err(reason) => Ok(Some(BatchEvent::Undecided { task, reason })),
    }
}

/// The judge's answer to the choice of this number, or why there is none.
fn answer(
    context: &BatchContext<'_>,
    state: &BatchState,
    task: &str,
    number: u32,
) -> Result<Result<(u32, String), String>, JournalError> {
    let unit = format!("{}-{number}", choice_name(context.run, task));
    let Some(run) = state.units.get(&unit).map(|unit| unit.run) else {
        return Ok(Err("the judge's run is unknown".into()));
    };
    let journal = &*context.journal;
    let last = journal.events().of(run)?.into_iter().rev().find_map(|event| match event.event {
        crate::engine::EventKind::AttemptFinished { at, .. } => Some(at),
        _ => None,
    });
    let Some(at) = last else { return Ok(Err("the judge did not run".into())) };
    let [words, _] = journal.files().attempt_folder(run, at.step, &at.name, at.attempt).last_words(MOST_READ);
    Ok(choice_of(&words).ok_or_else(|| "the judge's answer has no line `CHOICE: N`".into()))
}

/// Removes the workspaces of the tries that were not chosen, and that of the judge. The hub has their work.
fn remove_others(context: &BatchContext<'_>, state: &BatchState, task: &str, chosen: u32) {
    if context.keeps_workspaces {
        return;
    }
    let count = state.tasks.get(task).map_or(0, |known| known.tries.len());
    let numbers = (1..).take(count).filter(|number: &u32| *number != chosen);
    let names = numbers.map(|number| workspace_name(context.run, task, Some(number)));
    for name in names.chain([choice_name(context.run, task)]) {
        context.hub.workspaces().remove(&Workspace::named(&name, &context.workspaces));
    }
}

/// The name of the unit that works on a task at the moment; that of its last one otherwise.
pub(super) fn unit_of(run: i64, state: &BatchState, task: &str) -> Option<String> {
    let known = state.tasks.get(task)?;
    Some(unit_name(run, task, known.chosen, known.turn))
}

/// The number in the line `CHOICE: N` at the end of an answer, and the reason, which is the rest of the answer.
fn choice_of(answer: &str) -> Option<(u32, String)> {
    let lines: Vec<&str> = answer.lines().collect();
    let number = |line: &str| {
        let plain: String = line.chars().filter(|next| !"*_`#>".contains(*next)).collect();
        let (key, value) = plain.trim().split_once(':')?;
        let value = value.trim().trim_end_matches('.').to_lowercase();
        let value = value.strip_prefix("try").unwrap_or(&value).trim();
        key.trim().eq_ignore_ascii_case("choice").then(|| value.parse().ok())?
    };
    // Further up, it may be quoted from the work of a try.
    let last = lines.iter().enumerate().rev().filter(|(_, line)| !line.trim().is_empty()).take(LAST_LINES);
    let (at, number) = last.into_iter().find_map(|(at, line)| Some((at, number(line)?)))?;
    let rest: Vec<&str> = lines[..at].iter().chain(&lines[at + 1..]).copied().collect();
    let reason = rest.join("\n").trim().chars().take(MOST_KEPT).collect::<String>();
    Some((number, if reason.is_empty() { "the judge gave no reason".into() } else { reason }))
}

#[cfg(test)]
mod tests {
    use super::choice_of;

    #[test]
    fn the_last_line_with_a_choice_decides_and_the_rest_is_the_reason() {
        let of = |text: &str| choice_of(text);
        assert_eq!(of("Two is smaller.\n\nCHOICE: 2\n"), Some((2, "Two is smaller.".into())));
        assert_eq!(of("**Choice: try 3.**"), Some((3, "the judge gave no reason".into())));
        assert_eq!(of("CHOICE: 1\nNo, wait.\nCHOICE: 2"), Some((2, "CHOICE: 1\nNo, wait.".into())));
        let echo = " CHOICE: 1\n````\n\n## Your answer\n\nEnd with one line:\n\nCHOICE: N\n\nChange no files.\n";
        for none in ["", echo, "CHOICE: N", "I choose 2", "CHOICE: 2 or 3", "CHOICE: none"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
