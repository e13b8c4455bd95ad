//! Starts an attempt: its prompt, its arguments, its environment and its lifeline.

use super::{Attempt, AttemptOutput};
use crate::agent::EVALUATION_SCHEMA;
use crate::engine::{At, Effect, Feedback, Input, Notice};
use crate::journal::{AttemptCalls, AttemptFolder, Caller, JournalError};
use crate::marker::count_lines;
use crate::plan::{Kind, PlannedStep};
use crate::proc::{AgentPipes, Launch, LifelineHandle, SpawnError};
use crate::prompt::{Late, Segment, render};
use crate::runner::choices::Chosen;
use crate::runner::context::{Failure, RunContext};
use crate::runner::driver::{Driver, new_token};
use crate::runner::prompt::{AttemptPrompt, PromptWriter};
use crate::runner::work::AttemptBaseline;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;

/// The variable that tells `forkhestra diagnose`, if an agent calls it, on which tree we last ran it and whether it
/// passed.
const DIAGNOSIS: &str = "FORKHESTRA_DIAGNOSIS";

/// Runs one attempt, from the creation of its directory until nothing is left of its process tree.
pub(in crate::runner) async fn attempt(
    driver: &mut Driver<'_>,
    at: &At,
    feedback: Option<&Feedback>,
) -> Result<Vec<Effect>, Failure> {
    // Signals that came in the meantime are handled before anything new is started.
    if let Some(obstacle) = driver.obstacle(at).await? {
        return Ok(driver.take(obstacle)?);
    }
    let began = driver.context.world.now();
    let plan = driver.context.plan;
    let Some(step) = plan.step(at.step) else { return Ok(Vec::new()) };
    let chosen = driver.choices.choose((&driver.context, &driver.state), at, step, feedback);
    let Chosen { step, session, prepared } = chosen;
    if let Some(prepared) = prepared {
        driver.take(Input::Prepared(prepared))?;
    }
    let place = driver.lane.map_or_else(|| at.clone(), |lane| lane.place(at));
    let (folder, found) =
        driver.context.journal.files().attempt(driver.context.run, place.step, &place.name, place.attempt)?;
    if let Some(found) = found {
        driver.context.observer.notice(&Notice::PutAside { name: &at.name, aside: found.display().to_string() });
    }
    let fresh = new_token(&driver.context)?;
    let token = std::mem::replace(&mut driver.token, fresh);
    driver.guard.remember(&mut driver.context, &driver.state, at)?;
    if driver.lane.is_none()
        && let Some(edited) = driver.templates.look(&driver.context)
    {
        driver.take(edited)?;
    }
    driver.take_messages()?;
    let AttemptPrompt { words: told, prompt: whole, appended } =
        match tell(driver, (step, at), feedback, (&folder, &token), session.is_some())? {
            Ok(told) => told,
            Err(why) => return Ok(driver.take(Input::NotStarted { error: why, busy: false })?),
        };
    let before =
        AttemptBaseline { tree: driver.work.before(&driver.context, &driver.state, at), prompt: whole.clone() };
    // Rounded up, so that an agent that uses all of it has reached the limit.
    let budget = format!("{:.4}", (driver.state.billed().cost_left(plan.limits.cost) * 10_000.0).ceil() / 10_000.0);
    let run = driver.context.run;
    let value = |late: Late| match late {
        Late::Feedback => told.clone(),
        Late::Run => run.to_string(),
        Late::Iteration => place.iteration.to_string(),
        Late::Round => place.round.to_string(),
        Late::Step => step.number.to_string(),
        Late::MaxIterations => step.limit.most().to_string(),
        Late::PromptFile => folder.prompt_path().display().to_string(),
        Late::Prompt => whole.clone(),
        Late::Folder => folder.path().display().to_string(),
        Late::Token => token.clone(),
        Late::Secret(number) => plan.secrets.value(number).to_string(),
        Late::Budget => budget.clone(),
        Late::SchemaFile => folder.schema_path().display().to_string(),
        Late::Session => session.clone().unwrap_or_default(),
        Late::OwnProgram => serde_json::Value::from(driver.context.world.own_program().to_string_lossy()).to_string(),
        Late::Result => AttemptCalls::of(&folder, &token).result_path().display().to_string(),
    };
    let output = open_output(driver, (step, at), (&folder, &token), &whole)?;
    let stdin = step.prompt.as_ref().filter(|prompt| prompt.deliver == crate::chain::Delivery::Stdin);
    let prompt_path = folder.prompt_path();
    driver.guard.watch_own(&driver.context, at, &folder);
    let continued = step.continuation.as_ref().filter(|_| session.is_some()).map(|continued| &continued.argv);
    let (program, arguments) = step.command_with(continued.unwrap_or(&step.argv));
    let mut arguments: Vec<OsString> = arguments.iter().map(|arg| render(arg, &value).into()).collect();
    // A prompt that is an argument is the last one.
    if let Some(last) = arguments.last_mut() {
        last.push(&appended);
    }
    let launch = Launch {
        program,
        arguments,
        environment: environment(&driver.context, driver.work.diagnosed(), step, &value),
        folder: step.folder.as_deref().unwrap_or(driver.context.root),
        stdin: stdin.map(|_| prompt_path.as_path()),
    };
    match start(driver, &launch) {
        Err(error) => Ok(driver.take(Input::NotStarted { error: error.to_string(), busy: error.is_busy() })?),
        Ok((mut lifeline, pipes)) => {
            let attempt = Attempt::new((&mut lifeline, pipes), output, &folder, &token, began, before);
            let attended = attempt.attend(driver).await;
            if lifeline.is_ready() {
                driver.lifeline = Some(lifeline);
            } else {
                lifeline.end();
            }
            attended
        }
    }
}

