//! An evaluation whose cases are asked on other machines, a slice of them at a time. Only the answers of the agents
//! come from there: their attempts become part of this run, and this machine judges them as if it had asked.

use super::evaluate::{EvalEnd, Setting};
use super::machine::{EVALUATES, EXECUTES};
use super::questions::{CaseRun, Question, Questions};
use super::requests::key_of;
use crate::engine::{CaseResult, EvalEvent, Event, EventKind, LimitKind, Notice, Observer, RunOutcome, Sig, Totals};
use crate::journal::{AnswerPlace, StoredAnswer};
use crate::runner::{Failure, Halt, JobSource, ReceivedSignal, Signals, flushed, tell_recorded, written};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::path::PathBuf;
use tokio::time::sleep;

/// The file with the answers of a slice, one line each, next to the attempts of its run.
pub const SLICE_ANSWERS: &str = "answers.ndjson";

/// An answer, as the worker of a slice keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceAnswer {
    /// The number of the step that gave it.
    pub step: u32,
    /// The number of the attempt in the worker's run.
    pub attempt: u32,
    /// What was answered.
    #[serde(flatten)]
    pub answer: StoredAnswer,
}

/// What is known about the cases of a slice.
#[derive(Debug, Default)]
pub struct SliceAnswers {
    /// The events of the attempts, by case and step.
    attempts: HashMap<(String, u32), Vec<EventKind>>,
    answers: HashMap<(String, u32), StoredAnswer>,
    /// The cases that could not be judged.
    failed: HashMap<String, CaseResult>,
    /// A root in which the run's directories of attempts are, and the run's number there.
    pub attempts_at: (PathBuf, i64),
    /// How its run ended, if it has.
    pub outcome: Option<RunOutcome>,
    /// What its attempts have used.
    pub totals: Totals,
}

impl SliceAnswers {
    /// Reads the events of a slice's run, and the lines of its answers.
    #[must_use]
    pub fn of(events: &[Event], answers: &str) -> Self {
        let (mut slice, mut cases, mut places) = (Self::default(), Vec::new(), HashMap::new());
        for event in events {
            slice.attempts_at.1 = event.run;
            slice.totals.evolve(&event.event);
            let mut kind = event.event.clone();
            if let Some(at) = kind.place_in_lane() {
                let case = usize::try_from(at.iteration).ok().and_then(|number| cases.get(number.checked_sub(1)?));
                let Some(case): Option<&String> = case else { continue };
                let key = (case.clone(), at.step);
                places.insert((at.step, at.attempt), key.clone());
                slice.attempts.entry(key).or_default().push(kind);
                continue;
            }
            match kind {
                EventKind::Evaluation { event: EvalEvent::Started { facts } } => {
                    cases = facts.cases.into_iter().map(|case| case.id).collect();
                }
                EventKind::Evaluation { event: EvalEvent::CaseJudged { result } } => {
                    slice.failed.remove(&result.case);
                    if result.error.is_some() {
                        slice.failed.insert(result.case.clone(), result);
                    }
                }
                EventKind::RunFinished { outcome } => slice.outcome = Some(outcome),
                EventKind::RunResumed { .. } => slice.outcome = None,
                _ => {}
            }
        }
        for line in answers.lines().filter_map(|line| serde_json::from_str::<SliceAnswer>(line).ok()) {
            if let Some(place) = places.get(&(line.step, line.attempt)) {
                slice.answers.insert(place.clone(), line.answer);
            }
        }
        slice
    }

    /// Whether there is an answer to a case, which could be judged.
    #[must_use]
    pub fn has_answered(&self, case: &str) -> bool {
        self.has(case) && !self.failed.contains_key(case)
    }

    /// Whether it is known what became of a case.
    #[must_use]
    pub fn has(&self, case: &str) -> bool {
        self.failed.contains_key(case) || self.answers.contains_key(&(case.to_string(), EXECUTES))
    }
}

/// What there is to report about a slice.
#[derive(Debug)]
pub enum SliceNews {
    /// A worker has begun it.
    Claimed {
        /// The name of its unit.
        unit: String,
        /// The name of the worker's machine.
        machine: String,
    },
    /// There are answers to some or all of its cases.
    Answers(Box<SliceAnswers>),
    /// None of these cases can be answered, for this reason.
    Failed {
        /// The IDs of the cases.
        cases: Vec<String>,
        /// The reason.
        why: String,
    },
    /// No more slices are started, because of a limit of the whole evaluation.
    Limit(LimitKind),
}

