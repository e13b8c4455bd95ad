//! What is remembered between attempts, for the choice of a backend, a model and a session.

use jiff::Timestamp;
use std::collections::HashMap;

/// What is remembered for the choice between attempts. It is lost with the process, and then everything is tried again.
#[derive(Debug, Default)]
pub(in crate::runner) struct Choices {
    /// When the usage limits of backends end.
    pub(super) limited: HashMap<String, Timestamp>,
    /// How often in a row a backend has reached a limit without a known end.
    pub(super) in_a_row: HashMap<String, u32>,
    /// The last session of each step.
    pub(super) sessions: HashMap<u32, LastSession>,
}

/// The session of a step's last attempt.
#[derive(Debug, Clone)]
pub(super) struct LastSession {
    pub(super) id: String,
    /// The variant that ran it.
    pub(super) variant: u32,
    pub(super) ended: Timestamp,
    /// The tokens of its last request, or, if that is not known, of all of them.
    pub(super) tokens: u64,
    /// Whether it ended by itself and without an error.
    pub(super) is_whole: bool,
}
