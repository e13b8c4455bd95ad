//! Chains, agents and checks, independent of the form in which they were written.

use super::backend::{Delivery, Format, Permissions};
use super::isolation::Isolation;
use super::keys::cli::CliValues;
use crate::source::{Place, Text, names};
use indexmap::IndexMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// The largest COUNT of the grammar.
pub const MOST_ITERATIONS: u32 = 1_000_000;

/// A chain, from the command line or from a config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The name in the config; none for a chain typed on the command line.
    pub name: Option<String>,
    /// The place of the name in the config, or of the whole chain text.
    pub at: Place,
    /// A description for people.
    pub description: Option<Text>,
    /// The prompt at the level of the chain.
    pub prompt: PromptSource,
    /// Variables with their default values.
    pub vars: IndexMap<String, Text>,
    /// Variables whose values are never stored, and where they are declared.
    pub secrets: IndexMap<String, Place>,
    /// The steps and groups, in order.
    pub items: Vec<Item>,
}

impl Chain {
    /// Returns a chain of these items, without a name, prompt or variables.
    #[must_use]
    pub fn unnamed(items: Vec<Item>, at: Place) -> Self {
        Self {
            name: None,
            at,
            description: None,
            prompt: PromptSource::default(),
            vars: IndexMap::new(),
            secrets: IndexMap::new(),
            items,
        }
    }
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
    /// What the name must refer to.
    pub wants: StepTarget,
    /// How many times the step runs, at most.
    pub limit: Limit,
    /// Additional arguments for the agent, before the prompt.
    pub args: Vec<Text>,
    /// The prompt at the level of the step.
    pub prompt: PromptSource,
    /// The longest an iteration may take.
    pub timeout: Option<Duration>,
    /// The longest an iteration may be silent and idle.
    pub idle_timeout: Option<Duration>,
}

impl Step {
    /// Returns a step that runs once, with nothing but a name.
    #[must_use]
    pub fn once(name: Text, wants: StepTarget) -> Self {
        Self {
            name,
            wants,
            limit: Limit::Once,
            args: Vec::new(),
            prompt: PromptSource::default(),
            timeout: None,
            idle_timeout: None,
        }
    }
}

/// What a step's name may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepTarget {
    /// An agent or a check: the chain language does not distinguish them.
    Either,
    /// An agent: the key `agent` names it.
    Agent,
    /// A check: the key `check` names it.
    Check,
}

/// Steps that run in rounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The steps and groups, in order; never empty.
    pub items: Vec<Item>,
    /// The maximum number of rounds; none means one round.
    pub rounds: Option<NonZeroU32>,
    /// The place of the parentheses, or of the key `group`.
    pub at: Place,
}

/// How many times a step runs, at most. The type rules out a loop of 0 iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// `a`: one iteration, which succeeds with exit code 0.
    Once,
    /// `a:N`: up to N iterations; the step succeeds with the marker.
    UpTo(NonZeroU32),
}

impl Limit {
    /// Returns the maximum number of iterations.
    #[must_use]
    pub fn most(self) -> u32 {
        match self {
            Self::Once => 1,
            Self::UpTo(count) => count.get(),
        }
    }
}

/// A prompt at one level. The inline prompt takes precedence over the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptSource {
    /// The prompt itself; empty means "no prompt" and masks lower levels.
    pub inline: Option<Text>,
    /// The path of a file that contains the prompt.
    pub file: Option<Text>,
}

impl PromptSource {
    /// Whether this level sets no prompt.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.inline.is_none() && self.file.is_none()
    }
}

/// Limits of a whole run, as far as a config or the command line sets them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// The longest the run may take.
    pub time: Option<Duration>,
    /// The maximum cost in US dollars, and where it is set.
    pub cost: Option<(f64, Place)>,
    /// The maximum number of tokens of all kinds, and where it is set.
    pub tokens: Option<(u64, Place)>,
    /// The maximum number of attempts of all steps together.
    pub attempts: Option<u32>,
    /// The longest uninterrupted wait for a service, such as for a usage limit to end.
    pub wait: Option<Duration>,
    /// A loop stops after this many iterations that change nothing and print the same thing.
    pub stalled_after: Option<u32>,
    /// A task fails after this many rejections.
    pub rejections: Option<u32>,
    /// How long an agent that is being stopped may take before the next, stronger signal.
    pub grace: Option<Duration>,
}

