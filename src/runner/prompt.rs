//! The prompt of an attempt, with feedback from earlier attempts.

use super::context::RunContext;
use super::notes::{note, warning};
use super::render::{AttemptContext, fill};
use super::work::WorkWatch;
use crate::chain::{Delivery, Role};
use crate::checks::{OutputErrors, joined};
use crate::context::OF_WORK;
use crate::engine::{At, AttemptOutcome, Feedback, FeedbackCause, Notice, State};
use crate::journal::{AttemptCalls, AttemptFolder, JournalError};
use crate::plan::{Kind, PlannedPrompt, PlannedStep};
use crate::prompt::{
    FEEDBACK_CHARACTERS, FeedbackText, Late, Segment, exhausted_feedback, failed_check_feedback, found_so_far,
    rejected_feedback, told_by_people,
};
use crate::verdict::{Decision, ReadFrom};

/// The line above a judge's findings.
const ALL_FINDINGS: &str = "All findings so far:";
/// The end of the prompt of an attempt that continues its session.
const CONTINUED: &str = "\nGo on with the same task, by the same rules. Files may have changed since: look at them again before you edit.\n";
/// How many errors of a check are quoted.
const FIRST_ERRORS: usize = 5;

/// The text that an attempt is given.
#[derive(Default)]
pub(super) struct AttemptPrompt {
    /// Everything in addition to the task: feedback of the previous round, warnings and our notes.
    pub words: String,
    /// The whole prompt, as the agent receives it; empty if there is none.
    pub prompt: String,
    /// What follows the planned text of a prompt that is passed as an argument and has no place for it; often empty.
    pub appended: String,
}

/// Writes the prompts of attempts.
pub(super) struct PromptWriter<'w, 'a> {
    pub(super) context: &'w mut RunContext<'a>,
    pub(super) state: &'w State,
    pub(super) work: &'w mut WorkWatch,
    /// Descriptions of changes to what the work is judged by.
    pub(super) weakened: &'w [String],
    /// Whether the attempt is one of several at once, which are told nothing of earlier work.
    pub(super) in_lane: bool,
}

impl PromptWriter<'_, '_> {
    /// Returns what an attempt is told, and writes its prompt to its directory; or returns why there is no prompt.
    pub(super) fn attempt_prompt(
        &mut self,
        step: &PlannedStep,
        at: &At,
        feedback: Option<&Feedback>,
        (folder, token): (&AttemptFolder, &str),
        continues: bool,
    ) -> Result<Result<AttemptPrompt, String>, JournalError> {
        let before = if self.in_lane { FeedbackText::default() } else { self.told_before(at) };
        // A judge's template has a place for findings, but none for earlier notes on the task.
        let (feedback, before) = match feedback {
            Some(feedback) => (self.feedback_text(feedback, at), before),
            None if step.role() == Some(Role::Judge) => (FeedbackText::default(), before),
            None => (before, FeedbackText::default()),
        };
        // With a template the warning comes first in the prompt; otherwise it comes first among our notes.
        let warning = warning((self.context, self.state), self.weakened, at);
        let templated = step.prompt.as_ref().is_some_and(|prompt| prompt.around.is_some());
        let (head, warning) = if templated { (warning, String::new()) } else { (String::new(), warning) };
        let warning = if warning.is_empty() { warning } else { format!("\n\n{}\n", warning.trim_end()) };
        let people = told_by_people(self.state.messages());
        let note = before.appended() + &people + &warning + &note((self.context, self.state), at, token);
        let mut told = AttemptPrompt { words: feedback.appended() + &note, ..AttemptPrompt::default() };
        if continues {
            told.prompt = head + told.words.trim_start() + CONTINUED;
            folder.write_prompt(&told.prompt)?;
            self.context.observer.notice(&Notice::Prompt(&told.prompt));
            return Ok(Ok(told));
        }
        if let Some(prompt) = &step.prompt {
            told.prompt = match self.prompt(prompt, at, &feedback, (&note, &people), (folder, token))? {
                Ok(whole) => head + &whole,
                Err(why) => return Ok(Err(why)),
            };
            folder.write_prompt(&told.prompt)?;
            self.context.observer.notice(&Notice::Prompt(&told.prompt));
            if prompt.deliver == Delivery::Arg && prompt.around.is_none() && !has_place_for_notes(prompt) {
                told.appended = people;
            }
        }
        Ok(Ok(told))
    }

