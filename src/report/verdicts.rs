//! The decisions of agents, as lines for people.

use crate::engine::HumanNeeded;
use crate::report::format::first_line;
use crate::report::paint::Paint;
use crate::verdict::{Decision, Finding, ReadFrom, Severity, Unclear, Verdict};

/// The maximum number of findings of a verdict that are shown. All of them are in the transcripts.
const SHOWN: usize = 5;

/// Returns the lines about a verdict. `rejection` is the number of the rejection within the run.
pub(super) fn verdict_lines(verdict: &Verdict, converged: bool, rejection: u32, paint: Paint) -> String {
    let said = first_line(verdict.notes.trim());
    let because = if said.is_empty() { said } else { format!(": {said}") };
    let first = match verdict.decision {
        Decision::Approve => {
            let who = if verdict.from == ReadFrom::Person { "a human approves" } else { "approves" };
            // The text before a verdict line is shown already.
            let own = !matches!(verdict.from, ReadFrom::Line | ReadFrom::Word);
            paint.good(&format!("{} {who}{}", paint.sign("✓", "+"), if own { because.as_str() } else { "" }))
        }
        Decision::Reject if verdict.from == ReadFrom::Person => {
            paint.bad(&format!("{} a human rejects{because}", paint.sign("✗", "x")))
        }
        Decision::Reject if converged => paint.good(&format!(
            "{} rejects, but names nothing that has to be fixed: the round converges",
            paint.sign("✓", "+")
        )),
        Decision::Reject => paint.bad(&format!("{} rejects (rejection {rejection})", paint.sign("✗", "x"))),
        Decision::Dispute => paint.warn(&format!("! disputes{because}")),
        Decision::Skip => paint.warn(&format!("! skips: there is nothing to do{because}")),
        Decision::Submit | Decision::Done => return String::new(),
    };
    let mut text = format!("  {first}\n");
    if verdict.decision == Decision::Reject || verdict.decision == Decision::Approve {
        let findings = verdict.effective_findings();
        for finding in findings.iter().take(SHOWN) {
            text.push_str(&format_args!("    {}\n", paint.dim(&finding_line(finding))).to_string());
        }
        if findings.len() > SHOWN {
            let more = format!("… and {} more", findings.len() - SHOWN);
            text.push_str(&format_args!("    {}\n", paint.dim(&more)).to_string());
        }
    }
    text
}

pub(super) fn finding_line(finding: &Finding) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    let place = finding.file.as_ref().map_or_else(String::new, |file| format!("{file}{line}: "));
    let minor = if finding.severity == Severity::Minor { "minor: " } else { "" };
    first_line(&format!("{minor}{place}{}", finding.title))
}

/// Returns why an answer did not count as a verdict. `asked` is how often it was asked; 0 if it is not asked again.
pub(super) fn unclear_words(name: &str, why: &Unclear, asked: u32) -> String {
    let words = first_line(&why.words());
    match (asked, why) {
        (0, _) => format!("{name}: {words}"),
        (asked, Unclear::NoTasks { .. }) => format!("{name}: {words} (answer {asked} of 3)"),
        (asked, _) => format!("{name}: no clear verdict (answer {asked} of 3): {words}"),
    }
}

/// Returns how the errors of a check changed since its last run; `None` if there were none before and after.
pub(super) fn trend(before: &[String], now: &[String]) -> Option<String> {
    let fixed = before.iter().filter(|error| !now.contains(error)).count();
    let new = now.iter().filter(|error| !before.contains(error)).count();
    let same = now.len() - new;
    (!before.is_empty() || !now.is_empty()).then(|| format!("errors: {fixed} fixed, {new} new, {same} same"))
}

/// Returns why a human is needed.
pub(super) fn human_words(name: &str, why: HumanNeeded, rejections: u32) -> String {
    match why {
        HumanNeeded::Disputed => format!("{name} disputes what it was asked to do; a human has to decide"),
        HumanNeeded::Unclear => format!("{name} gave no clear verdict in three attempts; a human has to decide"),
        HumanNeeded::NotAJudge => format!(
            "{name} rejected the work, and no judge approved it after that; a human has to decide (if {name} should \
             judge, give it \"role\": \"judge\")"
        ),
        HumanNeeded::Login => format!("the login of {name} was refused; log in again"),
        HumanNeeded::NoCommand => format!(
            "no command was found for {name}; add it to `checks` in forge/chains.json, or start without that step"
        ),
        HumanNeeded::NoJudge => {
            "the task was rejected before, or is waiting for a judge, and this chain has none; a human has to decide"
                .into()
        }
        HumanNeeded::Rejections if rejections == 1 => format!("{name} rejected the work, and no rounds are left"),
        HumanNeeded::Rejections => format!("{name} rejected the work {rejections} times, and no rounds are left"),
    }
}
