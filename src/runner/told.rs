//! What an attempt is told: words out of earlier attempts' folders.

use super::driver::Driver;
use super::fill::{Moment, fill};
use crate::chain::Role;
use crate::checks::{OutputErrors, joined};
use crate::context::OF_WORK;
use crate::engine::{At, AttemptOutcome, Feedback, FeedbackCause};
use crate::journal::{AttemptFolder, JournalError};
use crate::plan::{Kind, PlannedPrompt, PlannedStep};
use crate::prompt::{
    FEEDBACK_CHARACTERS, FeedbackText, Late, Segment, exhausted_feedback, failed_check_feedback, found_so_far,
    rejected_feedback,
};
use crate::verdict::{Decision, ReadFrom};

/// The line above the findings of a judge.
const ALL_FINDINGS: &str = "All findings so far:";
/// How many errors of a check are told.
const FIRST_ERRORS: usize = 5;

/// What an attempt is told.
pub(super) struct Told {
    /// Beside the task: what ended the round before, warnings, our notes.
    pub words: String,
    /// All of it, as its agent gets it; empty where there is no prompt.
    pub prompt: String,
}

impl Driver<'_> {
    /// What an attempt is told, its prompt written down; or why there is no prompt.
    pub(super) fn told(
        &mut self,
        step: &PlannedStep,
        at: &At,
        feedback: Option<&Feedback>,
        (folder, token): (&AttemptFolder, &str),
    ) -> Result<Result<Told, String>, JournalError> {
        let before = if self.lane.is_some() { FeedbackText::default() } else { self.told_before(at) };
        // A judge's template has a place for findings, and none for this.
        let (feedback, before) = match feedback {
            Some(feedback) => (self.feedback_text(feedback, at), before),
            None if step.role() == Some(Role::Judge) => (FeedbackText::default(), before),
            None => (before, FeedbackText::default()),
        };
        // First of all in a template; else first of what we have to say.
        let warning = self.warning(at);
        let templated = step.prompt.as_ref().is_some_and(|prompt| prompt.around.is_some());
        let (head, warning) = if templated { (warning, String::new()) } else { (String::new(), warning) };
        let warning = if warning.is_empty() { warning } else { format!("\n\n{}\n", warning.trim_end()) };
        let note = before.appended() + &warning + &self.note(at, token);
        let mut told = Told { words: feedback.appended() + &note, prompt: String::new() };
        if let Some(prompt) = &step.prompt {
            told.prompt = match self.prompt(prompt, at, &feedback, &note, (folder, token))? {
                Ok(whole) => head + &whole,
                Err(why) => return Ok(Err(why)),
            };
            folder.write_prompt(&told.prompt)?;
        }
        Ok(Ok(told))
    }

    /// The prompt of an attempt, or why there is none: then its folder says so, too.
    fn prompt(
        &mut self,
        prompt: &PlannedPrompt,
        at: &At,
        feedback: &FeedbackText,
        note: &str,
        (folder, token): (&AttemptFolder, &str),
    ) -> Result<Result<String, String>, JournalError> {
        // A template with a place for a judge's words alone has it for a rejection, and for nothing else.
        let shown = prompt.around.as_ref().map(|around| around.template.shown()).unwrap_or_default();
        let has_place = feedback.rejected && shown.contains("reviewer_notes");
        let appended = if has_place { String::new() } else { feedback.appended() };
        let task = prompt.task(&|late| match late {
            Late::Feedback => format!("{appended}{note}"),
            _ => String::new(),
        });
        let Some(around) = &prompt.around else { return Ok(Ok(task)) };
        let diagnostics = self.diagnostics();
        let wanted = around.template.variables();
        if wanted.contains("artifacts_root") {
            folder.make_artifacts(token)?;
        }
        let changed = if OF_WORK.iter().any(|name| wanted.contains(*name)) { self.work() } else { None };
        let moment = Moment {
            run: self.cast.run,
            at,
            task: &task,
            feedback: &feedback.body,
            reviewer_notes: &feedback.notes,
            rejected: feedback.rejected,
            work: self.cast.plan.task.as_ref(),
            issues: &self.issues(),
            next_tasks: &self.next_tasks(),
            rejections: self.rejections(),
            diagnostics: &diagnostics,
            changed: changed.as_ref(),
            folder: folder.path(),
            artifacts: &folder.artifacts_path(token),
        };
        match fill(around, self.cast.root, &moment) {
            Ok((rendered, diff)) => {
                if let Some(diff) = diff {
                    folder.write_diff(&diff)?;
                }
                // A template that has a place for feedback has none for this.
                let mut text = rendered.text();
                if !prompt.segments.contains(&Segment::Late(Late::Feedback)) {
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

    /// What the agents of a task's first round are told: what an earlier run, or a human, said of it last.
    pub(super) fn told_before(&self, at: &At) -> FeedbackText {
        let notes = self.cast.plan.task.as_ref().map_or("", |task| task.notes.as_str());
        if notes.is_empty() || at.round > 1 || at.iteration > 1 {
            return FeedbackText::default();
        }
        let quoted: Vec<String> = notes.lines().map(|line| format!("> {line}").trim_end().to_string()).collect();
        let heading = "What was said of this task before";
        let rejected = self.cast.plan.task.as_ref().is_some_and(|task| task.rejections > 0);
        FeedbackText { heading, body: quoted.join("\n"), rejected, notes: notes.to_string() }
    }

    /// What a judge said when it rejected the work last, in this run or before it.
    fn reviewer_notes(&self) -> String {
        match self.state.verdict() {
            Some((_, verdict)) if verdict.decision == Decision::Reject => verdict.notes.clone(),
            Some(_) => String::new(),
            None => self.cast.plan.task.as_ref().map_or(String::new(), |task| task.notes.clone()),
        }
    }

    /// What its judges found so far, for a judge: every finding by its title, the last verdict in full.
    fn issues(&self) -> String {
        let notes = self.state.verdict().map_or("", |(_, verdict)| verdict.notes.as_str());
        found_so_far(&self.state.ledger().text(), notes)
    }

    /// What the last handoff of a judge wants next, a line each.
    fn next_tasks(&self) -> String {
        let notes = self.state.verdict().map_or("", |(_, verdict)| verdict.notes.as_str());
        let next = notes.lines().filter_map(|line| line.strip_prefix("- next: "));
        next.map(|task| format!("- {task}")).collect::<Vec<_>>().join("\n")
    }

    /// How often the work was rejected, earlier runs of its task included.
    fn rejections(&self) -> u32 {
        let before = self.cast.plan.task.as_ref().map_or(0, |task| task.rejections);
        before.saturating_add(self.state.rejections())
    }

    /// What the last `diagnose` of this run found; nothing when it passed or there was none.
    pub(super) fn diagnostics(&self) -> String {
        let steps = self.cast.plan.steps.iter().filter(|step| step.is_check() && step.name == "diagnose");
        let mut last = steps.filter_map(|step| {
            let number = u32::try_from(step.number).ok()?;
            let attempts = self.state.attempts(number);
            (attempts > 0 && self.state.last_failed(number)).then_some((number, attempts))
        });
        let Some((step, attempt)) = last.next_back() else { return String::new() };
        let folder = self.cast.journal.attempt_folder(self.cast.run, step, "diagnose", attempt);
        OutputErrors::of(&joined(&folder.whole_output())).summary(FIRST_ERRORS)
    }

    pub(super) fn feedback_text(&self, feedback: &Feedback, at: &At) -> FeedbackText {
        let step = self.cast.plan.step(at.step);
        if step.and_then(PlannedStep::role) == Some(Role::Judge) {
            let body = self.issues();
            return FeedbackText { heading: "Findings of earlier rounds", body, ..FeedbackText::default() };
        }
        let from = &feedback.from;
        let folder = self.cast.journal.attempt_folder(self.cast.run, from.step, &from.name, from.attempt);
        let words = folder.last_words(4 * FEEDBACK_CHARACTERS as u64 + 1);
        let log = folder.path().display().to_string();
        let body = match &feedback.cause {
            FeedbackCause::Exhausted { iterations } => {
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
                    AttemptOutcome::Idle => "hung, silent and idle".into(),
                    _ => "failed".into(),
                };
                let line = match self.cast.plan.step(from.step).map(|step| &step.kind) {
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
        // A worker that is shown half of an output is told so.
        let missing = self.cast.journal.missing_output(self.cast.run, from.step, &from.name, from.attempt);
        if let Ok(Some(missing)) = missing {
            body = format!("(Its output is not whole: {missing}. The rest is lost.)\n\n{body}");
        }
        let ledger = self.state.ledger().text();
        if rejected {
            // A template with a place for the notes alone has the findings with their numbers there, too.
            if let Some((_, findings)) = body.split_once(ALL_FINDINGS) {
                notes = format!("{}\n\n{ALL_FINDINGS}{findings}", notes.trim_end());
            }
        } else if !ledger.trim().is_empty() {
            // What a judge found is open still, whatever a check says meanwhile.
            body = format!("{body}\n\n{ALL_FINDINGS}\n\n{}", ledger.trim_end());
        }
        FeedbackText { heading: "Feedback from the last round", body, rejected, notes }
    }
}