impl Limits {
    /// Returns these limits, with what they leave unset taken from `below`.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        Self {
            time: self.time.or(below.time),
            cost: self.cost.or(below.cost),
            tokens: self.tokens.or(below.tokens),
            attempts: self.attempts.or(below.attempts),
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
    /// Does the work; may submit, dispute, skip, and complete its step.
    #[default]
    Worker,
    /// Judges the work; may approve, reject, dispute and skip.
    Judge,
}

names!(Role { Worker = "worker", Judge = "judge" });

/// What an agent does with the session of its attempt before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionUse {
    /// Every attempt begins a new session.
    #[default]
    Fresh,
    /// An attempt that follows feedback continues the session, as long as that is likely to be cheaper.
    Continue,
}

names!(SessionUse { Fresh = "fresh", Continue = "continue" });

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
    /// A description for people.
    pub description: Option<Text>,
    /// The prompt at the level of the agent: `defaultPrompt`, `defaultPromptFile`.
    pub prompt: PromptSource,
    /// The path of a file that contains the system prompt.
    pub system_prompt: Option<Text>,
    /// The system prompt itself.
    pub system_prompt_text: Option<Text>,
    /// The settings for its backend: a model, tools, …
    pub cli: CliValues,
    /// The template around its prompt.
    pub template: Option<Text>,
    /// What it may decide.
    pub role: Option<Role>,
    /// The form of its verdict, and where it is set.
    pub verdict: Option<(Form, Place)>,
    /// The lowest score that passes, in thousandths, and where it is set.
    pub min_score: Option<(u32, Place)>,
    /// The backend that runs this agent.
    pub backend: Option<Text>,
    /// The backends that run it while the usage limits of those before them last.
    pub fallback: Vec<Text>,
    /// What it does with its sessions, and where that is set.
    pub session: Option<(SessionUse, Place)>,
    /// The program that runs this agent.
    pub command: Option<Command>,
    /// The arguments that are always passed.
    pub args: Option<Vec<Text>>,
    /// The environment variables that are always set.
    pub env: IndexMap<String, Text>,
    /// How the prompt is passed to it.
    pub deliver: Option<Delivery>,
    /// The format of its output.
    pub output: Option<Format>,
    /// What it may do without asking, and where that is set.
    pub permissions: Option<(Permissions, Place)>,
    /// The longest an iteration may take.
    pub timeout: Option<Duration>,
    /// The longest an iteration may be silent and idle.
    pub idle_timeout: Option<Duration>,
    /// The wrapper and the sandbox around its command.
    pub isolation: Isolation,
}

impl Agent {
    /// Returns the model that this agent sets.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.cli.get("model")?.values.first().map(String::as_str)
    }
}

/// A command as it is written in a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// One string, split like a shell command line but run without a shell.
    Line(Text),
    /// The program and its arguments, unchanged.
    Words(Vec<Text>),
}

/// An entry of `checks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// A description for people.
    pub description: Option<Text>,
    /// The command to run.
    pub run: Run,
    /// The environment variables of the check.
    pub env: IndexMap<String, Text>,
    /// Whether a failure is only reported and stops nothing.
    pub optional: bool,
    /// The longest the check may take.
    pub timeout: Option<Duration>,
    /// The wrapper and the sandbox around its command.
    pub isolation: Isolation,
}

/// When one of the user's hooks runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    /// After every run.
    Finish,
    /// After a run that did not complete.
    Fail,
    /// After a run that a person has to decide about, and when a queue waits for a login.
    Human,
    /// When a run begins to wait.
    Wait,
    /// After a run of a task.
    Task,
}

names!(HookKind {
    Finish = "onFinish",
    Fail = "onFail",
    Human = "onHuman",
    Wait = "onWait",
    Task = "onTask",
});

/// What a check or a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// A line for `sh -c`.
    Shell(Text),
    /// A program and its arguments.
    Words(Vec<Text>),
}
