//! What an evaluation asks in its lanes, and what becomes of the answers: criteria, evaluations, a new prompt. Each thing is asked once.

use super::candidate::Guards;
use super::desk::{Desk, key_of};
use super::feedback::{CaseFeedback, Expectations};
use super::leak::closeness;
use super::machine::{EVALUATES, EXECUTES, EvalEffect, EvalInput, EvalState, EvalTransition, IMPROVES};
use super::suite::Case;
use crate::engine::{At, AttemptOutcome, CaseResult, Event, EventKind, JudgedBy, LimitKind, RunOutcome};
use crate::journal::{Given, GivenIn, Journal};
use crate::plan::{Part, Plan};
use crate::runner::{Failure, Job, LONGEST_ANSWER, LaneAnswer, Recorder, Work};
use crate::source::Diagnostic;
use crate::verdict::{Evaluation, ScoreMode, evaluation};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// A case of a generation, by its number from 0.
#[derive(Debug, Clone, Copy)]
struct Trial {
    generation: u32,
    case: usize,
    /// Whether the answer was there from before, and nothing was run for it.
    cached: bool,
}

/// What is to be asked next.
enum Question {
    Answer(Trial),
    Evaluate { of: Trial, output: String, session: Option<String> },
    Rewrite { generation: u32, of: u32 },
}

/// The machine of an evaluation among its lanes: asks what it wants asked, and tells it what came of that.
pub(super) struct Questions<'a> {
    pub(super) desk: &'a Desk<'a>,
    pub(super) guards: Guards,
    pub(super) journal: Journal,
    pub(super) recorder: &'a Recorder,
    pub(super) state: EvalState,
    /// When the time of the whole is over.
    pub(super) until: Option<Duration>,
    /// What no feedback may hold.
    pub(super) expectations: Expectations,
    /// Whether answers of earlier runs are asked for anew.
    pub(super) fresh: bool,
    queue: VecDeque<Question>,
    /// What lanes work on, with the word by which its answer is kept.
    under_way: HashMap<usize, (Question, String)>,
    /// How many questions were given to lanes, retries aside.
    issued: u32,
    /// What keeps what is left from being asked.
    pub(super) limit: Option<LimitKind>,
    pub(super) outcome: Option<RunOutcome>,
    /// Why there is no candidate, where there is none.
    pub(super) no_proposal: Option<String>,
}

