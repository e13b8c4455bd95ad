//! What an evaluation asks in its lanes, and what it does with the answers: it measures criteria, asks for evaluations,
//! and takes over a new prompt. A question with a stored answer is not asked again.

use super::candidate::Guards;
use super::feedback::{CaseFeedback, Expectations};
use super::leak::closeness;
use super::machine::{EVALUATES, EXECUTES, EvalEffect, EvalInput, EvalState, EvalTransition, IMPROVES};
use super::requests::{EvalContext, key_of};
use super::suite::Case;
use crate::engine::{At, AttemptOutcome, CaseResult, Event, EventKind, JudgedBy, LimitKind, RunOutcome};
use crate::journal::{AnswerPlace, Journal, StoredAnswer};
use crate::plan::{Part, Plan};
use crate::runner::{Failure, Job, JobSource, LONGEST_ANSWER, LaneAnswer, Recorder};
use crate::source::{Diagnostic, Text};
use crate::verdict::{Evaluation, ScoreMode, evaluation};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// A case of a generation, by its number from 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct CaseRun {
    pub(super) generation: u32,
    pub(super) case: usize,
    /// Whether the answer was stored before, so that nothing was run for it.
    pub(super) cached: bool,
}

/// What is to be asked next.
pub(super) enum Question {
    Answer(CaseRun),
    Evaluate { of: CaseRun, output: String, session: Option<String> },
    Rewrite { generation: u32, of: u32 },
}

impl Question {
    /// The step that asks it.
    pub(super) fn step(&self) -> u32 {
        match self {
            Self::Answer(_) => EXECUTES,
            Self::Evaluate { .. } => EVALUATES,
            Self::Rewrite { .. } => IMPROVES,
        }
    }
}

