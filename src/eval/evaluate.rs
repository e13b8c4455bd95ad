//! An evaluation from its first case to the prompt that wins: `(improve -> guard -> execute -> evaluate):N` (seed 003).

use super::candidate::{Guards, proposed};
use super::choose::{Patience, Progress, Tried, winner};
use super::desk::Desk;
use super::feedback::{CaseFeedback, Expectations};
use super::leak::LeakGuard;
use super::measure::{Book, Measure, Rewriting};
use super::tokens::tokens;
use crate::engine::{
    EvalEvent, EvalFacts, EvalLedger, Event, EventKind, HighestAttempt, HumanNeeded, LimitKind, Notice, Observer,
    Overrides, RunOutcome, Stopwatch,
};
use crate::journal::Journal;
use crate::plan::{Outline, Part};
use crate::runner::{Failure, Halt, Lanes, Recorder, flushed, tell_news, work_in_lanes};
use indexmap::IndexMap;
use std::cmp::Ordering;
use std::time::Duration;

/// What an evaluation works with.
pub struct Setting<'a> {
    /// What is asked of whom.
    pub desk: &'a Desk<'a>,
    /// What it is about.
    pub facts: EvalFacts,
    /// What is asked of whom about what, in one word.
    pub digest: &'a str,
    /// What the command line said of times and limits.
    pub overrides: &'a Overrides,
    /// The agents as steps of one run.
    pub outline: &'a Outline,
    /// Limits that hold from now on, where it goes on.
    pub limits: &'a [String],
    /// The journal of the root.
    pub journal: &'a Journal,
    /// The run's number in it.
    pub run: i64,
    /// Its events so far.
    pub events: &'a [Event],
    /// The highest attempt of each step that has left a folder.
    pub attempts: Vec<(u32, u32)>,
    /// Who is told.
    pub observer: &'a mut dyn Observer,
}

/// How an evaluation came out.
#[derive(Debug)]
pub struct Evaluated {
    /// As a run.
    pub outcome: RunOutcome,
    /// What is known of it.
    pub ledger: EvalLedger,
}

/// Works until it is over, or is to end. What the journal knows already is not asked again.
///
/// # Errors
/// When the journal takes no more, or we cannot hear signals.
pub async fn evaluate(setting: Setting<'_>) -> Result<Evaluated, Failure> {
    let first = opening(&setting);
    let Setting { desk, facts, journal, run, events, attempts, observer, .. } = setting;
    // An attempt may have been cut off before it had a folder.
    let planned = events.iter().filter_map(|event| match &event.event {
        EventKind::AttemptPlanned { at, .. } => Some((at.step, at.attempt)),
        _ => None,
    });
    let seq = events.last().map_or(0, |event| event.seq);
    let recorder = Recorder::new(run, seq, attempts.into_iter().chain(planned));
    let ledger = EvalLedger::of_events(events);
    let time = desk.limits.time.map(|time| time.saturating_sub(worked(events)));
    let until = time.map(|time| desk.world.uptime().saturating_add(time));
    let fresh = facts.options.fresh;
    let sibling = journal.sibling()?;
    let issued = ledger.totals.planned;
    let expectations = Expectations::of(desk.suite.cases.iter().filter_map(|case| case.expected.as_deref()));
    let book = Book { desk, journal: sibling, run, recorder: &recorder, ledger, until, expectations, issued, fresh };
    let held_out: Vec<bool> = facts.cases.iter().map(|case| case.held_out).collect();
    let number = usize::try_from(facts.options.jobs.max(1)).unwrap_or(1);
    let lanes = Lanes::open(number, desk.root, desk.world, journal, &recorder)?;
    let mut trial = Trial { lanes, book, facts: &facts, held_out: &held_out, observer };
    let began = EventKind::Evaluation { what: EvalEvent::Began { facts: facts.clone() } };
    trial.book.record_all(vec![first, began])?;
    trial.say();
    let ended = if facts.options.improves { trial.improve().await } else { trial.measure_all().await };
    let outcome = match ended? {
        Ok(outcome) => outcome,
        Err(Halt::Signal(signal)) => RunOutcome::Interrupted { signal },
        Err(Halt::Limit(limit)) => RunOutcome::LimitReached { limit },
    };
    trial.book.record_all(vec![EventKind::RunFinished { outcome }])?;
    trial.say();
    flushed(trial.observer).await;
    Ok(Evaluated { outcome, ledger: trial.book.ledger })
}

