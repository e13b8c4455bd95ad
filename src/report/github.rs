//! Output for GitHub Actions: attempts become groups of the log, errors become annotations, and the outcome of the run
//! becomes the step summary (docs.github.com, "Workflow commands").

use crate::checks::Failure;
use crate::engine::{AttemptOutcome, Event, EventKind, RunOutcome};
use crate::plan::Outline;
use crate::report::format::first_line;
use crate::report::page::{Document, markdown_overview};
use crate::verdict::{Severity, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The maximum number of annotations of an attempt. GitHub shows ten of each kind for a step.
const MOST: usize = 10;

/// Changes lines that may contain foreign text so that none of them is a workflow command. The runner looks for `::` at
/// the start of a line and for `##[` anywhere.
pub(super) fn harmless(lines: &str) -> String {
    let mut harmless = String::with_capacity(lines.len());
    for line in lines.split_inclusive('\n') {
        let start = line.trim_start();
        if let Some(rest) = start.strip_prefix("::") {
            harmless.push_str(&line[..line.len() - start.len()]);
            harmless.push_str(": :");
            harmless.push_str(&rest.replace("##[", "## ["));
        } else {
            harmless.push_str(&line.replace("##[", "## ["));
        }
    }
    harmless
}

/// Escapes the data of a workflow command.
fn data(text: &str) -> String {
    text.replace("##[", "## [").replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A message at a place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Annotation {
    level: &'static str,
    file: Option<String>,
    line: Option<u32>,
    message: String,
}

impl Annotation {
    fn command(&self, level: &str) -> String {
        let mut place = String::new();
        if let Some(file) = &self.file {
            // Writing to a String cannot fail.
            let _ = write!(place, " file={}", property(file));
            if let Some(line) = self.line {
                let _ = write!(place, ",line={line}");
            }
        }
        format!("::{level}{place}::{}\n", data(&self.message))
    }
}

/// The log of a job. Errors become annotations once it is known whether a later round fixed them.
#[derive(Debug)]
pub struct GithubLog {
    /// The token that ends `stop-commands`.
    word: String,
    /// What the last attempt of each step found.
    open: BTreeMap<u32, Vec<Annotation>>,
}

impl GithubLog {
    /// Creates the log of a job. `word` is a random token: it keeps the output of agents from being read as commands.
    #[must_use]
    pub fn new(word: String) -> Self {
        Self { word, open: BTreeMap::new() }
    }

    /// Replaces the token.
    pub(super) fn renew(&mut self, word: String) {
        self.word = word;
    }

    /// Replaces what a step found. What it no longer finds was fixed, and becomes a notice.
    fn found(&mut self, step: u32, now: Vec<Annotation>) -> String {
        let before = self.open.remove(&step).unwrap_or_default();
        let fixed = before.iter().filter(|one| !now.contains(one)).map(|one| one.command("notice")).collect();
        if !now.is_empty() {
            self.open.insert(step, now);
        }
        fixed
    }

    /// Returns what the log gets before and after our own line about an event.
    pub(super) fn around(&mut self, event: &Event, outline: &Outline, errors: &[Failure]) -> (String, String) {
        let (mut before, mut after) = (String::new(), String::new());
        match &event.event {
            EventKind::AttemptPlanned { at, .. } => {
                let _ = writeln!(before, "::group::{}.{} {}", at.step, at.attempt, data(&at.name));
                let _ = writeln!(after, "::stop-commands::{}", self.word);
            }
            EventKind::AttemptFinished { at, outcome, .. } => {
                let _ = write!(before, "::{}::\n::endgroup::\n", self.word);
                if let Some(check) = outline.step(at.step).filter(|step| step.check.is_some()) {
                    let level = if check.optional { "warning" } else { "error" };
                    after.push_str(
                        &self.found(at.step, of_check(&at.name, level, *outcome == AttemptOutcome::Completed, errors)),
                    );
                }
            }
            EventKind::VerdictGiven { at, verdict, converged } => {
                let findings = if verdict.rejects(*converged) { of_verdict(&at.name, verdict) } else { Vec::new() };
                after.push_str(&self.found(at.step, findings));
            }
            EventKind::RunFinished { outcome } => {
                let good = *outcome == RunOutcome::Succeeded;
                for one in std::mem::take(&mut self.open).into_values().flatten() {
                    let level = if good && one.level == "error" { "notice" } else { one.level };
                    after.push_str(&one.command(level));
                }
            }
            _ => {}
        }
        (before, after)
    }
}

fn of_check(name: &str, level: &'static str, passed: bool, errors: &[Failure]) -> Vec<Annotation> {
    if passed {
        return Vec::new();
    }
    if errors.is_empty() {
        return vec![Annotation { level, file: None, line: None, message: format!("{name} failed") }];
    }
    let one = |error: &Failure| Annotation {
        level,
        file: error.file.clone(),
        line: error.line,
        message: format!("{name}: {}", first_line(&error.message)),
    };
    errors.iter().take(MOST).map(one).collect()
}

fn of_verdict(name: &str, verdict: &Verdict) -> Vec<Annotation> {
    let findings = verdict.effective_findings().into_iter().take(MOST);
    findings
        .map(|finding| Annotation {
            level: if finding.severity == Severity::Minor { "notice" } else { "error" },
            file: finding.file.clone(),
            line: finding.line,
            message: format!("{name}: {}", first_line(&finding.title)),
        })
        .collect()
}

/// Returns the first screen of a run's report as Markdown, for the step summary.
#[must_use]
pub fn step_summary(document: &Document<'_>) -> String {
    let summary = document.summary;
    let title = summary.name.as_ref().unwrap_or(&summary.chain);
    let sign = if summary.totals.outcome == Some(RunOutcome::Succeeded) { "✅" } else { "❌" };
    let first = format!("### {sign} forkhestra: `{}`, {}\n\n", title.replace('`', "'"), document.reason);
    first + &markdown_overview(document) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_others_have_a_part_in_are_no_commands() {
        let lines = harmless("  ::add-mask::x\nsaid ::this\n::error::\n a ##[error]z\n");
        assert_eq!(lines, "  : :add-mask::x\nsaid ::this\n: :error::\n a ## [error]z\n");
    }

    #[test]
    fn what_an_agent_says_cannot_write_a_command_of_its_own() {
        let message = "one\n::set-output name=x::y 100%".to_string();
        let line =
            Annotation { level: "error", file: Some("a,b:c.rs".into()), line: Some(3), message }.command("error");
        assert_eq!(line, "::error file=a%2Cb%3Ac.rs,line=3::one%0A::set-output name=x::y 100%25\n");
    }
}
