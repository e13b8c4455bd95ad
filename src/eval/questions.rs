//! What an evaluation asks in its lanes, and what it does with the answers: it measures criteria, asks for evaluations,
//! and takes over a new prompt. A question with a stored answer is not asked again.

use super::candidate::Guards;
use super::feedback::{CaseFeedback, FeedbackTexts};
use super::jobs::{for_command, for_tree};
use super::machine::{
    EvalEffect, EvalInput, EvalState, EvalTransition, IMPROVES, OutputPair, Sample, limit_reached, may_reach,
};
use super::question::{CaseRun, Evaluating, Question};
use super::requests::{EvalContext, key_of};
use super::suite::Case;
use crate::engine::{
    AnswerAttempt, At, AttemptOutcome, EvalOptions, Event, EventKind, Finished, LimitKind, RunOutcome,
};
use crate::journal::{AnswerPlace, Journal, StoredAnswer};
use crate::plan::{Part, Plan};
use crate::runner::{Failure, Job, JobSource, LONGEST_ANSWER, LaneAnswer, Recorder};
use crate::source::Diagnostic;
use crate::verdict::{ScoreMode, evaluation};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tempfile::TempDir;

/// Connects the machine of an evaluation with its lanes: asks the machine's questions, and returns the answers to it.
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
    /// The pairs of outputs that are compared after them.
    pairs: VecDeque<OutputPair>,
    /// What is asked after them: a generation with a sample, which is smaller than a question.
    samples: VecDeque<(u32, Sample)>,
    /// Questions that wait for the answer to an equal one, on which a lane works.
    equal: Vec<Question>,
    /// Whether no question is asked until a lane has an answer: those under way may use up a limit.
    held: bool,
    /// The questions that lanes work on, by job, each with the key under which its answer is stored.
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
        let EvalTransition { state, events, effects } = std::mem::take(&mut self.state).decide(&self.guards, input);
        self.state = state;
        let events = self.recorder.record((&mut self.journal, self.context.world), events, None, "")?;
        self.recorder.tell_later(events);
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

    /// Returns the job for a question; `None` if a stored answer was used, the question cannot be asked, or a limit was
    /// reached.
    pub(super) fn job_for(&mut self, mut question: Question) -> Result<Option<Job>, Failure> {
        let step = question.step();
        if let Question::Answer(of) = question
            && let Some(output) = &self.case(of).output
        {
            let answer = StoredAnswer { said: output.to_string(), ..StoredAnswer::default() };
            return self.answered(of, answer).map(|()| None);
        }
        if let Question::Command(judging) = &mut question
            && let Err(why) = self.lay_out(judging)
        {
            return self.cannot_be_asked(&question, why).map(|()| None);
        }
        let plan = match self.plan_of(&question) {
            Ok(plan) => plan,
            Err(why) => return self.cannot_be_asked(&question, why).map(|()| None),
        };
        let key = match &question {
            // What a command says is not stored: its files may have changed.
            Question::Command(judging) => judging.key(),
            _ => key_of(&plan, question.repetition()),
        };
        let Some(question) = self.known(question, &key)? else { return Ok(None) };
        let late = self.until.is_some_and(|until| self.context.world.uptime() >= until);
        let totals = &self.state.ledger.totals;
        self.limit = limit_reached(totals, &plan.limits, self.context.settings.limits.attempts, self.issued, late);
        if self.limit.is_some() {
            self.queue.clear();
            self.samples.clear();
            self.pairs.clear();
            self.equal.clear();
            return Ok(None);
        }
        if self.under_way.values().any(|(_, asked)| *asked == key) {
            self.equal.push(question);
            return Ok(None);
        }
        self.held = may_reach(&self.state.ledger.totals, &plan.limits, self.under_way.len());
        if self.held {
            self.queue.push_front(question);
            return Ok(None);
        }
        let (generation, iteration) = match &question {
            Question::Answer(of) => (of.generation, self.iteration(*of)),
            Question::Evaluate(evaluating) => (evaluating.of.generation, self.iteration(evaluating.of)),
            Question::Command(judging) => (judging.of.generation, self.iteration(judging.of)),
            Question::Select(selecting) => (selecting.pair.first, selecting.pair.case + 1),
            Question::Rewrite { generation, .. } => (*generation, 1),
        };
        let id = self.issued as usize;
        let mut plan = self.limited(plan);
        if let (Question::Answer(_), Some(trees)) = (&question, self.context.trees) {
            for_tree(&mut plan, trees.store.path());
        }
        if let Question::Command(judging) = &question {
            match self.case_folder(judging) {
                Ok(folder) => {
                    for_command(&mut plan, folder.path(), judging.tree());
                    self.case_folders.insert(id, folder);
                }
                Err(error) => {
                    let why = format!("criterion_error: no temporary directory: {error}");
                    return self.record_error(judging.of, why).map(|()| None);
                }
            }
        }
        self.issued = self.issued.saturating_add(1);
        let name = self.name_of(&question);
        self.under_way.insert(id, (question, key));
        let at = At { step, name, round: generation + 1, iteration, attempt: 0, lane: 1 };
        let mode = if step == IMPROVES { ScoreMode::Strict } else { self.context.suite.score_mode };
        Ok(Some(Job { plan, at, mode, id }))
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

    /// The plan of a question, or why it cannot be asked.
    pub(super) fn plan_of(&self, question: &Question) -> Result<Plan, String> {
        let context = self.context;
        let prompt = match question {
            Question::Command(judging) => {
                let command = self.command_of(judging).ok_or("there is no such command")?;
                return context.command_plan(command, judging.output()).map_err(|faults| words(&faults));
            }
            Question::Answer(of) => {
                let prompt = context.execute_prompt(of.generation, &self.prompt(of.generation), self.case(*of))?;
                return context.executor_plan(of.generation, &prompt).map_err(|faults| words(&faults));
            }
            Question::Evaluate(evaluating) => {
                let prompt = context.evaluate_prompt(self.case(evaluating.of), &evaluating.output)?;
                let agent = evaluating.evaluator(context.suite);
                return context.plan(agent, Part::Evaluates, &prompt).map_err(|faults| words(&faults));
            }
            Question::Select(selecting) => {
                let agent = context.suite.select_best.as_ref().ok_or("nothing compares outputs")?;
                return context.plan(agent, Part::Answers, &selecting.prompt).map_err(|faults| words(&faults));
            }
            Question::Rewrite { of, .. } => {
                context.improve_prompt(&self.prompt(*of), &self.feedback(*of), &self.guards)
            }
        };
        let agent = context.suite.rewriter();
        prompt.and_then(|prompt| context.plan(agent, Part::Answers, &prompt).map_err(|faults| words(&faults)))
    }

    /// Uses a stored answer, if there is one; otherwise returns the question.
    fn known(&mut self, question: Question, key: &str) -> Result<Option<Question>, Failure> {
        if let Question::Rewrite { .. } | Question::Command(_) = question {
            return Ok(Some(question));
        }
        let known = self.journal.answer(key, self.fresh.then_some(self.recorder.run()))?;
        let Some((answer, place)) = known else { return Ok(Some(uncached(question))) };
        let StoredAnswer { said, session: own, .. } = &answer;
        match question {
            // The change that a chain has made may be gone, with the files of its attempt.
            Question::Answer(of) if self.case(of).tree.is_some() && !self.patch_of(of, attempt_of(place)).is_file() => {
                Ok(Some(question))
            }
            Question::Answer(of) if answer.took_ms.is_some() || !self.needs_usage(of) => {
                self.answered(CaseRun { cached: true, answer: Some(attempt_of(place)), ..of }, answer).map(|()| None)
            }
            // A stored evaluation that is invalid in this mode, or was given in the executor's session, is not used.
            Question::Evaluate(evaluating)
                if (own.is_none() || *own != evaluating.session)
                    && evaluation(said, self.context.suite.score_mode).is_ok() =>
            {
                self.evaluated(*evaluating, said).map(|()| None)
            }
            // An answer that cannot be read is not used.
            Question::Select(selecting) => match Self::read_selection(&selecting, said) {
                Ok(preference) => self.selected(selecting.pair, Ok(preference)).map(|()| None),
                Err(_) => Ok(Some(Question::Select(selecting))),
            },
            question => Ok(Some(uncached(question))),
        }
    }

    fn cannot_be_asked(&mut self, question: &Question, why: String) -> Result<(), Failure> {
        match *question {
            Question::Answer(of) => self.record_error(of, format!("cannot be asked: {why}")),
            Question::Evaluate(ref evaluating) => self.record_error(evaluating.of, format!("cannot be asked: {why}")),
            Question::Command(ref judging) => self.record_error(judging.of, format!("criterion_error: {why}")),
            Question::Select(ref selecting) => self.selected(selecting.pair, Err(why)),
            Question::Rewrite { generation, .. } => self.rewritten(generation, Err(why)),
        }
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
}

impl JobSource for Questions<'_> {
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        if let Some(question) = self.next_question() {
            return self.job_for(question);
        }
        let Some(pair) = self.pairs.pop_front() else { return Ok(None) };
        self.select(pair)?.map_or(Ok(None), |question| self.job_for(question))
    }

    fn has_more(&self) -> bool {
        !(self.held || self.queue.is_empty() && self.samples.is_empty() && self.pairs.is_empty())
    }

    fn paused(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        let Some(over) = over else { return self.take(EvalInput::Pause) };
        self.until = self.until.and_then(|until| until.checked_add(over));
        self.take(EvalInput::Continue)
    }

    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure> {
        let Some((question, key)) = self.under_way.remove(&job.id) else { return Ok(()) };
        self.case_folders.remove(&job.id);
        self.held = false;
        self.queue.extend(self.equal.drain(..));
        let cut_off = matches!(answer.outcome, None | Some(AttemptOutcome::Interrupted));
        let given = AnswerPlace { run: self.recorder.run(), step: job.at.step, attempt: answer.attempt };
        match question {
            // A resume asks again.
            _ if cut_off && answer.message.is_none() => Ok(()),
            Question::Rewrite { generation, .. } => {
                let why = why(&answer);
                self.rewritten(generation, answer.message.ok_or(why))
            }
            Question::Answer(of) => {
                let Some(message) = answer.message else {
                    return self.record_error(of, format!("executor_error: {}", why(&answer)));
                };
                if answer.finished.stdout_bytes > LONGEST_ANSWER && message.len() as u64 >= LONGEST_ANSWER {
                    return self.record_error(of, "executor_error: its answer is longer than 1 MiB".into());
                }
                let answer = stored(message.trim_end().to_string(), answer.finished);
                self.journal.keep_answer(&key, &answer, given)?;
                self.answered(CaseRun { answer: Some(attempt_of(given)), ..of }, answer)
            }
            Question::Select(selecting) => {
                if let Some(said) = &answer.message {
                    self.journal.keep_answer(&key, &stored(said.clone(), answer.finished.clone()), given)?;
                }
                self.selection_done(&selecting, &answer)
            }
            Question::Command(judging) => self.command_done(*judging, &answer),
            Question::Evaluate(evaluating) => {
                let of = evaluating.of;
                let Some(message) = answer.message else {
                    let why = format!("evaluator_error: {}", why(&answer));
                    // What was wrong with the evaluator's answer is recorded as an issue of the case.
                    return match answer.unread {
                        Some(bad) => self.unreadable(of, why, bad),
                        None => self.record_error(of, why),
                    };
                };
                if cut_off && evaluation(&message, self.context.suite.score_mode).is_err() {
                    return Ok(());
                }
                if evaluating.session.is_some() && evaluating.session == answer.finished.agent.session {
                    return self.record_error(of, "evaluator_error: it answered in the executor's session".into());
                }
                let answer = stored(message, answer.finished);
                self.journal.keep_answer(&key, &answer, given)?;
                self.evaluated(*evaluating, &answer.said)
            }
        }
    }

    fn see(&mut self, event: &Event) {
        // These events come from the machine itself, which knows them already.
        let own = matches!(
            event.event,
            EventKind::Evaluation { .. }
                | EventKind::RunStarted { .. }
                | EventKind::RunResumed { .. }
                | EventKind::RunPaused
                | EventKind::RunContinued
                | EventKind::RunFinished { .. }
        );
        if !own {
            self.state.evolve(&event.event);
        }
    }
}

/// Marks a question as not answered from the store.
fn uncached(question: Question) -> Question {
    match question {
        Question::Evaluate(evaluating) => {
            let of = CaseRun { cached: false, ..evaluating.of };
            Question::Evaluate(Box::new(Evaluating { of, ..*evaluating }))
        }
        question => question,
    }
}

/// The attempt of an answer of the executor.
pub(super) fn attempt_of(place: AnswerPlace) -> AnswerAttempt {
    AnswerAttempt { run: place.run, attempt: place.attempt }
}

/// An answer as it is stored.
fn stored(said: String, finished: Finished) -> StoredAnswer {
    let cost_usd = finished.agent.tokens.and_then(|tokens| tokens.cost_usd);
    StoredAnswer { said, session: finished.agent.session, cost_usd, took_ms: Some(finished.took_ms) }
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
