//! What an attempt decided, and what it did to the tree meanwhile.

use super::driver::Driver;
use super::event::At;
use super::fill::asking;
use super::finished::Finished;
use super::outcome::Exit;
use super::stage::Stage;
use super::told::READ_FOR_ERRORS;
use crate::chain::Role;
use crate::checks::{Tampering, error_digests, signature, tests_run};
use crate::context::{BUILDS, Snapshot};
use crate::journal::{AttemptFolder, JournalError};
use crate::plan::PlannedStep;
use crate::verdict::{
    Answer, Heard, Said, Task, Unclear, answers, proposed_tasks, read, read_evaluation, without_echo,
};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

/// How many files that a judge changed are named.
const NAMED: usize = 5;

/// What git keeps of the folders in which builds leave what they make; the rest of them is no part of what is judged.
fn tracked_builds(root: &Path) -> HashSet<String> {
    let places: Vec<String> =
        BUILDS.iter().flat_map(|build| [format!(":(glob)**/{build}/**"), format!(":(glob)**/{build}")]).collect();
    let words: Vec<&str> = ["ls-files", "-z", "--"].into_iter().chain(places.iter().map(String::as_str)).collect();
    let listed = asking(root)(&words).unwrap_or_default();
    listed.split('\0').filter(|file| !file.is_empty()).map(str::to_string).collect()
}

/// What is remembered from before an attempt.
#[derive(Debug, Default)]
pub(super) struct Before {
    tree: Option<Snapshot>,
}

/// What was read of an attempt that is over.
#[derive(Debug, Default)]
pub(super) struct Read {
    said: Option<Said>,
    answers: Vec<Answer>,
    unchanged: Option<bool>,
    trouble: Option<String>,
    tasks: Vec<Task>,
    guarded: bool,
    tampering: Tampering,
    tests_run: Option<u32>,
    errors: Vec<String>,
}

impl Read {
    /// The facts go to the attempt's end, the decision to the machine.
    pub(super) fn into_finished(self, finished: &mut Finished) -> Option<Said> {
        finished.answers = self.answers;
        finished.unchanged = self.unchanged;
        finished.trouble = self.trouble;
        finished.tasks = self.tasks;
        finished.guarded = self.guarded;
        finished.voided = self.tampering.voided;
        finished.weakened = self.tampering.weakened;
        finished.touched = self.tampering.touched;
        finished.tests_run = self.tests_run;
        finished.errors = self.errors;
        self.said
    }
}

