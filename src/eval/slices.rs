//! An evaluation whose cases are asked on other machines, a slice of them at a time. Only the answers of the agents
//! come from there: their attempts become part of this run, and this machine judges them as if it had asked.

use super::evaluate::{EvalEnd, Setting};
use super::machine::{EVALUATES, EXECUTES};
use super::planner::key_of;
use super::question::{CaseRun, Question};
use super::questions::asking::{job_for, plan_of};
use super::questions::judging::{answered, evaluated, record_error, unreadable};
use super::questions::{Questions, attempt_of};
use crate::engine::{CaseResult, EvalEvent, Event, EventKind, LimitKind, Notice, Observer, RunOutcome, Sig, Totals};
use crate::journal::{AnswerPlace, NewAnswer, StoredAnswer};
use crate::runner::{Failure, Halt, JobSource, ReceivedSignal, Recording, Signals, flushed, tell_recorded, written};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::sleep;

/// The file with the answers of a slice, one line each, next to the attempts of its run.
pub const SLICE_ANSWERS: &str = "answers.ndjson";

/// An answer, as the worker of a slice keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SliceAnswer {
    /// The number of the step that gave it.
    pub step: u32,
    /// The number of the attempt in the worker's run.
    pub attempt: u32,
    /// What was answered.
    #[serde(flatten)]
    pub answer: StoredAnswer,
}

/// A question of a slice: a case, its repetition, and the step that asks.
type Asked = (Arc<str>, u32, u32);

/// A case, and its repetition.
type Repetition = (Arc<str>, u32);

/// What is known about the cases of a slice.
#[derive(Debug, Default)]
pub struct SliceAnswers {
    /// How often each case is asked.
    repeats: HashMap<Arc<str>, u32>,
    /// The events of the attempts.
    attempts: HashMap<Asked, Vec<EventKind>>,
    answers: HashMap<Asked, StoredAnswer>,
    /// The cases that could not be judged, with their repetition.
    failed: HashMap<Repetition, CaseResult>,
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
                let Some((case, repetition)) = asked(&cases, at.iteration) else { continue };
                let key = (case, repetition, at.step);
                places.insert((at.step, at.attempt), key.clone());
                slice.attempts.entry(key).or_default().push(kind);
                continue;
            }
            match kind {
                EventKind::Evaluation { event: EvalEvent::Started { facts } } => {
                    slice.repeats = facts.cases.iter().map(|case| (case.id.clone(), case.repeat)).collect();
                    cases = facts.cases.iter().map(|case| case.id.clone()).collect();
                }
                EventKind::Evaluation { event: EvalEvent::CaseJudged { result } } => {
                    let key = (result.case.clone(), result.repetition);
                    slice.failed.remove(&key);
                    if result.remarks.error.is_some() {
                        slice.failed.insert(key, result);
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

    /// Whether there is an answer to every repetition of a case, which could be judged.
    #[must_use]
    pub fn has_answered(&self, case: &str) -> bool {
        self.every(case, &|key| !self.failed.contains_key(key) && self.is_answered(key))
    }

    /// Whether it is known what became of every repetition of a case.
    #[must_use]
    pub fn has(&self, case: &str) -> bool {
        self.every(case, &|key| self.failed.contains_key(key) || self.is_answered(key))
    }

    fn is_answered(&self, (case, repetition): &Repetition) -> bool {
        self.answers.contains_key(&(case.clone(), *repetition, EXECUTES))
    }

    fn every(&self, case: &str, holds: &dyn Fn(&Repetition) -> bool) -> bool {
        let Some((case, repeat)) = self.repeats.get_key_value(case) else { return false };
        (1..=*repeat).all(|repetition| holds(&(Arc::clone(case), repetition)))
    }
}

/// Returns the case and the repetition that an iteration stands for: the cases are counted on in each repetition.
fn asked(cases: &[Arc<str>], iteration: u32) -> Option<Repetition> {
    let number = usize::try_from(iteration.checked_sub(1)?).ok()?;
    let repetition = u32::try_from(number.checked_div(cases.len())? + 1).ok()?;
    Some((cases.get(number % cases.len())?.clone(), repetition))
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
    let mut questions = setting.questions(&recorder);
    let first = setting.first_input();
    let Setting { context, journal, observer, .. } = setting;
    let world = context.world;
    let mut signals = Signals::listen(|signal| world.ignores(signal)).map_err(Failure::Signals)?;
    let tell = |questions: &mut Questions<'_>, observer: &mut dyn Observer| {
        tell_recorded((journal, world, &recorder), &mut |event| questions.see(event), observer);
    };
    questions.take(first)?;
    let mut waiting = without_answer(&mut questions)?;
    tell(&mut questions, observer);
    let open: BTreeSet<usize> = waiting.values().map(|of| of.case).collect();
    source.start(open.into_iter().map(|case| context.suite.cases[case].id.to_string()).collect())?;
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
                Ok(Some(news)) => failure = take_slice(&mut questions, news, &mut waiting).err().or(failure),
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
        // What was judged before is not lost with it.
        let _ = questions.record_waiting();
        tell(&mut questions, observer);
        return Err(failure);
    }
    questions.halt(halt)?;
    tell(&mut questions, observer);
    flushed(observer).await;
    EvalEnd::of(questions)
}

