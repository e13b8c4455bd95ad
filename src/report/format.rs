//! Short texts for outcomes, times and numbers.

use crate::engine::{
    At, AttemptOutcome, EventKind, Feedback, FeedbackCause, Leftover, Preparation, Totals, WaitReason,
};
use crate::source::counted;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns how an attempt ended, as a short text that can follow the name of its step: `failed with exit code 1`.
pub(super) fn outcome_words(outcome: &AttemptOutcome, marker: bool, looped: bool) -> String {
    let in_spite = if marker && looped { " despite the marker" } else { "" };
    match outcome {
        AttemptOutcome::Completed if looped => "done, marker seen".into(),
        AttemptOutcome::Completed => "done".into(),
        AttemptOutcome::Unfinished if !looped => "did not complete (exit code 0)".into(),
        AttemptOutcome::Unfinished => "exit 0, no marker yet".into(),
        AttemptOutcome::Failed { code } => format!("failed with exit code {code}{in_spite}"),
        AttemptOutcome::Crashed { signal } => format!("was killed by signal {signal}{in_spite}"),
        AttemptOutcome::Errored => format!("reported an error (exit code 0){in_spite}"),
        AttemptOutcome::NotStarted { error: why } => format!("could not be started: {}", first_line(why)),
        AttemptOutcome::TimedOut => "timed out".into(),
        AttemptOutcome::Idle => "timed out (silent and idle for too long)".into(),
        AttemptOutcome::Voided => "modified protected files, so the attempt does not count".into(),
        AttemptOutcome::Limited => "hit a usage limit; the iteration does not count".into(),
        AttemptOutcome::Unavailable { reason } => format!("{}; the iteration does not count", reason_words(*reason)),
        AttemptOutcome::Interrupted => "interrupted".into(),
    }
}

/// Like [`outcome_words`], for an attempt of a judge: success is a verdict, whatever the verdict is.
pub(super) fn judge_words(outcome: &AttemptOutcome) -> String {
    match outcome {
        AttemptOutcome::Completed => "verdict given".into(),
        AttemptOutcome::Unfinished => "exit 0, no clear verdict".into(),
        outcome => outcome_words(outcome, false, false),
    }
}

/// Returns why an attempt could not work, as a text that can follow the name of its step.
fn reason_words(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::UsageLimit => "hit a usage limit",
        WaitReason::Service => "found its service unavailable",
        WaitReason::Login => "could not log in",
        WaitReason::Start => "printed nothing after its start",
        WaitReason::Machine => "could not be started",
        WaitReason::Session => "could not continue its session",
    }
}

/// Returns what the run is waiting for.
pub(super) fn waiting_words(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::UsageLimit => "waiting for the usage limit to end",
        WaitReason::Service => "waiting for the service",
        WaitReason::Login => "waiting for a login",
        WaitReason::Start => "waiting before restarting it",
        WaitReason::Machine => "waiting for free resources",
        WaitReason::Session => "its session is unknown, so it begins a new one",
    }
}

/// Returns what the run is waiting for, if this event begins a wait: `waiting for the usage limit to end, until …`.
#[must_use]
pub fn wait_words(event: &EventKind) -> Option<String> {
    match event {
        EventKind::WaitStarted { reason, until, .. } => {
            let until = until.as_ref().map_or_else(String::new, |until| format!(", until {}", local_time(until)));
            Some(format!("{}{until}", waiting_words(*reason)))
        }
        EventKind::RunPaused => Some("paused".into()),
        _ => None,
    }
}

/// Returns the label of an attempt with its place in loops and groups: `2.3 coder, round 2, iteration 1 of 3`.
#[must_use]
pub fn attempt_label(at: &At, iterations: Option<u32>) -> String {
    let round = if at.round > 1 { format!(", round {}", at.round) } else { String::new() };
    let iteration = iterations.map_or_else(String::new, |most| format!(", iteration {} of {most}", at.iteration));
    format!("{}.{} {}{round}{iteration}", at.step, at.attempt, at.name)
}

/// Returns what ended a round. `totals` are those of the run so far.
pub(super) fn round_words(feedback: &Feedback, totals: &Totals) -> String {
    let name = &feedback.from.name;
    match &feedback.cause {
        FeedbackCause::CheckFailed { .. } => format!("{name} failed"),
        FeedbackCause::IterationsExhausted { iterations } => {
            format!("{name} did not finish within {}", counted(*iterations, "iteration"))
        }
        FeedbackCause::Rejected { .. } if totals.rejected_by_a_person => "a human rejected".into(),
        FeedbackCause::Rejected { .. } => format!("{name} rejected"),
    }
}

/// Returns the number of terminal columns that a text takes (Unicode Standard Annex 11).
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Pads a text with spaces to a number of columns.
pub(super) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Truncates a text to a number of columns, and marks the cut with `…`.
#[must_use]
pub fn fitted(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let (mut fits, mut used) = (String::new(), 1);
    for next in text.chars() {
        used += next.width().unwrap_or(0);
        if used > columns {
            break;
        }
        fits.push(next);
    }
    fits + "…"
}