/// What brings slices of cases to other machines.
pub trait SliceSource {
    /// Takes the cases that have no answer, in order.
    ///
    /// # Errors
    /// When they cannot be brought there.
    fn start(&mut self, cases: Vec<String>) -> Result<(), Failure>;
    /// Waits for news; `None` if no slice is left. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Result<Option<SliceNews>, Failure>>;
    /// Stops the slices gracefully.
    fn end(&mut self, signal: Sig);
}

/// Like [`evaluate`](super::evaluate), with the cases asked elsewhere.
///
/// # Errors
/// When the journal cannot be written, signals cannot be received, or no slice can be started.
pub async fn evaluate_in_slices(setting: Setting<'_>, source: &mut impl SliceSource) -> Result<EvalEnd, Failure> {
    let recorder = setting.recorder();
    let mut questions = setting.questions(&recorder)?;
    let first = setting.first_input();
    let Setting { context, journal, observer, .. } = setting;
    let world = context.world;
    let mut signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
    let tell = |questions: &mut Questions<'_>, observer: &mut dyn Observer| {
        tell_recorded((journal, world, &recorder), &mut |event| questions.see(event), observer);
    };
    questions.take(first)?;
    let mut waiting = questions.without_answer()?;
    tell(&mut questions, observer);
    source.start(waiting.keys().map(|case| context.suite.cases[*case].id.clone()).collect())?;
    let (mut halt, mut failure) = (None, None);
    loop {
        let until = questions.until.filter(|_| halt.is_none()).map(|until| until.saturating_sub(world.uptime()));
        tokio::select! {
            biased;
            signal = signals.next() => match signal {
                ReceivedSignal::End(signal) => {
                    halt.get_or_insert(Halt::Signal(signal));
                    source.end(signal);
                }
                // The jobs are on other machines.
                ReceivedSignal::Pause => signals.stop(),
                ReceivedSignal::Continue => {}
            },
            news = source.next() => match news {
                Ok(Some(SliceNews::Claimed { unit, machine })) => {
                    observer.notice(&Notice::Claimed { unit: &unit, machine: &machine });
                }
                Ok(Some(SliceNews::Limit(limit))) => drop(halt.get_or_insert(Halt::Limit(limit))),
                Ok(Some(news)) => failure = questions.take_slice(news, &mut waiting).err().or(failure),
                Ok(None) => break,
                Err(error) => failure = Some(error),
            },
            // Write errors are ignored: a reader that has gone away misses our lines.
            _ = written(observer), if !observer.is_idle() => {}
            () = sleep(until.unwrap_or_default()), if until.is_some() => {
                halt = Some(Halt::Limit(LimitKind::Time));
                source.end(Sig::Term);
            }
        }
        tell(&mut questions, observer);
        if failure.is_some() {
            source.end(Sig::Term);
        }
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    questions.halt(halt)?;
    tell(&mut questions, observer);
    flushed(observer).await;
    questions.end()
}