/// Its first event: it begins, or goes on.
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
        queue: None,
        found: None,
        tree: None,
        rules: None,
        chain: setting.outline.chain.clone(),
        name: None,
        prompt: None,
        vars: IndexMap::new(),
        digest: setting.digest.to_string(),
        root: setting.desk.root.display().to_string(),
        forkhestra,
        steps: u32::try_from(setting.outline.steps.len()).unwrap_or(u32::MAX),
        overrides: setting.overrides.clone(),
        base: None,
        task: None,
    }
}

/// How long it was at work before.
fn worked(events: &[Event]) -> Duration {
    let mut watch = Stopwatch::default();
    for event in events {
        watch.see(event);
    }
    Duration::from_millis(watch.milliseconds())
}

struct Trial<'a, 'b> {
    lanes: Lanes<'a>,
    book: Book<'a>,
    facts: &'b EvalFacts,
    held_out: &'b [bool],
    observer: &'b mut dyn Observer,
}

/// What ended, or why it was halted; failures of ours around that.
type Halted<T> = Result<Result<T, Halt>, Failure>;

impl Trial<'_, '_> {
    fn say(&mut self) {
        let ledger = &mut self.book.ledger;
        tell_news(&self.lanes, &mut |event| ledger.evolve(&event.event), self.observer);
    }

    /// Tries a prompt on the cases of one part, or of both.
    async fn measure(&mut self, generation: u32, prompt: &str, part: Option<bool>) -> Halted<()> {
        let held_out = self.held_out;
        let which = |index: usize| part.is_none_or(|part| held_out[index] == part);
        let mut measure = Measure::new(&mut self.book, generation, prompt, held_out, which);
        let halt = work_in_lanes(&mut self.lanes, &mut measure, self.observer).await?;
        let halt = halt.or(measure.limit.map(Halt::Limit));
        self.say();
        Ok(halt.map_or(Ok(()), Err))
    }

    /// The same, and what nobody could judge once more: prompts are compared by what was judged.
    async fn measure_well(&mut self, generation: u32, prompt: &str, part: Option<bool>) -> Halted<()> {
        for _ in 0..2 {
            if let Err(halt) = self.measure(generation, prompt, part).await? {
                return Ok(Err(halt));
            }
        }
        Ok(Ok(()))
    }

    async fn measure_all(&mut self) -> Halted<RunOutcome> {
        let prompt = self.facts.prompt.clone();
        if let Err(halt) = self.measure(0, &prompt, None).await? {
            return Ok(Err(halt));
        }
        let wanting =
            |judged: bool| self.book.ledger.of(0).any(|result| result.error.is_none() == judged && !result.pass);
        Ok(Ok(match (wanting(true), wanting(false)) {
            (true, _) => RunOutcome::NotMet,
            (false, true) => self.nobody_judged(),
            (false, false) => RunOutcome::Succeeded,
        }))
    }

    /// What it means that a case was judged by nobody: an evaluator is asked again by a resume.
    fn nobody_judged(&self) -> RunOutcome {
        let evaluator = |error: &str| error.starts_with("evaluator_error");
        let unclear = self.book.ledger.of(0).any(|result| result.error.as_deref().is_some_and(evaluator));
        if unclear {
            RunOutcome::NeedsHuman { step: 2, why: HumanNeeded::Unclear }
        } else {
            RunOutcome::Failed { step: 1 }
        }
    }

    async fn improve(&mut self) -> Halted<RunOutcome> {
        let (facts, original) = (self.facts, self.facts.prompt.clone());
        if let Err(halt) = self.measure_well(0, &original, None).await? {
            return Ok(Err(halt));
        }
        let mut guards = self.guards();
        let patience =
            Patience { generations: facts.options.generations, always: facts.options.always, ..Patience::default() };
        let first = self.tried(0);
        let (mut tried, mut best, mut progress) = (vec![(0, first)], (0, first), Progress::default());
        progress.perfect = first.training.is_perfect();
        if first.training.cases == 0 {
            // Nobody could judge anything.
            return Ok(Ok(self.nobody_judged()));
        }
        let why = loop {
            if let Some(why) = progress.stop(patience) {
                break why;
            }
            let generation = progress.attempts + 1;
            let candidate = match self.candidate(generation, best.0, &mut guards).await? {
                Ok(Ok(candidate)) => candidate,
                // Nothing is decided: a resume asks it again.
                Ok(Err(why)) => {
                    self.observer.notice(&Notice::NoProposal(&why));
                    return Ok(Ok(RunOutcome::NeedsHuman { step: 3, why: HumanNeeded::Unclear }));
                }
                Err(halt) => return Ok(Err(halt)),
            };
            progress.attempts = generation;
            let (prompt, refused) = candidate;
            progress.refused.clone_from(&refused);
            if refused.is_some() {
                progress.idle += 1;
                continue;
            }
            if let Err(halt) = self.measure_well(generation, &prompt, Some(false)).await? {
                return Ok(Err(halt));
            }
            let mut result = self.tried(generation);
            let judged = |result: &Tried| {
                result.training.unjudged == 0 && result.held_out.is_none_or(|score| score.unjudged == 0)
            };
            if result.by_training(&first) == Ordering::Greater && result.training.passed > 0 && judged(&result) {
                if let Err(halt) = self.measure_well(generation, &prompt, Some(true)).await? {
                    return Ok(Err(halt));
                }
                result = self.tried(generation);
                tried.extend(Some((generation, result)).filter(|(_, result)| judged(result)));
            }
            if result.by_training(&best.1) == Ordering::Greater {
                best = (generation, result);
                progress.idle = 0;
                progress.perfect = result.training.is_perfect();
            } else {
                progress.idle += 1;
            }
        };
        let generation = winner(&tried);
        self.book.record(EvalEvent::Chose { generation, why })?;
        self.say();
        let whole = first.training.is_perfect() && first.held_out.is_none_or(|score| score.is_perfect());
        Ok(Ok(if generation > 0 || whole { RunOutcome::Succeeded } else { RunOutcome::NotMet }))
    }

