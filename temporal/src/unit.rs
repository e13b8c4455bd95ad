//! What the queue says about a unit, and a worker about its work. Names only: no secret is in the queue.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A unit as it stands in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnitTask {
    /// The name of the unit.
    pub(crate) unit: String,
    /// Where the worker finds the hub.
    pub(crate) hub: String,
    /// How often the worker reports, in milliseconds.
    pub(crate) beat_ms: u64,
}

/// The result of a unit that was handed over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnitDone {
    /// The name of the unit.
    pub(crate) unit: String,
    /// The exit code of its run; 75 if another worker had done it before.
    pub(crate) exit: i32,
    /// What its worker reported last.
    pub(crate) progress: Progress,
}

/// What a worker reports about its unit, as the details of a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Progress {
    /// The step at work, with its number: `2/4 coder`.
    pub(crate) place: String,
    /// The round of its group.
    pub(crate) round: u64,
    /// The iteration of its loop.
    pub(crate) iteration: u64,
    /// How many attempts were made.
    pub(crate) attempts: u64,
    /// The tokens that were used, if they are known.
    pub(crate) tokens: Option<u64>,
    /// What was spent, in US dollars, if it is known.
    pub(crate) cost_usd: Option<f64>,
    /// The last line of the agent, at most 200 characters.
    pub(crate) last_line: String,
    /// Whether everything of the unit stands still, because somebody has paused it.
    pub(crate) is_held: bool,
}

/// The longest last line, in characters.
const LONGEST_LINE: usize = 200;

/// The progress of a unit, and the directory in which it is worked on.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Watched {
    /// What is reported.
    pub(crate) progress: Progress,
    /// The root of its run, once it has begun.
    pub(crate) root: Option<String>,
    steps: u64,
}

impl Watched {
    /// Takes an event of the run in, a line of JSON. Other lines change nothing.
    pub(crate) fn event(&mut self, line: &str) {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return };
        let event = &value["event"];
        match event["type"].as_str() {
            Some("runStarted") => {
                self.root = event["root"].as_str().map(str::to_string);
                self.steps = event["steps"].as_u64().unwrap_or(0);
            }
            Some("attemptPlanned") => {
                let at = &event["at"];
                let (step, name) = (at["step"].as_u64().unwrap_or(0), at["name"].as_str().unwrap_or_default());
                self.progress.place = format!("{step}/{} {name}", self.steps);
                self.progress.round = at["round"].as_u64().unwrap_or(1);
                self.progress.iteration = at["iteration"].as_u64().unwrap_or(1);
                self.progress.attempts += 1;
            }
            _ => {}
        }
    }

    /// Takes in what `forkhestra status --json` prints for the root.
    pub(crate) fn status(&mut self, text: &str) {
        let Ok(value) = serde_json::from_str::<Value>(text) else { return };
        let run = &value["roots"][0]["run"];
        if run.is_null() {
            return;
        }
        self.progress.tokens = run["tokens"].as_u64().or(self.progress.tokens);
        self.progress.cost_usd = run["costUsd"].as_f64().or(self.progress.cost_usd);
        if let Some(line) = run["attempt"]["lastLine"].as_str() {
            self.progress.last_line = line.chars().take(LONGEST_LINE).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_comes_from_the_events_and_the_status_of_a_run() {
        let mut watched = Watched::default();
        watched.event(r#"{"event":{"type":"runStarted","root":"/w/1","steps":4}}"#);
        watched.event(r#"{"event":{"type":"attemptPlanned","at":{"step":2,"name":"coder","round":3,"iteration":2}}}"#);
        watched.event("no event");
        watched.event("{}");
        let long = "x".repeat(300);
        watched.status(&format!(
            r#"{{"roots":[{{"run":{{"tokens":1200,"costUsd":0.5,"attempt":{{"lastLine":"{long}"}}}}}}]}}"#
        ));
        watched.status(r#"{"roots":[{"run":null}]}"#);
        watched.status("nothing");
        assert_eq!(watched.root.as_deref(), Some("/w/1"));
        let last_line = "x".repeat(LONGEST_LINE);
        let expected = Progress {
            place: "2/4 coder".into(),
            round: 3,
            iteration: 2,
            attempts: 1,
            tokens: Some(1200),
            cost_usd: Some(0.5),
            last_line,
            is_held: false,
        };
        assert_eq!(watched.progress, expected);
    }
}
