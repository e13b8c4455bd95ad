//! What an evaluation asks, and what becomes of the answers. This file has the open questions and the state that they
//! follow from; the others ask them, and judge the answers.

pub(super) mod asking;
pub(super) mod judging;
mod selecting;

use crate::engine::{AnswerAttempt, AttemptOutcome, EvalOptions, LimitKind, RunOutcome};
use crate::eval::candidate::Guards;
use crate::eval::feedback::{CaseFeedback, FeedbackTexts};
use crate::eval::machine::{EvalEffect, EvalInput, EvalState, EvalTransition, OutputPair, Sample};
use crate::eval::question::{CaseRun, Question};
use crate::eval::requests::EvalContext;
use crate::eval::suite::Case;
use crate::journal::{AnswerPlace, Journal};
use crate::plan::Plan;
use crate::runner::{Failure, Halt, LaneAnswer, Recorder};
use crate::source::Diagnostic;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tempfile::TempDir;

/// The open questions of an evaluation. What is asked follows from its machine, which gets the answers.
pub(super) struct Questions<'a> {
    pub(super) context: &'a EvalContext<'a>,
    pub(super) guards: Guards,
    pub(super) journal: Journal,
    pub(super) recorder: &'a Recorder,
    pub(super) state: EvalState,
    /// The uptime at which the time limit of the whole evaluation is reached.
    pub(super) until: Option<Duration>,
    /// The texts of the cases, which no feedback may quote; none if there is no improver.
    pub(super) texts: FeedbackTexts,
    /// Whether answers of earlier runs are ignored.
    fresh: bool,
    /// Questions that follow from an answer.
    pub(super) queue: VecDeque<Question>,
    /// What is asked after them: a generation with a sample, which is smaller than a question.
    samples: VecDeque<(u32, Sample)>,
    /// The pairs of outputs that are compared after all samples.
    pairs: VecDeque<OutputPair>,
    /// Questions that wait for the answer to an equal one, on which a lane works.
    equal: Vec<Question>,
    /// Whether no question is asked until a lane has an answer: those under way may use up a limit.
    held: bool,
    /// The questions that lanes work on, by job, each with the key by which an equal one is recognized.
    pub(super) under_way: HashMap<usize, (Question, String)>,
    /// The files of the cases that commands judge, by job.
    case_folders: HashMap<usize, TempDir>,
    /// The number of questions that were given to lanes, not counting retries.
    pub(super) issued: u32,
    /// The limit because of which the remaining questions are not asked.
    pub(super) limit: Option<LimitKind>,
    pub(super) outcome: Option<RunOutcome>,
    /// Why there is no candidate, if there is none.
    pub(super) no_proposal: Option<String>,
}

impl<'a> Questions<'a> {
    pub(super) fn new(
        (context, guards): (&'a EvalContext<'a>, Guards),
        (journal, recorder): (Journal, &'a Recorder),
        state: EvalState,
        until: Option<Duration>,
        options: &EvalOptions,
    ) -> Self {
        let quotable = context.suite.cases.iter().filter(|_| options.improves).flat_map(Case::texts);
        let texts = FeedbackTexts::of(quotable);
        let issued = state.ledger.totals.planned;
        let (queue, under_way, limit, outcome, no_proposal) = (VecDeque::new(), HashMap::new(), None, None, None);
        Self {
            context,
            guards,
            journal,
            recorder,
            state,
            until,
            texts,
            fresh: options.fresh,
            queue,
            pairs: VecDeque::new(),
            samples: VecDeque::new(),
            equal: Vec::new(),
            held: false,
            under_way,
            case_folders: HashMap::new(),
            issued,
            limit,
            outcome,
            no_proposal,
        }
    }

    /// Handles one input: decides, records the events, and queues the questions.
    pub(super) fn take(&mut self, input: EvalInput) -> Result<(), Failure> {
        let is_result = matches!(input, EvalInput::Result(_));
        let EvalTransition { state, events, effects } = std::mem::take(&mut self.state).decide(&self.guards, input);
        self.state = state;
        self.recorder.record_with_next(events);
        // After a crash, a resume finds the result again: from the stored answers, by running a command again, or by
        // asking again where something had failed.
        if !is_result || !effects.is_empty() {
            self.record_waiting()?;
        }
        for effect in effects {
            match effect {
                EvalEffect::Measure { generation, samples } => {
                    self.samples.extend(samples.into_iter().map(|sample| (generation, sample)));
                }
                EvalEffect::Compare { pairs } => self.pairs.extend(pairs),
                EvalEffect::Improve { generation, of } => self.queue.push_back(Question::Rewrite { generation, of }),
                EvalEffect::Finish(outcome) => self.outcome = Some(outcome),
            }
        }
        Ok(())
    }

    /// Records the results that wait for a commit.
    pub(super) fn record_waiting(&mut self) -> Result<(), Failure> {
        Ok(self.recorder.record_waiting((&mut self.journal, self.context.world))?)
    }

    pub(super) fn next_question(&mut self) -> Option<Question> {
        self.queue.pop_front().or_else(|| {
            let (generation, sample) = self.samples.pop_front()?;
            Some(Question::Answer(CaseRun::new(generation, sample)))
        })
    }

    /// Limits a plan to what is left of the limits of the whole evaluation.
    fn limited(&self, mut plan: Plan) -> Plan {
        let spent = self.state.ledger.totals.all.spent.unwrap_or_default();
        if let Some(most) = &mut plan.limits.cost {
            *most -= spent.cost_usd.unwrap_or(0.0);
        }
        if let Some(most) = &mut plan.limits.tokens {
            *most = most.saturating_sub(spent.total());
        }
        plan.limits.time = self.until.map(|until| until.saturating_sub(self.context.world.uptime()));
        plan
    }

    pub(super) fn case(&self, of: CaseRun) -> &'a Case {
        &self.context.suite.cases[of.case]
    }

