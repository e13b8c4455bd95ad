//! The run as a state machine: `decide` determines what happens next, and `evolve` applies what happened. There is no
//! clock, no I/O and no async code here: everything from outside is an input, and everything to be done is an effect.
//! Here is what happens while an attempt runs. Each other file has the rules for one thing, as functions over a
//! `Deliberation`, and calls only those that come after it in docs/design.md.

mod deliberation;
mod ended;
mod outcomes;
mod resumed;
mod verdicts;
mod waiting;
mod walk;

use crate::agent::ErrorClass;
use crate::chain::UsageReport;
use crate::engine::event::{Ending, EventKind};
use crate::engine::evolve::evolve;
use crate::engine::finished::{Finished, FinishedAgent, Tokens};
use crate::engine::input::{Effect, Input, Timer};
use crate::engine::outcome::{AttemptOutcome, Cut, LimitKind, Sig, WaitReason};
use crate::engine::state::{Phase, State};
use crate::plan::{Plan, PlannedStep};
use deliberation::Deliberation;
use ended::attempt_over;
use outcomes::{attempt_outcome, held_against};
use resumed::{extra_rounds, go_on, go_on_with, has_time, interrupt};
use std::time::Duration;
use verdicts::decided_by_a_person;
use waiting::try_again;
use walk::go_from;

/// How long an agent may continue to run after its marker.
const LINGER: Duration = Duration::from_secs(30);

/// The result of an input.
#[derive(Debug)]
pub struct Transition {
    /// The new state: the previous one with the events applied.
    pub state: State,
    /// What happened.
    pub events: Vec<EventKind>,
    /// What has to be done.
    pub effects: Vec<Effect>,
}

/// Decides what follows from a state, the plan and an input. Takes the state by value to avoid a copy, because a chain
/// may have thousands of steps.
#[must_use]
pub fn decide(state: State, plan: &Plan, input: Input) -> Transition {
    let before = cfg!(debug_assertions).then(|| state.clone());
    let mut run = Deliberation { state, plan, events: Vec::new(), effects: Vec::new() };
    take(&mut run, input);
    let Deliberation { state, events, effects, .. } = run;
    debug_assert!(
        before.is_none_or(|before| replayed(before, &events) == state),
        "replaying the events leads to a different state: {events:?}"
    );
    Transition { state, events, effects }
}

fn replayed(mut state: State, events: &[EventKind]) -> State {
    for event in events {
        evolve(&mut state, event);
    }
    state
}

