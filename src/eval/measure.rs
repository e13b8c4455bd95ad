//! One prompt on its cases: answers, criteria, evaluations; several cases at once, each thing asked once.

use super::desk::{Desk, key_of};
use super::feedback::Expectations;
use super::leak::closeness;
use super::suite::Case;
use crate::engine::{At, AttemptOutcome, CaseResult, EvalEvent, EvalLedger, Event, EventKind, JudgedBy, LimitKind};
use crate::journal::{Given, GivenIn, Journal};
use crate::plan::{Part, Plan};
use crate::runner::{Failure, Job, LONGEST_ANSWER, LaneAnswer, Recorder, Work};
use crate::source::Diagnostic;
use crate::verdict::{Evaluation, ScoreMode, evaluation};
use std::collections::VecDeque;
use std::time::Duration;

/// The steps of an evaluation, as they are numbered in its run.
pub(super) const EXECUTES: u32 = 1;
pub(super) const EVALUATES: u32 = 2;
pub(super) const IMPROVES: u32 = 3;

/// What is written and read while cases are measured.
pub(super) struct Book<'a> {
    pub(super) desk: &'a Desk<'a>,
    pub(super) journal: Journal,
    pub(super) run: i64,
    pub(super) recorder: &'a Recorder,
    pub(super) ledger: EvalLedger,
    /// When the time of the whole is over.
    pub(super) until: Option<Duration>,
    /// What no feedback may hold.
    pub(super) expectations: Expectations,
    /// How many questions were given to lanes, retries aside.
    pub(super) issued: u32,
    /// Whether answers of earlier runs are asked for anew.
    pub(super) fresh: bool,
}

impl Book<'_> {
    /// Writes down what happened in the evaluation.
    pub(super) fn record(&mut self, what: EvalEvent) -> Result<(), Failure> {
        self.record_all(vec![EventKind::Evaluation { what }])
    }

    /// The same for several events, in one commit.
    pub(super) fn record_all(&mut self, kinds: Vec<EventKind>) -> Result<(), Failure> {
        let events = self.recorder.record((&mut self.journal, self.desk.world), kinds, None, "")?;
        self.recorder.tell_later(events);
        Ok(())
    }

    /// All of us stand still, or go on after so long: the time of the whole does, too.
    pub(super) fn stand_still(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        let Some(over) = over else { return self.record_all(vec![EventKind::RunPaused]) };
        self.until = self.until.and_then(|until| until.checked_add(over));
        self.record_all(vec![EventKind::RunContinued])
    }

    /// The limit that is reached, if one is.
    pub(super) fn limit_reached(&self, plan: &Plan) -> Option<LimitKind> {
        let (limits, spent) = (&plan.limits, self.ledger.totals.all.spent.unwrap_or_default());
        let late = self.until.is_some_and(|until| self.desk.world.uptime() >= until);
        let own = self.desk.limits.iterations;
        [
            (limits.cost.is_some_and(|most| spent.cost_usd.unwrap_or(0.0) >= most), LimitKind::Cost),
            (limits.tokens.is_some_and(|most| spent.total() >= most), LimitKind::Tokens),
            (own.is_some_and(|most| self.ledger.totals.planned.max(self.issued) >= most), LimitKind::Iterations),
            (late, LimitKind::Time),
        ]
        .into_iter()
        .find_map(|(reached, limit)| reached.then_some(limit))
    }

    /// What is left of the limits of the whole is what this may use.
    pub(super) fn limited(&self, mut plan: Plan) -> Plan {
        let spent = self.ledger.totals.all.spent.unwrap_or_default();
        if let Some(most) = &mut plan.limits.cost {
            *most -= spent.cost_usd.unwrap_or(0.0);
        }
        if let Some(most) = &mut plan.limits.tokens {
            *most = most.saturating_sub(spent.total());
        }
        plan.limits.time = self.until.map(|until| until.saturating_sub(self.desk.world.uptime()));
        plan
    }
}

/// What is to be done for a case next.
enum Next {
    Answer,
    Evaluate { output: String, session: Option<String> },
}

/// One generation on its cases.
pub(super) struct Measure<'b, 'a> {
    pub(super) book: &'b mut Book<'a>,
    generation: u32,
    prompt: &'b str,
    /// By case, from 0.
    queue: VecDeque<(usize, Next)>,
    under_way: Vec<Option<Next>>,
    held_out: &'b [bool],
    keys: Vec<String>,
    cached: Vec<bool>,
    /// The limit that keeps what is left from being asked.
    pub(super) limit: Option<LimitKind>,
}

