//! Other ways to run a step's agent: another backend while the usage limit of the first one lasts, a stronger model
//! after rounds that did not pass, a session that is continued.

use super::backend::{Task, backend_command};
use super::context::{Context, Faults};
use super::errors;
use crate::agent::Named;
use crate::chain::{Agent, Backend, CliValue, Continuation, Delivery, Role, SessionUse};
use crate::prompt::{Segment, text};
use crate::source::{Place, Text};
use std::time::Duration;

/// How long the cache of a service usually holds a session: with a subscription, and with an API key.
const CACHED: (Duration, Duration) = (Duration::from_mins(55), Duration::from_mins(5));

/// How an attempt continues the session of the step's attempt before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedContinuation {
    /// The arguments, without the program.
    pub argv: Vec<Vec<Segment>>,
    /// The longest time since the end of that attempt.
    pub within: Duration,
}

/// Returns an agent for each of its other backends and models, the backends first. The first backend has every model;
/// the others have their own default.
pub(super) fn alternatives(agent: &Agent, level: Option<crate::chain::Permissions>, at: &Place) -> Vec<Agent> {
    let model = |values: &[String]| CliValue { values: values.to_vec(), at: at.clone() };
    let models = agent.cli.get("model").map_or(&[][..], |model| &model.values);
    let mut all: Vec<Agent> = models
        .iter()
        .skip(1)
        .map(|name| {
            let mut other = agent.clone();
            other.cli.insert("model", model(std::slice::from_ref(name)));
            other
        })
        .collect();
    for backend in &agent.fallback {
        let mut other = Agent { backend: Some(backend.clone()), ..agent.clone() };
        other.cli.shift_remove("model");
        // A fallback may do as much as the first backend, and no more.
        other.permissions = level.map(|level| (level, backend.at.clone()));
        all.push(other);
    }
    for agent in &mut all {
        agent.fallback.clear();
    }
    all
}

/// Returns an agent with only the first of its backends and models.
pub(super) fn first(agent: &Agent) -> Agent {
    let mut first = Agent { fallback: Vec::new(), ..agent.clone() };
    if let Some(model) = first.cli.get_mut("model") {
        model.values.truncate(1);
    }
    first
}

/// Returns how a worker continues its session, if it is to.
pub(super) fn continuation(
    context: &Context<'_>,
    named: Option<Named<'_>>,
    (agent, at): (&Agent, &Place),
    (task, role): (&Task, Role),
    rest: &[Vec<Segment>],
    faults: &mut Faults,
) -> Option<PlannedContinuation> {
    let (_, place) = agent.session.as_ref().filter(|(session, _)| *session == SessionUse::Continue)?;
    if role == Role::Judge {
        faults.0.push(errors::only_a_worker(place, "session"));
        return None;
    }
    // A plain program is refused with its other settings for backends.
    let named = named?;
    let deliver = named.backend.deliver.unwrap_or(Delivery::Stdin);
    let Some(continues) = named.backend.continues.as_ref().filter(|_| deliver == Delivery::Stdin) else {
        faults.0.push(errors::backend_cannot_honour(place, "session", named.name));
        return None;
    };
    let backend = continued(named.backend, continues);
    let changed = Named { backend: &backend, ..named };
    // Its errors were reported for the first attempt already.
    let headless = backend_command(context, changed, agent, at, task, &mut Faults::default());
    let mut argv = headless.words();
    argv.extend(rest.iter().cloned());
    argv.extend(continues.last.iter().map(|word| super::backend::late(word, "{}", crate::prompt::Late::Session)));
    let has_key = continues.api_keys.iter().any(|name| context.env.var(name).is_some_and(|key| !key.is_empty()));
    Some(PlannedContinuation { argv, within: if has_key { CACHED.1 } else { CACHED.0 } })
}

/// Returns a backend as it continues a session.
fn continued(backend: &Backend, continues: &Continuation) -> Backend {
    let mut changed = Backend { last: None, ..backend.clone() };
    changed.arguments = continues.arguments.clone().or(changed.arguments);
    for (name, arguments) in &continues.permissions {
        let level = changed.permissions.entry(name.clone()).or_default();
        level.arguments.clone_from(arguments);
    }
    changed
}

/// The arguments after those of the backend: the agent's and the step's.
pub(super) fn words_of(
    context: &Context<'_>,
    words: impl Iterator<Item = Text>,
    faults: &mut Faults,
) -> Vec<Vec<Segment>> {
    let expanded = |word: Text| {
        let value = faults.many(crate::prompt::expand_config(&word, &context.vars, context.env))?;
        Some(text(value))
    };
    words.filter_map(expanded).collect()
}