/// Connects the machine of an evaluation with its lanes: asks the machine's questions, and returns the answers to it.
pub(super) struct Questions<'a> {
    pub(super) context: &'a EvalContext<'a>,
    pub(super) guards: Guards,
    pub(super) journal: Journal,
    pub(super) recorder: &'a Recorder,
    pub(super) state: EvalState,
    /// The uptime at which the time limit of the whole evaluation is reached.
    pub(super) until: Option<Duration>,
    /// The expected outputs, which no feedback may contain.
    pub(super) expectations: Expectations,
    /// Whether answers of earlier runs are ignored.
    pub(super) fresh: bool,
    pub(super) queue: VecDeque<Question>,
    /// The questions that lanes work on, by job, each with the key under which its answer is stored.
    pub(super) under_way: HashMap<usize, (Question, String)>,
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
        fresh: bool,
    ) -> Self {
        let expectations = Expectations::of(context.suite.cases.iter().filter_map(|case| case.expected.as_deref()));
        let issued = state.ledger.totals.planned;
        let (queue, under_way, limit, outcome, no_proposal) = (VecDeque::new(), HashMap::new(), None, None, None);
        Self {
            context,
            guards,
            journal,
            recorder,
            state,
            until,
            expectations,
            fresh,
            queue,
            under_way,
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
                EvalEffect::Measure { generation, cases } => {
                    let question = |case| Question::Answer(CaseRun { generation, case, cached: false });
                    self.queue.extend(cases.into_iter().map(question));
                }
                EvalEffect::Improve { generation, of } => self.queue.push_back(Question::Rewrite { generation, of }),
                EvalEffect::Finish(outcome) => self.outcome = Some(outcome),
            }
        }
        Ok(())
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
    pub(super) fn job_for(&mut self, question: Question) -> Result<Option<Job>, Failure> {
        let step = question.step();
        let plan = match self.plan_of(&question) {
            Ok(plan) => plan,
            Err(why) => return self.cannot_be_asked(&question, why).map(|()| None),
        };
        let key = key_of(&plan);
        let Some(question) = self.known(question, &key)? else { return Ok(None) };
        let late = self.until.is_some_and(|until| self.context.world.uptime() >= until);
        self.limit = self.state.limit_reached(&plan.limits, self.context.settings.limits.attempts, self.issued, late);
        if self.limit.is_some() {
            self.queue.clear();
            return Ok(None);
        }
        let (generation, case) = match &question {
            Question::Answer(of) | Question::Evaluate { of, .. } => (of.generation, of.case),
            Question::Rewrite { generation, .. } => (*generation, 0),
        };
        let id = self.issued as usize;
        self.issued = self.issued.saturating_add(1);
        self.under_way.insert(id, (question, key));
        let iteration = u32::try_from(case + 1).unwrap_or(u32::MAX);
        let name = self.agent_of(step).value.clone();
        let at = At { step, name, round: generation + 1, iteration, attempt: 0, lane: 1 };
        let mode = if step == IMPROVES { ScoreMode::Strict } else { self.context.suite.score_mode };
        Ok(Some(Job { plan: self.limited(plan), at, mode, id }))
    }

    /// The agent of a step.
    pub(super) fn agent_of(&self, step: u32) -> &'a Text {
        let suite = self.context.suite;
        match step {
            EVALUATES => suite.evaluator.as_ref().unwrap_or(&suite.executor),
            IMPROVES => suite.rewriter(),
            _ => &suite.executor,
        }
    }

    /// The plan of a question, or why it cannot be asked.
    pub(super) fn plan_of(&self, question: &Question) -> Result<Plan, String> {
        let context = self.context;
        let (part, prompt) = match question {
            Question::Answer(of) => {
                (Part::Answers, context.execute_prompt(&self.prompt(of.generation), self.case(*of)))
            }
            Question::Evaluate { of, output, .. } => (Part::Evaluates, context.evaluate_prompt(self.case(*of), output)),
            Question::Rewrite { of, .. } => {
                let asked = context.improve_prompt(&self.prompt(*of), &self.feedback(*of), &self.guards);
                (Part::Answers, asked)
            }
        };
        let agent = self.agent_of(question.step());
        prompt.and_then(|prompt| context.plan(agent, part, &prompt).map_err(|faults| words(&faults)))
    }

    /// Uses a stored answer, if there is one; otherwise returns the question.
    fn known(&mut self, question: Question, key: &str) -> Result<Option<Question>, Failure> {
        if let Question::Rewrite { .. } = question {
            return Ok(Some(question));
        }
        let known = self.journal.answer(key, self.fresh.then_some(self.recorder.run()))?;
        let Some(StoredAnswer { said, session: own }) = known else { return Ok(Some(uncached(question))) };
        match question {
            Question::Answer(of) => self.answered(CaseRun { cached: true, ..of }, said, own).map(|()| None),
            // A stored evaluation that is invalid in this mode, or was given in the executor's session, is not used.
            Question::Evaluate { of, ref output, ref session }
                if (own.is_none() || own != *session) && evaluation(&said, self.context.suite.score_mode).is_ok() =>
            {
                self.evaluated(of, output, &said).map(|()| None)
            }
            question => Ok(Some(uncached(question))),
        }
    }

    fn cannot_be_asked(&mut self, question: &Question, why: String) -> Result<(), Failure> {
        match *question {
            Question::Answer(of) | Question::Evaluate { of, .. } => {
                self.record_error(of, format!("cannot be asked: {why}"))
            }
            Question::Rewrite { generation, .. } => self.rewritten(generation, Err(why)),
        }
    }

    fn prompt(&self, generation: u32) -> String {
        self.state.ledger.prompts.get(&generation).map_or_else(String::new, |known| known.prompt.clone())
    }

    /// Returns the feedback on a generation's cases, without the held-out ones.
    fn feedback(&self, generation: u32) -> CaseFeedback {
        let mut feedback = CaseFeedback::default();
        let results = self.state.ledger.of(generation);
        for result in results.filter(|result| !result.held_out && result.error.is_none()) {
            feedback.add(&result.issues, &result.suggestions);
        }
        feedback
    }

    fn rewritten(&mut self, generation: u32, answer: Result<String, String>) -> Result<(), Failure> {
        self.no_proposal = answer.as_ref().err().cloned();
        self.take(EvalInput::Answer { generation, answer })
    }

    /// Handles an output: first the criteria, then the evaluator if all of them are met.
    pub(super) fn answered(&mut self, of: CaseRun, output: String, session: Option<String>) -> Result<(), Failure> {
        let case = self.case(of);
        let measured: Vec<_> =
            case.criteria.iter().map(|criterion| criterion.measure(&output, case.expected.as_deref())).collect();
        if measured.iter().all(|one| one.pass) && self.context.suite.evaluator.is_some() {
            self.queue.push_front(Question::Evaluate { of, output, session });
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "a case's criteria")]
        let score = measured.iter().map(|one| one.score).sum::<f64>() / measured.len().max(1) as f64;
        let result = CaseResult {
            pass: measured.iter().all(|one| one.pass) && self.is_enough(score),
            score,
            issues: measured.into_iter().filter_map(|one| one.issue).collect(),
            judged_by: JudgedBy::Criteria,
            ..self.result(of, Some(&output))
        };
        self.judged(result)
    }

    pub(super) fn evaluated(&mut self, of: CaseRun, output: &str, said: &str) -> Result<(), Failure> {
        let mode = self.context.suite.score_mode;
        let Evaluation { pass, score, issues, suggestions, .. } = match evaluation(said, mode) {
            Ok(evaluation) => evaluation,
            Err(bad) => return self.record_error(of, format!("evaluator_error: {}", bad.issue())),
        };
        let enough = self.is_enough(score);
        let mut issues = issues;
        if pass && !enough {
            issues.push("the score is below the minimum".into());
        }
        let result = CaseResult {
            pass: pass && enough,
            score,
            issues,
            suggestions,
            judged_by: JudgedBy::Evaluator,
            ..self.result(of, Some(output))
        };
        self.judged(result)
    }

    fn is_enough(&self, score: f64) -> bool {
        self.context.suite.min_score.is_none_or(|least| score >= f64::from(least) / 1000.0)
    }

    /// Records a failure of the evaluation, not of the prompt: it never becomes feedback.
    pub(super) fn record_error(&mut self, of: CaseRun, why: String) -> Result<(), Failure> {
        let result = CaseResult { error: Some(why), ..self.result(of, None) };
        self.judged(result)
    }

    pub(super) fn unreadable(&mut self, of: CaseRun, why: String, issue: String) -> Result<(), Failure> {
        let result = CaseResult { error: Some(why), issues: vec![issue], ..self.result(of, None) };
        self.judged(result)
    }

    fn result(&self, of: CaseRun, output: Option<&str>) -> CaseResult {
        let case = self.case(of);
        let both = output.zip(case.expected.as_deref());
        CaseResult {
            generation: of.generation,
            case: case.id.clone(),
            held_out: self.is_held_out(of.case),
            pass: false,
            score: 0.0,
            closeness: both.map(|(output, expected)| closeness(output, expected)),
            judged_by: JudgedBy::Nobody,
            issues: Vec::new(),
            suggestions: Vec::new(),
            dropped: 0,
            error: None,
            cached: of.cached,
        }
    }

    fn judged(&mut self, mut result: CaseResult) -> Result<(), Failure> {
        // Feedback must not reveal another case's expected output either.
        let expectations = &self.expectations;
        result.dropped = expectations.sanitise(&mut result.issues) + expectations.sanitise(&mut result.suggestions);
        self.take(EvalInput::Result(Box::new(result)))
    }

    fn is_held_out(&self, case: usize) -> bool {
        let facts = self.state.ledger.facts.as_ref();
        facts.and_then(|facts| facts.cases.get(case)).is_some_and(|case| case.held_out)
    }
}

