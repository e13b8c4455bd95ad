//! What the next round of a group is told about the last one.

use std::fmt::Write;

/// The longest output that is quoted, in Unicode scalars; the end is what matters, so the beginning is cut, at a line end.
pub const FEEDBACK_CHARACTERS: usize = 8_000;

/// Feedback after a failed check: its words, its end, and the last lines of its output.
#[must_use]
pub fn failed_check_feedback(round: u32, check: &str, command: &str, how: &str, output: &str, log: &str) -> String {
    let first = format!("The check `{check}` {how} in round {round}. Mend what it found. It ran: {command}");
    section(&first, output, log)
}

/// Feedback after a loop that did not reach its marker.
#[must_use]
pub fn exhausted_feedback(round: u32, agent: &str, iterations: u32, output: &str, log: &str) -> String {
    let first = format!(
        "In round {round} `{agent}` did not finish within {iterations} iterations. Go on where it stopped. Its last words:"
    );
    section(&first, output, log)
}

fn section(first: &str, output: &str, log: &str) -> String {
    // Writing to a String cannot fail.
    let (tail, cut) = tail(output);
    let fence = fence_for(tail);
    let mut text = format!("\n\n## Feedback from the last round\n\n{first}\n");
    if !tail.is_empty() {
        let newline = if tail.ends_with('\n') { "" } else { "\n" };
        let _ = write!(text, "\n{fence}\n{tail}{newline}{fence}\n");
    }
    if cut {
        let _ = write!(text, "\n[The beginning is cut. The whole output: {log}]\n");
    }
    text
}

/// The end of a text, from a line's beginning where it has lines.
fn tail(text: &str) -> (&str, bool) {
    let Some((cut, _)) = text.char_indices().rev().nth(FEEDBACK_CHARACTERS - 1).filter(|(cut, _)| *cut > 0) else {
        return (text, false);
    };
    let end = &text[cut..];
    let line = end.find('\n').map_or(0, |newline| newline + 1);
    (if line < end.len() { &end[line..] } else { end }, true)
}

/// A fence longer than any run of backticks in the text (C8).
fn fence_for(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(3.max(longest + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_quotes_the_end_of_the_output_in_a_fence_that_holds_it() {
        let text = failed_check_feedback(2, "build", "make", "failed (exit 2)", "a ``` b\n", "/log");
        assert_eq!(
            text,
            "\n\n## Feedback from the last round\n\nThe check `build` failed (exit 2) in round 2. Mend what it found. It \
             ran: make\n\n````\na ``` b\n````\n"
        );
    }

    #[test]
    fn long_output_is_cut_at_a_line_and_says_where_the_whole_is() {
        let output = "é line\n".repeat(5_000);
        let text = exhausted_feedback(1, "a", 3, &output, "/log");
        assert!(text.contains("\n```\né line\n"));
        assert!(text.contains("[The beginning is cut. The whole output: /log]"));
        assert!(text.chars().count() < FEEDBACK_CHARACTERS + 300);
        assert_eq!(tail(&"x".repeat(FEEDBACK_CHARACTERS)), ("x".repeat(FEEDBACK_CHARACTERS).as_str(), false));
    }
}