    /// The iteration that the attempts at a case have: the cases are counted on from repetition to repetition.
    pub(super) fn iteration(&self, of: CaseRun) -> u32 {
        let before = (of.repetition as usize - 1) * self.context.suite.cases.len();
        u32::try_from(before + of.case + 1).unwrap_or(u32::MAX)
    }

    /// The name of the step of a question: that of its agent.
    fn name_of(&self, question: &Question) -> String {
        let suite = self.context.suite;
        let agent = match question {
            Question::Command(_) => return "criteria".into(),
            Question::Evaluate(evaluating) => evaluating.evaluator(suite),
            Question::Select(_) => suite.select_best.as_ref().unwrap_or(&suite.executor),
            Question::Rewrite { .. } => suite.rewriter(),
            Question::Answer(of) => suite.column(of.generation).0,
        };
        agent.value.clone()
    }

    pub(super) fn prompt(&self, generation: u32) -> String {
        self.state.ledger.prompts.get(&generation).map_or_else(String::new, |known| known.prompt.clone())
    }

    /// Returns the feedback on a generation's cases, without the held-out ones.
    fn feedback(&self, generation: u32) -> CaseFeedback {
        let mut feedback = CaseFeedback::default();
        let results = self.state.ledger.of(generation);
        for result in results.filter(|result| !result.held_out && result.remarks.error.is_none()) {
            feedback.add(&result.remarks.issues, &result.remarks.suggestions);
        }
        feedback
    }

    fn rewritten(&mut self, generation: u32, answer: Result<String, String>) -> Result<(), Failure> {
        self.no_proposal = answer.as_ref().err().cloned();
        self.take(EvalInput::Answer { generation, answer })
    }

    /// Ends the evaluation if it is not complete: only a limit or a signal leaves questions open.
    pub(super) fn halt(&mut self, halt: Option<Halt>) -> Result<(), Failure> {
        let halt = halt.or(self.limit.map(Halt::Limit)).unwrap_or(Halt::Limit(LimitKind::Time));
        self.take(EvalInput::Halt(match halt {
            Halt::Signal(signal) => RunOutcome::Interrupted { signal },
            Halt::Limit(limit) => RunOutcome::LimitReached { limit },
        }))
    }
}

/// The attempt of an answer of the executor.
pub(super) fn attempt_of(place: AnswerPlace) -> AnswerAttempt {
    AnswerAttempt { run: place.run, attempt: place.attempt }
}

/// Returns why there is no answer, in one line.
pub(super) fn why(answer: &LaneAnswer) -> String {
    let said = answer.finished.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    let how = match &answer.outcome {
        Some(AttemptOutcome::Unfinished) => "its evaluation was invalid three times".to_string(),
        Some(AttemptOutcome::Failed { code }) => format!("exit code {code}"),
        Some(AttemptOutcome::Crashed { signal }) => format!("killed by signal {signal}"),
        Some(AttemptOutcome::NotStarted { error: why }) => format!("could not be started: {why}"),
        Some(AttemptOutcome::TimedOut) => "it timed out".into(),
        Some(AttemptOutcome::Idle) => "it was silent and idle for too long".into(),
        Some(AttemptOutcome::Limited) => "it hit a usage limit".into(),
        Some(AttemptOutcome::Unavailable { .. }) => "it was unavailable".into(),
        _ => "it failed".into(),
    };
    let line: String = format!("{how}{said}").split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

fn words(faults: &[Diagnostic]) -> String {
    faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>().join("; ")
}