    /// What no candidate may give away: every text that is measured by, held out or not.
    fn guards(&self) -> Guards {
        let suite = self.book.desk.suite;
        let texts = suite.cases.iter().flat_map(|case| [Some(case.text.as_str()), case.expected.as_deref()]);
        let texts = texts.flatten().chain(suite.examples.iter().map(String::as_str));
        let original = &self.facts.prompt;
        Guards::new(LeakGuard::new(original, texts), original, self.facts.options.max_tokens)
    }

    /// A new prompt from the improver, with the reason why it is not tried; or why there is none.
    async fn candidate(
        &mut self,
        generation: u32,
        of: u32,
        guards: &mut Guards,
    ) -> Halted<Result<(String, Option<String>), String>> {
        if let Some(known) = self.book.ledger.prompts.get(&generation).cloned() {
            // It was proposed before we were cut off.
            let _ = guards.refuses(&known.prompt);
            return Ok(Ok(Ok((known.prompt, known.refused))));
        }
        let prompt = self.book.ledger.prompts.get(&of).map_or_else(String::new, |known| known.prompt.clone());
        let mut feedback = CaseFeedback::default();
        for result in self.book.ledger.of(of).filter(|result| !result.held_out && result.error.is_none()) {
            feedback.add(&result.issues, &result.suggestions);
        }
        let desk = self.book.desk;
        let agent = desk.suite.rewriter();
        let asked = desk.improve_prompt(&prompt, &feedback, guards);
        let plan = match asked.map(|asked| desk.plan(agent, Part::Answers, &asked)) {
            Ok(Ok(plan)) => plan,
            Ok(Err(faults)) => {
                let words = faults.first().map_or_else(String::new, |fault| fault.message.clone());
                return Ok(Ok(Err(words)));
            }
            Err(why) => return Ok(Ok(Err(why))),
        };
        if let Some(limit) = self.book.limit_reached(&plan) {
            return Ok(Err(Halt::Limit(limit)));
        }
        let name = agent.value.clone();
        let mut asking = Rewriting { book: &mut self.book, plan: Some(plan), name, generation, answer: None };
        let halt = work_in_lanes(&mut self.lanes, &mut asking, self.observer).await?;
        let answer = asking.answer.take();
        if let (Some(halt), None) = (halt, &answer) {
            return Ok(Err(halt));
        }
        let answer = match answer {
            Some(Ok(answer)) => answer,
            Some(Err(why)) => return Ok(Ok(Err(why))),
            None => return Ok(Err(Halt::Limit(LimitKind::Time))),
        };
        let prompt = proposed(&answer);
        let refused = guards.refuses(&prompt);
        let what = EvalEvent::Proposed {
            generation,
            tokens: tokens(&prompt),
            prompt: prompt.clone(),
            refused: refused.clone(),
        };
        self.book.record(what)?;
        self.say();
        Ok(halt.map_or(Ok(Ok((prompt, refused))), Err))
    }

    fn tried(&self, generation: u32) -> Tried {
        let ledger = &self.book.ledger;
        Tried {
            training: ledger.comparable_score(generation, false).unwrap_or_default(),
            held_out: ledger.comparable_score(generation, true),
            tokens: ledger.prompts.get(&generation).map_or(0, |known| known.tokens),
        }
    }
}