impl<'b, 'a> Measure<'b, 'a> {
    /// The cases of these numbers that nobody has judged yet.
    pub(super) fn new(
        book: &'b mut Book<'a>,
        generation: u32,
        prompt: &'b str,
        held_out: &'b [bool],
        which: impl Fn(usize) -> bool,
    ) -> Self {
        let cases = &book.desk.suite.cases;
        let open = |index: &usize| which(*index) && book.ledger.judged(generation, &cases[*index].id).is_none();
        let queue = (0..cases.len()).filter(open).map(|index| (index, Next::Answer)).collect();
        let under_way = cases.iter().map(|_| None).collect();
        let (keys, cached) = (vec![String::new(); cases.len()], vec![false; cases.len()]);
        Self { book, generation, prompt, queue, under_way, held_out, keys, cached, limit: None }
    }

    fn case(&self, index: usize) -> &'a Case {
        &self.book.desk.suite.cases[index]
    }

    /// The next question about a case: answered from before, or to be asked.
    fn ask(&mut self, index: usize, next: Next) -> Result<Option<Job>, Failure> {
        let (desk, case) = (self.book.desk, self.case(index));
        let (agent, part, step, prompt) = match &next {
            Next::Answer => (&desk.suite.executor, Part::Answers, EXECUTES, desk.execute_prompt(self.prompt, case)),
            Next::Evaluate { output, .. } => {
                let agent = desk.suite.evaluator.as_ref().unwrap_or(&desk.suite.executor);
                (agent, Part::Evaluates, EVALUATES, desk.evaluate_prompt(case, output))
            }
        };
        let planned = prompt.and_then(|prompt| desk.plan(agent, part, &prompt).map_err(|faults| words(&faults)));
        let plan = match planned {
            Ok(plan) => plan,
            Err(why) => return self.nobody(index, format!("cannot be asked: {why}")).map(|()| None),
        };
        let key = key_of(&plan);
        let known = self.book.journal.answer(&key, self.book.fresh.then_some(self.book.run))?;
        if let Some(Given { said, session: own }) = known {
            match &next {
                Next::Answer => {
                    self.cached[index] = true;
                    return self.answered(index, said, own).map(|()| None);
                }
                // One that is none in this mode, or not a judge's own, is as good as not there.
                Next::Evaluate { output, session } if own.is_none() || own != *session => {
                    if evaluation(&said, desk.suite.score_mode).is_ok() {
                        return self.evaluated(index, output, &said).map(|()| None);
                    }
                }
                Next::Evaluate { .. } => {}
            }
        }
        if let Some(limit) = self.book.limit_reached(&plan) {
            self.limit = Some(limit);
            self.queue.clear();
            return Ok(None);
        }
        if let Next::Evaluate { .. } = next {
            self.cached[index] = false;
        }
        self.keys[index] = key;
        self.under_way[index] = Some(next);
        self.book.issued = self.book.issued.saturating_add(1);
        let iteration = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let at = At { step, name: agent.value.clone(), round: self.generation + 1, iteration, attempt: 0, lane: 1 };
        Ok(Some(Job { plan: self.book.limited(plan), at, mode: desk.suite.score_mode, id: index }))
    }

    /// The output is there: criteria first, and the evaluator where nothing is wrong by them.
    fn answered(&mut self, index: usize, output: String, session: Option<String>) -> Result<(), Failure> {
        let case = self.case(index);
        let measured: Vec<_> =
            case.criteria.iter().map(|criterion| criterion.measure(&output, case.expected.as_deref())).collect();
        if measured.iter().all(|one| one.pass) && self.book.desk.suite.evaluator.is_some() {
            self.queue.push_front((index, Next::Evaluate { output, session }));
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "a case's criteria")]
        let score = measured.iter().map(|one| one.score).sum::<f64>() / measured.len().max(1) as f64;
        let result = CaseResult {
            pass: measured.iter().all(|one| one.pass) && self.is_enough(score),
            score,
            issues: measured.into_iter().filter_map(|one| one.issue).collect(),
            judged_by: JudgedBy::Criteria,
            ..self.result(index, Some(&output))
        };
        self.judged(result)
    }

    fn evaluated(&mut self, index: usize, output: &str, said: &str) -> Result<(), Failure> {
        let mode = self.book.desk.suite.score_mode;
        let Evaluation { pass, score, issues, suggestions, .. } = match evaluation(said, mode) {
            Ok(evaluation) => evaluation,
            Err(bad) => return self.nobody(index, format!("evaluator_error: {}", bad.issue())),
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
            ..self.result(index, Some(output))
        };
        self.judged(result)
    }

    fn is_enough(&self, score: f64) -> bool {
        self.book.desk.suite.min_score.is_none_or(|least| score >= f64::from(least) / 1000.0)
    }

    /// A failure of the evaluation, and none of the prompt: it is never fed on (C39).
    fn nobody(&mut self, index: usize, why: String) -> Result<(), Failure> {
        let result = CaseResult { error: Some(why), ..self.result(index, None) };
        self.judged(result)
    }

    fn unreadable(&mut self, index: usize, why: String, issue: String) -> Result<(), Failure> {
        let result = CaseResult { error: Some(why), issues: vec![issue], ..self.result(index, None) };
        self.judged(result)
    }

    fn result(&self, index: usize, output: Option<&str>) -> CaseResult {
        let case = self.case(index);
        let both = output.zip(case.expected.as_deref());
        CaseResult {
            generation: self.generation,
            case: case.id.clone(),
            held_out: self.held_out[index],
            pass: false,
            score: 0.0,
            closeness: both.map(|(output, expected)| closeness(output, expected)),
            judged_by: JudgedBy::Nobody,
            issues: Vec::new(),
            suggestions: Vec::new(),
            dropped: 0,
            error: None,
            cached: self.cached[index],
        }
    }

    fn judged(&mut self, mut result: CaseResult) -> Result<(), Failure> {
        // Another case's expectation must not be told either.
        let expectations = &self.book.expectations;
        result.dropped = expectations.sanitise(&mut result.issues) + expectations.sanitise(&mut result.suggestions);
        self.book.record(EvalEvent::Judged { result })
    }
}