impl Driver<'_> {
    /// Looks at the tree where something depends on it: a judge must not change it, a worker whose work is judged should. Costs
    /// one walk of the tree.
    pub(super) fn before(&mut self, at: &At) -> Before {
        let looks = match self.role(at) {
            Some(Role::Judge) => true,
            Some(Role::Worker) => self.group_of(at).is_some(),
            None => false,
        };
        // A judge that is asked again is held against what it found the first time.
        let again = self.state.unclear(at.step) > 0 || self.state.is_retry();
        if again
            && let Some((step, tree)) = &self.judged
            && *step == at.step
        {
            return Before { tree: Some(tree.clone()) };
        }
        let judge = self.role(at) == Some(Role::Judge);
        let tracked = judge.then(|| tracked_builds(self.cast.root));
        let tree = looks.then(|| self.tree.snapshot(self.cast.root, tracked.as_ref()));
        self.judged = tree.clone().filter(|_| judge).map(|tree| (at.step, tree));
        Before { tree }
    }

    pub(super) fn role(&self, at: &At) -> Option<Role> {
        self.cast.plan.steps.get(at.step as usize - 1)?.role()
    }

    /// What the attempt decided; nothing for a check. Its normal form is kept in its folder.
    pub(super) fn read(
        &mut self,
        stage: &Stage,
        folder: &AttemptFolder,
        token: &str,
        before: &Before,
        exit: Exit,
    ) -> Result<Read, JournalError> {
        let mut found = Read::default();
        let Some(at) = self.state.at().cloned() else { return Ok(found) };
        let Some(role) = self.role(&at) else {
            let words = folder.last_words(READ_FOR_ERRORS).concat();
            found.tests_run = tests_run(&words);
            found.errors = if exit == Exit::Code(0) { Vec::new() } else { error_digests(&words) };
            // What tells one failure from the next: the tree that it saw, and its errors without their numbers.
            found.trouble = (exit != Exit::Code(0) && self.group_of(&at).is_some())
                .then(|| self.tree.fingerprint(self.cast.root, signature(&words).as_bytes()));
            return Ok(found);
        };
        if let Some(lane) = self.lane {
            found.said = lane.answered(stage, role, folder);
            let _ = folder.take_calls(token);
            return Ok(found);
        }
        let calls = folder.take_calls(token);
        let file = folder.result();
        let echo = if stage.echoes() { folder.prompt() } else { String::new() };
        let message = without_echo(&stage.message(), &echo);
        if role == Role::Worker {
            found.answers = answers(&message);
            let proposed = file.as_deref().and_then(proposed_tasks).or_else(|| proposed_tasks(&message));
            found.tasks = proposed.unwrap_or_default();
        }
        let heard = Heard { calls: &calls, file: file.as_deref(), message: &message };
        let evaluates = self.cast.plan.steps.get(at.step as usize - 1).and_then(PlannedStep::evaluates);
        let mut said = match evaluates {
            Some(least) => read_evaluation(file.as_deref().unwrap_or(&message), least),
            None => read(role, heard),
        };
        found.guarded = true;
        found.tampering = self.tampering(&at)?;
        if let Some(tree) = &before.tree {
            let tracked = (role == Role::Judge).then(|| tracked_builds(self.cast.root));
            let changed = self.tree.changes(self.cast.root, tree, NAMED, tracked.as_ref());
            match role {
                Role::Judge if !changed.is_empty() => said = Said::Unclear(Unclear::Edited { files: changed }),
                Role::Judge => {}
                Role::Worker => found.unchanged = Some(changed.is_empty()),
            }
        }
        if let Said::Clear(verdict) = &said {
            folder.write_verdict(&serde_json::to_string_pretty(verdict).unwrap_or_default())?;
        }
        found.said = Some(said);
        Ok(found)
    }

    /// What the host has to say to an agent about this attempt, beside what ended the last round.
    pub(super) fn note(&self, at: &At) -> String {
        let mut note = String::new();
        let (plan, state) = (self.cast.plan, &self.state);
        // Writing to a String cannot fail.
        if let Some(why) = state.last_unclear(at.step) {
            let _ = write!(
                note,
                "\n\n## Your last answer could not be used\n\nAbout it: {}. Judge again, and end your last message with one line of \
                 its own, outside any code fence: the word VERDICT, a colon, and approve, reject, dispute or skip.\n",
                why.words()
            );
        }
        let idle = |step: usize| {
            let number = u32::try_from(step + 1).unwrap_or(0);
            plan.submits(number) && state.was_idle(number) && plan.program.step_group[step] == self.group_of(at)
        };
        if self.role(at) == Some(Role::Judge) && (0..plan.steps.len()).any(idle) {
            note.push_str("\n\nThe worker of this round ended without changing anything.\n");
        }
        if self.role(at) == Some(Role::Judge) {
            let fewer = state.fewer_tests().map(|(now, before)| format!("{now} tests ran, and {before} ran before"));
            let told: Vec<String> =
                state.weakened().iter().cloned().chain(fewer).map(|words| format!("- {words}")).collect();
            if !told.is_empty() {
                let _ = write!(
                    note,
                    "\n\n## What decides about this work was changed\n\nCompared with the start of the run:\n\n{}\n\nApprove only if \
                     that was asked for.\n",
                    told.join("\n")
                );
            }
        }
        if self.role(at) == Some(Role::Worker) && !state.voided().is_empty() {
            let _ = write!(
                note,
                "\n\n## Your last attempt does not count\n\nIt changed what decides about your work: {}. Put that back as it was, then \
                 do what is asked.\n",
                state.voided().join(", ")
            );
        }
        if self.role(at) == Some(Role::Worker) && plan.submits(at.step) && state.was_idle(at.step) && state.is_retry() {
            note.push_str(
                "\n\n## Your last attempt changed nothing\n\nNo file was changed and nothing was committed. Do what is asked; if \
                 there is nothing to do, say why, and end with a line of its own: the word VERDICT, a colon, and skip.\n",
            );
        }
        note
    }

    fn group_of(&self, at: &At) -> Option<usize> {
        self.cast.plan.program.step_group.get(at.step as usize - 1).copied().flatten()
    }
}
