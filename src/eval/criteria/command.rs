//! A command as a criterion: it gets an output, and says by its exit code, or with a score, how good it is.

use super::Measured;
use crate::chain::Run;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How long a command may take, unless the suite says something else.
pub(super) const USUAL_TIMEOUT: Duration = Duration::from_mins(5);
/// The most characters of an issue that a command prints.
const LONGEST_ISSUE: usize = 300;

/// A command that judges an output, which it gets on standard input.
#[derive(Debug)]
pub struct CommandCriterion {
    /// The command.
    pub(in crate::eval) run: Run,
    /// The directory in which it runs: that of the suite.
    pub(in crate::eval) folder: PathBuf,
    /// The longest that it may take.
    pub(in crate::eval) timeout: Duration,
}

impl Serialize for CommandCriterion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.words().serialize(serializer)
    }
}

impl CommandCriterion {
    /// The command as a list of words.
    fn words(&self) -> Vec<&str> {
        match &self.run {
            Run::Shell(line) => vec!["sh", "-c", &line.value],
            Run::Words(words) => words.iter().map(|word| word.value.as_str()).collect(),
        }
    }

    /// Returns what a command that has exited with this code and has printed this says about an output. If its last
    /// line is a JSON object, that decides: `{"pass": true, "score": 0.8, "issues": ["…"]}`, where every key may be
    /// missing. Else the exit code decides.
    ///
    /// # Errors
    /// When the object is not understood.
    pub(in crate::eval) fn verdict(code: i32, printed: &str) -> Result<Measured, String> {
        let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        let whole = Some(printed.trim()).filter(|text| text.starts_with('{'));
        let object = whole.into_iter().chain([last]).find_map(|text| match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        });
        let Some(object) = object else {
            let words =
                if last.is_empty() { format!("a command has failed with exit code {code}") } else { last.into() };
            return Ok(Measured::of((code != 0).then(|| words.chars().take(LONGEST_ISSUE).collect())));
        };
        let strange = |key: &str, what: &str| format!("`{key}` of its JSON is not {what}");
        let score = match object.get("score") {
            None | Some(Value::Null) => None,
            Some(score) => match score.as_f64() {
                Some(score) if (0.0..=1.0).contains(&score) => Some(score),
                _ => return Err(strange("score", "a number from 0 to 1")),
            },
        };
        let pass = match object.get("pass") {
            None | Some(Value::Null) => code == 0,
            Some(Value::Bool(pass)) => *pass && code == 0,
            Some(_) => return Err(strange("pass", "true or false")),
        };
        let issues: Vec<&str> = match object.get("issues") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(issues)) => {
                let texts: Option<Vec<&str>> = issues.iter().map(Value::as_str).collect();
                texts.ok_or_else(|| strange("issues", "a list of strings"))?
            }
            Some(_) => return Err(strange("issues", "a list of strings")),
        };
        let issue = match issues.join("; ") {
            words if !words.trim().is_empty() => Some(words.chars().take(LONGEST_ISSUE).collect()),
            _ => (!pass).then(|| format!("a command has failed with exit code {code}")),
        };
        Ok(Measured { pass, score: score.unwrap_or(if pass { 1.0 } else { 0.0 }), issue })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: i32, printed: &str) -> String {
        match CommandCriterion::verdict(code, printed) {
            Ok(Measured { pass, score, issue }) => format!("{pass} {score} {}", issue.unwrap_or_default()),
            Err(why) => why,
        }
    }

    #[test]
    fn a_command_judges_by_its_exit_code_or_by_an_object_in_its_last_line() {
        for (code, printed, expected) in [
            (0, "fine\n", "true 1 "),
            (1, "", "false 0 a command has failed with exit code 1"),
            (3, "building\nline 4 is empty\n\n", "false 0 line 4 is empty"),
            (0, "building\n{\"score\": 0.5}\n", "true 0.5 "),
            (
                0,
                "{\"pass\": false, \"score\": 0.5, \"issues\": [\"too short\", \"no title\"]}",
                "false 0.5 too short; no title",
            ),
            (0, "{\n  \"pass\": false\n}\n", "false 0 a command has failed with exit code 0"),
            // A command that has failed passes nothing, whatever it has printed before.
            (1, "{\"pass\": true, \"score\": 1}", "false 1 a command has failed with exit code 1"),
            (0, "{\"score\": 3}", "`score` of its JSON is not a number from 0 to 1"),
            (0, "{\"pass\": \"yes\"}", "`pass` of its JSON is not true or false"),
            (0, "{\"issues\": [1]}", "`issues` of its JSON is not a list of strings"),
            (0, "[1]", "true 1 "),
        ] {
            assert_eq!(said(code, printed), expected, "{printed}");
        }
    }
}
