//! Where events go in addition to the journal and the console: newline-delimited JSON for programs, and the log of
//! GitHub Actions.

use crate::checks::Failure;
use crate::engine::Event;
use crate::plan::Outline;
use crate::report::github::{self, GithubLog};
use std::io::{self, Write};
use std::rc::Rc;

/// Where newline-delimited JSON goes.
pub enum Ndjson {
    /// No sink: events are dropped.
    Off,
    /// To standard output.
    Stdout,
    /// To a file that the user chose; the text is its name.
    File(Box<dyn Write>, String),
}

/// Keeps the state of a run elsewhere: called with each event once it is in the journal.
#[derive(Clone)]
pub struct Keeper(pub Rc<Keep>);

/// Called with an event. Returns an error if the run must not continue.
type Keep = dyn Fn(&Event) -> io::Result<()>;

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper")
    }
}

/// All sinks of a run.
pub struct Sinks {
    /// Where the events go as newline-delimited JSON.
    pub ndjson: Ndjson,
    /// The log of a GitHub Actions job.
    pub github: Option<GithubLog>,
    /// What keeps the run elsewhere; `None` for a run that is only here.
    pub keeper: Option<Keeper>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sinks")
    }
}

impl Sinks {
    /// Returns sinks that receive nothing.
    #[must_use]
    pub fn none() -> Self {
        Self { ndjson: Ndjson::Off, github: None, keeper: None }
    }

    /// Writes an event to the file, if there is one; returns what goes to standard output.
    ///
    /// # Errors
    /// If the file cannot be written, or the keeper does not want the run to continue.
    pub fn event(&mut self, event: &Event) -> io::Result<String> {
        if let Some(Keeper(keep)) = &self.keeper {
            keep(event)?;
        }
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

    /// Returns what the log of a job gets before and after our own line about an event.
    #[must_use]
    pub fn around(&mut self, event: &Event, outline: &Outline, errors: &[Failure]) -> (String, String) {
        match &mut self.github {
            Some(log) => log.around(event, outline, errors),
            None => (String::new(), String::new()),
        }
    }

    /// Replaces the token before an attempt, if there is one: an agent may have read the previous one.
    pub fn renew(&mut self, word: impl FnOnce() -> Option<String>) {
        if let Some(log) = &mut self.github
            && let Some(word) = word()
        {
            log.renew(word);
        }
    }

    /// Returns our own lines in a form in which foreign text in them is not a workflow command.
    #[must_use]
    pub fn harmless(&self, lines: String) -> String {
        if self.github.is_some() { github::harmless(&lines) } else { lines }
    }

    /// Returns whether a sink needs the errors of failed checks.
    #[must_use]
    pub fn listens_for_errors(&self) -> bool {
        self.github.is_some()
    }
}
