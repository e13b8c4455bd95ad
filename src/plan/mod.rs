//! The whole future, resolved as far as the present allows: what `--dry-run` prints and what the engine runs. Pure.

mod agent;
mod backend;
mod build;
mod check;
mod context;
mod errors;
mod flow;
mod hooks;
mod isolation;
mod json;
mod limits;
mod outline;
mod secrets;
mod settings;
mod template;
mod unsubstituted;

use crate::agent::Format;
use crate::chain::{Accounting, Delivery, Form, LayerKind, Limit, Permissions, Program, Role};
use crate::checks::Profile;
use crate::prompt::{Late, Level, Segment, show, text};
use crate::source::Diagnostic;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use build::build;
pub use context::{Part, Request};
pub use hooks::Hook;
pub use isolation::{PlannedIsolation, Sandboxed};
pub use json::{digest, to_json};
pub use limits::{JUDGED_ITERATIONS, Limits};
pub use outline::{Outline, OutlineStep, outline};
pub use secrets::Secrets;
pub use settings::{Overrides, RunSettings, limits};
pub use template::{Around, places};

/// A chain with everything resolved that can be resolved before running.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The chain in the chain language.
    pub chain: String,
    /// Its name in the config, if it has one.
    pub name: Option<String>,
    /// Where it works.
    pub root: Root,
    /// The line by which agents end their loops.
    pub marker: String,
    /// The config files it was read from, with their layers.
    pub files: Vec<(LayerKind, String)>,
    /// The `--prompt` or the content of `--prompt-file`, before substitution.
    pub prompt: Option<String>,
    /// Variables given on the command line, without secrets.
    pub vars: IndexMap<String, String>,
    /// The values of secret variables, which are nowhere kept.
    pub secrets: Secrets,
    /// The steps in leaf order; step number N is at index N - 1.
    pub steps: Vec<PlannedStep>,
    /// The order in which they run.
    pub program: Program,
    /// What the whole run may use.
    pub limits: Limits,
    /// The task that it works on.
    pub task: Option<TaskFacts>,
    /// How much is verified.
    pub profile: Profile,
    /// The config, the templates and what makes verdicts, whether they are there or not: an agent that changes them decides about itself.
    pub guarded: Vec<PathBuf>,
    /// The folders of templates and of the skills that all share.
    pub templates: [PathBuf; 2],
    /// The lines that checks run.
    pub lines: Vec<String>,
    /// What is run when something has happened.
    pub hooks: Vec<Hook>,
    /// Whether it is there to propose tasks: our own chain `plan`, without a task of its own.
    pub proposes_tasks: bool,
    /// Whether what a completed task has changed is committed.
    pub commits_tasks: bool,
    /// Whether the machine is kept from sleeping meanwhile.
    pub keeps_awake: bool,
    /// Names of ours in it that the project's config gives another meaning, and that config.
    pub redefined: Option<(Vec<String>, String)>,
    /// What was noticed and does not stop the run.
    pub warnings: Vec<Diagnostic>,
    /// SHA-256 of the canonical plan, in hexadecimal.
    pub digest: String,
}

/// A task as a plan knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskFacts {
    /// Its name.
    pub id: String,
    /// What is to be done, in a line.
    pub title: String,
    /// The file that says it whole, from the root; empty without one.
    pub spec: String,
    /// What shows that it is done; empty if that is not said.
    pub tests: String,
    /// Its status before this run.
    pub status: String,
    /// How often it was rejected before this run.
    pub rejections: u32,
    /// What the last reject said; empty without one.
    pub notes: String,
    /// Whether a worker was cut off in it.
    #[serde(default)]
    pub cut_off: bool,
    /// When it was added, in UTC (RFC 3339): two tasks of one name are told apart by it.
    #[serde(default)]
    pub added: String,
}

/// Where a run works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// A folder of the user's.
    Folder(PathBuf),
    /// A folder made at the run's start: the demo's.
    Temporary,
}

/// A step, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// Its number, from 1, by leaf position.
    pub number: usize,
    /// Its name as written.
    pub name: String,
    /// An agent or a check.
    pub kind: Kind,
    /// Once, or a loop.
    pub limit: Limit,
    /// The longest an iteration may take.
    pub timeout: Option<Duration>,
    /// The longest an iteration may print nothing and use no CPU time; none for a check.
    pub idle_timeout: Option<Duration>,
    /// The longest an iteration may take to its first bytes; none where that is no sign of anything.
    pub start_timeout: Option<Duration>,
    /// Where the name was found.
    pub found: Found,
    /// Programs on PATH that the name hides.
    pub hides: Vec<PathBuf>,
    /// The program that is started.
    pub program: PathBuf,
    /// Its arguments, without the program; the prompt among them when it is delivered so.
    pub argv: Vec<Vec<Segment>>,
    /// What stands before its program, if anything does.
    pub isolation: Option<PlannedIsolation>,
    /// What is changed in its environment, shared with other steps of the same changes.
    pub env: Arc<EnvDelta>,
    /// Its prompt; none for a check and for an agent that runs without.
    pub prompt: Option<PlannedPrompt>,
    /// The level that decided about the prompt.
    pub level: Level,
}

