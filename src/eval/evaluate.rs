//! An evaluation from its first case to the prompt that wins: connects its machine (`machine`) with its lanes.

use super::candidate::Guards;
use super::leak::LeakGuard;
use super::machine::{EvalInput, EvalState};
use super::questions::Questions;
use super::requests::EvalContext;
use super::suite::Case;
use crate::engine::{EvalFacts, EvalLedger, Event, EventKind, HighestAttempt, Notice, Observer, RunOutcome, Stopwatch};
use crate::journal::Journal;
use crate::plan::{Outline, Overrides};
use crate::proc::containment;
use crate::runner::{Failure, JobSource, Lanes, Recorder, flushed, tell_news, work_in_lanes};
use indexmap::IndexMap;
use std::sync::Arc;
use std::time::Duration;

/// What an evaluation works with.
pub struct Setting<'a> {
    /// What prompts are made of, and which agents are asked.
    pub context: &'a EvalContext<'a>,
    /// The facts of the evaluation: prompt, cases, options.
    pub facts: Arc<EvalFacts>,
    /// A digest of everything that is asked.
    pub digest: &'a str,
    /// The times and limits that the command line sets.
    pub overrides: &'a Overrides,
    /// The agents as steps of one run.
    pub outline: &'a Outline,
    /// Limits that apply from now on, if the evaluation resumes.
    pub limits: &'a [String],
    /// The journal of the root.
    pub journal: &'a Journal,
    /// The number of the run in the journal.
    pub run: i64,
    /// The events of the run so far.
    pub events: &'a [Event],
    /// The highest attempt of each step that has left a directory, as (step, attempt).
    pub attempts: Vec<(u32, u32)>,
    /// The observer, which is notified of everything that happens.
    pub observer: &'a mut dyn Observer,
}

/// The result of an evaluation.
#[derive(Debug)]
pub struct EvalEnd {
    /// The outcome of its run.
    pub outcome: RunOutcome,
    /// Everything that is known of it from its events.
    pub ledger: EvalLedger,
}

impl EvalEnd {
    /// The result of an evaluation that has ended.
    pub(super) fn of(questions: Questions<'_>) -> Result<Self, Failure> {
        let outcome = questions.outcome.ok_or(Failure::Lost)?;
        Ok(Self { outcome, ledger: questions.state.ledger })
    }
}

/// Works until the evaluation is complete, or must end. What the journal already answers is not asked again.
///
/// # Errors
/// When the journal cannot be written, or signals cannot be received.
pub async fn evaluate(setting: Setting<'_>) -> Result<EvalEnd, Failure> {
    let recorder = setting.recorder();
    let mut questions = setting.questions(&recorder);
    let first = setting.first_input();
    let jobs = usize::try_from(setting.facts.options.jobs.max(1)).unwrap_or(1);
    let Setting { context, journal, observer, .. } = setting;
    let mut lanes = Lanes::open(jobs, context.root, context.world, journal, &recorder)?;
    questions.take(first)?;
    tell_news(&lanes, &mut |event| questions.see(event), observer);
    let halt = work_in_lanes(&mut lanes, &mut questions, observer).await?;
    if let Some(why) = &questions.no_proposal {
        observer.notice(&Notice::NoProposal(why));
    }
    questions.halt(halt)?;
    tell_news(&lanes, &mut |event| questions.see(event), observer);
    flushed(observer).await;
    EvalEnd::of(questions)
}

impl<'a> Setting<'a> {
    /// Numbers the events and the attempts after those of the run so far.
    pub(super) fn recorder(&self) -> Recorder {
        // An attempt may have been interrupted before it had a directory.
        let planned = self.events.iter().filter_map(|event| match &event.event {
            EventKind::AttemptPlanned { at, .. } => Some((at.step, at.attempt)),
            _ => None,
        });
        let seq = self.events.last().map_or(0, |event| event.seq);
        Recorder::new(self.run, seq, self.attempts.iter().copied().chain(planned))
    }

    /// The questions of the evaluation, before its first input.
    pub(super) fn questions<'r>(&self, recorder: &'r Recorder) -> Questions<'r>
    where
        'a: 'r,
    {
        let context = self.context;
        let time = context.settings.limits.time.map(|time| time.saturating_sub(worked(self.events)));
        let until = time.map(|time| context.world.uptime().saturating_add(time));
        let state = EvalState::of_events(self.events.iter().map(|event| &event.event));
        let kept = (self.journal.sibling(), recorder);
        Questions::new((context, guards(context, &self.facts)), kept, state, until, &self.facts.options)
    }

    /// The input with which the evaluation begins or resumes.
    pub(super) fn first_input(&self) -> EvalInput {
        EvalInput::Begin(Box::new(opening(self)), Arc::clone(&self.facts))
    }
}

/// Returns the guards: no candidate may give away a text that it is measured by, held out or not.
fn guards(context: &EvalContext<'_>, facts: &EvalFacts) -> Guards {
    let suite = context.suite;
    // Nothing is guarded if nothing is proposed.
    let cases = suite.cases.iter().filter(|_| facts.options.improves);
    let texts = cases.flat_map(Case::texts).chain(suite.examples.iter().map(String::as_str));
    Guards::new(LeakGuard::new(&facts.prompt, texts), &facts.prompt, facts.options.max_tokens)
}

/// Returns the first event: the evaluation begins or resumes.
fn opening(setting: &Setting<'_>) -> EventKind {
    let forkhestra = env!("CARGO_PKG_VERSION").into();
    if !setting.events.is_empty() {
        let attempts = setting.attempts.iter().map(|(step, attempt)| HighestAttempt { step: *step, attempt: *attempt });
        let worked_ms = u64::try_from(worked(setting.events).as_millis()).unwrap_or(u64::MAX);
        let limits = setting.limits.to_vec();
        return EventKind::RunResumed {
            forkhestra,
            attempts: attempts.collect(),
            limits,
            worked_ms,
            more: None,
            tree: None,
        };
    }
    EventKind::RunStarted {
        containment: containment(),
        queue: None,
        found: None,
        tree: None,
        rules: None,
        chain: setting.outline.chain.clone(),
        name: None,
        prompt: None,
        vars: IndexMap::new(),
        digest: setting.digest.to_string(),
        root: setting.context.root.display().to_string(),
        forkhestra,
        steps: u32::try_from(setting.outline.steps.len()).unwrap_or(u32::MAX),
        overrides: setting.overrides.clone(),
        base: None,
        task: None,
    }
}

/// How long a run had been running after these events.
#[must_use]
pub fn worked(events: &[Event]) -> Duration {
    let mut watch = Stopwatch::default();
    for event in events {
        watch.see(event);
    }
    Duration::from_millis(watch.milliseconds())
}
