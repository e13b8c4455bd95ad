//! Output for GitHub Actions: attempts become groups of the log, errors become annotations, and the outcome of the run
//! becomes the step summary (docs.github.com, "Workflow commands").

use crate::checks::Failure;
use crate::engine::{AttemptOutcome, Event, EventKind, RunOutcome};
use crate::plan::Outline;
use crate::report::format::first_line;
use crate::report::page::{Document, markdown_overview};
use crate::verdict::Severity;
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

fn annotation(level: &str, file: Option<&str>, line: Option<u32>, message: &str) -> String {
    let mut place = String::new();
    if let Some(file) = file {
        // Writing to a String cannot fail.
        let _ = write!(place, " file={}", property(file));
        if let Some(line) = line {
            let _ = write!(place, ",line={line}");
        }
    }
    format!("::{level}{place}::{}\n", data(message))
}

/// Returns what the log gets before and after our own line about an event. `word` is the token that ends
/// `stop-commands`.
pub(super) fn around(event: &Event, outline: &Outline, errors: &[Failure], word: &str) -> (String, String) {
    let (mut before, mut after) = (String::new(), String::new());
    match &event.event {
        EventKind::AttemptPlanned { at, .. } => {
            let _ = writeln!(before, "::group::{}/{} {}", at.step, outline.steps.len(), data(&at.name));
            let _ = writeln!(after, "::stop-commands::{word}");
        }
        EventKind::AttemptFinished { at, outcome, .. } => {
            let _ = write!(before, "::{word}::\n::endgroup::\n");
            let check = outline.step(at.step).filter(|step| step.check.is_some());
            if let Some(check) = check.filter(|_| *outcome != AttemptOutcome::Completed) {
                let level = if check.optional { "warning" } else { "error" };
                for error in errors.iter().take(MOST) {
                    let words = format!("{}: {}", at.name, first_line(&error.message));
                    after.push_str(&annotation(level, error.file.as_deref(), error.line, &words));
                }
                if errors.is_empty() {
                    after.push_str(&annotation(level, None, None, &format!("{} failed", at.name)));
                }
            }
        }
        EventKind::VerdictGiven { at, verdict, converged } if verdict.rejects(*converged) => {
            for finding in verdict.effective_findings().into_iter().take(MOST) {
                let level = if finding.severity == Severity::Minor { "notice" } else { "error" };
                let words = format!("{}: {}", at.name, first_line(&finding.title));
                after.push_str(&annotation(level, finding.file.as_deref(), finding.line, &words));
            }
        }
        _ => {}
    }
    (before, after)
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
        let line = annotation("error", Some("a,b:c.rs"), Some(3), "one\n::set-output name=x::y 100%");
        assert_eq!(line, "::error file=a%2Cb%3Ac.rs,line=3::one%0A::set-output name=x::y 100%25\n");
    }
}
