//! What kinds of errors an agent CLI meets.

/// What kind of error it was, for what is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ErrorClass {
    /// No credentials, or none that are accepted: trying again does not help.
    Credentials,
    /// The model is not one that may be used: trying again does not help.
    Model,
    /// A usage limit, rate limit or overload: time helps.
    UsageLimit,
    /// The program's own limit on turns or money.
    Turns,
    /// The service failed.
    Service,
    /// The service was not reached.
    Network,
    /// Anything else.
    Other,
}

impl ErrorClass {
    /// Whether the same attempt would fail again until somebody does something.
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Credentials | Self::Model)
    }

    /// Whether the service could not be reached, or failed: time helps.
    #[must_use]
    pub fn is_outage(self) -> bool {
        matches!(self, Self::Service | Self::Network)
    }
}