impl Questions<'_> {
    /// Uses the stored answers. Returns the cases that lack one, by their numbers.
    fn without_answer(&mut self) -> Result<BTreeMap<usize, CaseRun>, Failure> {
        let mut open = BTreeMap::new();
        while let Some(question) = self.queue.pop_front() {
            let Some(job) = self.job_for(question)? else { continue };
            // It is not asked here.
            self.issued = self.issued.saturating_sub(1);
            if let Some((Question::Answer(of) | Question::Evaluate { of, .. }, _)) = self.under_way.remove(&job.id) {
                open.insert(of.case, CaseRun { cached: false, ..of });
            }
        }
        Ok(open)
    }

    /// Judges the cases of a slice that are still waiting for an answer.
    fn take_slice(&mut self, news: SliceNews, waiting: &mut BTreeMap<usize, CaseRun>) -> Result<(), Failure> {
        let open: Vec<CaseRun> = waiting.values().copied().collect();
        match news {
            SliceNews::Answers(slice) => {
                for of in open {
                    if self.judge_from(&slice, of)? {
                        waiting.remove(&of.case);
                    }
                }
            }
            SliceNews::Failed { cases, why } => {
                for of in open.into_iter().filter(|of| cases.contains(&self.context.suite.cases[of.case].id)) {
                    self.record_error(of, format!("executor_error: {why}"))?;
                    waiting.remove(&of.case);
                }
            }
            SliceNews::Claimed { .. } | SliceNews::Limit(_) => {}
        }
        Ok(())
    }

    /// Judges a case by the answers of a slice. Returns whether there were any.
    fn judge_from(&mut self, slice: &SliceAnswers, of: CaseRun) -> Result<bool, Failure> {
        let id = self.case(of).id.clone();
        let key = |step: u32| (id.clone(), step);
        let Some(answer) = slice.answers.get(&key(EXECUTES)) else {
            let Some(failed) = slice.failed.get(&id) else { return Ok(false) };
            self.adopt(slice, of, EXECUTES)?;
            self.failed_there(of, failed)?;
            return Ok(true);
        };
        let judged = slice.answers.get(&key(EVALUATES));
        let needs_evaluator = slice.attempts.contains_key(&key(EVALUATES));
        if needs_evaluator && judged.is_none() && !slice.failed.contains_key(&id) {
            return Ok(false);
        }
        self.keep(slice, &Question::Answer(of), answer)?;
        self.answered(of, answer.said.clone(), answer.session.clone())?;
        let Some(question) = self.queue.pop_front() else { return Ok(true) };
        let Question::Evaluate { output, session, .. } = &question else { return Ok(true) };
        let (output, session) = (output.clone(), session.clone());
        match judged {
            Some(judged) if session.is_some() && session == judged.session => {
                self.adopt(slice, of, EVALUATES)?;
                self.record_error(of, "evaluator_error: it answered in the executor's session".into())?;
            }
            Some(judged) => {
                self.keep(slice, &question, judged)?;
                self.evaluated(of, &output, &judged.said)?;
            }
            None => {
                self.adopt(slice, of, EVALUATES)?;
                match slice.failed.get(&id) {
                    Some(failed) => self.failed_there(of, failed)?,
                    None => self.record_error(of, "evaluator_error: there is no evaluation".into())?,
                }
            }
        }
        Ok(true)
    }

    fn failed_there(&mut self, of: CaseRun, failed: &CaseResult) -> Result<(), Failure> {
        let why = failed.error.clone().unwrap_or_default();
        match failed.issues.first() {
            Some(issue) => self.unreadable(of, why, issue.clone()),
            None => self.record_error(of, why),
        }
    }

    /// Takes over the attempts of a question, and stores its answer.
    fn keep(&mut self, slice: &SliceAnswers, question: &Question, answer: &StoredAnswer) -> Result<(), Failure> {
        let (Question::Answer(of) | Question::Evaluate { of, .. }) = *question else { return Ok(()) };
        let step = question.step();
        let attempt = self.adopt(slice, of, step)?;
        if let Ok(plan) = self.plan_of(question) {
            let given = AnswerPlace { run: self.recorder.run(), step, attempt };
            self.journal.keep_answer(&key_of(&plan), answer, given)?;
        }
        Ok(())
    }

    /// Makes the attempts at a case part of this run. Returns the number of the last one.
    fn adopt(&mut self, slice: &SliceAnswers, of: CaseRun, step: u32) -> Result<u32, Failure> {
        let events = slice.attempts.get(&(self.case(of).id.clone(), step)).cloned().unwrap_or_default();
        let (mut numbers, mut kinds, mut last) = (HashMap::new(), Vec::new(), 0);
        let (root, their_run) = &slice.attempts_at;
        for mut kind in events {
            let is_planned = matches!(kind, EventKind::AttemptPlanned { .. });
            if let Some(at) = kind.place_in_lane() {
                let theirs = at.attempt;
                last = match numbers.get(&theirs) {
                    Some(ours) => *ours,
                    None => self.recorder.next_attempt(step),
                };
                numbers.insert(theirs, last);
                at.attempt = last;
                at.iteration = u32::try_from(of.case + 1).unwrap_or(u32::MAX);
                if is_planned {
                    self.journal.adopt_attempt_as(self.recorder.run(), at, root, (*their_run, theirs))?;
                }
            }
            kinds.push(kind);
        }
        let events = self.recorder.record((&mut self.journal, self.context.world), kinds, None, "")?;
        self.recorder.tell_later(events);
        Ok(last)
    }
}