pub(super) fn first_line(text: &str) -> String {
    const WIDTH: usize = 200;
    let line: String = text.lines().next().unwrap_or_default().chars().filter(|next| !next.is_control()).collect();
    match line.char_indices().nth(WIDTH) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

/// Formats a duration: `0.3 s`, `2 min 5 s`, `1 h 3 min`.
pub(super) fn seconds(milliseconds: u64) -> String {
    let whole = milliseconds / 1000;
    match whole {
        0..60 => format!("{whole}.{} s", milliseconds % 1000 / 100),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// The label of the attempts after the first rejection. Rejections by a person are not counted.
pub(super) fn rework_label(totals: &Totals) -> String {
    match totals.rejections {
        0 => "after a person's rejection".into(),
        1 => "after the rejection".into(),
        count => format!("after the first of {count} rejections"),
    }
}

/// Formats a time in the machine's time zone: `2026-11-23 06:30:05`. A text that is not a time is returned unchanged.
pub(super) fn local_time(time: &str) -> String {
    zoned(time).map_or_else(|| time.to_string(), |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Formats a time of day in the machine's time zone: `06:30:05`.
pub(super) fn time_of_day(time: &str) -> String {
    zoned(time).map_or_else(|| time.to_string(), |zoned| zoned.strftime("%H:%M:%S").to_string())
}

fn zoned(time: &str) -> Option<Zoned> {
    Some(time.parse::<Timestamp>().ok()?.to_zoned(TimeZone::system()))
}

/// Formats a number with separators: `12,345`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number with separators and its noun, in agreement: `1 token`, `12,345 tokens`.
pub(super) fn amount(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Returns the tools that were refused, with their arguments, and the line of the config that allows them.
pub(super) fn refused_words(denials: &[String], allows: Option<&str>) -> String {
    let mut told: Vec<&str> = Vec::new();
    for denial in denials {
        if !told.contains(&denial.as_str()) {
            told.push(denial);
        }
    }
    let refused = first_line(&told.join(", "));
    let Some(form) = allows else {
        return format!("refused: {refused}; its backend has no list of allowed tools; `permissions` can allow more");
    };
    let mut rules: Vec<String> = Vec::new();
    for denial in told {
        let rule = rule(denial, form);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let rules = rules.iter().map(|rule| format!("{rule:?}")).collect::<Vec<_>>().join(", ");
    format!("refused: {refused}; to allow it: \"allowedTools\": [{rules}]")
}

/// Returns the rule that allows a refused call, in the syntax of its backend: `Bash(curl:*)` for `Bash(curl -s
/// http://x)`,
/// `WebFetch` for `WebFetch(http://x)`.
fn rule(denial: &str, form: &str) -> String {
    /// Programs whose first argument is a subcommand.
    const WITH_VERBS: [&str; 12] =
        ["git", "npm", "pnpm", "yarn", "npx", "cargo", "go", "docker", "kubectl", "gh", "pip", "python3"];
    let (tool, input) = denial.split_once('(').unwrap_or((denial, ""));
    let is_command = form.starts_with(&format!("{tool}(")) || form.starts_with("shell(") && tool == "bash";
    if !is_command {
        return tool.to_string();
    }
    let mut words = input.trim_end_matches(')').split_whitespace();
    let Some(first) = words.next() else { return tool.to_string() };
    let second = words.next().filter(|word| WITH_VERBS.contains(&first) && !word.starts_with('-'));
    form.replace("{}", &second.map_or_else(|| first.to_string(), |second| format!("{first} {second}")))
}

/// Returns the names of leftover processes, at most ten of them.
pub(super) fn leftover_names(leftovers: &[&Leftover]) -> String {
    let mut names: Vec<String> = leftovers.iter().take(10).map(|left| first_line(&left.to_string())).collect();
    names.extend(leftovers.len().checked_sub(11).map(|more| format!("and {} more", more + 1)));
    names.join(", ")
}

/// Describes a message from a person.
pub(super) fn message_words(text: &str) -> String {
    let more = if text.trim().lines().count() > 1 { " …" } else { "" };
    format!("message from a person: {}{more}", first_line(text.trim()))
}

/// Returns what happens with templates that were edited during the run.
pub(super) fn edited_words(files: &[String], taken: bool, why: Option<&str>) -> String {
    let (files, has) = (files.join(", "), if files.len() == 1 { "has" } else { "have" });
    match why {
        _ if taken => format!("{files} {has} changed; the next attempts use the new text"),
        Some(why) => format!("{files} {has} changed, but cannot be read: {why}; this run keeps the old text"),
        None => format!("{files} {has} changed; this run keeps the old text (--accept-changes uses the new one)"),
    }
}

/// Returns how an attempt is started, where that is out of the ordinary: `run by codex: claude has reached …`.
pub(super) fn prepared_words(how: &Preparation) -> String {
    let by: Vec<&str> = how.backend.iter().chain(&how.model).map(String::as_str).collect();
    let session = how.session.as_ref().map(|session| format!(", continuing the session {session}"));
    let reasons = if how.reasons.is_empty() { String::new() } else { format!(": {}", how.reasons.join("; ")) };
    format!("run by {}{}{reasons}", by.join(", "), session.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!([0, 1, 1234].map(|number| amount(number, "token")), ["0 tokens", "1 token", "1,234 tokens"]);
    }

    #[test]
    fn columns_are_those_of_a_terminal_and_not_characters() {
        assert_eq!((width("reviewer"), width("審査"), width("e\u{301}")), (8, 4, 1));
        assert_eq!((padded("審査", 6), padded("long", 2)), ("審査  ".into(), "long".into()));
        assert_eq!(
            (fitted("審査員", 6), fitted("審査員", 5), fitted("abc", 2)),
            ("審査員".into(), "審査…".into(), "a…".into())
        );
    }
}