    /// Returns the prompt of an attempt, or why there is none. The reason is also written to the attempt's directory.
    fn prompt(
        &mut self,
        prompt: &PlannedPrompt,
        at: &At,
        feedback: &FeedbackText,
        (note, people): (&str, &str),
        (folder, token): (&AttemptFolder, &str),
    ) -> Result<Result<String, String>, JournalError> {
        // A template that only has a place for a judge's notes uses it only after a rejection.
        let shown = prompt.around.as_ref().map(|around| around.template.shown()).unwrap_or_default();
        let has_place = feedback.rejected && shown.contains("reviewer_notes");
        let appended = if has_place { String::new() } else { feedback.appended() };
        let task = prompt.task(&|late| match late {
            Late::Feedback => format!("{appended}{note}"),
            _ => String::new(),
        });
        let has_place_for_notes = has_place_for_notes(prompt);
        let Some(around) = &prompt.around else {
            // An agent that gets no feedback still gets what a person tells it.
            return Ok(Ok(if has_place_for_notes { task } else { task + people }));
        };
        let diagnostics = self.diagnostics();
        let (wanted, left) = (around.template.variables(), AttemptCalls::of(folder, token));
        if wanted.contains("artifacts_root") {
            left.make_artifacts()?;
        }
        let changed =
            if OF_WORK.iter().any(|name| wanted.contains(*name)) { self.work.changes(self.context) } else { None };
        let facts = AttemptContext {
            run: self.context.run,
            at,
            task: &task,
            feedback: &feedback.body,
            reviewer_notes: &feedback.notes,
            rejected: feedback.rejected,
            work: self.context.plan.task.as_ref(),
            issues: &self.issues(),
            next_tasks: &self.next_tasks(),
            rejections: self.rejections(),
            diagnostics: &diagnostics,
            changed: changed.as_ref(),
            folder: folder.path(),
            artifacts: &left.artifacts_path(),
        };
        match fill(around, self.context.root, &facts) {
            Ok((rendered, diff)) => {
                if let Some(diff) = diff {
                    folder.write_diff(&diff)?;
                }
                // A template that has a place for feedback has none for our notes.
                let mut text = rendered.text();
                if !has_place_for_notes {
                    text.push_str(note);
                }
                Ok(Ok(text))
            }
            Err(error) => {
                let why = format!("its template cannot be rendered: {error}");
                folder.write_error(&why)?;
                Ok(Err(why))
            }
        }
    }

    /// Returns what the agents of a task's first round are told: the latest notes of an earlier run or of a person.
    fn told_before(&self, at: &At) -> FeedbackText {
        let notes = self.context.plan.task.as_ref().map_or("", |task| task.notes.as_str());
        if notes.is_empty() || at.round > 1 || at.iteration > 1 {
            return FeedbackText::default();
        }
        let quoted: Vec<String> = notes.lines().map(|line| format!("> {line}").trim_end().to_string()).collect();
        let heading = "Earlier notes on this task";
        let rejected = self.context.plan.task.as_ref().is_some_and(|task| task.rejections > 0);
        FeedbackText { heading, body: quoted.join("\n"), rejected, notes: notes.to_string() }
    }

    /// Returns a judge's notes from the last rejection, in this run or before it.
    fn reviewer_notes(&self) -> String {
        match self.state.verdict() {
            Some((_, verdict)) if verdict.decision == Decision::Reject => verdict.notes.clone(),
            Some(_) => String::new(),
            None => self.context.plan.task.as_ref().map_or(String::new(), |task| task.notes.clone()),
        }
    }

    /// Returns the findings so far, for a judge: every finding by its title, and the last verdict in full.
    fn issues(&self) -> String {
        let notes = self.state.verdict().map_or("", |(_, verdict)| verdict.notes.as_str());
        found_so_far(&self.state.ledger().text(), notes)
    }

    /// Returns the next tasks from a judge's last handoff, one per line.
    fn next_tasks(&self) -> String {
        let notes = self.state.verdict().map_or("", |(_, verdict)| verdict.notes.as_str());
        let next = notes.lines().filter_map(|line| line.strip_prefix("- next: "));
        next.map(|task| format!("- {task}")).collect::<Vec<_>>().join("\n")
    }

    /// Returns how often the work was rejected, including in earlier runs of its task.
    fn rejections(&self) -> u32 {
        let before = self.context.plan.task.as_ref().map_or(0, |task| task.rejections);
        before.saturating_add(self.state.rejections())
    }

