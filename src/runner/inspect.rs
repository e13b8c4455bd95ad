//! Reads what an attempt decided, and what it did to the tree.

use super::attempt::AttemptOutput;
use super::driver::Driver;
use super::render::{PATIENCE, asking};
use crate::agent::Format;
use crate::chain::Role;
use crate::checks::{OutputErrors, Profile, Tampering, joined, tests_run};
use crate::context::{BUILDS, Snapshot};
use crate::engine::{At, Exit, Finished};
use crate::journal::{AttemptFolder, JournalError, word_of_attempt};
use crate::marker::is_marker_line;
use crate::plan::{Kind, PlannedStep};
use crate::prompt::Segment;
use crate::verdict::{
    Answer, Decision, ProposedTask, Quotable, RecordedCall, Unclear, VerdictReading, VerdictSources, answers,
    proposal_of_calls, proposed_tasks, read, read_evaluation, recorded_calls, stated, without_echo,
};
use std::collections::HashSet;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// How many of the files that a judge changed are named.
const NAMED: usize = 5;
/// How much of the text that a plain program was given to read is searched for verdicts, in bytes.
const MOST_GIVEN: u64 = 16 << 20;
/// How much of an unclear answer is quoted, in bytes.
const LAST_ANSWER: u64 = 8 << 10;

/// Returns the text of a regular file; empty for anything else. Follows links, as a program that prints the file does.
fn read_text(path: &Path, most: u64) -> String {
    if !fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return String::new();
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
}

/// Returns the files that git tracks in build directories. Everything else in those directories is not judged.
fn tracked_builds(root: &Path) -> HashSet<String> {
    let places: Vec<String> =
        BUILDS.iter().flat_map(|build| [format!(":(glob)**/{build}/**"), format!(":(glob)**/{build}")]).collect();
    let words: Vec<&str> = ["ls-files", "-z", "--"].into_iter().chain(places.iter().map(String::as_str)).collect();
    let listed = asking(root, PATIENCE)(&words).unwrap_or_default();
    listed.split('\0').filter(|file| !file.is_empty()).map(str::to_string).collect()
}

/// What is remembered from before an attempt.
#[derive(Debug, Default)]
pub(super) struct AttemptBaseline {
    tree: Option<Snapshot>,
    /// The attempt's prompt, as it was delivered.
    pub(super) prompt: String,
}

/// What was read of an attempt that has ended.
#[derive(Debug, Default)]
pub(super) struct Read {
    said: Option<VerdictReading>,
    answers: Vec<Answer>,
    unchanged: Option<bool>,
    untouched: bool,
    failure_digest: Option<String>,
    tasks: Vec<ProposedTask>,
    unread: Vec<String>,
    guarded: bool,
    tampering: Tampering,
    tests_run: Option<u32>,
    failed_part: Option<String>,
    errors: Vec<String>,
}

impl Read {
    /// Moves the facts into `finished`, and returns the decision for the engine.
    pub(super) fn into_finished(self, finished: &mut Finished) -> Option<VerdictReading> {
        finished.agent.answers = self.answers;
        finished.agent.unchanged = self.unchanged;
        finished.agent.untouched = self.untouched;
        finished.check.failure_digest = self.failure_digest;
        (finished.agent.tasks, finished.agent.unread) = (self.tasks, self.unread);
        finished.agent.guarded = self.guarded;
        finished.agent.voided = self.tampering.voided;
        finished.agent.weakened = self.tampering.weakened;
        finished.agent.touched = self.tampering.touched;
        finished.check.tests_run = self.tests_run;
        finished.check.failed_part = self.failed_part;
        finished.check.errors = self.errors;
        self.said
    }
}

/// Returns a worker's answers: those that it recorded, and those of its message to other findings.
fn all_answers(calls: &[RecordedCall], said: Vec<Answer>) -> Vec<Answer> {
    let recorded = |call: &RecordedCall| match call {
        RecordedCall::Answer { answer } => Some(answer.clone()),
        _ => None,
    };
    let recorded: Vec<Answer> = calls.iter().filter_map(recorded).collect();
    let is_new = |answer: &Answer| recorded.iter().all(|other| other.finding != answer.finding);
    let others: Vec<Answer> = said.into_iter().filter(is_new).collect();
    [recorded, others].concat()
}