impl<'a> Questions<'a> {
    pub(super) fn new(
        (desk, guards): (&'a Desk<'a>, Guards),
        (journal, recorder): (Journal, &'a Recorder),
        state: EvalState,
        until: Option<Duration>,
        fresh: bool,
    ) -> Self {
        let expectations = Expectations::of(desk.suite.cases.iter().filter_map(|case| case.expected.as_deref()));
        let issued = state.ledger.totals.planned;
        let (queue, under_way, limit, outcome, no_proposal) = (VecDeque::new(), HashMap::new(), None, None, None);
        Self {
            desk,
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

    /// One input: decide, write down, and remember what is to be asked.
    pub(super) fn take(&mut self, input: EvalInput) -> Result<(), Failure> {
        let EvalTransition { state, events, effects } = std::mem::take(&mut self.state).decide(&self.guards, input);
        self.state = state;
        let events = self.recorder.record((&mut self.journal, self.desk.world), events, None, "")?;
        self.recorder.tell_later(events);
        for effect in effects {
            match effect {
                EvalEffect::Measure { generation, cases } => {
                    let trial = |case| Question::Answer(Trial { generation, case, cached: false });
                    self.queue.extend(cases.into_iter().map(trial));
                }
                EvalEffect::Improve { generation, of } => self.queue.push_back(Question::Rewrite { generation, of }),
                EvalEffect::Finish(outcome) => self.outcome = Some(outcome),
            }
        }
        Ok(())
    }

    /// What is left of the limits of the whole is what this may use.
    fn limited(&self, mut plan: Plan) -> Plan {
        let spent = self.state.ledger.totals.all.spent.unwrap_or_default();
        if let Some(most) = &mut plan.limits.cost {
            *most -= spent.cost_usd.unwrap_or(0.0);
        }
        if let Some(most) = &mut plan.limits.tokens {
            *most = most.saturating_sub(spent.total());
        }
        plan.limits.time = self.until.map(|until| until.saturating_sub(self.desk.world.uptime()));
        plan
    }

    fn case(&self, of: Trial) -> &'a Case {
        &self.desk.suite.cases[of.case]
    }

    /// Asks, unless it was answered before.
    fn ask(&mut self, question: Question) -> Result<Option<Job>, Failure> {
        let desk = self.desk;
        let (agent, part, step, prompt) = match &question {
            Question::Answer(of) => {
                let prompt = self.prompt(of.generation);
                (&desk.suite.executor, Part::Answers, EXECUTES, desk.execute_prompt(&prompt, self.case(*of)))
            }
            Question::Evaluate { of, output, .. } => {
                let agent = desk.suite.evaluator.as_ref().unwrap_or(&desk.suite.executor);
                (agent, Part::Evaluates, EVALUATES, desk.evaluate_prompt(self.case(*of), output))
            }
            Question::Rewrite { of, .. } => {
                let asked = desk.improve_prompt(&self.prompt(*of), &self.feedback(*of), &self.guards);
                (desk.suite.rewriter(), Part::Answers, IMPROVES, asked)
            }
        };
        let plan = match prompt.and_then(|prompt| desk.plan(agent, part, &prompt).map_err(|faults| words(&faults))) {
            Ok(plan) => plan,
            Err(why) => return self.cannot_be_asked(&question, why).map(|()| None),
        };
        let key = key_of(&plan);
        let Some(question) = self.known(question, &key)? else { return Ok(None) };
        let late = self.until.is_some_and(|until| desk.world.uptime() >= until);
        self.limit = self.state.limit_reached(&plan.limits, desk.settings.limits.iterations, self.issued, late);
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
        let at = At { step, name: agent.value.clone(), round: generation + 1, iteration, attempt: 0, lane: 1 };
        let mode = if step == IMPROVES { ScoreMode::Strict } else { desk.suite.score_mode };
        Ok(Some(Job { plan: self.limited(plan), at, mode, id }))
    }

    /// What was answered before is not asked again; what has still to be asked.
    fn known(&mut self, question: Question, key: &str) -> Result<Option<Question>, Failure> {
        if let Question::Rewrite { .. } = question {
            return Ok(Some(question));
        }
        let known = self.journal.answer(key, self.fresh.then_some(self.recorder.run()))?;
        let Some(Given { said, session: own }) = known else { return Ok(Some(uncached(question))) };
        match question {
            Question::Answer(of) => self.answered(Trial { cached: true, ..of }, said, own).map(|()| None),
            // One that is none in this mode, or not a judge's own, is as good as not there.
            Question::Evaluate { of, ref output, ref session }
                if (own.is_none() || own != *session) && evaluation(&said, self.desk.suite.score_mode).is_ok() =>
            {
                self.evaluated(of, output, &said).map(|()| None)
            }
            question => Ok(Some(uncached(question))),
        }
    }

    fn cannot_be_asked(&mut self, question: &Question, why: String) -> Result<(), Failure> {
        match *question {
            Question::Answer(of) | Question::Evaluate { of, .. } => self.nobody(of, format!("cannot be asked: {why}")),
            Question::Rewrite { generation, .. } => self.rewritten(generation, Err(why)),
        }
    }

    fn prompt(&self, generation: u32) -> String {
        self.state.ledger.prompts.get(&generation).map_or_else(String::new, |known| known.prompt.clone())
    }

    /// What the cases of a generation have to say, held-out ones aside.
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

    /// The output is there: criteria first, and the evaluator where nothing is wrong by them.
    fn answered(&mut self, of: Trial, output: String, session: Option<String>) -> Result<(), Failure> {
        let case = self.case(of);
        let measured: Vec<_> =
            case.criteria.iter().map(|criterion| criterion.measure(&output, case.expected.as_deref())).collect();
        if measured.iter().all(|one| one.pass) && self.desk.suite.evaluator.is_some() {
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

    fn evaluated(&mut self, of: Trial, output: &str, said: &str) -> Result<(), Failure> {
        let mode = self.desk.suite.score_mode;
        let Evaluation { pass, score, issues, suggestions, .. } = match evaluation(said, mode) {
            Ok(evaluation) => evaluation,
            Err(bad) => return self.nobody(of, format!("evaluator_error: {}", bad.issue())),
        };
        let enough = self.is_enough(score);
        let mut issues = issues;
        if pass && !enough {
            issues.push("the score is below the least that passes".into());
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
        self.desk.suite.min_score.is_none_or(|least| score >= f64::from(least) / 1000.0)
    }

    /// A failure of the evaluation, and none of the prompt: it is never fed on (C39).
    fn nobody(&mut self, of: Trial, why: String) -> Result<(), Failure> {
        let result = CaseResult { error: Some(why), ..self.result(of, None) };
        self.judged(result)
    }

    fn unreadable(&mut self, of: Trial, why: String, issue: String) -> Result<(), Failure> {
        let result = CaseResult { error: Some(why), issues: vec![issue], ..self.result(of, None) };
        self.judged(result)
    }

    fn result(&self, of: Trial, output: Option<&str>) -> CaseResult {
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
        // Another case's expectation must not be told either.
        let expectations = &self.expectations;
        result.dropped = expectations.sanitise(&mut result.issues) + expectations.sanitise(&mut result.suggestions);
        self.take(EvalInput::Result(Box::new(result)))
    }

    fn is_held_out(&self, case: usize) -> bool {
        let facts = self.state.ledger.facts.as_ref();
        facts.and_then(|facts| facts.cases.get(case)).is_some_and(|case| case.held_out)
    }
}

impl Work for Questions<'_> {
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        match self.queue.pop_front() {
            Some(question) => self.ask(question),
            None => Ok(None),
        }
    }

    fn has_more(&self) -> bool {
        !self.queue.is_empty()
    }

    fn stand_still(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        let Some(over) = over else { return self.take(EvalInput::Pause) };
        self.until = self.until.and_then(|until| until.checked_add(over));
        self.take(EvalInput::Continue)
    }

    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure> {
        let Some((question, key)) = self.under_way.remove(&job.id) else { return Ok(()) };
        let cut_off = matches!(answer.outcome, None | Some(AttemptOutcome::Interrupted));
        let given = GivenIn { run: self.recorder.run(), step: job.at.step, attempt: answer.attempt };
        match question {
            // A resume asks again.
            _ if cut_off && answer.message.is_none() => Ok(()),
            Question::Rewrite { generation, .. } => {
                let why = why(&answer);
                self.rewritten(generation, answer.message.ok_or(why))
            }
            Question::Answer(of) => {
                let Some(message) = answer.message else {
                    return self.nobody(of, format!("executor_error: {}", why(&answer)));
                };
                if answer.finished.stdout_bytes > LONGEST_ANSWER && message.len() as u64 >= LONGEST_ANSWER {
                    return self.nobody(of, "executor_error: it answered more than 1 MiB".into());
                }
                let answer = Given { said: message.trim_end().to_string(), session: answer.finished.session };
                self.journal.keep_answer(&key, &answer, given)?;
                self.answered(of, answer.said, answer.session)
            }
            Question::Evaluate { of, output, session } => {
                let Some(message) = answer.message else {
                    let why = format!("evaluator_error: {}", why(&answer));
                    // What was wrong with an evaluation stands in the record, as its issue.
                    return match answer.unread {
                        Some(bad) => self.unreadable(of, why, bad),
                        None => self.nobody(of, why),
                    };
                };
                if cut_off && evaluation(&message, self.desk.suite.score_mode).is_err() {
                    return Ok(());
                }
                if session.is_some() && session == answer.finished.session {
                    return self.nobody(of, "evaluator_error: it answered in the executor's session".into());
                }
                let answer = Given { said: message, session: answer.finished.session };
                self.journal.keep_answer(&key, &answer, given)?;
                self.evaluated(of, &output, &answer.said)
            }
        }
    }

    fn see(&mut self, event: &Event) {
        // The rest is the machine's own, and known to it.
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

/// Something is run for it.
fn uncached(question: Question) -> Question {
    match question {
        Question::Evaluate { of, output, session } => {
            Question::Evaluate { of: Trial { cached: false, ..of }, output, session }
        }
        question => question,
    }
}

/// Why there is no answer.
fn why(answer: &LaneAnswer) -> String {
    let said = answer.finished.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    let how = match &answer.outcome {
        Some(AttemptOutcome::Unfinished) => "its evaluation could not be read, three times".to_string(),
        Some(AttemptOutcome::Failed { code }) => format!("exit code {code}"),
        Some(AttemptOutcome::Crashed { signal }) => format!("killed by signal {signal}"),
        Some(AttemptOutcome::NotStarted { why }) => format!("could not be started: {why}"),
        Some(AttemptOutcome::TimedOut) => "its timeout was over".into(),
        Some(AttemptOutcome::Idle) => "it was silent and idle for too long".into(),
        Some(AttemptOutcome::Limited) => "a usage limit".into(),
        Some(AttemptOutcome::Unavailable { .. }) => "it could not work".into(),
        _ => "it failed".into(),
    };
    let line: String = format!("{how}{said}").split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(300).collect()
}

fn words(faults: &[Diagnostic]) -> String {
    faults.iter().map(|fault| fault.message.as_str()).collect::<Vec<_>>().join("; ")
}