    /// Returns what the last `diagnose` of this run found; empty if it passed or if there was none.
    fn diagnostics(&self) -> String {
        let steps = self.context.plan.steps.iter().filter(|step| step.is_check() && step.name == "diagnose");
        let mut last = steps.filter_map(|step| {
            let number = u32::try_from(step.number).ok()?;
            let attempts = self.state.attempts(number);
            (attempts > 0 && self.state.last_failed(number)).then_some((number, attempts))
        });
        let Some((step, attempt)) = last.next_back() else { return String::new() };
        let folder = self.context.journal.files().attempt_folder(self.context.run, step, "diagnose", attempt);
        OutputErrors::of(&joined(&folder.whole_output())).summary(FIRST_ERRORS)
    }

    fn feedback_text(&self, feedback: &Feedback, at: &At) -> FeedbackText {
        let step = self.context.plan.step(at.step);
        if step.and_then(PlannedStep::role) == Some(Role::Judge) {
            let body = self.issues();
            return FeedbackText { heading: "Findings of earlier rounds", body, ..FeedbackText::default() };
        }
        let from = &feedback.from;
        let folder = self.context.journal.files().attempt_folder(self.context.run, from.step, &from.name, from.attempt);
        let words = folder.last_words(4 * FEEDBACK_CHARACTERS as u64 + 1);
        let log = folder.path().display().to_string();
        let body = match &feedback.cause {
            FeedbackCause::IterationsExhausted { iterations } => {
                exhausted_feedback(from.round, &from.name, *iterations, &words, &log)
            }
            FeedbackCause::Rejected { .. } => {
                let verdict = self.state.verdict().filter(|(at, _)| at == from);
                let notes = verdict.map_or("", |(_, verdict)| verdict.notes.as_str());
                let ledger = self.state.ledger().text();
                let person = verdict.is_some_and(|(_, verdict)| verdict.from == ReadFrom::Person);
                let who = if person { "A person".to_string() } else { format!("`{}`", from.name) };
                rejected_feedback(from.round, &who, self.rejections(), notes, &ledger)
            }
            FeedbackCause::CheckFailed { outcome } => {
                let how = match outcome {
                    AttemptOutcome::Failed { code } => format!("failed with exit code {code}"),
                    AttemptOutcome::Crashed { signal } => format!("was killed by signal {signal}"),
                    AttemptOutcome::TimedOut => "took longer than its timeout".into(),
                    AttemptOutcome::Idle => "was silent and idle for too long".into(),
                    _ => "failed".into(),
                };
                let line = match self.context.plan.step(from.step).map(|step| &step.kind) {
                    Some(Kind::Check { line, .. }) => line.as_str(),
                    _ => "",
                };
                let errors = OutputErrors::of(&joined(&folder.whole_output()));
                let errors = if errors.found.is_empty() { String::new() } else { errors.summary(FIRST_ERRORS) };
                failed_check_feedback(from.round, &from.name, line, &how, &errors, &words, &log)
            }
        };
        let rejected = matches!(feedback.cause, FeedbackCause::Rejected { .. });
        let (mut body, mut notes) = (body.trim().to_string(), self.reviewer_notes());
        // A worker that is shown incomplete output is told so.
        let lengths = self.context.journal.events().lengths(self.context.run, from.step, from.attempt).ok().flatten();
        if let Some(missing) = lengths.and_then(|(stdout, stderr)| folder.missing(stdout, stderr)) {
            body = format!("(Its output is incomplete: {missing}. The rest is lost.)\n\n{body}");
        }
        let ledger = self.state.ledger().text();
        if rejected {
            // In a template that only has a place for the notes, the numbered findings go there, too.
            if let Some((_, findings)) = body.split_once(ALL_FINDINGS) {
                notes = format!("{}\n\n{ALL_FINDINGS}{findings}", notes.trim_end());
            }
        } else if !ledger.trim().is_empty() {
            // A judge's findings stay open, whatever a check reports in the meantime.
            body = format!("{body}\n\n{ALL_FINDINGS}\n\n{}", ledger.trim_end());
        }
        FeedbackText { heading: "Feedback from the last round", body, rejected, notes }
    }
}

/// Whether feedback and notes have a place in a prompt's own text.
fn has_place_for_notes(prompt: &PlannedPrompt) -> bool {
    prompt.segments.contains(&Segment::Late(Late::Feedback))
}