impl Driver<'_> {
    /// Takes a snapshot of the tree where something depends on it: a judge must not change the tree, and a worker in a
    /// group should. Costs one walk of the tree.
    pub(super) fn before(&mut self, at: &At) -> AttemptBaseline {
        let looks = match self.role(at) {
            Some(Role::Judge) => true,
            Some(Role::Worker) => self.group_of(at).is_some(),
            None => false,
        };
        // A judge that is asked again is compared with the tree that it found the first time.
        let again = self.state.unclear(at.step) > 0 || self.state.is_retry();
        if again
            && let Some((step, tree)) = &self.judged
            && *step == at.step
        {
            return AttemptBaseline { tree: Some(tree.clone()), prompt: String::new() };
        }
        let judge = self.role(at) == Some(Role::Judge);
        let tracked = judge.then(|| tracked_builds(self.context.root));
        let tree = looks.then(|| self.tree.snapshot(self.context.root, tracked.as_ref()));
        self.judged = tree.clone().filter(|_| judge).map(|tree| (at.step, tree));
        AttemptBaseline { tree, prompt: String::new() }
    }

    /// Returns the decisions that are lines or objects of their own in what a plain program was given to read, because
    /// the program may only have printed them. Searches only if the program's output holds a decision that would count.
    fn given(&mut self, role: Role, message: &str, prompt: &str) -> Vec<Quotable> {
        let said = stated(message);
        if !said.iter().any(|said| said.decision.passes() || role == Role::Worker) {
            return Vec::new();
        }
        let root = self.context.root;
        let spec = self.context.plan.task.as_ref().map(|task| task.spec.clone()).filter(|spec| !spec.is_empty());
        let work = self.work().unwrap_or_default();
        let mut given = stated(prompt);
        // A diff also shows the lines that were removed.
        let lines = work.diff.as_deref().unwrap_or_default().lines();
        let of_diff: Vec<&str> = lines.map(|line| line.strip_prefix(['+', '-', ' ']).unwrap_or(line)).collect();
        given.extend(stated(&of_diff.join("\n")));
        let changed = work.changed.into_iter().map(|change| change.path).chain(work.unseen);
        let mut budget = MOST_GIVEN;
        for file in spec.into_iter().chain(changed) {
            let text = read_text(&root.join(file), budget);
            budget = budget.saturating_sub(text.len() as u64);
            given.extend(stated(&text));
        }
        if budget == 0 {
            // Not all of the text was searched, so no decision in the output counts.
            given.extend(said);
        }
        given.extend(stated(&self.commit_messages()));
        given
    }

    pub(super) fn role(&self, at: &At) -> Option<Role> {
        self.context.plan.step(at.step)?.role()
    }

    /// Returns which part of a built-in check ran last. A check with several commands prints each one before its
    /// output.
    fn failed_part(&self, at: &At, output: &str) -> Option<String> {
        let Kind::Check { parts, .. } = &self.context.plan.step(at.step)?.kind else { return None };
        if let [(part, _)] = parts.as_slice() {
            return Some(part.clone());
        }
        let named = |line: &str| {
            let command = line.strip_prefix("$ ")?;
            parts.iter().find(|(_, one)| one.lines().next() == Some(command)).map(|(part, _)| part.clone())
        };
        output.lines().rev().find_map(named)
    }

    /// Keeps the host's diagnosis, for an agent that requests one on the same tree.
    fn keep_diagnosis(&mut self, at: &At, exit: Exit) {
        let step = self.context.plan.step(at.step).filter(|step| step.name == "diagnose");
        if let Some([Segment::Text(line)]) = step.and_then(|step| step.argv.get(1)).map(Vec::as_slice) {
            let tree = self.tree.fingerprint(self.context.root, line.as_bytes());
            self.diagnosed = Some((tree, exit == Exit::Code(0)));
        }
    }

    /// Returns what the attempt decided and did; a check decides nothing. The verdict's normal form is kept in the
    /// attempt's directory.
    pub(super) fn read(
        &mut self,
        output: &AttemptOutput,
        folder: &AttemptFolder,
        token: &str,
        before: &AttemptBaseline,
        exit: Exit,
    ) -> Result<Read, JournalError> {
        let mut found = Read::default();
        let Some(at) = self.state.at().cloned() else { return Ok(found) };
        let role = self.role(&at);
        if let Some(lane) = self.lane {
            found.said = lane.answered(output, role, folder);
            let _ = folder.take_calls(token);
            return Ok(found);
        }
        let Some(role) = role else {
            let output = joined(&folder.whole_output());
            found.tests_run = tests_run(&output);
            self.keep_diagnosis(&at, exit);
            found.failed_part = self.failed_part(&at, &output).filter(|_| exit != Exit::Code(0));
            let errors = (exit != Exit::Code(0)).then(|| OutputErrors::of(&output));
            found.errors = errors.as_ref().map_or_else(Vec::new, OutputErrors::digests);
            // Distinguishes one failure from the next: the tree that it saw, and its errors without their numbers.
            let errors = errors.filter(|_| self.group_of(&at).is_some());
            found.failure_digest =
                errors.map(|errors| self.tree.fingerprint(self.context.root, errors.signature().as_bytes()));
            return Ok(found);
        };
        // Must come before our own writes there.
        let planted = self.planted(folder);
        let calls = recorded_calls(&folder.take_calls(token));
        let file = folder.take_result(token);
        let plain = output.echoes();
        let message = if plain { without_echo(&output.message(), &before.prompt) } else { output.message() };
        let mut asks = false;
        if role == Role::Worker {
            found.answers = all_answers(&calls, answers(&message));
            let proposes = self.context.plan.proposes_tasks;
            let proposal = proposal_of_calls(&calls).filter(|_| proposes);
            let proposal = proposal.or_else(|| file.as_deref().and_then(proposed_tasks));
            let proposal = proposal.or_else(|| proposed_tasks(&message)).unwrap_or_default();
            (found.tasks, found.unread, asks) = (proposal.tasks, proposal.unread, proposes);
        }
        // A marker next to a verdict adds nothing.
        let marker = self.context.plan.marker.as_bytes();
        let spoken =
            message.lines().filter(|line| !is_marker_line(line.as_bytes(), marker)).collect::<Vec<_>>().join("\n");
        let word = word_of_attempt(token);
        let given = if plain { self.given(role, &message, &before.prompt) } else { Vec::new() };
        let heard = VerdictSources {
            calls: &calls,
            file: file.as_deref(),
            message: &spoken,
            nonce: Some(&word),
            given: &given,
            strict: plain && self.context.plan.profile == Profile::Strict,
        };
        let evaluates = self.context.plan.step(at.step).and_then(PlannedStep::evaluates);
        let mut said = match evaluates {
            Some(least) => read_evaluation(file.as_deref().unwrap_or(&message), least),
            None => read(role, heard),
        };
        if asks
            && found.tasks.is_empty()
            && !matches!(&said, VerdictReading::Clear(verdict) if verdict.decision == Decision::Dispute)
        {
            said = VerdictReading::Unclear(Unclear::NoTasks { unread: found.unread.clone() });
        }
        found.guarded = true;
        found.tampering = self.tampering(&at, planted)?;
        if let Some(tree) = &before.tree {
            let tracked = (role == Role::Judge).then(|| tracked_builds(self.context.root));
            let changed = self.tree.changes(self.context.root, tree, NAMED, tracked.as_ref());
            match role {
                // A judge that changes its own records has edited files, too.
                Role::Judge if !found.tampering.voided.is_empty() => {
                    said = VerdictReading::Unclear(Unclear::Edited { files: found.tampering.voided.clone() });
                }
                Role::Judge if !changed.is_empty() => {
                    said = VerdictReading::Unclear(Unclear::Edited { files: changed });
                }
                Role::Judge => {}
                Role::Worker => found.unchanged = Some(changed.is_empty()),
            }
        }
        let skips = matches!(&said, VerdictReading::Clear(verdict) if verdict.decision == Decision::Skip);
        found.untouched = skips && role == Role::Worker && self.is_untouched();
        if let VerdictReading::Clear(verdict) = &said {
            folder.write_verdict(&serde_json::to_string_pretty(verdict).unwrap_or_default())?;
        }
        found.said = Some(said);
        Ok(found)
    }

    /// Returns the host's notes to an agent about this attempt, in addition to the previous round's feedback. `token`
    /// is the attempt's token.
    pub(super) fn note(&self, at: &At, token: &str) -> String {
        let mut note = String::new();
        let (plan, state) = (self.context.plan, &self.state);
        // Writing to a String cannot fail.
        let step = plan.step(at.step);
        let judge = self.role(at) == Some(Role::Judge);
        let is_plain = step.is_some_and(|step| step.format() == Some(Format::Plain) && step.evaluates().is_none());
        // A plain program may print what it reads, so it gets a word of its own.
        let word = word_of_attempt(token);
        let vouched = format!("the word VERDICT, a space, the word {word}, a colon");
        let line = if is_plain { vouched.as_str() } else { "the word VERDICT, a colon" };
        if let Some(why) = state.last_unclear(at.step) {
            let whole = "\n\n## Your last answer could not be used\n\nReason: ";
            if let Unclear::NoTasks { .. } = why {
                let _ =
                    writeln!(note, "{whole}{}. End your last message with the tasks as one JSON object.", why.words());
                return note;
            }
            let _ = write!(
                note,
                "\n\n## Your last answer could not be used\n\nReason: {}. Judge again, and end your last message with \
                 a line of its own, outside any code fence: {line}, and then approve, reject, dispute or skip. Write \
                 nothing else on that line, and nothing after it.\n",
                why.words()
            );
            note.push_str(&self.last_answer(at));
        } else if judge && is_plain && plan.profile == Profile::Strict {
            let _ = write!(
                note,
                "\n\n## How to answer\n\nEnd with a line of its own: {line}, and then approve, reject, dispute or \
                 skip.\n"
            );
        }
        let idle = |step: usize| {
            let number = u32::try_from(step + 1).unwrap_or(0);
            plan.submits(number) && state.was_idle(number) && plan.program.step_group[step] == self.group_of(at)
        };
        if self.role(at) == Some(Role::Judge) && (0..plan.steps.len()).any(idle) {
            note.push_str("\n\nThe worker of this round ended without changing anything.\n");
        }
        if self.role(at) == Some(Role::Worker) && !state.voided().is_empty() {
            let _ = write!(
                note,
                "\n\n## Your last attempt does not count\n\nIt changed what your work is judged by: {}. Restore it, \
                 then do what you were asked to do.\n",
                state.voided().join(", ")
            );
        }
        if self.role(at) == Some(Role::Worker) && plan.submits(at.step) && state.was_idle(at.step) && state.is_retry() {
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
    pub(super) fn warning(&self, at: &At) -> String {
        if self.role(at) != Some(Role::Judge) {
            return String::new();
        }
        let fewer = self.fewer_tests().map(|(now, before)| {
            let tests = if now == 1 { "test" } else { "tests" };
            format!("{now} {tests} ran, and {before} ran before")
        });
        let mut told: Vec<String> = Vec::new();
        for words in self.weakened.iter().chain(self.state.weakened()).cloned().chain(fewer) {
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
    fn fewer_tests(&self) -> Option<(u32, u32)> {
        let plan = self.context.plan;
        let mut ran: Vec<(&str, u32, u32)> = Vec::new();
        for step in plan.steps.iter().filter(|step| step.is_check()) {
            let tests = u32::try_from(step.number).ok().and_then(|number| self.state.tests_of(number));
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
    fn last_answer(&self, at: &At) -> String {
        let Some(last) = at.attempt.checked_sub(1).filter(|last| *last > 0) else { return String::new() };
        let folder = self.context.journal.attempt_folder(self.context.run, at.step, &at.name, last);
        let [words, _] = folder.last_words(LAST_ANSWER);
        if words.trim().is_empty() {
            return String::new();
        }
        let quoted: Vec<String> = words.trim().lines().map(|line| format!("> {line}").trim_end().to_string()).collect();
        format!("\nYour last answer was:\n\n{}\n", quoted.join("\n"))
    }

    fn group_of(&self, at: &At) -> Option<usize> {
        self.context.plan.group_of(at.step)
    }
}