/// Uses the stored answers. Returns what lacks one, by the numbers of the case and the repetition.
fn without_answer(questions: &mut Questions<'_>) -> Result<BTreeMap<(usize, u32), CaseRun>, Failure> {
    let mut open = BTreeMap::new();
    while let Some(question) = questions.next_question() {
        let Some(job) = job_for(questions, question)? else { continue };
        // It is not asked here.
        questions.issued = questions.issued.saturating_sub(1);
        let of = match questions.under_way.remove(&job.id) {
            Some((Question::Answer(of), _)) => Some(of),
            Some((Question::Evaluate(evaluating), _)) => Some(evaluating.of),
            _ => None,
        };
        if let Some(of) = of {
            open.insert((of.case, of.repetition), CaseRun { cached: false, ..of });
        }
    }
    questions.record_waiting()?;
    Ok(open)
}

/// Judges the cases of a slice that are still waiting for an answer.
fn take_slice(
    questions: &mut Questions<'_>,
    news: SliceNews,
    waiting: &mut BTreeMap<(usize, u32), CaseRun>,
) -> Result<(), Failure> {
    let open: Vec<CaseRun> = waiting.values().copied().collect();
    match news {
        SliceNews::Answers(slice) => {
            for of in open {
                if judge_from(questions, &slice, of)? {
                    waiting.remove(&(of.case, of.repetition));
                }
            }
        }
        SliceNews::Failed { cases, why } => {
            let failed = |of: &CaseRun| cases.iter().any(|case| **case == *questions.context.suite.cases[of.case].id);
            for of in open.into_iter().filter(failed) {
                record_error(questions, of, format!("executor_error: {why}"))?;
                waiting.remove(&(of.case, of.repetition));
            }
        }
        SliceNews::Claimed { .. } | SliceNews::Limit(_) => {}
    }
    questions.record_waiting()
}

