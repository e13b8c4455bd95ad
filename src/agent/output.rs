//! The data that is read from the output of a backend.

use super::error_class::ErrorClass;
use super::faults::classify;
use super::limit_end::LimitEnd;
pub use crate::chain::Format;
use serde_json::Value;

/// Tokens and cost, as reported by the backend itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Input tokens, without those read from or written to the cache.
    pub input_tokens: u64,
    /// Number of output tokens.
    pub output_tokens: u64,
    /// Input tokens read from the cache, not counted anywhere else.
    pub cache_read_tokens: u64,
    /// Input tokens written to the cache, not counted anywhere else.
    pub cache_write_tokens: u64,
    /// Cost in US dollars, if the program reports it.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Returns the sum of both.
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

/// A limit of the service behind a backend that ends by itself after some time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageLimit {
    /// When the limit ends, if the program says so.
    pub end: Option<LimitEnd>,
}

/// Everything that was read from a structured output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The final message; none if the stream ended without one.
    pub final_message: Option<String>,
    /// Tokens and cost, if they were reported.
    pub usage: Option<Usage>,
    /// The tokens of its last request to its service, if they are reported for each one.
    pub last_request: Option<u64>,
    /// The id of the session, which can be resumed.
    pub session: Option<String>,
    /// Tools that the agent was refused, in order, with their main argument if known.
    pub denials: Vec<String>,
    /// The error that the program reported: its kind and its message.
    pub error: Option<(ErrorClass, String)>,
    /// The usage limit, rate limit or overload at which the program gave up.
    pub usage_limit: Option<UsageLimit>,
    /// Whether it failed only because its last message used up its budget. Its work is finished even so.
    pub over_budget: bool,
    /// Whether its last output says only that it is waiting for its service.
    pub waits: bool,
}

/// A tool call that an agent announced: the call's id, the tool and its input.
pub(super) type ToolCall = (String, String, Value);

impl Report {
    /// Records that the program failed with this message, and this HTTP status if it reports one.
    pub(super) fn fail(&mut self, status: Option<u64>, words: &str) {
        let class = classify(status, words);
        self.usage_limit = (class == ErrorClass::UsageLimit).then(|| UsageLimit { end: LimitEnd::parse(words) });
        self.error = Some((class, words.trim().to_string()));
    }

    /// Clears the error, because the program recovered from it.
    pub(super) fn recover(&mut self) {
        (self.error, self.usage_limit) = (None, None);
    }

    /// Adds to the usage.
    pub(super) fn add(&mut self, usage: &Usage) {
        self.usage = Some(self.usage.unwrap_or_default().plus(usage));
    }

    /// Records the usage of a request.
    pub(super) fn requested(&mut self, usage: &Usage) {
        let input = usage.input_tokens.saturating_add(usage.cache_read_tokens).saturating_add(usage.cache_write_tokens);
        self.last_request = Some(input.saturating_add(usage.output_tokens));
    }

    /// Records that a tool was refused with this input.
    pub(super) fn deny(&mut self, tool: &str, input: &Value) {
        /// The longest command that is recorded, in characters.
        const LONGEST: usize = 200;
        let keys = ["command", "cmd", "file_path", "filePath", "path", "url", "pattern", "query"];
        let what = keys.iter().find_map(|key| input[*key].as_str()).map(|what| what.lines().next().unwrap_or_default());
        let what: Option<String> = what.map(|what| what.chars().take(LONGEST).collect());
        self.denials.push(what.map_or_else(|| tool.to_string(), |what| format!("{tool}({what})")));
    }

    /// Records that the call with this id was refused. A call that was never announced is recorded as `tool`.
    pub(super) fn deny_call(&mut self, calls: &[ToolCall], id: &str) {
        match calls.iter().find(|(known, ..)| known == id) {
            Some((_, tool, input)) => self.deny(tool, input),
            None => self.deny("tool", &Value::Null),
        }
    }
}
