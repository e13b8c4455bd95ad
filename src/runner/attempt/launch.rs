//! Starts an attempt: its prompt, its arguments, its environment and its lifeline.

use super::{Attempt, AttemptOutput, Chosen};
use crate::agent::EVALUATION_SCHEMA;
use crate::engine::{At, Effect, Feedback, Input, Notice};
use crate::journal::{Caller, JournalError};
use crate::marker::count_lines;
use crate::plan::{Kind, PlannedStep};
use crate::proc::{AgentPipes, Launch, LifelineHandle, SpawnError};
use crate::prompt::{Late, Segment, render};
use crate::runner::context::Failure;
use crate::runner::driver::{Driver, new_token};
use crate::runner::inspect::AttemptBaseline;
use crate::runner::prompt::AttemptPrompt;
use std::ffi::OsString;
use std::os::fd::AsFd;

/// The variable that tells `forkhestra diagnose`, if an agent calls it, on which tree we last ran it and whether it
/// passed.
const DIAGNOSIS: &str = "FORKHESTRA_DIAGNOSIS";

impl Driver<'_> {
    /// Runs one attempt, from the creation of its directory until nothing is left of its process tree.
    pub(in crate::runner) async fn attempt(
        &mut self,
        at: &At,
        feedback: Option<&Feedback>,
    ) -> Result<Vec<Effect>, Failure> {
        // Signals that came in the meantime are handled before anything new is started.
        if let Some(obstacle) = self.obstacle(at).await? {
            return Ok(self.take(obstacle)?);
        }
        let began = self.context.world.now();
        let plan = self.context.plan;
        let Some(step) = plan.step(at.step) else { return Ok(Vec::new()) };
        let Chosen { step, session } = self.choose(at, step, feedback)?;
        let place = self.lane.map_or_else(|| at.clone(), |lane| lane.place(at));
        let (folder, found) = self.context.journal.attempt(self.context.run, place.step, &place.name, place.attempt)?;
        if let Some(found) = found {
            self.context.observer.notice(&Notice::PutAside { name: &at.name, aside: found.display().to_string() });
        }
        let fresh = new_token(&self.context)?;
        let token = std::mem::replace(&mut self.token, fresh);
        if self.lane.is_none() {
            self.guard(at)?;
        }
        self.look_at_templates()?;
        self.take_messages()?;
        let AttemptPrompt { words: told, prompt: whole, appended } = match self.attempt_prompt(
            &self.templates.with_its_template(step),
            at,
            feedback,
            (&folder, &token),
            session.is_some(),
        )? {
            Ok(told) => told,
            Err(why) => return Ok(self.take(Input::NotStarted { error: why, busy: false })?),
        };
        let mut before = if self.lane.is_none() { self.before(at) } else { AttemptBaseline::default() };
        before.prompt.clone_from(&whole);
        // Rounded up, so that an agent that uses all of it has reached the limit.
        let budget = format!("{:.4}", (self.state.billed().cost_left(plan.limits.cost) * 10_000.0).ceil() / 10_000.0);
        let run = self.context.run;
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
            Late::OwnProgram => serde_json::Value::from(self.context.world.own_program().to_string_lossy()).to_string(),
            Late::Result => folder.result_path(&token).display().to_string(),
        };
        let (format, discount) = match &step.kind {
            // An agent may echo its prompt, so marker lines in it do not count. The part that is known in advance has
            // none; what was filled in may.
            Kind::Agent { format, .. } => (Some(*format), count_lines(whole.as_bytes(), &plan.marker)),
            Kind::Check { .. } => (None, 0),
        };
        if discount > 0 && step.is_loop() {
            self.context.observer.notice(&Notice::MarkerInPrompt { name: &at.name, lines: discount });
        }
        if step.argv.iter().flatten().any(|segment| *segment == Segment::Late(Late::SchemaFile)) {
            folder.write_schema(EVALUATION_SCHEMA)?;
        }
        if let Some(role) = step.role() {
            folder.open_calls(&token, Caller { role, proposes: plan.proposes_tasks })?;
        }
        let output =
            AttemptOutput::open(&folder, (format, step.rules()), &plan.marker, discount, self.context.observer.pace())?;
        let stdin = step.prompt.as_ref().filter(|prompt| prompt.deliver == crate::chain::Delivery::Stdin);
        let prompt_path = folder.prompt_path();
        self.watch_own(at, &folder);
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
            environment: self
                .environment(step, &value)
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            folder: step.folder.as_deref().unwrap_or(self.context.root),
            stdin: stdin.map(|_| prompt_path.as_path()),
        };
        match self.launch(&launch) {
            Err(error) => Ok(self.take(Input::NotStarted { error: error.to_string(), busy: error.is_busy() })?),
            Ok((mut lifeline, pipes)) => {
                let attempt = Attempt::new((&mut lifeline, pipes), output, &folder, &token, began, before);
                let attended = attempt.attend(self).await;
                if lifeline.is_ready() {
                    self.lifeline = Some(lifeline);
                } else {
                    lifeline.end();
                }
                attended
            }
        }
    }

    /// Starts a program under the lifeline of the previous attempt, or under a new one.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(LifelineHandle, AgentPipes), SpawnError> {
        let mut lifeline = match self.lifeline.take() {
            Some(lifeline) if lifeline.is_ready() => lifeline,
            lost => {
                if let Some(lost) = lost {
                    lost.end();
                }
                LifelineHandle::start(&self.context.world.lifeline(), self.context.journal.lock().map(AsFd::as_fd))?
            }
        };
        match lifeline.launch(launch) {
            Ok(pipes) => Ok((lifeline, pipes)),
            Err(error) => {
                self.lifeline = Some(lifeline);
                Err(error)
            }
        }
    }

    fn environment(&self, step: &PlannedStep, value: &dyn Fn(Late) -> String) -> Vec<(OsString, OsString)> {
        let changed = |name: &OsString| {
            name == "PWD"
                || name == DIAGNOSIS
                || step.env.unset.iter().any(|unset| name == unset.as_str())
                || step.env.set.iter().any(|(set, _)| name == set.as_str())
        };
        let inherited = self.context.world.environment().iter().filter(|(name, _)| !changed(name)).cloned();
        let set = step.env.set.iter().map(|(name, segments)| (name.into(), render(segments, value).into()));
        let told = self.diagnosed.iter().filter(|_| !step.is_check());
        let told = told.map(|(tree, passed)| format!("{tree} {}", if *passed { "passed" } else { "failed" }));
        let told = told.map(|words| (DIAGNOSIS.into(), words.into()));
        inherited.chain(set).chain(told).chain([("PWD".into(), self.context.root.into())]).collect()
    }

    /// Reports templates that were edited since the previous attempt.
    fn look_at_templates(&mut self) -> Result<(), JournalError> {
        if self.lane.is_none()
            && let Some(edited) = self.templates.look(&self.context)
        {
            self.take(edited)?;
        }
        Ok(())
    }
}
