//! Everything about a run that can be resolved before it starts. `--dry-run` prints a plan, and the engine runs it.
//! This module is pure.

mod agent;
mod asked;
mod backend;
mod build;
mod check;
mod context;
mod errors;
mod hooks;
mod isolation;
mod json;
mod limits;
mod outline;
mod prompt;
mod secrets;
mod settings;
mod step;
mod template;
mod variants;

use crate::chain::{LayerKind, Limit, Op, Program, Role};
use crate::checks::Profile;
use crate::source::Diagnostic;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use asked::AskedAgent;
pub use build::build;
pub use context::{Part, Request, path_of};
pub use hooks::Hook;
pub use isolation::{PlannedIsolation, Sandboxed};
pub use json::{digest, to_json};
pub use limits::{JUDGED_ATTEMPTS, Limits};
pub use outline::{Outline, OutlineStep, outline};
pub use secrets::Secrets;
pub use settings::{Overrides, RunSettings, limits};
pub use step::{EnvDelta, Found, Kind, MissingCommand, PlannedStep, SystemPart};
pub use template::{PlannedPrompt, WrappingTemplate, places};
pub use variants::PlannedContinuation;

/// A chain with everything resolved that can be resolved before the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The chain, written in the chain language.
    pub chain: String,
    /// The chain's name in the config, if it has one.
    pub name: Option<String>,
    /// The directory in which the run works.
    pub root: Root,
    /// The line that an agent prints to end its loop.
    pub marker: String,
    /// The config files that the plan was built from: the layer and the name of each.
    pub files: Vec<(LayerKind, String)>,
    /// The text of `--prompt`, or the content of the `--prompt-file`, before substitution.
    pub prompt: Option<String>,
    /// The variables given on the command line, without the secret ones.
    pub vars: IndexMap<String, String>,
    /// The values of secret variables. They are never stored.
    pub secrets: Secrets,
    /// The steps in the order in which the chain names them: step N is at index N - 1.
    pub steps: Vec<PlannedStep>,
    /// The order in which the steps run.
    pub program: Program,
    /// The limits of the whole run.
    pub limits: Limits,
    /// The task that the run is working on, if it has one.
    pub task: Option<TaskFacts>,
    /// How thoroughly the work is verified.
    pub profile: Profile,
    /// The paths of the config, the templates, and the programs and prompts of judges, including paths that do not
    /// exist yet. An agent that changed these files could influence the judgment of its own work.
    pub guarded: Vec<PathBuf>,
    /// The directory of the templates, and that of the shared skills.
    pub templates: [PathBuf; 2],
    /// The command lines that checks run.
    pub lines: Vec<String>,
    /// The hooks: the commands that run after an event.
    pub hooks: Vec<Hook>,
    /// Whether the run proposes tasks: it is the built-in chain `plan`, run without a task.
    pub proposes_tasks: bool,
    /// Whether the changes of a completed task are committed.
    pub commits_tasks: bool,
    /// Whether the machine is kept from sleeping during the run.
    pub keeps_awake: bool,
    /// The built-in names used by this plan that the project's config redefines, and the path of that config.
    pub redefined: Option<(Vec<String>, String)>,
    /// The warnings. They do not stop the run.
    pub warnings: Vec<Diagnostic>,
}

/// The task that a run is working on, as it was when the run was planned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskFacts {
    /// The task's ID.
    pub id: String,
    /// What is to be done, in one line.
    pub title: String,
    /// The path of the task's specification, relative to the root; empty without one.
    pub spec: String,
    /// What shows that the task is done: a command or a description; empty if not specified.
    pub tests: String,
    /// The task's status before this run.
    pub status: String,
    /// How often the task was rejected before this run.
    pub rejections: u32,
    /// How many of these rejections were by forkhestra, because the work could not land. They need no judge.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_back: u32,
    /// The notes of the last rejection; empty without one.
    pub notes: String,
    /// Whether a worker was interrupted while working on the task.
    #[serde(default)]
    pub cut_off: bool,
    /// When the task was added, in UTC (RFC 3339). It distinguishes two tasks that had the same ID.
    #[serde(default)]
    pub added: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The directory in which a run works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// A directory that belongs to the user.
    Folder(PathBuf),
    /// A directory created when the run starts. The demo uses one.
    Temporary,
}

impl Plan {
    /// Returns the role of the step at this index of the program, if it is an agent.
    fn role_at(&self, op: usize) -> Option<Role> {
        let Some(Op::Step(index)) = self.program.ops.get(op) else { return None };
        self.steps.get(*index)?.role()
    }

    /// Returns whether a group contains a judge at any depth. Then its rounds are judged.
    #[must_use]
    pub fn is_judged(&self, group: usize) -> bool {
        let span = self.program.groups[group];
        (span.enter..span.leave).any(|op| self.role_at(op) == Some(Role::Judge))
    }

    /// Returns the step with this number, from 1.
    #[must_use]
    pub fn step(&self, number: u32) -> Option<&PlannedStep> {
        self.steps.get((number as usize).checked_sub(1)?)
    }

    /// Returns the innermost group of the step with this number, from 1.
    #[must_use]
    pub fn group_of(&self, number: u32) -> Option<usize> {
        self.program.step_group.get((number as usize).checked_sub(1)?).copied().flatten()
    }

    /// Returns the index in the program of the step with this number, from 1.
    #[must_use]
    pub fn op_of(&self, number: u32) -> Option<usize> {
        let index = (number as usize).checked_sub(1)?;
        self.program.ops.iter().position(|op| *op == Op::Step(index))
    }

    /// Returns whether a step hands its work to a judge: it is the last worker before its group's judge, and runs once.
    #[must_use]
    pub fn submits(&self, step: u32) -> bool {
        let Some((op, group)) = self.op_of(step).zip(self.group_of(step)) else { return false };
        let once = self.step(step).is_some_and(|step| step.limit == Limit::Once);
        let next = (op + 1..self.program.groups[group].leave).find_map(|op| self.role_at(op));
        once && self.role_at(op) == Some(Role::Worker) && next == Some(Role::Judge)
    }

    /// Returns the number up to which steps have already done their work: a task in review starts with the steps that
    /// look at it.
    #[must_use]
    pub fn begins_after(&self) -> u32 {
        let in_review = self.task.as_ref().is_some_and(|task| task.status == "review");
        // The first such step: it is unknown whether later ones have run.
        let submits = (1..=u32::try_from(self.steps.len()).unwrap_or(0)).find(|step| self.submits(*step));
        if in_review { submits.unwrap_or(0) } else { 0 }
    }

    /// Returns the judges, by index, that have no worker before them in their group to fix what they reject.
    #[must_use]
    pub fn judged_before_any_work(&self) -> Vec<usize> {
        let judges = (0..self.steps.len()).filter(|index| self.steps[*index].role() == Some(Role::Judge));
        let idle = |index: &usize| {
            let Some(group) = self.program.step_group[*index] else { return false };
            let span = self.program.groups[group];
            let op = self.program.ops.iter().position(|op| *op == Op::Step(*index)).unwrap_or(span.leave);
            span.rounds > 1 && !(span.enter..op).any(|op| self.role_at(op) == Some(Role::Worker))
        };
        judges.filter(idle).collect()
    }

    /// Returns whether any group of the plan is judged.
    #[must_use]
    pub fn has_judged_group(&self) -> bool {
        (0..self.program.groups.len()).any(|group| self.is_judged(group))
    }
}

#[cfg(test)]
pub(crate) mod tests;