fn take(run: &mut Deliberation<'_>, input: Input) {
    let going = run.state.ending.is_none();
    match (run.state.phase, input) {
        (Phase::Idle, Input::Begin) if run.state.at.is_none() => {
            run.effects.extend(run.plan.limits.time.map(|time| Effect::Arm(Timer::Run, time)));
            go_from(run, 0);
        }
        (_, Input::Resume { elapsed_ms, leftovers, attempts, limits, decided, more, tree })
            if decided.is_some() && run.state.waits_for().is_some()
                || more.is_some() && run.state.is_exhausted()
                || decided.is_none() && more.is_none() && run.state.may_resume() =>
        {
            let waits_for = run.state.waits_for();
            let forkhestra = env!("CARGO_PKG_VERSION").into();
            let more = more.and_then(|count| extra_rounds(run, count));
            run.emit(EventKind::RunResumed { forkhestra, attempts, limits, worked_ms: elapsed_ms, more, tree });
            interrupt(run, leftovers);
            match (decided.zip(waits_for), more) {
                _ if !has_time(run, Duration::from_millis(elapsed_ms)) => {}
                (Some((verdict, why)), _) => decided_by_a_person(run, verdict, why),
                (None, Some(more)) => go_on_with(run, more),
                (None, None) => go_on(run),
            }
        }
        (Phase::Starting, Input::Prepared(how)) => {
            run.about_attempt(|at| EventKind::AttemptPrepared { at, how });
        }
        (Phase::Starting, Input::Spawned { pid, start_time }) => spawned(run, pid, start_time),
        (Phase::Starting, Input::NotStarted { error: why, busy }) => {
            let error = busy.then(|| why.clone());
            let outcome = match (going, busy) {
                (false, _) => AttemptOutcome::Interrupted,
                (true, true) => AttemptOutcome::Unavailable { reason: WaitReason::Machine },
                (true, false) => AttemptOutcome::NotStarted { error: why },
            };
            attempt_over(run, outcome, Finished { error, ..Finished::default() }, None);
        }
        (Phase::Starting, Input::Parked { limit }) => {
            let outcome = if going { AttemptOutcome::Limited } else { AttemptOutcome::Interrupted };
            let error = Some("not started: another run has reached this usage limit".to_string());
            // Nothing was used, which is not the same as an unknown use.
            let tokens = Some(Tokens::default());
            let agent = FinishedAgent { tokens, usage_limit: Some(limit), ..FinishedAgent::default() };
            let finished = Finished { error, agent, ..Finished::default() };
            attempt_over(run, outcome, finished, None);
        }
        // The agent's output may arrive before the report that its process has started.
        (Phase::Starting | Phase::Running, Input::Marker) if !run.state.marker => marker_seen(run),
        (Phase::Starting | Phase::Running, Input::MarkerGone) if run.state.marker => {
            run.about_attempt(|at| EventKind::MarkerWithdrawn { at });
        }
        (Phase::Starting | Phase::Running, Input::Used { tokens, said_all }) => used(run, tokens, said_all),
        (Phase::Running, Input::AgentPaused(signal)) => {
            run.about_attempt(|at| EventKind::AttemptPaused { at, signal });
        }
        (Phase::Running, Input::AgentContinued) => run.about_attempt(|at| EventKind::AttemptContinued { at }),
        (Phase::Idle | Phase::Waiting, Input::Signal(signal)) => run.end(Ending::Signal { signal }),
        (Phase::Idle | Phase::Waiting, Input::OutputClosed) => run.end(Ending::OutputClosed),
        (Phase::Starting | Phase::Running, Input::Signal(signal)) => stop(run, Ending::Signal { signal }, signal),
        // Unlike a second signal, this has no effect if the run is already stopping.
        (Phase::Starting | Phase::Running, Input::OutputClosed) if going => {
            stop(run, Ending::OutputClosed, Sig::Term);
        }
        (_, Input::TemplatesEdited { files, accepted: taken, error: why }) => {
            run.emit(EventKind::TemplatesEdited { files, accepted: taken, error: why });
        }
        (_, Input::Message { id, text }) if id > run.state.last_message() => {
            run.emit(EventKind::MessageReceived { id, text });
        }
        (phase, Input::TimeOver(timer)) => time_over(run, phase, timer),
        (phase, Input::Pause) if phase != Phase::Over && !run.state.paused => pause(run),
        (phase, Input::Continue) if phase != Phase::Over && run.state.paused => {
            run.emit(EventKind::RunContinued);
            if run.state.has_process() {
                run.effects.push(Effect::ContinueAgent);
            }
        }
        (Phase::Starting | Phase::Running, Input::Exited { exit, finished, verdict: said }) => {
            // The program was given what was left of the cost limit, and stopped when it had used that up.
            if finished.agent.error_class == Some(ErrorClass::Turns)
                && let Some(limit @ LimitKind::Cost) = run.limit_reached()
                && going
            {
                run.emit(EventKind::RunStopping { reason: Ending::Limit { limit }, signal: None });
            }
            let said = held_against(run, exit, &finished, said);
            let outcome = attempt_outcome(run, exit, &finished, said.as_ref());
            attempt_over(run, outcome, *finished, said);
        }
        // Late timers, repeated markers, anything after the end.
        _ => {}
    }
}

fn spawned(run: &mut Deliberation<'_>, pid: i32, start_time: u64) {
    let Some(at) = run.state.at.clone() else { return };
    let times = run.step_as_run(at.step).map_or([(Timer::Timeout, None); 3], |step| {
        [(Timer::Timeout, step.timeout), (Timer::Idle, step.idle_timeout), (Timer::Start, step.start_timeout)]
    });
    run.emit(EventKind::AttemptStarted { at, pid, start_time });
    run.effects.extend(times.into_iter().filter_map(|(timer, time)| Some(Effect::Arm(timer, time?))));
    if run.state.marker && run.in_loop() {
        run.effects.push(Effect::Arm(Timer::Linger, LINGER));
    }
    // A signal arrived while the process was being started.
    if let Some(last_signal) = run.state.last_signal {
        run.send(last_signal);
    }
}

