//! What is known about an attempt that has ended.

use super::outcome::{AttemptOutcome, WaitReason};
use crate::agent::ErrorClass;
use crate::chain::Accounting;
use crate::verdict::{Answer, ProposedTask};
use serde::{Deserialize, Serialize};

/// A process that outlived its agent and was terminated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// The process id.
    pub pid: i32,
    /// The name of the process.
    pub name: String,
    /// Whether it could not be terminated and is still running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.name.lines().next().unwrap_or_default(), self.pid)
    }
}

/// Tokens and cost, as reported by the agent's own program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Input tokens that are not counted as `cacheRead` or `cacheWrite`.
    pub input: u64,
    /// Tokens that the model wrote.
    pub output: u64,
    /// Input tokens that were read from the cache. They are not counted anywhere else.
    pub cache_read: u64,
    /// Input tokens that were written to the cache. They are not counted anywhere else.
    pub cache_write: u64,
    /// The cost in US dollars, if known.
    pub cost_usd: Option<f64>,
}

impl Tokens {
    /// Returns the number of tokens of every kind together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Returns how much of a cost limit is left, in US dollars.
    #[must_use]
    pub fn cost_left(&self, most: Option<f64>) -> f64 {
        (most.unwrap_or(0.0) - self.cost_usd.unwrap_or(0.0)).max(0.0)
    }

    /// Returns the sum of both. An unknown cost adds nothing.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        let cost = self.cost_usd.unwrap_or(0.0) + more.cost_usd.unwrap_or(0.0);
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_write: self.cache_write.saturating_add(more.cache_write),
            cost_usd: self.cost_usd.or(more.cost_usd).map(|_| cost),
        }
    }
}

/// What an attempt used without reporting how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// Whether it used tokens that were not reported.
    pub tokens: bool,
    /// Whether it caused costs that were not reported.
    pub cost: bool,
}

impl Unknown {
    /// Returns what is unknown about an attempt with this outcome. `accounting` is what its program reports in general.
    #[must_use]
    pub fn of(accounting: Option<Accounting>, outcome: &AttemptOutcome, finished: &Finished) -> Self {
        let worked = match outcome {
            AttemptOutcome::NotStarted { .. } => false,
            AttemptOutcome::Unavailable { reason } => {
                !matches!(reason, WaitReason::Machine | WaitReason::Start | WaitReason::Session)
            }
            _ => !finished.agent.error_class.is_some_and(ErrorClass::is_permanent),
        };
        // Without tokens there is no cost.
        let is_priced = |tokens: Tokens| tokens.cost_usd.is_some() || tokens.total() == 0;
        let unknown =
            Self { tokens: finished.agent.tokens.is_none(), cost: !finished.agent.tokens.is_some_and(is_priced) };
        if worked && accounting.is_some() { unknown } else { Self::default() }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A usage limit that an agent's service reported.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageLimit {
    /// When the limit ends, in UTC (RFC 3339), if the service reported a time.
    pub resets_at: Option<String>,
    /// The time between the end of the attempt and the end of the limit, in milliseconds.
    pub resets_in_ms: Option<u64>,
    /// The backend of the agent that has no limit now. The attempt is then repeated at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<String>,
}

/// What is known about an attempt that has ended. In an event, all of it is one object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// How long the attempt took, in milliseconds.
    pub took_ms: u64,
    /// The size of its standard output, in bytes.
    pub stdout_bytes: u64,
    /// The size of its standard error, in bytes.
    pub stderr_bytes: u64,
    /// Whether another process kept the output open after the agent had exited.
    pub held_open: bool,
    /// Processes that outlived the agent: they were terminated, or could not be.
    pub leftovers: Vec<Leftover>,
    /// What happened to the attempt's lifeline, if it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifeline: Option<String>,
    /// The tree with which the attempt ended, as the ID of a git tree in forkhestra's own store. Absent if no snapshot
    /// was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// In a loop, a digest of the working tree and of the agent's last output. Equal digests mean that nothing changed.
    pub fingerprint: Option<String>,
    /// Why it could not start, or the error that its program reported.
    pub error: Option<String>,
    /// What is known of an agent; the default for a check.
    #[serde(flatten)]
    pub agent: FinishedAgent,
    /// What is known of a check; the default for an agent.
    #[serde(flatten)]
    pub check: FinishedCheck,
}

impl From<FinishedAgent> for Finished {
    fn from(agent: FinishedAgent) -> Self {
        Self { agent, ..Self::default() }
    }
}

impl From<FinishedCheck> for Finished {
    fn from(check: FinishedCheck) -> Self {
        Self { check, ..Self::default() }
    }
}

/// What is known about the attempt of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FinishedAgent {
    /// A line that contained the marker but did not count, for example because of other words on it.
    pub near_miss: Option<String>,
    /// The tokens and the cost, if they were reported.
    pub tokens: Option<Tokens>,
    /// What it used without reporting how much: its program was stopped before it could, or never reports it.
    #[serde(default, skip_serializing_if = "Unknown::is_nothing")]
    pub unknown: Unknown,
    /// The id of the session, which its program can resume.
    pub session: Option<String>,
    /// The session that it was to continue, if it ended with an error before it said or used anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_session: Option<String>,
    /// Tools that the agent was not permitted to use.
    pub denials: Vec<String>,
    /// The kind of the error that its program reported.
    #[serde(default)]
    pub error_class: Option<ErrorClass>,
    /// The usage limit that ended the attempt.
    pub usage_limit: Option<UsageLimit>,
    /// For a worker in a group, whether it left the working tree unchanged.
    #[serde(default)]
    pub unchanged: Option<bool>,
    /// For a worker that reports that there is nothing to do, whether nothing has changed since the work began.
    #[serde(default)]
    pub untouched: bool,
    /// A worker's answers to findings.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// For an agent, whether the protected files were compared with their earlier state.
    #[serde(default)]
    pub guarded: bool,
    /// Protected files that the agent changed, such as config and templates. Under `--profile strict` it includes a
    /// worker's `weakened` and `touched` items. If there are any, a worker's attempt does not count.
    #[serde(default)]
    pub voided: Vec<String>,
    /// Descriptions of tests that have become weaker since the work began.
    #[serde(default)]
    pub weakened: Vec<String>,
    /// Descriptions of files that determine what is built and tested, and that have changed since the work began.
    #[serde(default)]
    pub touched: Vec<String>,
    /// Tasks that a worker proposes.
    #[serde(default)]
    pub tasks: Vec<ProposedTask>,
    /// The parts of that proposal that could not be read, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// What is known about the attempt of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FinishedCheck {
    /// For a failed check in a group, a digest of the working tree and of the check's errors.
    #[serde(default)]
    pub failure_digest: Option<String>,
    /// For a failed check, a digest of each error, so that new errors can be distinguished from old ones.
    #[serde(default)]
    pub errors: Vec<String>,
    /// For a check, the number of tests that it ran, according to its output.
    #[serde(default)]
    pub tests_run: Option<u32>,
    /// The part of a built-in check that failed: `build`, `tests`, `lint`, `syntax check` or `the task's tests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_part: Option<String>,
}