impl Work for Measure<'_, '_> {
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        match self.queue.pop_front() {
            Some((index, next)) => self.ask(index, next),
            None => Ok(None),
        }
    }

    fn has_more(&self) -> bool {
        !self.queue.is_empty()
    }

    fn stand_still(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        self.book.stand_still(over)
    }

    fn done(&mut self, job: Job, answer: LaneAnswer) -> Result<(), Failure> {
        let (index, step) = (job.id, job.at.step);
        let Some(next) = self.under_way[index].take() else { return Ok(()) };
        let cut_off = matches!(answer.outcome, None | Some(AttemptOutcome::Interrupted));
        let mode = self.book.desk.suite.score_mode;
        let unreadable = |said: &String| step == EVALUATES && evaluation(said, mode).is_err();
        if cut_off && answer.message.as_ref().is_none_or(unreadable) {
            // A resume asks again.
            return Ok(());
        }
        let given = GivenIn { run: self.book.run, step, attempt: answer.attempt };
        let Some(message) = answer.message else {
            // What was wrong with an evaluation stands in the record, as its issue.
            if let Some(bad) = answer.unread.as_ref().filter(|_| step == EVALUATES) {
                let why = format!("evaluator_error: {}", why(&answer));
                return self.unreadable(index, why, bad.clone());
            }
            let why = why(&answer);
            let whose = if step == EVALUATES { "evaluator_error" } else { "executor_error" };
            return self.nobody(index, format!("{whose}: {why}"));
        };
        match next {
            Next::Answer => {
                if answer.finished.stdout_bytes > LONGEST_ANSWER && message.len() as u64 >= LONGEST_ANSWER {
                    return self.nobody(index, "executor_error: it answered more than 1 MiB".into());
                }
                let said = message.trim_end().to_string();
                let answer = Given { said, session: answer.finished.session };
                self.book.journal.keep_answer(&self.keys[index], &answer, given)?;
                self.answered(index, answer.said, answer.session)
            }
            Next::Evaluate { output, session } => {
                if session.is_some() && session == answer.finished.session {
                    return self.nobody(index, "evaluator_error: it answered in the executor's session".into());
                }
                let answer = Given { said: message, session: answer.finished.session };
                self.book.journal.keep_answer(&self.keys[index], &answer, given)?;
                self.evaluated(index, &output, &answer.said)
            }
        }
    }

    fn see(&mut self, event: &Event) {
        self.book.ledger.evolve(&event.event);
    }
}

/// One question to the improver.
pub(super) struct Rewriting<'b, 'a> {
    pub(super) book: &'b mut Book<'a>,
    pub(super) plan: Option<Plan>,
    pub(super) name: String,
    pub(super) generation: u32,
    /// What it answered, or why it did not.
    pub(super) answer: Option<Result<String, String>>,
}

impl Work for Rewriting<'_, '_> {
    fn next(&mut self) -> Result<Option<Job>, Failure> {
        let Some(plan) = self.plan.take() else { return Ok(None) };
        let name = self.name.clone();
        self.book.issued = self.book.issued.saturating_add(1);
        let at = At { step: IMPROVES, name, round: self.generation + 1, iteration: 1, attempt: 0, lane: 1 };
        Ok(Some(Job { plan: self.book.limited(plan), at, mode: ScoreMode::Strict, id: 0 }))
    }

    fn done(&mut self, _: Job, answer: LaneAnswer) -> Result<(), Failure> {
        let cut_off = matches!(answer.outcome, None | Some(AttemptOutcome::Interrupted));
        if !cut_off || answer.message.is_some() {
            let why = why(&answer);
            self.answer = Some(answer.message.ok_or(why));
        }
        Ok(())
    }

    fn has_more(&self) -> bool {
        false
    }

    fn stand_still(&mut self, over: Option<Duration>) -> Result<(), Failure> {
        self.book.stand_still(over)
    }

    fn see(&mut self, event: &Event) {
        self.book.ledger.evolve(&event.event);
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
