//! The steps of a plan, with everything that is needed to run them.

use super::{PlannedContinuation, PlannedIsolation, PlannedPrompt};
use crate::agent::Format;
use crate::chain::{Accounting, Form, LayerKind, Limit, OutputRules, Permissions, Role};
use crate::prompt::{Late, Level, Segment, show, text};
use indexmap::IndexMap;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A resolved step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The step's number, from 1, in the order in which the chain names the steps.
    pub number: usize,
    /// The step's name, as written in the chain.
    pub name: String,
    /// Whether the step is an agent or a check, with the details of each.
    pub kind: Kind,
    /// Whether the step runs once or loops, and how often at most.
    pub limit: Limit,
    /// The longest time that an attempt may take.
    pub timeout: Option<Duration>,
    /// The longest time that an attempt may print nothing and use no CPU time; `None` for a check.
    pub idle_timeout: Option<Duration>,
    /// The longest time until an attempt prints its first bytes; `None` if a slow start is not a sign of trouble.
    pub start_timeout: Option<Duration>,
    /// Where the step's name was found.
    pub found: Found,
    /// Programs on PATH that have the same name. They do not run, because the name refers to this step.
    pub hides: Vec<PathBuf>,
    /// The directory in which the step runs; `None` for the root of the run.
    pub folder: Option<PathBuf>,
    /// The step's own program.
    pub program: PathBuf,
    /// The arguments, without the program. They include the prompt if it is delivered as an argument.
    pub argv: Vec<Vec<Segment>>,
    /// The command that the program is wrapped in, if any.
    pub isolation: Option<Box<PlannedIsolation>>,
    /// The changes to the environment, shared by steps with the same changes.
    pub env: Arc<EnvDelta>,
    /// The step's prompt; `None` for a check, and for an agent that runs without one.
    pub prompt: Option<PlannedPrompt>,
    /// How an attempt continues the session of the attempt before; `None` if it never does.
    pub continuation: Option<PlannedContinuation>,
    /// Other ways to run the step: other models of its backend, then other backends.
    pub variants: Vec<PlannedStep>,
    /// The level that the prompt was taken from.
    pub level: Level,
}

/// What a step is, with the details of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// An agent.
    Agent {
        /// The backend that runs the agent; `None` for a plain program.
        backend: Option<String>,
        /// The model that the agent is configured to use, if any.
        model: Option<String>,
        /// How the backend writes a command in `allowedTools`, such as `Bash({}:*)`; `None` if it has no such list.
        allows: Option<String>,
        /// The format of the agent's output.
        format: Format,
        /// How its output is read, if that is a format of its backend only.
        rules: Option<Arc<OutputRules>>,
        /// The agent's role: worker or judge.
        role: Role,
        /// The form of a judge's verdict.
        form: Form,
        /// The lowest score that passes, in thousandths.
        least: Option<u32>,
        /// What the agent may do without asking; `None` for a plain program, which has no permission levels.
        permissions: Option<Permissions>,
        /// What the agent reports about its usage; `None` for a program that uses no tokens or money.
        accounting: Option<Accounting>,
        /// The parts of the system prompt, if the program receives it apart from the prompt.
        system: Vec<SystemPart>,
        /// The meanings of the exit codes, one entry for each code: `53: its limit on turns was reached`.
        exits: Vec<String>,
    },
    /// A check.
    Check {
        /// Whether a failure is only reported.
        optional: bool,
        /// The command line, for display.
        line: String,
        /// Why the check is skipped; `None` if it runs.
        skipped: Option<String>,
        /// What happens because the project has no command for the check; `None` if it has one.
        absence: Option<MissingCommand>,
        /// For a built-in check: what each of its commands does (`build`, `tests`), and the command.
        parts: Vec<(String, String)>,
    },
}

/// A part of a system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPart {
    /// Where it was written: a file, a place in a config, or `built-in`.
    pub origin: String,
    /// The text.
    pub text: String,
}

/// What happens to a check if, at the time of planning, the project has no command for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingCommand {
    /// It is skipped, and the work can complete unverified: a built-in chain cannot know which commands a project has.
    Unverified,
    /// A worker may add the command during the run, so forkhestra looks again when the check runs.
    LookedForAgain,
}

/// Where a step's name was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// In this layer of the config, at this place.
    Config(LayerKind, String),
    /// On PATH.
    Path,
}

/// Changes to the environment that a program inherits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct EnvDelta {
    /// The variables to set, in order, with their values.
    pub set: Vec<(String, Vec<Segment>)>,
    /// The names of those in `set` that are a backend's own settings. Their values are not secret.
    pub settings: Vec<String>,
    /// The names of the variables to remove.
    pub unset: Vec<String>,
}

impl EnvDelta {
    /// Returns the backend's own settings with their values.
    #[must_use]
    pub fn shown_settings(&self) -> IndexMap<String, String> {
        let own = self.set.iter().filter(|(name, _)| self.settings.contains(name));
        own.map(|(name, value)| (name.clone(), show(value))).collect()
    }
}

impl PlannedStep {
    /// Returns whether the step is a check.
    #[must_use]
    pub fn is_check(&self) -> bool {
        matches!(self.kind, Kind::Check { .. })
    }

