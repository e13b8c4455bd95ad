//! The formats of agents' output, and what is read out of them.

/// What a program prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text for people; the marker is a line of stdout.
    Plain,
    /// Claude Code's `stream-json`; the marker is a line of the final message.
    ClaudeStream,
}

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageLimit {
    /// When it will, in seconds after 1970, if that was named.
    pub resets_at: Option<i64>,
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
    /// What the program calls an error, in its words.
    pub error: Option<String>,
    /// The usage limit, rate limit or overload that it gave up at.
    pub usage_limit: Option<UsageLimit>,
}
