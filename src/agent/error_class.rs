//! The kinds of errors that a backend can report.

/// The kind of an error, which decides what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ErrorClass {
    /// Credentials are missing or refused. Trying again does not help.
    Credentials,
    /// The model may not be used. Trying again does not help.
    Model,
    /// A usage limit, rate limit or overload. Waiting helps.
    UsageLimit,
    /// The program's own limit on turns or cost was reached.
    Turns,
    /// The service failed.
    Service,
    /// The service could not be reached.
    Network,
    /// Any other error.
    Other,
}

impl ErrorClass {
    /// Whether the same attempt would fail again until a person intervenes.
    #[must_use]
    pub fn is_permanent(self) -> bool {
        matches!(self, Self::Credentials | Self::Model)
    }

    /// Whether the service failed or could not be reached, so that waiting helps.
    #[must_use]
    pub fn is_outage(self) -> bool {
        matches!(self, Self::Service | Self::Network)
    }
}
