//! What an agent is told about its attempt, in addition to its task: why its last answer was unclear, and what has
//! changed of what the work is judged by.

use super::context::RunContext;
use crate::agent::Format;
use crate::chain::Role;
use crate::checks::Profile;
use crate::engine::{At, State};
use crate::journal::word_of_attempt;
use crate::plan::Plan;
use crate::verdict::Unclear;
use std::fmt::Write;

/// How much of an unclear answer is quoted, in bytes.
const LAST_ANSWER: u64 = 8 << 10;

/// Returns the host's notes to an agent about this attempt, in addition to the previous round's feedback. `token`
/// is the attempt's token.
pub(super) fn note((context, state): (&RunContext<'_>, &State), at: &At, token: &str) -> String {
    let mut note = String::new();
    let plan = context.plan;
    let step = plan.step(at.step);
    let judge = context.role(at) == Some(Role::Judge);
    let is_plain = step.is_some_and(|step| step.format() == Some(Format::Plain) && step.evaluates().is_none());
    // A plain program may print what it reads, so it gets a word of its own.
    let word = word_of_attempt(token);
    let vouched = format!("the word VERDICT, a space, the word {word}, a colon");
    let line = if is_plain { vouched.as_str() } else { "the word VERDICT, a colon" };
    if let Some(why) = state.last_unclear(at.step) {
        let whole = "\n\n## Your last answer could not be used\n\nReason: ";
        // Writing to a String cannot fail.
        if let Unclear::NoTasks { .. } = why {
            let _ = writeln!(note, "{whole}{}. End your last message with the tasks as one JSON object.", why.words());
            return note;
        }
        let _ = write!(
            note,
            "\n\n## Your last answer could not be used\n\nReason: {}. Judge again, and end your last message with \
             a line of its own, outside any code fence: {line}, and then approve, reject, dispute or skip. Write \
             nothing else on that line, and nothing after it.\n",
            why.words()
        );
        note.push_str(&last_answer(context, at));
    } else if judge && is_plain && plan.profile == Profile::Strict {
        let _ = write!(
            note,
            "\n\n## How to answer\n\nEnd with a line of its own: {line}, and then approve, reject, dispute or \
             skip.\n"
        );
    }
    let idle = |step: usize| {
        let number = u32::try_from(step + 1).unwrap_or(0);
        plan.submits(number) && state.was_idle(number) && plan.program.step_group[step] == context.group_of(at)
    };
    if context.role(at) == Some(Role::Judge) && (0..plan.steps.len()).any(idle) {
        note.push_str("\n\nThe worker of this round ended without changing anything.\n");
    }
    if context.role(at) == Some(Role::Worker) && !state.voided().is_empty() {
        let _ = write!(
            note,
            "\n\n## Your last attempt does not count\n\nIt changed what your work is judged by: {}. Restore it, \
             then do what you were asked to do.\n",
            state.voided().join(", ")
        );
    }
    if context.role(at) == Some(Role::Worker) && plan.submits(at.step) && state.was_idle(at.step) && state.is_retry() {
        note.push_str(
            "\n\n## Your last attempt changed nothing\n\nNo file was changed and nothing was committed. Do what \
             you were asked to do. If there is nothing to do, say why, and end with a line of its own: the word \
             VERDICT, a colon, and then skip.\n",
        );
    }
    note
}

/// Returns what a judge is told before anything else, if what the work is judged by has changed since the work
/// began, in whichever run of the task. Empty otherwise, and for other roles.
pub(super) fn warning((context, state): (&RunContext<'_>, &State), weakened: &[String], at: &At) -> String {
    if context.role(at) != Some(Role::Judge) {
        return String::new();
    }
    let fewer = fewer_tests(context.plan, state).map(|(now, before)| {
        let tests = if now == 1 { "test" } else { "tests" };
        format!("{now} {tests} ran, and {before} ran before")
    });
    let mut told: Vec<String> = Vec::new();
    for words in weakened.iter().chain(state.weakened()).cloned().chain(fewer) {
        let line = format!("- {words}");
        if !told.contains(&line) {
            told.push(line);
        }
    }
    if told.is_empty() {
        return String::new();
    }
    format!(
        "## What this work is judged by has changed\n\nCompared with the state when the work began:\n\n{}\n\n\
         Approve only if these changes were asked for.\n\n",
        told.join("\n")
    )
}

/// Returns how many tests ran last, and the highest number that ran before, if that was higher. `verify` runs what
/// `diagnose` and `test` run.
fn fewer_tests(plan: &Plan, state: &State) -> Option<(u32, u32)> {
    let mut ran: Vec<(&str, u32, u32)> = Vec::new();
    for step in plan.steps.iter().filter(|step| step.is_check()) {
        let tests = u32::try_from(step.number).ok().and_then(|number| state.tests_of(number));
        ran.extend(tests.map(|(last, most)| (step.name.as_str(), last, most)));
    }
    let fewer = |(name, last, most): &(&str, u32, u32)| {
        let parts = ran.iter().filter(|(other, ..)| *name == "verify" && matches!(*other, "diagnose" | "test"));
        let most = parts.map(|(.., most)| *most).max().unwrap_or(0).max(*most);
        (*last < most).then_some((*last, most))
    };
    ran.iter().find_map(fewer)
}

/// Quotes a judge's last answer, which was unclear, so that the judge need not start over.
fn last_answer(context: &RunContext<'_>, at: &At) -> String {
    let Some(last) = at.attempt.checked_sub(1).filter(|last| *last > 0) else { return String::new() };
    let folder = context.journal.files().attempt_folder(context.run, at.step, &at.name, last);
    let [words, _] = folder.last_words(LAST_ANSWER);
    if words.trim().is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = words.trim().lines().map(|line| format!("> {line}").trim_end().to_string()).collect();
    format!("\nYour last answer was:\n\n{}\n", quoted.join("\n"))
}
