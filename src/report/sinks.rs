//! Where events go beside the journal and the console: newline-delimited JSON for machines, and the log of GitHub Actions.

use crate::checks::Failure;
use crate::engine::Event;
use crate::plan::Outline;
use crate::report::github;
use std::io::{self, Write};

/// Where newline-delimited JSON goes.
pub enum Ndjson {
    /// Nowhere.
    Off,
    /// To standard output.
    Stdout,
    /// To a file of the user's, with its name.
    File(Box<dyn Write>, String),
}

/// All of them.
pub struct Sinks {
    /// Events for machines.
    pub ndjson: Ndjson,
    /// In a job of GitHub Actions a word that nobody guesses: while agents print, no line of theirs is a command.
    pub github: Option<String>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sinks")
    }
}

impl Sinks {
    /// None at all.
    #[must_use]
    pub fn none() -> Self {
        Self { ndjson: Ndjson::Off, github: None }
    }

    /// Tells everybody of an event; returns what goes to standard output.
    ///
    /// # Errors
    /// When a file takes no more.
    pub fn event(&mut self, event: &Event) -> io::Result<String> {
        if matches!(self.ndjson, Ndjson::Off) {
            return Ok(String::new());
        }
        let line = serde_json::to_string(event)? + "\n";
        match &mut self.ndjson {
            Ndjson::Stdout => return Ok(line),
            Ndjson::File(file, name) => file
                .write_all(line.as_bytes())
                .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?,
            Ndjson::Off => {}
        }
        Ok(String::new())
    }

    /// What the log of a job is told before and after our own line about an event.
    #[must_use]
    pub fn around(&self, event: &Event, outline: &Outline, errors: &[Failure]) -> (String, String) {
        match &self.github {
            Some(word) => github::around(event, outline, errors, word),
            None => (String::new(), String::new()),
        }
    }

    /// Another word for the next attempt, if there is one: an agent may have read the last.
    pub fn renew(&mut self, word: impl FnOnce() -> Option<String>) {
        if self.github.is_some() {
            self.github = word().or(self.github.take());
        }
    }

    /// Our own lines as the log may have them: what others have said in them is no command.
    #[must_use]
    pub fn harmless(&self, lines: String) -> String {
        if self.github.is_some() { github::harmless(&lines) } else { lines }
    }

    /// Whether anybody asks for the errors of failed checks.
    #[must_use]
    pub fn listens_for_errors(&self) -> bool {
        self.github.is_some()
    }
}
