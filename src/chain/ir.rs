//! The chain, the agents and the checks as the user meant them, whichever way they were written.

use super::backend::{Delivery, Format, Permissions};
use super::isolation::Isolation;
use super::keys::cli::CliValues;
use crate::source::{Place, Text};
use indexmap::IndexMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// The largest COUNT of the grammar.
pub const MOST_ITERATIONS: u32 = 1_000_000;

/// A chain, from the command line or from a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Its name in the config; none for a chain typed on the command line.
    pub name: Option<String>,
    /// The name in the config, or the whole chain text.
    pub at: Place,
    /// For people.
    pub description: Option<Text>,
    /// The chain level of the prompt.
    pub said: Said,
    /// Variables with their values, unless the command line gives others.
    pub vars: IndexMap<String, Text>,
    /// Variables whose values are never stored, and where they are declared.
    pub secrets: IndexMap<String, Place>,
    /// Its steps and groups in order.
    pub items: Vec<Item>,
}

/// A step or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// One agent or check.
    Step(Step),
    /// Steps that repeat together.
    Group(Group),
}

/// One agent or check in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The name as written, without its count.
    pub name: Text,
    /// What the name must be.
    pub wants: Wants,
    /// Once, or a loop.
    pub limit: Limit,
    /// More arguments for the agent, before the prompt.
    pub args: Vec<Text>,
    /// The step level of the prompt.
    pub said: Said,
    /// The longest an iteration may take.
    pub timeout: Option<Duration>,
    /// The longest an iteration may be silent and idle.
    pub idle_timeout: Option<Duration>,
}

/// What a step's name may stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// The DSL does not say.
    Either,
    /// `"agent": …`
    Agent,
    /// `"check": …`
    Check,
}

/// Steps that run in rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its steps and groups in order; never empty.
    pub items: Vec<Item>,
    /// Up to how many rounds; none is one round.
    pub rounds: Option<NonZeroU32>,
    /// The parentheses, or the key `group`.
    pub at: Place,
}

/// How often a step runs. A loop of 0 cannot be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `a`: once; exit code 0 is success.
    Once,
    /// `a:N`: up to N iterations; the marker is success.
    UpTo(NonZeroU32),
}

impl Limit {
    /// The most iterations.
    #[must_use]
    pub fn most(self) -> u32 {
        match self {
            Self::Once => 1,
            Self::UpTo(count) => count.get(),
        }
    }
}

/// A prompt at one level: inline beats file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The prompt itself; empty means "no prompt" and masks lower levels.
    pub inline: Option<Text>,
    /// A file that holds it.
    pub file: Option<Text>,
}

impl Said {
    /// Whether this level says anything.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.inline.is_none() && self.file.is_none()
    }
}

/// Limits of a whole run, as far as a config or a command line sets them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// The longest it may take.
    pub time: Option<Duration>,
    /// The most US dollars, and where that is written.
    pub cost: Option<(f64, Place)>,
    /// The most tokens of every kind, and where that is written.
    pub tokens: Option<(u64, Place)>,
    /// The most iterations of all steps together.
    pub iterations: Option<u32>,
    /// The longest wait in a row for a usage limit to end.
    pub wait: Option<Duration>,
    /// After how many iterations that change nothing and say the same a loop stops.
    pub stalled_after: Option<u32>,
    /// After how many rejections a task has failed.
    pub rejections: Option<u32>,
    /// How long an ended agent may take before the next, harder signal.
    pub grace: Option<Duration>,
}

impl Limits {
    /// These, and where they say nothing, `below`.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        Self {
            time: self.time.or(below.time),
            cost: self.cost.or(below.cost),
            tokens: self.tokens.or(below.tokens),
            iterations: self.iterations.or(below.iterations),
            wait: self.wait.or(below.wait),
            stalled_after: self.stalled_after.or(below.stalled_after),
            rejections: self.rejections.or(below.rejections),
            grace: self.grace.or(below.grace),
        }
    }
}

/// What an agent may decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Does the work; may submit, dispute, skip, and be done.
    #[default]
    Worker,
    /// Judges it; may approve, reject, dispute and skip.
    Judge,
}

impl Role {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Judge => "judge",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Worker, Self::Judge].into_iter().find(|role| role.name() == name)
    }
}

/// The form of a judge's verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Approve or reject.
    #[default]
    Decision,
    /// Pass, score, issues and suggestions.
    Evaluation,
}

/// An entry of `agents`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agent {
    /// For people.
    pub description: Option<Text>,
    /// The agent level of the prompt: `defaultPrompt`, `defaultPromptFile`.
    pub said: Said,
    /// A file with the system prompt.
    pub system_prompt: Option<Text>,
    /// The system prompt itself.
    pub system_prompt_text: Option<Text>,
    /// What it asks of its agent CLI: a model, tools, …
    pub cli: CliValues,
    /// The template around its prompt.
    pub template: Option<Text>,
    /// What it may decide.
    pub role: Option<Role>,
    /// The form of its verdict, and where that is written.
    pub verdict: Option<(Form, Place)>,
    /// The least score that passes, in thousandths, and where that is written.
    pub min_score: Option<(u32, Place)>,
    /// The agent CLI that runs this agent.
    pub backend: Option<Text>,
    /// The program that runs this agent.
    pub command: Option<Command>,
    /// Arguments of every run.
    pub args: Option<Vec<Text>>,
    /// Environment of every run.
    pub env: IndexMap<String, Text>,
    /// How the prompt reaches it.
    pub deliver: Option<Delivery>,
    /// What it prints.
    pub output: Option<Format>,
    /// What it may do unasked, and where that is written.
    pub permissions: Option<(Permissions, Place)>,
    /// The longest an iteration may take.
    pub timeout: Option<Duration>,
    /// The longest an iteration may be silent and idle.
    pub idle_timeout: Option<Duration>,
    /// What stands between it and the machine.
    pub isolation: Isolation,
}

impl Agent {
    /// The model that it asks for.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.cli.get("model")?.values.first().map(String::as_str)
    }
}

/// A command as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// One string, split like a shell line, run without a shell.
    Line(Text),
    /// Words as they are.
    Words(Vec<Text>),
}

/// An entry of `checks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// For people.
    pub description: Option<Text>,
    /// What is run.
    pub run: Run,
    /// Environment of the check.
    pub env: IndexMap<String, Text>,
    /// Whether its failure is only said.
    pub optional: bool,
    /// The longest it may take.
    pub timeout: Option<Duration>,
    /// What stands between it and the machine.
    pub isolation: Isolation,
}

/// When a command of the user's is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    /// After every run.
    Finish,
    /// After one that did not complete.
    Fail,
    /// After one that a human has to decide about, and when a queue waits for a login.
    Human,
    /// When a run begins to wait.
    Wait,
    /// After a run of a task.
    Task,
}

impl HookKind {
    /// Every one, by its key.
    pub const NAMES: [(&'static str, Self); 5] = [
        ("onFinish", Self::Finish),
        ("onFail", Self::Fail),
        ("onHuman", Self::Human),
        ("onWait", Self::Wait),
        ("onTask", Self::Task),
    ];

    /// Its key.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// What a check or a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// `sh -c`.
    Shell(Text),
    /// A program and its arguments.
    Words(Vec<Text>),
}
