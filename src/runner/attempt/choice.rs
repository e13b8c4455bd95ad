//! How the next attempt of a step is started: which of its backends and models runs it, and whether it continues the
//! session of the attempt before.

use super::choices::LastSession;
use super::output::AttemptTrace;
use crate::agent::ErrorClass;
use crate::engine::{At, Exit, Feedback, Finished, Input, Preparation, UsageLimit};
use crate::journal::JournalError;
use crate::plan::PlannedStep;
use crate::runner::driver::Driver;
use jiff::Timestamp;
use std::time::Duration;

/// The longest rest of a usage limit that is waited for although another backend is free.
const SHORT: Duration = Duration::from_mins(1);
/// How long a backend is not tried after a limit whose end is unknown.
const UNKNOWN_END: Duration = Duration::from_mins(15);
/// How often in a row a limit without a known end is waited for first.
const PATIENT: u32 = 2;
/// The most tokens of a session that is continued: a longer one costs more than it saves.
const LONGEST_SESSION: u64 = 100_000;

/// What was chosen for an attempt.
pub(in crate::runner) struct Chosen<'p> {
    /// The step, as it is run.
    pub(in crate::runner) step: &'p PlannedStep,
    /// The session that is continued.
    pub(in crate::runner) session: Option<String>,
}