fn marker_seen(run: &mut Deliberation<'_>) {
    run.about_attempt(|at| EventKind::MarkerSeen { at });
    if run.in_loop() && run.state.phase == Phase::Running {
        run.effects.push(Effect::Arm(Timer::Linger, LINGER));
    }
}

fn used(run: &mut Deliberation<'_>, tokens: Tokens, said_all: bool) {
    if tokens != run.state.spending() {
        run.about_attempt(|at| EventKind::UsageReported { at, tokens });
    }
    if let Some(limit @ (LimitKind::Cost | LimitKind::Tokens)) = run.limit_reached()
        && run.state.ending.is_none()
        && !said_all
        && !is_told_at_the_end(run, limit)
    {
        stop(run, Ending::Limit { limit }, Sig::Term);
    }
}

/// Returns whether the current program reports what counts for this limit only when it ends. It is then not
/// stopped, and the attempt counts.
fn is_told_at_the_end(run: &Deliberation<'_>, limit: LimitKind) -> bool {
    let step = run.state.at.as_ref().and_then(|at| run.step_as_run(at.step));
    step.and_then(PlannedStep::accounting).is_some_and(|accounting| {
        UsageReport::AtTheEnd == if limit == LimitKind::Cost { accounting.cost } else { accounting.tokens }
    })
}

fn pause(run: &mut Deliberation<'_>) {
    run.emit(EventKind::RunPaused);
    if run.state.has_process() {
        run.effects.push(Effect::PauseAgent);
    }
    run.effects.push(Effect::StandStill);
}

/// Stops the running attempt. The first signal is passed on unchanged. If the run is already stopping, for whatever
/// reason, a signal kills at once.
fn stop(run: &mut Deliberation<'_>, why: Ending, signal: Sig) {
    let with = if run.state.ending.is_some() { Sig::Kill } else { signal };
    run.emit(EventKind::RunStopping { reason: why, signal: Some(with) });
    if run.state.phase == Phase::Running {
        run.send(with);
    }
}

fn time_over(run: &mut Deliberation<'_>, phase: Phase, timer: Timer) {
    let going = run.state.ending.is_none();
    match (phase, timer) {
        (Phase::Running, Timer::Grace) => grace_over(run),
        (Phase::Running, Timer::Timeout) if going && run.state.cut.is_none() => cut(run, Cut::Timeout, Sig::Term),
        (Phase::Running, Timer::Idle) if going && run.state.cut.is_none() => cut(run, Cut::Idle, Sig::Term),
        (Phase::Running, Timer::Start) if going && run.state.cut.is_none() => cut(run, Cut::Start, Sig::Term),
        (Phase::Running, Timer::Linger) if going && run.state.cut.is_none() && run.state.marker => {
            cut(run, Cut::Lingering, Sig::Term);
        }
        (Phase::Waiting, Timer::Wait) => try_again(run),
        (Phase::Starting | Phase::Running, Timer::Run) if going => {
            stop(run, Ending::Limit { limit: LimitKind::Time }, Sig::Term);
        }
        (Phase::Idle | Phase::Waiting, Timer::Run) => run.end(Ending::Limit { limit: LimitKind::Time }),
        _ => {}
    }
}

/// Sends the next, stronger signal: TERM after HUP or INT, KILL after TERM.
fn grace_over(run: &mut Deliberation<'_>) {
    let Some(last_signal) = run.state.last_signal else { return };
    let next = match last_signal {
        Sig::Hup | Sig::Int => Sig::Term,
        Sig::Term | Sig::Kill => Sig::Kill,
    };
    match (run.state.ending, run.state.cut) {
        (Some(why), _) => {
            run.emit(EventKind::RunStopping { reason: why, signal: Some(next) });
            run.send(next);
        }
        (None, Some(why)) => cut(run, why, next),
        (None, None) => {}
    }
}

/// Stops the attempt because one of its time limits has expired. The run continues after it.
fn cut(run: &mut Deliberation<'_>, why: Cut, with: Sig) {
    let Some(at) = run.state.at.clone() else { return };
    run.emit(EventKind::AttemptTimedOut { at, reason: why, signal: with });
    run.send(with);
}

#[cfg(test)]
mod judgement_tests;
#[cfg(test)]
pub(crate) mod tests;
