//! What is read out of the output of an agent CLI.

use super::error_class::ErrorClass;
use super::faults::classify;
use super::limit_end::LimitEnd;
pub use crate::chain::Format;
use serde_json::Value;

/// Tokens and cost as the agent CLI itself reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Fresh input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from the cache, counted nowhere else.
    pub cache_read_tokens: u64,
    /// Input tokens written to the cache, counted nowhere else.
    pub cache_write_tokens: u64,
    /// US dollars, if the program says so.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(&self, more: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(more.input_tokens),
            output_tokens: self.output_tokens.saturating_add(more.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(more.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(more.cache_write_tokens),
            cost_usd: self
                .cost_usd
                .or(more.cost_usd)
                .map(|_| self.cost_usd.unwrap_or(0.0) + more.cost_usd.unwrap_or(0.0)),
        }
    }
}

/// A limit of the service behind an agent CLI, which time will lift.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageLimit {
    /// When it will, if that was named.
    pub end: Option<LimitEnd>,
}

/// What a structured output said by its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The final message; none when the stream ended without one.
    pub final_message: Option<String>,
    /// Tokens and cost.
    pub usage: Option<Usage>,
    /// The session that can be resumed.
    pub session: Option<String>,
    /// Names of tools that the agent was refused, in order.
    pub denials: Vec<String>,
    /// What the program calls an error, in its words, and of what kind it is.
    pub error: Option<(ErrorClass, String)>,
    /// The usage limit, rate limit or overload that it gave up at.
    pub usage_limit: Option<UsageLimit>,
    /// Whether it failed only because its last message used up what it was allowed to cost: it has finished all the same.
    pub over_budget: bool,
    /// Whether all that it says is that it waits for its service.
    pub waits: bool,
}

/// A call of a tool that an agent announced: its id, the tool, what it was called with.
pub(super) type ToolCall = (String, String, Value);

impl Report {
    /// The program failed with these words, and this HTTP status if it names one.
    pub(super) fn fail(&mut self, status: Option<u64>, words: &str) {
        let class = classify(status, words);
        self.usage_limit = (class == ErrorClass::UsageLimit).then(|| UsageLimit { end: LimitEnd::said(words) });
        self.error = Some((class, words.trim().to_string()));
    }

    /// It got past whatever it met.
    pub(super) fn recover(&mut self) {
        (self.error, self.usage_limit) = (None, None);
    }

    /// More was used.
    pub(super) fn add(&mut self, usage: &Usage) {
        self.usage = Some(self.usage.unwrap_or_default().plus(usage));
    }

    /// A tool was refused; `input` is what it was called with.
    pub(super) fn deny(&mut self, tool: &str, input: &Value) {
        /// The longest command that is told, in characters.
        const LONGEST: usize = 200;
        let keys = ["command", "cmd", "file_path", "filePath", "path", "url", "pattern", "query"];
        let what = keys.iter().find_map(|key| input[*key].as_str()).map(|what| what.lines().next().unwrap_or_default());
        let what: Option<String> = what.map(|what| what.chars().take(LONGEST).collect());
        self.denials.push(what.map_or_else(|| tool.to_string(), |what| format!("{tool}({what})")));
    }

    /// The call of this id was refused; a call that was never seen is told of as a tool.
    pub(super) fn deny_call(&mut self, calls: &[ToolCall], id: &str) {
        match calls.iter().find(|(known, ..)| known == id) {
            Some((_, tool, input)) => self.deny(tool, input),
            None => self.deny("tool", &Value::Null),
        }
    }
}