/// Judges a case by the answers of a slice. Returns whether there were any.
fn judge_from(questions: &mut Questions<'_>, slice: &SliceAnswers, of: CaseRun) -> Result<bool, Failure> {
    let id = questions.case(of).id.clone();
    let key = |step: u32| (id.clone(), of.repetition, step);
    let failed = slice.failed.get(&(id.clone(), of.repetition));
    let Some(answer) = slice.answers.get(&key(EXECUTES)) else {
        let Some(failed) = failed else { return Ok(false) };
        adopt(questions, slice, of, EXECUTES, None)?;
        failed_there(questions, of, failed)?;
        return Ok(true);
    };
    let judged = slice.answers.get(&key(EVALUATES));
    let needs_evaluator = slice.attempts.contains_key(&key(EVALUATES));
    if needs_evaluator && judged.is_none() && failed.is_none() {
        return Ok(false);
    }
    let place = keep(questions, slice, &Question::Answer(of), answer)?;
    answered(questions, CaseRun { answer: place.map(attempt_of), ..of }, answer.clone())?;
    let Some(question) = questions.queue.pop_front() else { return Ok(true) };
    match (judged, question) {
        (Some(judged), Question::Evaluate(evaluating))
            if evaluating.session.is_some() && evaluating.session == judged.session =>
        {
            adopt(questions, slice, of, EVALUATES, None)?;
            record_error(questions, of, "evaluator_error: it answered in the executor's session".into())?;
        }
        (Some(judged), question) => {
            keep(questions, slice, &question, judged)?;
            if let Question::Evaluate(evaluating) = question {
                evaluated(questions, *evaluating, &judged.said)?;
            }
        }
        (None, Question::Evaluate(_)) => {
            adopt(questions, slice, of, EVALUATES, None)?;
            match failed {
                Some(failed) => failed_there(questions, of, failed)?,
                None => record_error(questions, of, "evaluator_error: there is no evaluation".into())?,
            }
        }
        (None, _) => {}
    }
    Ok(true)
}

fn failed_there(questions: &mut Questions<'_>, of: CaseRun, failed: &CaseResult) -> Result<(), Failure> {
    let why = failed.remarks.error.clone().unwrap_or_default();
    match failed.remarks.issues.first() {
        Some(issue) => unreadable(questions, of, why, issue.clone()),
        None => record_error(questions, of, why),
    }
}

/// Takes over the attempts of a question, and stores its answer. Returns where that is stored.
fn keep(
    questions: &mut Questions<'_>,
    slice: &SliceAnswers,
    question: &Question,
    answer: &StoredAnswer,
) -> Result<Option<AnswerPlace>, Failure> {
    let of = match question {
        Question::Answer(of) => *of,
        Question::Evaluate(evaluating) => evaluating.of,
        Question::Command(_) | Question::Select(_) | Question::Rewrite { .. } => return Ok(None),
    };
    let step = question.step();
    let key = plan_of(questions, question).ok().map(|plan| key_of(&plan, of.repetition));
    let attempt = adopt(questions, slice, of, step, key.map(|key| (key, answer)))?;
    Ok(Some(AnswerPlace { run: questions.recorder.run(), step, attempt }))
}

/// Makes the attempts at a case part of this run, and stores the answer that they gave, under its key. Returns the
/// number of the last one.
fn adopt(
    questions: &mut Questions<'_>,
    slice: &SliceAnswers,
    of: CaseRun,
    step: u32,
    answer: Option<(String, &StoredAnswer)>,
) -> Result<u32, Failure> {
    let events = slice.attempts.get(&(questions.case(of).id.clone(), of.repetition, step)).cloned().unwrap_or_default();
    let (mut numbers, mut kinds, mut last) = (HashMap::new(), Vec::new(), 0);
    let (root, their_run) = &slice.attempts_at;
    for mut kind in events {
        let is_planned = matches!(kind, EventKind::AttemptPlanned { .. });
        if let Some(at) = kind.place_in_lane() {
            let theirs = at.attempt;
            last = match numbers.get(&theirs) {
                Some(ours) => *ours,
                None => questions.recorder.next_attempt(step),
            };
            numbers.insert(theirs, last);
            at.attempt = last;
            at.iteration = questions.iteration(of);
            if is_planned {
                questions.journal.files().adopt_attempt(questions.recorder.run(), at, root, (*their_run, theirs))?;
            }
        }
        kinds.push(kind);
    }
    let at = AnswerPlace { run: questions.recorder.run(), step, attempt: last };
    let answer = answer.map(|(key, answer)| NewAnswer { key, at, answer: answer.clone() });
    let recording = Recording { answer, ..Recording::of(kinds) };
    let events = questions.recorder.record((&mut questions.journal, questions.context.world), recording)?;
    questions.recorder.tell_later(events);
    Ok(last)
}
