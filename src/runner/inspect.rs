//! Reads what an attempt decided, and what it did to the tree.

use super::context::RunContext;
use super::work::{AttemptBaseline, WorkGuard, WorkWatch};
use crate::chain::Role;
use crate::checks::{OutputErrors, Profile, Tampering, joined, tests_run};
use crate::engine::{At, Exit, Finished};
use crate::journal::{AttemptCalls, AttemptFolder, JournalError, word_of_attempt};
use crate::marker::is_marker_line;
use crate::plan::{Kind, PlannedStep};
use crate::prompt::Segment;
use crate::verdict::{
    Answer, Decision, ProposedTask, Quotable, RecordedCall, Unclear, VerdictReading, VerdictSources, answers,
    proposal_of_calls, proposed_tasks, read, read_evaluation, recorded_calls, stated, without_echo,
};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

/// How many of the files that a judge changed are named.
const NAMED: usize = 5;
/// How much of the text that a plain program was given to read is searched for verdicts, in bytes.
const MOST_GIVEN: u64 = 16 << 20;

/// Returns the text of a regular file; empty for anything else. Follows links, as a program that prints the file does.
fn read_text(path: &Path, most: u64) -> String {
    if !fs::metadata(path).is_ok_and(|file| file.is_file()) {
        return String::new();
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    if read.is_ok() { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() }
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
    /// What was read of an attempt in a lane: nothing but its answer.
    pub(super) fn in_lane(said: Option<VerdictReading>) -> Self {
        Self { said, ..Self::default() }
    }

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

/// An attempt whose agent and everything that it started have ended.
pub(super) struct EndedAttempt<'e> {
    pub(super) at: &'e At,
    /// The agent's message; empty for a check.
    pub(super) message: String,
    /// Whether the agent's output may hold what it was given.
    pub(super) echoes: bool,
    pub(super) folder: &'e AttemptFolder,
    pub(super) token: &'e str,
    pub(super) before: &'e AttemptBaseline,
    pub(super) exit: Exit,
}

/// Reads what attempts have decided and done.
pub(super) struct Inspector<'i, 'a> {
    pub(super) context: &'i mut RunContext<'a>,
    pub(super) work: &'i mut WorkWatch,
    pub(super) guard: &'i mut WorkGuard,
}

impl Inspector<'_, '_> {
    /// Returns the decisions that are lines or objects of their own in what a plain program was given to read, because
    /// the program may only have printed them. Searches only if the program's output holds a decision that would count.
    fn given(&mut self, role: Role, message: &str, prompt: &str) -> Vec<Quotable> {
        let said = stated(message);
        if !said.iter().any(|said| said.decision.passes() || role == Role::Worker) {
            return Vec::new();
        }
        let root = self.context.root;
        let spec = self.context.plan.task.as_ref().map(|task| task.spec.clone()).filter(|spec| !spec.is_empty());
        let work = self.work.changes(self.context).unwrap_or_default();
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
        given.extend(stated(&self.work.commit_messages(root)));
        given
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
            self.work.keep_diagnosis(self.context.root, line, exit == Exit::Code(0));
        }
    }

    /// Returns what the attempt decided and did; a check decides nothing. The verdict's normal form is kept in the
    /// attempt's directory.
    pub(super) fn read(&mut self, attempt: EndedAttempt<'_>) -> Result<Read, JournalError> {
        let EndedAttempt { at, message, echoes: plain, folder, token, before, exit } = attempt;
        let mut found = Read::default();
        let Some(role) = self.context.role(at) else {
            let output = joined(&folder.whole_output());
            found.tests_run = tests_run(&output);
            self.keep_diagnosis(at, exit);
            found.failed_part = self.failed_part(at, &output).filter(|_| exit != Exit::Code(0));
            let errors = (exit != Exit::Code(0)).then(|| OutputErrors::of(&output));
            found.errors = errors.as_ref().map_or_else(Vec::new, OutputErrors::digests);
            // Distinguishes one failure from the next: the tree that it saw, and its errors without their numbers.
            let errors = errors.filter(|_| self.context.group_of(at).is_some());
            found.failure_digest =
                errors.map(|errors| self.work.fingerprint(self.context.root, errors.signature().as_bytes()));
            return Ok(found);
        };
        // Must come before our own writes there.
        let planted = self.guard.planted(self.context, folder);
        let left = AttemptCalls::of(folder, token);
        let (calls, file) = (recorded_calls(&left.take()), left.take_result());
        let message = if plain { without_echo(&message, &before.prompt) } else { message };
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
        found.tampering = self.guard.tampering(self.context, at, planted)?;
        if let Some(changed) = self.work.changed_by(self.context, at, before.tree.as_ref(), NAMED) {
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
        found.untouched = skips && role == Role::Worker && self.work.is_untouched(self.context);
        if let VerdictReading::Clear(verdict) = &said {
            folder.write_verdict(&serde_json::to_string_pretty(verdict).unwrap_or_default())?;
        }
        found.said = Some(said);
        Ok(found)
    }
}
