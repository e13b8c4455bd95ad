//! How the next attempt of a step is started: which of its backends and models runs it, and whether it continues the
//! session of the attempt before.

use super::context::RunContext;
use crate::agent::ErrorClass;
use crate::engine::{At, Exit, Feedback, Finished, Preparation, State, UsageLimit};
use crate::plan::PlannedStep;
use crate::world::{World, parked_until};
use jiff::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// The longest rest of a usage limit that is waited for although another backend is free.
const SHORT: Duration = Duration::from_mins(1);
/// How long a backend is not tried after a limit whose end is unknown.
const UNKNOWN_END: Duration = Duration::from_mins(15);
/// How often in a row a limit without a known end is waited for first.
const PATIENT: u32 = 2;
/// The most tokens of a session that is continued: a longer one costs more than it saves.
const LONGEST_SESSION: u64 = 100_000;

/// What an attempt's output shows of its work.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptTrace {
    /// The tokens of its last request, if they are reported.
    pub(super) last_request: Option<u64>,
    /// Whether it has said anything, or called a tool.
    pub(super) spoke: bool,
}

/// What was chosen for an attempt.
pub(super) struct Chosen<'p> {
    /// The step, as it is run.
    pub(super) step: &'p PlannedStep,
    /// The session that is continued.
    pub(super) session: Option<String>,
    /// What the journal records of the choice; none if it is the usual one.
    pub(super) prepared: Option<Preparation>,
}

/// What is remembered for the choice between attempts. It is lost with the process, and then everything is tried again.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// When the usage limits of backends end.
    limited: HashMap<String, Timestamp>,
    /// How often in a row a backend has reached a limit without a known end.
    in_a_row: HashMap<String, u32>,
    /// The last session of each step.
    sessions: HashMap<u32, LastSession>,
}

/// The session of a step's last attempt.
#[derive(Debug, Clone)]
struct LastSession {
    id: String,
    /// The variant that ran it.
    variant: u32,
    ended: Timestamp,
    /// The tokens of its last request, or, if that is not known, of all of them.
    tokens: u64,
    /// Whether it ended by itself and without an error.
    is_whole: bool,
}