impl<'a> Driver<'a> {
    /// Chooses, and records what is out of the ordinary.
    pub(in crate::runner) fn choose(
        &mut self,
        at: &At,
        step: &'a PlannedStep,
        feedback: Option<&Feedback>,
    ) -> Result<Chosen<'a>, JournalError> {
        let before = self.state.variant(at.step);
        let (variant, mut reasons) = self.variant(at, step);
        let chosen = step.variant(variant);
        let session = match self.session(at, chosen, variant, feedback) {
            Some(Ok(session)) => Some(session),
            Some(Err(why)) => {
                reasons.push(format!("begins a new session: {why}"));
                None
            }
            None => None,
        };
        if variant != before || session.is_some() || !reasons.is_empty() {
            let (backend, model) = chosen.run_by();
            let prepared = Preparation {
                variant,
                backend: backend.map(str::to_string),
                model: model.map(str::to_string),
                session: session.clone(),
                reasons,
            };
            self.take(Input::Prepared(prepared))?;
        }
        Ok(Chosen { step: chosen, session })
    }

    /// Returns the variant of a step that runs it now, and why, if that has changed.
    fn variant(&self, at: &At, step: &PlannedStep) -> (u32, Vec<String>) {
        if step.variants.is_empty() {
            return (0, Vec::new());
        }
        let before = self.state.variant(at.step);
        let all: Vec<&PlannedStep> = step.all_variants().collect();
        let mut backends: Vec<&str> = Vec::new();
        for backend in all.iter().filter_map(|step| step.run_by().0) {
            if !backends.contains(&backend) {
                backends.push(backend);
            }
        }
        // If all of them are limited, the first one is waited for.
        let free = backends.iter().copied().find(|backend| self.limit_of(backend).is_none());
        let backend = free.or(backends.first().copied());
        let ours: Vec<u32> =
            (0..).zip(&all).filter(|(_, step)| step.run_by().0 == backend).map(|(index, _)| index).collect();
        let rejections = self.context.plan.task.as_ref().map_or(0, |task| task.rejections);
        let rounds = at.round.saturating_sub(1).saturating_add(rejections);
        let level = usize::try_from(rounds).unwrap_or(usize::MAX).min(ours.len().saturating_sub(1));
        let chosen = ours.get(level).copied().unwrap_or(0);
        if chosen == before {
            return (chosen, Vec::new());
        }
        let was = step.variant(before).run_by().0;
        let why = match (backend == was, was.and_then(|was| self.limit_of(was).map(|until| (was, until)))) {
            (true, _) => format!("{rounds} rounds have not passed"),
            (false, Some((was, until))) => format!("{was} has reached a usage limit, which ends at {until:.0}"),
            (false, None) if backend.is_some_and(|backend| self.choices.limited.contains_key(backend)) => {
                "its usage limit has ended".to_string()
            }
            // Another process knew of the limit.
            (false, None) => "it is tried again".to_string(),
        };
        (chosen, vec![why])
    }

    /// Returns when the current usage limit of a backend ends, if there is one.
    fn limit_of(&self, backend: &str) -> Option<Timestamp> {
        let world = self.context.world;
        let shared =
            crate::world::parked_until(world, backend).and_then(|until| Timestamp::from_millisecond(until).ok());
        let own = self.choices.limited.get(backend).copied();
        own.into_iter().chain(shared).max().filter(|until| *until > world.moment())
    }

    /// Returns the session that an attempt continues, or why it does not; `None` if it never would.
    fn session(
        &self,
        at: &At,
        step: &PlannedStep,
        variant: u32,
        feedback: Option<&Feedback>,
    ) -> Option<Result<String, String>> {
        let continuation = step.continuation.as_ref()?;
        // Without feedback there is nothing to say. A repeated attempt has failed to continue, or has no session.
        if feedback.is_none() || at.iteration > 1 || self.state.is_retry() || self.state.has_lost_its_session(at.step) {
            return None;
        }
        let Some(last) = self.choices.sessions.get(&at.step) else {
            return Some(Err("the one before was in another process".into()));
        };
        let age = self.context.world.moment().duration_since(last.ended);
        let minutes = age.as_secs() / 60;
        let within = continuation.within;
        Some(if !last.is_whole {
            Err("the attempt before did not end well".into())
        } else if last.variant != variant {
            Err("another backend or model runs it".into())
        } else if age > jiff::SignedDuration::try_from(within).unwrap_or(jiff::SignedDuration::MAX) {
            Err(format!(
                "the last one ended {minutes} min ago, and its service forgets it after {} min",
                within.as_secs() / 60
            ))
        } else if last.tokens > LONGEST_SESSION {
            Err(format!("the last one has {} tokens, and {LONGEST_SESSION} at most are continued", last.tokens))
        } else {
            Ok(last.id.clone())
        })
    }

    /// Remembers how an attempt ended. For one that has reached a usage limit, says which other backend is free.
    pub(in crate::runner) fn remember(&mut self, at: &At, finished: &mut Finished, exit: Exit, said: AttemptTrace) {
        let Some(step) = self.context.plan.step(at.step) else { return };
        let variant = self.state.variant(at.step);
        let unused = finished.agent.tokens.is_none_or(|tokens| tokens.total() == 0);
        if self.state.continues(at.step) && matches!(exit, Exit::Code(1..)) && unused && !said.spoke {
            finished.agent.lost_session = self.choices.sessions.get(&at.step).map(|last| last.id.clone());
        }
        let is_whole = exit == Exit::Code(0) && finished.error.is_none() && self.state.was_not_cut();
        match &finished.agent.session {
            Some(id) if step.variant(variant).continuation.is_some() => {
                let tokens = said.last_request.or(finished.agent.tokens.map(|tokens| tokens.total())).unwrap_or(0);
                let ended = self.context.world.moment();
                let last = LastSession { id: id.clone(), variant, ended, tokens, is_whole };
                self.choices.sessions.insert(at.step, last);
            }
            _ => drop(self.choices.sessions.remove(&at.step)),
        }
        if step.variants.is_empty() {
            return;
        }
        let Some(backend) = step.variant(variant).run_by().0.map(str::to_string) else { return };
        match &mut finished.agent.usage_limit {
            Some(limit) if finished.agent.error_class.is_none_or(|class| class == ErrorClass::UsageLimit) => {
                self.limited(&backend, limit);
                let others = step.all_variants().filter_map(|step| step.run_by().0);
                let free = others.filter(|other| *other != backend).find(|other| self.limit_of(other).is_none());
                limit.free = free.filter(|_| self.limit_of(&backend).is_some()).map(str::to_string);
                let ends = step.all_variants().filter_map(|step| self.limit_of(step.run_by().0?));
                if let (None, Some(first)) = (&limit.free, ends.min()) {
                    // All of them are limited: the one that is free first is waited for.
                    let left = first.as_millisecond().saturating_sub(self.context.world.moment().as_millisecond());
                    limit.resets_at = Some(format!("{first:.0}"));
                    limit.resets_in_ms = u64::try_from(left).ok();
                }
            }
            _ => drop(self.choices.in_a_row.remove(&backend)),
        }
    }

    /// Remembers a usage limit, unless it is so short that it is waited for.
    fn limited(&mut self, backend: &str, limit: &UsageLimit) {
        let short = self.context.world.shortened("FALLBACK", SHORT);
        let lasts = if let Some(left) = limit.resets_in_ms {
            Some(Duration::from_millis(left)).filter(|left| *left > short)
        } else {
            let count = self.choices.in_a_row.entry(backend.to_string()).or_default();
            *count += 1;
            (*count > PATIENT).then_some(UNKNOWN_END)
        };
        let ends = lasts.and_then(|lasts| self.context.world.moment().checked_add(lasts).ok());
        if let Some(ends) = ends {
            self.choices.limited.insert(backend.to_string(), ends);
        }
    }
}
