//! What is known of an attempt when it is over.

use super::outcome::{AttemptOutcome, WaitReason};
use crate::agent::ErrorClass;
use crate::chain::Accounting;
use crate::verdict::{Answer, ProposedTask};
use serde::{Deserialize, Serialize};

/// A process that outlived its agent, and was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Leftover {
    /// Its process id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Whether it could not be ended, and still runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (pid {})", self.name.lines().next().unwrap_or_default(), self.pid)
    }
}

/// Tokens and cost, as the agent's own program reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the cache, counted nowhere else.
    pub cache_read: u64,
    /// Input written to the cache, counted nowhere else.
    pub cache_write: u64,
    /// US dollars, if known.
    pub cost_usd: Option<f64>,
}

impl Tokens {
    /// Of every kind.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output).saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// What is left of a limit on cost, in US dollars.
    #[must_use]
    pub fn cost_left(&self, most: Option<f64>) -> f64 {
        (most.unwrap_or(0.0) - self.cost_usd.unwrap_or(0.0)).max(0.0)
    }

    /// Both together; a cost that is unknown adds nothing.
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

/// What an attempt has used without saying how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unknown {
    /// Tokens.
    pub tokens: bool,
    /// Money.
    pub cost: bool,
}

impl Unknown {
    /// Of an attempt that ended so, whose program gives this account.
    #[must_use]
    pub fn of(accounting: Option<Accounting>, outcome: &AttemptOutcome, finished: &Finished) -> Self {
        let worked = match outcome {
            AttemptOutcome::NotStarted { .. } => false,
            AttemptOutcome::Unavailable { reason } => !matches!(reason, WaitReason::Machine | WaitReason::Start),
            _ => !finished.error_class.is_some_and(ErrorClass::is_permanent),
        };
        // No tokens are no money.
        let is_priced = |tokens: Tokens| tokens.cost_usd.is_some() || tokens.total() == 0;
        let unknown = Self { tokens: finished.tokens.is_none(), cost: !finished.tokens.is_some_and(is_priced) };
        if worked && accounting.is_some() { unknown } else { Self::default() }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A usage limit that an agent's service named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageLimit {
    /// When it ends, in UTC (RFC 3339), if that was named.
    pub resets_at: Option<String>,
    /// How long that was from the attempt's end, in milliseconds.
    pub resets_in_ms: Option<u64>,
}

/// What is known of an attempt when it is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Finished {
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Bytes of stdout.
    pub stdout_bytes: u64,
    /// Bytes of stderr.
    pub stderr_bytes: u64,
    /// Whether a descendant held the output open past the agent's exit.
    pub held_open: bool,
    /// Processes that outlived it and were ended, or could not be.
    pub leftovers: Vec<Leftover>,
    /// What became of its lifeline, if that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifeline: Option<String>,
    /// A line that held the marker among other words.
    pub near_miss: Option<String>,
    /// Tokens and cost.
    pub tokens: Option<Tokens>,
    /// What it used and nobody knows, because its program was ended before it said so, or never says it.
    #[serde(default, skip_serializing_if = "Unknown::is_nothing")]
    pub unknown: Unknown,
    /// The session that its program can resume.
    pub session: Option<String>,
    /// Tools it was refused.
    pub denials: Vec<String>,
    /// What its program calls an error.
    pub error: Option<String>,
    /// Of what kind that error is.
    #[serde(default)]
    pub error_class: Option<ErrorClass>,
    /// The usage limit that ended it.
    pub usage_limit: Option<UsageLimit>,
    /// A digest of the working tree and of what was said last; equal ones mean that nothing changed (V-26).
    pub fingerprint: Option<String>,
    /// Of a worker whose work is judged: whether the working tree is as it was before.
    #[serde(default)]
    pub unchanged: Option<bool>,
    /// Of a worker that says that there is nothing to do: whether nothing has changed since the work began.
    #[serde(default)]
    pub untouched: bool,
    /// Of a check that failed: a digest of the working tree and of its errors.
    #[serde(default)]
    pub trouble: Option<String>,
    /// What a worker says to findings.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// Of a worker: whether what decides about its work was compared with what it was.
    #[serde(default)]
    pub guarded: bool,
    /// Config and templates that a worker changed, and in the strict profile tests that it weakened: its attempt does not count.
    #[serde(default)]
    pub voided: Vec<String>,
    /// Tests that are weaker than at the run's start, in words.
    #[serde(default)]
    pub weakened: Vec<String>,
    /// Files that say what is built and tested and are not what they were, in words.
    #[serde(default)]
    pub touched: Vec<String>,
    /// What a check that failed found, a digest for each error; to tell new errors from old ones.
    #[serde(default)]
    pub errors: Vec<String>,
    /// How many tests a check ran, as its output says.
    #[serde(default)]
    pub tests_run: Option<u32>,
    /// Which part of a built-in check failed: `build`, `tests`, `lint`, `syntax check`, `the task's tests`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_part: Option<String>,
    /// Tasks that a worker proposes.
    #[serde(default)]
    pub tasks: Vec<ProposedTask>,
    /// What of its proposal could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}