impl JobSource for Questions<'_> {
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        match self.queue.pop_front() {
            Some(question) => self.job_for(question),
            None => Ok(None),
        }
    }

    fn has_more(&self) -> bool {
        !self.queue.is_empty()
    }

    fn paused(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        let Some(over) = over else { return self.take(EvalInput::Pause) };
        self.until = self.until.and_then(|until| until.checked_add(over));
        self.take(EvalInput::Continue)
    }

    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure> {
        let Some((question, key)) = self.under_way.remove(&job.id) else { return Ok(()) };
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
                let answer = StoredAnswer { said: message.trim_end().to_string(), session: answer.finished.session };
                self.journal.keep_answer(&key, &answer, given)?;
                self.answered(of, answer.said, answer.session)
            }
            Question::Evaluate { of, output, session } => {
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
                if session.is_some() && session == answer.finished.session {
                    return self.record_error(of, "evaluator_error: it answered in the executor's session".into());
                }
                let answer = StoredAnswer { said: message, session: answer.finished.session };
                self.journal.keep_answer(&key, &answer, given)?;
                self.evaluated(of, &output, &answer.said)
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
        Question::Evaluate { of, output, session } => {
            Question::Evaluate { of: CaseRun { cached: false, ..of }, output, session }
        }
        question => question,
    }
}

/// Returns why there is no answer, in one line.
fn why(answer: &LaneAnswer) -> String {
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
