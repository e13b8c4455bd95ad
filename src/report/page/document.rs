//! What a report shows of a run.

use crate::engine::{At, Event, FileChange, RunSummary};
use crate::plan::Outline;

/// A run, with everything that the report shows of it.
#[derive(Debug)]
pub struct Document<'a> {
    /// The summary of the run.
    pub summary: &'a RunSummary,
    /// The outline of its plan.
    pub outline: &'a Outline,
    /// Its events, in order.
    pub events: &'a [Event],
    /// Why it ended, as one line.
    pub reason: &'a str,
    /// Whether its process is alive.
    pub at_work: bool,
    /// The command line that resumes it.
    pub resume: &'a str,
    /// Of a run of a batch: what a person can do about it; empty for nothing.
    pub part: Option<&'a str>,
    /// The files that it changed; `None` if there were no snapshots.
    pub changes: Option<&'a [FileChange]>,
    /// These changes as a patch; empty if there are none or they are not shown.
    pub patch: &'a str,
    /// The prompts and the output of its attempts.
    pub papers: &'a [AttemptTexts],
}

/// The prompt and the output of an attempt.
#[derive(Debug)]
pub struct AttemptTexts {
    /// Its prompt; empty if it had none.
    pub prompt: String,
    /// Its output, decoded.
    pub output: String,
    /// Its standard error, decoded.
    pub errors: String,
    /// The directory that has the full texts.
    pub folder: String,
    /// The attempt.
    pub at: At,
    /// Whether a text was truncated because it is too long.
    pub cut: bool,
    /// What has been lost of the texts: `stdout.log holds 0 of 12 bytes`.
    pub missing: Option<String>,
}