/// Returns what an attempt is told; or why it cannot be started.
fn tell(
    driver: &mut Driver<'_>,
    (step, at): (&PlannedStep, &At),
    feedback: Option<&Feedback>,
    (folder, token): (&AttemptFolder, &str),
    continues: bool,
) -> Result<Result<AttemptPrompt, String>, JournalError> {
    let mut writer = PromptWriter {
        context: &mut driver.context,
        state: &driver.state,
        work: &mut driver.work,
        weakened: driver.guard.weakened(),
        in_lane: driver.lane.is_some(),
    };
    writer.attempt_prompt(&driver.templates.with_its_template(step), at, feedback, (folder, token), continues)
}

/// Prepares the directory of an attempt for what its agent prints and records.
fn open_output(
    driver: &mut Driver<'_>,
    (step, at): (&PlannedStep, &At),
    (folder, token): (&AttemptFolder, &str),
    prompt: &str,
) -> Result<AttemptOutput, JournalError> {
    let plan = driver.context.plan;
    let (format, discount) = match &step.kind {
        // An agent may echo its prompt, so marker lines in it do not count. The part that is known in advance has
        // none; what was filled in may.
        Kind::Agent { format, .. } => (Some(*format), count_lines(prompt.as_bytes(), &plan.marker)),
        Kind::Check { .. } => (None, 0),
    };
    if discount > 0 && step.is_loop() {
        driver.context.observer.notice(&Notice::MarkerInPrompt { name: &at.name, lines: discount });
    }
    if step.argv.iter().flatten().any(|segment| *segment == Segment::Late(Late::SchemaFile)) {
        folder.write_schema(EVALUATION_SCHEMA)?;
    }
    if let Some(role) = step.role() {
        AttemptCalls::of(folder, token).open(Caller { role, proposes: plan.proposes_tasks })?;
    }
    AttemptOutput::open(folder, (format, step.rules()), &plan.marker, discount, driver.context.observer.pace())
}

/// Starts a program under the lifeline of the previous attempt, or under a new one.
fn start(driver: &mut Driver<'_>, launch: &Launch<'_>) -> Result<(LifelineHandle, AgentPipes), SpawnError> {
    let mut lifeline = match driver.lifeline.take() {
        Some(lifeline) if lifeline.is_ready() => lifeline,
        lost => {
            if let Some(lost) = lost {
                lost.end();
            }
            LifelineHandle::start(&driver.context.world.lifeline(), driver.context.journal.lock().map(AsFd::as_fd))?
        }
    };
    match lifeline.launch(launch) {
        Ok(pipes) => Ok((lifeline, pipes)),
        Err(error) => {
            driver.lifeline = Some(lifeline);
            Err(error)
        }
    }
}

fn environment<'a>(
    context: &RunContext<'a>,
    diagnosed: Option<&(String, bool)>,
    step: &'a PlannedStep,
    value: &dyn Fn(Late) -> String,
) -> Vec<(Cow<'a, OsStr>, Cow<'a, OsStr>)> {
    let changed = |name: &OsString| {
        name == "PWD"
            || name == DIAGNOSIS
            || step.env.unset.iter().any(|unset| name == unset.as_str())
            || step.env.set.iter().any(|(set, _)| name == set.as_str())
    };
    let inherited = context.world.environment().iter().filter(|(name, _)| !changed(name));
    let inherited = inherited.map(|(name, value)| (Cow::from(name), Cow::from(value)));
    let owned = |text: String| Cow::from(OsString::from(text));
    let set = step.env.set.iter().map(|(name, segments)| (OsStr::new(name).into(), owned(render(segments, value))));
    let told = diagnosed.into_iter().filter(|_| !step.is_check());
    let told = told.map(|(tree, passed)| format!("{tree} {}", if *passed { "passed" } else { "failed" }));
    let told = told.map(|words| (OsStr::new(DIAGNOSIS).into(), owned(words)));
    inherited.chain(set).chain(told).chain([(OsStr::new("PWD").into(), context.root.as_os_str().into())]).collect()
}