    /// Returns whether the step is a check whose command is looked for again when it runs.
    #[must_use]
    pub fn is_looked_for_again(&self) -> bool {
        matches!(self.kind, Kind::Check { absence: Some(MissingCommand::LookedForAgain), .. })
    }

    /// Returns the format of the output; `None` for a check, whose output is not parsed.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match self.kind {
            Kind::Agent { format, .. } => Some(format),
            Kind::Check { .. } => None,
        }
    }

    /// Returns how the output is read, if that is a format of its backend only.
    #[must_use]
    pub fn rules(&self) -> Option<&OutputRules> {
        match &self.kind {
            Kind::Agent { rules, .. } => rules.as_deref(),
            Kind::Check { .. } => None,
        }
    }

    /// Returns what the step reports about its tokens and cost; `None` for checks and plain programs: they use neither.
    #[must_use]
    pub fn accounting(&self) -> Option<Accounting> {
        match self.kind {
            Kind::Agent { accounting, .. } => accounting,
            Kind::Check { .. } => None,
        }
    }

    /// Returns whether the step runs in a sandbox.
    #[must_use]
    pub fn is_sandboxed(&self) -> bool {
        self.isolation.as_ref().is_some_and(|isolation| isolation.sandbox.is_some())
    }

    /// Returns the program that is started, including any wrapper, and its arguments.
    #[must_use]
    pub fn command(&self) -> (&Path, Vec<Cow<'_, [Segment]>>) {
        self.command_with(&self.argv)
    }

    /// Like [`Self::command`], with these arguments of the program.
    #[must_use]
    pub fn command_with<'s>(&'s self, argv: &'s [Vec<Segment>]) -> (&'s Path, Vec<Cow<'s, [Segment]>>) {
        let own = argv.iter().map(|word| Cow::Borrowed(word.as_slice()));
        match &self.isolation {
            None => (&self.program, own.collect()),
            Some(isolation) => {
                let before = isolation.argv.iter().map(|word| Cow::Borrowed(word.as_slice()));
                let program = Cow::Owned(text(self.program.display().to_string()));
                (&isolation.program, before.chain([program]).chain(own).collect())
            }
        }
    }

    /// Returns whether the program is passed the rest of the cost limit as an argument, so that it can stop by itself.
    #[must_use]
    pub fn is_told_the_budget(&self) -> bool {
        self.argv.iter().flatten().any(|segment| *segment == Segment::Late(Late::Budget))
    }

    /// Returns the meaning of an exit code, if it is known.
    #[must_use]
    pub fn exit_words(&self, code: i32) -> Option<&str> {
        let Kind::Agent { exits, .. } = &self.kind else { return None };
        exits.iter().find_map(|line| {
            let (number, words) = line.split_once(": ")?;
            (number.parse() == Ok(code)).then_some(words)
        })
    }

    /// Returns the agent's role; `None` for a check.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self.kind {
            Kind::Agent { role, .. } => Some(role),
            Kind::Check { .. } => None,
        }
    }

    /// Returns the lowest passing score: `None` if the verdict is not an evaluation, and `Some(None)` if any score
    /// passes.
    #[must_use]
    pub fn evaluates(&self) -> Option<Option<f64>> {
        match self.kind {
            Kind::Agent { form: Form::Evaluation, least, .. } => Some(least.map(|least| f64::from(least) / 1000.0)),
            _ => None,
        }
    }

    /// Returns whether the step loops until its marker. A judge never does, even if it has a count.
    #[must_use]
    pub fn is_loop(&self) -> bool {
        self.limit != Limit::Once && self.role() == Some(Role::Worker)
    }

    /// Returns what the agent may do without asking; `None` for a check and for a plain program.
    #[must_use]
    pub fn permissions(&self) -> Option<Permissions> {
        match self.kind {
            Kind::Agent { permissions, .. } => permissions,
            Kind::Check { .. } => None,
        }
    }

    /// Returns the maximum number of iterations for each time that the step is reached.
    #[must_use]
    pub fn iterations(&self) -> u32 {
        match self.limit {
            Limit::Once => 1,
            Limit::UpTo(count) => count.get(),
        }
    }

    /// Returns this step as it is run by one of its variants; 0 is the step itself.
    #[must_use]
    pub fn variant(&self, index: u32) -> &Self {
        let other = index.checked_sub(1).and_then(|index| self.variants.get(index as usize));
        other.unwrap_or(self)
    }

    /// Returns all ways to run this step, the usual one first.
    pub fn all_variants(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.variants)
    }

    /// Returns the backend that runs the step's agent, and its model.
    #[must_use]
    pub fn run_by(&self) -> (Option<&str>, Option<&str>) {
        match &self.kind {
            Kind::Agent { backend, model, .. } => (backend.as_deref(), model.as_deref()),
            Kind::Check { .. } => (None, None),
        }
    }

    /// Returns how a person reads which backend and model run it: `claude, opus`.
    #[must_use]
    pub fn run_by_words(&self) -> String {
        let (backend, model) = self.run_by();
        backend.into_iter().chain(model).collect::<Vec<_>>().join(", ")
    }
}