impl Choices {
    /// Chooses for an attempt that begins now.
    pub(super) fn choose<'p>(
        &self,
        (context, state): (&RunContext<'_>, &State),
        at: &At,
        step: &'p PlannedStep,
        feedback: Option<&Feedback>,
    ) -> Chosen<'p> {
        let before = state.variant(at.step);
        let (variant, mut reasons) = self.variant((context, state), at, step);
        let chosen = step.variant(variant);
        let session = match self.session((context.world, state), at, (chosen, variant), feedback) {
            Some(Ok(session)) => Some(session),
            Some(Err(why)) => {
                reasons.push(format!("begins a new session: {why}"));
                None
            }
            None => None,
        };
        let (backend, model) = chosen.run_by();
        let prepared = (variant != before || session.is_some() || !reasons.is_empty()).then(|| Preparation {
            variant,
            backend: backend.map(str::to_string),
            model: model.map(str::to_string),
            session: session.clone(),
            reasons,
        });
        Chosen { step: chosen, session, prepared }
    }

    /// Returns the variant of a step that runs it now, and why, if that has changed.
    fn variant(&self, (context, state): (&RunContext<'_>, &State), at: &At, step: &PlannedStep) -> (u32, Vec<String>) {
        if step.variants.is_empty() {
            return (0, Vec::new());
        }
        let before = state.variant(at.step);
        let all: Vec<&PlannedStep> = step.all_variants().collect();
        let mut backends: Vec<&str> = Vec::new();
        for backend in all.iter().filter_map(|step| step.run_by().0) {
            if !backends.contains(&backend) {
                backends.push(backend);
            }
        }
        // If all of them are limited, the first one is waited for.
        let world = context.world;
        let free = backends.iter().copied().find(|backend| self.limit_of(world, backend).is_none());
        let backend = free.or(backends.first().copied());
        let ours: Vec<u32> =
            (0..).zip(&all).filter(|(_, step)| step.run_by().0 == backend).map(|(index, _)| index).collect();
        let rejections = context.plan.task.as_ref().map_or(0, |task| task.rejections);
        let rounds = at.round.saturating_sub(1).saturating_add(rejections);
        let level = usize::try_from(rounds).unwrap_or(usize::MAX).min(ours.len().saturating_sub(1));
        let chosen = ours.get(level).copied().unwrap_or(0);
        if chosen == before {
            return (chosen, Vec::new());
        }
        let was = step.variant(before).run_by().0;
        let why = match (backend == was, was.and_then(|was| self.limit_of(world, was).map(|until| (was, until)))) {
            (true, _) => format!("{rounds} rounds have not passed"),
            (false, Some((was, until))) => format!("{was} has reached a usage limit, which ends at {until:.0}"),
            (false, None) if backend.is_some_and(|backend| self.limited.contains_key(backend)) => {
                "its usage limit has ended".to_string()
            }
            // Another process knew of the limit.
            (false, None) => "it is tried again".to_string(),
        };
        (chosen, vec![why])
    }

    /// Returns when the current usage limit of a backend ends, if there is one.
    fn limit_of(&self, world: &World, backend: &str) -> Option<Timestamp> {
        let shared = parked_until(world, backend).and_then(|until| Timestamp::from_millisecond(until).ok());
        let own = self.limited.get(backend).copied();
        own.into_iter().chain(shared).max().filter(|until| *until > world.moment())
    }

    /// Returns the session that an attempt continues, or why it does not; `None` if it never would.
    fn session(
        &self,
        (world, state): (&World, &State),
        at: &At,
        (step, variant): (&PlannedStep, u32),
        feedback: Option<&Feedback>,
    ) -> Option<Result<String, String>> {
        let continuation = step.continuation.as_ref()?;
        // Without feedback there is nothing to say. A repeated attempt has failed to continue, or has no session.
        if feedback.is_none() || at.iteration > 1 || state.is_retry() || state.has_lost_its_session(at.step) {
            return None;
        }
        let Some(last) = self.sessions.get(&at.step) else {
            return Some(Err("the one before was in another process".into()));
        };
        let age = world.moment().duration_since(last.ended);
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
    pub(super) fn remember(
        &mut self,
        (context, state): (&RunContext<'_>, &State),
        at: &At,
        (finished, exit): (&mut Finished, Exit),
        said: AttemptTrace,
    ) {
        let world = context.world;
        let Some(step) = context.plan.step(at.step) else { return };
        let variant = state.variant(at.step);
        let unused = finished.agent.tokens.is_none_or(|tokens| tokens.total() == 0);
        if state.continues(at.step) && matches!(exit, Exit::Code(1..)) && unused && !said.spoke {
            finished.agent.lost_session = self.sessions.get(&at.step).map(|last| last.id.clone());
        }
        let is_whole = exit == Exit::Code(0) && finished.error.is_none() && state.was_not_cut();
        match &finished.agent.session {
            Some(id) if step.variant(variant).continuation.is_some() => {
                let tokens = said.last_request.or(finished.agent.tokens.map(|tokens| tokens.total())).unwrap_or(0);
                let ended = world.moment();
                let last = LastSession { id: id.clone(), variant, ended, tokens, is_whole };
                self.sessions.insert(at.step, last);
            }
            _ => drop(self.sessions.remove(&at.step)),
        }
        if step.variants.is_empty() {
            return;
        }
        let Some(backend) = step.variant(variant).run_by().0.map(str::to_string) else { return };
        match &mut finished.agent.usage_limit {
            Some(limit) if finished.agent.error_class.is_none_or(|class| class == ErrorClass::UsageLimit) => {
                self.limited_by(world, &backend, limit);
                let others = step.all_variants().filter_map(|step| step.run_by().0);
                let free = others.filter(|other| *other != backend).find(|other| self.limit_of(world, other).is_none());
                limit.free = free.filter(|_| self.limit_of(world, &backend).is_some()).map(str::to_string);
                let ends = step.all_variants().filter_map(|step| self.limit_of(world, step.run_by().0?));
                if let (None, Some(first)) = (&limit.free, ends.min()) {
                    // All of them are limited: the one that is free first is waited for.
                    let left = first.as_millisecond().saturating_sub(world.moment().as_millisecond());
                    limit.resets_at = Some(format!("{first:.0}"));
                    limit.resets_in_ms = u64::try_from(left).ok();
                }
            }
            _ => drop(self.in_a_row.remove(&backend)),
        }
    }

    /// Remembers a usage limit, unless it is so short that it is waited for.
    fn limited_by(&mut self, world: &World, backend: &str, limit: &UsageLimit) {
        let short = world.shortened("FALLBACK", SHORT);
        let lasts = if let Some(left) = limit.resets_in_ms {
            Some(Duration::from_millis(left)).filter(|left| *left > short)
        } else {
            let count = self.in_a_row.entry(backend.to_string()).or_default();
            *count += 1;
            (*count > PATIENT).then_some(UNKNOWN_END)
        };
        let ends = lasts.and_then(|lasts| world.moment().checked_add(lasts).ok());
        if let Some(ends) = ends {
            self.limited.insert(backend.to_string(), ends);
        }
    }
}
