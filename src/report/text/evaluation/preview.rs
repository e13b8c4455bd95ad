//! What an evaluation would do.

use super::times_words;
use crate::engine::EvalFacts;
use crate::plan::Outline;
use crate::report::paint::{Paint, printable};
use crate::source::counted;
use std::fmt::Write;

/// Returns which agents would be asked what, and how often at most.
#[must_use]
pub fn evaluation_preview(facts: &EvalFacts, outline: &Outline, case: &str, prompt: &str, paint: Paint) -> String {
    let held: Vec<&str> = facts.cases.iter().filter(|case| case.held_out).map(|case| &*case.id).collect();
    let (cases, options) = (facts.cases.len(), &facts.options);
    let mut text = format!("{}\n", paint.bold(&outline.chain));
    let mut line = |name: &str, words: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "   {} {words}", paint.dim(&format!("{name:<10}")));
    };
    let (evaluates, improves) = (facts.evaluator.is_some(), facts.options.improves);
    let parts = [
        ("executor", facts.columns.is_empty()),
        (if evaluates { "evaluator" } else { "selector" }, evaluates || facts.selector.is_some()),
        ("improver", improves),
        ("criteria", true),
    ];
    for (step, (name, _)) in outline.steps.iter().zip(parts).filter(|(_, (_, there))| *there) {
        if let Some(check) = &step.check {
            line(name, &format!("run commands, such as: {}", printable(check)));
            continue;
        }
        let level = step.permissions.map_or_else(String::new, |level| format!(", permissions {}", level.name()));
        line(name, &format!("{} ({}{level})", step.name, step.program));
    }
    if facts.columns.is_empty() {
        line("prompt", &counted(facts.tokens, "token"));
    } else {
        let names: Vec<&str> = facts.columns.iter().map(|column| column.name.as_str()).collect();
        line("columns", &printable(&names.join(" · ")));
    }
    line("cases", &format!("{cases}{} (up to {} at a time)", times_words(facts), options.jobs));
    if !held.is_empty() {
        line("held out", &held.join(", "));
    }
    let agents = u64::from(facts.evaluators.max(u32::from(facts.evaluator.is_some()))) + 1;
    let samples: u64 = facts.cases.iter().map(|case| u64::from(case.repeat)).sum();
    let columns = facts.columns.len() as u64;
    let pairs = if facts.selector.is_some() { samples * columns * columns.saturating_sub(1) } else { 0 };
    let asked = samples * agents * columns.max(1) + pairs;
    if options.improves {
        let whole = asked * (u64::from(options.generations) + 1) + u64::from(options.generations);
        line(
            "at most",
            &format!(
                "{} in {} after the original, not counting retries",
                counted(whole, "attempt"),
                counted(options.generations, "generation")
            ),
        );
    } else {
        let not_counted =
            if outline.steps.iter().any(|step| step.check.is_some()) { "retries and commands" } else { "retries" };
        line("at most", &format!("{}, not counting {not_counted}", counted(asked, "attempt")));
    }
    line("limits", &outline.limits.words());
    let _ = write!(
        text,
        "\n{}\n{}\n",
        paint.dim(&format!("the prompt of the executor for `{case}`:")),
        printable(prompt.trim_end())
    );
    let _ = writeln!(text, "\n{}", paint.dim("Nothing was run and nothing was written."));
    text
}
