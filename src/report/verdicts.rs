//! What agents decided, in lines for people.

use crate::engine::HumanNeeded;
use crate::report::paint::Paint;
use crate::report::phrases::first_line;
use crate::verdict::{Decision, Finding, ReadFrom, Severity, Unclear, Verdict};

/// How many findings of a verdict are shown; the rest are in its folder.
const SHOWN: usize = 5;

/// A verdict; `rejection` is its number in the run, if it is a reject.
pub(super) fn verdict_lines(verdict: &Verdict, converged: bool, rejection: u32, paint: Paint) -> String {
    let said = first_line(verdict.notes.trim());
    let because = if said.is_empty() { said } else { format!(": {said}") };
    let first = match verdict.decision {
        Decision::Approve => {
            let who = if verdict.from == ReadFrom::Person { "a person approves" } else { "approves" };
            // Of a line the words before it are shown already.
            let own = !matches!(verdict.from, ReadFrom::Line | ReadFrom::Word);
            paint.good(&format!("{} {who}{}", paint.sign("✓", "+"), if own { because.as_str() } else { "" }))
        }
        Decision::Reject if verdict.from == ReadFrom::Person => {
            paint.bad(&format!("{} a person rejects{because}", paint.sign("✗", "x")))
        }
        Decision::Reject if converged => paint.good(&format!(
            "{} rejects, and names nothing that has to be mended: the round converges",
            paint.sign("✓", "+")
        )),
        Decision::Reject => paint.bad(&format!("{} rejects (rejection {rejection})", paint.sign("✗", "x"))),
        Decision::Dispute => paint.warn(&format!("! disputes{because}")),
        Decision::Skip => paint.warn(&format!("! skips, there is nothing to do{because}")),
        Decision::Submit | Decision::Done => return String::new(),
    };
    let mut text = format!("  {first}\n");
    if verdict.decision == Decision::Reject || verdict.decision == Decision::Approve {
        let findings = verdict.weighed();
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

fn finding_line(finding: &Finding) -> String {
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    let place = finding.file.as_ref().map_or_else(String::new, |file| format!("{file}{line}: "));
    let minor = if finding.severity == Severity::Minor { "minor: " } else { "" };
    first_line(&format!("{minor}{place}{}", finding.title))
}

/// No verdict that counts.
pub(super) fn unclear_words(name: &str, why: &Unclear, asked: u32) -> String {
    let words = first_line(&why.words());
    match (asked, why) {
        (0, _) => format!("{name}: {words}"),
        (asked, Unclear::NoTasks { .. }) => format!("{name}: {words} (asked {asked} of 3)"),
        (asked, _) => format!("{name}: no clear verdict (asked {asked} of 3): {words}"),
    }
}

/// How the errors of a check moved since it last ran; nothing when there were none and are none.
pub(super) fn trend(before: &[String], now: &[String]) -> Option<String> {
    let fixed = before.iter().filter(|error| !now.contains(error)).count();
    let new = now.iter().filter(|error| !before.contains(error)).count();
    let same = now.len() - new;
    (!before.is_empty() || !now.is_empty()).then(|| format!("errors: {fixed} fixed, {new} new, {same} same"))
}

/// Why a human is needed.
pub(super) fn human_words(name: &str, why: HumanNeeded, rejections: u32) -> String {
    match why {
        HumanNeeded::Disputed => format!("{name} disputes what was asked; a human has to decide"),
        HumanNeeded::Unclear => format!("{name} gave no clear verdict, time and again; a human has to look"),
        HumanNeeded::NotAJudge => format!(
            "{name} rejected the work, and no judge approved it after that; a human has to decide (if {name} is to judge, give it \
             \"role\": \"judge\")"
        ),
        HumanNeeded::Login => format!("the login of {name} is refused; log in again"),
        HumanNeeded::NoCommand => format!(
            "no command was found for {name}; name it in `checks` of forge/chains.json, or begin without that step"
        ),
        HumanNeeded::NoJudge => {
            "the task was rejected before, or waits for a judge, and this chain has none; a human has to decide".into()
        }
        HumanNeeded::Rejections if rejections == 1 => format!("{name} rejected, and no round is left"),
        HumanNeeded::Rejections => format!("{name} rejected {rejections} times, and no round is left"),
    }
}