/// What a step is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An agent.
    Agent {
        /// The agent CLI that runs it; none for a plain program.
        backend: Option<String>,
        /// The model that it was told to use, if it was told one.
        model: Option<String>,
        /// How its agent CLI names a command in `allowedTools`, `Bash({}:*)`; none where it has no such list.
        allows: Option<String>,
        /// What it prints.
        format: Format,
        /// What it may decide.
        role: Role,
        /// The form of its verdict.
        form: Form,
        /// The least score that passes, in thousandths.
        least: Option<u32>,
        /// What it may do unasked; none for a plain program, which does what it does.
        permissions: Option<Permissions>,
        /// What it tells of what it uses; none for a program that uses nothing.
        accounting: Option<Accounting>,
        /// What its exit codes mean: `53: its limit on turns was reached`.
        exits: Vec<String>,
    },
    /// A check.
    Check {
        /// Whether its failure is only said.
        optional: bool,
        /// What it runs, for people.
        line: String,
        /// Why it is skipped, if it is: the project has no command for it.
        skipped: Option<String>,
        /// What the project has no command for, if it is that.
        absence: Option<Absence>,
        /// Of a built-in check: what each of its commands does (`build`, `tests`), and the command.
        parts: Vec<(String, String)>,
    },
}

/// A check of the project that has no command when the run is planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// It is skipped, and the work is complete without it, unverified: a built-in chain knows no project.
    Unverified,
    /// A worker may make one: it is looked for again when it is the check's turn.
    LookedForAgain,
}

/// Where a name was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// In a config layer, at this place.
    Config(LayerKind, String),
    /// On PATH.
    Path,
}

/// A prompt as it will be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPrompt {
    /// The user's words.
    pub segments: Vec<Segment>,
    /// The template around them.
    pub around: Option<Around>,
    /// How it is delivered.
    pub deliver: Delivery,
    /// Where it was written: an option, a place in a config, a file.
    pub origin: String,
    /// `${NAME}` of nobody's variables, left in it as they are.
    pub stayed: Vec<String>,
}

/// Changes to the environment that a program inherits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvDelta {
    /// Set, in order.
    pub set: Vec<(String, Vec<Segment>)>,
    /// Names of those that are a backend's own settings, whose values are no secret.
    pub settings: Vec<String>,
    /// Removed.
    pub unset: Vec<String>,
}

impl EnvDelta {
    /// The backend's own settings with their values.
    #[must_use]
    pub fn shown_settings(&self) -> IndexMap<String, String> {
        let own = self.set.iter().filter(|(name, _)| self.settings.contains(name));
        own.map(|(name, value)| (name.clone(), show(value))).collect()
    }
}

impl PlannedStep {
    /// Whether it is a check.
    #[must_use]
    pub fn is_check(&self) -> bool {
        matches!(self.kind, Kind::Check { .. })
    }

    /// Whether it is a check whose command is looked for again when it is its turn.
    #[must_use]
    pub fn is_looked_for_again(&self) -> bool {
        matches!(self.kind, Kind::Check { absence: Some(Absence::LookedForAgain), .. })
    }

    /// What it prints; none for a check, whose output is not read.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match self.kind {
            Kind::Agent { format, .. } => Some(format),
            Kind::Check { .. } => None,
        }
    }

    /// What it tells of the tokens and the money that it uses; none for what uses none: checks and plain programs.
    #[must_use]
    pub fn accounting(&self) -> Option<Accounting> {
        match self.kind {
            Kind::Agent { accounting, .. } => accounting,
            Kind::Check { .. } => None,
        }
    }

    /// Whether it runs in a sandbox.
    #[must_use]
    pub fn is_sandboxed(&self) -> bool {
        self.isolation.as_ref().is_some_and(|isolation| isolation.sandbox.is_some())
    }

    /// The program that is started, with what stands before it, and its arguments.
    #[must_use]
    pub fn command(&self) -> (&Path, Vec<Cow<'_, [Segment]>>) {
        let own = self.argv.iter().map(|word| Cow::Borrowed(word.as_slice()));
        match &self.isolation {
            None => (&self.program, own.collect()),
            Some(isolation) => {
                let before = isolation.argv.iter().map(|word| Cow::Borrowed(word.as_slice()));
                let program = Cow::Owned(text(self.program.display().to_string()));
                (&isolation.program, before.chain([program]).chain(own).collect())
            }
        }
    }

    /// Whether its program is told what is left of the limit on cost, and keeps to it.
    #[must_use]
    pub fn is_told_the_budget(&self) -> bool {
        self.argv.iter().flatten().any(|segment| *segment == Segment::Late(Late::Budget))
    }

    /// What an exit code of it means, if that is known.
    #[must_use]
    pub fn exit_words(&self, code: i32) -> Option<&str> {
        let Kind::Agent { exits, .. } = &self.kind else { return None };
        exits.iter().find_map(|line| {
            let (number, words) = line.split_once(": ")?;
            (number.parse() == Ok(code)).then_some(words)
        })
    }

    /// What it may decide; none for a check.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self.kind {
            Kind::Agent { role, .. } => Some(role),
            Kind::Check { .. } => None,
        }
    }

    /// The least score that an evaluation needs, if its verdict is one.
    #[must_use]
    pub fn evaluates(&self) -> Option<Option<f64>> {
        match self.kind {
            Kind::Agent { form: Form::Evaluation, least, .. } => Some(least.map(|least| f64::from(least) / 1000.0)),
            _ => None,
        }
    }

    /// Whether it loops until its marker. A judge never does: its count, if it has one, says nothing.
    #[must_use]
    pub fn is_loop(&self) -> bool {
        self.limit != Limit::Once && self.role() == Some(Role::Worker)
    }

    /// What it may do unasked; none for a check and for a plain program.
    #[must_use]
    pub fn permissions(&self) -> Option<Permissions> {
        match self.kind {
            Kind::Agent { permissions, .. } => permissions,
            Kind::Check { .. } => None,
        }
    }

    /// The most iterations of one visit.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        match self.limit {
            Limit::Once => 1,
            Limit::UpTo(count) => count.get(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
