//! What an observer can look up in the transcripts about an event.

use crate::checks::{Failure, failures, joined};
use crate::engine::{At, Evidence};
use crate::journal::{AttemptFolder, Journal};
use crate::prompt::FEEDBACK_CHARACTERS;
use crate::world::World;

/// The transcripts of a run, in which observers look up more about its events.
#[derive(Debug)]
pub struct Transcripts<'a> {
    /// The journal of the run.
    pub journal: &'a Journal,
    /// The environment.
    pub world: &'a World,
    /// The number of the run.
    pub run: i64,
}

impl Transcripts<'_> {
    fn folder(&self, at: &At) -> AttemptFolder {
        self.journal.files().attempt_folder(self.run, at.step, &at.name, at.attempt)
    }
}

impl Evidence for Transcripts<'_> {
    fn errors(&self, at: &At) -> Vec<Failure> {
        failures(&joined(&self.folder(at).whole_output()))
    }

    fn last_words(&self, at: &At) -> (&'static str, String) {
        let [stdout, stderr] = self.folder(at).last_words(FEEDBACK_CHARACTERS as u64);
        if stderr.trim().is_empty() { ("stdout", stdout) } else { ("stderr", stderr) }
    }

    fn secret(&self) -> Option<String> {
        self.world.token().ok()
    }
}
